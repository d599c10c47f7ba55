// What the installed package @aaep/agent does, with the real hub.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { after, test } from "node:test";
import { promisify } from "node:util";

import { Agent, Gate, Misuse, NotApproved, SessionOver, Stopped, Unanswered, Unavailable } from "@aaep/agent";

import { Hub } from "./hub.js";

const started = [];
after(() => Promise.all(started.map((one) => one.stop?.() ?? one.close())));

async function hubThat(answer, options) {
  const hub = await Hub.start(answer, options);
  started.push(hub);
  return hub;
}

function agentOf(hub, options = {}) {
  const agent = new Agent("bank", { url: hub.url, ...options });
  started.push(agent);
  return agent;
}

const transfer = {
  tool: "transfer", arguments: { amount: "500.00" }, action: "Transfer 500 euros.", consequence: "It cannot be called back.",
};

test("what needs consent runs only after a yes, with what was confirmed", async () => {
  const hub = await hubThat("accept");
  const result = await agentOf(hub).session("Moving money.", (session) => session.confirm(transfer).run((call) => {
    assert.deepEqual(call.arguments, { amount: "500.00" });
    assert.ok(call.key && call.by);
    call.summary = "500 euros were moved.";
    return "receipt";
  }));
  assert.equal(result, "receipt");
  const done = await hub.heard("tool.completed");
  assert.deepEqual([done.status, done.summary_normal], ["success", "500 euros were moved."]);
  await hub.heard("session.completed");
  assert.equal(hub.kinds().filter((kind) => kind === "tool.invoked").length, 1);
});

test("after a no nothing runs", async () => {
  const hub = await hubThat("reject");
  const moving = agentOf(hub).session("Moving money.", (session) => session.confirm(transfer).run(() => assert.fail("it ran")));
  await assert.rejects(moving, (error) => error instanceof NotApproved && error.reason === "rejected");
  await hub.heard("session.completed");
  assert.ok(!hub.kinds().includes("tool.invoked"));
});

test("nobody answers, and silence means no; yes only where it is easily undone", async () => {
  const hub = await hubThat();
  await agentOf(hub).session("Sorting mail.", async (session) => {
    const asked = session.confirm({ ...transfer, timeoutSeconds: 1 }).run(() => assert.fail("it ran"));
    await assert.rejects(asked, (error) => error instanceof NotApproved && error.reason === "timed_out");
    assert.throws(() => session.confirm({ ...transfer, acceptOnSilence: true }), Misuse);
    assert.throws(() => session.confirm({ ...transfer, undo: "easily", acceptOnSilence: true }), Misuse);
    const easily = { tool: "sort", action: "Sort it.", consequence: "It can be sorted back.", undo: "easily", risk: "low" };
    const by = await session.confirm({ ...easily, acceptOnSilence: true, timeoutSeconds: 1 }).run((call) => call.by);
    assert.equal(by, "timeout");
  });
});

test("a stop by the user is an error of its own, for whoever waits, and for a tool that runs", async () => {
  const hub = await hubThat("stop");
  const asked = agentOf(hub).session("Moving money.", (session) => session.confirm(transfer).run(() => assert.fail("it ran")));
  await assert.rejects(asked, Stopped);
  assert.equal((await hub.heard("session.cancelled")).cancelled_by, "user");

  const agent = agentOf(hub);
  const running = agent.session("Looking.", (session) => session.tool("look", "Looking.").run(async (call) => {
    await hub.answer({ session_id: session.id }, "stop");
    await new Promise((done) => call.signal.addEventListener("abort", done));
    assert.ok(call.signal.reason instanceof Stopped);
    return new Promise(() => {});
  }));
  await assert.rejects(running, Stopped);
});

test("a session that the hub ended is over, and was not stopped by its user", async () => {
  const hub = await hubThat("accept");
  const session = await agentOf(hub).open("Ending.");
  await session.complete("Done.");
  await assert.rejects(session.thinking("More."), (error) => error instanceof SessionOver && !(error instanceof Stopped));
});

