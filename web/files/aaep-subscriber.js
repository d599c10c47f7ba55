// <aaep-subscriber>: hears an agent and answers it, on any page.
//
// docs/page.md tells how to use it.

import { Connection } from "./connection.js";
import { h } from "./dom.js";
import { Inbox } from "./inbox.js";
import { CHOICES, capabilities, load, save } from "./settings.js";
import { View } from "./view.js";
import { Words } from "./words.js";

/** More time is at least this much, and at least twice what was given. */
const MORE_SECONDS = 300;
const MOST_SECONDS = 86_400;

export class AaepSubscriber extends HTMLElement {
  constructor() {
    super();
    this.settings = load();
    this.inbox = new Inbox();
    /** @type {Connection | null} */
    this.connection = null;
    /** @type {View | null} */
    this.view = null;
    /** @type {Promise<void> | null} */
    this.table = null;
    /** @type {string[] | null} */
    this.held = null;
    this.goodbye = () => this.connection?.stop();
    // A page that comes back from the browser's cache connects again.
    this.back = (/** @type {PageTransitionEvent} */ event) => {
      if (event.persisted && this.connection) void this.connect({ token: this.connection.token });
    };
    /** Settled when words are there and the element can be used. @type {Promise<void>} */
    this.ready = new Promise((resolve) => {
      this.isReady = resolve;
    });
  }

  async connectedCallback() {
    addEventListener("pagehide", this.goodbye);
    addEventListener("pageshow", this.back);
    if (this.shadowRoot) return this.view?.start();
    const shadow = this.attachShadow({ mode: "open", delegatesFocus: false });
    shadow.append(h("link", { rel: "stylesheet", href: new URL("styles.css", import.meta.url).href }));
    const words = await this.words();
    this.view = new View(words, this.settings, this.inbox, {
      now: () => this.connection?.now() ?? Date.now(),
      decide: (request, decision) => {
        this.inbox.sent(request, decision);
        return this.reply({ type: "confirmation.reply", reply_token: request.reply_token, decision });
      },
      answer: (request, response) => {
        this.inbox.sent(request, "answer");
        return this.reply({ type: "clarification.reply", reply_token: request.reply_token, response });
      },
      moreTime: (request) => {
        const seconds = Math.min(MOST_SECONDS, Math.max(MORE_SECONDS, request.timeout_seconds * 2));
        return this.reply({ type: "timing:extend", reply_token: request.reply_token, seconds });
      },
      unlock: async (pin) => (await import("./pin.js")).unlock(this.connection, pin),
      connection: () => this.connection,
      isUnlocked: () => this.connection?.isUnlocked === true,
      stop: (session_id) => this.reply({ type: "control:cancel", session_id }),
      change: (changed) => void this.change(changed),
      dialog: (open) => this.emit("aaep-dialog", { open }),
    });
    shadow.append(this.view.root);
    if (this.isConnected) this.view.start();
    this.isReady?.();
    this.emit("aaep-words", {});
  }

  disconnectedCallback() {
    removeEventListener("pagehide", this.goodbye);
    removeEventListener("pageshow", this.back);
    this.connection?.stop();
    this.view?.stop();
  }

  /** The words in the user's language. */
  words() {
    const wanted = this.settings.language === "auto"
      ? [this.getAttribute("language") ?? "", ...navigator.languages]
      : [this.settings.language];
    const base = (/** @type {string} */ tag) => tag.toLowerCase().split("-")[0] ?? "";
    const language = wanted.map(base).find((one) => one !== "auto" && CHOICES.language.includes(one)) ?? "en";
    // The browser knows the country, which decides on the digits.
    const locale = navigator.languages.find((tag) => base(tag) === language && tag !== language);
    return Words.load(language, locale).catch(() => Words.load("en"));
  }

  /** The base of the hub's API: said, or that of the hub that this module comes from. */
  get base() {
    const said = this.getAttribute("base");
    const url = said === null ? new URL("/aaep/v1", import.meta.url) : new URL(said, document.baseURI);
    return url.href.replace(/\/$/, "");
  }

