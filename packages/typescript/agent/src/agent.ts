/** An agent: speaks with one hub, as one producer. */

import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Worker } from "node:worker_threads";

import { AaepError, InDoubt, NotApproved, Refused, SessionOver, Stopped, Stranger, Unavailable, type Problem } from "./errors.js";
import { localHub, Way, type Reach } from "./hub.js";
import { Leases } from "./lease.js";
import { Session } from "./session.js";
import type { Ending, Members } from "./session.js";

/** How long a call is tried again before it counts as failed. */
const PATIENCE_MS = 30_000;

/** How long a hub is waited for that has never answered: one that is started together with its agents is there by then. */
const NOBODY_YET_MS = 2_000;

/** The longest that one call waits for a hub that answers nothing. */
const SILENT_MS = 75_000;

/** Statuses that pass: the hub stops, cannot keep anything, or a proxy cannot reach it. */
const PASSING = [408, 502, 503, 504];

export interface AgentOptions {
  /** The hub's address, `unix:` and a path, or https. Without it, this user's hub on this machine. */
  url?: string;
  token?: string;
  /** Certificates to trust besides, in PEM. */
  trustPem?: string;
  /** Trusts whatever listens on loopback, whichever user of the machine runs it. */
  trustLoopback?: boolean;
  /** How long each call is tried again while the hub cannot be reached. People are waited for longer. */
  patienceMs?: number;
}

export interface SessionOptions {
  /** The language of everything that the session says; English unless it is said. */
  language?: string;
  /** How long the hub waits for a sign of life: 15 seconds to a day, two minutes by default. */
  leaseSeconds?: number;
}

/** How a call is made. */
interface CallOptions {
  body?: string;
  key?: string;
  /** Until when it is tried again. */
  deadline?: number;
}

export class Agent {
  readonly id: string;
  readonly patienceMs: number;
  private readonly options: AgentOptions;
  /** Without a token, whoever shows this owns the sessions that were opened with it. */
  private readonly secret = `aaeps_${randomBytes(32).toString("base64url")}`;
  private readonly prefix = randomBytes(16).toString("hex");
  private calls = 0;
  private wasReached = false;
  private way: Promise<{ way: Way; reach: Reach }> | undefined;
  private watcher: Worker | undefined;
  private leases: Leases | undefined;
  private readonly watched = new Map<string, (stopped: boolean) => void>();
  private readonly unsaid = new Set<Promise<void>>();

  /** Nothing is sent before the first session is opened. */
  constructor(id: string, options: AgentOptions = {}) {
    this.id = id;
    this.options = options;
    this.patienceMs = options.patienceMs ?? PATIENCE_MS;
  }

  /**
   * Opens a session, does the work, and ends the session: one for each thing that the user asked for. What
   * the work throws comes through. Without a yes the session ends well, since nothing went wrong.
   */
  async session<T>(summary: string, work: (session: Session) => Promise<T> | T, options: SessionOptions = {}): Promise<T> {
    const session = await this.open(summary, options);
    let result: T;
    try {
      result = await work(session);
    } catch (error) {
      await session.end(error).catch(() => undefined);
      await this.allSaid();
      throw error;
    }
    try {
      await session.completeByItself();
    } catch (error) {
      // Work that was done stays done, when its user stops the session and while the hub is away.
      if (error instanceof Unavailable) {
        process.emitWarning("The session is done, and the hub could not be told yet. It is told if it comes back in time.");
      } else if (!(error instanceof SessionOver)) throw error;
    } finally {
      await this.allSaid();
    }
    return result;
  }

  /** A session that its caller ends: `complete`, `cancel` or `fail`. */
  async open(summary: string, { language = "en", leaseSeconds }: SessionOptions = {}): Promise<Session> {
    const body: Members = { producer: { agent_id: this.id }, summary_normal: summary, language };
    if (leaseSeconds !== undefined) body.lease_seconds = leaseSeconds;
    const opened = await this.change("POST", "agent/sessions", body);
    return new Session(this, String(opened.session_id), language);
  }

  /** Waits until everything is said, or cannot be said in time. To be called before the process ends. */
  async close(): Promise<void> {
    await this.allSaid();
    await this.watcher?.terminate();
    this.watcher = undefined;
    this.leases?.close();
    this.leases = undefined;
    (await this.way)?.way.close();
  }

  private async allSaid(): Promise<void> {
    const deadline = Date.now() + this.patienceMs;
    while (this.unsaid.size > 0 && Date.now() < deadline) {
      // This timer keeps the process alive: what is said behind the caller's back does not.
      const rest = new AbortController();
      const late = pause(Math.max(1, deadline - Date.now()), undefined, { signal: rest.signal }).catch(() => undefined);
      await Promise.race([Promise.all(this.unsaid), late]);
      rest.abort();
    }
  }

  // --- For sessions. ---

  /** @internal A key that no other call of anybody has. */
  newKey(): string {
    this.calls += 1;
    return `${this.prefix}-${this.calls}`;
  }

  /** @internal Something that is said behind the caller's back. */
  behind(work: Promise<void>): void {
    const all = work.finally(() => this.unsaid.delete(all));
    this.unsaid.add(all);
  }

  /** @internal Changes something at the hub, once: it is sent again with the same key until there is an answer. */
  change(method: string, path: string, body?: Members, key = this.newKey()): Promise<Members> {
    const json = body === undefined ? {} : { body: JSON.stringify(body) };
    return this.call(method, path, { ...json, key, deadline: Date.now() + this.patienceMs });
  }

