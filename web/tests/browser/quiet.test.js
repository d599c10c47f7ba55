// What is announced and what is not, keys of one's own, and where the focus is.

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

/** Opens a panel of settings. */
async function panel(tab, id) {
  await tab.page.locator(`aaep-subscriber #${id} summary`).focus();
  await tab.press("Enter");
}

const count = async (tab, part) => (await tab.heard()).join("\n").split(part).length - 1;

test("who wants to hear only what asks them hears no chatter, and the log has it", async () => {
  const tab = await connected();
  await panel(tab, "settings");
  await tab.page.locator("aaep-subscriber #setting-hear").selectOption("asks");
  const agent = await Agent.begin(hub, "Chattering.");
  await agent.emit("progress.updated", { progress: { percent: 10 }, summary_normal: "A tenth." });
  await agent.confirm("Go on.", MILD);
  await tab.dialog("Go on.");
  await tab.press("Control+Shift+9");
  await tab.hears("Request 1: accepted.");
  await tab.noDialog();
  await agent.end("Chattered.");
  await tab.page.locator("aaep-subscriber .sessions").getByText("Chattered.").waitFor();
  await tab.page.waitForTimeout(1500);
  const heard = await tab.heard();
  assert.ok(!heard.some((text) => /Chatter|tenth|percent/.test(text)), JSON.stringify(heard));
  await tab.close();
});

test("of many reports only the latest is said, and none while a request is open", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Counting.");
  await tab.hears("Counting.");
  await agent.confirm("Go on counting.", MILD);
  await tab.dialog("Go on counting.");
  for (let step = 1; step <= 40; step += 1) {
    await agent.emit("progress.updated", { progress: { step, total_steps: 40 }, summary_normal: `Step ${step} of 40.` });
  }
  await tab.page.waitForTimeout(3000);
  assert.equal(await count(tab, "of 40."), 0, "chatter waits");
  await tab.press("Control+Shift+7");
  await tab.hears("Step 40 of 40.");
  assert.equal(await count(tab, "of 40."), 1, "the latest, once");
  const heard = await tab.heard();
  assert.ok(heard.findIndex((text) => text.includes("rejected")) < heard.findIndex((text) => text.includes("Step 40")));
  await agent.end();
  await tab.close();
});

test("a shortcut has the key that the user chose, and no key does two things", async () => {
  const tab = await connected();
  await panel(tab, "help");
  await tab.page.locator("aaep-subscriber #setting-modifiers").selectOption("alt_shift");
  await tab.page.locator("aaep-subscriber #shortcut-now").selectOption("Digit9");
  await tab.hears("Changed.");
  assert.equal(await tab.page.locator("aaep-subscriber #shortcut-accept").inputValue(), "Digit3", "they changed places");
  await tab.press("Control+Shift+3");
  await tab.page.waitForTimeout(500);
  assert.equal(await count(tab, "No requests wait for you"), 0);
  await tab.press("Alt+Shift+9");
  await tab.hears("No requests wait for you");
  await tab.page.reload();
  await tab.page.locator("aaep-subscriber .state").getByText("Connected").waitFor();
  assert.equal(await tab.page.locator("aaep-subscriber #shortcut-now").inputValue(), "Digit9", "it is kept");
  await tab.picture("shortcuts");
  await tab.close();
});

test("what is typed while an outcome is told goes where the focus was", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Interrupting.");
  await tab.to("Say something");
  await tab.keyboard.type("hel");
  await agent.confirm("Go on.", MILD);
  await tab.dialog("Go on.");
  await tab.press("Control+Shift+7");
  await tab.page.locator("aaep-subscriber .dialog .outcome").waitFor();
  await tab.picture("outcome");
  await tab.keyboard.type("lo");
  assert.equal(await tab.page.locator("#words").inputValue(), "hello");
  await agent.end();
  await tab.close();
});

test("Escape and Tab work when a screen reader left the focus on the page itself", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Wandering.");
  await agent.confirm("Go on.", MILD);
  await tab.dialog("Go on.");
  const blur = () => tab.page.evaluate(() => {
    const { shadowRoot } = document.querySelector("aaep-subscriber");
    shadowRoot.activeElement?.blur();
  });
  await blur();
  await tab.press("Tab");
  assert.equal((await tab.focus()).name, "Reject");
  await blur();
  await tab.press("Escape");
  await tab.noDialog();
  await tab.hears("Put off.");
  assert.ok(await tab.page.evaluate(() => document.querySelector("header").inert === false));
  await agent.end();
  await tab.close();
});

test("a dialog that asks about stopping ends with its session, and says so", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Nearly done.");
  await tab.hears("Nearly done.");
  await tab.press("Control+Shift+6");
  await tab.dialog("Stop Tester?");
  await agent.end();
  await tab.hears("It has ended by itself. There is nothing to stop.");
  await tab.noDialog();
  await tab.close();
});

test("a question that is accepted or rejected by a shortcut says what it takes", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Asking.");
  await agent.clarify("Where to?", ["freetext"]);
  await tab.dialog("Where to?");
  await tab.press("Control+Shift+7");
  await tab.hears("This is a question.");
  await tab.press("Escape");
  await agent.end();
  await tab.close();
});

test("everything that has a shortcut has a control, and buttons that wait keep the focus", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Working.");
  await tab.hears("Working.");
  await tab.to("Say what is happening");
  await tab.press("Enter");
  await tab.hears("Tester: Working.");
  await agent.confirm("Go on.", MILD);
  await tab.dialog("Go on.");
  await tab.to("Read again");
  await tab.press("Enter");
  await tab.hears("Allow this? Go on. It can be undone.");
  for (const name of ["More time", "Answer later", "Stop", "Reject", "Accept"]) await tab.to(name);
  await tab.page.route("**/replies", (route) => new Promise((later) => setTimeout(later, 600)).then(() => route.continue()));
  await tab.press("Enter");
  await tab.page.waitForTimeout(200);
  assert.equal((await tab.focus()).name, "Accept", "the focus stays while it is sent");
  await tab.noDialog();
  await tab.hears("accepted.");
  await agent.end();
  await tab.close();
});
