// What a screen reader says, how often, and in which order.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { browser, hub } from "../support/demo.js";
import { Agent } from "../support/hub.js";

const reader = readFileSync(new URL(import.meta.resolve("@guidepup/virtual-screen-reader/browser.js")), "utf8");

/** A tab in which the virtual screen reader reads the element. */
async function listening() {
  const tab = await browser.tab({ bypassCSP: true });
  await tab.page.route("**/reader.js", (route) => route.fulfill({ contentType: "text/javascript", body: reader }));
  await tab.open(hub.origin);
  await tab.page.evaluate(async () => {
    const { virtual } = await import("/reader.js");
    globalThis.virtual = virtual;
    await virtual.start({ container: document.querySelector("aaep-subscriber").shadowRoot.querySelector(".subscriber") });
  });
  tab.spoken = () => tab.page.evaluate(() => globalThis.virtual.spokenPhraseLog());
  tab.forget = () => tab.page.evaluate(() => globalThis.virtual.clearSpokenPhraseLog());
  return tab;
}

const times = (all, part) => all.filter((one) => one.includes(part)).length;
const place = (all, part) => all.findIndex((one) => one.includes(part));

// covers: T21, T28, C25
test("a request is said once, as a dialog, and then what became of it, in this order", async () => {
  const tab = await listening();
  await tab.forget();
  const agent = await Agent.begin(hub, "Looking for keys.");
  await tab.hears("Started: Looking for keys.");
  const request = await agent.confirm("Change the lock.", { risk_level: "medium" });
  await tab.dialog("Change the lock.");
  assert.match((await tab.focus()).name, /^Allow this\? Change the lock\. It cannot be undone\. What happens: /);
  await tab.to("Reject");
  await tab.press("Enter");
  await tab.noDialog();
  await tab.hears("rejected.");
  await agent.emit("tool.invoked", { tool: "door.look", summary_normal: "Looking at the door.", tool_call_id: "call_1" });
  await agent.emit("tool.completed", { tool: "door.look", summary_normal: "The door is open.", tool_call_id: "call_1", status: "success" });
  await agent.end("The keys were in the door.");
  await tab.hears("Done. The keys were in the door.");
  const spoken = await tab.spoken();
  const order = ["Started: Looking for keys.", "Allow this? Change the lock.", "assertive: Request 1: rejected.",
    "Looking at the door.", "The door is open.", "Done. The keys were in the door."];
  const all = spoken.join("\n");
  const places = order.map((part) => all.indexOf(part));
  assert.ok(places.every((at) => at >= 0), `${JSON.stringify(places)} ${all}`);
  assert.deepEqual(places, [...places].sort((one, other) => one - other), all);
  const announced = (await tab.heard()).join("\n");
  for (const part of ["Started: Looking for keys.", "Request 1: rejected.", "Looking at the door.", "The door is open.",
    "Done. The keys were in the door."]) assert.equal(announced.split(part).length, 2, part);
  // The focus tells the request; no region tells it again.
  assert.equal(times(await tab.heard(), "Change the lock."), 0);
  assert.equal((await agent.outcome(request)).status, "rejected");
  await tab.close();
});

test("streamed text is said only when it is all there, and as many sentences are in the log", async () => {
  const tab = await listening();
  const agent = await Agent.begin(hub, "Telling a story.");
  const story = "Once there was a cat. It slept all day. At night it danced.";
  await tab.hears("Telling a story.");
  await tab.forget();
  let position = 0;
  for (const piece of story.match(/.{1,4}/g)) {
    await agent.emit("output.streaming", { chunk: piece, position, complete: false, output_id: "out_1" });
    position += piece.length;
  }
  await agent.emit("output.streaming", { chunk: "!", position, complete: true, output_id: "out_1" });
  await tab.hears("The agent has written 3 sentences.");
  assert.equal(times(await tab.spoken(), "cat"), 0, "nothing of the text is said by itself");
  const shown = await tab.page.locator("aaep-subscriber .output").allTextContents();
  assert.deepEqual(shown.map((text) => text.replace(/ \d\d:\d\d [AP]M$/, "")),
    ["Once there was a cat.", "It slept all day.", "At night it danced.!"]);
  await agent.end();
  await tab.close();
});

test("whoever wants each sentence read hears each once, in order", async () => {
  const tab = await listening();
  await tab.page.locator("aaep-subscriber #settings summary").focus();
  await tab.press("Enter");
  await tab.to("What the agent writes");
  await tab.press("ArrowDown");
  await tab.hears("Changed.");
  await tab.forget();
  await hub.say("three sentences");
  await tab.hears("Nothing grave happens before they said yes.");
  const spoken = await tab.spoken();
  const sentences = ["An agent acts.", "A person hears of it.", "Nothing grave happens before they said yes."];
  const all = spoken.filter((one) => one.startsWith("polite: ")).join(" ");
  for (const sentence of sentences) assert.equal(all.split(sentence).length, 2, JSON.stringify(spoken));
  const places = sentences.map((part) => all.indexOf(part));
  assert.deepEqual(places, [...places].sort((one, other) => one - other));
  await tab.close();
});

// covers: T5, T28, T30
test("the three endings can be told apart, and a failure comes at once with what to do", async () => {
  const tab = await listening();
  await hub.say("fail");
  await tab.hears("Failed: The other side does not answer.");
  await hub.say("give up");
  await tab.hears("Cancelled by the agent.");
  await hub.say("hand off");
  await tab.hears("Handing over to a person:");
  await tab.hears("Done. A person takes over.");
  const how = await tab.page.evaluate(() => globalThis.heard);
  const role = (part) => how.find(({ text }) => text.includes(part)).how;
  assert.equal(role("Failed:"), "assertive");
  assert.equal(role("Handing over to a person:"), "assertive");
  assert.equal(role("Done."), "polite");
  await tab.close();
});

