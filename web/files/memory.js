// What is remembered of what was heard: which ids, how many at once, what was left out, and of each
// session what its agent writes, in whole sentences as far as they can be known.

import { textOf } from "./events.js";

/** Ids of events that are remembered, to tell duplicates. */
const MAX_IDS = 16_384;
/** Events a second that are told, critical ones aside (S3), and how many may come at once. */
const RATE = 100;
const BURST = 1000;
/** Agents whose silence is counted apart. */
const MAX_SILENT = 64;
/** How often the same silence is told. */
const SILENCE_EVERY_MS = 3000;

/** Remembers what came last. */
export class Memory {
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

/** How many events a second are told (S3). */
export class Pace {
  constructor() {
    this.level = BURST;
    this.at = 0;
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
}

/** What was not told, by agent and reason. */
export class Silences {
  constructor() {
    /** @type {Map<string, {agent: Agent, why: SilenceHappening["why"], count: number, due: number, told: number}>} */
    this.all = new Map();
  }

  /**
   * Counts what is not told (I19, S3).
   * @param {Agent} agent @param {SilenceHappening["why"]} why @param {number} now
   */
  add(agent, why, now) {
    const key = `${why} ${agent.id}`;
    const one = this.all.get(key) ?? { agent, why, count: 0, due: Infinity, told: -Infinity };
    one.count += 1;
    // Too much is told when it is over, or at least not with every event.
    const soonest = why === "too_much" ? now + SILENCE_EVERY_MS : now;
    one.due = Math.min(one.due, Math.max(soonest, one.told + SILENCE_EVERY_MS));
    // The oldest gives way.
    if (!this.all.has(key) && this.all.size >= MAX_SILENT) {
      for (const oldest of this.all.keys()) {
        this.all.delete(oldest);
        break;
      }
    }
    this.all.set(key, one);
  }

  /** @param {number} now @param {Happening[]} out */
  tell(now, out) {
    for (const one of this.all.values()) {
      if (one.due > now) continue;
      const { agent, why, count } = one;
      out.push({ kind: "silence", agent, why, count });
      Object.assign(one, { count: 0, due: Infinity, told: now });
    }
  }
}

/** Characters of one output that wait for a boundary. */
const MAX_TEXT = 65_536;
const BOUNDARIES = ["sentence", "paragraph", "completion"];

/** What is known of a session: its agent, what it does, its outputs. */
export class Session {
  /** @param {string} id @param {Agent} agent */
  constructor(id, agent) {
    this.id = id;
    this.agent = agent;
    this.about = "";
    this.doing = "";
    /** @type {Map<string, {text: string, next: number, gap: boolean, language: string}>} */
    this.outputs = new Map();
  }

  /** Streamed text, up to a boundary (T19). @param {any} event @param {Agent} agent @param {Happening[]} out */
  write(event, agent, out) {
    const output_id = textOf(event.output_id);
    const output = this.outputs.get(output_id) ?? { text: "", next: 0, gap: false, language: "" };
    if (this.outputs.size >= 16 && !this.outputs.has(output_id)) this.finish(out);
    this.outputs.set(output_id, output);
    const chunk = Array.from(textOf(event.chunk));
    const position = Number.isInteger(event.position) ? event.position : output.next;
    const tell = (/** @type {string} */ said, /** @type {boolean} */ ends) => {
      const { gap: after_gap, language } = output;
      output.gap = false;
      out.push({ kind: "text", agent, session_id: this.id, output_id, text: said, ends, after_gap, language });
    };
    if (position > output.next) {
      // Something is missing: what waits can only be said as it is.
      if (output.text !== "") tell(output.text, false);
      output.text = "";
      output.gap = true;
    }
    output.text += chunk.slice(Math.max(0, output.next - position)).join("");
    output.next = Math.max(output.next, position + chunk.length);
    output.language = textOf(event.language) || textOf(event.localization_hints?.primary_language);
    const ends = event.complete === true;
    const real = BOUNDARIES.includes(event.coalesce_hint) || output.text.length > MAX_TEXT;
    const [whole, rest] = ends || real ? [output.text, ""] : sentences(output.text);
    output.text = rest;
    if (ends) this.outputs.delete(output_id);
    if (whole !== "" || ends) tell(whole, ends);
  }

  /** What still waits is all there is. @param {Happening[]} out */
  finish(out) {
    for (const [output_id, { text, gap, language }] of this.outputs) {
      if (text === "") continue;
      out.push({ kind: "text", agent: this.agent, session_id: this.id, output_id, text, ends: true, after_gap: gap, language });
    }
    this.outputs.clear();
  }
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
