/** Card numbers: 13 to 19 digits that begin as cards do and whose check digit is right (Luhn). */

import { isAlnum, isDigit, isWord, type Found } from "./signs.js";

interface Group {
  start: number;
  end: number;
  digits: number[];
}

/** Spaces and dashes between two groups, at most. */
const MAX_BETWEEN = 3;

/** How people group the digits of a card, where other numbers stand beside it. */
const GROUPINGS = ["4,4,4,4", "4,4,4,4,3", "4,6,5", "4,6,4", "4,3,3,3"];

/** The zeros of the scripts that people use most. */
const ZEROS = [0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xe50, 0xff10];

export function cards(text: string): Found[] {
  const found: Found[] = [];
  let run: Group[] = [];
  let between = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const zero = ZEROS.find((one) => code >= one && code < one + 10);
    const last = run.at(-1);
    if (zero !== undefined) {
      if (last !== undefined && between === 0) {
        last.end = at + 1;
        last.digits.push(code - zero);
      } else run.push({ start: at, end: at + 1, digits: [code - zero] });
      between = 0;
    } else if (last !== undefined && between < MAX_BETWEEN && /[ \-\u00a0\u2009\u202f\u2010\u2011\u2013]/.test(text[at] ?? "")) {
      between += 1;
    } else if (last !== undefined) {
      judge(text, run, found);
      run = [];
      between = 0;
    }
  }
  judge(text, run, found);
  if (found.length === 0) return found;
  const known = accounts(text);
  return found.filter((card) => !known.some((account) => account.start < card.end && card.start < account.end));
}

function judge(text: string, run: readonly Group[], found: Found[]): void {
  const [head, tail] = [run[0], run.at(-1)];
  if (head === undefined || tail === undefined) return;
  // Not part of a name, a telephone number or a decimal fraction.
  const before = text[head.start - 1];
  const begins = before === "." && head.start > 1 ? !isDigit(text[head.start - 2]) : before !== "+" && !isWord(before);
  const after = text[tail.end];
  const ends = after === "." && tail.end + 1 < text.length ? !isDigit(text[tail.end + 1]) : !isWord(after);
  const last = run.length - (ends ? 0 : 1);
  for (let at = begins ? 0 : 1; at < last;) {
    const taken = cardLength(run, at, last);
    const [from, to] = [run[at], run[at + taken - 1]];
    if (taken > 0 && from !== undefined && to !== undefined) found.push({ start: from.start, end: to.end, kind: "card number" });
    at += Math.max(taken, 1);
  }
}

/** How many groups, from this one on, make up a card number; 0 if they do not. */
function cardLength(run: readonly Group[], at: number, last: number): number {
  const groups = run.slice(at, Math.min(last, at + 6));
  const sizes = groups.map(({ digits }) => digits.length);
  const lone = at === 0 && last === run.length && last <= 6 && (sizes.at(-1) ?? 9) <= 6
    && sizes.slice(0, -1).every((size) => size >= 3 && size <= 6);
  for (let count = sizes.length; count > 0; count -= 1) {
    const grouped = count === 1 || (lone && count === sizes.length) || GROUPINGS.includes(sizes.slice(0, count).join());
    if (grouped && isCard(groups.slice(0, count).flatMap(({ digits }) => digits))) return count;
  }
  return 0;
}

function isCard(digits: readonly number[]): boolean {
  if (digits.length < 13 || digits.length > 19) return false;
  const begin = (count: number) => Number(digits.slice(0, count).join(""));
  const [one, two, four] = [begin(1), begin(2), begin(4)];
  const issuer = one === 4 || one === 6 || two === 30 || (two >= 34 && two <= 39) || (two >= 50 && two <= 58) || (four >= 2221 && four <= 2720);
  // The check digit of Luhn: every second digit from the right counts twice.
  const sum = [...digits].reverse().reduce((all, digit, place) =>
    all + (place % 2 === 0 ? digit : digit > 4 ? digit * 2 - 9 : digit * 2), 0);
  return issuer && sum % 10 === 0;
}

/** International account numbers (IBAN) whose check is right: they are told to others on purpose. */
function accounts(text: string): { start: number; end: number }[] {
  const all = [];
  for (let at = 0; at + 4 < text.length;) {
    const begins = !isWord(text[at - 1]) && /^[A-Z]{2}[0-9]{2}/.test(text.slice(at, at + 4));
    const end = begins ? accountEnd(text, at) : undefined;
    if (end !== undefined) all.push({ start: at, end });
    at = end ?? at + 1;
  }
  return all;
}

function accountEnd(text: string, start: number): number | undefined {
  let [at, signs, end] = [start, "", undefined as number | undefined];
  for (let sign = text[at]; sign !== undefined; sign = text[at]) {
    if (sign === " " && isAlnum(text[at + 1])) {
      at += 1;
      continue;
    }
    if (!/[A-Z0-9]/.test(sign) || signs.length >= 34) break;
    signs += sign;
    at += 1;
    if (!isWord(text[at]) && signs.length >= 15 && isAccount(signs)) end = at;
  }
  return end;
}

/** ISO 7064: the number with its first four signs at the end leaves 1 when divided by 97. */
function isAccount(signs: string): boolean {
  let rest = 0;
  for (const sign of signs.slice(4) + signs.slice(0, 4)) {
    const value = parseInt(sign, 36);
    rest = ((value > 9 ? rest * 100 : rest * 10) + value) % 97;
  }
  return rest === 1;
}
