// Settings and help: everything has a label that can be said, and takes effect at once.

import { h } from "./dom.js";
import { CHOICES } from "./settings.js";

const SWITCHES = /** @type {const} */ (["sounds", "shortcuts", "notify"]);

/** Each in its own name. @type {Record<string, string>} */
const LANGUAGES = { en: "English", ar: "العربية", zh: "中文" };

/** The shortcuts: the key with Alt and Shift, and what it does. */
export const SHORTCUTS = /** @type {const} */ ([
  ["KeyQ", "questions"],
  ["KeyR", "repeat"],
  ["KeyW", "now"],
  ["KeyY", "accept"],
  ["KeyN", "reject"],
  ["KeyT", "more_time"],
  ["KeyX", "stop"],
  ["KeyL", "log"],
]);

/**
 * @param {Words} words @param {Settings} settings
 * @param {(changed: Partial<Settings>) => void} change
 */
export function settingsPanel(words, settings, change) {
  const fields = Object.entries(CHOICES).map(([name, choices]) => {
    const id = `setting-${name}`;
    const select = h("select", { id }, ...choices.map((choice) => {
      const label = name === "language" && choice !== "auto"
        ? LANGUAGES[choice] ?? String(choice)
        : words.text(`page.${name}.${choice}`);
      return h("option", { value: choice }, label);
    }));
    const chosen = /** @type {any} */ (settings)[name];
    select.value = String(chosen);
    select.addEventListener("change", () => {
      const value = typeof chosen === "number" ? Number(select.value) : select.value;
      change(/** @type {Partial<Settings>} */ ({ [name]: value }));
    });
    return h("div", { class: "field" }, h("label", { for: id }, words.text(`page.${name}`)), select);
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

/** @param {Words} words */
export function helpPanel(words) {
  const rows = SHORTCUTS.map(([code, does]) =>
    h("div", {}, h("dt", {}, h("kbd", { dir: "ltr" }, `Alt+Shift+${code.slice(3)}`)),
      h("dd", {}, words.text(`page.shortcut.${does}`))));
  rows.push(h("div", {}, h("dt", {}, h("kbd", { dir: "ltr" }, "Esc")), h("dd", {}, words.text("page.shortcut.later"))));
  return h("details", { class: "panel", id: "help" },
    h("summary", {}, words.text("page.help")),
    h("dl", {}, ...rows), h("p", { class: "hint" }, words.text("page.shortcut.off")));
}
