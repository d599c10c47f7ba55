/** Values that are secrets because of what stands before them: `password=…`, `--token …`, `Bearer …`. */

import { beginsWord, firstBytes, isAlnum, isMixed, KINDS, replacement, runEnd, trimEndOf, type Found, type Kind } from "./signs.js";

const PASSWORDS = ["password", "passwd", "passphrase", "passcode", "pwd", "pass", "passwort", "kennwort", "contraseña", "senha", "motdepasse"];
const KEYS = [
  "apikey", "secretkey", "accesskey", "privatekey", "signingkey", "encryptionkey", "secret", "secretaccesskey", "authkey", "sharedkey",
  "masterkey", "credential",
];
/** Words before `token` that do not make it a credential. */
const OTHER_TOKENS = [
  "max", "min", "page", "nextpage", "continuation", "continue", "cursor", "sync", "reply", "stop", "prompt", "completion", "input",
  "output", "total", "next",
];
/** What makes a `key` a secret one when it stands before it as a word of its own. */
const KEY_WORDS = ["api", "secret", "access", "private", "signing", "encryption", "auth"];
/** A word that says something about a secret, and is none. */
const WORDS = [
  "none", "null", "nil", "undefined", "true", "false", "yes", "no", "ok", "required", "optional", "missing", "empty", "unset", "set",
  "unknown", "invalid", "valid", "wrong", "incorrect", "correct", "expired", "changed", "unchanged", "updated", "reset", "removed",
  "redacted", "hidden", "masked", "accepted", "rejected", "needed", "saved", "forgotten", "string", "text", "default", "requested",
  "protected",
];
/** What closes a sentence or a bracket, and not a value without quotes. */
const CLOSERS = ".,;:!?)]}>\"'`\\";

const isAlphanumeric = (sign: string) => /^[\p{Alphabetic}\p{N}]$/u.test(sign);
const lower = (text: string) => text.replace(/[A-Z]/g, (sign) => sign.toLowerCase());

/** What something of this name holds, if that is a secret by its name alone: `password`, `api-key`, `accessToken`. */
function namesSecret(given: string): Kind | undefined {
  const name = [...given].filter(isAlphanumeric).map((sign) => sign.toLowerCase()).join("");
  // `compass` and `bypass` are no passwords; of the short ones only the name itself counts.
  if (name !== "pass" && name.endsWith("pass")) return undefined;
  if (PASSWORDS.some((one) => name.endsWith(one))) return "password";
  if (name.endsWith("token")) return OTHER_TOKENS.includes(name.slice(0, -"token".length)) ? undefined : "token";
  return KEYS.some((one) => name.endsWith(one)) ? "key" : undefined;
}

/** The same for the name at the end of a text, which may be two words: `api key`. */
function namedAtEnd(text: string): Kind | undefined {
  const signs = [...text.slice(-96)];
  let start = signs.length;
  while (start > 0 && signs.length - start < 48 && (isAlphanumeric(signs[start - 1] ?? "") || "_-.".includes(signs[start - 1] ?? ""))) start -= 1;
  if (start === signs.length) return undefined;
  const name = signs.slice(start).join("");
  if (lower(name) !== "key") return namesSecret(name);
  const before = text.slice(0, text.length - name.length);
  if (!before.endsWith(" ")) return undefined;
  return KEY_WORDS.some((word) => lower(before.slice(-1 - word.length, -1)) === word) ? "key" : undefined;
}

/** A value, and what surrounds it. */
interface Value {
  text: string;
  start: number;
  end: number;
  quoted: boolean;
  inQuery: boolean;
}

/** `name=value`, `name: value`, with or without quotes around either. */
export function assignments(text: string): Found[] {
  const found: Found[] = [];
  for (let at = 0; ;) {
    const sign = at + text.slice(at).search(/[:=]/);
    if (sign < at) return found;
    at = sign + 1;
    const secret = assigned(text, sign);
    if (secret !== undefined) {
      at = Math.max(at, secret.end);
      found.push(secret);
    }
  }
}

