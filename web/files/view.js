// What is seen and heard: status, questions that wait, the log.

import { Asking } from "./asking.js";
import { button, focused, h, shown } from "./dom.js";
import { split } from "./memory.js";
import { held, helpPanel, settingsPanel } from "./panel.js";
import { plain } from "./words.js";

/** Outputs at once whose sentences are counted. */
const MAX_OUTPUTS = 256;

/** Events after which a session is over, and those that say where it stands. */
const ENDS = /session\.(completed|errored|cancelled)$/;
const PASSING = /(session\.started|progress\.updated|state\.changed)$/;

export class View extends Asking {
  /**
   * @param {Words} words @param {Settings} settings @param {Inbox} inbox @param {Hands} hands
   */
  constructor(words, settings, inbox, hands) {
    super(words, settings, inbox, hands);
    this.state = h("p", { class: "state" });
    this.running = h("ul", { class: "running" });
    this.waiting = h("ul", { class: "waiting" });
    /** Sentences of outputs that are not read out. @type {Map<string, number>} */
    this.unread = new Map();
    /** What each session said last. @type {Map<string, string>} */
    this.latest = new Map();
    /** @type {number | undefined} */
    this.pending = undefined;
    this.root = h("div", { class: "subscriber" });
    this.press = (/** @type {KeyboardEvent} */ event) => this.shortcut(event);
    this.beat = 0;
    this.build();
  }

  /** The element is in a page. */
  start() {
    this.beat = setInterval(() => this.tick(), 250);
    addEventListener("keydown", this.press);
    this.keys.start();
  }

  /** Everything with words in it is made anew when the language changes. */
  build() {
    const { words } = this;
    this.root.lang = words.language;
    this.root.dir = words.direction;
    this.log.empty.textContent = words.text("page.log.empty");
    this.log.older.textContent = words.text("page.log.older");
    this.log.language = words.locale;
    this.announcer.left = (count) => words.text("page.left_out", { count });
    this.home = h("h2", { id: "now-heading", tabindex: "-1" }, words.text("page.now"));
    this.dialog.home = this.home;
    this.now = h("section", { "aria-labelledby": "now-heading" }, this.home, this.state, this.running,
      h("div", { class: "buttons" }, button(words.text("page.say_now"), () => this.sayNow()),
        button(words.text("page.repeat"), () => this.repeat())));
    this.questions = h("section", { "aria-labelledby": "questions-heading" },
      h("h2", { id: "questions-heading" }), this.waiting);
    const log = h("section", { "aria-labelledby": "log-heading" },
      h("h2", { id: "log-heading", tabindex: "-1" }, words.text("page.log")), this.log.older, this.log.empty,
      this.log.list);
    const options = h("section", { "aria-label": words.text("page.options") },
      settingsPanel(words, this.settings, this.hands.change), this.passkeys(),
      helpPanel(words, this.settings, this.hands.change));
    this.main.replaceChildren(this.questions, this.now, log, options);
    this.root.replaceChildren(this.main, this.dialog.root, this.announcer.polite, this.announcer.assertive);
    this.apply();
    this.refresh();
    if (this.current) this.open(this.current);
    else if (this.stopping !== null) this.askStop(this.stopping);
  }

  /** The part about passkeys; what is in it is loaded when it is opened. */
  passkeys() {
    const panel = h("details", { class: "panel", id: "passkeys" }, h("summary", {}, this.words.text("page.passkeys")));
    panel.addEventListener("toggle", () => {
      void import("./passkeys.js").then(({ fillPanel }) =>
        fillPanel(panel, this.words, this.hands.connection, (key) => this.say(key, {}, true)));
    }, { once: true });
    return panel;
  }

  /** The language changed: the words of the settings, too, whose field the user is in. */
  rebuild() {
    const id = focused()?.id ?? "";
    const open = [...this.main.querySelectorAll("details[open]")].map((panel) => panel.id);
    this.build();
    for (const panel of open) this.main.querySelector(`#${panel}`)?.setAttribute("open", "");
    const same = id === "" ? null : this.main.querySelector(`#${id}`);
    if (same instanceof HTMLElement) same.focus();
  }

  /** There is no connection, for this reason. @param {string} why */
  unconnected(why) {
    this.connection = why;
    this.refresh();
    this.say(why, {}, true);
  }

  /** Takes over settings that need no new words. */
  apply() {
    this.announcer.sounds = this.settings.sounds;
    this.announcer.notify = this.settings.notify;
    this.announcer.quiet = this.settings.hear === "asks";
    this.announcer.pace = this.settings.pace;
  }

  stop() {
    clearInterval(this.beat);
    removeEventListener("keydown", this.press);
    this.keys.stop();
  }

  /** @param {Happening} happening */
  tell(happening) {
    if ("agent" in happening && this.agents.size < 2) this.agents.add(happening.agent.id);
    switch (happening.kind) {
      case "asked": return this.asked(happening.request);
      case "settled": return this.settled(happening.request, happening.outcome);
      case "text": return this.text(happening);
      case "connected":
      case "lost": return this.connected(happening);
      case "event":
      case "silence": return this.event(happening);
      case "over": return this.over(happening);
    }
  }

