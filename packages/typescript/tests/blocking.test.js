// A thread that blocks, in a process of its own: nothing else could go on beside it.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { promisify } from "node:util";

import { build } from "esbuild";

import { Agent } from "@aaep/agent";

import { Hub } from "./hub.js";

/** A program in one file, where the package's own thread is not found. */
async function fromABundle(url) {
  writeFileSync("made.waits.js", `
    import { Agent } from "@aaep/agent";
    import { setTimeout as pause } from "node:timers/promises";
    const agent = new Agent("bundled", { url: ${JSON.stringify(url)} });
    await agent.session("Waiting.", async (session) => {
      await session.tool("slow", "Taking its time.").run(() => pause(20000));
      console.log(session.isStopped ? "gone" : "still here");
    }, { leaseSeconds: 15 });
    await agent.close();`);
  await build({ entryPoints: ["made.waits.js"], outfile: "bundled/waits.mjs", bundle: true, format: "esm", platform: "node", logLevel: "warning" });
  return promisify(execFile)(process.execPath, ["bundled/waits.mjs"]);
}

test("a tool may block its thread longer than the lease", async () => {
  const hub = await Hub.start("accept");
  const bundled = fromABundle(hub.url);
  await hub.heard("tool.invoked"); // before this thread blocks
  const agent = new Agent("bank", { url: hub.url });
  await agent.session("Waiting.", async (session) => {
    // Longer than the lease and the longest wait that the hub grants.
    await session.tool("slow", "Taking its time.").run(() => execFileSync("sleep", ["50"]));
    assert.ok(!session.isStopped);
  }, { leaseSeconds: 15 });
  assert.equal((await bundled).stdout, "still here\n");
  await hub.heard("session.completed", 2);
  await agent.close();
  await hub.stop();
});
