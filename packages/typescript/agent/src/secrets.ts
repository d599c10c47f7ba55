/**
 * Takes secrets out of texts for people: card numbers, keys, tokens, passwords. The rules are those of the Rust
 * library (`aaep-types`, module `secret`), and `packages/vectors/redaction.json` holds both to the same results.
 */

import { addresses, assignments, authorizations, flags } from "./secrets/assigned.js";
import { cards } from "./secrets/cards.js";
import { keys } from "./secrets/keys.js";
import { lastBytes, replacement, trimEndOf, trimmed, type Found } from "./secrets/signs.js";

/** How often a text is looked through again after something was taken out of it. */
const ROUNDS = 4;

/** What is left of a text that shows a new secret whenever one is taken out. */
const NOTHING_LEFT = "[text removed, it was full of secrets]";

/** The text without its secrets: in the place of each stands what was there, such as `[card number removed]`. */
export function redact(text: string): string {
  let left = text;
  for (let round = 0; round < ROUNDS; round += 1) {
    const found = find(left);
    if (found.length === 0) return left;
    // Taking one out can give another its place at the beginning of a word: look again.
    left = without(left, 0, found);
  }
  return find(left).length === 0 ? left : NOTHING_LEFT;
}

/** What stands after `from`, without its secrets. Of one that began before, it was said already that it is removed. */
function without(text: string, from: number, found: readonly Found[]): string {
  let out = "";
  let at = from;
  for (const { start, end, kind } of found) {
    if (end <= from) continue;
    out += text.slice(at, Math.max(start, at));
    if (start >= from) out += replacement(kind);
    at = end;
  }
  return out + text.slice(at);
}

/** Every secret in a text, in order; they do not overlap. */
function find(text: string): Found[] {
  const found = [...cards(text), ...keys(text), ...assignments(text), ...flags(text), ...authorizations(text), ...addresses(text)];
  found.sort((one, other) => one.start - other.start || one.end - other.end);
  // Secrets that overlap are one, of the kind of the longer: nothing of either is left over.
  const bytes = ({ start, end }: Found) => Buffer.byteLength(text.slice(start, end));
  const all: Found[] = [];
  for (const next of found) {
    const last = all.at(-1);
    if (last === undefined || next.start >= last.end) {
      all.push({ ...next });
      continue;
    }
    if (bytes(next) > bytes(last)) last.kind = next.kind;
    last.end = Math.max(last.end, next.end);
  }
  return all;
}

/** Bytes of earlier pieces that are kept. */
const KEPT_BYTES = 256;

/** Stands for the beginning of a private key of which more may come. */
const OPEN_KEY = "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n";

/** Takes secrets out of the pieces of one text, which may only show together with what stood before. */
export class Redactor {
  private came = "";
  private said = "";

  /** The next piece as it may be said. */
  pass(piece: string): string {
    const before = this.came.length;
    this.came += piece;
    const found = find(this.came);
    let said = without(this.came, before, found);
    const last = found.at(-1);
    const open = last !== undefined && trimmed(this.came.slice(last.end)) === "" && last.kind === "private key" && !isClosed(this.came);
    this.came = open ? OPEN_KEY : end(this.came);
    // Taking one out can bring others together: what is said is looked at as it is heard.
    for (let round = 0; round < ROUNDS; round += 1) {
      const heard = this.said + said;
      const shown = find(heard);
      if (shown.every((one) => one.end <= this.said.length)) {
        this.said = end(heard);
        return said;
      }
      said = without(heard, this.said.length, shown);
    }
    // The space keeps it apart from what stands before it.
    this.said = "";
    return ` ${NOTHING_LEFT} `;
  }
}

/** As much of a text as a secret may need to be recognised. */
function end(text: string): string {
  const kept = lastBytes(text, KEPT_BYTES);
  if (kept.length === text.length) return text;
  // A word that is cut is no beginning of one.
  return (/[0-9A-Za-z]/.test(text[text.length - kept.length - 1] ?? "") ? "z" : "") + kept;
}

const isClosed = (text: string) => {
  const ended = text.trimEnd();
  return ended.endsWith("-----") && ended.lastIndexOf("-----END ") > ended.lastIndexOf("-----BEGIN ");
};

/** The longest end that is held back because it may go on as a secret, in characters. */
const LONGEST_WORD = 512;

/** How much of a text can go, since nothing that follows can make a secret of its end. */
export function harmlessLength(text: string): number {
  const held = text.length - harmlessEnd(text);
  const harmless = held > LONGEST_WORD ? text.length : text.length - held;
  const last = find(text).at(-1);
  if (last === undefined) return harmless;
  const after = text.slice(last.end);
  const quote = /["'`]$/.exec(text.slice(0, last.start))?.[0];
  const goesOn = trimmed(after) === "" || (quote !== undefined && !after.includes(quote));
  const closed = last.kind === "private key" && isClosed(text.slice(0, last.end));
  if (!goesOn || closed) return harmless;
  return last.kind === "private key" || text.length - last.start <= LONGEST_WORD ? Math.min(last.start, harmless) : harmless;
}

/** What is left without a word in the making, a number in groups, a name with a colon or an equals sign. */
function harmlessEnd(text: string): number {
  const beforeWord = (end: number) => trimEndOf(text, end, (sign) => /[0-9A-Za-z+/=_.-]/.test(sign));
  let end = beforeWord(text.length);
  for (;;) {
    const before = trimEndOf(text, end, (sign) => " \"'".includes(sign));
    if (!/[0-9:=]/.test(text[before - 1] ?? "") || text.length - end > LONGEST_WORD) return end;
    end = beforeWord(trimEndOf(text, before, (sign) => " :=".includes(sign)));
  }
}
