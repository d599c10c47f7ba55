// Dialogs that ask: a request of an agent, or whether to stop one. The focus goes to the text, never
// to a button, and no key press that was under way before can answer.

import { button, focused, h, shown, stops } from "./dom.js";
import { choiceLabel } from "./inbox.js";
import { Speech } from "./speech.js";

/** For how long after a text appeared nobody can have read it, and nothing answers it. */
const UNREAD_MS = 600;

/** A dialog in the page, modal for the keyboard; whoever opens it makes the rest inert. */
export class Dialog {
  /** @param {Keys} keys */
  constructor(keys) {
    this.keys = keys;
    this.heading = h("h2", { id: "dialog-heading" });
    this.body = h("div", { id: "dialog-text", class: "text", role: "group", tabindex: "-1",
      "aria-labelledby": "dialog-text" });
    this.answers = h("div", { class: "answers" });
    this.box = h("div", { role: "alertdialog", "aria-labelledby": "dialog-heading", class: "dialog" },
      this.heading, this.body, this.answers);
    this.root = h("div", { class: "backdrop", hidden: true }, this.box);
    /** @type {Set<string>} */
    this.stale = new Set();
    this.since = 0;
    /** @type {HTMLElement | null} */
    this.before = null;
    /** @type {() => void} */
    this.escape = () => {};
    this.root.addEventListener("keydown", (event) => this.down(event), true);
    this.root.addEventListener("keyup", (event) => this.up(event), true);
  }

  get isOpen() {
    return !this.root.hidden;
  }

  /**
   * Shows a text and ways to answer it.
   * @param {string} heading @param {Node[]} text @param {Node[]} answers @param {() => void} escape
   */
  show(heading, text, answers, escape) {
    if (!this.isOpen) this.before = focused();
    this.heading.textContent = heading;
    this.body.replaceChildren(...text);
    this.answers.replaceChildren(...answers);
    this.escape = escape;
    this.root.hidden = false;
    this.begin();
  }

  /** From here on, the text is new to the user. */
  begin() {
    this.stale = new Set(this.keys.held);
    this.since = performance.now();
    this.body.focus({ preventScroll: true });
    this.root.scrollTop = 0;
  }

  /** Whether the user may have read what they answer. */
  get isRead() {
    return performance.now() - this.since >= UNREAD_MS;
  }

  hide() {
    if (!this.isOpen) return;
    const inside = this.box.contains(focused());
    this.root.hidden = true;
    this.answers.replaceChildren();
    if (inside) this.before?.focus();
    this.before = null;
  }

  /** @param {KeyboardEvent} event */
  down(event) {
    const activates = event.key === "Enter" || event.key === " ";
    if (activates && (event.repeat || this.stale.has(event.code) || !this.isRead)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === "Escape" && !event.isComposing) {
      event.preventDefault();
      this.escape();
    } else if (event.key === "Tab") {
      this.tab(event);
    }
  }

  /** A key that went down before goes up: that answers nothing. @param {KeyboardEvent} event */
  up(event) {
    if (this.stale.delete(event.code)) event.preventDefault();
  }

  /** Tab stays inside. @param {KeyboardEvent} event */
  tab(event) {
    const all = stops(this.box);
    const at = all.indexOf(/** @type {HTMLElement} */ (focused()));
    const next = event.shiftKey ? (at <= 0 ? all.at(-1) : null) : at === all.length - 1 ? all[0] : null;
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

/**
 * What is asked, in the order in which it is heard: the action, whether it can be undone, what comes
 * of it, what to beware of, how long it waits.
 * @param {AgentRequest} request @param {Words} words @param {Manner} manner
 * @param {number} seconds
 */
export function question(request, words, manner, seconds) {
  const speech = new Speech(words, { ...manner, name_agents: false, load: manner.load === "low" ? "medium" : manner.load });
  if (request.changed) {
    speech.say("page.request.changed");
    speech.newLine();
  }
  speech.asks(request, request.agent.name);
  speech.newLine();
  speech.say("ask.waits", { number: request.shown_number, time: words.duration(seconds) });
  const grave = request.asks === "consent" && request.risk === "high" && request.reversibility === "irreversible";
  const text = speech.finish(null).map((line, at) =>
    paragraph(line, request.language, at === 0 ? `action${grave ? " grave" : ""}` : ""));
  if (request.account && saysAccount(request)) text.splice(-1, 0, ...account(request.account, words));
  return text;
}

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
    parts.push(paragraph(words.phrase("page.sentence", { text: { theirs: line } }), "", "account argument"));
  }
  if (shortened) parts.push(paragraph(words.phrase("page.account.shortened"), "", "account"));
  if (redacted) parts.push(paragraph(words.phrase("page.account.redacted"), "", "account"));
  return parts;
}

/**
 * The same, to be opened by whoever wants to know.
 * @param {Account} given @param {Words} words
 */
export function details(given, words) {
  const digest = given.digest === "" ? []
    : [paragraph(words.phrase("page.account.digest", { digest: { theirs: given.digest } }), "", "account")];
  return h("details", { class: "details" }, h("summary", {}, words.text("page.details")),
    ...account(given, words), ...digest);
}

/**
 * Whether accepting takes a second step.
 * @param {AgentRequest} request @param {"risky"|"always"} when
 */
export const needsSecond = (request, when) =>
  request.asks === "consent" &&
  (when === "always" || (request.risk === "high" && request.reversibility === "irreversible"));

/**
 * A number as people write it.
 * @param {string} text
 * @returns {number | null}
 */
export function numeric(text) {
  const digits = text.trim().replace(/[٠-٩]/g, (digit) => String(digit.charCodeAt(0) - 0x660))
    .replace(/[０-９．－]/g, (digit) => String.fromCharCode(digit.charCodeAt(0) - 0xfee0))
    .replace("٫", ".").replace("−", "-");
  return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(digits) ? Number(digits) : null;
}

/**
 * Ways to answer a question of each kind; `send` gets what is sent back.
 * @param {AgentRequest} request @param {Words} words
 * @param {(response: string | number | boolean) => void} send
 * @param {(field: HTMLElement, message: HTMLElement, key: string) => void} again asks again, gently
 * @returns {Node[]}
 */
export function answers(request, words, send, again) {
  return request.kinds.map((kind) => {
    if (kind === "yes_no") {
      return h("div", { class: "buttons" },
        button(words.text("page.yes"), () => send(true), { class: "answer" }),
        button(words.text("page.no"), () => send(false), { class: "answer" }));
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
        return h("label", { class: "choice" }, h("input", { type: "radio", name: "choice", value: at,
          "aria-describedby": `again-${kind}` }), h("span", {}, ...shown(line, request.language)));
      });
      form.append(h("fieldset", {}, h("legend", {}, words.text("page.choose")), ...choices), message, submit);
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
    const field = h("input", { id: `field-${kind}`, type: "text", autocomplete: "off", maxlength: 4096,
      "aria-describedby": `again-${kind}`, ...(kind === "numeric" ? { inputmode: "decimal" } : { dir: "auto" }) });
    form.append(h("label", { for: `field-${kind}` }, words.text(`page.label.${kind}`)), field, message, submit);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const response = kind === "numeric" ? numeric(field.value) : field.value.trim();
      if (response === null || response === "") again(field, message, `page.again.${kind}`);
      else send(response);
    });
    return form;
  });
}
