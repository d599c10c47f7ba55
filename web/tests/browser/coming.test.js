// A request comes and goes: what a screen reader would trip over is not there.

import assert from "node:assert/strict";
import { test } from "node:test";

import { safe } from "../../files/safe.js";
import { browser, hub } from "../support/demo.js";
import { Agent } from "../support/hub.js";

const MILD = { risk_level: "low", irreversible: false, reversibility: "reversible", consequence: "It is gone." };

test("while a request comes nothing else is drawn, and what did not change is not drawn anew", async () => {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  const agent = await Agent.begin(hub, "Tidying.");
  await tab.hears("Tidying.");
  await tab.page.evaluate(() => {
    const { shadowRoot } = document.querySelector("aaep-subscriber");
    globalThis.order = [];
    const names = { childList: true, characterData: true, subtree: true };
    new MutationObserver((changes) => {
      for (const { target } of changes) globalThis.order.push(target.className || target.nodeName);
    }).observe(shadowRoot.querySelector(".main"), names);
    shadowRoot.addEventListener("focusin", () => globalThis.order.push("focus"));
    globalThis.state = shadowRoot.querySelector(".state").firstChild;
  });
  await agent.confirm("Delete file number 100.", MILD);
  await tab.dialog("file number 100");
  const order = await tab.page.evaluate(() => globalThis.order);
  assert.equal(order[0], "focus", "nothing is drawn before the focus");
  assert.ok(order.includes("waiting"), `the list of requests follows: ${order}`);
  await tab.press("Control+Shift+7");
  await tab.hears("rejected");
  await tab.noDialog();
  const same = await tab.page.evaluate(() => globalThis.state.isConnected);
  assert.ok(same, "it is still connected, and that line was left alone");
  await agent.end();
  await tab.close();
});

test("a dialog gets the focus only when it was drawn, however late that is", async () => {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  await tab.page.evaluate(() => {
    globalThis.order = [];
    globalThis.requestAnimationFrame = (draw) => setTimeout(() => {
      globalThis.order.push("drawn");
      draw(performance.now());
    }, 500);
    document.querySelector("aaep-subscriber").shadowRoot.addEventListener("focusin", () => globalThis.order.push("focus"));
  });
  const agent = await Agent.begin(hub, "Tidying.");
  await tab.hears("Tidying.");
  await tab.page.evaluate(() => globalThis.order.splice(0));
  await agent.confirm("Delete file number 102.", MILD);
  await tab.dialog("file number 102");
  await tab.page.waitForFunction(() => globalThis.order.includes("focus"));
  assert.equal((await tab.page.evaluate(() => globalThis.order))[0], "drawn");
  await agent.end();
  await tab.close();
});

test("a screen reader's own cursor is not left behind a dialog that goes", async () => {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  const agent = await Agent.begin(hub, "Tidying.");
  await agent.confirm("Delete file number 101.", MILD);
  await tab.dialog("file number 101");
  const ranges = () => tab.page.evaluate(() => getSelection().rangeCount);
  await tab.page.evaluate(() => {
    const heading = document.querySelector("aaep-subscriber").shadowRoot.querySelector(".dialog h2");
    getSelection().setBaseAndExtent(heading, 0, heading, 0);
  });
  assert.equal(await ranges(), 1, "it reads in the dialog");
  await tab.press("Control+Shift+7");
  await tab.hears("rejected");
  await tab.noDialog();
  assert.equal(await ranges(), 0);
  await agent.end();
  await tab.close();
});

const TEXTS = {
  "16,384 characters": `${"word ".repeat(3275)}ends now.`,
  "emoji": "Send 👩\u200d🚀👍🏽 to Ann 🇳🇬",
  "combining marks": `Pay x${"\u0301".repeat(40)} and n\u0303`,
  "control characters": "nul \0 escape \u001b[2J bell \u0007 line\u0085end \u009b31m x",
  "markup of speech": "<speak><break time=\"9s\"/>&amp; <mark name='x'/></speak> now",
  "a single dot": "go\r\n.\r\nSTOP ALL",
};

for (const [kind, action] of Object.entries(TEXTS)) {
  // covers: D34
  test(`a request with ${kind} is asked whole and can be answered`, async () => {
    const tab = await browser.tab();
    await tab.open(hub.origin);
    const event = { "@context": "https://aaep-protocol.org/context/v1", type: "aaep:agent.awaiting.confirmation", event_id: "evt_1",
      session_id: "sess_x", timestamp: new Date().toISOString(), producer: { agent_id: "odd", agent_name: "Odd" },
      action, consequence: "It is gone.", reply_token: "rpl_odd", timeout_seconds: 300, urgency: "critical",
      default_decision: "reject", risk_level: "low", reversibility: "reversible" };
    // As a hub would not let it pass, straight into the element's ears.
    await tab.page.evaluate((json) => document.querySelector("aaep-subscriber").hear(json), JSON.stringify(event));
    await tab.dialog("It is gone.");
    const bare = (text) => text.replace(/\s+/gu, "");
    const { role, name } = await tab.focus();
    assert.equal(role, "dialog");
    assert.ok(bare(name).includes(bare(safe(action).text)), `${kind}: ${name.slice(0, 200)}`);
    const sent = tab.page.waitForRequest((request) => request.url().endsWith("/replies"));
    await tab.press("Control+Shift+7");
    const { reply_token, decision } = (await sent).postDataJSON();
    assert.deepEqual([reply_token, decision], ["rpl_odd", "reject"]);
    assert.deepEqual(tab.errors, []);
    await tab.close();
  });
}
