// A thread that blocks, in a process of its own: nothing else could go on beside it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

import { Agent } from "@aaep/agent";

import { Hub } from "./hub.js";

test("a tool may block its thread longer than the lease", async () => {
  const hub = await Hub.start("accept");
  const agent = new Agent("bank", { url: hub.url });
  await agent.session("Waiting.", async (session) => {
    // Longer than the lease and the longest wait that the hub grants.
    await session.tool("slow", "Taking its time.").run(() => execFileSync("sleep", ["50"]));
    assert.ok(!session.isStopped);
  }, { leaseSeconds: 15 });
  await hub.heard("session.completed");
  await agent.close();
  await hub.stop();
});
