// The inbox: once each, in sentences, bounded, and what became of requests.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Frames } from "../../files/connection.js";
import { Inbox, split } from "../../files/inbox.js";

const NOW = Date.parse("2026-11-01T12:00:00Z");
let last = 0;

/** An event as JSON. */
function event(type, payload = {}, session = "sess_1") {
  last += 1;
  return JSON.stringify({ "@context": "https://aaep-protocol.org/context/v1", type: `aaep:agent.${type}`,
    event_id: `evt_${last}`, session_id: session, timestamp: "2026-11-01T12:00:00.000Z",
    producer: { agent_id: "a", agent_name: "A" }, ...payload });
}

const asks = (payload) => event("awaiting.confirmation", { action: "Do it.", consequence: "Done.", reply_token: "rpl_1",
  timeout_seconds: 60, default_decision: "reject", ...payload });
const kinds = (happenings) => happenings.map((one) => one.kind);
const idOf = (json) => JSON.parse(json).event_id;

// covers: H24
test("an event is told once", () => {
  const inbox = new Inbox();
  const started = event("session.started", { summary_normal: "Begun." });
  assert.deepEqual(kinds(inbox.hear(started, NOW)), ["event"]);
  assert.deepEqual(inbox.hear(started, NOW), []);
});

// covers: D10
test("what a request does not say counts as the worst", () => {
  const [{ request }] = new Inbox().hear(asks(), NOW);
  assert.equal(request.risk, "high");
  assert.equal(request.reversibility, "irreversible");
  const [mild] = new Inbox().hear(asks({ risk_level: "low", irreversible: false }), NOW);
  assert.equal(mild.request.reversibility, "reversible");
});

// covers: C25, D30
test("an outcome is the user's own, or somebody else's", () => {
  for (const [own, word, outcome] of [["accept", "accepted", "accepted"], [null, "accepted", "accepted_elsewhere"],
    ["accept", "rejected", "rejected_elsewhere"], ["reject", "timed_out", "timed_out"], [null, "nonsense", "gone"]]) {
    const inbox = new Inbox();
    const asked = asks();
    const [{ request }] = inbox.hear(asked, NOW);
    if (own) inbox.sent(request, own);
    const resolved = event("state.changed", { from_state: "awaiting_input", to_state: "thinking",
      extensions: { outcome: { request_event_id: idOf(asked), outcome: word } } });
    const told = inbox.hear(resolved, NOW);
    assert.deepEqual(told.map((one) => [one.kind, one.outcome]), [["settled", outcome]]);
    assert.equal(inbox.waiting().length, 0);
  }
});

// covers: D42
test("a no with a wrong clock is told as one", () => {
  for (const [outcome, became] of [["cancelled", "wrong_clock"], ["accepted", "accepted_elsewhere"]]) {
    const inbox = new Inbox();
    const asked = asks();
    inbox.hear(asked, NOW);
    const extensions = { outcome: { request_event_id: idOf(asked), outcome, reason: "wrong_clock" } };
    const [settled] = inbox.hear(event("state.changed", { from_state: "awaiting_input", to_state: "thinking", extensions }), NOW);
    assert.equal(settled.outcome, became);
  }
});

// covers: D32
test("more time continues a request under its number", () => {
  const inbox = new Inbox();
  const asked = asks();
  inbox.hear(asked, NOW);
  const longer = asks({ reply_token: "rpl_2", timeout_seconds: 600, extensions: { timing: { supersedes: idOf(asked) } } });
  const [settled, again] = inbox.hear(longer, NOW);
  assert.equal(settled.outcome, "superseded");
  assert.equal(again.request.continues, 1);
});

const timing = (supersedes) => ({ extensions: { timing: { supersedes } } });

// covers: S10, D32
test("a request is superseded within its session only, and keeps its number only while it asks the same", () => {
  const inbox = new Inbox();
  const asked = asks();
  const [{ request }] = inbox.hear(asked, NOW);
  const foreign = event("awaiting.confirmation", { action: "Pay Eve.", reply_token: "rpl_2", timeout_seconds: 60,
    ...timing(idOf(asked)) }, "sess_2");
  const [other, ...rest] = inbox.hear(foreign, NOW);
  assert.deepEqual([other.kind, other.request.continues, other.request.shown_number, rest.length], ["asked", null, 2, 0]);
  assert.ok(inbox.waiting().includes(request), "the other session's request still waits");

  const longer = asks({ reply_token: "rpl_3", timeout_seconds: 600, ...timing(idOf(asked)) });
  const [, same] = inbox.hear(longer, NOW);
  assert.deepEqual([same.request.continues, same.request.changed, same.request.shown_number], [1, false, 1]);
  for (const swap of [{ action: "Pay Eve." }, { consequence: "Gone." }, { risk_level: "low" }, { irreversible: false },
    { default_decision: "accept" }, { producer: { agent_id: "a", agent_name: "B" } }, { extensions: { timing:
      { supersedes: idOf(longer) }, action: { tool: "pay", arguments: "to: Eve" } } }]) {
    const fresh = new Inbox();
    fresh.hear(longer, NOW);
    const [, changed] = fresh.hear(asks({ reply_token: "rpl_4", ...timing(idOf(longer)), ...swap }), NOW);
    assert.equal(changed.request.changed, true, JSON.stringify(swap));
    assert.equal(changed.request.shown_number, 2, "another question has another number");
  }
});

