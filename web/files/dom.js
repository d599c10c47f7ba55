// Building blocks of the view. Text only ever becomes text: there is no way to markup here.

/**
 * An element, with attributes and children.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes] `true` for one without a value
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/**
 * A line: our words as they are, the agent's set apart. `bdi` keeps their direction from ours (L7).
 * @param {Line} line @param {string} [language] of the agent's words
 * @returns {(Node | string)[]}
 */
export function shown(line, language = "") {
  // enforces: L7
  return line.map(({ text, theirs }) => {
    if (!theirs) return text;
    // A line that is all theirs needs no quotes to tell whose it is.
    const words = h("bdi", { class: line.length > 1 ? "theirs" : "theirs alone", dir: "auto" }, text);
    if (language !== "") words.lang = language;
    return words;
  });
}

/**
 * A button.
 * @param {string} label @param {(event: MouseEvent) => void} act
 * @param {Attributes} [attributes]
 */
export function button(label, act, attributes = {}) {
  const made = h("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}

/**
 * The element that has the focus, through shadow roots.
 * @returns {HTMLElement | null}
 */
export function focused() {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active instanceof HTMLElement ? active : null;
}

/**
 * Where a screen reader's own cursor is, if nothing has the focus: the selection follows it.
 * @param {Node} inside whose shadow root is looked into
 * @returns {HTMLElement | null}
 */
export function reading(inside) {
  const selection = getSelection();
  const root = inside.getRootNode();
  const shadowRoots = root instanceof ShadowRoot ? [root] : [];
  const at = selection?.getComposedRanges?.({ shadowRoots })[0]?.startContainer ?? selection?.anchorNode;
  const around = at instanceof Element ? at : at?.parentElement;
  const found = around?.closest("p, li, h1, h2, h3, label, summary, button, input, select");
  return found instanceof HTMLElement ? found : null;
}

/**
 * Lets an element take the focus once, even if it takes none by itself. Well before it does: a screen
 * reader ignores the focus of what it does not know as focusable yet.
 * @param {HTMLElement} element
 */
export function allowFocus(element) {
  if (element.tabIndex >= 0 || element.hasAttribute("tabindex")) return;
  element.tabIndex = -1;
  element.addEventListener("blur", () => element.removeAttribute("tabindex"), { once: true });
}

/**
 * What can be reached with Tab inside an element.
 * @param {HTMLElement} inside
 * @returns {HTMLElement[]}
 */
export function stops(inside) {
  const all = inside.querySelectorAll("button, input, textarea, select, summary, a[href]");
  return /** @type {HTMLElement[]} */ ([...all]).filter(
    (stop) => stop.checkVisibility() && !stop.hasAttribute("disabled"),
  );
}

/** How long after a letter a person is still writing. */
const WRITES_MS = 1000;

/** Whether a key press writes something. @param {KeyboardEvent} event */
function writes(event) {
  const [target] = event.composedPath();
  const { key, isComposing, altKey, ctrlKey, metaKey } = event;
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("input, textarea")) &&
    (isComposing || (!altKey && !ctrlKey && !metaKey && (key.length === 1 || key === "Backspace" || key === "Delete")));
}

/** Keys that are held down, wherever they went down, and whether somebody writes. */
export class Keys {
  constructor() {
    /** @type {Set<string>} */
    this.held = new Set();
    this.wrote = -Infinity;
    this.down = (/** @type {KeyboardEvent} */ event) => {
      this.held.add(event.code);
      if (writes(event)) this.wrote = performance.now();
      else if (event.key !== "Shift") this.wrote = -Infinity;
    };
    this.up = (/** @type {KeyboardEvent} */ event) => void this.held.delete(event.code);
    // Nobody tells about keys that go up elsewhere.
    this.away = () => this.held.clear();
  }

  get isWriting() {
    return performance.now() - this.wrote < WRITES_MS;
  }

  start() {
    addEventListener("keydown", this.down, true);
    addEventListener("keyup", this.up, true);
    addEventListener("blur", this.away);
  }

  stop() {
    removeEventListener("keydown", this.down, true);
    removeEventListener("keyup", this.up, true);
    removeEventListener("blur", this.away);
  }
}