  /** @param {OverHappening} happening */
  over(happening) {
    this.announcer.say(this.words.say(happening, this.manner).map(plain).join(" "));
    this.ended(happening.session_id);
    this.refreshSoon();
  }

  /** @param {EventHappening | SilenceHappening} happening */
  event(happening) {
    if (happening.kind === "silence") {
      this.announcer.say(this.words.say(happening, this.manner).map(plain).join(" "));
      return this.refreshSoon();
    }
    const { critical, agent } = happening;
    const { session_id, summary_normal, to_state, type, localization_hints } = happening.event;
    // That an agent waits is told by its request.
    if (to_state === "awaiting_input" && !critical) return this.refreshSoon();
    // An agent that is at work has got what was sent.
    this.announcer.drop("sent");
    const said = this.news(happening);
    const doing = this.doing(happening);
    // In the log each session has a heading with its agent's name.
    for (const line of doing ?? this.words.say(said, { ...this.manner, name_agents: false })) {
      this.entry(session_id, agent.name, summary_normal, line, localization_hints?.primary_language ?? "", critical ? "grave" : "");
    }
    const name = String(type);
    if (name.endsWith("session.completed")) this.announcer.play("done");
    if (name.endsWith("session.errored")) this.announcer.play("error");
    if (ENDS.test(name)) this.ended(session_id);
    // Of where it stands only the latest is said; one announcement for one event.
    const passing = `passing ${session_id}`;
    const writing = `writing ${session_id}`;
    this.announcer.drop(writing);
    const topic = critical || !(doing || PASSING.test(name)) ? "" : to_state === "writing_output" ? writing : passing;
    if (ENDS.test(name) || name.endsWith("tool.completed")) this.announcer.drop(passing);
    this.announcer.say((doing ?? this.words.say(said, this.manner)).map(plain).join(" "), critical, { topic });
    this.refreshSoon();
  }

  /**
   * What was accepted begins: said bare, it would sound like another question.
   * @param {EventHappening} happening
   * @returns {Line[] | null}
   */
  doing({ event }) {
    const accepted = this.accepted.get(event.session_id);
    if (accepted === undefined || !String(event.type).endsWith("tool.invoked")) return null;
    this.accepted.delete(event.session_id);
    const summary = typeof event.summary_normal === "string" ? event.summary_normal.trim() : "";
    if (summary === "" || summary === accepted) return [this.words.phrase("page.doing")];
    return [this.words.phrase("page.doing.now", { summary: { theirs: summary } })];
  }

  /**
   * An event without what was just said.
   * @param {EventHappening} happening
   * @returns {EventHappening}
   */
  news(happening) {
    const { event } = happening;
    const { session_id, type } = event;
    const summary = typeof event.summary_normal === "string" ? event.summary_normal.trim() : "";
    const name = String(type);
    const without = { summary_terse: "", summary_normal: "", summary_detailed: "" };
    const repeats = summary !== "" && this.latest.get(session_id) === summary;
    if (ENDS.test(name)) this.latest.delete(session_id);
    else if (summary !== "") this.latest.set(session_id, summary);
    if (this.latest.size > MAX_OUTPUTS) this.latest.delete(this.latest.keys().next().value ?? "");
    return repeats && name.endsWith("session.completed") ? { ...happening, event: { ...event, ...without } } : happening;
  }

  /** The user said something. @param {string} text */
  said(text) {
    this.log.note(this.words.phrase("page.you", { text: { theirs: text } }));
    this.announcer.say(this.words.text("page.sent"), false, { topic: "sent", anyway: true });
  }

  /** @param {TextHappening} happening */
  text({ agent, session_id, output_id, text, ends, after_gap, language }) {
    if (after_gap) this.entry(session_id, agent.name, "", this.words.phrase("text.gap"), "", "hint");
    const parts = split(text);
    for (const part of parts) {
      const line = this.words.phrase("page.sentence", { text: { theirs: part } });
      this.entry(session_id, agent.name, "", line, language, "output");
      if (this.settings.reading === "sentence") this.announcer.say(plain(line));
    }
    const count = (this.unread.get(output_id) ?? 0) + parts.length;
    this.unread.delete(output_id);
    if (!ends) {
      // Some never end; the oldest is forgotten.
      if (this.unread.size >= MAX_OUTPUTS) this.unread.delete(this.unread.keys().next().value ?? "");
      this.unread.set(output_id, count);
      return;
    }
    this.announcer.drop(`writing ${session_id}`);
    if (this.settings.reading === "end" && count > 0) this.say("page.written", { count });
  }

  /** @param {LinkHappening} happening */
  connected(happening) {
    const lines = this.words.say(happening, this.manner);
    // Also while a request is open: without the hub nobody can answer it.
    this.announcer.say(lines.map(plain).join(" "), false, { topic: "link", anyway: true });
    if (happening.kind === "lost") this.connection = "page.lost";
    else this.connection = happening.may_reply ? "page.connected" : "page.listening";
    this.refresh();
  }

