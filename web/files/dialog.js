// Dialogs that ask: a request of an agent, or whether to stop one. The focus goes to the dialog
// itself, never to a button, and no key press that was under way before can answer.

import { allowFocus, button, focused, h, reading, shown, stops } from "./dom.js";
import { choiceLabel } from "./events.js";
import { ended } from "./sentences.js";
import { Speech } from "./speech.js";
import { plain } from "./words.js";

/** For how long after a text appeared nobody can have read it, and nothing answers it. */
const UNREAD_MS = 600;

/** Between showing a dialog and its focus: screen readers do not know it yet, and say nothing. */
const FOCUS_MS = 150;

/** How long it must have been drawn by then, and how long that is waited for: a busy machine draws late. */
const DRAWN_MS = 100;
const LATEST_MS = 1000;

/** @type {Content} */
const EMPTY = { lead: "", heading: [], language: "", text: [], waits: null, answers: [], escape: () => {} };

/** Boxes so far: each part of each has an id of its own. */
let boxes = 0;

/**
 * One for each text, named by all that is asked: that is what screen readers say of it. The name stays
 * as it is, because a screen reader reads all of it again when it changes.
 */
class Box {
  /** @param {Content} content */
  constructor({ lead, heading, language, text, waits, answers }) {
    boxes += 1;
    this.lead = h("p", { class: "lead", hidden: lead === "" }, lead);
    this.heading = h("h2", {}, ...shown(heading, language));
    this.body = h("div", { class: "text", hidden: text.length === 0 && !waits }, ...text);
    // How long it waits is shown as of now, and is part of the name as of then.
    const then = h("span", { hidden: true }, waits?.textContent ?? "");
    if (waits) this.body.append(waits);
    // Only to be seen: it is said by a live region.
    this.outcome = h("p", { class: "outcome", "aria-hidden": "true", hidden: true });
    this.answers = h("div", { class: "answers" }, ...answers);
    const named = [this.lead, this.heading, ...text, then].filter((part) => part.textContent !== "");
    for (const [at, part] of named.entries()) part.id = `dialog-${boxes}-${at}`;
    this.root = h("div", { role: "dialog", "aria-modal": "true", tabindex: "-1", class: "dialog",
      "aria-labelledby": named.map((part) => part.id).join(" ") }, this.lead, this.heading, this.body, then, this.outcome,
      this.answers);
  }
}

/** A dialog in the page, modal for the keyboard; whoever opens it makes the rest inert. */
export class Dialog {
  /** @param {Keys} keys @param {() => void} focuses called when it has the focus */
  constructor(keys, focuses) {
    this.keys = keys;
    this.focuses = focuses;
    this.box = new Box(EMPTY);
    this.root = h("div", { class: "backdrop", hidden: true });
    this.isOpen = false;
    /** @type {Set<string>} */
    this.stale = new Set();
    this.since = Infinity;
    /** When it was shown, and when that was drawn. */
    this.shownAt = 0;
    this.drawnAt = Infinity;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    /** @type {HTMLElement | null} */
    this.before = null;
    /** Where the focus goes if it was nowhere before. @type {HTMLElement | null} */
    this.home = null;
    /** @type {() => void} */
    this.escape = () => {};
    /** What comes after the outcome is said, while it is. @type {(() => void) | null} */
    this.after = null;
    this.pressed = (/** @type {KeyboardEvent} */ event) => this.down(event);
    this.released = (/** @type {KeyboardEvent} */ event) => this.up(event);
  }

  /** All that it says, as it is heard. */
  get text() {
    const { lead, heading, body } = this.box;
    return [lead, heading, body].map((part) => part.textContent.trim()).join(" ").trim();
  }

  /**
   * Shows a text and ways to answer it.
   * @param {Content} content
   */
  show(content) {
    if (!this.isOpen) {
      const active = focused();
      this.before = active === document.body ? reading(this.root) : active;
      if (this.before) allowFocus(this.before);
      // A screen reader's own cursor can leave the focus on the page's body.
      addEventListener("keydown", this.pressed, true);
      addEventListener("keyup", this.released, true);
    }
    const last = this.box;
    this.box = new Box(content);
    this.after = null;
    this.escape = content.escape;
    // The last one keeps the focus until this one has it: without it, the page would be read.
    last.root.classList.add("unseen");
    this.root.prepend(this.box.root);
    this.root.hidden = false;
    this.isOpen = true;
    this.since = Infinity;
    this.shownAt = performance.now();
    this.drawnAt = Infinity;
    const { box } = this;
    requestAnimationFrame(() => {
      if (this.box === box) this.drawnAt = performance.now();
    });
    this.beginIn(FOCUS_MS);
  }

