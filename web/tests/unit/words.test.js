// The words say what the vectors want, which the Rust library says too.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";

import { lookAlikes, setTable } from "../../files/alike.js";
import { numeric, beforeYes, beware, ownWords } from "../../files/dialog.js";
import { safe } from "../../files/safe.js";
import { setLookAlikes } from "../../files/questions.js";
import { LANGUAGES } from "../../files/settings.js";
import { Words } from "../../files/words.js";
import { Hub } from "../support/hub.js";

const library = new URL("../../../crates/aaep-subscriber/", import.meta.url);
const files = new URL("../../files/", import.meta.url);
const read = (place, from = library) => JSON.parse(readFileSync(new URL(place, from), "utf8"));

/** The table of letters comes from the library, as the hub serves it. */
const hub = await Hub.start("demo", { options: ["--ephemeral"] });
const table = await (await fetch(`${hub.origin}/page/alike.json`)).text();
await hub.stop();
setTable(JSON.parse(table));
setLookAlikes(lookAlikes);

function words(wanted) {
  const base = wanted.toLowerCase().split("-")[0];
  const language = Object.hasOwn(LANGUAGES, base) ? base : "en";
  const of = (name) => read(`messages/${language}/${name}.json`);
  return new Words(language, of("language").direction, { ...of("said"), ...of("page"), ...of("rare") }, wanted);
}

/** A request of a vector, as our inbox has it. */
function request({ asks, ...rest }) {
  return { continues: null, agent: { id: "tidy", name: "tidy" }, consequence: "", context: "", kinds: [], choices: [],
    default: null, ...rest, ...asks, asks: asks.kind, action: asks.action ?? asks.question };
}

function happening(given) {
  const agent = { id: "tidy", name: "tidy" };
  const full = { agent, ...given };
  if (given.request) full.request = request(given.request);
  if (given.kind === "connected" || given.kind === "lost" || given.request) delete full.agent;
  return full;
}

const spans = (line) => line.map(({ text, theirs }) => (theirs ? { theirs: text } : text));

// covers: D34, T28, T30, S10
test("every vector of the words is said as the library says it", () => {
  const all = read("vectors/words.json");
  let run = 0;
  for (const { name, language, verbosity, load, name_agents = false, happening: given, said } of all) {
    // What is no JSON at all never comes this far here: the inbox tells it as a silence.
    if (given.json !== undefined) continue;
    const lines = words(language).say(happening(given), { verbosity, load, name_agents });
    assert.deepEqual(lines.map(spans), said, name);
    run += 1;
  }
  assert.ok(run > 50, `${run} vectors`);
});

// covers: I31
test("whose words a question's are, and the agent's own, are told as the library tells them", () => {
  let apart = 0;
  for (const { name, language, request: { account, agent_says = "" }, said } of read("vectors/account.json")) {
    const own = ownWords({ account: { ...account, by_policy: account.described_by === "policy" }, agent_says },
      words(language));
    const lines = [...beware(account.tool, account.arguments.split("\n"), words(language)), ...own];
    // The first line is the hub's account, which the page shows as a list.
    assert.deepEqual(lines.map(spans), said.slice(1), name);
    apart += agent_says === "" ? 0 : 1;
  }
  assert.ok(apart >= 3, `${apart} vectors with words of the agent's`);
});

// covers: D34
test("every vector of safe text is made safe", () => {
  for (const { name, text, safe: wanted } of read("vectors/safe.json")) {
    assert.equal(safe(text).text, wanted, name);
  }
});

test("every language has every phrase of the page, with its places and plurals", () => {
  const english = { ...read("messages/en/page.json"), ...read("messages/en/rare.json") };
  const places = (message) => {
    const texts = typeof message === "string" ? [message] : Object.values(message);
    return new Set(texts.flatMap((text) => text.match(/\{\w+\}/g) ?? []));
  };
  for (const language of Object.keys(LANGUAGES)) {
    const other = { ...read(`messages/${language}/page.json`), ...read(`messages/${language}/rare.json`) };
    assert.deepEqual(Object.keys(other), Object.keys(english), language);
    for (const [key, message] of Object.entries(english)) {
      assert.deepEqual(places(other[key]), places(message), `${language} ${key}`);
      if (typeof message === "string") continue;
      const wanted = new Intl.PluralRules(language).resolvedOptions().pluralCategories;
      assert.deepEqual(Object.keys(other[key]).sort(), [...wanted].sort(), `${language} ${key}`);
    }
  }
});

test("the page has the languages of the library, with their names and who wrote their words", () => {
  const messages = new URL("messages/", library);
  const folders = readdirSync(messages, { withFileTypes: true }).filter((one) => one.isDirectory()).map(({ name }) => name);
  assert.deepEqual(Object.keys(LANGUAGES).sort(), folders.sort());
  for (const [tag, { name, by_machine }] of Object.entries(LANGUAGES)) {
    const about = read(`messages/${tag}/language.json`);
    assert.deepEqual([about.name, about.written_by === "machine"], [name, by_machine], tag);
  }
});

test("every phrase that the page asks for is there", () => {
  const everywhere = { ...read("messages/en/said.json"), ...read("messages/en/page.json") };
  const rare = read("messages/en/rare.json");
  for (const name of readdirSync(files)) {
    const text = readFileSync(new URL(name, files), "utf8");
    // These read the rest of the words before they say anything.
    const known = ["passkeys.js", "pin.js", "refused.js", "sign-in.js"].includes(name) ? { ...everywhere, ...rare } : everywhere;
    for (const [, key] of text.matchAll(/"(page\.[\w.]*\w)"/g)) {
      assert.ok(key in known, `${name}: ${key}`);
    }
  }
});

test("numbers are taken as people write them, and nothing else is", () => {
  const given = { "12": 12, " 12.5 ": 12.5, "-3": -3, "−3": -3, "١٢٫٥": 12.5, "１２": 12, "१२.५": 12.5, ".5": 0.5, "5.": 5,
    "2,5": 2.5, "-0,25": -0.25 };
  for (const [text, number] of Object.entries(given)) assert.equal(numeric(text), number, text);
  for (const text of ["", "a few", "1,234", "1,234.5", "1,2,3", "1e5", "Infinity", "0x10", "--1", "1 2"]) assert.equal(numeric(text), null, text);
});

// covers: S10
test("the second step says once that something cannot be undone", () => {
  const manner = { verbosity: "normal", load: "medium", name_agents: false };
  const said = (action, reversibility = "irreversible") =>
    beforeYes({ action, reversibility }, words("en"), manner).map((line) => line.map((span) => span.text).join(""));
  assert.deepEqual(said("Delete the build."), ["It cannot be undone."]);
  assert.deepEqual(said("Delete the build. This cannot be undone."), []);
  assert.deepEqual(said("Nothing says that it cannot be undone."), ["It cannot be undone."]);
  assert.deepEqual(said("Move a file.", "reversible"), []);
});
