// What was heard, put in order: once each, whole sentences, and which requests wait.
// The core does no input or output and reads no clock, like the one of the Rust library.

import { cut } from "./speech.js";

/** Ids of events that are remembered, to tell duplicates. */
const MAX_IDS = 16_384;
/** Sessions that are remembered. */
const MAX_SESSIONS = 256;
/** Sessions whose end is remembered, so that nothing that comes late brings one back. */
const MAX_ENDED = 256;
/** Characters that are kept of what a session does. */
const MAX_KEPT = 512;
/** Requests that can wait at once. */
const MAX_REQUESTS = 256;
/** Characters of one output that wait for a boundary. */
const MAX_TEXT = 65_536;
/** Events a second that are told, critical ones aside (S3), and how many may come at once. */
const RATE = 100;
const BURST = 1000;
/** How long after its deadline the producer's word on a request is waited for. */
const PATIENCE_MS = 5000;
/** How long after a new subscription what is open may take to be told again. */
const REDELIVERY_MS = 10_000;
/** Agents whose silence is counted apart. */
const MAX_SILENT = 64;
/** How often the same silence is told. */
const SILENCE_EVERY_MS = 3000;
/** Seconds that a request waits which does not say how long. */
const TIMEOUT_SECONDS = 300;

const CRITICAL = ["session.errored", "awaiting.confirmation", "awaiting.clarification", "handoff.requested"];
const BOUNDARIES = ["sentence", "paragraph", "completion"];
const ENDINGS = ["session.completed", "session.errored", "session.cancelled"];
const NAMESPACES = ["aaep:", "https://aaep-protocol.org/types/", "https://aaep-protocol.org/vocab/v1#"];

/** @param {unknown} value @returns {string} */
export const textOf = (value) => (typeof value === "string" ? value : "");
const text = textOf;

/** @param {Choice} choice */
export const choiceLabel = ({ value, label }) => (label.trim() === "" ? value : label);

/**
 * The name of a core type, without `aaep:agent.`; other types as they are.
 * @param {any} event
 * @returns {string}
 */
export function typeOf(event) {
  const type = text(event.type);
  for (const namespace of NAMESPACES) {
    if (type.startsWith(`${namespace}agent.`)) return type.slice(namespace.length + 6);
  }
  return type;
}

/**
 * What names an event: ids count within their session, so that no session can touch another's.
 * @param {{session_id: string, event_id: string}} event
 */
export const keyOf = ({ session_id, event_id }) => `${session_id} ${event_id}`;

/** Remembers what came last. */
class Memory {
  constructor() {
    /** @type {Set<string>} */
    this.known = new Set();
  }

  /** @param {string} id */
  isNew(id) {
    if (this.known.has(id)) return false;
    this.known.add(id);
    if (this.known.size > MAX_IDS) {
      for (const oldest of this.known) {
        this.known.delete(oldest);
        break;
      }
    }
    return true;
  }
}

/** What is known of a session: its agent, what it does, its outputs. */
class Session {
  /** @param {string} id @param {Agent} agent */
  constructor(id, agent) {
    this.id = id;
    this.agent = agent;
    this.about = "";
    this.doing = "";
    /** @type {Map<string, {text: string, next: number, gap: boolean, language: string}>} */
    this.outputs = new Map();
  }
}

export class Inbox {
  constructor() {
    this.memory = new Memory();
    /** @type {Map<string, Session>} */
    this.sessions = new Map();
    /** @type {Set<string>} */
    this.ended = new Set();
    /** @type {Map<string, AgentRequest>} */
    this.open = new Map();
    /** @type {Map<string, string>} */
    this.answered = new Map();
    this.number = 0;
    /** Requests that were superseded, for the one that goes on. @type {Map<string, AgentRequest>} */
    this.superseded = new Map();
    this.level = BURST;
    this.at = 0;
    /** What was not told, by agent and reason. @type {Map<string, {agent: Agent, why: SilenceHappening["why"], count: number, due: number, told: number}>} */
    this.silences = new Map();
    /** Who speaks where no agent is named. @type {Agent} */
    this.hub = { id: "", name: "" };
    this.outcomes = false;
    /** @type {Set<string>} */
    this.unsure = new Set();
    this.unsureUntil = 0;
  }

  /** Requests that wait, in the order of asking. */
  waiting() {
    return [...this.open.values()].sort((one, other) => one.number - other.number);
  }

  /** Sessions that are open. */
  running() {
    return [...this.sessions.values()];
  }

