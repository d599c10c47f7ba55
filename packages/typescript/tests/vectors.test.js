// What the package sends is what the Rust library sends: packages/vectors/agent.json.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import { Agent, NotApproved, Stopped, redact } from "@aaep/agent";

const SESSION = "sess_d1d5f0e9a71ff3250000000000000001";
const EVENT = "evt_d1d5f0e9a71ff3250000000000000002";
const CALL = "call_d1d5f0e9a71ff3250000000000000003";
const ANSWERS = { freetext: "May", yes_no: true, numeric: 2.5, multiple_choice: "2" };

const read = (name) => JSON.parse(readFileSync(`${process.env.AAEP_REPOSITORY}/packages/vectors/${name}.json`, "utf8"));
const vectors = read("agent");

/** What people say to what comes next. */
let people = "accepted";

/** What a tool throws. */
class Failed extends Error {
  name = "Failed";
}

/** Without what differs from run to run. */
function tidy(body) {
  for (const name of ["tool_call_id", "output_id"]) if (name in body) body[name] = name;
  if ("duration_ms" in body) body.duration_ms = 0;
  return body;
}

function recorder(sent) {
  let answered;
  const state = (status, more = {}) => ({
    request_id: EVENT, event_id: EVENT, session_id: SESSION, digest: "ab", deadline: "2026-05-24T14:22:11.342Z", status, ...more,
  });
  return createServer(async (request, response) => {
    const path = request.url.replace("/aaep/v1/", "");
    const reply = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const stopped = people === "stopped" ? { error: "stopped", text: "The user stopped this session." } : undefined;
    if (request.method === "GET") {
      if (stopped) return reply(404, stopped);
      if (path.startsWith("agent/sessions/")) return setTimeout(() => reply(200, { session_id: SESSION, state: "thinking" }), 2000).unref();
      return reply(200, answered);
    }
    let text = "";
    for await (const piece of request) text += piece;
    const body = JSON.parse(text);
    assert.ok(request.headers["idempotency-key"] && request.headers["aaep-session-secret"]);
    sent.push({ path: path.replace(SESSION, "SESSION").replace(EVENT, "REQUEST"), body: tidy(body) });
    if (path.endsWith("/requests")) {
      const response_kind = body.accepted_response_kinds?.[0];
      answered = state(people, { decided_by: "ann", ...(response_kind && { response: ANSWERS[response_kind] }) });
      return reply(201, state("pending"));
    }
    if (stopped) return reply(404, stopped);
    if (path.endsWith("/invoke")) return reply(200, { tool_call_id: CALL, arguments: body.arguments });
    if (path.endsWith("/events")) return reply(201, { event_id: EVENT, sequence_number: 1 });
    return reply(201, { session_id: SESSION });
  });
}

const CALLS = {
  thinking: (session, given) => session.thinking(given),
  progress: (session, given) => session.progress(given),
  tool: (session, { name, summary, ...options }, how) => session.tool(name, summary, options).run((call) => ran(call, how)),
  confirm: (session, given, how) => session.confirm(given).run((call) => ran(call, how)),
  ask: (session, { question, ...options }) => session.ask(question, options),
  askYesNo: (session, { question }) => session.askYesNo(question),
  askNumber: (session, { question }) => session.askNumber(question),
  choose: (session, { question, choices }) => session.choose(question, choices),
  output: async (session, given) => {
    const output = session.output();
    await output.write(given);
    await output.finish();
  },
};

/** What is done as a tool. */
function ran(call, { done, failed, throws }) {
  call.summary = done;
  call.failed = failed;
  if (throws) throw new Failed();
}

// A listener too many, on a connection that is used again and again, say.
process.on("warning", (warning) => {
  throw warning;
});

test("what is sent is what the vectors want", async () => {
  const sent = [];
  const server = recorder(sent);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const agent = new Agent("recorded", { url: `http://127.0.0.1:${server.address().port}` });
  try {
    await agent.session("Moving money.", async (session) => {
      assert.deepEqual(sent, [{ path: "agent/sessions", body: {
        producer: { agent_id: "recorded" }, summary_normal: "Moving money.", language: "en",
      } }]);
      assert.ok(vectors.length > 10);
      for (const vector of vectors) {
        sent.length = 0;
        const { how = {} } = vector;
        people = how.answer ?? "accepted";
        const wanted = { rejected: NotApproved, stopped: Stopped }[how.answer] ?? (how.throws && Failed);
        const made = CALLS[vector.call](session, vector.with, how);
        await (wanted ? assert.rejects(made, wanted) : made);
        assert.deepEqual(sent, vector.sent, JSON.stringify(vector.with));
      }
    });
    assert.equal(sent.length, 1, "after a stop nothing more is said");
  } finally {
    await agent.close();
    server.closeAllConnections();
    server.close();
  }
});

test("what is left of a text without its secrets is what the Rust library leaves", () => {
  const texts = read("redaction");
  assert.ok(texts.length > 300);
  for (const { text, redacted } of texts) assert.equal(redact(text), redacted, text);
  assert.ok(texts.some(({ text, redacted }) => text === redacted) && texts.some(({ text, redacted }) => text !== redacted));
  // However long, and however many beginnings of secrets it has.
  const began = Date.now();
  for (const part of ["sk-", "token:", "4111 ", "password=\"", "Bearer ", "authorization: basic "]) redact(part.repeat(20_000 / part.length));
  assert.ok(Date.now() - began < 20_000);
});

test("no secret gets out of an output, however it is torn", async () => {
  const sent = [];
  people = "accepted";
  const server = recorder(sent);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const agent = new Agent("recorded", { url: `http://127.0.0.1:${server.address().port}` });
  const line = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w\n";
  const cases = [
    [["My key is sk", "-abcd1234", "efgh5678", "ijkl and", " more"], "My key is [key removed] and more"],
    [["Pay with 4111 ", "1111 1111", " 1111 ", "now. The password: ", "hunter2", " is mine."],
      "Pay with [card number removed] now. The password: [password removed] is mine."],
    [["-----BEGIN RSA PRIVATE KEY-----\n", ...Array(40).fill(line), "QUJD\n-----END RSA PRIVATE KEY-----\n", "That was it."],
      "[private key removed]\n-----END RSA PRIVATE KEY-----\nThat was it."],
  ];
  try {
    await agent.session("Writing.", async (session) => {
      for (const [pieces, wanted] of cases) {
        sent.length = 0;
        const output = session.output();
        for (const piece of pieces) {
          await output.write(piece);
          // Longer than text waits for more.
          if (pieces.length < 10) await new Promise((done) => setTimeout(done, 130));
        }
        await output.finish();
        const chunks = sent.map(({ body }) => body);
        assert.equal(chunks.map(({ chunk }) => chunk).join(""), wanted);
        let position = 0;
        for (const { chunk, position: at } of chunks) {
          assert.equal(at, position);
          position += [...chunk].length;
        }
      }
    });
  } finally {
    await agent.close();
    server.closeAllConnections();
    server.close();
  }
});
