// Each example of an adapter is run, with the real framework and a scripted model.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, test } from "node:test";
import { promisify } from "node:util";

import { AbstractAgent, EventType } from "@ag-ui/client";
import { Observable } from "rxjs";
import { Agent, Gate, NotApproved, Stopped } from "@aaep/agent";
import { run as runSdk } from "@aaep/agent/ai-sdk";
import { toAgUi } from "@aaep/agent/ag-ui";
import { generateText, simulateReadableStream, stepCountIs, streamText, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";

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

const usage = { inputTokens: {}, outputTokens: {} };
const pays = (amount, at) => ({ type: "tool-call", toolCallId: `call_${at}`, toolName: "pay", input: JSON.stringify({ amount }) });
const looks = { type: "tool-call", toolCallId: "call_look", toolName: "look", input: "{}" };

/** A model that says these, turn by turn, and then that this is all. Like a real one, it heeds its signal. */
function scripted(turns) {
  const said = [...turns, [{ type: "text", text: "That is all." }]];
  const next = ({ abortSignal }) => {
    abortSignal?.throwIfAborted();
    const content = said.shift();
    const unified = content[0].type === "text" ? "stop" : "tool-calls";
    return { content, finishReason: { unified, raw: unified }, usage, warnings: [] };
  };
  return new MockLanguageModelV3({
    doGenerate: async (options) => next(options),
    doStream: async (options) => {
      const { content, finishReason } = next(options);
      const parts = content.flatMap((part) => (part.type !== "text" ? [part] : [
        { type: "text-start", id: "t" }, { type: "text-delta", id: "t", delta: part.text }, { type: "text-end", id: "t" },
      ]));
      const chunks = [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason, usage }];
      return { stream: simulateReadableStream({ chunks }) };
    },
  });
}

/** One run under the SDK: what was run, what it gave, and how the calls were told, in the order of their announcements. */
async function underTheSdk(hub, generateOrStream, turns, { consent = {}, pay = () => "paid" } = {}) {
  const agent = new Agent("sdk", { url: hub.url });
  started.push(agent);
  const ran = [];
  const outcome = await agent.session("Paying.", async (session) => {
    const gate = new Gate(session, { pay: { action: "Pay {amount} euros.", consequence: "It is gone.", ...consent } });
    const tools = {
      pay: tool({ description: "Pays.", inputSchema: z.object({ amount: z.string() }), needsApproval: true, execute: ({ amount }) => {
        ran.push(amount);
        return pay(amount, session);
      } }),
      look: tool({ description: "Looks.", inputSchema: z.object({}), execute: () => void ran.push("look") ?? "seen" }),
    };
    const model = scripted(turns);
    const generate = (messages, abortSignal) => generateOrStream({ model, tools, messages, abortSignal, stopWhen: stepCountIs(5), onError() {} });
    return (await runSdk(generate, [{ role: "user", content: "Pay." }], gate)).text;
  }).catch((error) => error);
  await Promise.race(["completed", "errored", "cancelled"].map((end) => hub.heard(`session.${end}`)));
  const ended = new Map(hub.events.filter(({ type }) => type.endsWith("tool.completed")).map((event) => [event.tool_call_id, event.status]));
  const statuses = hub.events.filter(({ type }) => type.endsWith("tool.invoked")).map((event) => ended.get(event.tool_call_id));
  return { ran, outcome: outcome instanceof Error ? outcome : await outcome, statuses };
}

for (const [name, generate] of Object.entries({ generateText, streamText })) {
  test(`AI SDK, ${name}: of two calls each is told as it ended`, async () => {
    const pay = (amount) => {
      if (amount === "bad") throw new RangeError("the account is closed");
      return "paid";
    };
    const two = await underTheSdk(await hubThat("accept"), generate, [[pays("bad", 0), pays("2.00", 1)]], { pay });
    assert.deepEqual(two, { ran: ["bad", "2.00"], outcome: "That is all.", statuses: ["error", "success"] });
  });

  test(`AI SDK, ${name}: after a stop by the user no other tool runs`, async () => {
    const hub = await hubThat("accept");
    const pay = async (_, session) => {
      await hub.answer({ session_id: session.id }, "stop");
      // It has come through here, and is no reason to wait for the agent.
      await new Promise((done) => session.signal.addEventListener("abort", done));
      return "paid";
    };
    const { ran, outcome } = await underTheSdk(hub, generate, [[pays("1.00", 0)], [looks]], { pay });
    assert.ok(outcome instanceof Stopped, String(outcome));
    // Whatever goes on behind it would have come by now.
    await new Promise((done) => setTimeout(done, 500));
    assert.deepEqual(ran, ["1.00"]);
  });

  test(`AI SDK, ${name}: where nobody answers in time nothing runs`, async () => {
    const silent = await underTheSdk(await hubThat(), generate, [[pays("1.00", 0)]], { consent: { timeoutSeconds: 1 } });
    assert.deepEqual(silent, { ran: [], outcome: "That is all.", statuses: [] });
  });
}

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
