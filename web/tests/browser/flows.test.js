// Whole conversations with the real demo, by keyboard alone.

import assert from "node:assert/strict";
import { test } from "node:test";

import { browser, hub } from "../support/demo.js";
import { Agent } from "../support/hub.js";

/** A tab that is connected; on this machine the demo asks for no token. */
async function connected(options) {
  const tab = await browser.tab(options);
  await tab.open(hub.origin);
  return tab;
}

/** How many things that were announced have this in them. */
const times = (heard, part) => heard.filter((text) => text.includes(part)).length;

// covers: T21, C25, C28
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
  assert.equal(role, "dialog");
  assert.match(name, /^Allow this\? Transfer 20 euros to Ann\. It cannot be undone\. What happens: /);
  await tab.press("Enter", "Space");
  await tab.to("Accept");
  await tab.press("Enter");
  await tab.dialog("You are about to accept");
  await tab.picture("second-step");
  assert.match((await tab.focus()).name, /^Are you sure\? You are about to accept: Transfer 20 euros to Ann\. It cannot be undone\./);
  await tab.press("Control+Shift+9");
  await tab.page.waitForTimeout(300);
  await tab.to("Yes, do it");
  await tab.press("Enter");
  await tab.noDialog();
  await tab.hears("Request 1: accepted.");
  await tab.page.locator("aaep-subscriber .sessions").getByText("It is being done now.").waitFor();
  await tab.hears("20 euros were sent to Ann.");
  await tab.hears("Done.");
  await tab.picture("done");
  const said = (await tab.heard()).join(" ");
  assert.equal(said.split("20 euros were sent to Ann.").length, 2, "the result is said once");
  assert.equal((await tab.focus()).name, "Say something", "the focus is back where it was");
  const headings = await tab.page.locator("aaep-subscriber h3").allTextContents();
  assert.deepEqual(headings, ["You: transfer 20 euros to Ann", "Demonstration: Preparing a transfer."]);
  const kept = await tab.page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie);
  assert.ok(!kept.includes("aaep_"), "no token is kept");
  assert.deepEqual(tab.errors, []);
  assert.ok(tab.asked.every((address) => address.startsWith(hub.origin)), tab.asked.join("\n"));
  assert.ok(tab.asked.every((address) => !address.includes("aaep_") && !address.includes("code=")));
  await tab.close();

  const again = await fetch(`${hub.base}/page/token`, { method: "POST",
    headers: { "content-type": "application/json" }, body: JSON.stringify({ code: hub.page.split("code=")[1] }) });
  assert.equal(again.status, 401, "the code is spent");
});

// covers: C25
test("what is rejected is not done, and the agent goes on", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Cleaning up.");
  const request = await agent.confirm("Delete everything.", { risk_level: "medium" });
  await tab.dialog("Delete everything.");
  await tab.to("Reject");
  await tab.press("Space");
  await tab.noDialog();
  await tab.hears("rejected.");
  assert.equal((await agent.outcome(request)).status, "rejected");
  await agent.end();
  await tab.hears("Done with it.");
  await tab.close();
});

// covers: D32, C25
test("more time is given without asking anew, and the answer to the longer request counts", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Preparing.");
  await agent.confirm("Publish the page.", { risk_level: "medium", irreversible: false, reversibility: "reversible" });
  await tab.dialog("Publish the page.");
  await tab.to("More time");
  await tab.press("Enter");
  await tab.hears("More time was given: 10 minutes.");
  await tab.page.waitForFunction(() => {
    const shown = document.querySelector("aaep-subscriber").shadowRoot.querySelector(".time");
    return /^(10:00|9:5\d) left$/.test(shown.textContent);
  });
  const text = await tab.page.locator("aaep-subscriber .text").textContent();
  assert.match(text, /Request 1 from Tester waits for you, for 10 minutes\./, "the same number, and the new time");
  assert.equal((await tab.focus()).name, "More time", "the focus stays where it was");
  await tab.picture("more-time");
  await tab.press("Control+Shift+9");
  await tab.noDialog();
  await tab.hears("Request 1: accepted.");
  assert.equal(times(await tab.heard(), "Publish the page."), 0, "a dialog that opens needs no announcement");
  await agent.end();
  await tab.close();
});