  /**
   * Takes in a message; `now` is the server's time in milliseconds.
   * @param {string} json @param {number} now
   * @returns {Happening[]}
   */
  hear(json, now) {
    const out = this.tick(now);
    let event;
    try {
      event = JSON.parse(json);
    } catch {
      event = null;
    }
    const readable = event !== null && typeof event === "object" &&
      text(event.type) !== "" && text(event.event_id) !== "" && text(event.session_id) !== "";
    if (!readable) {
      // enforces: E27
      this.leaveOut(this.hub, "unreadable", now);
      this.tellSilences(now, out);
      return out;
    }
    this.unsure.delete(event.session_id);
    this.unsure.delete(keyOf(event));
    const id = text(event.producer?.agent_id);
    const agent = id === "" ? this.sessions.get(event.session_id)?.agent ?? this.hub
      : { id, name: text(event.producer.agent_name) || id };
    const type = typeOf(event);
    const known = this.known(event, type);
    // enforces: I32
    // A session that was believed to be over goes on after all, whatever was heard of it before.
    const goesOn = !this.sessions.has(event.session_id) && !this.ended.has(event.session_id);
    const isNew = this.memory.isNew(keyOf(event));
    if (known || !(isNew || goesOn)) {
      if (known) this.again(known, read(event, type, agent, now), out);
      return out;
    }
    const critical = event.urgency === "critical" || CRITICAL.includes(type);
    // What resolves a request is told as what became of it.
    if (this.follow(event, type, agent, now, out)) return out;
    if (type === "awaiting.confirmation" || type === "awaiting.clarification") {
      this.ask(event, type, agent, now, out);
    } else if (type === "output.streaming") {
      this.write(event, agent, out);
    } else if (critical || this.may(now)) {
      out.push({ kind: "event", agent, event, critical });
    } else {
      this.leaveOut(agent, "too_much", now);
    }
    this.tellSilences(now, out);
    return out;
  }

  /**
   * Counts what is not told (I19, S3).
   * @param {Agent} agent @param {SilenceHappening["why"]} why @param {number} now
   */
  leaveOut(agent, why, now) {
    const key = `${why} ${agent.id}`;
    const one = this.silences.get(key) ?? { agent, why, count: 0, due: Infinity, told: -Infinity };
    one.count += 1;
    // Too much is told when it is over, or at least not with every event.
    const soonest = why === "too_much" ? now + SILENCE_EVERY_MS : now;
    one.due = Math.min(one.due, Math.max(soonest, one.told + SILENCE_EVERY_MS));
    // The oldest gives way.
    if (!this.silences.has(key) && this.silences.size >= MAX_SILENT) {
      for (const oldest of this.silences.keys()) {
        this.silences.delete(oldest);
        break;
      }
    }
    this.silences.set(key, one);
  }

  /** @param {number} now @param {Happening[]} out */
  tellSilences(now, out) {
    for (const one of this.silences.values()) {
      if (one.due > now) continue;
      const { agent, why, count } = one;
      out.push({ kind: "silence", agent, why, count });
      Object.assign(one, { count: 0, due: Infinity, told: now });
    }
  }

  /** Whether there is room in the bucket (S3). @param {number} now */
  may(now) {
    const elapsed = Math.max(0, now - this.at);
    this.at = Math.max(this.at, now);
    this.level = Math.min(BURST, this.level + (elapsed * RATE) / 1000);
    if (this.level < 1) return false;
    this.level -= 1;
    return true;
  }

  /**
   * What an event says about its session and its requests. True if all of it was told.
   * @param {any} event @param {string} type @param {Agent} agent @param {number} now
   * @param {Happening[]} out
   * @returns {boolean}
   */
  follow(event, type, agent, now, out) {
    const id = event.session_id;
    if (ENDINGS.includes(type)) {
      this.settleSession(id, out);
      this.finish(id, out);
      this.sessions.delete(id);
      this.ended.add(id);
      if (this.ended.size > MAX_ENDED) {
        for (const oldest of this.ended) {
          this.ended.delete(oldest);
          break;
        }
      }
      return false;
    }
    // enforces: I32
    if (this.ended.has(id)) return false;
    let session = this.sessions.get(id);
    if (!session) {
      session = new Session(id, agent);
      this.forget();
      this.sessions.set(id, session);
    }
    const [summary] = cut(text(event.summary_normal), MAX_KEPT);
    if (type === "session.started") session.about = summary;
    else if (summary !== "") session.doing = summary;
    return type === "state.changed" && this.resolve(event, now, out);
  }

  /** The oldest session without an open request gives way. */
  forget() {
    if (this.sessions.size < MAX_SESSIONS) return;
    const asks = new Set([...this.open.values()].map((request) => request.session_id));
    for (const id of this.sessions.keys()) {
      if (asks.has(id)) continue;
      this.sessions.delete(id);
      return;
    }
  }

