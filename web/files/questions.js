// What is said of a request: what is asked, what to beware of, how to answer, what became of it.

import { choiceLabel } from "./events.js";
import { safe } from "./safe.js";
import { MAX_NAME, Sentences, cut } from "./sentences.js";

/** @type {(texts: string[]) => LookAlike[]} */
let lookAlikes = () => [];

/** @param {typeof lookAlikes} found */
export function setLookAlikes(found) {
  lookAlikes = found;
}

/** How many words are warned of one by one. */
const MAX_WARNINGS = 3;

const OWN = ["accepted", "rejected", "answered", "superseded"];

/** What ends a sentence. */
const SENTENCE_ENDS = /[.!?。！؟۔।]/;

/** A sentence without its end, in small letters. @param {string} sentence */
const bare = (sentence) => sentence.trim().replace(/[.!?。！؟۔।]+$/, "").trim().toLowerCase();

export class Questions extends Sentences {
  /** @param {AgentRequest} request */
  asked(request) {
    if (request.continues !== null) {
      this.say("ask.more_time", { old: request.continues, number: request.number });
      this.newLine();
    }
    // A name that is said is trusted, too.
    this.asks(request, this.manner.name_agents ? request.agent.name : "");
    this.newLine();
    this.say("ask.waits", { number: request.number, time: this.words.duration(request.timeout_seconds) });
  }

  /**
   * Whether one of these texts has this sentence of ours as a sentence of its own: then it is not said
   * twice. Nothing less than the whole sentence counts, since the rest could turn it around.
   * @param {string} key @param {string[]} texts
   */
  saysItself(key, texts) {
    const ours = bare(this.words.phrase(key).map((span) => span.text).join(""));
    return texts.some((text) => text.split(SENTENCE_ENDS).some((sentence) => {
      const theirs = bare(sentence);
      return theirs === ours || theirs.replace(/^this /, "it ") === ours;
    }));
  }

  /**
   * Whether it can be undone, unless a text that is shown says so itself.
   * @param {Pick<AgentRequest, "reversibility">} request @param {string[]} texts
   */
  undo({ reversibility }, texts) {
    const key = `undo.${reversibility}`;
    if (!this.saysItself(key, texts)) this.say(key);
  }

  /** @param {AgentRequest} request @param {string} [name] of the agent, where it is said */
  asks(request, name = "") {
    // enforces: S10
    if (request.asks === "consent") {
      this.whole("ask.consent", "action", request.action, "ask.consent.bare");
      this.undo(request, [request.action, request.consequence]);
      this.newLine();
      this.whole("ask.consequence", "consequence", request.consequence, "ask.consequence.bare");
      this.say(`risk.${request.risk}`);
      this.careful([request.action, request.consequence, name]);
      this.newLine();
      if (request.silence_accepts) this.say("ask.silence_accepts");
      else if (this.detailed) this.say("ask.silence_rejects");
      return;
    }
    this.whole("ask.question", "question", request.action, "ask.question.bare");
    this.whole("ask.context", "context", request.context);
    this.howToAnswer(request.kinds, request.choices);
    this.careful([request.action, request.context, name, ...request.choices.map((choice) => choice.label)]);
    this.newLine();
    if (request.default !== null) this.default("ask.default", request);
  }

  /** @param {string[]} kinds @param {Choice[]} choices */
  howToAnswer(kinds, choices) {
    this.newLine();
    const several = kinds.filter((kind) => kind !== "multiple_choice");
    const all = kinds.includes("multiple_choice") ? ["multiple_choice", ...several] : several;
    (all.length > 0 ? all : ["freetext"]).forEach((kind, place) => {
      const key = `${place === 0 ? "ask." : "ask.or."}${kind}`;
      if (kind !== "multiple_choice") return this.say(key);
      this.say(key, { count: choices.length });
      choices.forEach((choice, at) => {
        this.newLine();
        this.say("ask.choice", { number: at + 1, label: { theirs: choiceLabel(choice) } });
      });
      this.newLine();
    });
  }

  /** The answer that counts when none comes (D17). @param {string} key @param {AgentRequest} request */
  default(key, request) {
    const value = request.default ?? "";
    const choice = request.choices.find((one) => one.value === value);
    const yesNo = request.kinds.includes("yes_no") && (value === "true" || value === "false");
    if (!choice && yesNo) this.say(key, { default: this.words.phrase(value === "true" ? "yes" : "no") });
    else this.say(key, { default: { theirs: choice ? choice.label : value } });
  }

  /** @param {string[]} texts */
  careful(texts) {
    // enforces: D34
    this.newLine();
    const count = texts.reduce((sum, text) => sum + safe(text).hidden, 0);
    if (count > 0) this.say("careful.hidden", { count });
    const found = lookAlikes(texts);
    for (const one of found.slice(0, MAX_WARNINGS)) {
      // The text itself is said in full before.
      const word = { theirs: cut(one.word, MAX_NAME)[0] };
      if (one.kind === "mixed") {
        const [first, second] = [this.words.script(one.first), this.words.script(one.second)];
        this.say("careful.mixed", { word, first, second });
      } else if (one.kind === "alike") {
        this.say("careful.alike", { word, script: this.words.script(one.script) });
      } else {
        this.say(`careful.${one.kind}`, { word });
      }
    }
    if (found.length > MAX_WARNINGS) this.say("careful.more", { count: found.length - MAX_WARNINGS });
  }

  /** @param {AgentRequest} request @param {Outcome} outcome */
  settled(request, outcome) {
    // enforces: C25
    this.say(`outcome.${outcome}`, { number: request.number });
    if (outcome === "timed_out") this.afterSilence(request);
    // Who did not decide it may have forgotten what it was.
    if (OWN.includes(outcome) || this.terse) return;
    this.newLine();
    if (request.action.trim() !== "") this.about("outcome.it_was", "what", request.action);
  }

  /** @param {AgentRequest} request */
  afterSilence(request) {
    if (request.asks === "consent") this.say(request.silence_accepts ? "outcome.counts_as_yes" : "outcome.counts_as_no");
    else if (request.default !== null) this.default("outcome.goes_on_with", request);
    else this.say("outcome.agent_decides");
  }
}
