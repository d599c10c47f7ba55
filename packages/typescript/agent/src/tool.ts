/** Calls of tools, between `tool.invoked` and `tool.completed`. */

import { randomBytes } from "node:crypto";

import { SessionOver } from "./errors.js";
import { ourWords, words, type Json, type Members, type Session } from "./session.js";

export interface ToolOptions {
  /** With what it is called: nobody hears it; a policy of the hub looks at it. */
  arguments?: Json;
  risk?: "low" | "medium" | "high";
}

/** A tool that may run now. */
export interface Call<A = Json> {
  readonly id: string;
  readonly tool: string;
  /** What was confirmed: run these. */
  readonly arguments: A;
  /** The idempotency key of what was confirmed: hand it to whatever the tool calls. */
  readonly key: string | undefined;
  /** Who said yes. */
  readonly by: string | undefined;
  /** Aborts when the user stops the session. */
  readonly signal: AbortSignal;
  /** What people are told once it is done, where that is more than that it is. */
  summary: string | undefined;
  /** What they are told instead, where it failed and no error says so: a framework may have taken it. */
  failed: string | undefined;
  /** Nobody can tell how it ended: a framework broke off in the middle of several calls. */
  unknown: boolean;
}

/** A tool that needs no consent, and was not announced yet. */
export interface AnnouncedTool {
  /** Announces it, runs it, and says how it ended. */
  run<T>(work: (call: Call) => Promise<T> | T): Promise<T>;
}

export function announced(session: Session, tool: string, told: Members, options: ToolOptions): AnnouncedTool {
  return {
    async run(work) {
      const id = `call_${randomBytes(16).toString("hex")}`;
      const invoked: Members = { tool, tool_call_id: id, ...told };
      if (options.risk !== undefined) invoked.risk_level = options.risk;
      if (options.arguments !== undefined) invoked.arguments = options.arguments;
      await session.emit("tool.invoked", invoked);
      return carryOut(session, { id, tool, arguments: options.arguments ?? null, key: undefined, by: undefined }, work);
    },
  };
}

/** Runs what a call is for, and completes it: well, failed, or given up when the user stops the session. */
export async function carryOut<A, T>(
  session: Session,
  begun: Pick<Call<A>, "id" | "tool" | "arguments" | "key" | "by">,
  work: (call: Call<A>) => Promise<T> | T,
): Promise<T> {
  session.counted();
  const started = performance.now();
  const call: Call<A> = { ...begun, signal: session.signal, summary: undefined, failed: undefined, unknown: false };
  const completed = (status: string, told: Members) => session.tell("tool.completed", {
    tool: call.tool, tool_call_id: call.id, status, ...told, duration_ms: Math.round(performance.now() - started),
  });
  let result: T;
  try {
    result = await unlessStopped(session, async () => work(call));
  } catch (error) {
    // When the session is over, the hub has said how things stood.
    if (error instanceof SessionOver) throw error;
    if (call.unknown) await completed("timeout", nobodyKnows(call.tool));
    else {
      await completed("error", ourWords(`${call.tool} failed: ${error instanceof Error ? error.name : "an error"}.`));
    }
    throw error;
  }
  if (call.unknown) await completed("timeout", nobodyKnows(call.tool));
  else if (call.failed !== undefined) await completed("error", words(call.failed));
  else await completed("success", call.summary === undefined ? ourWords(`${call.tool} is done.`) : words(call.summary));
  return result;
}

const nobodyKnows = (tool: string) => ourWords(`${tool} was begun; nobody knows how it ended.`);

/** The work's result, or `Stopped` as soon as the session is over. */
export function unlessStopped<T>(session: Session, work: () => Promise<T>): Promise<T> {
  const { signal } = session;
  signal.throwIfAborted();
  return new Promise<T>((done, failed) => {
    const stop = () => failed(signal.reason as SessionOver);
    signal.addEventListener("abort", stop, { once: true });
    work().then(done, failed).finally(() => signal.removeEventListener("abort", stop));
  });
}