function assigned(text: string, sign: number): Found | undefined {
  const before = trimEndOf(text, sign, (one) => one === " ");
  if (before + 2 < sign || (before > 0 && "=!<>:".includes(text[before - 1] ?? ""))) return undefined;
  if (/^(?:[=:]|\/\/)/.test(text.slice(sign + 1, sign + 3))) return undefined;
  const named = trimEndOf(text, before, (one) => "\"'`\\".includes(one));
  const kind = namedAtEnd(text.slice(0, named));
  if (kind === undefined) return undefined;
  // In the query of an address, `&` ends a value.
  const query = text[trimEndOf(text, named, (one) => /[0-9A-Za-z_.-]/.test(one)) - 1];
  const inQuery = query === "?" || query === "&";
  const value = read(text, sign + 1, inQuery);
  return judged(value, kind, text[sign] === "=" || value.quoted);
}

function read(text: string, from: number, inQuery: boolean): Value {
  const start = runEnd(text.slice(0, from + 4), from, (sign) => sign === " " || sign === "\t");
  const open = runEnd(text.slice(0, start + 2), start, (sign) => sign === "\\");
  const quote = text[open] ?? "";
  if (quote !== "" && "\"'`“„".includes(quote)) {
    const inside = open + 1;
    const line = firstBytes(text.slice(inside, inside + 1024), 1024).split("\n", 1)[0] ?? "";
    const end = line.indexOf(quote === "“" ? "”" : quote === "„" ? "“" : quote);
    // The quotes themselves may be escaped.
    if (end >= 0) return { text, start: inside, end: inside + trimEndOf(line, end, (sign) => sign === "\\"), quoted: true, inQuery };
  }
  // Only what turns out to be a secret is followed to its end.
  const near = firstBytes(text.slice(start, start + 128), 128);
  const whole = near.slice(0, valueEnd(near, inQuery));
  const skipped = runEnd(whole, 0, (sign) => "\"'`".includes(sign));
  const end = Math.max(skipped, trimEndOf(whole, whole.length, (sign) => CLOSERS.includes(sign)));
  return { text, start: start + skipped, end: start + end, quoted: false, inQuery };
}