  /** @internal Asks the hub for something; a wait that it grants is not its silence. */
  look(path: string): Promise<Members> {
    return this.call("GET", path, {});
  }

  private async call(method: string, path: string, { body, key, deadline }: CallOptions): Promise<Members> {
    const { way } = await this.reached();
    const headers = this.headers();
    if (key !== undefined) headers["idempotency-key"] = key;
    if (body !== undefined) headers["content-type"] = "application/json";
    let until = deadline;
    let sent = false;
    const began = Date.now();
    for (let wait = 50; ; wait = Math.min(wait * 2, 2000)) {
      let why: unknown;
      try {
        const left = until === undefined ? SILENT_MS : Math.max(1, until - Date.now());
        const { status, text } = await way.send(method, path, headers, body, left, () => (sent = true));
        this.wasReached = true;
        if (status >= 200 && status < 300) return text === "" ? {} : (JSON.parse(text) as Members);
        if (!PASSING.includes(status)) throw new Refused(status, problem(text));
        why = new Refused(status, problem(text));
      } catch (error) {
        if (error instanceof Refused || error instanceof Stranger) throw error;
        why = error;
      }
      // Who set a patience waits that long all the same.
      const hasNoHub = !this.wasReached && this.options.patienceMs === undefined && isNobody(why);
      if (hasNoHub && deadline !== undefined && Date.now() + wait - began >= NOBODY_YET_MS) {
        const advice = "Nobody has answered there yet: start a hub with `aaep hub`, or name another address.";
        throw new Unavailable(`The hub could not be asked: ${(why as Error).message}. ${advice}`, { cause: why });
      }
      until ??= Date.now() + this.patienceMs;
      if (Date.now() + wait >= until) {
        const text = why instanceof Error ? why.message : String(why);
        // Doubt is only where the hub may have been told to change something.
        const doubt = sent && method !== "GET";
        throw doubt
          ? new InDoubt(`Nobody knows whether the hub did it: ${text}`, { cause: why })
          : new Unavailable(`The hub could not be asked: ${text}`, { cause: why });
      }
      await pause(wait);
    }
  }

  private headers(): Record<string, string> {
    const { token } = this.options;
    return token === undefined ? { "aaep-session-secret": this.secret } : { authorization: `Bearer ${token}` };
  }

  private reached(): Promise<{ way: Way; reach: Reach }> {
    this.way ??= (async () => {
      const { url, trustPem, trustLoopback } = this.options;
      const reach: Reach = { url: url ?? (await localHub()) };
      if (trustPem !== undefined) reach.trustPem = trustPem;
      if (trustLoopback !== undefined) reach.trustLoopback = trustLoopback;
      return { way: new Way(reach), reach };
    })();
    return this.way;
  }

  /**
   * @internal Keeps a session's lease, and hears of its end. A thread of its own does it, so that the hub has
   * signs of life while this one blocks.
   */
  async watch(session: string, over: (stopped: boolean) => void): Promise<void> {
    const { reach } = await this.reached();
    this.watched.set(session, over);
    if (this.leases !== undefined) return void this.leases.keep(session);
    this.watcher ??= this.watching(reach);
    this.watcher.postMessage({ watch: session });
  }

  private watching(reach: Reach): Worker {
    const workerData = { reach, headers: this.headers() };
    const watcher = new Worker(new URL("./watch.js", import.meta.url), { workerData });
    watcher.unref();
    watcher.on("message", ({ id, stopped }: { id: string; stopped: boolean }) => this.hearOver(id, stopped));
    watcher.on("error", () => {
      // Its file is not where it was, in a bundle perhaps: this thread does it, as long as it does not block.
      this.watcher = undefined;
      this.leases ??= new Leases(reach, this.headers(), (id, stopped) => this.hearOver(id, stopped));
      for (const session of this.watched.keys()) void this.leases.keep(session);
    });
    return watcher;
  }

  private hearOver(session: string, stopped: boolean): void {
    this.watched.get(session)?.(stopped);
    this.watched.delete(session);
  }

  /** @internal */
  unwatch(session: string): void {
    this.watched.delete(session);
    this.watcher?.postMessage({ forget: session });
    this.leases?.forget(session);
  }

  /** @internal Why a session is over that its agent did not end. */
  async whyOver(session: string): Promise<SessionOver> {
    try {
      await this.look(`agent/sessions/${session}`);
    } catch (error) {
      if (error instanceof Refused && error.word === "stopped") return new Stopped();
    }
    return new SessionOver();
  }
}

/** Whether nobody listens there. */
const isNobody = (why: unknown) =>
  why instanceof Error && "code" in why && ["ECONNREFUSED", "ENOENT"].includes(String(why.code));

/** What the hub says about it; nothing, if it was not the hub that answered. */
function problem(text: string): Problem {
  try {
    return JSON.parse(text) as Problem;
  } catch {
    return {};
  }
}

/** How a session ends after this error. */
export function lastWords(error: unknown): { kind: Ending; text: string } | undefined {
  if (error instanceof SessionOver) return undefined;
  if (error instanceof NotApproved) return { kind: "session.completed", text: "Nothing was done: there was no yes." };
  const aborted = error instanceof Error && !(error instanceof AaepError) && error.name === "AbortError";
  if (aborted) return { kind: "session.cancelled", text: "The agent gave this up without finishing it." };
  return { kind: "session.errored", text: "The agent broke off: there is a fault in its program." };
}
