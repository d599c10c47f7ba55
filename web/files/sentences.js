// Lines of spans, our words and the agent's set apart and made safe, and sentences put together of them:
// each ends, none is said twice, and nothing is longer than it may be.

import { safe } from "./safe.js";

/** The longest text of an event, and the longest name, that are said in full, in code points. */
const MAX_TEXT = 16_384;
export const MAX_NAME = 256;

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** @param {Line} line */
export const plain = (line) => line.map((span) => span.text).join("");

/** Adds words of ours. @param {Line} line @param {string} text */
export function ours(line, text) {
  const last = line.at(-1);
  if (last && !last.theirs) last.text += text;
  else if (text !== "") line.push({ text, theirs: false });
}

/** Adds words of the agent, made safe. @param {Line} line @param {string} text */
export function theirs(line, text) {
  const made = safe(text).text;
  if (made !== "") line.push({ text: made, theirs: true });
}

/** Adds another line. @param {Line} line @param {Line} other */
export function append(line, other) {
  for (const span of other) {
    if (span.theirs) line.push(span);
    else ours(line, span.text);
  }
}

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

export class Sentences {
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
}