  /**
   * D30: a resolution names its request. True if one was resolved.
   * @param {any} event @param {number} now @param {Happening[]} out
   * @returns {boolean}
   */
  resolve(event, now, out) {
    const outcome = event.extensions?.outcome;
    if (outcome && typeof outcome === "object") {
      const request = this.open.get(keyOf({ session_id: event.session_id, event_id: text(outcome.request_event_id) }));
      // D42: nobody took it back; a device whose clock is wrong said no.
      const { outcome: became, reason } = outcome;
      const word = became === "cancelled" && reason === "wrong_clock" ? reason : text(became);
      if (request) this.settle(request, this.meaning(request, word), out);
      return request !== undefined;
    }
    // Without our extension: only if it was the only one, and the agent goes on.
    if (this.outcomes || event.from_state !== "awaiting_input" || event.to_state === "awaiting_input") return false;
    const own = this.waiting().filter((request) => request.session_id === event.session_id);
    const [request] = own;
    if (own.length !== 1 || !request) return false;
    const said = this.answered.get(keyOf(request));
    const runs = event.to_state === "calling_tool";
    const late = now >= request.deadline_ms;
    /** @type {Outcome} */
    let became = late ? "timed_out" : "gone";
    if (said === "answer") became = "answered";
    else if (said === "accept" && runs) became = "accepted";
    else if (said === "reject") became = runs ? "accepted_elsewhere" : "rejected";
    this.settle(request, became, out);
    // Its own words say more.
    return false;
  }

  /**
   * What a producer's word means for this user: theirs, or somebody else's answer.
   * @param {AgentRequest} request @param {string} word
   * @returns {Outcome}
   */
  meaning(request, word) {
    const said = this.answered.get(keyOf(request));
    if (word === "timed_out" || word === "cancelled" || word === "wrong_clock" || word === "superseded") return word;
    if (request.asks === "answer" && word === "accepted") return said ? "answered" : "answered_elsewhere";
    if (word === "accepted") return said === "accept" ? "accepted" : "accepted_elsewhere";
    if (word === "rejected") return said === "reject" ? "rejected" : "rejected_elsewhere";
    return "gone";
  }

  /** @param {AgentRequest} request @param {Outcome} outcome @param {Happening[]} out */
  settle(request, outcome, out) {
    this.open.delete(keyOf(request));
    this.answered.delete(keyOf(request));
    if (outcome === "superseded") {
      this.superseded.set(keyOf(request), request);
      while (this.superseded.size > MAX_REQUESTS) {
        for (const oldest of this.superseded.keys()) {
          this.superseded.delete(oldest);
          break;
        }
      }
    }
    out.push({ kind: "settled", request, outcome });
  }

  /** C24: the end of a session ends its requests. @param {string} id @param {Happening[]} out */
  settleSession(id, out) {
    for (const request of this.waiting()) {
      if (request.session_id !== id) continue;
      // Where nobody tells outcomes, one that was answered is not said to be cancelled.
      const unknown = !this.outcomes && this.answered.has(keyOf(request));
      this.settle(request, unknown ? "gone" : "cancelled", out);
    }
  }

  /**
   * There is a new subscription.
   * @param {any} terms what the hub agreed to @param {string} hub its name
   */
  begins(terms, hub) {
    this.hub = { id: hub, name: hub };
    this.outcomes = terms?.supported_extensions?.includes("urn:aaep-rs:outcome:v1") === true;
  }

  /** Nobody speaks for now: what is in doubt stays in doubt. */
  lost() {
    this.unsureUntil = Infinity;
  }

  /**
   * Events flow again. If all that was missed follows, only what was in doubt before still is.
   * @param {boolean} all @param {number} now
   */
  attached(all, now) {
    if (all) this.unsureUntil = now + REDELIVERY_MS;
    else this.doubt(now);
  }

  /**
   * It is told how things stand: what is still open comes again soon, or is over (D28, I32).
   * @param {number} now
   */
  doubt(now) {
    this.unsure = new Set([...this.sessions.keys(), ...this.open.keys()]);
    this.unsureUntil = now + REDELIVERY_MS;
  }

