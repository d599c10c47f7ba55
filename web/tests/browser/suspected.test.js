// A browser that began after the agent, and that the hub cannot tell from the agent's own orphan: its
// answer counts once the person has shown that it is them. Unlike in the other tests, the hub looks at
// whose process answers, and the agent is a process of its own.

import assert from "node:assert/strict";
import { after, test } from "node:test";

import { AgentProcess } from "../support/agent.js";
import { Browser } from "../support/browser.js";
import { House } from "../support/house.js";

const PIN = "7391";

const house = await House.start({ pin: PIN, env: { AAEP_DEVELOPMENT__OWN_REPLIES: "false" },
  policy: `[presence]\nhigh = "passkey"\nmedium = "pin"\n[[rule]]\ntool = "mild"\nrisk_level = "medium"\n` +
    `reversibility = "irreversible"\n[[rule]]\ntool = "look"\nrisk_level = "low"\nreversibility = "reversible"\n` });
const agent = await AgentProcess.begin(house.hub);
// After the agent, in a session of its own, and without a terminal.
const browser = await Browser.open();
after(async () => {
  agent.stop();
  await browser.close();
  await house.stop();
});

/** A tab with an authenticator, whose person may answer. */
async function entered() {
  const tab = await browser.tab();
  const cdp = await tab.page.context().newCDPSession(tab.page);
  await cdp.send("WebAuthn.enable");
  await cdp.send("WebAuthn.addVirtualAuthenticator", { options: { protocol: "ctap2", transport: "internal",
    hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } });
  await house.enter(tab, `http://localhost:${house.hub.port}`);
  return tab;
}

/** Presses Accept, and goes through the second step of what is grave. */
async function accept(tab, action, grave) {
  await tab.dialog(action);
  await tab.to("Accept");
  await tab.press("Enter");
  if (!grave) return;
  await tab.dialog("You are about to accept");
  await tab.to("Yes, do it");
  await tab.press("Enter");
}

const LOW = { tool: "look", risk_level: "low", irreversible: false, reversibility: "reversible" };

// covers: I30, I34
test("a suspected browser answers only with the PIN or a passkey", { skip: process.platform !== "linux" }, async () => {
  const tab = await entered();

  // What needs nothing more: its yes does not count, and the person hears that nobody has said so.
  const low = await agent.call("confirm", "Look at the first disk.", LOW);
  await accept(tab, "Look at the first disk.", false);
  await tab.hears("answer to request 1");
  assert.equal((await agent.call("look", low)).status, "pending", "the hub suspects it");
  await agent.call("withdraw", low);
  await tab.noDialog();

  const medium = await agent.call("confirm", "Move the second disk.", { tool: "mild", risk_level: "medium" });
  await accept(tab, "Move the second disk.", false);
  await tab.dialog("Type your PIN to say yes.");
  await tab.to("PIN");
  await tab.keyboard.type(PIN);
  await tab.press("Enter");
  assert.equal((await agent.call("outcome", medium)).status, "accepted", "the PIN says that it is them");
  await tab.noDialog();

  await tab.to("Passkeys");
  await tab.press("Enter");
  await tab.to("A name for the new passkey");
  await tab.keyboard.type("My key");
  await tab.to("Add a passkey");
  await tab.press("Enter");
  await tab.hears("The passkey was added.");

  // The subscription is a new one, and the PIN is not known there.
  await house.enter(tab, `http://localhost:${house.hub.port}`);
  const unsigned = await agent.call("confirm", "Look at the third disk.", LOW);
  await accept(tab, "Look at the third disk.", false);
  await tab.page.waitForTimeout(2000);
  assert.equal((await agent.call("look", unsigned)).status, "pending", "suspected again");
  await agent.call("withdraw", unsigned);
  await tab.noDialog();

  const grave = await agent.call("confirm", "Delete the fourth disk.");
  await accept(tab, "Delete the fourth disk.", true);
  await tab.hears("Use your passkey now.");
  assert.equal((await agent.call("outcome", grave)).status, "accepted", "the passkey says that it is them");
  await tab.noDialog();
  await tab.close();
});
