// Requests in dialogs: asked, put off, answered in one step or two, given more time, settled; and
// stopping an agent.

import { Announcer } from "./announcer.js";
import { Dialog, answers, beforeYes, details, needsSecond, paragraph, question, waitsFor } from "./dialog.js";
import { Keys, button, h, shown } from "./dom.js";
import { keyOf } from "./events.js";
import { Log } from "./log.js";
import { plain } from "./words.js";

/** How long after an answer its outcome is waited for before the user is told that it is late. */
const LATE_MS = 8000;

/** How long before its end a request is told again at the latest (WCAG 2.2.1). */
const LAST_WORD_MS = 20_000;

/** What a screen reader needs before it speaks. */
const SPOKEN_MS = 500;

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
    /** The request for which a passkey was not used. */
    this.unsigned = 0;
    this.announcer = new Announcer();
    this.dialog = new Dialog(this.keys, () => {
      // After the focus: what is inert before it would leave the focus nowhere.
      this.main.inert = true;
      hands.dialog(true);
      this.catchUp();
    });
    /** What changes at leisure, when the dialog that comes has the focus. @type {(() => void)[]} */
    this.changes = [];
    this.log = new Log();
    /** Everything that is no dialog. */
    this.main = h("div", { class: "main" });
    // Only to be seen: a screen reader would read it with the dialog, which says how long it waits.
    this.timer = h("p", { class: "time", "aria-hidden": "true" });
    /** The other requests, in the dialog. */
    this.others = h("div", {});
    /** How long the request in the dialog waits. @type {HTMLElement | null} */
    this.waits = null;
    /** An answer is on its way. */
    this.sending = false;
    /** The dialog asks whether this is really wanted. */
    this.isSecond = false;
    /** The session that the dialog asks about stopping. @type {string | null} */
    this.stopping = null;
    /** What was accepted and has not begun, by session. @type {Map<string, string>} */
    this.accepted = new Map();
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

  /**
   * Changes the log or a list. Not between a dialog's coming and its focus: a screen reader would look
   * at all of that before it says the question.
   * @param {() => void} change
   */
  atLeisure(change) {
    this.changes.push(change);
    this.catchUp();
  }

  /** Changes what waits for that. */
  catchUp() {
    if (this.dialog.isComing) return;
    for (const change of this.changes.splice(0)) change();
  }

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
    this.atLeisure(() => {
      const heading = this.log.sessions.has(session) ? [] : this.words.phrase("page.session", given);
      this.log.add(session, heading, line, language, kind);
    });
  }

  /** @param {AgentRequest} request */
  asked(request) {
    // enforces: S10
    // Only the same question goes on behind an open dialog; any other is drawn and read anew.
    if (request.continues !== null && !request.changed) return this.goesOn(request, request.continues);
    const line = this.words.phrase(request.asks === "consent" ? "ask.consent" : "ask.question",
      { action: { theirs: request.action }, question: { theirs: request.action } });
    this.announcer.play("blocked");
    this.announcer.call(this.words.text("page.waits"), plain(line), keyOf(request));
    this.bring(request);
    this.entry(request.session_id, request.agent.name, "", line, request.language, "request");
    this.refresh();
  }

  /** Shows a request, or says that it waits. @param {AgentRequest} request */
  bring(request) {
    const before = request.changed ? request.continues ?? request.number : null;
    if (before !== null) this.later.delete(before);
    const shows = this.current !== null && this.current.number === before;
    if (shows) this.current = null;
    if (shows) return this.open(request);
    if (!this.dialog.isOpen) return this.openNext();
    if (this.dialog.isEnding) return;
    // It is read when its turn comes.
    const came = this.words.text("page.another.came");
    const count = this.words.text("page.another", { count: this.inbox.open.size });
    this.announcer.say(`${came} ${count}`, false, { topic: "another", anyway: true });
  }

  /** The same question has more time: only that is said. @param {AgentRequest} request @param {number} before */
  goesOn(request, before) {
    const time = this.words.duration(this.left(request));
    this.say("page.more_time.given", { time }, true);
    if (this.later.delete(before)) this.later.add(request.number);
    if (this.current?.number === before) {
      this.current = request;
      this.showWaits();
      this.showTime();
    }
    this.refresh();
  }

  /** How long the request in the dialog waits, as of now. */
  showWaits() {
    if (!this.current) return;
    this.waits?.replaceChildren(...shown(waitsFor(this.current, this.words, this.left(this.current))), " ");
  }

  /** @param {AgentRequest} request */
  left(request) {
    return Math.max(0, Math.round((request.deadline_ms - this.hands.now()) / 1000));
  }

  /** @param {AgentRequest} request @param {string} [lead] what became of the one before */
  open(request, lead = "") {
    const { words } = this;
    // Whoever goes on to another has put this one off.
    if (this.current && this.current.number !== request.number) this.later.add(this.current.number);
    this.current = request;
    this.later.delete(request.number);
    this.told.set(keyOf(request), this.told.get(keyOf(request)) ?? 0);
    // A request that just came waits for all of its time.
    const left = this.left(request);
    const seconds = request.timeout_seconds - left <= 3 ? request.timeout_seconds : left;
    const { heading, text, waits } = question(request, words, this.manner, seconds);
    const changed = request.changed ? words.text("page.request.changed") : "";
    this.show({ lead: [lead, changed].filter((part) => part !== "").join(" "), heading, language: request.language,
      text, waits, answers: this.ways(request), escape: () => this.putOff() });
    this.waits = waits;
    this.showOthers();
  }

  /** @param {Content} content */
  show(content) {
    Object.assign(this, { sending: false, isSecond: false, stopping: null, waits: null });
    this.announcer.hold(true);
    this.announcer.drop("sent");
    this.dialog.show(content);
    this.announcer.reads(this.dialog.text);
    this.showTime();
  }

  /** @param {AgentRequest} request @returns {Node[]} */
  ways(request) {
    const { words } = this;
    /** @type {Node[]} */
    const ways = [];
    const mayAnswer = this.connection !== "page.listening";
    if (!mayAnswer) {
      ways.push(h("p", { class: "careful" }, words.text("ask.unanswerable")));
    } else if (request.asks === "consent") {
      ways.push(h("div", { class: "buttons" },
        button(words.text("page.reject"), () => this.decide("reject"), { class: "answer no" }),
        button(words.text("page.accept"), () => this.decide("accept"), { class: "answer yes" })));
    } else {
      ways.push(...answers(request, words, (response) => this.respond(response),
        (field, message, key) => this.again(field, message, key)));
    }
    this.others = h("div", {});
    // After the answers: Tab leads to Reject first.
    if (request.account || request.agent_says !== "") ways.push(details(request, words));
    const more = [button(words.text("page.later"), () => this.putOff()),
      button(words.text("page.repeat"), () => this.repeat())];
    if (mayAnswer) {
      more.unshift(button(words.text("page.more_time"), () => this.moreTime()));
      more.push(button(words.text("page.stop"), () => this.askStop(request.session_id), { class: "stop" }));
    }
    ways.push(this.timer, h("div", { class: "buttons more" }, ...more), this.others);
    return ways;
  }

  /** Which other requests wait, in the dialog of one. */
  showOthers() {
    const others = this.inbox.waiting().filter((other) => other.number !== this.current?.number);
    this.others.replaceChildren(...(others.length === 0 ? [] : [
      h("p", { class: "hint" }, this.words.text("page.others", { count: others.length })),
      h("ul", {}, ...others.map((other) => h("li", {}, this.opener(other)))),
    ]));
  }

  /** @param {AgentRequest} request */
  opener(request) {
    const line = this.words.phrase("page.open", { number: request.shown_number, action: { theirs: request.action } });
    // As it is then: it may have changed meanwhile.
    const now = () => this.inbox.waiting().find(({ number }) => number === request.number) ?? request;
    const opener = button("", () => this.open(now()), { class: "opener" });
    opener.append(...shown(line, request.language));
    return opener;
  }

  /**
   * Closes the dialog; the next request that was not put off comes, and what became of this one is
   * said with it. Without a next one the outcome is said first: the focus that goes back would be
   * read before it.
   * @param {string} [outcome]
   */
  close(outcome = "") {
    const read = this.current !== null || this.stopping !== null;
    this.current = null;
    this.stopping = null;
    this.refresh();
    const next = this.next();
    if (next) return this.open(next, outcome);
    // Before the focus goes there: a screen reader remembers for a while what was inert.
    this.main.inert = false;
    this.hands.dialog(false);
    const spoken = read ? outcome : "";
    if (spoken !== "") {
      this.busy(true);
      this.announcer.say(spoken, true);
      this.announcer.flush();
    }
    this.dialog.ends(spoken, spoken === "" ? 0 : this.announcer.length(spoken) + SPOKEN_MS, () => {
      const later = this.next();
      if (later) this.open(later);
      else this.hide();
    });
    this.catchUp();
  }

  /** The next request that was not put off. */
  next() {
    return this.inbox.waiting().find((request) => !this.later.has(request.number));
  }

  /** Asks what waits, unless the person is in the middle of a word: nothing that is typed gets lost. */
  openNext() {
    const next = this.dialog.isOpen || this.keys.isWriting ? undefined : this.next();
    if (next) this.open(next);
  }

  hide() {
    this.dialog.hide();
    this.catchUp();
    this.announcer.busyUntil = performance.now() + SPOKEN_MS;
    this.announcer.hold(false);
  }

  putOff() {
    if (this.current) this.later.add(this.current.number);
    this.close(this.next() ? "" : this.words.text("page.put_off"));
  }

  /** Reads the request again, or what was said last. */
  repeat() {
    this.showWaits();
    if (this.dialog.isOpen) this.announcer.say(this.dialog.text, true);
    else this.announcer.say(this.announcer.last || this.words.text("page.nothing"), true);
  }

  /** Whether the user can have read this request, and it still waits as they read it. @param {AgentRequest} request */
  mayAnswer(request) {
    return this.dialog.isRead && !this.sending && this.inbox.open.get(keyOf(request)) === request;
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
    if (request && request.asks !== "consent") return this.say("page.no_decision", {}, true);
    if (!request || !this.mayAnswer(request)) return;
    if (decision === "accept" && needsSecond(request, this.settings.ask_twice)) return this.second(request);
    if (decision === "accept") return this.yes(request);
    void this.send(request, this.hands.decide(request, decision));
  }

  // enforces: I34
  /** A yes: at once, or once it was signed or the PIN was typed, where that is needed. @param {AgentRequest} request */
  yes(request) {
    const needs = request.event.extensions?.presence?.needs;
    if (needs === "passkey" || (needs === "pin" && !this.hands.isUnlocked())) {
      return void import("./passkeys.js").then(({ prove }) => prove(this, needs));
    }
    void this.send(request, this.hands.decide(request, "accept"));
  }

  /** @param {AgentRequest} request */
  second(request) {
    const { words } = this;
    const text = beforeYes(request, words, this.manner)
      .map((line) => paragraph(line, "", "fact undo-irreversible"));
    const sure = () => {
      const now = this.current;
      if (now && this.mayAnswer(now)) this.yes(now);
    };
    const back = () => (this.current ? this.open(this.current) : this.close());
    this.show({ lead: words.text("page.second.heading"), heading: words.phrase("page.second", { action: { theirs: request.action } }),
      language: request.language, text, waits: null, escape: back, answers: [
        h("div", { class: "buttons" }, button(words.text("page.back"), back, { class: "answer no" }),
          button(words.text("page.sure"), sure, { class: "answer yes" })), this.timer] });
    this.isSecond = true;
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
    // Only for those who come back: a description that is new to the focus would be read again.
    field.addEventListener("blur", () => field.setAttribute("aria-describedby", message.id), { once: true });
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

  /** Buttons that do nothing for now keep the focus, so that nothing is read again. @param {boolean} busy */
  busy(busy) {
    this.sending = busy;
    this.dialog.box.answers.classList.toggle("busy", busy);
    for (const one of this.dialog.box.answers.querySelectorAll("button.answer")) {
      one.setAttribute("aria-disabled", String(busy));
    }
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
    if (outcome === "accepted") this.accepted.set(request.session_id, request.action.trim());
    const text = lines.map(plain).join(" ");
    if (this.current?.number === request.number) return this.close(text);
    this.announcer.say(text, true);
    this.refresh();
    if (this.dialog.isOpen) this.showOthers();
  }

  /** @param {string} session */
  askStop(session) {
    const { words } = this;
    const known = this.inbox.sessions.get(session);
    const text = known?.about ? [paragraph(words.phrase("page.stop.about", { about: { theirs: known.about } }), "")] : [];
    text.push(paragraph(words.phrase("page.stop.half"), ""));
    const request = this.current;
    const back = () => {
      // As it is now: it may have changed meanwhile.
      const now = this.inbox.waiting().find((one) => one.shown_number === request?.shown_number);
      return now ? this.open(now) : this.close();
    };
    this.current = null;
    this.show({ lead: "", heading: words.phrase("page.stop.ask", { agent: { theirs: known?.agent.name ?? "" } }), language: "",
      text, waits: null, escape: back, answers: [h("div", { class: "buttons" },
        button(words.text("page.stop.no"), back, { class: "answer" }),
        button(words.text("page.stop.yes"), () => this.doStop(session), { class: "answer stop" }))] });
    this.stopping = session;
  }

  /** A session is over: nobody needs to stop it. @param {string} session */
  ended(session) {
    this.accepted.delete(session);
    if (this.stopping !== session) return;
    this.close(this.words.text("page.stop.over"));
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
    const all = request.timeout_seconds * 1000;
    // The last word comes while there is time to answer, and the one at half well before it.
    const last = Math.min(all / 2, Math.max(all / 10, LAST_WORD_MS));
    const step = left <= last ? 2 : left <= all / 2 && all / 2 > last * 2 ? 1 : 0;
    if (left <= 0 || step <= (this.told.get(keyOf(request)) ?? 0)) return;
    this.told.set(keyOf(request), step);
    if (step === 2) this.announcer.play("waiting");
    const time = this.words.duration(Math.max(1, Math.round(left / 1000)));
    this.say("page.time.told", { number: request.shown_number, time, action: { theirs: request.action } }, true);
  }

  /** Shows the time of the request in the dialog. */
  showTime() {
    if (!this.current || !this.dialog.isOpen) return;
    const shows = this.words.text("page.time_left", { time: { ours: clock(this.left(this.current)) } });
    if (this.timer.textContent !== shows) this.timer.textContent = shows;
  }
}

/** Seconds as people read them. @param {number} seconds */
export function clock(seconds) {
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds % 60)}` : `${minutes}:${two(seconds % 60)}`;
}
