// What the package sends is what the Rust library sends: packages/vectors/agent.json.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { test } from "node:test";

import { Agent } from "@aaep/agent";

const SESSION = "sess_d1d5f0e9a71ff3250000000000000001";
const EVENT = "evt_d1d5f0e9a71ff3250000000000000002";
const CALL = "call_d1d5f0e9a71ff3250000000000000003";
const ANSWERS = { freetext: "May", yes_no: true, numeric: 2.5, multiple_choice: "2" };

const vectors = JSON.parse(readFileSync(`${process.env.AAEP_REPOSITORY}/packages/vectors/agent.json`, "utf8"));

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
    if (request.method === "GET") {
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
      answered = state("accepted", { decided_by: "ann", ...(response_kind && { response: ANSWERS[response_kind] }) });
      return reply(201, state("pending"));
    }
    if (path.endsWith("/invoke")) return reply(200, { tool_call_id: CALL, arguments: body.arguments });
    if (path.endsWith("/events")) return reply(201, { event_id: EVENT, sequence_number: 1 });
    return reply(201, { session_id: SESSION });
  });
}

const CALLS = {
  thinking: (session, given) => session.thinking(given),
  progress: (session, given) => session.progress(given),
  tool: (session, { name, summary, ...options }) => session.tool(name, summary, options).run(() => undefined),
  confirm: (session, given) => session.confirm(given).run(() => undefined),
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

// A listener too many, on a connection that is used again and again, say.
process.on("warning", (warning) => {
  throw warning;
});

test("what is sent is what the vectors want", async () => {
  const sent = [];
  const server = recorder(sent);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const agent = new Agent("recorded", { url: `http://127.0.0.1:${server.address().port}` });
  await agent.session("Moving money.", async (session) => {
    assert.deepEqual(sent, [{ path: "agent/sessions", body: {
      producer: { agent_id: "recorded" }, summary_normal: "Moving money.", language: "en",
    } }]);
    assert.ok(vectors.length > 10);
    for (const vector of vectors) {
      sent.length = 0;
      await CALLS[vector.call](session, vector.with);
      assert.deepEqual(sent, vector.sent, JSON.stringify(vector.with));
    }
  });
  await agent.close();
  server.closeAllConnections();
  server.close();
});
