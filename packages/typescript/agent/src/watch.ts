/** The thread that shows the hub that an agent is there, and hears when a session ends. */

import { setTimeout as pause } from "node:timers/promises";
import { parentPort, workerData } from "node:worker_threads";

import { Way, type Reach } from "./hub.js";

/** The longest wait that is asked of the hub, in seconds. */
const WAIT = 30;

/** A wait that ends so much too early means that the hub is about to stop. */
const EARLY_MS = 500;

const { reach, headers } = workerData as { reach: Reach; headers: Record<string, string> };
const way = new Way(reach);
const watched = new Set<string>();

async function watch(id: string): Promise<void> {
  while (watched.has(id)) {
    const began = Date.now();
    try {
      const path = `agent/sessions/${id}?wait=${WAIT}`;
      const { status, text } = await way.send("GET", path, headers, undefined, (WAIT + 15) * 1000);
      if (status === 404) {
        watched.delete(id);
        parentPort?.postMessage({ id, stopped: wasStopped(text) });
        return;
      }
    } catch {
      // The hub is away; it is asked again.
    }
    if (Date.now() - began < EARLY_MS) await pause(EARLY_MS);
  }
}

function wasStopped(text: string): boolean {
  try {
    return (JSON.parse(text) as { error?: string }).error === "stopped";
  } catch {
    return false;
  }
}

parentPort?.on("message", (message: { watch?: string; forget?: string }) => {
  if (message.forget !== undefined) watched.delete(message.forget);
  if (message.watch !== undefined) {
    watched.add(message.watch);
    void watch(message.watch);
  }
});
