/** The thread that keeps leases, while the other one may block. */

import { parentPort, workerData } from "node:worker_threads";

import type { Reach } from "./hub.js";
import { Leases } from "./lease.js";

const { reach, headers } = workerData as { reach: Reach; headers: Record<string, string> };
const leases = new Leases(reach, headers, (id, stopped) => parentPort?.postMessage({ id, stopped }));

parentPort?.on("message", ({ watch, forget }: { watch?: string; forget?: string }) => {
  if (forget !== undefined) leases.forget(forget);
  if (watch !== undefined) void leases.keep(watch);
});