test("progress, thinking and streaming are heard", async () => {
  const hub = await hubThat("accept");
  await agentOf(hub).session("Writing.", async (session) => {
    await session.thinking("Thinking about it.");
    await session.progress({ percent: 40, description: "Copying." });
    await session.progress({ percent: 41 });
    const output = session.output();
    for (const token of ["The rent ", "is paid", ". 👩‍", "💻"]) await output.write(token);
    assert.equal(await output.finish(), 21);
  });
  await hub.heard("session.completed");
  assert.equal(hub.events.filter((event) => event.progress).length, 1);
  assert.equal(hub.events.map((event) => event.chunk ?? "").join(""), "The rent is paid. 👩‍💻");
});

test("questions have answers of their kind", async () => {
  const hub = await hubThat((event) => (event.choices ? "2" : event.accepted_response_kinds[0] === "yes_no" ? true : "May"));
  await agentOf(hub).session("Asking.", async (session) => {
    assert.equal(await session.ask("For which month?"), "May");
    assert.equal(await session.askYesNo("Really?"), true);
    assert.equal(await session.choose("Which?", ["red", "blue"]), 1);
  });
  const silent = await hubThat();
  await agentOf(silent).session("Asking.", (session) =>
    assert.rejects(session.ask("Anybody?", { timeoutSeconds: 1 }), Unanswered));
});

test("what was done while the hub was away is no failure, and is told once the hub is back", async () => {
  const hub = await hubThat("accept");
  const agent = agentOf(hub, { patienceMs: 500 });
  const session = await agent.open("Moving money.");
  const result = await session.confirm(transfer).run(async () => {
    await hub.away();
    return "receipt";
  });
  assert.equal(result, "receipt");
  hub.process.kill("SIGCONT");
  assert.equal((await hub.heard("tool.completed")).status, "success");
  await session.complete("Done.");
  await hub.heard("session.completed");
  assert.equal(hub.kinds().filter((kind) => kind === "tool.completed").length, 1);
});

test("what is sent again is done once", async () => {
  const hub = await hubThat("accept");
  const agent = agentOf(hub, { patienceMs: 20_000 });
  const session = await agent.open("Looking.");
  await hub.away();
  const said = session.emit("state.changed", { to_state: "thinking", summary_normal: "Thinking." });
  // The first of them arrive when the hub goes on; the connection is lost meanwhile.
  setTimeout(() => hub.process.kill("SIGCONT"), 500);
  const key = agent.newKey();
  const again = () => agent.change("POST", `agent/sessions/${session.id}/events`, { type: "aaep:agent.progress.updated", progress: { percent: 3 }, summary_normal: "3 percent done." }, key);
  const twice = await Promise.all([again(), again()]);
  await said;
  assert.deepEqual(twice[0], twice[1]);
  await session.complete("Done.");
  await hub.heard("session.completed");
  assert.equal(hub.events.filter((event) => event.progress).length, 1);
});

test("a tool that fails is completed as failed, and its error comes through", async () => {
  const hub = await hubThat("accept");
  const failing = agentOf(hub).session("Counting.", (session) => session.tool("count", "Counting.").run(() => {
    throw new RangeError("password=hunter22");
  }));
  await assert.rejects(failing, RangeError);
  const done = await hub.heard("tool.completed");
  assert.deepEqual([done.status, done.summary_normal], ["error", "count failed: RangeError."]);
  await hub.heard("session.errored");
});

test("words that the hub refuses do not keep the end of a tool from being told", async () => {
  const hub = await hubThat("accept");
  const result = await agentOf(hub).session("Looking.", (session) => session.tool("look", "Looking.").run((call) => {
    call.summary = "Found \u202ehsac.";
    return "found";
  }));
  assert.equal(result, "found");
  assert.equal((await hub.heard("tool.completed")).summary_normal, "look is over; the words for it were refused.");
});

test("the snippet of the README runs", async () => {
  const readme = readFileSync(`${process.env.AAEP_REPOSITORY}/packages/typescript/agent/README.md`, "utf8");
  const snippets = readme.split("```js\n").slice(1).map((part) => part.split("```")[0]);
  assert.equal(snippets.length, 1);
  const paying = "const pay = ({ amount }, key) => console.log('paid', amount, key !== undefined);\n";
  writeFileSync("made.readme.mjs", paying + snippets[0]);
  for (const [answer, said] of [["accept", "paid 800.00 true\n"], ["reject", "nothing was paid: rejected\n"]]) {
    const hub = await hubThat(answer);
    const env = { ...process.env, AAEP_URL: hub.url };
    const { stdout } = await promisify(execFile)(process.execPath, ["made.readme.mjs"], { env });
    assert.equal(stdout, said);
  }
});

