// A connection to a hub: handshake, stream, resume, replies (§5, §6, B.1).
// `EventSource` cannot send headers, so the stream is read with `fetch`.

/** The extensions of ours that we understand. */
const EXTENSIONS = [
  "urn:aaep-rs:outcome:v1",
  "urn:aaep-rs:timing:v1",
  "urn:aaep-rs:control:v1",
  "urn:aaep-rs:action:v1",
  "urn:aaep-rs:presence:v1",
];

/** The longest event that is read, in characters; what is longer is dropped. */
const MAX_EVENT = 4 * 1024 * 1024;

/** The hub says something every 15 seconds; after this much silence it is gone. */
const SILENCE_MS = 45_000;

/** How long an answer to a message is waited for. */
const ANSWER_MS = 20_000;

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;

/** Reads server-sent events out of pieces of text. */
export class Frames {
  /** @param {(frame: {event: string, id: string, data: string}) => void} give */
  constructor(give) {
    this.give = give;
    this.rest = "";
    this.event = "";
    this.id = "";
    /** @type {string[]} */
    this.data = [];
    this.size = 0;
  }

  clear() {
    this.event = "";
    this.id = "";
    this.data = [];
    this.size = 0;
  }

  /** @param {string} text */
  push(text) {
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    if (this.rest.length > MAX_EVENT) this.rest = "";
    for (const line of lines) this.line(line);
  }

  /** @param {string} line */
  line(line) {
    if (line === "") {
      if (this.data.length > 0 && this.size <= MAX_EVENT) {
        this.give({ event: this.event, id: this.id, data: this.data.join("\n") });
      }
      this.clear();
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    if (value.startsWith(" ")) value = value.slice(1);
    if (name === "event") this.event = value;
    else if (name === "id") this.id = value;
    else if (name === "data") {
      this.size += value.length;
      if (this.size <= MAX_EVENT) this.data.push(value);
    }
  }
}

/** Whether this browser knows the key of any hub; without storage it knows none. */
function remembers() {
  try {
    return (globalThis.localStorage?.getItem("aaep-known-agents") ?? null) !== null;
  } catch {
    return false;
  }
}

export class Connection {
  /**
   * @param {{base: string, token: string, capabilities: Message, ears: Ears}} options
   */
  constructor({ base, token, capabilities, ears }) {
    this.base = base;
    this.token = token;
    this.capabilities = capabilities;
    this.ears = ears;
    this.subscription = "";
    this.lastId = "";
    this.mayReply = false;
    /** The subscription on whose stream the PIN was typed, and until when it counts. */
    this.unlocked = { subscription: "", until: 0 };
    /** What the hub agreed to. @type {any} */
    this.terms = {};
    /** Whether the subscription is new to whoever hears. */
    this.fresh = false;
    this.resumed = false;
    this.hub = "";
    /** Whether the hub is who it says. @type {Identity | null} */
    this.identity = null;
    /** The server's clock minus ours, in milliseconds (D9). */
    this.skew = 0;
    this.was = false;
    this.stopped = false;
    this.stream = new AbortController();
    /** @type {() => void} */
    this.wake = () => {};
    this.online = () => this.wake();
    globalThis.addEventListener?.("online", this.online);
  }

  /** Connects, and stays connected until it is stopped or refused. */
  async run() {
    let pause = FIRST_PAUSE_MS;
    let told = false;
    while (!this.stopped) {
      const heard = () => {
        pause = FIRST_PAUSE_MS;
        told = false;
      };
      try {
        if (this.subscription === "" && !(await this.subscribe())) return;
        await this.listen(heard);
      } catch {
        // Whatever it was, the next attempt tells.
      }
      if (this.stopped) return;
      if (!told) this.ears.lost();
      told = true;
      await this.sleep(pause * (0.75 + Math.random() / 2));
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
    }
  }

  /** @param {number} ms */
  sleep(ms) {
    return new Promise((done) => {
      const timer = setTimeout(done, ms);
      this.wake = () => {
        clearTimeout(timer);
        done(undefined);
      };
    });
  }

  /** The time by the server's clock. */
  now() {
    return Date.now() + this.skew;
  }

  /** @param {string} path @param {RequestInit} options */
  fetch(path, options) {
    const headers = new Headers(options.headers);
    if (this.token !== "") headers.set("authorization", `Bearer ${this.token}`);
    const url = `${this.base}/${path}`;
    return fetch(url, { ...options, headers, credentials: "omit", cache: "no-store" });
  }

  /** @param {string} path @param {Message} message */
  post(path, message) {
    return this.fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(message),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
  }

  /**
   * The handshake. False if there is no use in trying again.
   * @returns {Promise<boolean>}
   */
  async subscribe() {
    const answer = await this.post("subscriptions", {
      type: "subscription.request",
      aaep_version: "1.0.0",
      subscriber_id: "aaep-page",
      capabilities: this.asked(),
    });
    const body = await answer.json();
    if (answer.status !== 201) {
      if ([401, 403, 404, 422].includes(answer.status)) {
        this.stopped = true;
        this.ears.refused(answer.status, body);
        return false;
      }
      throw new Error(String(answer.status));
    }
    const date = Date.parse(answer.headers.get("date") ?? "");
    // The header has whole seconds; a smaller difference is none.
    const skew = date + 500 - Date.now();
    this.skew = Math.abs(skew) > 1500 ? skew : 0;
    if (!(await this.believes(body))) return false;
    this.subscription = String(body.subscription_id);
    this.fresh = true;
    this.agreed(body);
    return true;
  }

