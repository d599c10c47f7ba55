// Agents that lie, and pages of others.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Browser } from "../support/browser.js";
import { Hub, freePort } from "../support/hub.js";

let browser;

before(async () => {
  browser = await Browser.open();
});

after(async () => {
  await browser?.close();
});

const HOSTILE = '<img src=x onerror="globalThis.broken=1"><script>globalThis.broken=1</script>\u202eevil\u202c\u001b[31m' +
  "\u200b\u200b p\u0430ypal </bdi></p>{action} {{";

/** An event that a hub would refuse from its agents, straight into the element's ears. */
const hears = (tab, event) => tab.page.evaluate((json) => document.querySelector("aaep-subscriber").hear(json),
  JSON.stringify({ "@context": "https://aaep-protocol.org/context/v1", session_id: "sess_x", timestamp: new Date().toISOString(),
    producer: { agent_id: "evil", agent_name: HOSTILE }, ...event }));

// covers: D34, S10
test("text of an agent is only ever text, and what hides in it is shown", async () => {
  const hub = await Hub.start("demo", { options: ["--ephemeral"] });
  const tab = await browser.tab();
  await tab.open(hub.origin);
  await hears(tab, { type: "aaep:agent.session.started", event_id: "evt_1", summary_normal: HOSTILE });
  await hears(tab, { type: "aaep:agent.output.streaming", event_id: "evt_2", chunk: HOSTILE, position: 0, complete: true });
  await hears(tab, { type: "aaep:agent.awaiting.clarification", event_id: "evt_3", question: HOSTILE, context: HOSTILE,
    choices: [{ value: HOSTILE, label: HOSTILE }, { value: "b", label: "b" }], reply_token: "rpl_1", timeout_seconds: 60,
    accepted_response_kinds: ["multiple_choice"], default_response: HOSTILE });
  await tab.dialog("Question:");
  await tab.picture("hostile");
  const { name } = await tab.focus();
  for (const part of ["<img src=x onerror=", "[U+202E]evil[U+202C][U+001B][31m[U+200B×2]", "{action} {{",
    "Careful: the word p\u0430ypal mixes Cyrillic and Latin letters.", "hidden characters"]) {
    assert.ok(name.includes(part), `${part} in ${name}`);
  }
  const found = await tab.page.evaluate(() => {
    const root = document.querySelector("aaep-subscriber").shadowRoot;
    return [root.querySelectorAll("img, script, iframe, a").length, globalThis.broken];
  });
  assert.deepEqual(found, [0, undefined]);
  const shown = await tab.page.locator("aaep-subscriber .subscriber").textContent();
  assert.ok(!/[\u202e\u200b\u001b]/.test(shown), "nothing hidden is left anywhere");
  assert.ok(tab.asked.every((address) => address.startsWith(hub.origin)));
  await tab.close();
  await hub.stop();
});

test("a megabyte of text, unknown everything and a flood leave the page usable", async () => {
  const hub = await Hub.start("demo", { options: ["--ephemeral"] });
  const tab = await browser.tab();
  await tab.open(hub.origin);
  await hears(tab, { type: "aaep:agent.session.started", event_id: "evt_big", summary_normal: "x ".repeat(500_000) });
  await hears(tab, { type: "urn:new:thing", event_id: "evt_new", urgency: "critical" });
  await tab.hears("Important: a message without text, of the type urn:new:thing.");
  await tab.page.evaluate(() => {
    const element = document.querySelector("aaep-subscriber");
    for (let at = 0; at < 5000; at += 1) {
      element.hear(JSON.stringify({ type: "aaep:agent.state.changed", event_id: `evt_f${at}`, session_id: `sess_f${at}`,
        producer: { agent_id: "flood" }, from_state: "a", to_state: "b", summary_normal: `Flood ${at}.` }));
    }
  });
  await tab.hears("because there were too many");
  const entries = await tab.page.locator("aaep-subscriber .sessions li").count();
  assert.ok(entries <= 400, `${entries}`);
  await tab.to("Say something");
  await tab.keyboard.type("balance");
  await tab.press("Enter");
  await tab.hears("1,234.56 euros");
  await tab.close();
  await hub.stop();
});

/** A site of somebody else, as docs/page.md tells how to make one. */
async function site(html) {
  const port = await freePort();
  const server = createServer((request, answer) => {
    answer.setHeader("content-type", "text/html; charset=utf-8");
    answer.end(html);
  });
  await new Promise((ready) => server.listen(port, "127.0.0.1", ready));
  return { origin: `http://127.0.0.1:${port}`, port, close: () => server.close() };
}

