// What is said of each thing that happens, sentence by sentence, as the Rust library says it.

import { choiceLabel, textOf, typeOf } from "./inbox.js";
import { safe } from "./safe.js";
import { append, plain, theirs } from "./words.js";

/** @type {(texts: string[]) => LookAlike[]} */
let lookAlikes = () => [];

/** @param {typeof lookAlikes} found */
export function setLookAlikes(found) {
  lookAlikes = found;
}

/** The longest text of an event, and the longest name, that are said in full, in code points. */
const MAX_TEXT = 16_384;
const MAX_NAME = 256;

/** How many words are warned of one by one. */
const MAX_WARNINGS = 3;

const STATES = ["idle", "thinking", "calling_tool", "writing_output", "awaiting_input", "deciding", "handing_off"];
const OWN = ["accepted", "rejected", "answered", "superseded"];
const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/**
 * The beginning of a text, cut between characters as people see them (L6), and how many code points
 * are left out.
 * @param {string} text @param {number} max
 * @returns {[string, number]}
 */
export function cut(text, max) {
  // enforces: L6
  if (text.length <= max) return [text, 0];
  const points = Array.from(text);
  if (points.length <= max) return [text, 0];
  const limit = points.slice(0, max).join("").length;
  const near = limit + (points[max]?.length ?? 0);
  let end = 0;
  for (const { index, segment } of graphemes.segment(text.slice(0, near))) {
    if (index + segment.length <= limit) end = index + segment.length;
  }
  if (end === 0) end = limit;
  return [text.slice(0, end), Array.from(text.slice(end)).length];
}

