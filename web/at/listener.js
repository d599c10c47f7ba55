// Presses real keys and notes what is heard after each.

import { Agent } from "../tests/support/hub.js";

/** How long it must be silent before a step is over. */
const SILENCE_MS = 1500;

export class Listener {
  constructor(desktop, hub) {
    this.desktop = desktop;
    this.hub = hub;
    /** @type {{what: string, heard: string[]}[]} */
    this.steps = [];
  }

  /** Loads the page anew: the focus is nowhere, and requests begin with 1. */
  async home() {
    await this.desktop.key("F5");
    await this.desktop.quiet(3000);
    await this.desktop.key("ctrl+Home");
    await this.desktop.quiet(SILENCE_MS);
  }

  /** To the field for talking to the agent: there Orca is in focus mode. */
  async field() {
    for (let tries = 0; tries < 8; tries += 1) {
      const since = Date.now();
      await this.desktop.key("Tab");
      await this.desktop.quiet(1200);
      if (this.desktop.heard(since).some(({ text }) => text.includes("Say something"))) break;
    }
    await this.desktop.quiet(SILENCE_MS);
  }

  /** Does something, and notes what is heard until it is silent; `for` waits for these words first. */
  async step(what, act, { until = "", silence = SILENCE_MS } = {}) {
    const since = Date.now();
    const result = await act?.();
    if (until !== "") {
      const there = () => this.desktop.heard(since).some(({ kind, text }) => kind !== "begin" && text.includes(until));
      await this.desktop.until(there, 30_000, `"${until}" after "${what}"`).catch((error) => this.note(String(error)));
    }
    await this.desktop.quiet(silence);
    const heard = this.desktop.heard(since).filter(({ kind }) => kind !== "begin")
      .map(({ kind, text, heard, at }) => (process.env.AAEP_AT_TIMES ? `${((at - since) / 1000).toFixed(1)} ` : "") +
        (kind === "cut" ? `${text} (cut after: ${heard})` : text));
    this.steps.push({ what, heard });
    if (process.env.AAEP_AT_SHOW) console.log(`> ${what}\n${heard.map((line) => `    ${line}`).join("\n")}`);
    return result;
  }

  press(key, more) {
    return this.step(`press ${key}`, () => this.desktop.key(key), more);
  }

  note(text) {
    this.steps.push({ what: `(${text})`, heard: [] });
  }

  agent(about, name) {
    return Agent.begin(this.hub, about, name);
  }

  /** All of it, for people and for comparing. */
  transcript(about) {
    const lines = [about, ""];
    for (const { what, heard } of this.steps) {
      lines.push(`> ${what}`, ...heard.map((text) => `  ${normal(text)}`));
      if (heard.length === 0) lines.push("  (nothing)");
    }
    return `${lines.join("\n")}\n`;
  }
}

/** Without what differs from run to run. */
function normal(text) {
  return text.replace(/\b\d+ minutes \d+ seconds\b/g, "some minutes").replace(/\b\d+:\d\d\b/g, "0:00").replace(/\b\d\d:\d\d( [AP]M)?\b/g, "12:00");
}
