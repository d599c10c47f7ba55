// Where the person is when a request comes, and after they answered it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { browser, hub } from "../support/demo.js";
import { Agent } from "../support/hub.js";

const MILD = { risk_level: "low", irreversible: false, reversibility: "reversible" };

async function connected() {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  return tab;
}

test("a request waits for whoever is in the middle of a word, and no letter is lost", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Interrupting.");
  await tab.to("Say something");
  const field = tab.page.getByLabel("Say something");
  await tab.keyboard.type("bal");
  await agent.confirm("Change the lock.", MILD);
  await tab.keyboard.type("ance of my account", { delay: 100 });
  assert.equal(await tab.page.getByRole("dialog").count(), 0, "it came while they were writing");
  assert.equal(await field.inputValue(), "balance of my account");
  await tab.dialog("Change the lock.");
  await tab.press("Control+Shift+7");
  await tab.noDialog();
  assert.equal((await tab.focus()).name, "Say something");
  await tab.keyboard.type(", please");
  assert.equal(await field.inputValue(), "balance of my account, please");
  await agent.end();
  await tab.close();
});

test("whoever wrote and sent it is asked at once", async () => {
  const tab = await connected();
  await tab.to("Say something");
  await tab.keyboard.type("transfer 20 euros to Ann");
  await tab.press("Enter");
  const sent = Date.now();
  await tab.page.getByRole("dialog").waitFor();
  assert.ok(Date.now() - sent < 900, `${Date.now() - sent} ms`);
  await tab.dialog("Transfer 20 euros to Ann.");
  await tab.press("Control+Shift+7");
  await tab.noDialog();
  await tab.close();
});

test("whoever was reading is there again, though nothing had the focus", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Interrupting.");
  for (const [within, heading] of [["document", "Talk to the agent"], ["aaep-subscriber", "What happened"]]) {
    // As a screen reader's own cursor does it: the selection follows, the focus does not.
    await tab.page.evaluate(([where, text]) => {
      const root = where === "document" ? document : document.querySelector(where).shadowRoot;
      document.activeElement?.blur();
      getSelection().collapse([...root.querySelectorAll("h2")].find((one) => one.textContent === text).firstChild, 0);
    }, [within, heading]);
    await agent.confirm(`Change the lock while they read ${heading}.`, MILD);
    await tab.dialog("Change the lock");
    await tab.press("Control+Shift+7");
    await tab.noDialog();
    assert.equal((await tab.focus()).name, heading);
  }
  await agent.end();
  await tab.close();
});

test("from one request to the next the focus is never nowhere", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Asking a lot.");
  await agent.confirm("First thing.", MILD);
  await tab.dialog("First thing.");
  await agent.confirm("Second thing.", MILD);
  await tab.hears("Another request came.");
  await tab.to("Reject");
  await tab.page.evaluate(() => {
    globalThis.nowhere = 0;
    const look = () => {
      if (document.activeElement === document.body) globalThis.nowhere += 1;
      requestAnimationFrame(look);
    };
    look();
  });
  await tab.press("Enter");
  await tab.dialog("Allow this? Second thing.");
  assert.match((await tab.focus()).name, /^Request 1: rejected\. Allow this\? Second thing\./);
  assert.equal(await tab.page.evaluate(() => globalThis.nowhere), 0);
  assert.equal(await tab.page.locator(".dialog").count(), 1);
  await tab.press("Control+Shift+7");
  await tab.noDialog();
  await agent.end();
  await tab.close();
});
