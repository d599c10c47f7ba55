// Settings and help: everything has a label that can be said, and takes effect at once.

import { h } from "./dom.js";
import { CHOICES, CODES, LANGUAGES, MODIFIERS } from "./settings.js";

const SWITCHES = /** @type {const} */ (["sounds", "shortcuts", "notify"]);

/** How modifiers are written, and which flags of a key press they are. @type {Record<string, [string, string[]]>} */
const HELD = {
  ctrl_shift: ["Ctrl+Shift", ["ctrlKey", "shiftKey"]],
  alt_shift: ["Alt+Shift", ["altKey", "shiftKey"]],
  ctrl_alt: ["Ctrl+Alt", ["altKey", "ctrlKey"]],
};

/**
 * Whether exactly these modifiers are held.
 * @param {KeyboardEvent} event @param {Settings["modifiers"]} modifiers
 */
export const held = (event, modifiers) => ["altKey", "ctrlKey", "metaKey", "shiftKey"].every((flag) =>
  HELD[modifiers]?.[1].includes(flag) === /** @type {any} */ (event)[flag]);

/** @param {Settings} settings @param {string} code */
const written = ({ modifiers }, code) => `${HELD[modifiers]?.[0]}+${code.replace(/^(Key|Digit)/, "")}`;

/** A language in its own name, with a mark until somebody who speaks it has read its words. @param {Words} words @param {string} tag */
function language(words, tag) {
  const { name = tag, by_machine = false } = LANGUAGES[tag] ?? {};
  return by_machine ? words.text("page.language.machine", { language: { ours: name } }) : name;
}

/**
 * @param {Words} words @param {Settings} settings
 * @param {(changed: Partial<Settings>) => void} change
 */
export function settingsPanel(words, settings, change) {
  const fields = Object.entries(CHOICES).map(([name, choices]) => {
    const id = `setting-${name}`;
    const select = h("select", { id }, ...choices.map((choice) =>
      h("option", { value: choice }, LANGUAGES[choice] ? language(words, String(choice)) : words.text(`page.${name}.${choice}`))));
    const chosen = /** @type {any} */ (settings)[name];
    select.value = String(chosen);
    select.addEventListener("change", () => {
      const value = typeof chosen === "number" ? Number(select.value) : select.value;
      change(/** @type {Partial<Settings>} */ ({ [name]: value }));
    });
    const field = h("div", { class: "field" }, h("label", { for: id }, words.text(`page.${name}`)), select);
    if (name === "language" && LANGUAGES[words.language]?.by_machine) {
      select.setAttribute("aria-describedby", "by-machine");
      field.append(h("p", { class: "hint", id: "by-machine" }, words.text("by_machine")));
    }
    return field;
  });
  const switches = SWITCHES.map((name) => {
    const box = h("input", { type: "checkbox", id: `setting-${name}` });
    box.checked = settings[name];
    box.addEventListener("change", () => change({ [name]: box.checked }));
    return h("label", { class: "switch", for: `setting-${name}` }, box, h("span", {}, words.text(`page.${name}`)));
  });
  return h("details", { class: "panel", id: "settings" },
    h("summary", {}, words.text("page.settings")),
    h("div", { class: "fields" }, ...fields), ...switches);
}

/**
 * The shortcuts, each with the key that it has; another can be chosen.
 * @param {Words} words @param {Settings} settings
 * @param {(changed: Partial<Settings>) => void} change
 */
export function helpPanel(words, settings, change) {
  const modifiers = h("select", { id: "setting-modifiers" }, ...MODIFIERS.map((one) =>
    h("option", { value: one }, HELD[one]?.[0] ?? one)));
  modifiers.value = settings.modifiers;
  /** @type {Map<string, HTMLSelectElement>} */
  const selects = new Map();
  const write = () => {
    for (const [action, select] of selects) {
      for (const option of select.options) {
        option.textContent = option.value === "" ? words.text("page.shortcut.none") : written(settings, option.value);
      }
      select.value = settings.keys[/** @type {Action} */ (action)];
    }
  };
  modifiers.addEventListener("change", () => {
    change({ modifiers: /** @type {Settings["modifiers"]} */ (modifiers.value) });
    write();
  });
  const rows = Object.keys(settings.keys).map((action) => {
    const id = `shortcut-${action}`;
    const select = h("select", { id, dir: "ltr" }, ...["", ...CODES].map((code) => h("option", { value: code })));
    selects.set(action, select);
    select.addEventListener("change", () => {
      const keys = { ...settings.keys };
      // A key does one thing: whoever had it gets the other's.
      const other = Object.entries(keys).find(([, code]) => code !== "" && code === select.value)?.[0];
      if (other) keys[/** @type {Action} */ (other)] = keys[/** @type {Action} */ (action)];
      keys[/** @type {Action} */ (action)] = select.value;
      change({ keys });
      write();
    });
    return h("div", { class: "field" }, h("label", { for: id }, words.text(`page.shortcut.${action}`)), select);
  });
  write();
  return h("details", { class: "panel", id: "help" },
    h("summary", {}, words.text("page.help")),
    h("p", { class: "hint" }, words.text("page.shortcut.escape")),
    h("div", { class: "fields" },
      h("div", { class: "field" }, h("label", { for: "setting-modifiers" }, words.text("page.modifiers")), modifiers), ...rows),
    h("p", { class: "hint" }, words.text("page.shortcut.off")));
}
