// Each example of an adapter is run, with the real framework and a scripted model.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, test } from "node:test";
import { promisify } from "node:util";

import { AbstractAgent, EventType } from "@ag-ui/client";
import { Observable } from "rxjs";
import { Agent, Gate, NotApproved } from "@aaep/agent";
import { toAgUi } from "@aaep/agent/ag-ui";

import { Hub } from "./hub.js";

const run = promisify(execFile);
const started = [];
after(() => Promise.all(started.map((one) => one.stop?.() ?? one.close())));

async function hubThat(answer, options) {
  const hub = await Hub.start(answer, options);
  started.push(hub);
  return hub;
}

test("AI SDK: a tool that needs approval runs after a yes", async () => {
  const hub = await hubThat("accept");
  const { stdout } = await run(process.execPath, ["ai-sdk-transfer.mjs"], { env: { ...process.env, AAEP_URL: hub.url } });
  assert.equal(stdout, "moved 500.00 to ann\nThat is all.\n");
  await hub.heard("session.completed");
  assert.equal((await hub.heard("tool.completed", 2)).status, "success");
  assert.equal((await hub.heard("awaiting.confirmation")).action, "Transfer 500.00 euros to ann.");
});

test("AI SDK: after a no it does not run, and the model goes on", async () => {
  const hub = await hubThat("reject");
  const { stdout } = await run(process.execPath, ["ai-sdk-transfer.mjs"], { env: { ...process.env, AAEP_URL: hub.url } });
  assert.equal(stdout, "That is all.\n");
  await hub.heard("session.completed");
  assert.equal(hub.kinds().filter((kind) => kind === "tool.invoked").length, 1);
});

test("the gate asks where the policy wants it, though the agent would not", async () => {
  const { writeFileSync, mkdtempSync } = await import("node:fs");
  const policy = `${mkdtempSync("policy-")}/policy.toml`;
  writeFileSync(policy, '[[rule]]\ntool = "look"\nrisk_level = "low"\nreversibility = "reversible"\nverdict = "announce"\n');
  const hub = await hubThat("reject", { environment: { AAEP_POLICY: policy } });
  const agent = new Agent("shop", { url: hub.url });
  started.push(agent);
  await agent.session("Buying.", async (session) => {
    const gate = new Gate(session);
    assert.equal(await gate.call("look", { for: "shoes" }, () => "found"), "found");
    const pay = gate.wrap("pay", () => assert.fail("it ran"));
    await assert.rejects(pay({ amount: "80.00" }), NotApproved);
  });
});

test("the page about the gate runs", async () => {
  const { readFileSync, writeFileSync } = await import("node:fs");
  const page = readFileSync(`${process.env.AAEP_REPOSITORY}/docs/gate.md`, "utf8");
  writeFileSync("made.gate.mjs", page.split("```js\n")[1].split("```")[0]);
  for (const [answer, said] of [["accept", "found shoes paid 80.00 to the shop\n"], ["reject", "found shoes and nothing was paid: rejected\n"]]) {
    const hub = await hubThat(answer);
    const { stdout } = await run(process.execPath, ["made.gate.mjs"], { env: { ...process.env, AAEP_URL: hub.url } });
    assert.equal(stdout, said);
  }
});

test("AG-UI: its client accepts what a hub tells as a run", async () => {
  const hub = await hubThat("accept");
  const agent = new Agent("bank", { url: hub.url });
  started.push(agent);
  await agent.session("Moving money.", async (session) => {
    const words = { action: "Transfer 500 euros.", consequence: "It cannot be called back." };
    await session.confirm({ tool: "transfer", arguments: { amount: "500.00" }, ...words }).run(() => "moved");
    const output = session.output();
    await output.write("It is moved.");
    await output.finish();
  });
  await hub.heard("session.completed");

  class FromHub extends AbstractAgent {
    run() {
      return new Observable((reader) => {
        for (const event of hub.events.flatMap(toAgUi)) reader.next(event);
        reader.complete();
      });
    }
  }
  const seen = [];
  const frontend = new FromHub({ threadId: "t" });
  await frontend.runAgent({}, { onEvent: ({ event }) => void seen.push(event.type), onCustomEvent: ({ event }) => void seen.push(event.name) });
  assert.ok(seen.includes("aaep.awaiting.confirmation") && seen.includes(EventType.TOOL_CALL_RESULT), String(seen));
  assert.equal(seen.at(-1), EventType.RUN_FINISHED);
  assert.ok(frontend.messages.some(({ content }) => content === "It is moved."), JSON.stringify(frontend.messages));
});
