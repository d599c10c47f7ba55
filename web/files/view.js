// What is seen and heard: status, questions that wait, the log.

import { Asking } from "./asking.js";
import { button, focused, h, shown } from "./dom.js";
import { split } from "./inbox.js";
import { SHORTCUTS, helpPanel, settingsPanel } from "./panel.js";
import { plain } from "./words.js";

/** Outputs at once whose sentences are counted. */
const MAX_OUTPUTS = 256;

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
    this.now = h("section", { "aria-labelledby": "now-heading" },
      h("h2", { id: "now-heading" }, words.text("page.now")), this.state, this.running);
    this.questions = h("section", { "aria-labelledby": "questions-heading" },
      h("h2", { id: "questions-heading" }), this.waiting);
    const log = h("section", { "aria-labelledby": "log-heading" },
      h("h2", { id: "log-heading", tabindex: "-1" }, words.text("page.log")), this.log.older, this.log.empty,
      this.log.list);
    const options = h("section", { "aria-label": words.text("page.options") },
      settingsPanel(words, this.settings, this.hands.change), helpPanel(words));
    this.main.replaceChildren(this.now, this.questions, log, options);
    this.root.replaceChildren(this.main, this.dialog.root, this.announcer.polite, this.announcer.assertive);
    this.apply();
    this.refresh();
    if (this.current) this.open(this.current);
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
    }
  }

  /** @param {EventHappening | SilenceHappening} happening */
  event(happening) {
    const critical = happening.kind === "event" && happening.critical;
    // That an agent waits is told by its request.
    const waits = happening.kind === "event" && happening.event.to_state === "awaiting_input";
    if (waits && !critical) return this.refreshSoon();
    const lines = this.words.say(happening, this.manner);
    const language = happening.kind === "event" ? happening.event.localization_hints?.primary_language ?? "" : "";
    if (happening.kind === "event") {
      const { session_id, summary_normal } = happening.event;
      for (const line of lines) this.entry(session_id, happening.agent.name, summary_normal, line, language, critical ? "grave" : "");
      const type = String(happening.event.type);
      if (type.endsWith("session.completed")) this.announcer.play("done");
      if (type.endsWith("session.errored")) this.announcer.play("error");
    }
    // One announcement for one event.
    this.announcer.say(lines.map(plain).join(" "), critical);
    this.refreshSoon();
  }

  /** The user said something. @param {string} text */
  said(text) {
    this.log.note(this.words.text("page.you", { text: { theirs: text } }));
    this.say("page.sent");
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
    if (this.settings.reading === "end" && count > 0) this.say("page.written", { count });
  }

  /** @param {LinkHappening} happening */
  connected(happening) {
    const lines = this.words.say(happening, this.manner);
    this.announcer.say(lines.map(plain).join(" "));
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
    const { words } = this;
    const sessions = this.inbox.running();
    const requests = this.inbox.waiting();
    this.state.textContent = words.text(this.connection) +
      (sessions.length === 0 && /connected|listening/.test(this.connection) ? ` ${words.text("page.idle")}` : "");
    this.running.hidden = sessions.length === 0;
    keep(this.running, () => this.running.replaceChildren(...sessions.slice(-20).map((session) => {
      const line = words.phrase("page.running", { agent: { theirs: session.agent.name }, about: { theirs: session.about },
        doing: { theirs: session.doing || session.about } });
      const stop = button(words.text("page.stop"), () => this.askStop(session.id), { class: "stop",
        "data-key": `stop-${session.id}` });
      const which = words.text("page.sentence", { text: { theirs: session.about || session.agent.name } });
      stop.append(h("span", { class: "unseen" }, ` ${which}`));
      stop.hidden = this.connection === "page.listening";
      return h("li", {}, h("span", {}, ...shown(line)), " ", stop);
    })));
    const heading = this.questions?.querySelector("h2");
    if (heading) heading.textContent = this.howMany(requests.length);
    this.waiting.hidden = requests.length === 0;
    keep(this.waiting, () => this.waiting.replaceChildren(...requests.map((request) => {
      const opener = this.opener(request);
      opener.dataset.key = `open-${request.number}`;
      return h("li", {}, opener);
    })));
    this.root.dispatchEvent(new CustomEvent("aaep-requests", { bubbles: true, composed: true,
      detail: { count: requests.length } }));
  }

  /** @param {number} count */
  howMany(count) {
    return count === 0 ? this.words.text("page.questions.none") : this.words.text("page.questions", { count });
  }

  /** @param {KeyboardEvent} event */
  shortcut(event) {
    if (!this.settings.shortcuts || !event.altKey || !event.shiftKey || event.ctrlKey || event.metaKey) return;
    const does = SHORTCUTS.find(([code]) => code === event.code)?.[1];
    if (!does || event.repeat) return;
    event.preventDefault();
    const asks = this.current !== null && this.dialog.heading.isConnected;
    switch (does) {
      case "questions": return this.nextQuestion();
      case "repeat": return this.repeat();
      case "now": return this.sayNow();
      case "accept":
      case "reject": {
        // Not in the second step: that one is only for its own buttons.
        const first = asks && this.current?.asks === "consent" && this.connection !== "page.listening";
        const step = this.dialog.heading.textContent === this.words.text("page.second.heading");
        if (first && !(step && does === "accept")) this.decide(does);
        return;
      }
      case "more_time": return this.moreTime();
      case "stop": {
        const session = this.current?.session_id ?? this.inbox.running().at(-1)?.id;
        if (this.connection === "page.listening") this.say("connected.listen_only", {}, true);
        else if (session) this.askStop(session);
        else this.say("page.nothing");
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
    else this.say("page.questions.none");
  }

  repeat() {
    if (this.dialog.isOpen) this.announcer.say(this.dialog.body.textContent.trim(), true);
    else this.announcer.say(this.announcer.last || this.words.text("page.nothing"), true);
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

/**
 * Makes a list anew, and puts the focus back on the button that had it.
 * @param {HTMLElement} list @param {() => void} make
 */
function keep(list, make) {
  const key = list.contains(focused()) ? focused()?.dataset.key : undefined;
  make();
  if (key === undefined) return;
  const same = [...list.querySelectorAll("button")].find((one) => one.dataset.key === key);
  same?.focus();
}