  /**
   * Requests whose time is over, and nobody says so.
   * @param {number} now
   * @returns {Happening[]}
   */
  tick(now) {
    /** @type {Happening[]} */
    const out = [];
    for (const request of this.waiting()) {
      // A hub that tells outcomes has the first word.
      if (now >= request.deadline_ms + (this.outcomes ? PATIENCE_MS : 0)) this.settle(request, "timed_out", out);
    }
    if (this.unsure.size > 0 && now > this.unsureUntil) {
      for (const request of this.waiting()) {
        if (this.unsure.has(keyOf(request))) this.settle(request, "gone", out);
      }
      for (const id of this.unsure) {
        const session = this.sessions.get(id);
        if (session) out.push({ kind: "over", agent: session.agent, session_id: id });
        this.sessions.delete(id);
      }
      this.unsure.clear();
    }
    this.tellSilences(now, out);
    return out;
  }

  /**
   * @param {any} event @param {string} type @param {Agent} agent @param {number} now
   * @param {Happening[]} out
   */
  ask(event, type, agent, now, out) {
    if (text(event.reply_token) === "" || this.open.size >= MAX_REQUESTS) {
      // It cannot be answered from here, and is told like any critical event.
      out.push({ kind: "event", agent, event, critical: true });
      return;
    }
    // enforces: S10
    // A request is superseded within its session only: nobody swaps another's question.
    const supersedes = keyOf({ session_id: event.session_id, event_id: text(event.extensions?.timing?.supersedes) });
    const waits = this.open.get(supersedes);
    if (waits) this.settle(waits, "superseded", out);
    const before = this.superseded.get(supersedes);
    const request = read(event, type, agent, now);
    if (request.deadline_ms + PATIENCE_MS < now) return;
    this.number += 1;
    request.number = this.number;
    request.shown_number = this.number;
    if (before) {
      request.continues = before.number;
      request.changed = !isSame(before, request);
      // The person knows it by this number, as long as it is the same question.
      if (!request.changed) request.shown_number = before.shown_number;
    }
    this.open.set(keyOf(request), request);
    out.push({ kind: "asked", request });
  }

  /**
   * The open request that an event asks again: under its id, or with its token in its session.
   * @param {any} event @param {string} type
   * @returns {AgentRequest | undefined}
   */
  known(event, type) {
    const token = text(event.reply_token);
    if (!type.startsWith("awaiting.") || token === "") return undefined;
    return this.open.get(keyOf(event)) ?? this.waiting().find((request) =>
      request.session_id === event.session_id && request.reply_token === token);
  }

  /**
   * A request comes again. In other words it is not the one that the person knows, and is asked anew.
   * @param {AgentRequest} known @param {AgentRequest} request @param {Happening[]} out
   */
  again(known, request, out) {
    // enforces: S10
    if (isSame(known, request) && known.reply_token === request.reply_token) return;
    const { number, shown_number } = known;
    this.open.delete(keyOf(known));
    this.answered.delete(keyOf(known));
    const asked = { ...request, number, shown_number, changed: true };
    this.open.set(keyOf(asked), asked);
    out.push({ kind: "asked", request: asked });
  }

  /**
   * The user answered: what comes of it is theirs.
   * @param {AgentRequest} request @param {string} decision
   */
  sent(request, decision) {
    if (this.open.has(keyOf(request))) this.answered.set(keyOf(request), decision);
  }

  /** Streamed text, up to a boundary (T19). @param {any} event @param {Agent} agent @param {Happening[]} out */
  write(event, agent, out) {
    const session = this.sessions.get(event.session_id);
    if (!session) return;
    const output_id = text(event.output_id);
    const output = session.outputs.get(output_id) ?? { text: "", next: 0, gap: false, language: "" };
    if (session.outputs.size >= 16 && !session.outputs.has(output_id)) this.finish(session.id, out);
    session.outputs.set(output_id, output);
    const chunk = Array.from(text(event.chunk));
    const position = Number.isInteger(event.position) ? event.position : output.next;
    const tell = (/** @type {string} */ said, /** @type {boolean} */ ends) => {
      const { gap: after_gap, language } = output;
      output.gap = false;
      out.push({ kind: "text", agent, session_id: session.id, output_id, text: said, ends, after_gap, language });
    };
    if (position > output.next) {
      // Something is missing: what waits can only be said as it is.
      if (output.text !== "") tell(output.text, false);
      output.text = "";
      output.gap = true;
    }
    output.text += chunk.slice(Math.max(0, output.next - position)).join("");
    output.next = Math.max(output.next, position + chunk.length);
    output.language = text(event.language) || text(event.localization_hints?.primary_language);
    const ends = event.complete === true;
    const real = BOUNDARIES.includes(event.coalesce_hint) || output.text.length > MAX_TEXT;
    const [whole, rest] = ends || real ? [output.text, ""] : sentences(output.text);
    output.text = rest;
    if (ends) session.outputs.delete(output_id);
    if (whole !== "" || ends) tell(whole, ends);
  }

