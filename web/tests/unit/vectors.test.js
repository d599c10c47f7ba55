// The inbox tells what the shared vectors want, which the Rust library tells too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Inbox } from "../../files/inbox.js";

const vectors = JSON.parse(readFileSync(new URL("../../../crates/aaep-subscriber/vectors/inbox.json", import.meta.url), "utf8"));
const START = Date.parse("2026-05-24T14:00:00Z");

/** A happening as the vectors write it. */
function written(one) {
  const { kind, agent } = one;
  if (kind === "event") return { kind, agent, event_id: one.event.event_id, critical: one.critical };
  if (kind === "silence") return { kind, agent, why: one.why, count: one.count };
  if (kind === "text") {
    const { session_id, output_id, text, ends, after_gap } = one;
    return { kind, agent, session_id, output_id, text, ends, after_gap };
  }
  if (kind === "settled") return { kind, request: { number: one.request.number }, outcome: one.outcome, announced: true };
  if (kind !== "asked") return one;
  const { number, event_id, session_id, timeout_seconds, deadline_ms, continues } = one.request;
  const request = { number, agent: one.request.agent, event_id, session_id, asks: asks(one.request), timeout_seconds,
    deadline_ms: deadline_ms - START };
  if (continues !== null) request.continues = continues;
  return { kind, request };
}

function asks({ asks: kind, action, consequence, context, risk, reversibility, silence_accepts, kinds, choices, default: fallback }) {
  if (kind === "consent") return { kind, action, consequence, risk, reversibility, silence_accepts };
  const answer = { kind, question: action, kinds, choices };
  if (context !== "") answer.context = context;
  if (fallback !== null) answer.default = fallback;
  return answer;
}

/** What happens in a step. */
function happen(inbox, state, step) {
  const now = START + step.at;
  const told = [];
  const all = step.raw !== undefined ? [step.raw].flat() : [step.message ?? []].flat().map((message) => JSON.stringify(message));
  for (const json of all) {
    if (/"type": ?"subscription\./.test(json)) {
      const { honored_capabilities = {} } = JSON.parse(json);
      state.terms = honored_capabilities;
    } else {
      told.push(...inbox.hear(json, now));
    }
  }
  if (step.attached) {
    inbox.begins(state.terms, "hub");
    inbox.doubt(now);
    told.push({ kind: "connected", hub: "hub", again: state.was === true,
      may_reply: state.terms.supports_confirmation_reply === true });
    state.was = true;
  }
  if (step.lost !== undefined) told.push({ kind: "lost", hub: "hub", why: step.lost });
  if (step.answer !== undefined && !step.refused) {
    const { number, answer } = step.answer;
    const request = inbox.waiting().find((one) => one.number === number);
    if (request) inbox.sent(request, typeof answer === "string" ? answer : "answer");
  }
  told.push(...inbox.tick(now));
  return told;
}

/** Where our client does otherwise, on purpose. */
const SENTENCES = "the page asks for whole sentences, so a hole in the numbers means nothing (D15)";
const OTHERWISE = {
  "a session is told in its order and once": SENTENCES,
  "a hole is loss where everything was to come": SENTENCES,
  "a hole so wide that nobody can say how much is missing": SENTENCES,
  "what is critical comes first": "what comes together is told at once; the dialog and the assertive region come first by themselves",
};

for (const { name, text = "sentence", steps } of vectors) {
  const skip = text !== "sentence" ? "the page always tells sentences" : OTHERWISE[name] ?? false;
  test(`the inbox: ${name}`, { skip }, () => {
    const inbox = new Inbox();
    const state = { terms: {} };
    for (const step of steps) {
      const told = happen(inbox, state, step).map(written);
      assert.deepEqual(told, step.told ?? [], `at ${step.at}: ${JSON.stringify(step).slice(0, 300)}`);
    }
  });
}
