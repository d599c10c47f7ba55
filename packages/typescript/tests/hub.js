// A hub of a test's own, as the real program, and somebody who listens and answers.

import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";

export class Hub {
  /** `answer` is accept, reject, stop, or a function of the event; without it nobody answers. */
  static async start(answer, { program = process.env.AAEP_PROGRAM, port = 0, environment = {} } = {}) {
    const hub = new Hub();
    hub.events = [];
    hub.waiting = [];
    const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("AAEP_"));
    const env = {
      ...Object.fromEntries(kept), AAEP_DEVELOPMENT__LOCAL_REPLIES: "true", AAEP_UNIX_SOCKET__ENABLED: "false", ...environment,
    };
    hub.process = spawn(program, ["hub", "--ephemeral", "--listen", `127.0.0.1:${port}`], { env, stdio: ["ignore", "pipe", "ignore"] });
    for await (const line of createInterface({ input: hub.process.stdout })) {
      const found = /^Listening: (\S+)/.exec(line);
      if (found) hub.url = found[1];
      if (line.startsWith("Ready.")) break;
    }
    hub.process.stdout.resume();
    hub.base = new URL(hub.url).pathname === "/" ? `${hub.url.replace(/\/$/, "")}/aaep/v1` : hub.url;
    try {
      await hub.listen(answer);
    } catch (error) {
      hub.process.kill();
      throw error;
    }
    return hub;
  }

  async listen(answer) {
    this.leave = new AbortController();
    const subscription = await this.post("subscriptions", {
      type: "subscription.request", aaep_version: "1.0.0", subscriber_id: "test",
      capabilities: { supports_confirmation_reply: true, supports_clarification_reply: true, languages: ["en"] },
    });
    this.subscription = subscription.subscription_id;
    if (!this.subscription) throw new Error(`no subscription: ${JSON.stringify(subscription)}`);
    const stream = await fetch(`${this.base}/events?subscription_id=${this.subscription}`, { signal: this.leave.signal });
    void this.hear(stream, answer).catch(() => {});
  }

  async hear(stream, answer) {
    let text = "";
    for await (const piece of stream.body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const data = text.slice(0, end).split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
        text = text.slice(end + 2);
        if (data === "") continue;
        const event = JSON.parse(data);
        this.events.push(event);
        for (const look of [...this.waiting]) look();
        if (event.reply_token) void this.answer(event, answer).catch(() => {});
      }
    }
  }

  async answer(event, answer) {
    const said = typeof answer === "function" ? answer(event) : answer;
    const base = { subscription_id: this.subscription, timestamp: new Date().toISOString() };
    if (said === "stop") return this.post("replies", { ...base, type: "control:cancel", session_id: event.session_id });
    const reply = { ...base, reply_token: event.reply_token };
    if (said === "accept" || said === "reject") return this.post("replies", { ...reply, type: "confirmation.reply", decision: said });
    return said === undefined ? undefined : this.post("replies", { ...reply, type: "clarification.reply", response: said });
  }

  async post(path, message) {
    const answer = await fetch(`${this.base}/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(message) });
    const text = await answer.text();
    return text === "" ? {} : JSON.parse(text);
  }

  /** It stands still, with all its threads. */
  async away() {
    this.process.kill("SIGSTOP");
    const tasks = `/proc/${this.process.pid}/task`;
    const runs = (task) => !/\) T /.test(readFileSync(`${tasks}/${task}/stat`, "utf8"));
    while (readdirSync(tasks).some(runs)) await new Promise((done) => setTimeout(done, 5));
  }

  /** What was heard, by kind. */
  kinds() {
    return this.events.map(({ type }) => type.replace("aaep:agent.", ""));
  }

  /** Waits until something of this kind was heard, as often as that. */
  heard(kind, times = 1) {
    return new Promise((done, failed) => {
      const find = () => this.events.filter(({ type }) => type === `aaep:agent.${kind}`)[times - 1];
      const timer = setTimeout(() => failed(new Error(`no ${kind} was heard, only ${this.kinds()}`)), 30_000);
      const look = () => {
        const event = find();
        if (event === undefined) return false;
        clearTimeout(timer);
        this.waiting = this.waiting.filter((one) => one !== look);
        done(event);
        return true;
      };
      if (!look()) this.waiting.push(look);
    });
  }

  async stop() {
    this.leave?.abort();
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const gone = new Promise((done) => this.process.once("exit", done));
    this.process.kill();
    await gone;
  }
}
