// The agent's text made safe to show and to hear (decision D34). The same rules as the Rust library,
// and the same vectors: nothing is dropped; what nobody would see becomes its code, `[U+202E]`.

/** How deep embeddings and isolates may stand in each other. */
const MAX_NESTING = 125;

/** How many combining marks may follow each other. */
const MAX_MARKS = 30;

const PLAIN = /^[ -~]*$/;
const SPACE = /[\t\n\r\u2028\u2029]/u;
const MARK = /\p{M}/u;
const SELECTOR = /[\ufe00-\ufe0f]/u;
const EMOJI = /\p{Emoji}/u;
const PICTOGRAPH = /\p{Extended_Pictographic}/u;
const HAN = /\p{Script=Han}/u;
const LETTER = /[\p{Alphabetic}\p{M}]/u;
const SCRIPTS = ["Adlam", "Arabic", "Balinese", "Bengali", "Devanagari", "Gujarati", "Gurmukhi", "Hanifi_Rohingya",
  "Javanese", "Kannada", "Khmer", "Malayalam", "Mandaic", "Mongolian", "Myanmar", "Nko", "Oriya", "Phags_Pa", "Sinhala",
  "Syriac", "Tamil", "Telugu", "Tibetan"];
const JOINING = new RegExp(`[${SCRIPTS.map((script) => `\\p{Script=${script}}`).join("")}]`, "u");
const NEVER =
  /[\p{Cc}\p{Co}\p{Noncharacter_Code_Point}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb\u{e0000}-\u{e007f}]/u;
const HARMLESS = /[\u061c\u200e\u200f\u202a-\u202c\u2066-\u2069]/u;
const VARIATION = /[\ufe00-\ufe0f\u{e0100}-\u{e01ef}]/u;

/** @param {string} letter */
const joins = (letter) => JOINING.test(letter) && LETTER.test(letter);

/**
 * How a character that must not stand in a text is written.
 * @param {string} letter
 */
export function code(letter) {
  const digits = (letter.codePointAt(0) ?? 0).toString(16).toUpperCase();
  return `U+${digits.padStart(4, "0")}`;
}

/**
 * Makes text safe; `hidden` says how many characters were made visible.
 * @param {string} text
 * @returns {{text: string, hidden: number}}
 */
export function safe(text) {
  if (PLAIN.test(text)) return { text, hidden: 0 };
  const letters = Array.from(text.toWellFormed());
  const alone = unpaired(letters);
  let out = "";
  let hidden = 0;
  let marks = 0;
  let repeated = "";
  let count = 0;
  const flush = () => {
    if (count > 0) out += count === 1 ? `[${code(repeated)}]` : `[${code(repeated)}×${count}]`;
    count = 0;
  };
  letters.forEach((letter, at) => {
    marks = MARK.test(letter) && !SELECTOR.test(letter) ? marks + 1 : 0;
    if (SPACE.test(letter)) {
      if (letter === "\r" && letters[at + 1] === "\n") return;
      flush();
      out += " ";
    } else if (
      alone.has(at) || marks > MAX_MARKS || isHidden(letters[at - 1] ?? "", letter, letters[at + 1] ?? "")
    ) {
      hidden += 1;
      if (count > 0 && repeated !== letter) flush();
      repeated = letter;
      count += 1;
    } else {
      flush();
      out += letter;
    }
  });
  flush();
  return { text: out, hidden };
}

/**
 * Whether nobody would see or hear a character, or it would do harm, between these two.
 * @param {string} before @param {string} letter @param {string} after
 */
function isHidden(before, letter, after) {
  if (letter === "\u200c") return !joins(before);
  if (letter === "\u200d") {
    const emoji = (before === "\ufe0f" || (before > "\x7f" && EMOJI.test(before))) && PICTOGRAPH.test(after);
    return !emoji && !joins(before);
  }
  if (VARIATION.test(letter)) return !(EMOJI.test(before) || HAN.test(before) || joins(before));
  if (HARMLESS.test(letter)) return false;
  return NEVER.test(letter);
}

/**
 * Where openers and closers of embeddings and isolates stand that have no partner.
 * @param {string[]} letters
 */
function unpaired(letters) {
  /** @type {[number, boolean][]} */
  const open = [];
  const alone = new Set();
  letters.forEach((letter, at) => {
    const isolate = /[\u2066-\u2069]/u.test(letter);
    if (/[\u202a\u202b\u2066-\u2068]/u.test(letter) && open.length < MAX_NESTING) {
      open.push([at, isolate]);
    } else if (/[\u202c\u2069]/u.test(letter) && open.at(-1)?.[1] === isolate) {
      open.pop();
    } else if (/[\u202a-\u202c\u2066-\u2069]/u.test(letter)) {
      alone.add(at);
    }
  });
  for (const [at] of open) alone.add(at);
  return alone;
}
