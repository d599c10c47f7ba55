// What is said without moving the focus: one polite region, one assertive, sounds, notifications.

import { h } from "./dom.js";

/** How long a line stays in its region; it was read by then, and is in the log. */
const STAYS_MS = 15_000;

/** Lines that come together are one announcement: screen readers reorder what follows at once. */
const GATHER_MS = 250;

/** Between something urgent and what is not: less, and screen readers drop the latter. */
const AFTER_URGENT_MS = 600;

/** How fast people are assumed to listen, in words a minute, where they did not say. */
const WPM = 220;

/** Lines that wait at most; what was left out is in the log. */
const MAX_LINES = 12;

/** Each as pairs of pitch and seconds: four that nobody takes for each other. @type {Record<Sound, [number, number][]>} */
const SOUNDS = {
  blocked: [[660, 0.12], [880, 0.12], [660, 0.12]],
  done: [[523, 0.1], [784, 0.2]],
  error: [[196, 0.35]],
  waiting: [[988, 0.07], [988, 0.07], [988, 0.07]],
};

export class Announcer {
  constructor() {
    // No roles: Firefox exposes no live region for `alert`.
    this.polite = h("div", { "aria-live": "polite", class: "unseen" });
    this.assertive = h("div", { "aria-live": "assertive", class: "unseen" });
    this.last = "";
    /** What waits to be said. @type {Announcement[]} */
    this.queue = [];
    /** Lines that were left out, because too many waited. */
    this.dropped = 0;
    /** Says how many lines were left out. @type {(count: number) => string} */
    this.left = () => "";
    /** A request is open: chatter waits. */
    this.holds = false;
    /** Only what asks the user, and what became of it, is said. */
    this.quiet = false;
    /** Words a minute that the user is comfortable with; 0 if they did not say. */
    this.pace = 0;
    /** Until when what was said last is probably being read. */
    this.busyUntil = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {{line: HTMLElement, at: number}[]} */
    this.lines = [];
    this.sounds = false;
    this.notify = false;
    /** @type {AudioContext | null} */
    this.audio = null;
  }

  /**
   * @param {string} text
   * @param {boolean} [now] ahead of everything else
   * @param {{topic?: string, anyway?: boolean}} [how] of a topic only the latest is said; `anyway`
   * also while a request is open
   */
  say(text, now = false, { topic = "", anyway = false } = {}) {
    if (text === "" || (this.quiet && !now && !anyway)) return;
    if (topic !== "") this.drop(topic);
    else if (this.queue.some((one) => one.text === text)) return;
    this.queue.push({ text, now, topic, anyway });
    const chatter = this.queue.filter((one) => !one.now && !one.anyway);
    const [oldest] = chatter;
    if (oldest && chatter.length > MAX_LINES) {
      this.queue.splice(this.queue.indexOf(oldest), 1);
      this.dropped += 1;
    }
    this.soon(GATHER_MS);
  }

  /** What waits of a topic is not said any more. @param {string} topic */
  drop(topic) {
    this.queue = this.queue.filter((one) => one.topic !== topic);
  }

  /** A text is being read by other means: what is not urgent waits for its end. @param {string} text */
  reads(text) {
    this.busyUntil = performance.now() + this.length(text);
  }

  /** @param {boolean} holds whether chatter waits */
  hold(holds) {
    this.holds = holds;
    if (!holds) this.soon(GATHER_MS);
  }

  /** How long it takes to say this, in milliseconds. @param {string} text */
  length(text) {
    const words = text.split(/\s+/).reduce((sum, word) => sum + Math.max(1, (word.match(/\p{Script=Han}/gu)?.length ?? 0) / 2), 0);
    return (words * 60_000) / (this.pace || WPM);
  }

  /** @param {number} ms */
  soon(ms) {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.flush();
    }, ms);
  }

  flush() {
    const urgent = this.queue.filter((one) => one.now);
    if (urgent.length > 0) {
      this.queue = this.queue.filter((one) => !one.now);
      this.put(this.assertive, urgent);
      this.busyUntil = Math.max(this.busyUntil, performance.now() + AFTER_URGENT_MS);
    }
    // Results first, then where it stands now.
    const waits = this.queue.filter((one) => one.anyway || !this.holds)
      .sort((one, other) => Number(one.topic !== "") - Number(other.topic !== ""));
    if (waits.length === 0) return;
    const wait = this.busyUntil - performance.now();
    if (wait > 0) return this.soon(wait);
    this.queue = this.queue.filter((one) => !waits.includes(one));
    if (this.dropped > 0 && !this.holds) {
      waits.unshift({ text: this.left(this.dropped), now: false, topic: "", anyway: false });
      this.dropped = 0;
    }
    this.put(this.polite, waits);
  }

  /** @param {HTMLElement} region @param {Announcement[]} all */
  put(region, all) {
    const text = all.map((one) => one.text).join(" ");
    this.last = text;
    this.busyUntil = performance.now() + this.length(text);
    const line = h("p", {}, text);
    region.append(line);
    this.lines.push({ line, at: performance.now() });
  }

  /** Takes away what was read. */
  tidy() {
    const before = performance.now() - STAYS_MS;
    while (this.lines[0] && this.lines[0].at < before) this.lines.shift()?.line.remove();
  }

  /** @param {Sound} sound */
  play(sound) {
    if (!this.sounds) return;
    try {
      this.audio ??= new AudioContext();
      let at = this.audio.currentTime;
      for (const [pitch, seconds] of SOUNDS[sound]) {
        const tone = this.audio.createOscillator();
        const volume = this.audio.createGain();
        tone.frequency.value = pitch;
        volume.gain.setValueAtTime(0.15, at);
        volume.gain.linearRampToValueAtTime(0, at + seconds);
        tone.connect(volume).connect(this.audio.destination);
        tone.start(at);
        tone.stop(at + seconds);
        at += seconds + 0.03;
      }
    } catch {
      // Without sound everything is still said.
    }
  }

  /** Calls a user who looks elsewhere. @param {string} title @param {string} text @param {string} tag */
  call(title, text, tag) {
    if (!this.notify || !document.hidden || !("Notification" in globalThis)) return;
    if (Notification.permission !== "granted") return;
    try {
      const notification = new Notification(title, { body: text, tag });
      notification.onclick = () => {
        globalThis.focus();
        notification.close();
      };
    } catch {
      // Some browsers notify only from workers.
    }
  }
}
