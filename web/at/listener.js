// Presses real keys and notes what is heard after each.

import { spawn } from "node:child_process";

import { Agent, BINARY } from "../tests/support/hub.js";

/** How long it must be silent before a step is over. */
const SILENCE_MS = 1500;

export class Listener {
  constructor(desktop, hub) {
    this.desktop = desktop;
    this.hub = hub;
    this.token = hub?.token;
    /** @type {{what: string, heard: string[]}[]} */
    this.steps = [];
    /** @type {Agent[]} */
    this.agents = [];
    this.scripts = [];
    /** How a scenario begins that can begin in either mode. */
    this.begin = () => this.field();
  }

  /** Loads the page anew: the focus is nowhere, and requests begin with 1. */
  async home() {
    await this.presses("F5", 3000);
    await this.presses("ctrl+Home", SILENCE_MS);
  }

  /** To the field for talking to the agent: there Orca is in focus mode. */
  async field() {
    for (let round = 0; round < 3; round += 1) {
      for (let tries = 0; tries < 8; tries += 1) {
        const heard = await this.presses("Tab", 800);
        if (heard.some(({ text }) => text.includes("Say something"))) return this.desktop.quiet(SILENCE_MS);
      }
      // Orca was still reading the page, and took the focus along.
      await this.home();
    }
    throw new Error("Tab never came to the field");
  }

  /** To a heading in browse mode, where a person reads the page. */
  async reads() {
    for (let heading = 0; heading < 2; heading += 1) await this.presses("h", SILENCE_MS);
  }

  /** Presses Tab until a control is said. */
  async to(label) {
    for (let tries = 0; tries < 40; tries += 1) {
      const heard = await this.presses("Tab", 400);
      if (heard.some(({ text }) => text.includes(label))) return;
    }
    throw new Error(`Tab never came to ${label}`);
  }

  /** Changes what is announced, in the settings. */
  async announces(key) {
    await this.to("Settings");
    await this.presses("Return", SILENCE_MS);
    await this.to("What is announced");
    await this.presses(key, SILENCE_MS);
    await this.home();
  }

  /** Shows a token to the page, with what is heard. */
  async enters(what, token, until) {
    await this.to("Token");
    await this.types(what, token, until);
  }

  /** Types into a field, and presses Enter. */
  async types(what, text, until) {
    this.desktop.type(text);
    await this.desktop.quiet(SILENCE_MS);
    await this.step(`type ${what}, and press Enter`, () => this.desktop.key("Return"), { until });
  }

  /** Starts `aaep listen` in the terminal; how much Orca says of the typing itself depends on its timing. */
  async listens(options) {
    this.desktop.type(`clear; aaep listen ${options} ${this.hub.base}/\n`);
    await this.desktop.until(() => this.desktop.heard().some(({ text }) => text.includes("Press ? for help")), 30_000, "aaep listen")
      .catch(() => this.note("not heard: Press ? for help"));
    await this.desktop.quiet(SILENCE_MS);
  }

  /** A question by another agent, which waits for the answer by itself. */
  async question(text) {
    const agent = await this.agent("Finding out.");
    return agent.clarify(text, ["freetext"]);
  }

  /** Waits until words are being said; that they never are is for the transcript to show. */
  async hears(words) {
    const said = () => this.desktop.heard().at(-1)?.text.includes(words);
    await this.desktop.until(said, 60_000, words).catch(() => this.note(`not heard: ${words}`));
  }

  /** Presses a key, waits until something is said and then silent, and gives it back. */
  async presses(key, silence) {
    const since = Date.now();
    await this.desktop.key(key);
    await this.desktop.until(() => this.desktop.heard(since).length > 0, 10_000, key).catch(() => {});
    await this.desktop.quiet(silence);
    return this.desktop.heard(since);
  }

  /** Does something, and notes what is heard until it is silent; `until` waits for these words first. */
  async step(what, act, { until = "", within = 60_000 } = {}) {
    const since = Date.now();
    const result = await act?.();
    if (until !== "") {
      const there = () => this.desktop.heard(since).some(({ kind, text }) => kind !== "begin" && text.includes(until));
      await this.desktop.until(there, within, `"${until}" after "${what}"`).catch(() => this.note(`not heard: ${until}`));
    }
    await this.desktop.quiet(SILENCE_MS);
    const all = this.desktop.heard(since).filter(({ kind }) => kind !== "begin");
    const heard = all.map(({ kind, text, heard }) => (kind === "cut" ? `${text} (cut after: ${heard})` : text));
    if (this.desktop.display) heard.push(`braille: [${this.desktop.display.shows}]`);
    this.steps.push({ what, heard });
    if (process.env.AAEP_AT_SHOW) {
      const lines = heard.map((line, index) => `    ${all[index] ? ((all[index].at - since) / 1000).toFixed(1) : "   "} ${line}`);
      console.log([`> ${what}`, ...lines].join("\n"));
    }
    return result;
  }

  press(key, more) {
    return this.step(`press ${key}`, () => this.desktop.key(key), more);
  }

  note(text) {
    this.steps.push({ what: `(${text})`, heard: [] });
  }

  async agent(about, name) {
    const agent = await Agent.begin(this.hub, about, name);
    this.agents.push(agent);
    return agent;
  }

  /** A shell script asks; it waits for the answer by itself. */
  script(question, ...options) {
    const hub = ["--hub", this.hub.base];
    const child = spawn(BINARY, ["ask", question, ...options, ...hub], { env: this.hub.env, stdio: "ignore" });
    this.scripts.push(child);
  }

  /** Another listener of the same person says this once something waits. */
  elsewhere(words) {
    const child = spawn(BINARY, ["listen", "--line", `${this.hub.base}/`], { env: this.hub.env, stdio: ["pipe", "pipe", "ignore"] });
    child.stdout.on("data", (text) => String(text).includes("waits for you") && child.stdin.write(`${words}\n`));
    this.scripts.push(child);
  }

  /** Ends what a scenario left open, so that the next one begins with nothing. */
  async leave() {
    for (const child of this.scripts) child.kill();
    for (const agent of this.agents) await agent.end().catch(() => {});
  }

  /** All of it, for people and for comparing. */
  transcript(about) {
    const lines = [about, ""];
    for (const { what, heard } of this.steps) {
      const said = heard.filter((text) => !OWN.test(text)).map((text) => `  ${normal(text)}`);
      lines.push(`> ${what}`, ...(said.length === 0 ? ["  (nothing)"] : said));
    }
    return `${lines.join("\n")}\n`;
  }
}

/** Orca's own words on its mode and on what it leaves: whether it says them depends on its timing. */
const OWN = /^(Browse mode|leaving [a-z ]+\.)$/;

/** What differs from run to run, and what stands for it. @type {[RegExp, string][]} */
const VARIES = [
  [/\b\d+ minutes \d+ seconds\b/g, "some minutes"],
  [/\b\d\d:\d\d( [AP]M)?\b/g, "12:00"],
];

/** A line without what differs from run to run. @param {string} text */
export const normal = (text) => VARIES.reduce((all, [what, stands]) => all.replace(what, stands), text);
