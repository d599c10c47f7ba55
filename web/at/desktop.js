// A desktop without screen and loudspeaker: Xvfb, openbox, D-Bus, the accessibility bus, Speech
// Dispatcher with an output module that writes down what is heard, Orca, and a browser.
//
// Everything lives in a folder and on a display of its own, and ends with it.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { BINARY } from "../tests/support/hub.js";
import { Display } from "./display.js";

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** How much longer a busy machine is waited for, at most. */
const PATIENCE = 3;

/** How many programs want each processor: silence on a busy machine may only mean that it is busy. */
export const busyness = (load = loadavg()[0], processors = availableParallelism()) =>
  Math.min(PATIENCE, Math.max(1, load / processors));

const SPEECHD = (module) => `LogLevel 1
LogDir "default"
DefaultLanguage en
AddModule "heard" "${module}" ""
DefaultModule heard
`;

/** No echo of keys: what is left is what the page makes Orca say. */
const ORCA = `import orca.settings
orca.settings.enableKeyEcho = False
orca.settings.enableTutorialMessages = False
`;

const FIREFOX = {
  "browser.shell.checkDefaultBrowser": false,
  "browser.aboutwelcome.enabled": false,
  "browser.preonboarding.enabled": false,
  "browser.startup.homepage_override.mstone": "ignore",
  "browser.tabs.firefox-view": false,
  "trailhead.firstrun.didSeeAboutWelcome": true,
  "termsofuse.acceptedVersion": 999,
  "datareporting.policy.dataSubmissionEnabled": false,
  "toolkit.telemetry.enabled": false,
  "app.normandy.enabled": false,
  "app.update.enabled": false,
  "network.captive-portal-service.enabled": false,
  "network.connectivity-service.enabled": false,
  "intl.accept_languages": "en-US",
  "accessibility.force_disabled": -1,
};

const CHROMIUM = ["--no-sandbox", "--disable-gpu", "--force-renderer-accessibility", "--no-first-run",
  "--no-default-browser-check", "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--disable-features=Translate,MediaRouter", "--password-store=basic", "--lang=en-US", "--window-size=1200,950"];

/** The first number of Orca's version: it changes what is said. */
export const orcaVersion = () => /\d+/.exec(spawnSync("orca", ["--version"], { encoding: "utf8" }).stdout)?.[0] ?? "unknown";