  // enforces: S7
  /**
   * Looks at who accepted, before anything that it says is heard. False if it is not to be believed.
   * @param {any} accepted
   */
  async believes(accepted) {
    if (accepted.signed_manifest === undefined && !remembers()) return true;
    const { identify, NotBelieved } = await import("./identity.js");
    try {
      this.identity = await identify(accepted, new URL(this.base, globalThis.location?.href).host, Date.now());
      return true;
    } catch (error) {
      if (!(error instanceof NotBelieved)) throw error;
      this.stopped = true;
      this.ears.impostor(error.message);
      return false;
    }
  }

  asked() {
    return {
      supports_confirmation_reply: true,
      supports_clarification_reply: true,
      supported_conformance_levels: [1, 2, 3],
      supported_extensions: EXTENSIONS,
      ...this.capabilities,
    };
  }

  /** @param {any} accepted */
  agreed(accepted) {
    this.terms = accepted.honored_capabilities ?? {};
    this.mayReply = this.terms.supports_confirmation_reply === true;
    this.hub = String(accepted.producer?.agent_name ?? accepted.producer?.agent_id ?? "");
  }

  /** @param {() => void} heard called when the stream is there */
  async listen(heard) {
    this.stream = new AbortController();
    const stream = this.stream;
    let patience = setTimeout(() => stream.abort(), SILENCE_MS);
    const headers = new Headers();
    if (this.lastId !== "") headers.set("last-event-id", this.lastId);
    try {
      const path = `events?subscription_id=${encodeURIComponent(this.subscription)}`;
      const answer = await this.fetch(path, { headers, signal: stream.signal });
      if (!answer.ok || !answer.body) {
        // The subscription is gone; what was missed is asked for on the next one.
        this.subscription = "";
        throw new Error(String(answer.status));
      }
      heard();
      // Whether all that was missed follows; a server that does not say so may have forgotten it.
      const resumed = answer.headers.get("aaep-resumed");
      // A PIN counts on the stream on which it was typed.
      this.unlocked = { subscription: "", until: 0 };
      this.resumed = resumed === null ? !this.fresh : resumed === "all";
      this.ears.connected(this.hub, this.was, this.mayReply);
      this.was = true;
      this.fresh = false;
      /** @type {string[]} */
      let came = [];
      const frames = new Frames(({ id, data }) => {
        if (id !== "") this.lastId = id;
        came.push(data);
      });
      const decoder = new TextDecoder();
      const reader = answer.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(patience);
        patience = setTimeout(() => stream.abort(), SILENCE_MS);
        frames.push(decoder.decode(value, { stream: true }));
        if (came.length > 0) this.ears.events(came);
        came = [];
      }
    } finally {
      clearTimeout(patience);
    }
  }

  /**
   * Changes the terms (H18).
   * @param {Message} capabilities
   */
  async renegotiate(capabilities) {
    const gone = Object.keys(this.capabilities).some((name) => !(name in capabilities));
    this.capabilities = capabilities;
    if (this.subscription === "") return;
    // What is not named stays as it was, so whoever wants less begins anew.
    if (!gone) try {
      const answer = await this.post("replies", {
        type: "subscription.renegotiate",
        subscription_id: this.subscription,
        capabilities: this.asked(),
      });
      const body = answer.status === 200 ? await answer.json() : {};
      if (body.type === "subscription.accepted") return this.agreed(body);
    } catch {
      // Begins anew, below.
    }
    this.subscription = "";
    this.stream.abort();
    this.wake();
  }

  /**
   * Sends a reply, or a message of our extensions; the stamp is filled in.
   * @param {Message} message
   * @returns {Promise<Sent>}
   */
  reply(message) {
    const timestamp = new Date(this.now()).toISOString();
    return this.send("replies", { ...message, subscription_id: this.subscription, timestamp });
  }

  /** Whether a PIN that was typed still counts. */
  get isUnlocked() {
    return this.unlocked.subscription === this.subscription && Date.now() < this.unlocked.until;
  }

  /**
   * Says something to the agent.
   * @param {string} text
   * @returns {Promise<Sent>}
   */
  say(text) {
    return this.send("messages", { kind: "user_input", text });
  }

  /**
   * @param {string} path @param {Message} message
   * @returns {Promise<Sent>}
   */
  async send(path, message) {
    try {
      const answer = await this.post(path, message);
      const body = answer.ok ? {} : await answer.json().catch(() => ({}));
      return { ok: answer.ok, status: answer.status, text: String(body.text ?? "") };
    } catch {
      return { ok: false, status: 0, text: "" };
    }
  }

  /** Says goodbye (H26). */
  stop() {
    if (this.stopped) return;
    this.stopped = true;
    globalThis.removeEventListener?.("online", this.online);
    if (this.subscription !== "") {
      const body = { type: "subscription.close", subscription_id: this.subscription };
      const headers = { "content-type": "application/json" };
      const close = { method: "POST", headers, body: JSON.stringify(body), keepalive: true };
      this.fetch("replies", close).catch(() => {});
    }
    this.stream.abort();
    this.wake();
  }
}
