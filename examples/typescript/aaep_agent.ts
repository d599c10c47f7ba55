/**
 * A short client of the agent API of an AAEP hub. No packages.
 * Node 22.18 and newer run it as it is; for others, the TypeScript compiler makes JavaScript of it.
 *
 *     const agent = new Agent(await localHub(), "my-agent");
 *     await agent.session("Moving $500 to savings.", async (session) => {
 *       await session.confirmed(request, async (args) => moveMoney(args)); // only after a yes
 *     });
 *
 * A session always ends: when its function does, well, or with an error if that threw one.
 */

import { send, Stranger } from "./aaep_hub.ts";

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Members = { [name: string]: Json };

/** The hub refused; nothing has changed there. */
export class Refused extends Error {
  readonly status: number;
  readonly rule: string | undefined;

  constructor(status: number, problem: Members) {
    super(`${problem.text ?? "refused"} (status ${status}, rule ${problem.rule ?? "none"})`);
    this.status = status;
    this.rule = problem.rule as string | undefined;
  }
}

/** There is no approval: rejected, timed_out, cancelled, … `reply` is what the answer says of itself. */
export class NotApproved extends Error {
  readonly status: string;
  readonly reply: Members;

  constructor(status: string, reply: Members = {}) {
    super(`not approved: ${status}`);
    this.status = status;
    this.reply = reply;
  }
}

/** What consent is asked for. */
export interface Confirmation {
  tool: string;
  /** Consent is bound to these; carry amounts as strings. */
  arguments: Json;
  action: string;
  consequence: string;
  risk?: "low" | "medium" | "high";
  seconds?: number;
}

const pause = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds));
const fresh = () => crypto.randomUUID().replaceAll("-", "");

/** What the hub says about it; nothing, if it was not the hub that answered. */
const problem = (text: string): Members => {
  try {
    return JSON.parse(text) as Members;
  } catch {
    return {};
  }
};

export class Agent {
  private readonly url: string;
  private readonly producer: Members;
  private readonly token: string | undefined;
  private readonly patience: number;
  /** Without a token, whoever shows this owns the sessions that were opened with it. */
  private readonly secret: string;
  private readonly trustLoopback: boolean;

  /** The address is what `localHub()` gives, `unix:` and a path, or https. */
  constructor(url: string, agentId: string, token?: string, patience = 30_000, trustLoopback = false) {
    this.url = url;
    this.trustLoopback = trustLoopback;
    this.producer = { agent_id: agentId };
    this.token = token;
    this.patience = patience;
    const random = String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)));
    this.secret = `aaeps_${btoa(random).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`;
  }

  /** One call. It is sent again under the same key until there is an answer, or time is up. */
  async call(method: string, path: string, body?: Members): Promise<Members> {
    const headers: Record<string, string> = { "idempotency-key": fresh() };
    if (body !== undefined) headers["content-type"] = "application/json";
    if (this.token) headers.authorization = `Bearer ${this.token}`;
    else headers["aaep-session-secret"] = this.secret;
    const deadline = Date.now() + this.patience;
    for (let wait = 50; ; wait = Math.min(wait * 2, 2000)) {
      try {
        const json = body === undefined ? undefined : JSON.stringify(body);
        const { status, text } = await send(this.url, method, path, headers, json, this.trustLoopback);
        if (status < 300) return text ? (JSON.parse(text) as Members) : {};
        const passing = [408, 502, 503, 504].includes(status);
        if (!passing || Date.now() > deadline) throw new Refused(status, problem(text));
      } catch (error) {
        const final = error instanceof Refused || error instanceof Stranger;
        if (final || Date.now() > deadline) throw error;
      }
      await pause(wait);
    }
  }

  /** Opens a session, does the work, and ends the session. */
  async session<T>(summary: string, work: (session: Session) => Promise<T>, language = "en"): Promise<T> {
    const opened = await this.call("POST", "agent/sessions", {
      producer: this.producer,
      summary_normal: summary,
      language,
    });
    const session = new Session(this, opened.session_id as string);
    try {
      const result = await work(session);
      await session.emit("session.completed", { summary_normal: "Done." });
      return result;
    } catch (error) {
      if (error instanceof NotApproved) {
        await session.emit("session.completed", { summary_normal: "Nothing was done." });
      } else if (!(error instanceof Refused && error.status === 404)) {
        const words = "The agent broke off: there is a fault in its program.";
        await session.emit("session.errored", { error_category: "unknown", summary_normal: words });
      }
      throw error;
    }
  }
}

export class Session {
  private readonly agent: Agent;
  readonly id: string;

  constructor(agent: Agent, id: string) {
    this.agent = agent;
    this.id = id;
  }

  /** Any event, without its envelope: the hub fills that. */
  async emit(kind: string, payload: Members): Promise<void> {
    const body = { type: `aaep:agent.${kind}`, ...payload };
    await this.agent.call("POST", `agent/sessions/${this.id}/events`, body);
  }

  /** An answer, at once. Positions count code points. */
  async say(text: string): Promise<void> {
    const output = { chunk: text, position: 0, complete: true, output_id: `out_${fresh()}` };
    await this.emit("output.streaming", output);
  }

  /** A tool that needs no consent. Nobody hears `args`: they tell it from a call that was refused. */
  async tool<T>(name: string, summary: string, work: () => Promise<T>, args?: Json): Promise<T> {
    const call = `call_${fresh()}`;
    const given: Members = args === undefined ? {} : { arguments: args };
    await this.emit("tool.invoked", { tool: name, tool_call_id: call, summary_normal: summary, ...given });
    return this.run(name, call, work);
  }

  /** Asks, waits, and runs the work if somebody said yes; otherwise throws. */
  async confirmed<T>(wanted: Confirmation, work: (args: Json) => Promise<T>): Promise<T> {
    let asked = await this.agent.call("POST", `agent/sessions/${this.id}/requests`, {
      kind: "confirmation",
      tool: wanted.tool,
      arguments: wanted.arguments,
      action: wanted.action,
      consequence: wanted.consequence,
      summary_normal: wanted.action,
      risk_level: wanted.risk ?? "high",
      irreversible: true,
      timeout_seconds: wanted.seconds ?? 300,
      default_decision: "reject",
    });
    const path = `agent/requests/${asked.request_id}`;
    while (asked.status === "pending") asked = await this.agent.call("GET", `${path}?wait=30`);
    if (asked.status !== "accepted") throw new NotApproved(asked.status as string, asked.reply as Members);
    const granted = await this.agent.call("POST", `${path}/invoke`, {});
    // Run what came back: it is what was confirmed.
    return this.run(wanted.tool, granted.tool_call_id as string, () => work(granted.arguments));
  }

  private async run<T>(tool: string, call: string, work: () => Promise<T>): Promise<T> {
    const completed = (status: string, summary: string) =>
      this.emit("tool.completed", { tool, tool_call_id: call, status, summary_normal: summary });
    try {
      const result = await work();
      await completed("success", `${tool} is done.`);
      return result;
    } catch (error) {
      await completed("error", `${tool} failed.`);
      throw error;
    }
  }
}