/** The example of the documentation, with this hub and this token. */
function example(hub, token) {
  const docs = readFileSync(new URL("../../../docs/page.md", import.meta.url), "utf8");
  const [, html] = /```html\n([\s\S]*?)```/.exec(docs);
  return `<!doctype html><html lang="en"><head><title>Elsewhere</title></head><body><main><h1>Elsewhere</h1>${html
    .replaceAll("https://hub.example.org", hub).replace("await yourToken()", JSON.stringify(token))}</main></body></html>`;
}

test("a foreign page uses the element with one script and a token, if the hub allows its origin", async () => {
  const directory = mkdtempSync(join(tmpdir(), "aaep-foreign-"));
  const { createHash, randomBytes } = await import("node:crypto");
  const token = `aaep_${randomBytes(32).toString("base64url")}`;
  const port = await freePort();
  const friend = await site(example(`http://127.0.0.1:${port}`, token));
  const stranger = await site(example(`http://127.0.0.1:${port}`, token));
  const config = join(directory, "aaep.toml");
  writeFileSync(config, `ephemeral = true\nlisten = ["127.0.0.1:${port}"]\nallowed_origins = ["${friend.origin}"]\n` +
    `[[principals]]\nname = "reader"\nrole = "accessibility_consumer"\nuser = "local"\n` +
    `token_sha256 = "${createHash("sha256").update(token).digest("hex")}"\n`, { mode: 0o600 });
  const hub = await Hub.start("hub", { port, options: ["--config", config] });

  const tab = await browser.tab();
  await tab.page.goto(friend.origin);
  await tab.page.locator("aaep-subscriber .state").getByText("Connected.").waitFor();
  await tab.picture("foreign");
  const { Agent } = await import("../support/hub.js");
  const agent = await Agent.begin(hub, "Working elsewhere.");
  const request = await agent.confirm("Cross the border.", { risk_level: "medium" });
  await tab.dialog("Cross the border.");
  await tab.to("Accept");
  await tab.press("Enter");
  await tab.noDialog();
  assert.equal((await agent.outcome(request)).status, "accepted");
  assert.deepEqual(tab.errors, []);
  await tab.close();

  const other = await browser.tab();
  await other.page.goto(stranger.origin);
  await other.page.locator("aaep-subscriber .state").getByText("The hub cannot be reached. Trying again.").waitFor();
  await other.close();
  friend.close();
  stranger.close();
  await hub.stop();
});

test("a hub that only lets listen says so and takes a token, which nobody else sees", async () => {
  const directory = mkdtempSync(join(tmpdir(), "aaep-listen-"));
  const { createHash, randomBytes } = await import("node:crypto");
  const token = `aaep_${randomBytes(32).toString("base64url")}`;
  const config = join(directory, "aaep.toml");
  writeFileSync(config, `ephemeral = true\n[[principals]]\nname = "reader"\nrole = "accessibility_consumer"\n` +
    `user = "local"\ntoken_sha256 = "${createHash("sha256").update(token).digest("hex")}"\n`, { mode: 0o600 });
  const hub = await Hub.start("hub", { options: ["--config", config] });
  const tab = await browser.tab();
  await tab.open(hub.origin);
  await tab.page.locator("aaep-subscriber .state").getByText("You can listen here, but not answer.").waitFor();
  await tab.picture("listen-only");
  const { Agent } = await import("../support/hub.js");
  const agent = await Agent.begin(hub, "Asking.");
  await agent.confirm("Open the window.", { risk_level: "medium" });
  await tab.dialog("This cannot be answered from here.");
  await tab.picture("unanswerable");
  await tab.press("Escape");
  await tab.to("Token");
  await tab.keyboard.type("not a token");
  await tab.press("Enter");
  await tab.page.getByText("Paste a token first.").waitFor();
  await tab.press("Control+a");
  await tab.keyboard.type(`aaep_${"x".repeat(43)}`);
  await tab.press("Enter");
  await tab.page.getByText("The hub does not know this token").waitFor();
  await tab.picture("refused");
  assert.equal((await tab.focus()).name, "Token");
  await tab.keyboard.type(token);
  await tab.press("Enter");
  await tab.page.locator("aaep-subscriber .state").getByText(/^Connected\. *$/).waitFor();
  await tab.press("Control+Shift+1");
  await tab.dialog("Open the window.");
  await tab.to("Reject");
  await tab.press("Enter");
  await tab.hears("rejected.");
  assert.ok(tab.asked.every((address) => !address.includes(token)));
  await tab.close();
  await hub.stop();
});
