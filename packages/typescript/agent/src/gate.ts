/** The gate: what a tool of any framework passes before it runs. */

import type { Confirmation } from "./asking.js";
import { NotApproved, Refused } from "./errors.js";
import type { Json, Session } from "./session.js";
import { unlessStopped, type Call } from "./tool.js";

/** What is asked before a tool runs. `{name}` in a text stands for an argument. */
export type Consent = Pick<Confirmation, "action" | "consequence" | "undo" | "risk" | "timeoutSeconds">;

type Arguments = { [name: string]: Json };

/** A call that a framework holds back. */
export interface HeldBack {
  id: string;
  tool: string;
  arguments: Arguments;
}

/** What became of it: `call` is there if somebody said yes. */
export interface Decision {
  call?: Call;
  whyNot?: NotApproved;
}

/**
 * Every tool of an agent passes here. What `consent` names is asked, everything else is announced with its
 * arguments; where the policy of the user's hub wants consent all the same, it is asked then. What runs is
 * what was confirmed.
 */
export class Gate {
  readonly session: Session;
  readonly consent: Readonly<Record<string, Consent>>;

  constructor(session: Session, consent: Readonly<Record<string, Consent>> = {}) {
    this.session = session;
    this.consent = consent;
  }

  /** Runs a tool. */
  async call<T>(tool: string, given: Arguments, run: (given: Arguments) => Promise<T> | T): Promise<T> {
    if (!Object.hasOwn(this.consent, tool)) {
      let begun = false;
      try {
        return await this.session.tool(tool, undefined, { arguments: given }).run(() => {
          begun = true;
          return run(given);
        });
      } catch (error) {
        // The hub did not let it be announced: the user's policy wants to be asked.
        if (begun || !(error instanceof Refused && error.rule === "T27")) throw error;
      }
    }
    return this.asked(tool, given).run((call) => run(call.arguments as Arguments));
  }

  /** The same function, behind the gate: hand it to any framework as what a tool executes. */
  wrap<A extends object, R extends unknown[], T>(tool: string, execute: (given: A, ...rest: R) => Promise<T> | T): (given: A, ...rest: R) => Promise<T> {
    return (given, ...rest) => this.call(tool, given as Arguments, (confirmed) => execute(confirmed as A, ...rest));
  }

  /**
   * Asks about calls that a framework holds back. Then `goOn` lets it go on; when that is over, people are told
   * how those that were approved ended. If it breaks off with several of them, nobody knows which were done, and
   * people are told that.
   */
  async heldBack<T>(calls: readonly HeldBack[], goOn: (decisions: ReadonlyMap<string, Decision>) => Promise<T>): Promise<T> {
    const decisions = new Map<string, Decision>();
    const told: Promise<void>[] = [];
    let over!: (error?: unknown) => void;
    const going = new Promise<void>((done, failed) => (over = (error) => (error === undefined ? done() : failed(error))));
    going.catch(() => undefined);
    let result: T;
    try {
      for (const { id, tool, arguments: given } of calls) {
        await new Promise<void>((decided, failed) => {
          const running = this.asked(tool, given).run((call) => {
            decisions.set(id, { call });
            decided();
            return going;
          });
          told.push(running.catch((error: unknown) => {
            if (!(error instanceof NotApproved)) return failed(error);
            decisions.set(id, { whyNot: error });
            decided();
          }));
        });
      }
      result = await this.unlessStopped(() => goOn(decisions));
    } catch (error) {
      const approved = [...decisions.values()].flatMap(({ call }) => call ?? []);
      if (approved.length > 1) for (const call of approved) if (call.failed === undefined) call.unknown = true;
      over(error);
      await Promise.all(told);
      throw error;
    }
    over();
    await Promise.all(told);
    return result;
  }

  /**
   * Waits for what a framework does; throws `Stopped` as soon as the user stops the session. Hand
   * `session.signal` to the framework besides, so that it does not go on behind the stop.
   */
  unlessStopped<T>(work: () => Promise<T> | PromiseLike<T>): Promise<T> {
    return unlessStopped(this.session, async () => work());
  }

  private asked(tool: string, given: Arguments) {
    const asks = Object.hasOwn(this.consent, tool) ? this.consent[tool] : undefined;
    const { action = `Run ${tool}.`, consequence = "The agent does not say what comes of it.", ...rest } = asks ?? {};
    const fill = (text: string) => text.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = Object.hasOwn(given, name) ? given[name] : undefined;
      return value === undefined ? `(no ${name})` : typeof value === "string" ? value : JSON.stringify(value);
    });
    return this.session.confirm<Json>({ ...rest, tool, arguments: given, action: fill(action), consequence: fill(consequence) });
  }
}
