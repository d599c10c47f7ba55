// A browser that began after the agent, and that the hub cannot tell from the agent's own orphan: its
// answer counts once the person has shown that it is them. Unlike in the other tests, the hub looks at
// whose process answers, and the agent is a process of its own.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { AgentProcess } from "../support/agent.js";
import { Browser } from "../support/browser.js";
import { BINARY, Hub } from "../support/hub.js";

const PIN = "7391";

const directory = mkdtempSync(join(tmpdir(), "aaep-suspected-"));
const token = `aaep_${randomBytes(32).toString("base64url")}`;
const [config, policy] = ["aaep.toml", "policy.toml"].map((name) => join(directory, name));
writeFileSync(policy, `[presence]\nhigh = "passkey"\nmedium = "pin"\n[[rule]]\ntool = "mild"\nrisk_level = "medium"\n` +
  `reversibility = "irreversible"\n`, { mode: 0o600 });
writeFileSync(config, `policy = ${JSON.stringify(policy)}\n[[principals]]\nname = "reader"\n` +
  `role = "accessibility_consumer"\nuser = "local"\ntoken_sha256 = "${createHash("sha256").update(token).digest("hex")}"\n`,
{ mode: 0o600 });
const hub = await Hub.start("hub", { options: ["--config", config], env: { AAEP_DEVELOPMENT__OWN_REPLIES: "false" } });
const set = spawnSync(BINARY, ["presence", "set", "--config", config], { env: hub.env, input: `${PIN}\n${PIN}\n`, encoding: "utf8" });
const agent = await AgentProcess.begin(hub);
// After the agent, in a session of its own, and without a terminal.
await agent.call("look", "none").catch(() => {});
const browser = await Browser.open();
after(async () => {
  agent.stop();
  await browser.close();
  await hub.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** A tab with an authenticator, whose person may answer. */
async function entered() {
  const tab = await browser.tab();
  await tab.open(`http://localhost:${hub.port}`);
  const cdp = await tab.page.context().newCDPSession(tab.page);
  await cdp.send("WebAuthn.enable");
  await cdp.send("WebAuthn.addVirtualAuthenticator", { options: { protocol: "ctap2", transport: "internal",
    hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true } });
  await tab.to("Token");
  await tab.keyboard.type(token);
  await tab.press("Enter");
  await tab.page.locator("#enter").waitFor({ state: "hidden" });
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
  assert.equal(set.status, 0, set.stderr);
  const tab = await entered();

  // What needs nothing but a listener: its yes does not count, nor does its no, and the person hears that it is late.
  const low = await agent.call("confirm", "Look at the first disk.", LOW);
  await accept(tab, "Look at the first disk.", false);
  await tab.hears("Request 1");
  await tab.page.waitForTimeout(2000);
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
  await tab.page.reload();
  await tab.page.locator("aaep-subscriber .state").getByText("Connected").waitFor();
  await tab.to("Token");
  await tab.keyboard.type(token);
  await tab.press("Enter");
  await tab.page.locator("#enter").waitFor({ state: "hidden" });
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
