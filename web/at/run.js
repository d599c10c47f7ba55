// What is heard of the page with Orca, compared with the transcripts in `web/heard`.
//
//   node at/run.js [chromium|firefox|lxterminal]... [--quick] [--only NAME,NAME] [--repeat N] [--tries N] [--write]
//
// A transcript that differs is a failure; with --write it is replaced. With --tries a scenario that
// differs is played again, because a busy machine swallows words now and then, and a page that no longer
// says them swallows them every time. After anything else than lost words it has to be heard as kept
// twice in a row. A question that was not heard whole fails at once. How often a scenario was tried, and
// what became of each try, is said at the end.

import { existsSync, mkdirSync } from "node:fs";

import { House } from "../tests/support/house.js";
import { Hub } from "../tests/support/hub.js";
import { Desktop, orcaVersion } from "./desktop.js";
import { Listener } from "./listener.js";
import { PIN, QUICK, SCENARIOS } from "./scenarios.js";
import { Swapper } from "./swapper.js";
import { Transcripts, Tries } from "./transcripts.js";

/** How this ends for a version of Orca that was never listened to. */
const NOTHING_KEPT = 3;

/** What it is heard in: browsers, and a terminal with `aaep listen`. */
const KINDS = ["chromium", "firefox", "lxterminal"];

/** The command line. */
function read(args) {
  const asked = { kinds: [], names: Object.keys(SCENARIOS), repeat: 1, tries: 1, write: false };
  const words = [...args];
  while (words.length > 0) {
    const word = words.shift();
    if (KINDS.includes(word)) asked.kinds.push(word);
    else if (word === "--quick") asked.names = QUICK;
    else if (word === "--write") asked.write = true;
    else if (word === "--only") asked.names = (words.shift() ?? "").split(",");
    else if (word === "--repeat") asked.repeat = Number(words.shift());
    else if (word === "--tries") asked.tries = Number(words.shift());
    else throw new Error(`unknown argument ${word}`);
  }
  const unknown = asked.names.filter((name) => !Object.hasOwn(SCENARIOS, name));
  if (unknown.length > 0) throw new Error(`no scenario ${unknown.join(", ")}; there are ${Object.keys(SCENARIOS).join(", ")}`);
  if (!(asked.repeat >= 1 && asked.tries >= 1)) throw new Error("--repeat and --tries need a number");
  if (asked.kinds.length === 0) asked.kinds = KINDS;
  return asked;
}

/** Plays a scenario, on a page that was just loaded, and gives back what was heard. */
async function heard(desktop, hub, { about, play, terminal = false }) {
  const listener = new Listener(desktop, hub);
  try {
    if (!terminal) await listener.home();
    await play(listener);
  } catch (error) {
    listener.note(`it broke off: ${error.message}`);
  } finally {
    await listener.leave();
  }
  return listener.transcript(about);
}

/** Whether a scenario is heard as it is kept, as far as the tries go. */
async function isAsKept(name, desktop, hub, scenario) {
  const tries = new Tries(asked.tries);
  while (tries.isUndecided) {
    const all = [];
    for (let time = 0; time < asked.repeat; time += 1) all.push(await heard(desktop, hub, scenario));
    const asKept = transcripts.judge(name, all);
    // What is being kept is compared with nothing.
    if (asked.write) tries.note(asKept, false);
    else tries.note(asKept, transcripts.isOnlyLess(name, all), transcripts.lostQuestions(name, all));
  }
  results.push(tries.tells(name));
  return tries.passed;
}

/** A desktop with a browser or a terminal; where one does not come up, another is tried. */
async function open(kind, origin, braille) {
  for (let tried = 1; ; tried += 1) {
    let desktop;
    try {
      desktop = await Desktop.start({ braille });
      if (kind === "lxterminal") await desktop.terminal();
      else await desktop.browser(kind, origin);
      return desktop;
    } catch (error) {
      await desktop?.stop();
      if (tried >= asked.tries) throw error;
      console.log(`${kind}: ${error.message}; trying again.`);
    }
  }
}

/** A hub for some scenarios. One that comes back has to remember what waits; in a house there is a token and a PIN. */
async function start({ house = false, restarts = false }) {
  if (!house) return { hub: await Hub.start("demo", { options: restarts ? [] : ["--ephemeral"] }) };
  const one = await House.start({ policy: `[presence]\nhigh = "pin"\n`, pin: PIN });
  return { hub: one.hub, house: one };
}

/** Plays scenarios that need the same, in a browser or a terminal, on a desktop of their own. */
async function play(kind, names, needs) {
  const { hub, house } = await start(needs);
  hub.token = house?.token;
  const swapper = needs.swaps ? await Swapper.start(hub) : null;
  hub.swapper = swapper;
  let desktop;
  try {
    desktop = await open(kind, swapper?.origin ?? hub.origin, needs.braille ?? false);
    for (const name of names) if (!(await isAsKept(`${kind}-${name}`, desktop, hub, SCENARIOS[name]))) failed += 1;
  } finally {
    await desktop?.stop();
    swapper?.stop();
    await (house ?? hub).stop();
  }
}

const asked = read(process.argv.slice(2));
const folder = new URL(`../heard/orca-${orcaVersion()}/`, import.meta.url);
if (!asked.write && !existsSync(folder)) {
  console.log(`Nothing is kept to compare Orca ${orcaVersion()} with; --write keeps it.`);
  process.exit(NOTHING_KEPT);
}
mkdirSync(folder, { recursive: true });
const transcripts = new Transcripts(folder, asked.write);
let failed = 0;
/** What each scenario came to. @type {string[]} */
const results = [];

for (const kind of asked.kinds) {
  /** Scenarios by what they need. @type {Map<string, string[]>} */
  const together = new Map();
  for (const name of asked.names) {
    const { terminal = false, braille, restarts, house, swaps } = SCENARIOS[name];
    if (terminal !== (kind === "lxterminal")) continue;
    const needs = JSON.stringify({ braille, restarts, house, swaps });
    together.set(needs, [...together.get(needs) ?? [], name]);
  }
  for (const [needs, names] of together) await play(kind, names, JSON.parse(needs));
}
if (!asked.write) console.log(`\nAll tries, Orca ${orcaVersion()}:\n${results.join("\n")}`);
process.exit(failed > 0 ? 1 : 0);
