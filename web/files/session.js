// One session, and what its agent writes: whole sentences, as far as they can be known.

import { textOf } from "./events.js";

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
