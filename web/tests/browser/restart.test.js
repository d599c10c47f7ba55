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

// covers: H24
test("a stream that breaks goes on after the last event, and nothing is said twice or lost", async () => {
  const tab = await browser.tab();
  const resumed = [];
  tab.page.on("request", (request) => {
    if (request.url().includes("/events?")) resumed.push(request.headers()["last-event-id"] ?? null);
  });
  await tab.open(hub.origin);
  const agent = await Agent.begin(hub, "Counting sheep.");
  await tab.hears("Counting sheep.");
  await tab.page.evaluate(() => document.querySelector("aaep-subscriber").connection.stream.abort());
  for (const sheep of ["One sheep.", "Two sheep.", "Three sheep."]) {
    await agent.emit("tool.invoked", { tool: "sheep.count", tool_call_id: `call_${sheep.slice(0, 3)}`, summary_normal: sheep });
  }
  await tab.hears("Connected to AAEP demo again.");
  await tab.hears("Three sheep.");
  const heard = (await tab.heard()).join(" ").match(/\w+ sheep\./g);
  assert.deepEqual(heard, ["Counting sheep.", "One sheep.", "Two sheep.", "Three sheep."]);
  assert.equal(resumed[0], null);
  assert.match(resumed.at(-1), /^evt_/);
  await tab.close();
});

test("what a hub forgot no longer waits, and that is said", async () => {
  const forgetful = await Hub.start("demo", { options: ["--ephemeral"] });
  const tab = await browser.tab();
  await tab.open(forgetful.origin);
  const agent = await Agent.begin(forgetful, "Forgetting.");
  await agent.confirm("Remember this.", { risk_level: "medium" });
  await tab.dialog("Remember this.");
  await forgetful.end("SIGKILL");
  await forgetful.begin();
  await tab.hears("Connected to AAEP demo again.");
  await tab.hears("Request 1 no longer waits. Nobody said why.");
  await tab.noDialog();
  await tab.page.locator("aaep-subscriber .state").getByText("Nothing is running.").waitFor();
  await tab.close();
  await forgetful.stop();
});

/** What a page believes to go on, as the person sees it. */
const pictured = (tab) => tab.page.evaluate(() => [...document.querySelector("aaep-subscriber").shadowRoot
  .querySelectorAll(".running li")].map(({ textContent }) => /(\w+) goes on\./.exec(textContent)?.[1]));

// covers: I32
test("after a comeback the page's picture is the hub's, whether a session ended before the restart or after it", async () => {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  const names = ["Before", "After", "Third"];
  const [before, later] = await Promise.all(names.slice(0, 2).map((name) => Agent.begin(hub, `${name} goes on.`)));
  const third = await Agent.begin(hub, "Third goes on.");
  for (const name of names) await tab.hears(`${name} goes on.`);
  // The page is away.
  await tab.page.context().setOffline(true);
  await tab.page.evaluate(() => document.querySelector("aaep-subscriber").connection.stream.abort());
  await tab.hears("The connection to AAEP demo is lost.");
  await before.end("The first is done.");
  // What is on record after it makes it certain that whoever was there has heard the end.
  const last = await Agent.begin(hub, "Fourth goes on.");
  await last.emit("tool.invoked", { tool: "look", tool_call_id: "call_look", summary_normal: "Looking." });
  await hub.end("SIGKILL");
  await hub.begin();
  await later.emit("session.errored", { error_category: "unknown", summary_normal: "The second failed." });
  await tab.page.context().setOffline(false);
  await tab.hears("Connected to AAEP demo again.");
  const newcomer = await browser.tab();
  await newcomer.open(hub.origin);
  await newcomer.page.locator("aaep-subscriber .running li", { hasText: "Fourth goes on." }).waitFor();
  const truth = await pictured(newcomer);
  assert.deepEqual(truth.filter((name) => name).sort(), ["Fourth", "Third"]);
  await tab.page.waitForFunction((sessions) => document.querySelector("aaep-subscriber").shadowRoot
    .querySelectorAll(".running li").length === sessions, truth.length);
  assert.deepEqual((await pictured(tab)).sort(), truth.sort());
  await tab.hears("A session is over. Nobody said how it ended.");
  await third.end();
  await last.end();
  await Promise.all([tab.close(), newcomer.close()]);
});
