// The rig for screen readers: what counts as heard otherwise.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { Listener, normal } from "../../at/listener.js";
import { SCENARIOS } from "../../at/scenarios.js";
import { Transcripts, Tries, differences, isOnlyLess, isSame, lostQuestions } from "../../at/transcripts.js";

const ABOUT = "Two come.\n\n> two come\n";

/** With nothing printed. */
function quietly(work) {
  const { log } = console;
  console.log = () => {};
  try {
    return work();
  } finally {
    console.log = log;
  }
}

test("only times are taken for the same, and Orca's words on its mode and what it leaves are left out", () => {
  assert.equal(normal("waits for you, for 4 minutes 50 seconds."), "waits for you, for some minutes.");
  assert.equal(normal("for 5 minutes. Step 3 of 5."), "for 5 minutes. Step 3 of 5.");
  const listener = new Listener(null, null);
  listener.steps = [{ what: "a request comes", heard: ["leaving region.", "Allow this?", "Browse mode"] }, { what: "press Tab", heard: [] }];
  assert.equal(listener.transcript("About."), "About.\n\n> a request comes\n  Allow this?\n> press Tab\n  (nothing)\n");
});

test("what is heard most often is kept with its count, and anything else fails", () => {
  const folder = pathToFileURL(`${mkdtempSync(join(tmpdir(), "aaep-heard-"))}/`);
  try {
    quietly(() => new Transcripts(folder, true).judge("x-two", [`${ABOUT}  One.\n`, `${ABOUT}  Two.\n`, `${ABOUT}  Two.\n`]));
    assert.equal(readFileSync(new URL("x-two.txt", folder), "utf8"),
      "Two come.\nHeard like this in 2 of 3 runs.\n\n> two come\n  Two.\n");
    const judge = (name, ...all) => quietly(() => {
      const transcripts = new Transcripts(folder, false);
      return transcripts.judge(name, all);
    });
    assert.equal(judge("x-two", `${ABOUT}  Two.\n`), true);
    assert.equal(judge("x-two", `${ABOUT}  Two.\n`, `${ABOUT}  One.\n`), false);
    const broken = `${ABOUT}  Two.\n> (it broke off: no field)\n  (nothing)\n`;
    assert.equal(quietly(() => new Transcripts(folder, true).judge("x-four", [broken])), false, "what broke off is not kept");
    assert.equal(judge("x-four", broken), false);
    const again = (...heard) => new Transcripts(folder, false).isOnlyLess("x-two", heard);
    assert.equal(again(`${ABOUT}  (nothing)\n`), true, "something was lost");
    assert.equal(again(`${ABOUT}  (nothing)\n`, `${ABOUT}  Three.\n`), false, "other words were heard");
    assert.equal(judge("x-three", `${ABOUT}  Two.\n`), false, "what is not kept is no success");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("differences are shown line by line", () => {
  assert.equal(differences("a\nb\nc", "a\nx\nc"), "  a\n- b\n+ x\n  c");
});

test("what was lost or late is told from anything else that was heard", () => {
  const kept = "About.\n\n> one comes\n  Allow this?\n  Low risk.\n> press n\n  Rejected.\n";
  const forgiven = {
    "a word is lost": "About.\n\n> one comes\n  Allow this?\n> press n\n  Rejected.\n",
    "a word is late": "About.\n\n> one comes\n  Allow this?\n> press n\n  Low risk.\n  Rejected.\n",
    "nothing came": "About.\n\n> one comes\n  (nothing)\n> (not heard: Low risk)\n> press n\n  (nothing)\n",
  };
  const failed = {
    "said twice": "About.\n\n> one comes\n  Allow this?\n  Allow this?\n  Low risk.\n> press n\n  Rejected.\n",
    "another order": "About.\n\n> one comes\n  Low risk.\n  Allow this?\n> press n\n  Rejected.\n",
    "cut": "About.\n\n> one comes\n  Allow this? (cut after: Allow)\n  Low risk.\n> press n\n  Rejected.\n",
    "other words": "About.\n\n> one comes\n  Allow this?\n  High risk.\n> press n\n  Rejected.\n",
  };
  for (const [what, heard] of Object.entries(forgiven)) assert.equal(isOnlyLess(kept, heard), true, what);
  for (const [what, heard] of Object.entries(failed)) assert.equal(isOnlyLess(kept, heard), false, what);
});

test("after lost words once as kept is enough, after anything else twice in a row", () => {
  const play = (most, ...runs) => {
    const tries = new Tries(most);
    for (const run of runs) {
      if (!tries.isUndecided) return "over";
      tries.note(run === "kept", run !== "other");
    }
    return tries.passed ? "passed" : tries.isUndecided ? "goes on" : "failed";
  };
  assert.equal(play(1, "kept"), "passed");
  assert.equal(play(1, "less"), "failed");
  assert.equal(play(3, "less", "less", "kept"), "passed");
  assert.equal(play(3, "less", "less", "less"), "failed");
  assert.equal(play(4, "other", "kept"), "goes on");
  assert.equal(play(4, "other", "kept", "kept"), "passed");
  assert.equal(play(4, "other", "kept", "less"), "failed");
  assert.equal(play(4, "other", "other", "other"), "failed", "two in a row cannot come any more");
  assert.equal(play(2, "other"), "failed");
});

test("a request that is shown late waits for less, and that is no difference; another time is", () => {
  const waits = (time) => `About.\n\n> one comes\n  Allow this? Request 1 waits for you, for ${time}.\n`;
  assert.equal(isSame(waits("5 minutes"), waits("5 minutes")), true);
  assert.equal(isSame(waits("5 minutes"), waits(normal("4 minutes 52 seconds"))), true);
  assert.equal(isOnlyLess(waits("5 minutes"), waits("some minutes")), true);
  assert.equal(isSame(waits("5 minutes"), waits("10 minutes")), false);
  assert.equal(isSame(waits("some minutes"), waits("5 minutes")), false);
  assert.equal(isOnlyLess(waits("5 minutes"), waits("10 minutes")), false);
});

const GRAVE = "About.\n\n> a request comes\n  Allow this? Pay. Request 1 from Tester waits for you, for 5 minutes.\n" +
  "> press Enter\n  Are you sure? You are about to accept: Pay.\n> press Enter\n  Request 1: accepted.\n";

test("a question that is not heard whole fails whatever the other tries were, and late it is none", () => {
  const lost = (heard) => lostQuestions(GRAVE, heard).map((line) => line.trim().split("?")[0]);
  assert.deepEqual(lost(GRAVE), []);
  assert.deepEqual(lost(GRAVE.replace("5 minutes", "some minutes")), [], "it was shown late");
  assert.deepEqual(lost(GRAVE.replace(/ {2}Allow.*/, "  (nothing)")), ["Allow this"]);
  assert.deepEqual(lost(GRAVE.replace(/ {2}Are you.*/, "  (nothing)")), ["Are you sure"], "the second step asks, too");
  assert.deepEqual(lost(GRAVE.replace("5 minutes.", "5 minutes. (cut after: Allow this?)")), ["Allow this"]);
  assert.deepEqual(lost(GRAVE.replace(" It cannot", "").replace("Allow this? Pay. ", "Pay. ")), ["Allow this"], "not whole");
  const late = "About.\n\n> a request comes\n  (nothing)\n> press Enter\n" +
    "  Allow this? Pay. Request 1 from Tester waits for you, for 5 minutes.\n  Are you sure? You are about to accept: Pay.\n";
  assert.deepEqual(lost(late), []);
  assert.deepEqual(lost("About.\n\n> (it broke off: no field)\n  (nothing)\n"), [], "it never came");
  const tries = new Tries(5);
  tries.note(false, true, ["  Allow this? Pay."]);
  assert.equal(tries.isUndecided, false, "it is not tried again");
  tries.note(true, false);
  assert.equal(tries.passed, false);
  assert.match(tries.tells("firefox-grave"), /^firefox-grave: FAILED, as kept in 1 of 2 tries; words lost or late in 1\.\n.*Allow this\? Pay\./);
});

test("what was heard in each try is said, also when it passed", () => {
  const tries = new Tries(5);
  for (const [asKept, onlyLess] of [[false, true], [false, false], [true, false], [true, false]]) tries.note(asKept, onlyLess);
  assert.equal(tries.tells("x"), "x: passed, as kept in 2 of 4 tries; words lost or late in 1; something else heard in 1.");
});

test("every scenario has a transcript with each version of Orca in each of its windows, and no transcript is left over", () => {
  const heard = new URL("../../heard/", import.meta.url);
  const wanted = Object.entries(SCENARIOS).flatMap(([name, { terminal = false }]) =>
    (terminal ? ["lxterminal"] : ["chromium", "firefox"]).map((kind) => `${kind}-${name}.txt`)).sort();
  for (const version of readdirSync(heard)) {
    const kept = readdirSync(new URL(`${version}/`, heard)).sort();
    assert.deepEqual(kept, wanted, version);
    for (const file of kept) {
      const text = readFileSync(new URL(`${version}/${file}`, heard), "utf8");
      const { about } = SCENARIOS[file.replace(/^[a-z]+-|\.txt$/g, "")];
      assert.equal(text.split("\n")[0], about, `${version}/${file}`);
      assert.ok(!/^> \((it broke off|not heard)/m.test(text), `${version}/${file}`);
    }
  }
});
