// The hub goes away and comes back.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Browser } from "../support/browser.js";
import { Agent, Hub } from "../support/hub.js";

let hub;
let browser;

before(async () => {
  [hub, browser] = await Promise.all([Hub.start("demo"), Browser.open()]);
});

after(async () => {
  await browser?.close();
  await hub?.stop();
});

// covers: H24
test("after a restart of the hub in mid-question the page is there again, and the answer counts", async () => {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  const agent = await Agent.begin(hub, "Moving house.");
  const request = await agent.confirm("Sign the contract.", { risk_level: "medium", timeout_seconds: 600 });
  await tab.dialog("Sign the contract.");
  await hub.end("SIGKILL");
  await tab.hears("The connection to AAEP demo is lost.");
  await tab.picture("lost");
  await hub.begin();
  await tab.hears("Connected to AAEP demo again.");
  await tab.dialog("Sign the contract.");
  await tab.to("Accept");
  await tab.press("Enter");
  await tab.noDialog();
  assert.equal((await agent.outcome(request)).status, "accepted");
  const heard = await tab.heard();
  assert.equal(heard.filter((text) => text.includes("Sign the contract.") && text.includes("Allow")).length, 0,
    "it is not asked a second time");
  await agent.end();
  await tab.hears("Done with it.");
  await tab.close();
});
