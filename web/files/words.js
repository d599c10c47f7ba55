// What is said: phrases of the message files, with the agent's own text set apart and made safe.
// The same files, rules and vectors as the Rust library.

import { safe } from "./safe.js";

/** A piece of what is said: ours, or the agent's. @typedef {{text: string, theirs: boolean}} Span */
/** One line. @typedef {Span[]} Line */
/** @typedef {string | Record<string, string>} Message */
/** A value for a placeholder. @typedef {number | {ours: string} | {theirs: string} | Line} Argument */

/** @param {Line} line */
export const plain = (line) => line.map((span) => span.text).join("");

export class Words {
  /**
   * @param {string} language @param {"ltr"|"rtl"} direction
   * @param {Record<string, Message>} messages
   */
  constructor(language, direction, messages) {
    this.language = language;
    this.direction = direction;
    this.messages = messages;
    this.plurals = new Intl.PluralRules(language);
  }

  /**
   * Reads the message files of a language from beside this module.
   * @param {string} language
   */
  static async load(language) {
    const file = async (/** @type {string} */ name) => {
      const answer = await fetch(new URL(`messages/${language}/${name}.json`, import.meta.url));
      if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
      return answer.json();
    };
    const [about, said, page] = await Promise.all(["language", "said", "page"].map(file));
    return new Words(about.language, about.direction, { ...said, ...page });
  }

  /**
   * One phrase by its key.
   * @param {string} key @param {Record<string, Argument>} [given]
   * @returns {Line}
   */
  phrase(key, given = {}) {
    const message = this.messages[key];
    if (message === undefined) return [{ text: key, theirs: false }];
    const count = typeof given.count === "number" ? given.count : undefined;
    const category = count === undefined ? "other" : this.plurals.select(count);
    const pattern = typeof message === "string" ? message : message[category] ?? message.other ?? "";
    /** @type {Line} */
    const line = [];
    for (const part of pattern.split(/(\{\{|\}\}|\{[^}]*\})/)) {
      if (part === "{{" || part === "}}") line.push({ text: part.charAt(0), theirs: false });
      else if (part.startsWith("{") && part.endsWith("}")) line.push(...this.argument(given[part.slice(1, -1)]));
      else if (part !== "") line.push({ text: part, theirs: false });
    }
    return joined(line);
  }

  /** @param {Argument | undefined} value @returns {Line} */
  argument(value) {
    if (value === undefined) return [];
    if (Array.isArray(value)) return value;
    if (typeof value === "number") return [{ text: String(value), theirs: false }];
    if ("ours" in value) return [{ text: value.ours, theirs: false }];
    return [{ text: safe(value.theirs).text, theirs: true }];
  }

  /**
   * The same as plain text.
   * @param {string} key @param {Record<string, Argument>} [given]
   */
  text(key, given) {
    return plain(this.phrase(key, given));
  }

  /**
   * A length of time in words.
   * @param {number} seconds
   * @returns {string}
   */
  time(seconds) {
    if (seconds < 60) return this.text("time.seconds", { count: seconds });
    const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60];
    const first = this.text("time.minutes", { count: minutes });
    if (rest === 0) return first;
    const second = this.text("time.seconds", { count: rest });
    return this.text("time.and", { first: { ours: first }, second: { ours: second } });
  }
}

/** Puts pieces of the same side together. @param {Line} line @returns {Line} */
function joined(line) {
  /** @type {Line} */
  const out = [];
  for (const span of line) {
    const last = out.at(-1);
    if (last && last.theirs === span.theirs && !span.theirs) last.text += span.text;
    else if (span.text !== "") out.push({ ...span });
  }
  return out;
}