  /** @param {number} ms */
  beginIn(ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const now = performance.now();
      // What nobody looks at is not drawn.
      const late = now - this.shownAt >= LATEST_MS || document.hidden;
      if (late || now - this.drawnAt >= DRAWN_MS) this.begin();
      else this.beginIn(20);
    }, ms);
  }

  /** From here on, the text is new to the user. */
  begin() {
    this.stale = new Set(this.keys.held);
    this.since = performance.now();
    this.box.root.focus({ preventScroll: true });
    while (this.root.lastElementChild !== this.box.root) this.root.lastElementChild?.remove();
    this.root.scrollTop = 0;
    this.focuses();
  }

  /**
   * Shows what became of it, if anything, for a while, then goes on; a key press does not wait.
   * @param {string} outcome @param {number} ms @param {() => void} after
   */
  ends(outcome, ms, after) {
    this.box.outcome.textContent = outcome;
    this.box.outcome.hidden = outcome === "";
    this.after = after;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.goOn(), Math.max(ms, FOCUS_MS));
  }

  /** Whether it is shown and has not got the focus yet. */
  get isComing() {
    return this.isOpen && !this.isEnding && this.since === Infinity;
  }

  get isEnding() {
    return this.after !== null;
  }

  goOn() {
    const { after } = this;
    this.after = null;
    clearTimeout(this.timer);
    after?.();
  }

  /** Whether the user may have read what they answer. */
  get isRead() {
    return performance.now() - this.since >= UNREAD_MS;
  }

  hide() {
    if (!this.isOpen) return;
    clearTimeout(this.timer);
    this.after = null;
    removeEventListener("keydown", this.pressed, true);
    removeEventListener("keyup", this.released, true);
    const active = focused();
    const inside = this.root.contains(active) || active === null || active === document.body;
    this.isOpen = false;
    // A selection in the dialog would be left behind it, and a screen reader's own cursor with it.
    if (inside) getSelection()?.removeAllRanges();
    this.root.hidden = true;
    this.root.replaceChildren();
    const back = this.before?.isConnected ? this.before : this.home;
    if (inside) back?.focus({ preventScroll: back === this.home });
    this.before = null;
  }

  /** Whether a key press is meant for the dialog. @param {KeyboardEvent} event */
  concerns(event) {
    const [target] = event.composedPath();
    return target === document.body || target === document.documentElement || event.composedPath().includes(this.root);
  }

  /** @param {KeyboardEvent} event */
  down(event) {
    if (!this.concerns(event)) return;
    if (this.isEnding && !["Alt", "Control", "Meta", "Shift"].includes(event.key)) {
      // What is typed goes where the focus was before.
      if (["Enter", " ", "Escape", "Tab"].includes(event.key)) event.preventDefault();
      return this.goOn();
    }
    const activates = event.key === "Enter" || event.key === " ";
    if (activates && (event.repeat || this.stale.has(event.code) || !this.isRead)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === "Escape" && !event.isComposing) {
      event.preventDefault();
      event.stopPropagation();
      this.escape();
    } else if (event.key === "Tab" && !event.altKey && !event.ctrlKey && !event.metaKey) {
      this.tab(event);
    }
  }

  /** A key that went down before goes up: that answers nothing. @param {KeyboardEvent} event */
  up(event) {
    if (this.stale.delete(event.code) && this.concerns(event)) event.preventDefault();
  }

  /** Tab stays inside. @param {KeyboardEvent} event */
  tab(event) {
    const all = stops(this.box.root);
    const active = focused();
    const at = all.findIndex((stop) => stop === active);
    const [first, last] = [all[0], all.at(-1)];
    const outside = !this.box.root.contains(active);
    const next = event.shiftKey ? (outside || at <= 0 ? last : null) : outside || active === last ? first : null;
    if (!next) return;
    event.preventDefault();
    next.focus();
  }
}