// covers: S10
test("an event id or a token that comes again with other words is asked anew, in its own session", () => {
  const inbox = new Inbox();
  const asked = asks();
  const [{ request }] = inbox.hear(asked, NOW);
  inbox.sent(request, "accept");
  assert.deepEqual(inbox.hear(asked, NOW), [], "the same again is no news");
  const swapped = JSON.stringify({ ...JSON.parse(asked), action: "Pay Eve." });
  const [again] = inbox.hear(swapped, NOW);
  assert.deepEqual([again.request.changed, again.request.number, again.request.action], [true, 1, "Pay Eve."]);
  assert.equal(inbox.answered.size, 0, "an answer to the old words is none to the new ones");
  assert.deepEqual(inbox.waiting(), [again.request]);
  const [token] = inbox.hear(asks({ action: "Pay Ivan." }), NOW);
  assert.deepEqual([token.request.changed, token.request.number, inbox.waiting().length], [true, 1, 1]);

  const [elsewhere] = inbox.hear(JSON.stringify({ ...JSON.parse(asked), session_id: "sess_2" }), NOW);
  assert.deepEqual([elsewhere.request.number, inbox.waiting().length], [2, 2], "ids count within their session");
  const lie = event("state.changed", { extensions: { outcome: { request_event_id: token.request.event_id, outcome: "accepted" } } },
    "sess_2");
  inbox.hear(lie, NOW);
  assert.equal(inbox.waiting().length, 2, "no session settles another's request");
});

test("the hub's own account is read apart from the agent's words", () => {
  const action = { tool: "transfer", arguments: "euros: 9001\nto: Eve", digest: "sha256:1", described_by: "agent", redacted: true };
  const [{ request }] = new Inbox().hear(asks({ extensions: { action } }), NOW);
  assert.deepEqual(request.account, { tool: "transfer", arguments: "euros: 9001\nto: Eve", digest: "sha256:1",
    by_policy: false, shortened: false, redacted: true });
  for (const none of [null, 3, "x", [], {}, { tool: 7 }]) {
    assert.equal(new Inbox().hear(asks({ extensions: { action: none } }), NOW)[0].request.account, null);
  }
});

// covers: C25
test("a request ends with its session, with its time, or when nobody knows it any more", () => {
  const inbox = new Inbox();
  inbox.hear(asks(), NOW);
  assert.equal(inbox.hear(event("session.completed", { summary_normal: "Over." }), NOW)[0].outcome, "cancelled");
  inbox.hear(asks(), NOW);
  inbox.begins({ supported_extensions: ["urn:aaep-rs:outcome:v1"] }, "hub");
  assert.deepEqual(inbox.tick(NOW + 60_000), []);
  assert.equal(inbox.tick(NOW + 65_001)[0].outcome, "timed_out");
  const asked = asks();
  inbox.hear(asked, NOW);
  inbox.begins({}, "hub");
  inbox.doubt(NOW);
  inbox.hear(asked, NOW);
  assert.deepEqual(inbox.tick(NOW + 10_001), [], "it came again");
  inbox.doubt(NOW);
  assert.equal(inbox.tick(NOW + 10_001)[0].outcome, "gone");
});

// covers: I32
test("nothing that comes late brings a session back that ended", () => {
  const inbox = new Inbox();
  inbox.hear(event("session.started", { summary_normal: "Tidying." }), NOW);
  inbox.hear(event("session.errored", { error_category: "unknown", summary_normal: "Failed." }), NOW);
  const late = event("tool.completed", { tool: "x", status: "timeout", summary_normal: "No end." });
  assert.equal(inbox.hear(late, NOW).length, 1, "it is told all the same");
  assert.deepEqual(inbox.running(), []);
});

// covers: I32
test("a session that a snapshot does not speak of is over, and one that it speaks of is not", () => {
  const inbox = new Inbox();
  const start = event("session.started", { summary_normal: "Tidying." });
  inbox.hear(start, NOW);
  inbox.doubt(NOW);
  inbox.hear(start, NOW);
  inbox.tick(NOW + 10_001);
  assert.equal(inbox.running().length, 1);
  inbox.doubt(NOW);
  inbox.tick(NOW + 10_001);
  assert.deepEqual(inbox.running(), []);
});

