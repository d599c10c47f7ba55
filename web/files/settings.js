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
  sounds: false,
  shortcuts: true,
  notify: false,
};

/** What may be chosen, for everything that is no switch. */
export const CHOICES = {
  language: ["auto", "en", "ar", "zh"],
  verbosity: ["terse", "normal", "detailed"],
  load: ["low", "medium", "high"],
  pace: [0, 120, 160, 200, 300],
  reading: ["end", "sentence", "silent"],
  ask_twice: ["risky", "always"],
};

/** @returns {Settings} */
export function load() {
  const settings = { ...DEFAULTS };
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
