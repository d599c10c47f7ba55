// What the user chose. It stays in this browser; a token never does.

const KEY = "aaep-subscriber:settings";

/** @type {Settings} */
export const DEFAULTS = {
  language: "auto",
  verbosity: "normal",
  load: "medium",
  pace: 0,
  reading: "end",
  ask_twice: "risky",
  hear: "all",
  modifiers: "ctrl_shift",
  // Digits: letters with Alt, Shift or Ctrl are taken by screen readers, access keys and browsers.
  keys: { questions: "Digit1", repeat: "Digit2", now: "Digit3", more_time: "Digit4", log: "Digit5", stop: "Digit6",
    reject: "Digit7", accept: "Digit9" },
  sounds: false,
  shortcuts: true,
  notify: false,
};

/**
 * The languages of the page: each in its own name, and whether a machine wrote its words and nobody who
 * speaks it has read them yet.
 * @type {Record<string, {name: string, by_machine: boolean}>}
 */
export const LANGUAGES = {
  en: { name: "English", by_machine: false },
  ar: { name: "العربية", by_machine: true },
  zh: { name: "中文", by_machine: true },
  fr: { name: "Français", by_machine: true },
  de: { name: "Deutsch", by_machine: true },
  es: { name: "Español", by_machine: true },
  pt: { name: "Português", by_machine: true },
  hi: { name: "हिन्दी", by_machine: true },
  yo: { name: "Yorùbá", by_machine: true },
  ha: { name: "Hausa", by_machine: true },
  ig: { name: "Igbo", by_machine: true },
};

/** What may be chosen, for everything that is no switch. */
export const CHOICES = {
  language: ["auto", ...Object.keys(LANGUAGES)],
  verbosity: ["terse", "normal", "detailed"],
  load: ["low", "medium", "high"],
  pace: [0, 120, 160, 200, 300],
  reading: ["end", "sentence", "silent"],
  ask_twice: ["risky", "always"],
  hear: ["all", "asks"],
};

/** What may be held with a shortcut's key. */
export const MODIFIERS = ["ctrl_shift", "alt_shift", "ctrl_alt"];

/** The keys that a shortcut may have, as `KeyboardEvent.code`. */
export const CODES = [..."123456789"].map((digit) => `Digit${digit}`)
  .concat([..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"].map((letter) => `Key${letter}`));

/** @returns {Settings} */
export function load() {
  const settings = { ...DEFAULTS, keys: { ...DEFAULTS.keys } };
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    for (const name of /** @type {(keyof Settings)[]} */ (Object.keys(DEFAULTS))) {
      if (fits(name, kept[name])) Object.assign(settings, { [name]: kept[name] });
    }
  } catch {
    // Nothing was kept, or nothing may be: the defaults are good.
  }
  return settings;
}

/** @param {keyof Settings} name @param {unknown} value */
function fits(name, value) {
  if (name === "modifiers") return MODIFIERS.includes(String(value));
  if (name === "keys") {
    const given = value !== null && typeof value === "object" ? /** @type {Record<string, unknown>} */ (value) : {};
    return Object.keys(given).length === Object.keys(DEFAULTS.keys).length &&
      Object.keys(DEFAULTS.keys).every((action) => ["", ...CODES].includes(String(given[action])));
  }
  if (typeof DEFAULTS[name] === "boolean") return typeof value === "boolean";
  const choices = /** @type {Record<string, unknown[]>} */ (CHOICES)[name];
  return choices?.includes(value) ?? false;
}

/** @param {Settings} settings */
export function save(settings) {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // A browser that keeps nothing is asked again next time.
  }
}

/**
 * What the hub is asked for.
 * @param {Settings} settings
 * @param {string} language the language of our own words
 */
export function capabilities(settings, language) {
  const languages = [...new Set([language, ...navigator.languages])].slice(0, 8);
  /** @type {Record<string, unknown>} */
  const asked = {
    preferred_verbosity: settings.verbosity,
    languages,
    cognitive_load: settings.load,
    coalesce_boundaries: ["sentence", "completion"],
    max_events_per_second: 100,
  };
  if (settings.pace > 0) asked.pace_wpm = settings.pace;
  return asked;
}
