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

/** Keys that are held down, wherever they went down. */
export class Keys {
  constructor() {
    /** @type {Set<string>} */
    this.held = new Set();
    this.down = (/** @type {KeyboardEvent} */ event) => void this.held.add(event.code);
    this.up = (/** @type {KeyboardEvent} */ event) => void this.held.delete(event.code);
    // Nobody tells about keys that go up elsewhere.
    this.away = () => this.held.clear();
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
