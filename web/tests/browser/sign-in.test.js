// Signing in with an identity provider: a real one, the real hub over TLS, the terminal by a code on
// another device, and the page by PKCE. Tokens are short-lived, and nobody notices.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, test } from "node:test";

import { Browser } from "../support/browser.js";
import { BINARY, Hub, freePort } from "../support/hub.js";
import { AUDIENCE, Login, RESOURCE, signIn } from "../support/login.js";

/** How long a token is good, in seconds. */
const LIFE = 6;

const directory = mkdtempSync(join(tmpdir(), "aaep-sign-in-"));
const made = spawnSync(BINARY, ["hub", "init", "--dir", directory, "--host", "localhost"], { encoding: "utf8" });
assert.equal(made.status, 0, made.stderr);
const [config, certificate] = [join(directory, "aaep.toml"), join(directory, "tls", "certificate.pem")];
const cert = readFileSync(certificate);
const agentToken = readFileSync(join(directory, "tokens", "agent"), "utf8").trim();
const [port, loginPort] = [await freePort(), await freePort()];
const hubUrl = `https://localhost:${port}`;
const login = await Login.start({ cert, key: readFileSync(join(directory, "tls", "key.pem")), port: loginPort,
  page: `${hubUrl}/`, seconds: LIFE });
appendFileSync(config, `
[[issuers]]
name = "work"
issuer = "${login.issuer}"
audience = "${AUDIENCE}"
keys_url = "${login.issuer}/jwks"
keys_ca = ${JSON.stringify(certificate)}
clock_skew_seconds = 0
role = "accessibility_consumer"
sign_in = { client_id = "aaep", scopes = ["openid", "offline_access"], resource = "${RESOURCE}" }
`);
const hub = await Hub.start("hub", { port, options: ["--config", config] });
const browser = await Browser.open();
after(async () => {
  await browser.close();
  await hub.stop();
  await login.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** A call of the agent. */
function call(path, body) {
  return new Promise((done, failed) => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${agentToken}` };
    const asked = request(`${hubUrl}/aaep/v1/agent/${path}`, { method: body ? "POST" : "GET", headers, ca: cert }, (answer) => {
      let text = "";
      answer.on("data", (piece) => (text += piece));
      answer.on("end", () => (answer.statusCode < 300 ? done(JSON.parse(text)) : failed(new Error(`${path}: ${answer.statusCode} ${text}`))));
    });
    asked.on("error", failed);
    asked.end(body && JSON.stringify(body));
  });
}

const begin = (about) => call("sessions", { producer: { agent_id: "builder" }, summary_normal: about, language: "en" });

const question = (action) => ({ kind: "confirmation", tool: "test", arguments: { action }, action, consequence: "That is that.",
  summary_normal: action, timeout_seconds: 120, default_decision: "reject", risk_level: "medium", irreversible: false });

/** The command, with what it printed, line by line. */
class Command {
  constructor(...options) {
    this.child = spawn(BINARY, options, { env: hub.env, stdio: ["pipe", "pipe", "pipe"] });
    this.lines = [];
    this.errors = "";
    this.waiting = [];
    createInterface({ input: this.child.stdout }).on("line", (line) => {
      this.lines.push(line);
      this.waiting = this.waiting.filter((look) => !look());
    });
    this.child.stderr.on("data", (piece) => (this.errors += piece));
    this.ended = new Promise((done) => this.child.on("exit", (code) => {
      done(code);
      this.waiting.forEach((look) => look(code));
    }));
  }

  /** The first line that fits, now or later. */
  line(pattern) {
    return new Promise((done, failed) => {
      const look = (code) => {
        const found = this.lines.map((line) => pattern.exec(line)).find(Boolean);
        if (found) done(found);
        else if (code !== undefined) failed(new Error(`no ${pattern}: ${this.lines.join("\n")}\n${this.errors}`));
        return found !== undefined;
      };
      if (!look()) this.waiting.push(look);
    });
  }
}

/** Somebody types the code of a terminal into a browser. */
async function typed(command, answer) {
  const [, code] = await command.line(/^Type this code there: (\S+)$/);
  const [, address] = await command.line(/^Open this address in a browser, on any device: (\S+)$/);
  const context = await browser.chromium.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto(address);
  await page.locator("input[name=user_code]").fill(code);
  await page.locator("button[type=submit]").first().click();
  await answer(page);
  await context.close();
}

const logins = join(hub.directory, ".config", "aaep", "logins");
const pause = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

// covers: S4
test("aaep login with a code, and aaep listen that goes on while tokens end", { timeout: 120_000 }, async () => {
  const command = new Command("login", hubUrl, "--ca", certificate);
  await typed(command, async (page) => {
    await page.getByRole("button", { name: "Continue" }).click();
    await signIn(page, "local");
    await page.getByText("Sign-in Success").waitFor();
  });
  await command.line(/^You are signed in\. To listen: aaep listen https:/);
  assert.equal(await command.ended, 0);
  const [file] = readdirSync(logins).filter((name) => name.endsWith(".json"));
  assert.equal(statSync(join(logins, file)).mode & 0o777, 0o600);
  assert.equal(statSync(logins).mode & 0o777, 0o700);

  const listener = new Command("listen", hubUrl, "--json");
  await listener.line(/"happening":"connected"/);
  // Over two lives of a token: everything is heard on one connection.
  const { session_id } = await begin("A long build.");
  for (let step = 1; step <= LIFE * 2; step += 1) {
    await call(`sessions/${session_id}/events`, { type: "aaep:agent.output.streaming", chunk: `Step number ${step}.`,
      position: 0, complete: true, output_id: `out_${step}` });
    await pause(1);
  }
  await listener.line(new RegExp(`Step number ${LIFE * 2}\\.`));
  assert.ok(login.renewed() >= 1, `${login.grants}`);
  const lost = listener.lines.filter((line) => /"(lost|refused)"/.test(line));
  assert.deepEqual(lost, []);
  // And its yes counts, as that of the person who signed in.
  const { request_id } = await call(`sessions/${session_id}/requests`, question("Publish it."));
  const [, number] = await listener.line(/"happening":"asked".*"request":(\d+)/);
  listener.child.stdin.write(`${JSON.stringify({ request: Number(number), answer: "accept" })}\n`);
  const { status, decided_by } = await call(`requests/${request_id}?wait=30`);
  assert.deepEqual([status, decided_by], ["accepted", "work/local"]);
  listener.child.kill("SIGTERM");
  await listener.ended;

  const out = new Command("logout", hubUrl);
  await out.line(/^You are signed out here\.$/);
  assert.equal(await out.ended, 0);
  assert.deepEqual(readdirSync(logins), []);
  assert.ok(login.revoked > 0, "the provider took it back");
  // Whoever is not signed in is told how.
  const refused = new Command("listen", hubUrl, "--json", "--ca", certificate);
  await refused.line(/People sign in with `aaep login`/);
  refused.child.kill("SIGTERM");
  await refused.ended;
});

test("somebody says no at the provider, and nothing is kept", { timeout: 60_000 }, async () => {
  const command = new Command("login", hubUrl, "--ca", certificate);
  await typed(command, async (page) => {
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("Cancel").click();
  });
  assert.equal(await command.ended, 1);
  assert.match(command.errors, /Somebody said no there\./);
  assert.deepEqual(readdirSync(logins), []);
});

// covers: S4, S5
test("the page signs in by keyboard, and goes on while tokens end", { timeout: 120_000 }, async () => {
  const tab = await browser.tab({ ignoreHTTPSErrors: true });
  const asked = [];
  tab.page.on("request", (one) => asked.push({ url: one.url(), body: one.postData() ?? "" }));
  await tab.page.goto(hubUrl);
  await tab.page.getByRole("button", { name: "Sign in with work" }).waitFor();
  await tab.to("Sign in with work");
  await tab.press("Enter");
  await tab.page.waitForURL(`${login.issuer}/**`);
  await signIn(tab.page, "local");
  await tab.page.locator("aaep-subscriber .state").getByText("Connected").waitFor();
  // What the provider's own pages miss does not matter here.
  tab.errors.length = 0;
  assert.equal(tab.page.url(), `${hubUrl}/`, "nothing stays in the address");
  assert.equal(await tab.page.locator("#enter").isVisible(), false);
  // The page speaks with its hub alone, and the secret never went to the provider by the browser.
  const scripted = asked.filter(({ url }) => url.includes("/sign-in/"));
  assert.ok(scripted.every(({ url }) => url.startsWith(hubUrl)));
  const [, verifier] = /"code_verifier":"([^"]+)"/.exec(scripted.find(({ url }) => url.endsWith("/token")).body);
  assert.ok(asked.filter(({ url }) => url.startsWith(login.issuer)).every(({ url, body }) => !(url + body).includes(verifier)));

  const renewed = login.renewed();
  const { session_id } = await begin("Another build.");
  await tab.hears("Another build.");
  await pause(LIFE * 1.5);
  assert.ok(login.renewed() > renewed, `${login.grants}`);
  const { request_id } = await call(`sessions/${session_id}/requests`, question("Publish it again."));
  await tab.dialog("Publish it again.");
  await tab.to("Accept");
  await tab.press("Enter");
  const { status, decided_by } = await call(`requests/${request_id}?wait=30`);
  assert.deepEqual([status, decided_by], ["accepted", "work/local"]);
  const lost = (await tab.heard()).filter((text) => /lost|Connected again/.test(text));
  assert.deepEqual(lost, [], "one connection all the time");
  assert.deepEqual(tab.errors, []);
  await tab.close();
});

// covers: S5
test("who comes with a code that this tab did not ask for is not let in", async () => {
  const tab = await browser.tab({ ignoreHTTPSErrors: true });
  const asked = [];
  tab.page.on("request", (one) => asked.push(one.url()));
  await tab.page.goto(`${hubUrl}/?code=stolen&state=forged&iss=${encodeURIComponent(login.issuer)}`);
  await tab.page.locator("#token-problem").getByText("You were not signed in.").waitFor();
  assert.equal(tab.page.url(), `${hubUrl}/`);
  assert.deepEqual(asked.filter((url) => url.endsWith("/sign-in/token")), []);
  await tab.close();
});
