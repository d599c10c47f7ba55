// Requests in dialogs: asked, put off, answered in one step or two, given more time, settled; and
// stopping an agent.

import { Announcer } from "./announcer.js";
import { Dialog, answers, details, needsSecond, paragraph, question } from "./dialog.js";
import { Keys, button, h, shown } from "./dom.js";
import { keyOf } from "./inbox.js";
import { Log } from "./log.js";
import { plain } from "./words.js";

/** How long after an answer its outcome is waited for before the user is told that it is late. */
const LATE_MS = 8000;

/** How long a superseded request may be without the one that goes on. */
const ORPHAN_MS = 3000;

/** Whoever shows the rest of the view as well extends it. */
export class Asking {
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
    /** Everything that is no dialog. */
    this.main = h("div", { class: "main" });
    this.timer = h("span", { role: "timer", "aria-labelledby": "time-label", class: "time", dir: "ltr" });
    /** The key of how the connection stands. */
    this.connection = "page.connecting";
    /** Agents that were heard: with more than one, each is named. @type {Set<string>} */
    this.agents = new Set();
    /** The request in the dialog. @type {AgentRequest | null} */
    this.current = null;
    /** Requests that the user put off, by their number. @type {Set<number>} */
    this.later = new Set();
    /** How far the time of each request was told. @type {Map<string, number>} */
    this.told = new Map();
    /** Since when the request in the dialog is not open any more; 0 if it is. */
    this.orphaned = 0;
  }

  /** Shows what changed. */
  refresh() {}

  /** How much is said. The hub is told how much the user takes in; the words, how little. */
  get manner() {
    const { verbosity, load } = this.settings;
    const burdens = /** @type {const} */ ({ low: "high", medium: "medium", high: "low" });
    return { verbosity, load: burdens[load], name_agents: this.agents.size > 1 };
  }

  /** @param {string} key @param {Arguments} [given] @param {boolean} [now] */
  say(key, given, now) {
    this.announcer.say(this.words.text(key, given), now);
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

  /** @param {AgentRequest} request */
  asked(request) {
    const line = this.words.phrase(request.asks === "consent" ? "ask.consent" : "ask.question",
      { action: { theirs: request.action }, question: { theirs: request.action } });
    // enforces: S10
    // Only the same question goes on behind an open dialog; any other is drawn and read anew.
    if (request.continues !== null && !request.changed) {
      const time = this.words.duration(this.left(request));
      this.say("page.more_time.given", { time }, true);
      if (this.later.delete(request.continues)) this.later.add(request.number);
      if (this.current?.number === request.continues) this.current = request;
      this.refresh();
      return;
    }
    this.entry(request.session_id, request.agent.name, "", line, request.language, "request");
    this.announcer.play("blocked");
    this.announcer.call(this.words.text("page.waits"), plain(line), keyOf(request));
    this.refresh();
    const before = request.changed ? request.continues ?? request.number : null;
    if (before !== null) this.later.delete(before);
    const shows = this.current !== null && this.current.number === before;
    if (!this.dialog.isOpen || shows) {
      if (shows) this.current = null;
      return this.open(request);
    }
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
    this.told.set(keyOf(request), this.told.get(keyOf(request)) ?? 0);
    // A request that just came waits for all of its time.
    const left = this.left(request);
    const seconds = request.timeout_seconds - left <= 3 ? request.timeout_seconds : left;
    const text = question(request, words, this.manner, seconds);
    this.show(words.text("page.question", { number: request.shown_number, agent: { theirs: request.agent.name } }),
      text, this.ways(request), () => this.putOff());
  }

  /** @param {string} heading @param {Node[]} text @param {Node[]} ways @param {() => void} escape */
  show(heading, text, ways, escape) {
    this.main.inert = true;
    this.dialog.show(heading, text, ways, escape);
    this.hands.dialog(true);
    this.showTime();
  }

  /** @param {AgentRequest} request @returns {Node[]} */
  ways(request) {
    const { words } = this;
    /** @type {Node[]} */
    const ways = request.account ? [details(request.account, words)] : [];
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
    const line = this.words.phrase("page.open", { number: request.shown_number, action: { theirs: request.action } });
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

  /** Whether the user can have read this request, and it still waits as they read it. @param {AgentRequest} request */
  mayAnswer(request) {
    return this.dialog.isRead && this.inbox.open.get(keyOf(request)) === request;
  }

  /** A dialog whose request was superseded, and nothing came in its place, is closed. */
  closeOrphan() {
    const { current } = this;
    if (!current || this.inbox.open.get(keyOf(current)) === current) {
      this.orphaned = 0;
    } else if (this.orphaned === 0) {
      this.orphaned = this.hands.now();
    } else if (this.hands.now() - this.orphaned > ORPHAN_MS) {
      this.orphaned = 0;
      this.settled(current, "gone");
    }
  }

  /** @param {"accept"|"reject"} decision */
  decide(decision) {
    const request = this.current;
    if (!request || !this.mayAnswer(request)) return;
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
      if (now && this.mayAnswer(now)) void this.send(now, this.hands.decide(now, "accept"));
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
    if (request && this.mayAnswer(request)) void this.send(request, this.hands.answer(request, response));
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
    const { ok, status } = await sending;
    if (!ok) {
      // What was refused did not count; what broke on the way may have.
      if (status !== 0) this.inbox.answered.delete(keyOf(request));
      this.busy(false);
      return this.say("page.not_sent", { number: request.shown_number }, true);
    }
    setTimeout(() => {
      if (!this.inbox.open.has(keyOf(request))) return;
      this.busy(false);
      this.say("page.late", { number: request.shown_number }, true);
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
      if (!ok) this.say("page.not_sent", { number: request.shown_number }, true);
    });
  }

  /** @param {AgentRequest} request @param {Outcome} outcome */
  settled(request, outcome) {
    this.told.delete(keyOf(request));
    if (outcome === "superseded") return;
    this.later.delete(request.number);
    const known = { ...request, number: request.shown_number };
    const lines = this.words.say({ kind: "settled", request: known, outcome }, this.manner);
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
    const back = () => {
      // As it is now: it may have changed meanwhile.
      const now = this.inbox.waiting().find((one) => one.shown_number === request?.shown_number);
      return now ? this.open(now) : this.close();
    };
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

  /** @param {AgentRequest} request */
  tellTime(request) {
    const left = request.deadline_ms - this.hands.now();
    const part = left / (request.timeout_seconds * 1000);
    const step = part <= 0.1 ? 2 : part <= 0.5 ? 1 : 0;
    if (left <= 0 || step <= (this.told.get(keyOf(request)) ?? 0)) return;
    this.told.set(keyOf(request), step);
    const time = this.words.duration(Math.max(1, Math.round(left / 1000)));
    this.say("page.time.told", { number: request.shown_number, time, action: { theirs: request.action } }, true);
  }

  /** Shows the time of the request in the dialog. */
  showTime() {
    if (!this.current || !this.dialog.isOpen) return;
    const shows = clock(this.left(this.current));
    if (this.timer.textContent !== shows) this.timer.textContent = shows;
  }
}

/** Seconds as people read them. @param {number} seconds */
export function clock(seconds) {
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}
