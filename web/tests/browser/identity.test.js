// Who the hub is: a page that knows it says so, and does not connect to somebody who passes for it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

import { Browser } from "../support/browser.js";
import { BINARY, Hub } from "../support/hub.js";

const directory = mkdtempSync(join(tmpdir(), "aaep-identity-"));
const [key, config] = ["key.pem", "aaep.toml"].map((name) => join(directory, name));
writeFileSync(config, `[hub]\nagent_id = "aaep-demo"\nmanifest_key = ${JSON.stringify(key)}\n`, { mode: 0o600 });
const keygen = () => {
  rmSync(key, { force: true });
  execFileSync(BINARY, ["manifest", "keygen", key]);
};
keygen();
const options = ["--ephemeral", "--config", config];
let hub = await Hub.start("demo", { options });
const browser = await Browser.open();
after(async () => {
  await browser.close();
  await hub.stop();
  rmSync(directory, { recursive: true, force: true });
});

// covers: S7
test("the first key is said and remembered, and a page does not connect when it changes", async () => {
  const tab = await browser.tab();
  await tab.open(hub.origin);
  await tab.hears("Its key is remembered from now on");
  await tab.page.reload();
  await tab.hears("Its identity is verified: ");
  const { port } = hub;
  await hub.stop();
  keygen();
  hub = await Hub.start("demo", { options, port });
  await tab.page.reload();
  await tab.page.locator("aaep-subscriber").getByText("this hub's key has changed").first().waitFor();
  const events = tab.asked.filter((url) => url.includes("/events")).length;
  assert.equal(await tab.page.getByText("Connected.").count(), 0);
  assert.equal(tab.asked.filter((url) => url.includes("/events")).length, events, "nothing is heard of it");
  await tab.close();
});
