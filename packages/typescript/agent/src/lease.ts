/** Shows the hub that an agent is there, and hears when a session ends. */

import { setTimeout as pause } from "node:timers/promises";

import { Way, type Reach } from "./hub.js";

/** The longest wait that is asked of the hub, in seconds. */
const WAIT = 30;

/** A wait that ends so much too early means that the hub is about to stop. */
const EARLY_MS = 500;

export type Over = (session: string, stopped: boolean) => void;

/** Sessions whose leases are kept. An open wait is a sign of life. */
export class Leases {
  private readonly way: Way;
  private readonly headers: Record<string, string>;
  private readonly over: Over;
  private readonly kept = new Set<string>();

  constructor(reach: Reach, headers: Record<string, string>, over: Over) {
    this.way = new Way(reach);
    this.headers = headers;
    this.over = over;
  }

  async keep(session: string): Promise<void> {
    this.kept.add(session);
    while (this.kept.has(session)) {
      const began = Date.now();
      try {
        const path = `agent/sessions/${session}?wait=${WAIT}`;
        const { status, text } = await this.way.send("GET", path, this.headers, undefined, (WAIT + 15) * 1000);
        if (status === 404) {
          if (this.kept.delete(session)) this.over(session, wasStopped(text));
          return;
        }
      } catch {
        // The hub is away; it is asked again.
      }
      if (Date.now() - began < EARLY_MS) await pause(EARLY_MS, undefined, { ref: false });
    }
  }

  forget(session: string): void {
    this.kept.delete(session);
  }

  close(): void {
    this.kept.clear();
    this.way.close();
  }
}

function wasStopped(text: string): boolean {
  try {
    return (JSON.parse(text) as { error?: string }).error === "stopped";
  } catch {
    return false;
  }
}
