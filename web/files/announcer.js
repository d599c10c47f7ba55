// What is said without moving the focus: one polite region, one assertive, sounds, notifications.

import { h } from "./dom.js";

/** How long a line stays in its region; it was read by then, and is in the log. */
const STAYS_MS = 15_000;

/** Lines in both regions at most. */
const MAX_LINES = 24;

/** Each as pairs of pitch and seconds: three that nobody takes for each other. @type {Record<Sound, [number, number][]>} */
const SOUNDS = {
  blocked: [[660, 0.12], [880, 0.12], [660, 0.12]],
  done: [[523, 0.1], [784, 0.2]],
  error: [[196, 0.35]],
};

export class Announcer {
  constructor() {
    // Each line is said as it comes; those that stand there are not said again.
    this.polite = h("div", { role: "status", "aria-atomic": "false", class: "unseen" });
    this.assertive = h("div", { role: "alert", "aria-atomic": "false", class: "unseen" });
    this.last = "";
    /** @type {{line: HTMLElement, at: number}[]} */
    this.lines = [];
    this.sounds = false;
    this.notify = false;
    /** @type {AudioContext | null} */
    this.audio = null;
  }

  /**
   * @param {string} text @param {boolean} [now] ahead of everything else
   */
  say(text, now = false) {
    if (text === "") return;
    this.last = text;
    const line = h("p", {}, text);
    (now ? this.assertive : this.polite).append(line);
    this.lines.push({ line, at: Date.now() });
    while (this.lines.length > MAX_LINES) this.lines.shift()?.line.remove();
  }

  /** Takes away what was read. */
  tidy() {
    const before = Date.now() - STAYS_MS;
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
