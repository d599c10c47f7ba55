// The real command, on a free port, with directories of its own.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const BINARY = process.env.AAEP_BIN ?? "aaep";

/** A port that is free now. */
export function freePort() {
  return new Promise((found) => {
    const server = createServer();
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });
}

/** Everything that a test started ends with it. */
const started = new Set();
process.on("exit", () => started.forEach((child) => child.kill("SIGKILL")));
// A signal that ends the process would skip that.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));

export class Hub {
  constructor(command, { port, directory, options = [], env = {} }) {
    this.command = command;
    this.port = port;
    this.directory = directory ?? mkdtempSync(join(tmpdir(), "aaep-page-"));
    this.options = options;
    this.given = env;
  }

  static async start(command, { options = [], port, env } = {}) {
    const hub = new Hub(command, { port: port ?? (await freePort()), options, env });
    await hub.begin();
    return hub;
  }

  /** Starts it, and waits until it says that it is ready. */
  async begin() {
    const home = this.directory;
    this.env = { HOME: home, XDG_DATA_HOME: join(home, "data"), XDG_STATE_HOME: join(home, "state"),
      XDG_RUNTIME_DIR: home, PATH: process.env.PATH,
      // A test is the agent, and starts the browser that answers.
      AAEP_DEVELOPMENT__OWN_REPLIES: "true", ...this.given };
    this.child = spawn(BINARY, [this.command, "--listen", `127.0.0.1:${this.port}`, ...this.options],
      { env: this.env, stdio: ["ignore", "pipe", "pipe"] });
    started.add(this.child);
    // A test that fails before it stops its hub shall end all the same.
    for (const one of [this.child, this.child.stdout, this.child.stderr]) one.unref();
    this.text = "";
    this.errors = "";
    this.child.stderr.on("data", (piece) => (this.errors += piece));
    await new Promise((ready, failed) => {
      // Until it is ready it is waited for.
      const waiting = setInterval(() => {}, 60_000);
      const over = (then) => (what) => {
        clearInterval(waiting);
        then(what);
      };
      [ready, failed] = [over(ready), over(failed)];
      this.child.on("error", failed);
      this.child.on("exit", (code) => failed(new Error(`ended with ${code}: ${this.errors}`)));
      this.child.stdout.on("data", (piece) => {
        this.text += piece;
        if (this.text.includes("Ready.")) ready();
      });
    });
  }

  get origin() {
    return `http://127.0.0.1:${this.port}`;
  }

  get base() {
    return `${this.origin}/aaep/v1`;
  }

  /** The address of the page, with its code. */
  get page() {
    return /Page: (\S+)/.exec(this.text)[1];
  }

  /** Ends it; its directory stays for another start. */
  async end(signal = "SIGTERM") {
    const ended = new Promise((done) => this.child.on("exit", done));
    this.child.ref();
    // One that ended by itself says so no more.
    if (this.child.exitCode === null && this.child.signalCode === null) {
      this.child.kill(signal);
      await ended;
    }
    started.delete(this.child);
  }

  async stop() {
    await this.end();
    rmSync(this.directory, { recursive: true, force: true });
  }

  async post(path, body, token, secret) {
    const headers = { "content-type": "application/json", ...secretHeader(secret) };
    if (token) headers.authorization = `Bearer ${token}`;
    const answer = await fetch(`${this.base}/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  async get(path, secret) {
    const answer = await fetch(`${this.base}/${path}`, { headers: secretHeader(secret) });
    return answer.json();
  }

  say(text) {
    return this.post("messages", { kind: "user_input", text });
  }
}

/** What an agent without a token shows. */
function secretHeader(secret) {
  return secret ? { "aaep-session-secret": secret } : {};
}

/** An agent of our own, over the agent API. */
export class Agent {
  static async begin(hub, about = "Trying something.", name = "Tester") {
    const agent = new Agent();
    agent.hub = hub;
    const { session_id, session_secret } = await hub.post("agent/sessions", {
      producer: { agent_id: name.toLowerCase(), agent_name: name }, summary_normal: about, language: "en" });
    agent.session = session_id;
    agent.secret = session_secret;
    return agent;
  }

  emit(type, payload) {
    const event = { type: `aaep:agent.${type}`, ...payload };
    return this.hub.post(`agent/sessions/${this.session}/events`, event, undefined, this.secret);
  }

  async ask(payload) {
    const path = `agent/sessions/${this.session}/requests`;
    const { request_id } = await this.hub.post(path, payload, undefined, this.secret);
    return request_id;
  }

  /** Asks for consent; grave unless said otherwise. */
  confirm(action, more = {}) {
    return this.ask({ kind: "confirmation", tool: "test", arguments: { action }, action,
      consequence: "That is that.", summary_normal: action, timeout_seconds: 300,
      default_decision: "reject", risk_level: "high", irreversible: true, ...more });
  }

  clarify(question, kinds, more = {}) {
    return this.ask({ kind: "clarification", question, accepted_response_kinds: kinds, timeout_seconds: 120,
      summary_normal: question, ...more });
  }

  /** Where a request stands now. */
  look(request) {
    return this.hub.get(`agent/requests/${request}`, this.secret);
  }

  /** Waits for what becomes of a request. */
  outcome(request) {
    return this.hub.get(`agent/requests/${request}?wait=30`, this.secret);
  }

  /** Begins what was accepted; gives back the call. */
  async invoke(request) {
    const { tool_call_id } = await this.hub.post(`agent/requests/${request}/invoke`, {}, undefined, this.secret);
    return tool_call_id;
  }

  async withdraw(request) {
    const headers = secretHeader(this.secret);
    await fetch(`${this.hub.base}/agent/requests/${request}`, { method: "DELETE", headers });
  }

  end(summary = "Done with it.") {
    return this.emit("session.completed", { summary_normal: summary });
  }
}
