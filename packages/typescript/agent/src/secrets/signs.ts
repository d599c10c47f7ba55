/** Secrets as they are found, and the signs that they are made of. */

export type Kind = "card number" | "key" | "token" | "private key" | "password";

/** A secret, and where it stands. */
export interface Found {
  start: number;
  end: number;
  kind: Kind;
}

export const KINDS: readonly Kind[] = ["card number", "key", "token", "private key", "password"];
export const replacement = (kind: Kind) => `[${kind} removed]`;

export const isDigit = (sign: string | undefined) => sign !== undefined && sign >= "0" && sign <= "9";
export const isAlnum = (sign: string | undefined) => sign !== undefined && /^[0-9A-Za-z]$/.test(sign);
/** Letters, digits and what else is part of a word for programs. */
export const isWord = (sign: string | undefined) => sign !== undefined && /^[0-9A-Za-z_]$/.test(sign);
export const isMixed = (text: string) => /[0-9]/.test(text) && /[A-Za-z]/.test(text);
export const trimmed = (text: string) => text.replace(/^\p{White_Space}+/u, "");

/** Whether a word can begin here. */
export const beginsWord = (text: string, at: number, joiners = "") =>
  at === 0 || (!isWord(text[at - 1]) && !joiners.includes(text[at - 1] ?? ""));

export function runEnd(text: string, at: number, part: (sign: string) => boolean): number {
  let end = at;
  while (end < text.length && part(text[end] ?? "")) end += 1;
  return end;
}

export function trimEndOf(text: string, end: number, part: (sign: string) => boolean): number {
  let at = end;
  while (at > 0 && part(text[at - 1] ?? "")) at -= 1;
  return at;
}

/** The beginning of a text, as far as it has so many bytes. */
export function firstBytes(text: string, bytes: number): string {
  if (text.length * 3 <= bytes) return text;
  let [at, size] = [0, 0];
  for (const sign of text) {
    size += Buffer.byteLength(sign);
    if (size > bytes) break;
    at += sign.length;
  }
  return text.slice(0, at);
}

export function lastBytes(text: string, bytes: number): string {
  const signs = [...text.slice(-bytes)];
  let size = signs.reduce((sum, sign) => sum + Buffer.byteLength(sign), 0);
  while (size > bytes) size -= Buffer.byteLength(signs.shift() ?? "");
  return signs.join("");
}
