/**
 * Takes secrets out of texts for people: card numbers, keys, tokens, passwords. The rules are those of the Rust
 * library (`aaep-types`, module `secret`), and `packages/vectors/redaction.json` holds both to the same results.
 */

type Kind = "card number" | "key" | "token" | "private key" | "password";

interface Found {
  start: number;
  end: number;
  kind: Kind;
}

const KINDS: readonly Kind[] = ["card number", "key", "token", "private key", "password"];
const replacement = (kind: Kind) => `[${kind} removed]`;

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

// --- Streams. ---

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

// --- Signs. ---

const isDigit = (sign: string | undefined) => sign !== undefined && sign >= "0" && sign <= "9";
const isAlnum = (sign: string | undefined) => sign !== undefined && /^[0-9A-Za-z]$/.test(sign);
/** Letters, digits and what else is part of a word for programs. */
const isWord = (sign: string | undefined) => sign !== undefined && /^[0-9A-Za-z_]$/.test(sign);
const isMixed = (text: string) => /[0-9]/.test(text) && /[A-Za-z]/.test(text);
const trimmed = (text: string) => text.replace(/^\p{White_Space}+/u, "");

/** Whether a word can begin here. */
const beginsWord = (text: string, at: number, joiners = "") =>
  at === 0 || (!isWord(text[at - 1]) && !joiners.includes(text[at - 1] ?? ""));

function runEnd(text: string, at: number, part: (sign: string) => boolean): number {
  let end = at;
  while (end < text.length && part(text[end] ?? "")) end += 1;
  return end;
}

function trimEndOf(text: string, end: number, part: (sign: string) => boolean): number {
  let at = end;
  while (at > 0 && part(text[at - 1] ?? "")) at -= 1;
  return at;
}

/** The beginning of a text, as far as it has so many bytes. */
function firstBytes(text: string, bytes: number): string {
  if (text.length * 3 <= bytes) return text;
  let [at, size] = [0, 0];
  for (const sign of text) {
    size += Buffer.byteLength(sign);
    if (size > bytes) break;
    at += sign.length;
  }
  return text.slice(0, at);
}

function lastBytes(text: string, bytes: number): string {
  const signs = [...text.slice(-bytes)];
  let size = signs.reduce((sum, sign) => sum + Buffer.byteLength(sign), 0);
  while (size > bytes) size -= Buffer.byteLength(signs.shift() ?? "");
  return signs.join("");
}

// --- Card numbers. ---

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

function cards(text: string): Found[] {
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

// --- Keys and tokens that can be told by their form. ---

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

function keys(text: string): Found[] {
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

// --- Values that are secrets because of what stands before them. ---

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
function assignments(text: string): Found[] {
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
function flags(text: string): Found[] {
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
function authorizations(text: string): Found[] {
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
function addresses(text: string): Found[] {
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