/** @param {string} text */
const ends = (text) => /[.!?…:;。！？：；؟۔؛।]["'”’»)\]」』）]*$/u.test(text);

/**
 * A line as a sentence of its own: what is heard next does not run into it.
 * @param {Line} line @param {Words} words
 */
export function ended(line, words) {
  const last = line.at(-1);
  if (last && !ends(last.text)) append(line, words.phrase("full_stop"));
  return line;
}

/** @param {unknown} value */
const whole = (value) =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.trunc(value) : null;

/** What ends a sentence. */
const SENTENCE_ENDS = /[.!?。！؟۔।]/;

/** A sentence without its end, in small letters. @param {string} sentence */
const bare = (sentence) => sentence.trim().replace(/[.!?。！؟۔।]+$/, "").trim().toLowerCase();

/** Whether a text has all of these numbers, in this order. @param {string} text @param {(number | null)[]} wanted */
const saysNumbers = (text, wanted) => {
  const said = (text.match(/[0-9]+/g) ?? []).map(Number);
  let at = 0;
  return wanted.filter((number) => number !== null).every((number) => {
    at = said.indexOf(/** @type {number} */ (number), at) + 1;
    return at > 0;
  });
};

/** Whether a text says that it is so many percent. @param {string} text @param {number} percent */
const saysPercent = (text, percent) =>
  [...text.matchAll(/([0-9]+)\s*(?:%|٪|percent)/g)].some((found) => Number(found[1]) === percent);

export class Speech {
  /** @param {Words} words @param {Manner} manner */
  constructor(words, manner) {
    this.words = words;
    this.manner = manner;
    /** Each with its line, and the phrase that it is. @type {[number, Line, string][]} */
    this.sentences = [];
    /** @type {Line[]} */
    this.lines = [];
    this.line = 0;
    const { verbosity, load } = manner;
    this.detailed = verbosity === "detailed" && load !== "high";
    this.terse = verbosity === "terse" || (load === "high" && verbosity !== "detailed");
  }

  /** @param {string} key @param {Arguments} [given] */
  say(key, given) {
    this.push(this.words.phrase(key, given), key);
  }

  /** @param {Line} line @param {string} [key] */
  push(line, key = "") {
    if (line.length === 0) return;
    ended(line, this.words);
    // An agent's summary often says what our own words have said.
    const before = this.sentences.at(-1)?.[1];
    if (before && plain(before) === plain(line)) return;
    this.sentences.push([this.line, line, key]);
  }

  newLine() {
    this.line += 1;
  }

  /** @param {string} text */
  quote(text) {
    /** @type {Line} */
    const line = [];
    theirs(line, text.trim());
    this.push(line);
  }

  /** @param {string} text @param {(text: string) => void} say */
  bounded(text, say) {
    const [start, count] = cut(text, MAX_TEXT);
    say(start);
    if (count > 0) this.say("left_out", { count });
  }

  /** @param {string} text */
  quoted(text) {
    if (text !== "") this.bounded(text, (start) => this.quote(start));
  }

  /** @param {string} key @param {string} name @param {string} text @param {string} [bare] */
  about(key, name, text, bare = "") {
    if (text !== "") this.bounded(text, (start) => this.say(key, { [name]: { theirs: start } }));
    else if (bare !== "") this.say(bare);
  }

  /** A text of a request: never cut. @param {string} key @param {string} name @param {string} text @param {string} [bare] */
  whole(key, name, text, bare = "") {
    if (text.trim() !== "") this.say(key, { [name]: { theirs: text } });
    else if (bare !== "") this.say(bare);
  }

  /** @param {Agent | null} agent */
  finish(agent) {
    const between = this.words.phrase("between_sentences");
    const { load } = this.manner;
    /** @type {[number, Line][]} */
    const joined = [];
    for (const [at, sentence] of this.sentences) {
      const last = joined.at(-1);
      if (last && (load === "low" || (load === "medium" && last[0] === at))) {
        append(last[1], between);
        append(last[1], sentence);
      } else {
        joined.push([at, sentence.map((span) => ({ ...span }))]);
      }
    }
    const lines = [...joined.map(([, line]) => line), ...this.lines];
    const [first] = lines;
    if (agent && first) {
      const [name] = cut(agent.name, MAX_NAME);
      const given = { agent: { theirs: name.trim() === "" ? agent.id : name }, line: first };
      lines[0] = this.words.phrase("named", given);
    }
    return lines;
  }

  /** @param {Happening} happening @returns {void} */
  tell(happening) {
    switch (happening.kind) {
      case "event": return this.event(happening.event, happening.critical);
      case "asked": return this.asked(happening.request);
      case "settled":
        if (happening.announced !== false) this.settled(happening.request, happening.outcome);
        return;
      case "text": {
        if (happening.after_gap) this.say("text.gap");
        for (const text of happening.text.split(/\r?\n/)) {
          if (text.trim() === "") continue;
          /** @type {Line} */
          const line = [];
          theirs(line, text.trimEnd());
          this.lines.push(line);
        }
        return;
      }
      case "silence":
        if (happening.count === 0) return this.say(`silence.${happening.why}.some`);
        return this.say(`silence.${happening.why}`, { count: happening.count });
      case "over": return this.say("session.gone");
      case "connected":
        this.say(happening.again ? "connected.again" : "connected", { hub: { ours: happening.hub } });
        if (!happening.may_reply) this.say("connected.listen_only");
        return this.identity(happening.identity ?? null, happening.again);
      case "lost": {
        const [hub, why] = [{ ours: happening.hub }, happening.why ?? ""];
        if (why.trim() === "") this.say("lost.bare", { hub });
        else this.say("lost", { hub, why: { ours: why.trim() } });
        this.say("lost.retrying");
      }
    }
  }

  /**
   * Who is known is not named again at every comeback.
   * @param {Identity | null} identity @param {boolean} again
   */
  identity(identity, again) {
    if (identity?.is === "new") this.say("identity.new", { agent: { theirs: identity.agent_id }, key: { ours: identity.key } });
    else if (again || identity === null) return;
    else if (identity.is === "verified") this.say("identity.verified", { agent: { theirs: identity.agent_id } });
    else this.say("identity.unsigned");
  }

  /** @param {any} event @param {string} name */
  text(event, name) {
    // enforces: E26, L11
    const variant = textOf(event[`${name}_${this.words.language}`]);
    const found = variant.trim() !== "" ? variant : textOf(event[name]);
    return found.trim() === "" ? "" : found;
  }

  /** @param {any} event @param {string} name */
  name(event, name) {
    return cut(this.text(event, name), MAX_NAME)[0];
  }

  /** @param {any} event */
  summary(event) {
    const order = this.terse ? ["terse", "normal", "detailed"]
      : this.detailed ? ["detailed", "normal", "terse"] : ["normal", "terse", "detailed"];
    for (const one of order) {
      const text = this.text(event, `summary_${one}`);
      if (text !== "") return text;
    }
    return "";
  }

  /** @param {any} event @param {boolean} critical */
  event(event, critical) {
    this.kind(event, critical);
    // enforces: T28
    if (critical && this.sentences.length === 0 && this.lines.length === 0) this.bare(event, "important.bare");
  }

  /** @param {any} event @param {boolean} critical @returns {void} */
  kind(event, critical) {
    const lead = () => critical && this.say("important.lead");
    const type = typeOf(event);
    switch (type) {
      case "session.started":
        lead();
        return this.about("started", "summary", this.summary(event), "started.bare");
      case "session.completed": return this.completed(event);
      case "session.errored": return this.errored(event);
      case "session.cancelled": return this.cancelled(event);
      case "state.changed":
        lead();
        return this.state(event);
      case "progress.updated":
        lead();
        return this.progress(event);
      case "tool.invoked":
        lead();
        return this.invoked(event);
      case "tool.completed":
        lead();
        return this.toolCompleted(event);
      case "output.streaming":
        return this.tell({ kind: "text", agent: { id: "", name: "" }, session_id: "", output_id: "",
          text: textOf(event.chunk), ends: false, after_gap: false, language: "" });
      case "awaiting.confirmation": return this.unanswerable(event, true);
      case "awaiting.clarification": return this.unanswerable(event, false);
      case "handoff.requested": return this.handoff(event);
      default: return this.unknown(event, critical);
    }
  }

  /** @param {any} event */
  completed(event) {
    this.say("completed");
    this.quoted(this.summary(event));
    if (!this.detailed) return;
    this.newLine();
    this.quoted(this.text(event, "output_summary"));
    const ms = whole(event.duration_ms);
    if (ms !== null && ms >= 1000) this.say("completed.took", { time: this.words.duration(Math.floor(ms / 1000)) });
  }

  /** @param {any} event */
  errored(event) {
    // enforces: T5, T30
    this.about("errored", "summary", this.summary(event), "errored.bare");
    const category = this.text(event, "error_category");
    if (!this.terse && ["transient", "permanent", "requires_user"].includes(category)) this.say(`errored.${category}`);
    this.newLine();
    this.about("errored.hint", "hint", this.text(event, "remediation_hint"));
    if (!this.detailed) return;
    this.newLine();
    this.about("errored.code", "code", this.name(event, "error_code"));
  }

  /** @param {any} event */
  cancelled(event) {
    const by = this.text(event, "cancelled_by");
    this.say(["user", "producer", "timeout", "system"].includes(by) ? `cancelled.${by}` : "cancelled");
    this.quoted(this.summary(event));
    if (this.terse) return;
    this.newLine();
    this.about("cancelled.partial", "result", this.text(event, "partial_result"));
  }

  /** @param {any} event */
  state(event) {
    // enforces: T8, V2
    const summary = this.summary(event);
    // In detail, and where there is nothing else, the state itself is said.
    if (summary === "" || this.detailed) {
      const state = this.name(event, "to_state");
      if (STATES.includes(state)) this.say(`state.${state}`);
      else if (state !== "") this.say("state.other", { state: { theirs: state } });
      else this.say("state.none");
    }
    this.quoted(summary);
  }

  /** @param {any} event */
  progress(event) {
    const progress = event.progress !== null && typeof event.progress === "object" ? event.progress : {};
    const [percent, step, total] = [whole(progress.percent), whole(progress.step), whole(progress.total_steps)];
    const told = percent !== null || step !== null;
    const description = textOf(progress.description);
    const text = this.summary(event) || (description.trim() === "" ? "" : description);
    const quotes = !told || !this.terse;
    // What the agent says with the same numbers is not said twice.
    const theirs = quotes ? text : "";
    if (percent !== null && !saysPercent(theirs, percent)) this.say("progress.percent", { count: percent });
    if (step !== null && (percent === null || this.detailed) && !saysNumbers(theirs, [step, total])) {
      if (total !== null) this.say("progress.step_of", { step, total });
      else this.say("progress.step", { step });
    }
    if (quotes) this.quoted(text);
    if (!told && text === "") this.say("progress.bare");
    const ms = whole(event.eta_ms);
    if (this.detailed && ms !== null && ms >= 1000) {
      this.say("progress.left", { time: this.words.duration(Math.floor(ms / 1000)) });
    }
  }

  /** @param {any} event */
  tool(event) {
    const name = this.name(event, "tool");
    return name === "" ? this.words.phrase("tool.unnamed") : { theirs: name };
  }

  /** @param {any} event */
  invoked(event) {
    // enforces: T30
    const tool = this.tool(event);
    const summary = this.summary(event);
    if (summary === "") this.say("tool.invoked.bare", { tool });
    else if (!this.detailed) this.quoted(summary);
    else this.bounded(summary, (start) => this.say("tool.invoked", { tool, summary: { theirs: start } }));
    if (event.irreversible === true) this.say("undo.irreversible");
    if (!this.detailed) return;
    this.newLine();
    this.about("tool.arguments", "arguments", this.text(event, "args_summary"));
  }

  /** @param {any} event */
  toolCompleted(event) {
    const tool = this.tool(event);
    const summary = this.summary(event);
    const status = this.name(event, "status");
    if (status === "success" || status === "") {
      return summary === "" ? this.say("tool.completed", { tool }) : this.quoted(summary);
    } else if (status === "error" || status === "timeout") {
      this.say(`tool.${status}`, { tool });
    } else {
      this.say("tool.ended", { tool, status: { theirs: status } });
    }
    this.quoted(summary || this.text(event, "error_message"));
  }

  /** @param {any} event */
  handoff(event) {
    const kind = this.text(event, "target_kind");
    const known = ["human", "specialist_agent", "escalation_queue"].includes(kind) ? kind : "other";
    this.about(`handoff.${known}`, "reason", this.text(event, "reason") || this.summary(event), "handoff.bare");
    if (this.text(event, "urgency_for_handoff") === "high") this.say("handoff.high");
  }

  /** @param {any} event @param {boolean} critical */
  unknown(event, critical) {
    // enforces: E6, T28, V2
    const key = critical ? "important" : "notice";
    const summary = this.summary(event);
    if (summary !== "") this.about(key, "summary", summary);
    else if (this.detailed && !critical) this.bare(event, "notice.bare");
  }

  /** @param {any} event @param {string} key */
  bare(event, key) {
    this.say(key, { type: { theirs: cut(textOf(event.type), MAX_NAME)[0] } });
  }

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

  /** @param {any} event @param {boolean} consent */
  unanswerable(event, consent) {
    // enforces: E26, V2
    if (consent) {
      const known = ["reversible", "reversible_with_effort", "irreversible"].includes(event.reversibility);
      const reversibility = known && event.irreversible !== true ? event.reversibility
        : !known && event.irreversible === false ? "reversible" : "irreversible";
      const risk = ["low", "medium"].includes(event.risk_level) ? event.risk_level : "high";
      this.asks(/** @type {any} */ ({ asks: "consent", action: textOf(event.action),
        consequence: textOf(event.consequence), risk, reversibility,
        silence_accepts: event.default_decision === "accept" }));
    } else {
      this.whole("ask.question", "question", textOf(event.question), "ask.question.bare");
      this.whole("ask.context", "context", textOf(event.context));
    }
    this.newLine();
    this.say("ask.unanswerable");
  }
}