test("there is one polite region and one assertive, and streamed text is in neither", async () => {
  const tab = await listening();
  const regions = await tab.page.evaluate(() => {
    const root = document.querySelector("aaep-subscriber").shadowRoot;
    return [...root.querySelectorAll("[aria-live], [role=status], [role=alert], [role=log], [role=timer], output")]
      .map((one) => `${one.getAttribute("aria-live")} ${one.getAttribute("role")}`);
  });
  assert.deepEqual(regions, ["polite null", "assertive null"]);
  await tab.close();
});

// covers: H18
test("settings are told to the hub at once, stay after a reload, and the token does not", async () => {
  const tab = await browser.tab();
  await tab.open(hub.page);
  const sent = [];
  tab.page.on("request", (request) => request.method() === "POST" && sent.push(request.postDataJSON()));
  await tab.page.locator("aaep-subscriber #settings summary").focus();
  await tab.press("Enter");
  await tab.to("How much is said");
  await tab.press("ArrowUp");
  await tab.to("Pace");
  await tab.press("ArrowDown");
  await tab.to("Language");
  await tab.press("ArrowDown");
  await tab.page.waitForFunction(() => JSON.parse(localStorage.getItem("aaep-subscriber:settings")).language === "en");
  await tab.page.waitForTimeout(500);
  assert.equal((await tab.focus()).name, "Language", "the focus stays in the setting");
  await tab.press("ArrowDown");
  await tab.page.waitForFunction(() => document.documentElement.dir === "rtl");
  await tab.hears("تم التغيير.");
  await tab.picture("settings-ar");
  const renegotiated = sent.filter(({ type }) => type === "subscription.renegotiate").map(({ capabilities }) => capabilities);
  assert.equal(renegotiated.at(-1).preferred_verbosity, "terse");
  assert.equal(renegotiated.at(-1).pace_wpm, 120);
  assert.equal(renegotiated.at(-1).languages[0], "ar");
  await tab.page.reload();
  await tab.page.waitForFunction(() => document.documentElement.dir === "rtl");
  const settings = await tab.page.evaluate(() => document.querySelector("aaep-subscriber").settings);
  assert.deepEqual([settings.verbosity, settings.pace, settings.language], ["terse", 120, "ar"]);
  const kept = await tab.page.evaluate(() => Object.keys(localStorage).map((key) => localStorage.getItem(key)).join());
  assert.ok(!kept.includes("aaep_"));
  await tab.close();
});

test("shortcuts say what is going on, and can be turned off", async () => {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  const agent = await Agent.begin(hub, "Sorting shells.");
  await tab.hears("Sorting shells.");
  await tab.press("Control+Shift+3");
  await tab.hears("Connected. Tester: Sorting shells. No requests wait for you.");
  await tab.press("Control+Shift+5");
  assert.equal((await tab.focus()).name, "What happened");
  await tab.page.locator("aaep-subscriber #settings summary").focus();
  await tab.press("Enter");
  await tab.to("Keyboard shortcuts");
  await tab.press("Space");
  await tab.hears("Changed.");
  const before = (await tab.heard()).length;
  await tab.press("Control+Shift+3");
  await tab.page.waitForTimeout(600);
  assert.equal((await tab.heard()).length, before);
  await agent.end();
  await tab.close();
});

test("a user who looks elsewhere is notified once, if they want to be, and sounds tell waiting from done", async () => {
  const tab = await browser.tab({ permissions: ["notifications"] });
  await tab.page.addInitScript(() => {
    globalThis.notified = [];
    const Real = globalThis.Notification;
    globalThis.Notification = class extends Real {
      constructor(title, options) {
        super(title, options);
        globalThis.notified.push(`${title}: ${options.body}`);
      }
    };
  });
  await tab.open(hub.origin);
  await tab.page.locator("aaep-subscriber #settings summary").focus();
  await tab.press("Enter");
  for (const setting of ["Sounds for waiting, done and failed", "Notify me when this page is hidden"]) {
    await tab.to(setting);
    await tab.press("Space");
  }
  await tab.hears("Changed.");
  const agent = await Agent.begin(hub, "Baking.");
  await tab.page.evaluate(() => Object.defineProperty(document, "hidden", { get: () => true, configurable: true }));
  await agent.confirm("Open the oven.", { risk_level: "medium" });
  await tab.dialog("Open the oven.");
  assert.deepEqual(await tab.page.evaluate(() => globalThis.notified), ["An agent waits for you: Allow this? Open the oven."]);
  await tab.page.evaluate(() => Object.defineProperty(document, "hidden", { get: () => false, configurable: true }));
  await agent.confirm("Close the oven.", { risk_level: "medium" });
  await tab.hears("Another request came. 2 requests wait.");
  assert.equal(await tab.page.evaluate(() => globalThis.notified.length), 1, "not while they look");
  assert.ok(await tab.page.evaluate(() => document.querySelector("aaep-subscriber").view.announcer.audio !== null));
  assert.equal(await tab.page.evaluate(() => document.getAnimations().length), 0, "nothing moves");
  assert.match(await tab.page.title(), /^\(2\) /);
  await agent.end();
  await tab.noDialog();
  await tab.close();
});