for (const [kind, question, answer, response] of [
  ["yes_no", "Is it raining?", async (tab) => { await tab.to("No"); await tab.press("Enter"); }, false],
  ["multiple_choice", "Which colour?", async (tab) => {
    await tab.to("Send choice");
    await tab.press("Enter");
    await tab.page.getByText("Choose one of the answers first.").waitFor();
    await tab.press("ArrowDown");
    await tab.picture("choice");
    await tab.press("Enter");
  }, "green"],
  ["numeric", "How many?", async (tab) => {
    await tab.to("Your answer, as a number");
    await tab.keyboard.type("a few");
    await tab.press("Enter");
    await tab.hears("Write a number in digits");
    await tab.picture("number-again");
    await tab.press("Control+a");
    await tab.keyboard.type("12.5");
    await tab.press("Enter");
  }, 12.5],
  ["freetext", "Where to?", async (tab) => {
    await tab.to("Your answer, in your own words");
    await tab.keyboard.type("To Lagos");
    await tab.press("Enter");
  }, "To Lagos"],
]) {
  // covers: C28
  test(`a question of the kind ${kind} is answered, with a gentle word when the answer does not fit`, async () => {
    const tab = await connected();
    const agent = await Agent.begin(hub, "Finding out.");
    const more = kind === "multiple_choice"
      ? { choices: [{ value: "red", label: "Red" }, { value: "green", label: "Green" }] } : {};
    const request = await agent.clarify(question, [kind], more);
    await tab.dialog(question);
    await tab.picture(`question-${kind}`);
    assert.match((await tab.focus()).name, new RegExp(`^Question: ${question.replace("?", "\\?")}`));
    await answer(tab);
    await tab.noDialog();
    await tab.hears("answered.");
    assert.equal((await agent.outcome(request)).response, response);
    await agent.end();
    await tab.close();
  });
}

// covers: C25
test("a request that the agent takes back disappears, and that is said", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Thinking aloud.");
  const request = await agent.confirm("Send the letter.");
  await tab.dialog("Send the letter.");
  await agent.withdraw(request);
  await tab.noDialog();
  await tab.hears("Request 1 was cancelled.");
  await agent.end();
  await tab.close();
});

// covers: C13, C25
test("of two tabs one answer counts, and the other is told that it was given elsewhere", async () => {
  const [one, other] = [await connected(), await connected()];
  const agent = await Agent.begin(hub, "Racing.");
  const request = await agent.confirm("Run the race.", { risk_level: "medium" });
  await Promise.all([one.dialog("Run the race."), other.dialog("Run the race.")]);
  await other.to("Accept");
  await one.to("Reject");
  await one.press("Enter");
  await one.noDialog();
  await other.hears("was rejected elsewhere.");
  await other.noDialog();
  assert.equal((await agent.outcome(request)).status, "rejected");

  const race = await agent.confirm("Run it again.", { risk_level: "medium" });
  await Promise.all([one.dialog("Run it again."), other.dialog("Run it again.")]);
  await Promise.all([one.to("Accept"), other.to("Reject")]);
  await Promise.all([one.press("Enter"), other.press("Enter")]);
  await Promise.all([one.noDialog(), other.noDialog()]);
  const { status } = await agent.outcome(race);
  const [wins, loses] = status === "accepted" ? [one, other] : [other, one];
  await wins.hears(`Request 2: ${status}.`);
  await loses.hears(`Request 2 was ${status} elsewhere.`);
  await agent.end();
  await Promise.all([one.close(), other.close()]);
});

test("the agent is stopped after asking back, from a request or by a shortcut", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Digging a hole.");
  await agent.confirm("Dig deeper.");
  await tab.dialog("Dig deeper.");
  await tab.press("Control+Shift+6");
  await tab.dialog("Stop Tester?");
  await tab.picture("stop");
  assert.match((await tab.focus()).name, /^Stop Tester\? It is at work on: Digging a hole\./);
  await tab.press("Escape");
  await tab.dialog("Dig deeper.");
  await tab.to("Stop");
  await tab.press("Enter");
  await tab.dialog("Stop Tester?");
  await tab.to("Stop it");
  await tab.press("Enter");
  await tab.noDialog();
  await tab.hears("Cancelled by the user.");
  await tab.hears("was cancelled");
  await tab.close();
});