// covers: I32
test("a session that was believed to be over goes on when it is heard of again", () => {
  const inbox = new Inbox();
  const start = event("session.started", { summary_normal: "Tidying." });
  inbox.hear(start, NOW);
  inbox.attached(false, NOW);
  assert.deepEqual(kinds(inbox.tick(NOW + 10_001)), ["over"], "and that is told");
  assert.deepEqual(inbox.running(), []);
  assert.deepEqual(kinds(inbox.hear(start, NOW + 10_002)), ["event"]);
  assert.equal(inbox.running().length, 1);
});

// covers: I32
test("a doubt outlives a connection that breaks while things are told", () => {
  const inbox = new Inbox();
  const starts = ["sess_1", "sess_2"].map((id) => event("session.started", { summary_normal: "Tidying." }, id));
  for (const start of starts) inbox.hear(start, NOW);
  inbox.attached(false, NOW);
  inbox.lost();
  inbox.tick(NOW + 60_000);
  assert.equal(inbox.running().length, 2, "nobody was there to speak of them");
  inbox.attached(true, NOW + 60_000);
  inbox.hear(starts[1], NOW + 60_000);
  inbox.tick(NOW + 70_001);
  assert.deepEqual(inbox.running().map(({ id }) => id), ["sess_2"]);
});

// covers: T19
test("text is told by the sentence, and what is missing is said", () => {
  const inbox = new Inbox();
  inbox.hear(event("session.started"), NOW);
  const chunk = (text, position, complete = false) => inbox.hear(event("output.streaming",
    { chunk: text, position, complete, output_id: "out_1" }), NOW);
  assert.deepEqual(chunk("One. Tw", 0).map((one) => one.text), ["One. "]);
  assert.deepEqual(chunk("o", 7), []);
  assert.deepEqual(chunk(". Three", 20).map((one) => [one.text, one.after_gap]), [["Two", false], [". ", true]]);
  assert.deepEqual(chunk("Three is", 22), [], "what was heard is not told again");
  assert.deepEqual(chunk(" last", 30, true).map((one) => [one.text, one.ends]), [["Three is last", true]]);
  assert.deepEqual(split("One. Two! 三。四？"), ["One.", "Two!", "三。", "四？"]);
});

// covers: S3, T28
test("a flood is thinned and counted, and what is critical always comes", () => {
  const inbox = new Inbox();
  let told = 0;
  let silent = 0;
  for (let at = 0; at < 5000; at += 1) {
    for (const one of inbox.hear(event("state.changed", { to_state: "x" }), NOW + at)) {
      if (one.kind === "event") told += 1;
      else silent += one.count;
    }
  }
  const errored = inbox.hear(event("session.errored", { summary_normal: "No.", error_category: "unknown" }), NOW + 5000);
  assert.ok(errored.some((one) => one.kind === "event" && one.critical));
  for (const one of inbox.tick(NOW + 20_000)) silent += one.count;
  assert.ok(told < 1600, `${told}`);
  assert.equal(told + silent, 5000);
});

test("nothing grows without bound", () => {
  const inbox = new Inbox();
  for (let at = 0; at < 20_000; at += 1) {
    inbox.hear(event("session.started", {}, `sess_${at}`), NOW + at * 10);
    inbox.hear(event("output.streaming", { chunk: "never ends ", position: 0 }, `sess_${at}`), NOW + at * 10);
  }
  for (let at = 0; at < 500; at += 1) inbox.hear(asks({ reply_token: `rpl_${at}` }), NOW);
  assert.equal(inbox.memory.known.size, 16_384);
  assert.ok(inbox.sessions.size <= 256);
  assert.equal(inbox.open.size, 256);
});

// covers: E6, E26, V2
test("whatever comes, nothing breaks", () => {
  const inbox = new Inbox();
  for (const json of ["", "null", "[]", "3", "{", "{}", '{"type":"x"}', '{"type":3,"event_id":"e","session_id":"s"}',
    '{"type":"__proto__","event_id":"constructor","session_id":"toString","producer":null,"extensions":null}',
    event("awaiting.confirmation", { reply_token: 7, choices: 3, extensions: [] }),
    event("awaiting.clarification", { reply_token: "rpl_9", choices: [null, 3, { value: 3 }], accepted_response_kinds: "x",
      timeout_seconds: "x", timestamp: {}, question: null }),
    event("output.streaming", { chunk: {}, position: "x" }), event("progress.updated", { progress: "x" })]) {
    inbox.hear(json, NOW);
  }
  assert.equal(inbox.waiting().length, 1);
});

test("server-sent events are read whatever the pieces", () => {
  const text = ":hi\n\nevent: aaep.event\nid: evt_1\ndata: {\"a\":\ndata: 1}\n\nid:evt_2\r\ndata:x\r\n\r\ndata: ignored";
  for (let size = 1; size < text.length; size += 1) {
    const heard = [];
    const frames = new Frames(({ id, data }) => heard.push([id, data]));
    for (let at = 0; at < text.length; at += size) frames.push(text.slice(at, at + size));
    assert.deepEqual(heard, [["evt_1", '{"a":\n1}'], ["evt_2", "x"]], `${size}`);
  }
});
