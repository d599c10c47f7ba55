// What is said of each thing that happens, sentence by sentence, as the Rust library says it.

import { textOf, typeOf } from "./events.js";
import { Questions } from "./questions.js";
import { MAX_NAME, cut, theirs } from "./sentences.js";

const STATES = ["idle", "thinking", "calling_tool", "writing_output", "awaiting_input", "deciding", "handing_off"];
/** @param {unknown} value */
const whole = (value) =>
  typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER ? Math.trunc(value) : null;

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

export class Speech extends Questions {
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
