/** Text that a model streams: tokens go in as they come, chunks worth hearing go out. */

import { randomBytes } from "node:crypto";

import { harmlessLength, Redactor } from "./secrets.js";
import type { Members, Session } from "./session.js";

/** How long text waits for more. */
const PATIENT_MS = 100;

/** So much goes out at once, in characters. */
const ENOUGH = 512;

/** The longest text that waits until no secret can begin at its end. */
const LONGEST = 3072;

const graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });

export class Output {
  readonly id = `out_${randomBytes(16).toString("hex")}`;
  private readonly session: Session;
  private text = "";
  private position = 0;
  private begun = false;
  private timer: NodeJS.Timeout | undefined;
  private last: Promise<void> = Promise.resolve();
  private fault: unknown;
  private readonly redactor = new Redactor();

  /** @internal */
  constructor(session: Session) {
    this.session = session;
  }

  /** Takes the next token; an error is that of an earlier one. It waits only while far too much was written. */
  async write(token: string): Promise<void> {
    if (this.fault !== undefined) throw this.fault;
    this.text += token;
    this.timer ??= setTimeout(() => this.push(), PATIENT_MS);
    if (this.text.length >= ENOUGH) {
      this.push();
      await this.last;
    }
  }

  /** Completes it, and says how many characters it had. */
  async finish(): Promise<number> {
    clearTimeout(this.timer);
    const rest = this.text;
    this.text = "";
    if (this.begun || rest !== "") this.send(rest, true);
    await this.last;
    if (this.fault !== undefined) throw this.fault;
    return this.position;
  }

  /** Sends what is whole: the last character may still grow, and the last word may turn out to be a secret. */
  private push(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const last = [...graphemes.segment(this.text.slice(-64))].at(-1)?.segment.length ?? 0;
    const whole = this.text.length - last;
    const harmless = harmlessLength(this.text.slice(0, whole));
    const cut = harmless === 0 && whole > LONGEST ? whole : harmless;
    if (cut <= 0) return;
    const text = this.text.slice(0, cut);
    this.text = this.text.slice(cut);
    this.send(text, false);
  }

  private send(text: string, complete: boolean): void {
    // Before it is counted: positions are those of what is sent.
    const chunk = this.redactor.pass(text);
    if (chunk === "" && !complete) return;
    const payload: Members = { chunk, position: this.position, complete, output_id: this.id };
    const hint = hintOf(chunk);
    if (!complete || hint !== "none") payload.coalesce_hint = hint;
    this.begun = true;
    this.position += [...chunk].length; // positions count code points
    this.last = this.last.then(async () => {
      if (this.fault !== undefined) return;
      await this.session.emit("output.streaming", payload).catch((error: unknown) => (this.fault = error));
    });
  }
}

/** What a chunk ends with, for listeners who want whole words or sentences. */
function hintOf(text: string): string {
  const ended = text.trimEnd();
  const space = text.slice(ended.length);
  if (space.includes("\n\n")) return "paragraph";
  const closes = ended.replace(/["')\]”’»]+$/u, "");
  if (/[。！？؟।]$/u.test(closes) || (space !== "" && /[.!?…]$/u.test(closes))) return "sentence";
  return space === "" ? "none" : "word";
}
