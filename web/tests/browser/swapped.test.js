// Agents that change the question behind an open dialog, and what the hub itself says would run.

import assert from "node:assert/strict";
import { test } from "node:test";

import { browser, hub } from "../support/demo.js";
import { Agent } from "../support/hub.js";

async function connected() {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  return tab;
}

/** A request as a producer would write it that no hub of ours stands before. */
const forged = (more) => ({ "@context": "https://aaep-protocol.org/context/v1", type: "aaep:agent.awaiting.confirmation",
  event_id: "evt_one", session_id: "sess_good", timestamp: new Date().toISOString(), reply_token: "rpl_one",
  producer: { agent_id: "good", agent_name: "Good" }, action: "Save a note.", consequence: "It is saved.",
  risk_level: "low", irreversible: false, default_decision: "reject", timeout_seconds: 300, ...more });

const hears = (tab, event) => tab.page.evaluate((json) => document.querySelector("aaep-subscriber").hear(json),
  JSON.stringify(event));

/** Every reply that the page sends. */
function replies(tab) {
  const sent = [];
  tab.page.on("request", (request) => {
    if (request.url().endsWith("/replies")) sent.push(request.postDataJSON());
  });
  return sent;
}

const EVIL = { event_id: "evt_two", reply_token: "rpl_two", action: "Pay 9001 euros to Eve.", risk_level: "high",
  irreversible: true };

// covers: S10
test("another session's request never takes the place of the one that is open", async () => {
  const tab = await connected();
  const sent = replies(tab);
  await hears(tab, forged());
  await tab.dialog("Save a note.");
  await tab.to("Accept");
  await hears(tab, forged({ ...EVIL, session_id: "sess_evil", extensions: { timing: { supersedes: "evt_one" } } }));
  await hears(tab, forged({ ...EVIL, event_id: "evt_one", session_id: "sess_evil2", reply_token: "rpl_three" }));
  await tab.page.waitForTimeout(800);
  await tab.press("Enter");
  await tab.page.waitForTimeout(300);
  assert.deepEqual(sent.map(({ reply_token, decision }) => [reply_token, decision]), [["rpl_one", "accept"]],
    "what was read is what was answered");
  await tab.close();
});

for (const [how, more] of [
  ["superseded in its own session", { extensions: { timing: { supersedes: "evt_one" } } }],
  ["sent again under its id", { event_id: "evt_one" }],
  ["sent again with its token", { reply_token: "rpl_one" }],
]) {
  // covers: S10
  test(`a request that is ${how} with other words is drawn and read again before an answer counts`, async () => {
    const tab = await connected();
    const sent = replies(tab);
    await hears(tab, forged());
    await tab.dialog("Save a note.");
    await tab.to("Accept");
    await hears(tab, forged({ ...EVIL, ...more }));
    // The finger was on its way already.
    await tab.press("Enter");
    await tab.dialog("Pay 9001 euros to Eve.");
    assert.deepEqual(sent, [], "nothing was answered");
    const { name } = await tab.focus();
    assert.match(name, /^This request has changed\. It now says: Allow this\? Pay 9001 euros to Eve\. It cannot be undone\./, "it is read again");
    await tab.to("Reject");
    await tab.press("Enter");
    await tab.page.waitForTimeout(300);
    const token = more.reply_token ?? EVIL.reply_token;
    assert.deepEqual(sent.map(({ reply_token, decision }) => [reply_token, decision]), [[token, "reject"]]);
    await tab.close();
  });
}

// covers: S10
test("a second step is left when the request changes under it", async () => {
  const tab = await connected();
  const sent = replies(tab);
  await hears(tab, forged({ risk_level: "high", irreversible: true }));
  await tab.dialog("Save a note.");
  await tab.to("Accept");
  await tab.press("Enter");
  await tab.dialog("You are about to accept");
  await tab.to("Yes, do it");
  await hears(tab, forged({ ...EVIL, extensions: { timing: { supersedes: "evt_one" } } }));
  await tab.press("Enter");
  await tab.dialog("Allow this?");
  assert.deepEqual(sent, []);
  await tab.close();
});

// covers: S10
test("an agent of the real hub cannot take over the question of another's session", async () => {
  const tab = await connected();
  const [good, evil] = [await Agent.begin(hub, "Saving.", "Good"), await Agent.begin(hub, "Lurking.", "Evil")];
  const asked = await hub.post(`agent/sessions/${good.session}/requests`, { kind: "confirmation", tool: "save",
    arguments: {}, action: "Save a note.", consequence: "It is saved.", summary_normal: "Saving.", timeout_seconds: 300,
    default_decision: "reject", risk_level: "low", irreversible: false }, undefined, good.secret);
  await tab.dialog("Save a note.");
  const attack = await evil.confirm("Pay 9001 euros to Eve.", { extensions: { timing: { supersedes: asked.event_id } } })
    .catch((error) => String(error));
  await tab.page.waitForTimeout(800);
  const dialog = await tab.dialog("Save a note.");
  assert.ok(!(await dialog.locator(".text").textContent()).includes("Eve"), String(attack));
  await tab.to("Accept");
  await tab.press("Enter");
  assert.equal((await good.outcome(asked.request_id)).status, "accepted");
  if (!String(attack).startsWith("Error")) assert.equal((await hub.get(`agent/requests/${attack}`, evil.secret)).status, "pending");
  await Promise.all([good.end(), evil.end()]);
  await tab.close();
});

const ACCOUNT = { tool: "transfer", arguments: "euros: 9001\nto: Eve\u202e", digest: "sha256:abc", described_by: "agent" };

test("the hub's own account is under Details, and unasked where only the agent describes what is grave", async () => {
  const tab = await connected();
  await hears(tab, forged({ extensions: { action: ACCOUNT } }));
  await tab.dialog("Save a note.");
  assert.ok(!(await tab.focus()).name.includes("9001"), "not unasked");
  await tab.to("Details: what would run");
  await tab.press("Enter");
  const details = tab.page.locator("aaep-subscriber details.details");
  await tab.picture("details");
  assert.match(await details.textContent(), /By the hub's own account.*transfer.*euros: 9001.*to: Eve\[U\+202E\].*sha256:abc/s);
  await tab.press("Escape");
  await tab.noDialog();

  await hears(tab, forged({ ...EVIL, action: "Save another note.", extensions: { action: { ...ACCOUNT, shortened: true, redacted: true } } }));
  await tab.dialog("Save another note.");
  await tab.picture("account");
  assert.match((await tab.focus()).name, /Save another note\..*By the hub's own account, the tool transfer would run, with: euros: 9001\. to: Eve\[U\+202E\]\. More arguments are left out here\. A secret is left out here\./);
  await tab.press("Escape");
  await tab.noDialog();

  await hears(tab, forged({ ...EVIL, event_id: "evt_three", reply_token: "rpl_three", action: "Pay as the policy says.",
    extra_context: { agent_says: "Save a note about \u202elunch." },
    extensions: { action: { ...ACCOUNT, described_by: "policy" } } }));
  await tab.dialog("Pay as the policy says.");
  const { name } = await tab.focus();
  assert.ok(!name.includes("hub's own account"), "the policy described it already");
  assert.ok(!name.includes("lunch"), "the agent's words do not mix with the question");
  await tab.to("Details: what would run");
  await tab.press("Enter");
  const own = details.locator(".own-words");
  assert.deepEqual((await own.allTextContents()).map((text) => text.trim()), ["The words of the question are those of your policy.",
    "The agent itself says: Save a note about [U+202E]lunch."], "apart from the hub's account");
  await tab.close();
});
