// Words that look like others (UTS #39), judged word by word as the Rust library does, with its
// table of letters.

import { setLookAlikes } from "./questions.js";

const NO_SCRIPT = ["Zinh", "Zyyy", "Zzzz"];
const ASCII = /^[\0-\x7f]*$/;
const LETTER = /\p{Alphabetic}/u;
const MARK = /(?![\ufe00-\ufe0f])\p{M}/u;
const CASED = /[\p{Lowercase}\p{Uppercase}]/u;
const DIGIT = /\p{Nd}/gu;
const NUMBER = /[\p{Nd}.,'’٫٬_]+/gu;
const WORD = /[\p{Alphabetic}\p{N}\p{M}\u200c\u200d]+/gu;

/** Codes of scripts, the common ones first. */
const SCRIPTS = (
  "Latn Cyrl Grek Arab Hebr Hani Hira Kana Hang Deva Beng Taml Telu Knda Mlym Gujr Guru Orya Sinh " +
  "Thai Laoo Khmr Mymr Tibt Geor Armn Ethi Cher Copt Bopo Mong Syrc Thaa Nkoo Adlm Lisu Zyyy Zinh Cans " +
  "Ogam Runr Goth Dsrt Tfng Vaii Yiii Bali Java Sund Tale Talu Lana Limb Cham Saur Kali Rjng Lepc Olck " +
  "Mand Samr Bamu Mtei Brai Glag Osge Wara Bugi Batk Tavt Sylo Phag Rohg Shaw Osma Cari Lyci Lydi " +
  "Linb Cprt Xsux Egyp Phnx Ital Ugar Xpeo Hmng Hmnp Mroo Medf Nand Newa Tirh Sidd Modi Sind Khoj Tglg " +
  "Hano Buhd Tagb Cakm Gran Shrd Takr Sora Gong Gonm Wcho Toto Plrd Vith Kthi Diak Nshu Tang Kits Mahj"
).split(" ");

/** @type {[string, RegExp][]} */
const tests = [];
for (const code of SCRIPTS) {
  try {
    tests.push([code, new RegExp(`\\p{Script=${code}}`, "u")]);
  } catch {
    // A browser that does not know a script has no letters of it.
  }
}

/** Which letters look like Latin ones. @type {Map<string, string>} */
const table = new Map();

/** @param {Record<string, string>} letters by script, and under `styled` */
export function setTable(letters) {
  table.clear();
  for (const [name, all] of Object.entries(letters)) {
    for (const letter of all) table.set(letter, name);
  }
}

/** Reads the table from beside this module, and judges from now on. */
export async function begin() {
  const answer = await fetch(new URL("alike.json", import.meta.url));
  if (!answer.ok) return;
  setTable(await answer.json());
  setLookAlikes(lookAlikes);
}

/** @type {Map<string, string>} */
const known = new Map();

/** @param {string} letter */
function scriptOf(letter) {
  if (/[A-Za-z]/.test(letter)) return "Latn";
  let script = known.get(letter);
  if (script === undefined) {
    script = tests.find(([, test]) => test.test(letter))?.[0] ?? "Zzzz";
    if (known.size > 4096) known.clear();
    known.set(letter, script);
  }
  return script;
}

/** A word, and for each of its scripts whether all its letters look like Latin ones. */
class Word {
  /** @param {string} text */
  constructor(text) {
    this.text = text;
    /** @type {Letter[]} */
    this.letters = [];
    /** @type {Map<string, boolean>} */
    const scripts = new Map();
    for (const letter of text) {
      if (!LETTER.test(letter) || MARK.test(letter)) continue;
      const script = scriptOf(letter);
      const found = table.get(letter);
      const looks = found === undefined ? "itself" : found === "styled" ? "styled" : "alike";
      this.letters.push({ letter, script, looks });
      if (!NO_SCRIPT.includes(script)) scripts.set(script, (scripts.get(script) ?? true) && looks === "alike");
    }
    this.scripts = [...scripts].sort(([one], [other]) => (one < other ? -1 : 1));
  }

  /** @param {string} script */
  hasCapitals(script) {
    return script === "Lisu" || this.letters.some((one) => one.script === script && CASED.test(one.letter));
  }

  /** @param {string} script */
  standsBetweenLatin(script) {
    return this.letters.some((one, at) => one.script === script &&
      this.letters[at - 1]?.script === "Latn" && this.letters[at + 1]?.script === "Latn");
  }

  /** @returns {LookAlike | null} */
  mixed() {
    const first = this.scripts.find(([script, alike]) =>
      alike && (this.hasCapitals(script) || this.standsBetweenLatin(script)))?.[0];
    const second = this.scripts.find(([script]) => script !== first)?.[0];
    return first && second ? { kind: "mixed", word: this.text, first, second } : null;
  }

  /** @returns {LookAlike | null} */
  styled() {
    const besideAscii = /[A-Za-z]/.test(this.text);
    const any = this.letters.some(({ letter, looks }) =>
      looks === "styled" && (besideAscii || !/[\uff21-\uff5a]/.test(letter)));
    return any && this.letters.length > 1 ? { kind: "styled", word: this.text } : null;
  }

  /** @param {Set<string>} honest @returns {LookAlike | null} */
  alike(honest) {
    const [only] = this.scripts;
    if (!only || this.scripts.length !== 1 || !only[1] || this.letters.length < 2 || honest.has(only[0])) return null;
    return { kind: "alike", word: this.text, script: only[0] };
  }
}

/**
 * The words in these texts that look like others, each once, in order.
 * @param {string[]} texts
 * @returns {LookAlike[]}
 */
export function lookAlikes(texts) {
  if (texts.every((text) => ASCII.test(text))) return [];
  const words = texts.flatMap((text) => (text.match(WORD) ?? []).map((word) => new Word(word)));
  const hasLatin = words.some((word) => word.scripts.some(([script]) => script === "Latn"));
  const honest = new Set(words.flatMap((word) => word.scripts).filter(([, alike]) => !alike).map(([script]) => script));
  const seen = new Set();
  const found = words.flatMap((word) => {
    if (ASCII.test(word.text) || seen.has(word.text)) return [];
    seen.add(word.text);
    const found = word.mixed() ?? word.styled() ?? (hasLatin ? word.alike(honest) : null);
    return found ? [found] : [];
  });
  const numbers = new Set(texts.flatMap((text) => text.match(NUMBER) ?? []).filter(hasMixedDigits));
  return [...found, ...Array.from(numbers, (word) => /** @type {LookAlike} */ ({ kind: "digits", word }))];
}

/** Whether a number has digits of different sets of ten. @param {string} number */
function hasMixedDigits(number) {
  return new Set((number.match(DIGIT) ?? []).map(zeroOf)).size > 1;
}

/** The code point of the zero that belongs to a digit: a row of digits consists of sets of ten. @param {string} digit */
function zeroOf(digit) {
  const code = digit.codePointAt(0) ?? 0;
  let first = code;
  while (first > 0 && /\p{Nd}/u.test(String.fromCodePoint(first - 1))) first -= 1;
  return first + Math.floor((code - first) / 10) * 10;
}