/**
 * A paragraph of a dialog's text.
 * @param {Line} line @param {string} language @param {string} [kind]
 */
export const paragraph = (line, language, kind = "") =>
  h("p", kind === "" ? {} : { class: kind }, ...shown(line, language), " ");

/** How a sentence of a request looks, by the phrase that it is. @type {[RegExp, (key: string) => string][]} */
const LOOKS = [
  [/^(undo|risk)\./, (key) => `fact ${key.replace(".", "-")}`],
  [/^careful\.|^ask\.silence_accepts$/, () => "careful"],
  [/^ask\.choice$/, () => "choice-text"],
];

/**
 * What is asked, in the order in which it is heard: the action, whether it can be undone, what comes
 * of it, what to beware of, how long it waits.
 * @param {AgentRequest} request @param {Words} words @param {Manner} manner
 * @param {number} seconds
 * @returns {{heading: Line, text: HTMLElement[], waits: HTMLElement}}
 */
export function question(request, words, manner, seconds) {
  const speech = new Speech(words, { ...manner, name_agents: false });
  speech.asks(request, request.agent.name);
  const [[, heading = []] = [], ...rest] = speech.sentences;
  const text = rest.map(([, line, key]) =>
    paragraph(line, request.language, LOOKS.find(([test]) => test.test(key))?.[1](key)));
  if (request.account && saysAccount(request)) text.push(...account(request.account, words));
  const waits = paragraph(waitsFor(request, words, seconds), "", "hint");
  return { heading, text, waits };
}

/** @param {AgentRequest} request @param {Words} words @param {number} seconds */
export const waitsFor = (request, words, seconds) => words.phrase("page.question.waits",
  { number: request.shown_number, agent: { theirs: request.agent.name }, time: words.duration(seconds) });

/**
 * Whether the hub's account is said unasked: nobody but the agent describes something grave.
 * @param {AgentRequest} request
 */
export const saysAccount = ({ account, risk }) => account !== null && risk === "high" && !account.by_policy;

/**
 * What would run, by the hub's own account, apart from the agent's words.
 * @param {Account} account @param {Words} words
 */
function account({ tool, arguments: all, shortened, redacted }, words) {
  const lines = all.split("\n").filter((line) => line.trim() !== "");
  const lead = lines.length > 0 ? "page.account" : "page.account.bare";
  const parts = [paragraph(words.phrase(lead, { tool: { theirs: tool } }), "", "account")];
  for (const line of lines) {
    const argument = words.phrase("page.sentence", { text: { theirs: line } });
    parts.push(paragraph(ended(argument, words), "", "account argument"));
  }
  if (shortened) parts.push(paragraph(words.phrase("page.account.shortened"), "", "account"));
  if (redacted) parts.push(paragraph(words.phrase("page.account.redacted"), "", "account"));
  return [...parts, ...beware(tool, lines, words).map((line) => paragraph(line, "", "careful"))];
}

/**
 * What to beware of in a tool's name and its arguments.
 * @param {string} tool @param {string[]} lines @param {Words} words @returns {Line[]}
 */
export function beware(tool, lines, words) {
  const speech = new Speech(words, { verbosity: "normal", load: "medium", name_agents: false });
  speech.careful([tool, lines.join(", ")]);
  return speech.sentences.map(([, line]) => line);
}

/**
 * Whose words the question's are, and what the agent itself says where those are not its own.
 * @param {Pick<AgentRequest, "account" | "agent_says">} request @param {Words} words
 */
export function ownWords({ account: given, agent_says: theirs }, words) {
  const lines = given?.by_policy ? [words.phrase("account.policy")] : [];
  if (theirs !== "") lines.push(words.phrase("account.agent", { text: { theirs } }));
  return lines;
}

/**
 * What would run and what the agent says of it, each apart, to be opened by whoever wants to know.
 * @param {AgentRequest} request @param {Words} words
 */
export function details(request, words) {
  const { account: given, language } = request;
  const parts = given ? account(given, words) : [];
  if (given && given.digest !== "") {
    parts.push(paragraph(words.phrase("page.account.digest", { digest: { theirs: given.digest } }), "", "account"));
  }
  return h("details", { class: "details" }, h("summary", {}, words.text("page.details")), ...parts,
    ...ownWords(request, words).map((line) => paragraph(line, language, "own-words")));
}

