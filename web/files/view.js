// What is seen and heard: status, questions that wait, the log, dialogs.

import { Announcer } from "./announcer.js";
import { Dialog, answers, needsSecond, paragraph, question } from "./dialog.js";
import { Keys, button, focused, h, shown } from "./dom.js";
import { split } from "./inbox.js";
import { Log } from "./log.js";
import { SHORTCUTS, helpPanel, settingsPanel } from "./panel.js";
import { plain } from "./words.js";

/** How long after an answer its outcome is waited for before the user is told that it is late. */
const LATE_MS = 8000;

/** Outputs at once whose sentences are counted. */
const MAX_OUTPUTS = 256;

export class View {
  /**
   * @param {Words} words @param {Settings} settings @param {Inbox} inbox @param {Hands} hands
   */
  constructor(words, settings, inbox, hands) {
    this.words = words;
    this.settings = settings;
    this.inbox = inbox;
    this.hands = hands;
    this.keys = new Keys();
    this.announcer = new Announcer();
    this.dialog = new Dialog(this.keys);
    this.log = new Log();
    this.state = h("p", { class: "state" });
    this.running = h("ul", { class: "running" });
    this.waiting = h("ul", { class: "waiting" });
    this.timer = h("span", { role: "timer", "aria-labelledby": "time-label", class: "time", dir: "ltr" });
    this.connection = "page.connecting";
    /** @type {Set<string>} */
    this.agents = new Set();
    /** @type {AgentRequest | null} */
    this.current = null;
    /** @type {Set<number>} */
    this.later = new Set();
    /** @type {Map<string, number>} */
    this.told = new Map();
    /** @type {Map<string, number>} */
    this.unread = new Map();
    /** @type {number | undefined} */
    this.pending = undefined;
    this.root = h("div", { class: "subscriber" });
    this.main = h("div", { class: "main" });
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

  /** How much is said. The hub is told how much the user takes in; the words, how little. */
  get manner() {
    const { verbosity, load } = this.settings;
    const burdens = /** @type {const} */ ({ low: "high", medium: "medium", high: "low" });
    return { verbosity, load: burdens[load], name_agents: this.agents.size > 1 };
  }

  stop() {
    clearInterval(this.beat);
    removeEventListener("keydown", this.press);
    this.keys.stop();
  }

  /** @param {string} key @param {Arguments} [given] @param {boolean} [now] */
  say(key, given, now) {
    this.announcer.say(this.words.text(key, given), now);
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

  /**
   * @param {string} session @param {string} agent @param {unknown} about
   * @param {Line} line @param {string} language @param {string} kind
   */
  entry(session, agent, about, line, language, kind) {
    const known = this.inbox.sessions.get(session)?.about || (typeof about === "string" ? about : "");
    const given = { agent: { theirs: agent }, about: { theirs: known } };
    const heading = this.log.sessions.has(session) ? "" : this.words.text("page.session", given);
    this.log.add(session, heading, line, language, kind);
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

  /** @param {AgentRequest} request */
  asked(request) {
    const line = this.words.phrase(request.asks === "consent" ? "ask.consent" : "ask.question",
      { action: { theirs: request.action }, question: { theirs: request.action } });
    if (request.continues !== null) {
      const time = this.words.duration(this.left(request));
      this.say("page.more_time.given", { time }, true);
      if (this.later.delete(request.continues)) this.later.add(request.number);
      if (this.current?.number === request.continues) this.current = request;
      this.refresh();
      return;
    }
    this.entry(request.session_id, request.agent.name, "", line, request.language, "request");
    this.announcer.play("blocked");
    this.announcer.call(this.words.text("page.waits"), plain(line), request.event_id);
    this.refresh();
    if (!this.dialog.isOpen) return this.open(request);
    const count = this.inbox.open.size;
    this.announcer.say(`${plain(line)} ${this.words.text("page.another", { count })}`, true);
  }

  /** @param {AgentRequest} request */
  left(request) {
    return Math.max(0, Math.round((request.deadline_ms - this.hands.now()) / 1000));
  }

  /** @param {AgentRequest} request */
  open(request) {
    const { words } = this;
    // Whoever goes on to another has put this one off.
    if (this.current && this.current.number !== request.number) this.later.add(this.current.number);
    this.current = request;
    this.later.delete(request.number);
    this.told.set(request.event_id, this.told.get(request.event_id) ?? 0);
    // A request that just came waits for all of its time.
    const left = this.left(request);
    const seconds = request.timeout_seconds - left <= 3 ? request.timeout_seconds : left;
    const text = question(request, words, this.manner, seconds);
    this.show(words.text("page.question", { number: request.number, agent: { theirs: request.agent.name } }),
      text, this.ways(request), () => this.putOff());
  }

  /** @param {string} heading @param {Node[]} text @param {Node[]} ways @param {() => void} escape */
  show(heading, text, ways, escape) {
    this.main.inert = true;
    this.dialog.show(heading, text, ways, escape);
    this.hands.dialog(true);
    this.tick();
  }

  /** @param {AgentRequest} request @returns {Node[]} */
  ways(request) {
    const { words } = this;
    /** @type {Node[]} */
    const ways = [];
    if (this.connection === "page.listening") {
      ways.push(h("p", { class: "grave" }, words.text("ask.unanswerable")));
    } else if (request.asks === "consent") {
      ways.push(h("div", { class: "buttons" },
        button(words.text("page.reject"), () => this.decide("reject"), { class: "answer" }),
        button(words.text("page.accept"), () => this.decide("accept"), { class: "answer" })));
    } else {
      ways.push(...answers(request, words, (response) => this.respond(response),
        (field, message, key) => this.again(field, message, key)));
    }
    ways.push(h("p", { class: "clock" }, h("span", { id: "time-label" }, words.text("page.time_left")), " ", this.timer));
    const more = [button(words.text("page.later"), () => this.putOff())];
    if (this.connection !== "page.listening") {
      more.unshift(button(words.text("page.more_time"), () => this.moreTime()));
      more.push(button(words.text("page.stop"), () => this.askStop(request.session_id)));
    }
    ways.push(h("div", { class: "buttons more" }, ...more));
    const others = this.inbox.waiting().filter((other) => other.number !== request.number);
    if (others.length > 0) {
      ways.push(h("p", { class: "hint" }, words.text("page.others", { count: others.length })),
        h("ul", {}, ...others.map((other) => h("li", {}, this.opener(other)))));
    }
    return ways;
  }

  /** @param {AgentRequest} request */
  opener(request) {
    const line = this.words.phrase("page.open", { number: request.number, action: { theirs: request.action } });
    const opener = button("", () => this.open(request), { class: "opener" });
    opener.append(...shown(line, request.language));
    return opener;
  }

  /** Closes the dialog; the next request that was not put off comes. */
  close() {
    this.current = null;
    this.main.inert = false;
    // First, so that the focus can go back there.
    this.hands.dialog(false);
    this.dialog.hide();
    this.refresh();
    const next = this.inbox.waiting().find((request) => !this.later.has(request.number));
    if (next) this.open(next);
  }

  putOff() {
    if (this.current) this.later.add(this.current.number);
    this.close();
    if (!this.dialog.isOpen) this.say("page.put_off");
  }

  /** @param {"accept"|"reject"} decision */
  decide(decision) {
    const request = this.current;
    if (!request || !this.dialog.isRead) return;
    if (decision === "accept" && needsSecond(request, this.settings.ask_twice)) return this.second(request);
    void this.send(request, this.hands.decide(request, decision));
  }

  /** @param {AgentRequest} request */
  second(request) {
    const { words } = this;
    const text = [paragraph(words.phrase("page.second", { action: { theirs: request.action } }), request.language, "action")];
    if (request.reversibility === "irreversible") text.push(paragraph(words.phrase("undo.irreversible"), "", "grave"));
    const clock = h("p", { class: "clock" }, h("span", { id: "time-label" }, words.text("page.time_left")), " ", this.timer);
    const sure = () => {
      const now = this.current;
      if (now && this.dialog.isRead) void this.send(now, this.hands.decide(now, "accept"));
    };
    const back = () => (this.current ? this.open(this.current) : this.close());
    this.show(words.text("page.second.heading"), text, [
      h("div", { class: "buttons" }, button(words.text("page.back"), back, { class: "answer" }),
        button(words.text("page.sure"), sure, { class: "answer" })), clock,
    ], back);
  }

  /** @param {string|number|boolean} response */
  respond(response) {
    const request = this.current;
    if (request && this.dialog.isRead) void this.send(request, this.hands.answer(request, response));
  }

  /** @param {HTMLElement} field @param {HTMLElement} message @param {string} key */
  again(field, message, key) {
    message.textContent = this.words.text(key);
    message.hidden = false;
    field.setAttribute("aria-invalid", "true");
    field.focus();
    this.say(key, {}, true);
  }

  /** @param {AgentRequest} request @param {Promise<Sent>} sending */
  async send(request, sending) {
    this.busy(true);
    const { ok } = await sending;
    if (!ok) {
      this.busy(false);
      return this.say("page.not_sent", { number: request.number }, true);
    }
    setTimeout(() => {
      if (!this.inbox.open.has(request.event_id)) return;
      this.busy(false);
      this.say("page.late", { number: request.number }, true);
    }, LATE_MS);
  }

  /** @param {boolean} busy */
  busy(busy) {
    this.dialog.answers.classList.toggle("busy", busy);
    for (const one of this.dialog.answers.querySelectorAll("button.answer")) {
      if (one instanceof HTMLButtonElement) one.disabled = busy;
    }
    // A disabled button loses the focus, which must not fall out of the dialog.
    if (busy) this.dialog.body.focus();
  }

  moreTime() {
    const request = this.current;
    if (!request) return;
    void this.hands.moreTime(request).then(({ ok }) => {
      if (!ok) this.say("page.not_sent", { number: request.number }, true);
    });
  }

  /** @param {AgentRequest} request @param {Outcome} outcome */
  settled(request, outcome) {
    this.told.delete(request.event_id);
    if (outcome === "superseded") return;
    this.later.delete(request.number);
    const lines = this.words.say({ kind: "settled", request, outcome }, this.manner);
    for (const line of lines) this.entry(request.session_id, request.agent.name, "", line, request.language, "outcome");
    this.announcer.say(lines.map(plain).join(" "), true);
    if (this.current?.number === request.number) this.close();
    else this.refresh();
  }

  /** @param {string} session */
  askStop(session) {
    const { words } = this;
    const known = this.inbox.sessions.get(session);
    const text = [paragraph(words.phrase("page.stop.ask", { agent: { theirs: known?.agent.name ?? "" } }), "", "action")];
    if (known?.about) text.push(paragraph(words.phrase("page.stop.about", { about: { theirs: known.about } }), ""));
    text.push(paragraph(words.phrase("page.stop.half"), ""));
    const request = this.current;
    const back = () => (request && this.inbox.open.has(request.event_id) ? this.open(request) : this.close());
    this.current = null;
    this.show(words.text("page.stop.heading"), text, [h("div", { class: "buttons" },
      button(words.text("page.stop.no"), back, { class: "answer" }),
      button(words.text("page.stop.yes"), () => this.doStop(session), { class: "answer" }))], back);
  }

  /** @param {string} session */
  doStop(session) {
    if (!this.dialog.isRead) return;
    void this.hands.stop(session).then(({ ok }) => {
      if (!ok) this.say("page.stop.failed", {}, true);
    });
    for (const request of this.inbox.waiting()) {
      if (request.session_id === session) this.later.add(request.number);
    }
    this.close();
  }

  /** A quarter of a second has passed. */
  tick() {
    this.announcer.tidy();
    for (const happening of this.inbox.tick(this.hands.now())) this.tell(happening);
    for (const request of this.inbox.waiting()) this.tellTime(request);
    if (this.current && this.dialog.isOpen) {
      const shows = clock(this.left(this.current));
      if (this.timer.textContent !== shows) this.timer.textContent = shows;
    }
  }

  /** @param {AgentRequest} request */
  tellTime(request) {
    const left = request.deadline_ms - this.hands.now();
    const part = left / (request.timeout_seconds * 1000);
    const step = part <= 0.1 ? 2 : part <= 0.5 ? 1 : 0;
    if (left <= 0 || step <= (this.told.get(request.event_id) ?? 0)) return;
    this.told.set(request.event_id, step);
    const time = this.words.duration(Math.max(1, Math.round(left / 1000)));
    this.say("page.time.told", { number: request.number, time, action: { theirs: request.action } }, true);
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
      stop.append(h("span", { class: "unseen" }, ` ${session.about || session.agent.name}`));
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

/** @param {number} seconds */
export function clock(seconds) {
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}
