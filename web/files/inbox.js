// What was heard, put in order: once each, whole sentences, and which requests wait.
// The core does no input or output and reads no clock, like the one of the Rust library.

import { isSame, keyOf, read, textOf as text, typeOf } from "./events.js";
import { Memory, Pace, Session, Silences } from "./memory.js";
import { cut } from "./sentences.js";

export { split } from "./memory.js";

/** Sessions that are remembered. */
const MAX_SESSIONS = 256;
/** Sessions whose end is remembered, so that nothing that comes late brings one back. */
const MAX_ENDED = 256;
/** Characters that are kept of what a session does. */
const MAX_KEPT = 512;
/** Requests that can wait at once. */
const MAX_REQUESTS = 256;
/** How long after its deadline the producer's word on a request is waited for. */
const PATIENCE_MS = 5000;
/** How long after a new subscription what is open may take to be told again. */
const REDELIVERY_MS = 10_000;

const CRITICAL = ["session.errored", "awaiting.confirmation", "awaiting.clarification", "handoff.requested"];
const ENDINGS = ["session.completed", "session.errored", "session.cancelled"];

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
    this.pace = new Pace();
    this.silences = new Silences();
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
      this.silences.add(this.hub, "unreadable", now);
      this.silences.tell(now, out);
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
      this.sessions.get(event.session_id)?.write(event, agent, out);
    } else if (critical || this.pace.may(now)) {
      out.push({ kind: "event", agent, event, critical });
    } else {
      this.silences.add(agent, "too_much", now);
    }
    this.silences.tell(now, out);
    return out;
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
      this.sessions.get(id)?.finish(out);
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
    this.silences.tell(now, out);
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

}