  /**
   * Connects to the hub. The token stays in memory.
   * @param {{token?: string}} [options]
   */
  async connect({ token = "" } = {}) {
    await this.ready;
    this.connection?.stop();
    const asked = capabilities(this.settings, this.view?.words.language ?? "en");
    const connection = new Connection({ base: this.base, token, capabilities: asked, ears: {
      events: (all) => this.hear(...all),
      connected: (hub, again, may_reply) => {
        if (connection.fresh) this.inbox.begins(connection.terms, hub);
        this.inbox.attached(connection.resumed, connection.now());
        this.view?.tell({ kind: "connected", hub, again, may_reply, identity: connection.identity });
        this.emit("aaep-state", { connected: true, mayReply: may_reply });
      },
      lost: () => {
        this.inbox.lost();
        if (connection.was) this.view?.tell({ kind: "lost", hub: connection.hub });
        else this.view?.unconnected("page.unreachable");
        this.emit("aaep-state", { connected: false });
      },
      impostor: (why) => {
        this.view?.unconnected("page.impostor");
        this.emit("aaep-state", { connected: false, impostor: why });
      },
      refused: (...why) => void import("./refused.js").then(({ refused }) => refused(this, ...why),
        () => this.view?.unconnected("page.unreachable")),
    } });
    this.connection = connection;
    void connection.run();
  }

  /**
   * Events that came together. A request in letters that could look like others waits for the table
   * of those, and what comes after it too.
   * @param {...string} all
   */
  hear(...all) {
    const needed = (/** @type {string} */ json) => /[^\0-\x7f]|\\u/.test(json) && json.includes("awaiting.");
    if (!this.table && all.some(needed)) {
      const table = import("./alike.js").then(({ begin }) => begin()).catch(() => {});
      this.table = Promise.all([table, this.view?.words.more()]).then(() => {
        const { held } = this;
        this.held = null;
        if (held) this.take(held);
      });
      this.held = [];
    }
    if (this.held) this.held.push(...all);
    else this.take(all);
  }

  /** @param {string[]} all */
  take(all) {
    // All at the same moment: the dialog and the assertive region come first by themselves (T28).
    const now = this.connection?.now() ?? Date.now();
    for (const json of all) {
      if (json.includes('"presence:state"') && this.presence(json)) continue;
      for (const happening of this.inbox.hear(json, now)) this.view?.tell(happening);
    }
  }

  /** Something happened to the person's PIN; false if it was something else. @param {string} json */
  presence(json) {
    /** @type {any} */
    let told;
    try {
      told = JSON.parse(json);
    } catch {
      return false;
    }
    const { type, state, failures } = told ?? {};
    if (type !== "presence:state") return false;
    if (state === "changed" && this.connection) this.connection.unlocked.until = 0;
    const view = this.view;
    if (["tried", "changed", "passkey_added", "passkey_removed"].includes(state)) {
      void view?.words.more().then(() => view.say(`presence.${state}`, { count: failures ?? 0 }, true));
    }
    return true;
  }

  /** @param {Record<string, unknown>} message */
  async reply(message) {
    return this.connection?.reply(message) ?? { ok: false, status: 0, text: "" };
  }

  /**
   * Says something to the agent.
   * @param {string} text
   */
  async say(text) {
    const sent = (await this.connection?.say(text)) ?? { ok: false, status: 0, text: "" };
    if (sent.ok) this.view?.said(text);
    return sent;
  }

  /**
   * A phrase of the message files, for the page around.
   * @param {string} key
   */
  phrase(key) {
    return this.view?.words.text(key) ?? "";
  }

  /** The user changed a setting: it is kept, and the hub is told. @param {Partial<Settings>} changed */
  async change(changed) {
    Object.assign(this.settings, changed);
    save(this.settings);
    const { view } = this;
    if (!view) return;
    if (changed.notify && "Notification" in globalThis) void Notification.requestPermission();
    view.apply();
    if (changed.language !== undefined) {
      const words = await this.words();
      if (this.table) await words.more();
      view.words = words;
      view.rebuild();
      this.emit("aaep-words", {});
    }
    await this.connection?.renegotiate(capabilities(this.settings, view.words.language));
    view.say("page.changed");
  }

  /** @param {string} name @param {Record<string, unknown>} detail */
  emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { bubbles: true, composed: true, detail }));
  }
}

customElements.define("aaep-subscriber", AaepSubscriber);