export class Desktop {
  /** A desktop, perhaps with a braille display. */
  static async start({ braille = false } = {}) {
    const desktop = new Desktop();
    try {
      await desktop.begin(braille);
    } catch (error) {
      await desktop.stop();
      throw error;
    }
    return desktop;
  }

  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), "aaep-at-"));
    this.log = join(this.folder, "heard.jsonl");
    this.children = [];
    /** @type {Display | null} */
    this.display = null;
    process.on("exit", () => {
      this.kill("SIGKILL");
      if (!process.env.AAEP_AT_KEEP) rmSync(this.folder, { recursive: true, force: true });
    });
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));
    const home = join(this.folder, "home");
    const folders = { HOME: home, XDG_RUNTIME_DIR: join(this.folder, "run"), XDG_CONFIG_HOME: join(home, ".config"),
      XDG_DATA_HOME: join(home, ".local/share"), XDG_CACHE_HOME: join(home, ".cache") };
    for (const path of Object.values(folders)) mkdirSync(path, { recursive: true, mode: 0o700 });
    this.env = { ...folders, PATH: process.env.PATH, LANG: "C.UTF-8", LANGUAGE: "en_US", GTK_MODULES: "gail:atk-bridge",
      GNOME_ACCESSIBILITY: "1", ACCESSIBILITY_ENABLED: "1", NO_AT_BRIDGE: "0", GSETTINGS_BACKEND: "keyfile",
      HEARD_LOG: this.log, HEARD_WPM: process.env.HEARD_WPM ?? "300",
      SPEECHD_ADDRESS: `unix_socket:${join(this.folder, "speechd.sock")}` };
  }

  /** Starts a program in a group of its own; with `says`, waits for its first line there. */
  async run(name, command, args, { says = false, extra = "ignore" } = {}) {
    const log = openSync(join(this.folder, `${name}.log`), "w");
    const stdio = ["ignore", says ? "pipe" : log, log, extra];
    const child = spawn(command, args, { env: this.env, stdio, detached: true });
    this.children.push(child);
    const failed = new Promise((_, fails) => child.once("error", fails));
    if (!says && extra === "ignore") return child;
    const pipe = says ? child.stdout : child.stdio[3];
    const line = new Promise((done) => pipe.once("data", (piece) => done(String(piece).trim().split("\n")[0])));
    child.line = await Promise.race([line, failed, sleep(60_000).then(() => Promise.reject(new Error(`${name} does not start`)))]);
    return child;
  }

  async begin(braille) {
    writeFileSync(this.log, "");
    const { line } = await this.run("xvfb", "Xvfb", ["-displayfd", "3", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"],
      { extra: "pipe" });
    this.env.DISPLAY = `:${line}`;
    const bus = await this.run("dbus", "dbus-daemon", ["--session", "--nofork", "--print-address=1"], { says: true });
    this.env.DBUS_SESSION_BUS_ADDRESS = bus.line;
    this.sh("gsettings", "set", "org.gnome.desktop.interface", "toolkit-accessibility", "true");
    this.sh("gsettings", "set", "org.gnome.desktop.a11y.applications", "screen-reader-enabled", "true");
    await this.run("openbox", "openbox", []);
    const speechd = join(this.folder, "speechd");
    mkdirSync(speechd);
    writeFileSync(join(speechd, "speechd.conf"), SPEECHD(fileURLToPath(new URL("heard.js", import.meta.url))));
    await this.run("speechd", "speech-dispatcher", ["-s", "-l", "1", "-L", this.folder, "-c", "unix_socket",
      "-S", join(this.folder, "speechd.sock"), "-P", join(this.folder, "speechd.pid"), "-C", speechd, "-t", "0"]);
    await this.until(() => existsSync(join(this.folder, "speechd.sock")), 60_000, "Speech Dispatcher");
    await this.run("atspi", "/usr/libexec/at-spi-bus-launcher", ["--launch-immediately", "--a11y=1", "--screen-reader=1"]);
    const orca = join(this.env.XDG_DATA_HOME, "orca");
    mkdirSync(orca, { recursive: true });
    writeFileSync(join(orca, "orca-customizations.py"), ORCA);
    if (braille) this.display = await Display.start(this);
    await this.orca();
    await this.quiet(1500);
  }

  /** Starts Orca; on a busy machine it may come before what it needs, and is started again. */
  async orca() {
    for (let tries = 1; ; tries += 1) {
      const orca = await this.run("orca", "orca", [this.display ? "--enable=braille" : "--disable=braille"]);
      try {
        return await this.until(() => this.heard().some(({ text }) => /screen reader on/i.test(text)), 30_000, "Orca");
      } catch (error) {
        if (tries === 3) throw error;
        await this.end(orca);
      }
    }
  }

  sh(command, ...args) {
    return spawnSync(command, args, { env: this.env, encoding: "utf8" }).stdout?.trim() ?? "";
  }

  async until(holds, ms, what) {
    for (const end = Date.now() + ms; Date.now() < end; await sleep(100)) {
      if (holds()) return;
    }
    throw new Error(`${what} did not come within ${ms / 1000} seconds; logs in ${this.folder}`);
  }

  /** Opens a browser, full of accessibility, and waits until Orca has said what it found. */
  async browser(kind, address) {
    const profile = mkdtempSync(join(this.folder, "profile-"));
    if (kind === "firefox") {
      const prefs = Object.entries(FIREFOX).map(([name, value]) => `user_pref("${name}", ${JSON.stringify(value)});\n`);
      writeFileSync(join(profile, "user.js"), prefs.join(""));
      this.shown = await this.run("browser", "firefox-esr", ["--no-remote", "--profile", profile, "--width", "1200",
        "--height", "950", address]);
    } else {
      this.shown = await this.run("browser", process.env.AAEP_CHROMIUM ?? "chromium", [...CHROMIUM,
        `--user-data-dir=${profile}`, address]);
    }
    await this.until(() => this.sh("xdotool", "search", "--onlyvisible", "--name", "Your agent") !== "", 120_000, kind);
    await this.quiet(5000, 90_000);
  }

  /** Opens a terminal with a shell in it. */
  async terminal() {
    Object.assign(this.env, { SHELL: "/bin/sh", PS1: "ready> ", PATH: `${dirname(BINARY)}:${this.env.PATH}` });
    this.shown = await this.run("terminal", "lxterminal", ["--no-remote", "--title=Terminal", "--command=/bin/sh"]);
    await this.until(() => this.heard().some(({ text }) => text.includes("Terminal")), 60_000, "the terminal");
    await this.quiet(3000);
  }

  /** Everything that Speech Dispatcher was given, since a moment. */
  heard(since = 0) {
    return readFileSync(this.log, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line))
      .filter(({ at }) => at >= since);
  }

  /** Waits until nothing was said for a while, which is longer on a busy machine. */
  async quiet(least, most = 60_000) {
    const began = Date.now();
    while (Date.now() - began < most) {
      const last = this.heard().at(-1);
      const since = Date.now() - Math.max(last?.at ?? 0, began);
      if (last?.kind !== "begin" && since >= least * busyness()) return;
      await sleep(100);
    }
  }

  async key(...keys) {
    for (const key of keys) {
      this.sh("xdotool", "key", "--clearmodifiers", key);
      await sleep(150);
    }
  }

  type(text) {
    this.sh("xdotool", "type", "--delay", "40", text);
  }

  kill(signal) {
    for (const child of this.children) {
      try {
        if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, signal);
      } catch {
        // It ended by itself.
      }
    }
  }

  async end(child) {
    const ended = new Promise((done) => child.once("exit", done));
    if (child.exitCode !== null || child.signalCode !== null) return;
    process.kill(-child.pid, "SIGTERM");
    await Promise.race([ended, sleep(5000)]);
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, "SIGKILL");
  }

  async stop() {
    this.display?.unplug();
    for (const child of this.children.reverse()) await this.end(child).catch(() => {});
    if (!process.env.AAEP_AT_KEEP) rmSync(this.folder, { recursive: true, force: true });
  }
}
