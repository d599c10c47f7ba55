/** Keys and tokens that can be told by their form: of known services, signed tokens (JWT), private keys in PEM. */

import { beginsWord, isAlnum, isMixed, isWord, runEnd, trimEndOf, type Found, type Kind } from "./signs.js";

interface Format {
  prefix: string;
  /** What may stand in it besides letters and digits. */
  signs: string;
  least: number;
  most: number;
  /** Whether it needs a part with letters and digits: the prefix alone could begin a phrase. */
  mixed: boolean;
  /** Whether all its letters are capitals. */
  capitals: boolean;
}

const format = (prefix: string, signs: string, least: number): Format =>
  ({ prefix, signs, least, most: Infinity, mixed: false, capitals: false });
const mixed = (prefix: string, signs: string, least: number): Format => ({ ...format(prefix, signs, least), mixed: true });
const capitals = (prefix: string): Format => ({ ...mixed(prefix, "", 16), most: 16, capitals: true });

const FORMATS: readonly Format[] = [
  mixed("sk-", "-_", 16), format("sk_live_", "_", 8), format("sk_test_", "_", 8), format("rk_live_", "_", 8),
  format("rk_test_", "_", 8), format("whsec_", "+/=", 16), capitals("AKIA"), capitals("ASIA"), format("ghp_", "_", 20),
  format("gho_", "_", 20), format("ghu_", "_", 20), format("ghs_", "_", 20), format("ghr_", "_", 20),
  format("github_pat_", "_", 20), mixed("glpat-", "-_.", 16), mixed("xoxb-", "-", 10), mixed("xoxp-", "-", 10),
  mixed("xoxa-", "-", 10), mixed("xoxr-", "-", 10), mixed("xoxs-", "-", 10), mixed("xapp-", "-", 10),
  format("AIza", "-_", 30), format("ya29.", "-_", 20), format("hf_", "", 30), format("npm_", "", 30),
  format("pypi-", "-_", 50), mixed("dop_v1_", "", 32), format("shpat_", "", 30), mixed("SG.", "-_.", 40),
  mixed("AGE-SECRET-KEY-", "", 40),
];

export function keys(text: string): Found[] {
  const found = privateKeys(text);
  for (let at = 0; at < text.length;) {
    const key = isWord(text[at]) && beginsWord(text, at, "-") ? formatted(text, at) ?? signedToken(text, at) : undefined;
    if (key !== undefined) found.push({ start: at, ...key });
    at = key?.end ?? at + 1;
  }
  return found;
}

function formatted(text: string, at: number): { end: number; kind: Kind } | undefined {
  const form = FORMATS.find(({ prefix }) => text.startsWith(prefix, at));
  if (form === undefined || !beginsWord(text, at, form.signs)) return undefined;
  const from = at + form.prefix.length;
  const run = runEnd(text, from, (sign) => isAlnum(sign) || form.signs.includes(sign));
  // Whatever ends a sentence does not belong to the key.
  const end = Math.max(from, trimEndOf(text, run, (sign) => sign === "."));
  const body = text.slice(from, end);
  const parts: string[] = [];
  let part = "";
  for (const sign of body) {
    if (form.signs.includes(sign)) [part] = ["", parts.push(part)];
    else part += sign;
  }
  parts.push(part);
  const fits = body.length >= form.least && body.length <= form.most && !isWord(text[end])
    && (!form.mixed || parts.some((one) => one.length >= 8 && isMixed(one))) && (!form.capitals || !/[a-z]/.test(body));
  return fits ? { end, kind: "key" } : undefined;
}

/** A signed token (JWT): three parts of base64url, the first of which is a JSON object. */
function signedToken(text: string, at: number): { end: number; kind: Kind } | undefined {
  if (!text.startsWith("eyJ", at) || !beginsWord(text, at, ".")) return undefined;
  const part = (from: number) => runEnd(text, from, (sign) => isWord(sign) || sign === "-");
  let end = part(at);
  let parts = 1;
  for (let next = part(end + 1); text[end] === "." && next > end + 1; next = part(end + 1)) {
    end = next;
    parts += 1;
  }
  return parts >= 3 && end - at >= 20 ? { end, kind: "token" } : undefined;
}

const BEGIN = "-----BEGIN ";
const DASHES = "-----";

/** Private keys in PEM, from their first line to their last, or as far as they go. */
function privateKeys(text: string): Found[] {
  const found: Found[] = [];
  for (let start = text.indexOf(BEGIN); start >= 0;) {
    const from = start + BEGIN.length;
    let at = from;
    const label = runEnd(text, from, (sign) => /[A-Z0-9 ]/.test(sign));
    if (label - from <= 48 && text.slice(from, label).includes("PRIVATE KEY") && text.startsWith(DASHES, label)) {
      at = keyEnd(text, label + DASHES.length);
      found.push({ start, end: at, kind: "private key" });
    }
    start = text.indexOf(BEGIN, at);
  }
  return found;
}

function keyEnd(text: string, from: number): number {
  const body = bodyEnd(text, from);
  const gap = pastGap(text, body);
  if (!text.startsWith("-----END ", gap)) return body;
  const label = runEnd(text, gap + "-----END ".length, (sign) => /[A-Z ]/.test(sign));
  return text.startsWith(DASHES, label) ? label + DASHES.length : body;
}

/** Skips what stands between two lines of a key: space, and line ends that are still escaped. */
function pastGap(text: string, from: number): number {
  for (let at = from; ;) {
    let next = runEnd(text, at, (sign) => /\p{White_Space}/u.test(sign));
    const after = runEnd(text, next, (sign) => sign === "\\");
    if (after > next) next = runEnd(text, after, (sign) => sign === "n" || sign === "r");
    if (next === at) return at;
    at = next;
  }
}

const HEADERS = ["Proc-Type:", "DEK-Info:", "Version:", "Comment:"];

/** Lines of base64, and the headers of encrypted keys. */
function bodyEnd(text: string, from: number): number {
  let end = from;
  for (let lines = 0; ;) {
    const start = pastGap(text, end);
    const line = runEnd(text, start, (sign) => /[0-9A-Za-z+/=]/.test(sign));
    const length = line - start;
    if (HEADERS.some((name) => text.startsWith(name, start))) {
      end = runEnd(text, start, (sign) => sign !== "\n" && sign !== "\\");
    } else if (length >= 16 || (length > 0 && lines > 0 && text[line - 1] === "=")) {
      end = line;
      lines += 1;
    } else if (length > 0 && lines > 0 && isLast(text, line)) {
      // A last line may be short; so may be a word that follows.
      return line;
    } else return end;
  }
}

function isLast(text: string, end: number): boolean {
  const gap = pastGap(text, end);
  return gap === text.length || text.startsWith("-----END ", gap);
}