  /** A quarter of a second has passed. */
  tick() {
    this.announcer.tidy();
    for (const happening of this.inbox.tick(this.hands.now())) this.tell(happening);
    for (const request of this.inbox.waiting()) this.tellTime(request);
    this.closeOrphan();
    this.openNext();
    this.showTime();
  }

  /** Many events at once are shown once. */
  refreshSoon() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = undefined;
      this.refresh();
    });
  }

  refresh() {
    this.atLeisure(() => this.redraw());
  }

  /** Draws what changed, and nothing else: a screen reader looks at everything that is drawn anew. */
  redraw() {
    const { words } = this;
    const sessions = this.inbox.running();
    const requests = this.inbox.waiting();
    write(this.state, words.text(this.connection) +
      (sessions.length === 0 && /connected|listening/.test(this.connection) ? ` ${words.text("page.idle")}` : ""));
    this.running.hidden = sessions.length === 0;
    keep(this.running, sessions.slice(-20).map((session) => {
      const line = words.phrase("page.running", { agent: { theirs: session.agent.name }, about: { theirs: session.about },
        doing: { theirs: session.doing || session.about } });
      const stop = button(words.text("page.stop"), () => this.askStop(session.id), { class: "stop",
        "data-key": `stop-${session.id}` });
      const which = words.text("page.sentence", { text: { theirs: session.about || session.agent.name } });
      stop.append(h("span", { class: "unseen" }, ` ${which}`));
      stop.hidden = this.connection === "page.listening";
      return h("li", {}, h("span", {}, ...shown(line)), " ", stop);
    }));
    const heading = this.questions?.querySelector("h2");
    if (heading) write(heading, this.howMany(requests.length));
    this.waiting.hidden = requests.length === 0;
    keep(this.waiting, requests.map((request) => {
      const opener = this.opener(request);
      opener.dataset.key = `open-${request.number}`;
      return h("li", {}, opener);
    }));
    this.root.dispatchEvent(new CustomEvent("aaep-requests", { bubbles: true, composed: true,
      detail: { count: requests.length } }));
  }

  /** @param {number} count */
  howMany(count) {
    return count === 0 ? this.words.text("page.questions.none") : this.words.text("page.questions", { count });
  }

  /** @param {KeyboardEvent} event */
  shortcut(event) {
    const { shortcuts, modifiers, keys } = this.settings;
    if (!shortcuts || !held(event, modifiers)) return;
    const [does] = Object.entries(keys).find(([, code]) => code === event.code) ?? [];
    if (!does || event.repeat) return;
    event.preventDefault();
    switch (does) {
      case "questions": return this.nextQuestion();
      case "repeat": return this.repeat();
      case "now": return this.sayNow();
      case "accept":
      case "reject": {
        if (!this.current) return this.say("page.questions.none", {}, true);
        if (this.connection === "page.listening") return this.say("connected.listen_only", {}, true);
        // Not in the second step: that one is only for its own buttons.
        if (!(this.isSecond && does === "accept")) this.decide(does);
        return;
      }
      case "more_time": return this.moreTime();
      case "stop": {
        const session = this.current?.session_id ?? this.inbox.running().at(-1)?.id;
        if (this.connection === "page.listening") this.say("connected.listen_only", {}, true);
        else if (session) this.askStop(session);
        else this.say("page.nothing", {}, true);
        return;
      }
      case "log": {
        if (this.dialog.isOpen) return;
        const heading = this.main.querySelector("#log-heading");
        if (heading instanceof HTMLElement) heading.focus();
      }
    }
  }

  nextQuestion() {
    const all = this.inbox.waiting();
    const number = this.current?.number ?? 0;
    const next = all.find((request) => request.number > number) ?? all[0];
    if (next) this.open(next);
    else this.say("page.questions.none", {}, true);
  }

  sayNow() {
    const parts = [this.state.textContent];
    for (const session of this.inbox.running().slice(-5)) {
      parts.push(this.words.text("page.running", { agent: { theirs: session.agent.name },
        about: { theirs: session.about }, doing: { theirs: session.doing || session.about } }));
    }
    parts.push(`${this.howMany(this.inbox.open.size)}.`);
    this.announcer.say(parts.join(" "), true);
  }
}

/** @param {HTMLElement} element @param {string} text */
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Puts these into a list, unless they are there, and the focus back on the button that had it.
 * @param {HTMLElement} list @param {HTMLElement[]} items
 */
function keep(list, items) {
  const same = items.length === list.children.length && items.every((item, at) => list.children[at]?.isEqualNode(item));
  if (same) return;
  const key = list.contains(focused()) ? focused()?.dataset.key : undefined;
  list.replaceChildren(...items);
  if (key === undefined) return;
  const found = [...list.querySelectorAll("button")].find((one) => one.dataset.key === key);
  found?.focus();
}
