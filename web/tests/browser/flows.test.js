// Whole conversations with the real demo, by keyboard alone.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Browser } from "../support/browser.js";
import { Agent, Hub } from "../support/hub.js";

let hub;
let browser;

before(async () => {
  [hub, browser] = await Promise.all([Hub.start("demo", { options: ["--ephemeral"] }), Browser.open()]);
});

after(async () => {
  await browser?.close();
  await hub?.stop();
});

test("a code lets the page in once, and an irreversible transfer is accepted in two steps", async () => {
  const tab = await browser.tab();
  await tab.open(hub.page);
  assert.equal(new URL(tab.page.url()).hash, "", "the code is gone from the address");
  await tab.picture("connected");
  await tab.to("Say something");
  await tab.keyboard.type("transfer 20 euros to Ann");
  await tab.press("Enter");
  await tab.dialog("Transfer 20 euros to Ann.");
  await tab.picture("confirm");
  const { role, name } = await tab.focus();
  assert.equal(role, "group");
  assert.match(name, /^Allow this\? Transfer 20 euros to Ann\. It cannot be undone\./);
  await tab.press("Enter");
  await tab.to("Accept");
  await tab.press("Enter");
  await tab.dialog("You are about to accept");
  await tab.picture("second-step");
  assert.match((await tab.focus()).name, /You are about to accept: Transfer 20 euros to Ann\./);
  await tab.to("Yes, do it");
  await tab.press("Enter");
  await tab.noDialog();
  await tab.hears("Request 1: accepted.");
  await tab.hears("Done. 20 euros were sent to Ann.");
  await tab.picture("done");
  assert.equal((await tab.focus()).name, "Say something", "the focus is back where it was");
  assert.deepEqual(tab.errors, []);
  assert.ok(tab.asked.every((address) => address.startsWith(hub.origin)), tab.asked.join("\n"));
  assert.ok(tab.asked.every((address) => !address.includes("aaep_")), "no token in an address");
  await tab.close();
});