test("an agent without a hub says so, and soon", async () => {
  for (const url of ["http://127.0.0.1:9", "unix:/tmp/aaep-nobody-listens-here.sock"]) {
    const agent = new Agent("bank", { url });
    started.push(agent);
    const began = Date.now();
    await assert.rejects(agent.open("Nothing."), (error) => error instanceof Unavailable && /start a hub with/.test(error.message));
    assert.ok(Date.now() - began < 5000, `${Date.now() - began} ms`);
  }
});

test("what was done while the hub was away to the end of its session is no error, and is told", async () => {
  const hub = await hubThat("accept");
  const agent = agentOf(hub, { patienceMs: 1500 });
  const warned = [];
  const note = ({ message }) => void warned.push(message);
  process.on("warning", note);
  const result = await agent.session("Moving money.", (session) => session.confirm(transfer).run(async () => {
    await hub.away();
    return "receipt";
  }));
  assert.equal(result, "receipt");
  await new Promise((done) => setImmediate(done));
  process.off("warning", note);
  assert.ok(warned.some((text) => text.startsWith("transfer ran")) && warned.some((text) => text.startsWith("The session is done")), String(warned));
  hub.process.kill("SIGCONT");
  assert.equal((await hub.heard("tool.completed")).status, "success");
  await hub.heard("session.completed");
});

test("a question whose waiter gave up is withdrawn", async () => {
  const held = new Set();
  let hub;
  const between = createServer((near) => {
    const far = connect(Number(new URL(hub.url).port), "127.0.0.1");
    for (const one of [near, far]) {
      held.add(one);
      one.on("error", () => one.destroy());
    }
    near.pipe(far).pipe(near);
  });
  const cut = () => {
    for (const one of held) one.destroy();
  };
  after(() => (cut(), between.close()));
  const listens = (port) => new Promise((done) => between.listen(port, "127.0.0.1", done));
  await listens(0);
  const { port } = between.address();
  hub = await hubThat(undefined, { environment: { AAEP_ALLOWED_HOSTS: `127.0.0.1:${port}` } }); // nobody answers
  const agent = new Agent("bank", { url: `http://127.0.0.1:${port}`, patienceMs: 2000 });
  started.push(agent);
  const session = await agent.open("Asking.");
  const asked = assert.rejects(session.ask("For which month?"), Unavailable);
  await hub.heard("awaiting.clarification");
  await new Promise((done) => setTimeout(done, 1000)); // its waiter knows by now that it is asked
  const closed = new Promise((done) => between.close(done));
  cut();
  await closed;
  await asked;
  await listens(port);
  const settled = await hub.heard("state.changed", 2);
  assert.equal(settled.extensions?.outcome?.outcome, "cancelled", JSON.stringify(hub.events));
  await session.complete("Nothing was answered.");
});

test("a framework that is let go on learns of a stop, and people hear what nobody knows", async () => {
  const hub = await hubThat("accept");
  const held = [{ id: "a", tool: "pay", arguments: { amount: "1.00" } }, { id: "b", tool: "pay", arguments: { amount: "2.00" } }];
  const broken = agentOf(hub).session("Buying.", (session) => new Gate(session).heldBack(held, async () => {
    throw new RangeError("the model is away");
  }));
  await assert.rejects(broken, RangeError);
  await hub.heard("session.errored");
  const ended = hub.events.filter(({ type }) => type.endsWith("tool.completed"));
  assert.deepEqual(ended.map(({ status }) => status), ["timeout", "timeout"]);

  const stopped = agentOf(hub).session("Buying.", (session) => new Gate(session).heldBack(held.slice(0, 1), async () => {
    await hub.answer({ session_id: session.id }, "stop");
    return new Promise(() => {});
  }));
  await assert.rejects(stopped, Stopped);
});
