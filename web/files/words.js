// The phrases of the message files, with the agent's own text set apart and made safe. The same
// files, rules and vectors as the Rust library.

import { safe } from "./safe.js";
import { append, ours, plain, theirs } from "./sentences.js";
import { Speech } from "./speech.js";

export { plain };

/** Up to here seconds are easier to grasp than minutes and a rest. */
const PLAIN_SECONDS = 90;

/** One of the message files. @param {string} language @param {string} name */
async function file(language, name) {
  const answer = await fetch(new URL(`messages/${language}/${name}.json`, import.meta.url));
  if (!answer.ok) throw new Error(`${name}: ${answer.status}`);
  return answer.json();
}

export class Words {
  /**
   * @param {string} language @param {"ltr"|"rtl"} direction
   * @param {Record<string, Phrase>} messages
   * @param {string} [locale] the same language in the listener's country, which decides on the digits
   */
  constructor(language, direction, messages, locale = language) {
    this.language = language;
    this.locale = locale;
    this.direction = direction;
    this.messages = messages;
    this.plurals = new Intl.PluralRules(language);
    // Thousands are not set apart: synthesizers read them as two numbers in some languages.
    this.numbers = new Intl.NumberFormat(locale, { useGrouping: false });
    /** @type {Promise<void> | undefined} */
    this.rest = undefined;
  }

  /**
   * Reads the message files of a language from beside this module.
   * @param {string} language @param {string} [locale]
   */
  static async load(language, locale) {
    const [about, said, page] = await Promise.all(["language", "said", "page"].map((name) => file(language, name)));
    return new Words(about.language, about.direction, { ...said, ...page }, locale);
  }

  /** Reads the phrases that are seldom needed, before the first of them is. */
  async more() {
    this.rest ??= file(this.language, "rare").then((rare) => void Object.assign(this.messages, rare), () => {
      this.rest = undefined;
    });
    await this.rest;
  }

  /**
   * One phrase by its key. A key that there is not is said as it stands.
   * @param {string} key @param {Arguments} [given]
   * @returns {Line}
   */
  phrase(key, given = {}) {
    /** @type {Line} */
    const line = [];
    const message = Object.hasOwn(this.messages, key) ? this.messages[key] : undefined;
    if (message === undefined) {
      ours(line, key);
      return line;
    }
    const count = typeof given.count === "number" ? given.count : undefined;
    const category = count === undefined ? "other" : this.plurals.select(count);
    const pattern = typeof message === "string" ? message : message[category] ?? message.other ?? "";
    for (const part of pattern.split(/(\{\{|\}\}|\{[^}]*\})/)) {
      if (part === "{{" || part === "}}") ours(line, part.charAt(0));
      else if (/^\{.*\}$/s.test(part)) this.fill(line, given[part.slice(1, -1)]);
      else ours(line, part);
    }
    return line;
  }

  /** @param {Line} line @param {Given | undefined} value */
  fill(line, value) {
    if (value === undefined) return;
    if (Array.isArray(value)) append(line, value);
    else if (typeof value === "number") ours(line, this.numbers.format(value));
    else if ("ours" in value) ours(line, safe(value.ours).text);
    else theirs(line, value.theirs.trim());
  }

  /**
   * The same as plain text.
   * @param {string} key @param {Arguments} [given]
   */
  text(key, given) {
    return plain(this.phrase(key, given));
  }

  /**
   * A length of time: "90 seconds", "5 minutes", "2 hours 30 minutes".
   * @param {number} seconds
   * @returns {Line}
   */
  duration(seconds) {
    const of = (/** @type {string} */ key, /** @type {number} */ count) => this.phrase(key, { count });
    const two = (/** @type {Line} */ first, /** @type {Line} */ second) =>
      this.phrase("time.and", { first, second });
    const [minutes, rest] = [Math.floor(seconds / 60), seconds % 60];
    const [hours, left] = [Math.floor(minutes / 60), minutes % 60];
    if (seconds === 60) return of("time.minutes", 1);
    if (seconds <= PLAIN_SECONDS) return of("time.seconds", seconds);
    if (hours === 0 && rest === 0) return of("time.minutes", minutes);
    if (hours === 0) return two(of("time.minutes", minutes), of("time.seconds", rest));
    if (left === 0) return of("time.hours", hours);
    return two(of("time.hours", hours), of("time.minutes", left));
  }

  /** The name of a script. @param {string} code @returns {Line} */
  script(code) {
    const key = `script.${code}`;
    return Object.hasOwn(this.messages, key) ? this.phrase(key) : [{ text: code, theirs: false }];
  }

  /**
   * What is said of something that happens; nothing when there is nothing to say.
   * @param {Happening} happening @param {Manner} manner
   * @returns {Line[]}
   */
  say(happening, manner) {
    const speech = new Speech(this, manner);
    speech.tell(happening);
    const agent = "agent" in happening ? happening.agent
      : "request" in happening ? happening.request.agent : null;
    return speech.finish(manner.name_agents ? agent : null);
  }
}