test("several requests are listed, can be put off, and are all reachable", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Asking a lot.");
  await agent.confirm("First thing.", { risk_level: "medium" });
  await tab.dialog("First thing.");
  await agent.confirm("Second thing.", { risk_level: "medium" });
  await tab.hears("Another request came. 2 requests wait.");
  assert.match((await tab.focus()).name, /First thing/, "the focus is not taken away");
  await tab.press("Escape");
  await tab.dialog("Second thing.");
  await tab.picture("several");
  await tab.press("Escape");
  await tab.noDialog();
  await tab.hears("The request still waits, in the list.");
  await tab.picture("list");
  await tab.to("Request 1: First thing.");
  await tab.press("Enter");
  await tab.dialog("First thing.");
  await tab.press("Control+Shift+1");
  await tab.dialog("Second thing.");
  await tab.press("Control+Shift+7");
  await tab.hears("Request 2: rejected.");
  await tab.noDialog();
  await tab.press("Control+Shift+1");
  await tab.dialog("First thing.");
  await tab.press("Control+Shift+9");
  await tab.hears("Request 1: accepted.");
  await tab.noDialog();
  await agent.end();
  await tab.close();
});

test("no key press that was under way before a dialog came answers it", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Interrupting.");
  await tab.to("Say something");
  await tab.keyboard.down("Enter");
  const request = await agent.confirm("Do it at once.", { risk_level: "medium" });
  await tab.page.getByRole("dialog").waitFor();
  await tab.page.waitForTimeout(250);
  // What somebody does who was typing and did not notice.
  await tab.keyboard.down("Enter");
  await tab.press("Tab", "Tab");
  await tab.keyboard.down("Enter");
  await tab.page.waitForTimeout(800);
  await tab.keyboard.down("Enter");
  await tab.keyboard.up("Enter");
  await tab.page.waitForTimeout(300);
  const { status } = await agent.look(request);
  assert.equal(status, "pending");
  assert.equal((await tab.focus()).name, "Accept");
  await tab.press("Enter");
  await tab.noDialog();
  assert.equal((await agent.outcome(request)).status, "accepted");
  await agent.end();
  await tab.close();
});

test("the time is told at half and at a tenth, once each, and in between it is only shown", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "In a hurry.");
  await agent.confirm("Be quick.");
  await tab.dialog("Request 1 from Tester waits for you, for 5 minutes.");
  await tab.page.evaluate(() => {
    const { announcer } = document.querySelector("aaep-subscriber").view;
    globalThis.played = [];
    announcer.play = (sound) => globalThis.played.push(sound);
  });
  // Time passes faster here: the server's clock is that much ahead.
  const passes = (seconds) => tab.page.evaluate((ms) => {
    document.querySelector("aaep-subscriber").connection.skew += ms;
  }, seconds * 1000);
  await passes(100);
  await tab.page.waitForFunction(() => {
    const { textContent } = document.querySelector("aaep-subscriber").shadowRoot.querySelector(".time");
    return /^[23]:\d\d left$/.test(textContent);
  });
  assert.equal(times(await tab.heard(), "more: Be quick."), 0);
  await passes(55);
  await tab.hears("more: Be quick.");
  assert.deepEqual(await tab.page.evaluate(() => globalThis.played), [], "half of the time is left");
  await passes(120);
  await tab.page.waitForFunction(() => globalThis.heard.filter(({ text }) => text.includes("more: Be quick.")).length === 2);
  await tab.page.waitForTimeout(1200);
  assert.equal(times(await tab.heard(), "more: Be quick."), 2);
  assert.equal(times(await tab.heard(), "Be quick."), 2, "the clock itself says nothing");
  assert.deepEqual(await tab.page.evaluate(() => globalThis.played), ["waiting"], "a sound of its own, with the last word");
  await tab.press("Control+Shift+7");
  await tab.noDialog();
  await agent.end();
  await tab.close();
});

// covers: C25
test("a request that nobody answers times out, and that is no rejection", async () => {
  const tab = await connected();
  const agent = await Agent.begin(hub, "Waiting.");
  const request = await agent.confirm("Be quick.", { timeout_seconds: 3 });
  await tab.hears("Request 1 timed out: nobody answered in time. It counts as no.");
  await tab.noDialog();
  assert.equal((await agent.outcome(request)).status, "timed_out");
  await agent.end();
  await tab.close();
});
