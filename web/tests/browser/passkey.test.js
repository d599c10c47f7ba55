// A yes that is signed with a passkey: the real hub, and the browser's own authenticator.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, test } from "node:test";

import { Browser } from "../support/browser.js";
import { House } from "../support/house.js";
import { Agent, BINARY } from "../support/hub.js";

// The test is the agent, and starts the browser.
const house = await House.start({ policy: `[presence]\nhigh = "passkey"\nmedium = "pin"\n[[rule]]\ntool = "mild"\n` +
  `risk_level = "medium"\nreversibility = "irreversible"\n` });
const { hub, token, config } = house;
const browser = await Browser.open();
after(async () => {
  await browser.close();
  await house.stop();
});

/** A tab at the name of this machine, with an authenticator, whose person may answer. */
async function entered() {
  const tab = await browser.tab();
  const cdp = await tab.page.context().newCDPSession(tab.page);
  await cdp.send("WebAuthn.enable");
  const { authenticatorId } = await cdp.send("WebAuthn.addVirtualAuthenticator", { options: { protocol: "ctap2",
    transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true,
    automaticPresenceSimulation: true } });
  const verifies = (isUserVerified) => cdp.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified });
  await house.enter(tab, `http://localhost:${hub.port}`);
  return { tab, verifies };
}

/** Says yes to the request in the dialog, by keyboard, in both steps if it is grave. */
async function accept(tab, action, grave = true) {
  await tab.dialog(action);
  await tab.to("Accept");
  await tab.press("Enter");
  if (!grave) return;
  await tab.dialog("You are about to accept");
  await tab.to("Yes, do it");
  await tab.press("Enter");
}

/** What a program of the same person is told. */
async function post(path, body, origin = `http://localhost:${hub.port}`) {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}`, origin };
  const answer = await fetch(`${origin}/aaep/v1/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  return answer.ok ? answer.status : `${answer.status} ${(await answer.json()).error}`;
}

/** What `aaep audit verify` says of the hub's journal. */
const audited = () => JSON.parse(execFileSync(BINARY, ["audit", "verify", "--json", "--config", config], { env: hub.env }));

const passkeys = async (tab) => tab.page.locator("aaep-subscriber #passkeys li").count();

// covers: I34
test("a passkey is registered, signs what is grave, and is removed, by keyboard", async () => {
  const { tab, verifies } = await entered();
  const posted = [];
  tab.page.on("request", (request) => posted.push({ url: request.url(), body: request.postData() ?? "" }));
  const agent = await Agent.begin(hub, "Cleaning up.");

  // Without one, nothing that needs it can be accepted; and it still waits.
  const early = await agent.confirm("Delete the first disk.");
  await accept(tab, "Delete the first disk.");
  await tab.hears("you have none for this address; add one on this page, under Passkeys");
  assert.equal((await agent.look(early)).status, "pending");
  await tab.press("Escape");
  await tab.dialog("Delete the first disk.");
  await tab.to("Reject");
  await tab.press("Enter");
  assert.equal((await agent.outcome(early)).status, "rejected");
  await tab.noDialog();

  await tab.to("Passkeys");
  await tab.press("Enter");
  await tab.to("A name for the new passkey");
  await tab.keyboard.type("My key");
  await tab.to("Add a passkey");
  await tab.press("Enter");
  await tab.hears("The passkey was added.");
  await tab.hears("A passkey was added for you.");
  assert.equal(await passkeys(tab), 1);
  await tab.picture("passkeys");

  const request = await agent.confirm("Delete the second disk.");
  await accept(tab, "Delete the second disk.");
  await tab.hears("Use your passkey now.");
  assert.equal((await agent.outcome(request)).status, "accepted");
  await agent.invoke(request);
  await tab.noDialog();
  const { whole, signed } = audited();
  assert.deepEqual({ whole, signed }, { whole: true, signed: 1 });

  // Shown again, or for another request, or from another address, it is worth nothing.
  const shown = JSON.parse(posted.findLast(({ url }) => url.endsWith("/assertion")).body);
  const reply = JSON.parse(posted.findLast(({ url, body }) => url.endsWith("/replies") && body.includes('"accept"')).body);
  assert.equal(await post("presence/passkeys/assertion", shown), "403 passkey");
  const another = await agent.confirm("Delete the other disk.");
  await tab.dialog("Delete the other disk.");
  const { reply_token } = await tab.page.evaluate(() => {
    const { current } = document.querySelector("aaep-subscriber").view;
    return { reply_token: current.reply_token };
  });
  assert.equal(await post("presence/passkeys/challenge", { reply_token }), 200);
  assert.equal(await post("presence/passkeys/assertion", { ...shown, reply_token }), "403 passkey");
  assert.equal(await post("presence/passkeys/challenge", { reply_token }, hub.origin), "400 malformed");
  const timestamp = new Date().toISOString();
  assert.equal(await post("replies", { ...reply, reply_token, timestamp }), 204, "nobody learns anything");
  assert.equal((await agent.look(another)).status, "pending");
  await agent.withdraw(another);
  await tab.noDialog();

  // It satisfies a PIN as well.
  const mild = await agent.confirm("Move the third disk.", { tool: "mild", risk_level: "medium" });
  await accept(tab, "Move the third disk.", false);
  assert.equal((await agent.outcome(mild)).status, "accepted");
  await tab.noDialog();
  assert.equal(audited().signed, 2);

  // Whoever is not recognised by their device has not said yes.
  await verifies(false);
  const unverified = await agent.confirm("Delete the fourth disk.");
  await accept(tab, "Delete the fourth disk.");
  await tab.page.waitForFunction(() => globalThis.heard.some(({ text }) => text.includes("no passkey was used")));
  assert.equal((await agent.look(unverified)).status, "pending");
  await agent.withdraw(unverified);
  await tab.noDialog();

  await tab.to("Remove My key");
  await tab.press("Enter");
  await tab.hears("Nothing was changed");
  assert.equal(await passkeys(tab), 1);
  await verifies(true);
  await tab.to("Remove My key");
  await tab.press("Enter");
  await tab.hears("The passkey was removed.");
  await tab.hears("A passkey of yours was removed.");
  assert.equal(await passkeys(tab), 0);
  await tab.close();
});

// covers: I34
test("at a number the page says where passkeys work", async () => {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  await tab.to("Passkeys");
  await tab.press("Enter");
  await tab.page.locator("aaep-subscriber #passkeys").getByText("Open this page at localhost").waitFor();
  assert.deepEqual(tab.errors, []);
  await tab.close();
});