function valueEnd(text: string, inQuery: boolean): number {
  const end = text.search(inQuery ? /[\p{White_Space}&#]/u : /\p{White_Space}/u);
  return end < 0 ? text.length : end;
}

function judged(it: Value, kind: Kind, exactly: boolean): Found | undefined {
  const value = it.text.slice(it.start, it.end);
  const bracket = value.startsWith("[") && (!it.quoted || value.endsWith("]"));
  if (bracket || isPlaceholder(value) || isRemoved(it.text, it.start)) return undefined;
  const secret = kind === "password" ? exactly || isLikePassword(it, value)
    : exactly ? isLikeKey(value, 4) || /^[0-9]{6,12}$/.test(value) : isLikeKey(value, 8);
  return secret ? { start: it.start, end: wholeEnd(it), kind } : undefined;
}

/** Where it ends, however long it is. */
function wholeEnd({ text, start, end, quoted, inQuery }: Value): number {
  if (quoted) return end;
  const rest = text.slice(start);
  return start + trimEndOf(rest, valueEnd(rest, inQuery), (sign) => CLOSERS.includes(sign));
}

/** After a colon a password has something in it that a word has not, or it is the whole clause. */
function isLikePassword({ text, end }: Value, value: string): boolean {
  const letters = /^\p{Alphabetic}*$/u.test(value);
  const next = [...text.slice(runEnd(text, end, (sign) => sign === " " || sign === "\t")).slice(0, 2)][0];
  return [...value].length >= 4 && (!letters || next === undefined || !isAlphanumeric(next));
}

/** Whether a value has the look of something that a machine made up. */
const isLikeKey = (value: string, least: number) =>
  /^[!-~]*$/.test(value) && ((value.length >= least && isMixed(value)) || (value.length >= 20 && /[A-Z]/.test(value) && /[a-z]/.test(value)));

const isRemoved = (text: string, at: number) => KINDS.some((kind) => text.startsWith(replacement(kind), at));

/** Whether something stands there in place of a secret: stars, a variable, a word about it. */
function isPlaceholder(value: string): boolean {
  if (/^[*•….#_\-xX·●]*$/u.test(value) || /^[<{(]/.test(value)) return true;
  return (/^[$%]/.test(value) && isVariable(value.slice(1))) || WORDS.includes(lower(value));
}

/** What follows the sign of a variable: `$DB_PASSWORD`, `${password}`, `%s`. */
const isVariable = (name: string) =>
  /^[{(]/.test(name) || Buffer.byteLength(name) <= 1 || /^[A-Z0-9_]*$/.test(name.replace(/%+$/, ""));

/** `--password value`: a flag whose value is a word of its own. */
export function flags(text: string): Found[] {
  const found: Found[] = [];
  for (let next = text.indexOf("--"); next >= 0;) {
    let at = runEnd(text, next + 2, (sign) => isAlnum(sign) || sign === "-");
    const kind = text[at] === " " ? namesSecret(text.slice(next + 2, at)) : undefined;
    if (kind !== undefined) {
      const value = read(text, at, false);
      const secret = text[value.start] === "-" ? undefined : judged(value, kind, true);
      if (secret !== undefined) {
        at = Math.max(at, secret.end);
        found.push(secret);
      }
    }
    next = text.indexOf("--", at);
  }
  return found;
}

/** `Bearer …` anywhere; `Basic …` and `Token …` after `Authorization`. */
export function authorizations(text: string): Found[] {
  const found: Found[] = [];
  for (let at = text.indexOf(" "); at >= 0; at = text.indexOf(" ", at + 1)) {
    const scheme = ["bearer", "basic", "token"].find((one) =>
      at >= one.length && lower(text.slice(at - one.length, at)) === one && beginsWord(text, at - one.length, "-"));
    if (scheme === undefined) continue;
    const start = runEnd(text, at, (sign) => sign === " ");
    const run = runEnd(text, start, (sign) => /[0-9A-Za-z\-._~+/=]/.test(sign));
    const end = Math.max(start, trimEndOf(text, run, (sign) => sign === "."));
    const token = text.slice(start, end);
    const fits = scheme === "bearer" ? isRandom(token) : isHeader(text, at - scheme.length);
    if (token.length >= 8 && fits) found.push({ start, end, kind: "token" });
  }
  return found;
}

/** Whether the name of the header that says who asks stands before this place. */
function isHeader(text: string, before: number): boolean {
  const end = trimEndOf(text, before, (sign) => " :=\"'\\".includes(sign));
  return lower(text.slice(Math.max(0, end - "authorization".length), end)) === "authorization";
}

/** `Bearer` also stands in sentences: a word after it is no token. */
const isRandom = (token: string) => /[0-9]/.test(token) || (token.length >= 20 && /[A-Z]/.test(token) && /[a-z]/.test(token));

/** The password in `scheme://user:password@host`. */
export function addresses(text: string): Found[] {
  const found: Found[] = [];
  for (let at = text.indexOf("://"); at >= 0; at = text.indexOf("://", at + 3)) {
    if (!isAlnum(text[at - 1])) continue;
    const from = at + 3;
    const authority = text.slice(from, runEnd(text, from, (sign) => !/[\p{White_Space}/?#"<>]/u.test(sign)));
    const host = authority.lastIndexOf("@");
    const colon = authority.slice(0, Math.max(0, host)).indexOf(":");
    if (host < 0 || colon < 0) continue;
    const password = authority.slice(colon + 1, host);
    if (!isPlaceholder(password) && !isRemoved(password, 0)) {
      found.push({ start: from + colon + 1, end: from + host, kind: "password" });
    }
  }
  return found;
}
