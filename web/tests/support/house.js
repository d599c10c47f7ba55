// A hub as people run it, with a configuration, a policy and somebody's token; perhaps with a PIN.

import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { BINARY, Hub } from "./hub.js";

export class House {
  /** @param {{policy: string, pin?: string, env?: Record<string, string>}} given */
  static async start({ policy, pin, env }) {
    const house = new House();
    house.directory = mkdtempSync(join(tmpdir(), "aaep-house-"));
    house.token = `aaep_${randomBytes(32).toString("base64url")}`;
    house.config = join(house.directory, "aaep.toml");
    const rules = join(house.directory, "policy.toml");
    const hash = createHash("sha256").update(house.token).digest("hex");
    writeFileSync(rules, policy, { mode: 0o600 });
    writeFileSync(house.config, `policy = ${JSON.stringify(rules)}\n[[principals]]\nname = "reader"\n` +
      `role = "accessibility_consumer"\nuser = "local"\ntoken_sha256 = "${hash}"\n`, { mode: 0o600 });
    house.hub = await Hub.start("hub", { options: ["--config", house.config], env });
    if (pin) house.setPin(pin);
    return house;
  }

  /** Sets the first PIN, with the command. The hub takes it over at once. @param {string} pin */
  setPin(pin) {
    const { status, stderr } = spawnSync(BINARY, ["presence", "set", "--config", this.config],
      { env: this.hub.env, input: `${pin}\n${pin}\n`, encoding: "utf8" });
    if (status !== 0) throw new Error(`no PIN was set: ${stderr}`);
  }

  /** The person shows their token to the page, by keyboard, and may answer from then on. */
  async enter(tab, origin = this.hub.origin) {
    await tab.open(origin);
    await tab.to("Token");
    await tab.keyboard.type(this.token);
    await tab.press("Enter");
    await tab.page.locator("#enter").waitFor({ state: "hidden" });
  }

  async stop() {
    await this.hub.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }
}
