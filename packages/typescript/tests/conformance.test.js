// An agent of @aaep/agent, with the real hub, before the conformance suite at level 3. Its report is kept in
// docs/conformance, and compared with what is kept; with AAEP_REPORTS=write it is replaced.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";

import { Agent, NotApproved } from "@aaep/agent";

const KEPT = join(process.env.AAEP_REPOSITORY, "docs/conformance");
const PEOPLE = [["owner", "accessibility_consumer", "ann"], ["agent", "agent", "ann"], ["stranger", "accessibility_consumer", "bob"]];

/** Everything that runs for a test, ended with it. */
const running = [];

function started(program, args, options = {}) {
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], ...options });
  running.push(child);
  return child;
}

/** A hub that knows these people, in this directory. */
async function hub(directory) {
  const people = PEOPLE.map(([name, role, user]) => {
    writeFileSync(join(directory, name), `aaep_${name.padEnd(43, "x")}\n`, { mode: 0o600 });
    return `[[principals]]\nname = "${name}"\nrole = "${role}"\nuser = "${user}"\ntoken_file = "${join(directory, name)}"\n`;
  });
  writeFileSync(join(directory, "aaep.toml"), people.join(""));
  const args = ["hub", "--config", join(directory, "aaep.toml"), "--ephemeral", "--listen", "127.0.0.1:0"];
  const env = { PATH: process.env.PATH, HOME: directory, AAEP_DEVELOPMENT__OWN_REPLIES: "true", AAEP_UNIX_SOCKET__ENABLED: "false" };
  const child = started(process.env.AAEP_PROGRAM, args, { env, stdio: ["ignore", "pipe", "ignore"] });
  let url;
  for await (const line of createInterface({ input: child.stdout })) {
    url = /^Listening: (\S+)/.exec(line)?.[1] ?? url;
    if (line.startsWith("Ready.")) break;
  }
  child.stdout.resume();
  return url;
}

const TRANSFER = {
  tool: "transfer", arguments: { euros: "20", to: "Ann" }, action: "Transfer 20 euros to Ann.", consequence: "The money is gone.",
};

async function stream(session, pieces) {
  const output = session.output();
  for (const piece of pieces) await output.write(piece);
  await output.finish();
}

/** What the agent does when it is asked for this. */
async function play(session, text) {
  switch (text) {
    case "ask me something":
      return session.ask("Where are you?");
    case "three sentences":
      return stream(session, ["One. ", "Two. ", "Three."]);
    case "help":
      return stream(session, Array.from({ length: 40 }, (_, n) => `Sentence number ${n} of many. `));
    case "a long job":
      for (const percent of [20, 60, 90]) await session.progress({ percent });
      return;
    case "fail":
      return session.fail("It failed.");
    case "give up":
      return session.cancel("Given up.");
    case "balance":
      return session.tool("balance", "Asking the bank.").run(() => "120");
    default:
  }
  const seconds = text.includes("1 second") ? 1 : 300;
  const asked = session.confirm({ ...TRANSFER, timeoutSeconds: seconds }).run(() => "moved");
  if (!text.includes("take it back")) return asked;
  asked.catch(() => undefined);
  await pause(500);
  return session.cancel("It is no longer needed.");
}

/** Where the suite begins sessions of the agent; the manifest is the hub's. */
async function door(agent, url) {
  const server = createServer(async (asked, answer) => {
    if (asked.method === "GET") {
      const manifest = await fetch(new URL(asked.url, url));
      return answer.writeHead(manifest.status).end(await manifest.text());
    }
    let body = "";
    for await (const piece of asked) body += piece;
    const session = await agent.open("Trying something.");
    answer.end(JSON.stringify({ session_id: session.id }));
    const text = JSON.parse(body).user_message;
    try {
      await play(session, text);
      if (!["fail", "give up"].includes(text) && !text.includes("take it back")) await session.complete("Done.");
    } catch (error) {
      if (!(error instanceof NotApproved)) throw error;
      await session.complete("It is not done.");
    }
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return server;
}

// covers: V3
test("an agent of this package conforms at level 3", { timeout: 170_000 }, async () => {
  const directory = mkdtempSync(join(tmpdir(), "aaep-conformance-"));
  let server;
  const token = `aaep_${"agent".padEnd(43, "x")}`;
  let agent;
  try {
    const url = await hub(directory);
    agent = new Agent("conformance", { url, token, trustLoopback: true });
    server = await door(agent, url);
    const suite = started(process.env.AAEP_PROGRAM, [
      "conformance", "producer", url, "--level", "3", "--start", "sessions", "--control", `http://127.0.0.1:${server.address().port}`,
      "--token-file", join(directory, "owner"), "--stranger-token-file", join(directory, "stranger"), "--trust-loopback",
    ]);
    const over = new Promise((ended) => suite.on("exit", ended));
    let report = "";
    for await (const piece of suite.stdout) report += piece;
    assert.equal(await over, 0, report);
    const lasting = report.replaceAll(url, "an agent of @aaep/agent").replace(/ not exercised, in .*/, "").replace(/, in this report of.*/, "");
    const place = join(KEPT, "typescript.txt");
    if (process.env.AAEP_REPORTS === "write") {
      mkdirSync(KEPT, { recursive: true });
      writeFileSync(place, lasting);
    }
    assert.equal(readFileSync(place, "utf8"), lasting);
  } finally {
    server?.closeAllConnections();
    server?.close();
    for (const child of running) child.kill();
    await agent?.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