  /** @param {string} id @param {Happening[]} out */
  finish(id, out) {
    const session = this.sessions.get(id);
    if (!session) return;
    for (const [output_id, { text, gap, language }] of session.outputs) {
      if (text === "") continue;
      const { agent } = session;
      out.push({ kind: "text", agent, session_id: id, output_id, text, ends: true, after_gap: gap, language });
    }
    session.outputs.clear();
  }
}

/**
 * A request as its event says it.
 * @param {any} event @param {string} type @param {Agent} agent @param {number} now
 * @returns {AgentRequest}
 */
function read(event, type, agent, now) {
  const consent = type === "awaiting.confirmation";
  const timeout = Number.isInteger(event.timeout_seconds) ? event.timeout_seconds : TIMEOUT_SECONDS;
  const asked = Date.parse(text(event.timestamp));
  return {
    number: 0,
    shown_number: 0,
    agent,
    event_id: event.event_id,
    session_id: event.session_id,
    reply_token: event.reply_token,
    asks: consent ? "consent" : "answer",
    action: text(consent ? event.action : event.question),
    consequence: text(event.consequence),
    context: text(event.context),
    risk: ["low", "medium"].includes(event.risk_level) ? event.risk_level : "high",
    reversibility: reversibility(event),
    silence_accepts: event.default_decision === "accept",
    kinds: kinds(event),
    choices: choices(event),
    default: typeof event.default_response === "string" ? event.default_response : null,
    account: accountOf(event),
    agent_says: text(event.extra_context?.agent_says),
    timeout_seconds: timeout,
    deadline_ms: (Number.isNaN(asked) ? now : Math.min(asked, now)) + timeout * 1000,
    continues: null,
    changed: false,
    language: text(event.localization_hints?.primary_language),
    event,
  };
}

/** Everything that a person is asked, and not how long it waits. */
const ASKED = /** @type {const} */ (["asks", "action", "consequence", "context", "risk", "reversibility",
  "silence_accepts", "kinds", "choices", "default", "account", "agent_says", "agent", "language"]);

/** Whether two requests ask the same. @param {AgentRequest} one @param {AgentRequest} other */
function isSame(one, other) {
  return ASKED.every((name) => JSON.stringify(one[name]) === JSON.stringify(other[name]));
}

/**
 * The hub's own account of what would run: no word of the agent's.
 * @param {any} event
 * @returns {Account | null}
 */
function accountOf(event) {
  const action = event.extensions?.action;
  if (action === null || typeof action !== "object" || text(action.tool) === "") return null;
  return {
    tool: text(action.tool),
    arguments: text(action.arguments),
    digest: text(action.digest),
    by_policy: action.described_by === "policy",
    shortened: action.shortened === true,
    redacted: action.redacted === true,
  };
}

/** D10: what is not said counts as the worst. @param {any} event @returns {AgentRequest["reversibility"]} */
function reversibility(event) {
  if (event.irreversible === true) return "irreversible";
  if (event.reversibility === "reversible_with_effort") return "reversible_with_effort";
  if (event.reversibility === "reversible") return "reversible";
  if (event.reversibility === undefined && event.irreversible === false) return "reversible";
  return "irreversible";
}

const KINDS = ["yes_no", "multiple_choice", "numeric", "freetext"];

/** D18: free text when nothing is said, or nothing that we know. @param {any} event @returns {string[]} */
function kinds(event) {
  const said = Array.isArray(event.accepted_response_kinds) ? event.accepted_response_kinds : [];
  const known = KINDS.filter((kind) => said.includes(kind));
  return known.length > 0 ? known : ["freetext"];
}

/** @param {any} event @returns {Choice[]} */
function choices(event) {
  if (!Array.isArray(event.choices)) return [];
  return event.choices
    .filter((/** @type {any} */ choice) => typeof choice?.value === "string")
    .slice(0, 32)
    .map((/** @type {any} */ { value, label }) => ({ value, label: text(label) }));
}

/**
 * Cuts text after its last whole sentence.
 * @param {string} text
 * @returns {[string, string]}
 */
function sentences(text) {
  const parts = [...segmenter.segment(text)];
  const last = parts.at(-1);
  // The last one may go on.
  return last ? [text.slice(0, last.index), text.slice(last.index)] : ["", ""];
}

const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });

/**
 * The sentences of a text.
 * @param {string} text
 * @returns {string[]}
 */
export function split(text) {
  return Array.from(segmenter.segment(text), (part) => part.segment.trim()).filter((part) => part !== "");
}