/**
 * What the second step says beside the action: that it cannot be undone, once.
 * @param {Pick<AgentRequest, "action" | "reversibility">} request @param {Words} words @param {Manner} manner
 * @returns {Line[]}
 */
export function beforeYes(request, words, manner) {
  const speech = new Speech(words, manner);
  if (request.reversibility === "irreversible") speech.undo(request, [request.action]);
  return speech.sentences.map(([, line]) => line);
}

/**
 * Whether accepting takes a second step.
 * @param {AgentRequest} request @param {"risky"|"always"} when
 */
export const needsSecond = (request, when) =>
  request.asks === "consent" &&
  (when === "always" || (request.risk === "high" && request.reversibility === "irreversible"));

/** Where the ten digits of scripts begin that our languages are written in. */
const ZEROS = [0x660, 0x6f0, 0x966, 0xff10];

/**
 * A number as people write it, with a point or a comma before its fraction. Thousands are not guessed:
 * 1,234 would be a thousand to some and one and a bit to others.
 * @param {string} text
 * @returns {number | null}
 */
export function numeric(text) {
  const western = text.trim().replace(/\p{Nd}/gu, (digit) => {
    const zero = ZEROS.find((one) => digit >= String.fromCharCode(one) && digit <= String.fromCharCode(one + 9));
    return zero === undefined ? digit : String(digit.charCodeAt(0) - zero);
  }).replace(/[٫．]/g, ".").replace(/[−－]/g, "-").replace(/^([+-]?\d*),(\d{1,2}|\d{4,})$/, "$1.$2");
  return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(western) ? Number(western) : null;
}

/**
 * Ways to answer a question of each kind; `send` gets what is sent back. Labels are only to be seen:
 * Orca would read them with the dialog, and again with their fields.
 * @param {AgentRequest} request @param {Words} words
 * @param {(response: string | number | boolean) => void} send
 * @param {(field: HTMLElement, message: HTMLElement, key: string) => void} again asks again, gently
 * @returns {Node[]}
 */
export function answers(request, words, send, again) {
  return request.kinds.map((kind) => {
    if (kind === "yes_no") {
      return h("div", { class: "buttons" },
        button(words.text("page.yes"), () => send(true), { class: "answer yes" }),
        button(words.text("page.no"), () => send(false), { class: "answer no" }));
    }
    const message = h("p", { class: "again", id: `again-${kind}`, hidden: true });
    const submit = button(words.text(`page.send.${kind}`), () => {}, { class: "answer", type: "submit" });
    const form = h("form", { class: kind });
    form.addEventListener("input", () => {
      message.hidden = true;
      form.querySelector("[aria-invalid]")?.removeAttribute("aria-invalid");
    });
    if (kind === "multiple_choice") {
      const choices = request.choices.map((choice, at) => {
        const line = words.phrase("ask.choice", { number: at + 1, label: { theirs: choiceLabel(choice) } });
        return h("label", { class: "choice" }, h("input", { type: "radio", name: "choice", value: at, lang: request.language,
          "aria-label": plain(line) }), h("span", { "aria-hidden": "true" }, ...shown(line, request.language)));
      });
      form.append(h("fieldset", { "aria-label": words.text("page.choose") },
        h("legend", { "aria-hidden": "true" }, words.text("page.choose")), ...choices), message, submit);
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        const chosen = form.querySelector("input:checked");
        const choice = chosen instanceof HTMLInputElement ? request.choices[Number(chosen.value)] : undefined;
        const first = form.querySelector("input");
        if (choice) send(choice.value);
        else if (first) again(first, message, "page.again.multiple_choice");
      });
      return form;
    }
    const label = words.text(`page.label.${kind}`);
    const field = h("input", { id: `field-${kind}`, type: "text", autocomplete: "off", maxlength: 4096, "aria-label": label,
      ...(kind === "numeric" ? { inputmode: "decimal" } : { dir: "auto" }) });
    form.append(h("label", { for: `field-${kind}`, "aria-hidden": "true" }, label), field, message, submit);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const response = kind === "numeric" ? numeric(field.value) : field.value.trim();
      if (response === null || response === "") again(field, message, `page.again.${kind}`);
      else send(response);
    });
    return form;
  });
}
