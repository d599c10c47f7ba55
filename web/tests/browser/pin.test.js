// A yes that needs the person's PIN: the real hub, a PIN set with the real command, and the page by keyboard.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { Browser } from "../support/browser.js";
import { House } from "../support/house.js";
import { Agent } from "../support/hub.js";

const PIN = "7391";
const WRONG = "8204";

const house = await House.start({ policy: `[presence]\nhigh = "pin"\n` });
const { hub } = house;
const browser = await Browser.open();
after(async () => {
  await browser.close();
  await house.stop();
});

/** A tab whose person may answer. */
async function entered() {
  const tab = await browser.tab();
  await house.enter(tab);
  return tab;
}

/** Says yes to what is grave, in both steps, by keyboard. */
async function accept(tab, action) {
  await tab.dialog(action);
  await tab.to("Accept");
  await tab.press("Enter");
  await tab.dialog("You are about to accept");
  await tab.to("Yes, do it");
  await tab.press("Enter");
}

/** Types into the field that has just come, and sends it. */
async function types(tab, pin) {
  await tab.to("PIN");
  await tab.keyboard.type(pin);
  await tab.press("Enter");
}

/** How often a text was announced. */
const times = async (tab, part) => (await tab.heard()).filter((text) => text.includes(part)).length;

// covers: I34
test("a grave yes takes the PIN, which is never heard; a wrong one says so, and a no needs none", async () => {
  const tab = await entered();
  const agent = await Agent.begin(hub, "Cleaning up.");

  // Before there is one, nothing can be approved, and that is said.
  const early = await agent.confirm("Delete the first disk.");
  await accept(tab, "Delete the first disk.");
  await tab.dialog("Type your PIN to say yes.");
  await types(tab, PIN);
  await tab.hears("There is no PIN yet, so nothing can be approved. Set one with: aaep presence set");
  assert.equal((await agent.look(early)).status, "pending");
  await tab.press("Escape");
  await tab.dialog("Delete the first disk.");
  await tab.to("Reject");
  await tab.press("Enter");
  assert.equal((await agent.outcome(early)).status, "rejected", "a no needs no PIN");
  await tab.noDialog();

  house.setPin(PIN);
  await tab.page.waitForTimeout(300);

  const request = await agent.confirm("Delete the second disk.");
  await accept(tab, "Delete the second disk.");
  await tab.dialog("Type your PIN to say yes.");
  const name = (await tab.focus()).name;
  assert.match(name, /^Type your PIN to say yes\./);
  await tab.to("PIN");
  const field = tab.page.locator("aaep-subscriber #aaep-pin");
  assert.equal(await field.getAttribute("type"), "password");
  // What a browser's password manager neither keeps nor asks about.
  assert.equal(await field.getAttribute("autocomplete"), "one-time-code");

  // Nothing at all, then another one: it is said, it stands beside the field, and nothing was answered.
  await tab.press("Enter");
  await tab.hears("That is not your PIN. Nothing was answered.");
  await types(tab, WRONG);
  await tab.page.waitForFunction(() => globalThis.heard.filter(({ text }) => text.includes("That is not your PIN")).length >= 2);
  assert.equal((await agent.look(request)).status, "pending");
  assert.equal(await field.inputValue(), "", "what was typed does not stay");
  assert.equal(await field.getAttribute("aria-invalid"), "true");
  assert.equal((await tab.focus()).name, "PIN", "they are where they can try again");
  await tab.page.locator("aaep-subscriber #aaep-pin-message").getByText("That is not your PIN").waitFor();
  await tab.picture("pin");

  await types(tab, PIN);
  assert.equal((await agent.outcome(request)).status, "accepted");
  await tab.noDialog();
  await tab.hears("accepted");
  await agent.invoke(request);

  // For a while it counts for this page.
  const another = await agent.confirm("Delete the third disk.");
  await accept(tab, "Delete the third disk.");
  assert.equal((await agent.outcome(another)).status, "accepted");
  await tab.noDialog();
  assert.equal(await tab.page.locator("aaep-subscriber #aaep-pin").count(), 0);

  // Neither is ever said, shown or kept.
  const spoken = (await tab.heard()).join("\n");
  const shown = await tab.page.evaluate(() => document.querySelector("aaep-subscriber").shadowRoot.textContent +
    JSON.stringify({ ...localStorage, ...sessionStorage }));
  for (const secret of [PIN, WRONG]) {
    assert.ok(!spoken.includes(secret), spoken);
    assert.ok(!shown.includes(secret), "not on the page");
    assert.ok(tab.asked.every((address) => !address.includes(secret)), "not in an address");
  }
  assert.equal(await times(tab, "Request 2: accepted."), 1);
  await agent.end();
  await tab.close();
});

// covers: I34
test("whoever leaves the PIN has answered nothing, and the question is asked again", async () => {
  const tab = await entered();
  const agent = await Agent.begin(hub, "Cleaning up.");
  const request = await agent.confirm("Delete the fourth disk.");
  await accept(tab, "Delete the fourth disk.");
  await tab.dialog("Type your PIN to say yes.");
  await tab.to("Go back");
  await tab.press("Enter");
  await tab.dialog("Delete the fourth disk.");
  assert.equal((await agent.look(request)).status, "pending");
  await agent.end();
  await tab.noDialog();
  await tab.close();
});
