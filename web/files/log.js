// What happened, to be read at leisure: a heading for each session, and never more than there is
// room for.

import { h, shown } from "./dom.js";

/** Entries at most; the oldest give way. */
export const MAX_ENTRIES = 400;

/** Sessions at most. */
const MAX_SESSIONS = 60;

export class Log {
  constructor() {
    this.older = h("p", { class: "hint", hidden: true });
    this.empty = h("p", { class: "hint" });
    this.list = h("div", { class: "sessions" });
    /** @type {Map<string, HTMLElement>} */
    this.sessions = new Map();
    /** @type {HTMLElement[]} */
    this.entries = [];
    this.first = 0;
    /** For how times are written. */
    this.language = "en";
    /** Which minute each list has told. @type {WeakMap<HTMLElement, string>} */
    this.minutes = new WeakMap();
  }

  /** The time of day. */
  time() {
    const now = new Date();
    const text = new Intl.DateTimeFormat(this.language, { hour: "2-digit", minute: "2-digit" }).format(now);
    return h("time", { class: "when", datetime: now.toISOString() }, text);
  }

  /** Only for the counting of entries that are there. */
  get size() {
    return this.entries.length - this.first;
  }

  /**
   * @param {string} session @param {Line} heading for a session that is new here
   * @param {Line} line @param {string} language @param {string} kind
   */
  add(session, heading, line, language, kind) {
    let list = this.sessions.get(session);
    if (!list) {
      list = h("ol", {});
      this.list.append(h("section", {}, h("h3", {}, ...shown(heading)), list));
      this.sessions.set(session, list);
      this.empty.hidden = true;
    }
    const entry = h("li", { class: kind }, h("span", {}, ...shown(line, language)));
    // Once for each minute: the rest is the same.
    const time = this.time();
    if (this.minutes.get(list) !== time.textContent) entry.append(" ", time);
    this.minutes.set(list, time.textContent);
    list.append(entry);
    this.entries.push(entry);
    this.trim();
  }

  /** A heading of its own, for what the user said. @param {Line} heading */
  note(heading) {
    const section = h("section", { class: "own" }, h("h3", {}, ...shown(heading)));
    this.list.append(section);
    this.entries.push(section);
    this.empty.hidden = true;
    this.trim();
  }

  trim() {
    while (this.size > MAX_ENTRIES) this.drop();
    while (this.sessions.size > MAX_SESSIONS) {
      for (const [id, list] of this.sessions) {
        this.remove(id, list);
        break;
      }
    }
    // The array is cut now and then, not each time.
    if (this.first > MAX_ENTRIES) {
      this.entries = this.entries.slice(this.first);
      this.first = 0;
    }
  }

  /** The oldest entry goes, and its session with its last one. */
  drop() {
    const entry = this.entries[this.first];
    this.first += 1;
    const list = entry?.parentElement;
    if (!entry || !list) return;
    entry.remove();
    this.older.hidden = false;
    if (list === this.list || list.childElementCount > 0) return;
    for (const [id, known] of this.sessions) {
      if (known === list) this.remove(id, list);
    }
  }

  /** @param {string} id @param {HTMLElement} list */
  remove(id, list) {
    this.sessions.delete(id);
    const entries = new Set(list.children);
    list.parentElement?.remove();
    this.older.hidden = false;
    this.entries = this.entries.slice(this.first).filter((entry) => !entries.has(entry));
    this.first = 0;
  }
}
