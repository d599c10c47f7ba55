// The transcripts that are kept: a sentence about the scenario, in how many runs it was heard like
// this, and what was heard.

import { existsSync, readFileSync, writeFileSync } from "node:fs";

/** How often a transcript was heard the same, as its second line says. */
const AGREED = /^Heard like this in (\d+) of (\d+) runs\.\n/m;

/** The rig's own notes of what it waited for in vain. */
const BROKE = /^> \((it broke off|not heard): /m;

export class Transcripts {
  /** @param {URL} folder @param {boolean} write whether to keep what is heard */
  constructor(folder, write) {
    this.folder = folder;
    this.write = write;
  }

  /** Compares what was heard in one or more runs with what is kept, or keeps it; whether it is the same. */
  judge(name, all) {
    if (this.write) return this.keep(new URL(`${name}.txt`, this.folder), name, all);
    const kept = this.kept(name);
    if (kept === null) {
      console.log(`${name}: no transcript is kept; --write keeps one.\n${all[0]}`);
      return false;
    }
    const others = all.filter((one) => !isSame(kept, one));
    console.log(`${name}: ${all.length - others.length} of ${all.length} as kept.`);
    if (others.length > 0) console.log(differences(kept, others[0]));
    return others.length === 0;
  }

  /** What is kept; `null` if nothing is. */
  kept(name) {
    const file = new URL(`${name}.txt`, this.folder);
    return existsSync(file) ? readFileSync(file, "utf8").replace(AGREED, "") : null;
  }

  /**
   * Whether each run differs at most by words that were lost or came late, as on a busy machine: not by
   * other words, words in another order, words twice or cut.
   */
  isOnlyLess(name, all) {
    const kept = this.kept(name);
    return kept !== null && all.every((one) => isOnlyLess(kept, one));
  }

  /** Questions that came in one of the runs and were not heard whole. */
  lostQuestions(name, all) {
    const kept = this.kept(name);
    return kept === null ? [] : all.flatMap((one) => lostQuestions(kept, one));
  }

  /** Keeps what was heard most often. */
  keep(file, name, all) {
    const times = (text) => all.filter((one) => one === text).length;
    const best = all.reduce((one, other) => (times(other) > times(one) ? other : one));
    const count = times(best);
    if (BROKE.test(best)) {
      console.log(`${name}: not kept, for it broke off.\n${best}`);
      return false;
    }
    writeFileSync(file, best.replace("\n", `\nHeard like this in ${count} of ${all.length} runs.\n`));
    console.log(`${name}: kept, heard in ${count} of ${all.length} runs.`);
    for (const other of new Set(all)) if (other !== best) console.log(differences(best, other));
    return true;
  }
}

/** How often a scenario was heard as it is kept, and whether that is enough. */
export class Tries {
  /** @param {number} most how often it is played at most */
  constructor(most) {
    this.left = most;
    /** How often in a row it has to be heard as it is kept. */
    this.wanted = 1;
    this.inARow = 0;
    /** How many tries were heard as kept, with less, and with anything else. */
    this.counts = { kept: 0, less: 0, other: 0 };
    /** Questions that somebody would not have heard. @type {string[]} */
    this.lost = [];
  }

  get passed() {
    return this.lost.length === 0 && this.inARow >= this.wanted;
  }

  get isUndecided() {
    return this.lost.length === 0 && !this.passed && this.left >= this.wanted - this.inARow;
  }

  /**
   * @param {boolean} asKept @param {boolean} onlyLess whether nothing but less was heard
   * @param {string[]} [lost] questions that were not heard whole: no other try makes up for one
   */
  note(asKept, onlyLess, lost = []) {
    this.left -= 1;
    this.inARow = asKept ? this.inARow + 1 : 0;
    if (!asKept && !onlyLess) this.wanted = 2;
    this.counts[asKept ? "kept" : onlyLess ? "less" : "other"] += 1;
    this.lost.push(...lost);
  }

  /** What all tries came to, so that none is hidden. @param {string} name */
  tells(name) {
    const { kept, less, other } = this.counts;
    const all = kept + less + other;
    const parts = [`${name}: ${this.passed ? "passed" : "FAILED"}, as kept in ${kept} of ${all} ${all === 1 ? "try" : "tries"}`];
    if (less > 0) parts.push(`words lost or late in ${less}`);
    if (other > 0) parts.push(`something else heard in ${other}`);
    return [`${parts.join("; ")}.`, ...this.lost.map((line) => `  A question was not heard whole:${line.replace(/^ +/, " ")}`)].join("\n");
  }
}

/** A request that is shown some seconds late waits for less than all of its time. */
const late = (line) => line.replace(/\b\d+ minutes\b/g, "some minutes");

/** Whether a line was heard as it is kept. @param {string} kept @param {string} heard */
const isAlike = (kept, heard) => kept === heard || late(kept) === heard;

/** Whether all was heard as it is kept. @param {string} kept @param {string} heard */
export function isSame(kept, heard) {
  const [wanted, given] = [kept.split("\n"), heard.split("\n")];
  return wanted.length === given.length && wanted.every((line, at) => isAlike(line, given[at]));
}

/** Lines that were heard: not the steps, not the rig's own notes, not that it was silent. */
const lines = (text) => text.split("\n\n").slice(1).join("\n\n").split("\n")
  .filter((line) => line !== "" && !line.startsWith(">") && line.trim() !== "(nothing)");

/** Whether nothing was heard but what is kept, in its order, perhaps not all of it. */
export function isOnlyLess(kept, heard) {
  const wanted = lines(kept);
  let at = 0;
  return lines(heard).every((line) => {
    const found = wanted.findIndex((one, place) => place >= at && isAlike(one, line));
    at = found + 1;
    return found >= 0;
  });
}

/** What asks a person: a request when it comes, the second step of a grave one, whether to stop an agent. */
const ASKS = /\bRequest \d+ (from .+ )?waits for you\b|^ *(Are you sure\?|Stop .+\?|Type your PIN\b)/;

/** The steps of a transcript, each with what was heard in it. @param {string} text @returns {[string, string[]][]} */
function steps(text) {
  /** @type {[string, string[]][]} */
  const all = [];
  for (const line of text.split("\n\n").slice(1).join("\n\n").split("\n")) {
    if (line.startsWith(">")) all.push([line, []]);
    else if (line.trim() !== "" && line.trim() !== "(nothing)") all.at(-1)?.[1].push(line);
  }
  return all;
}

/**
 * Questions of the kept transcript that came in this run, as its steps show, and were not heard whole
 * in it, not even late. What breaks off before a question comes is no lost question.
 */
export function lostQuestions(kept, heard) {
  const left = steps(heard);
  const said = left.flatMap(([, all]) => all);
  const lost = [];
  for (const [step, all] of steps(kept)) {
    const came = left.findIndex(([other]) => other === step);
    if (came < 0) continue;
    left.splice(0, came + 1);
    for (const line of all) {
      if (!ASKS.test(line) || line.includes("(cut after: ")) continue;
      const at = said.findIndex((one) => isAlike(line, one));
      if (at < 0) lost.push(line);
      else said.splice(at, 1);
    }
  }
  return lost;
}

/** Both, line by line: what is only kept with `-`, what is only heard with `+`. */
export function differences(kept, heard) {
  const [before, after] = [kept.split("\n"), heard.split("\n")];
  const common = Array.from({ length: before.length + 1 }, () => new Array(after.length + 1).fill(0));
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      common[i][j] = before[i] === after[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
  }
  const lines = [];
  for (let i = 0, j = 0; i < before.length || j < after.length;) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      lines.push(`  ${before[i]}`);
      i += 1;
      j += 1;
    } else if (i < before.length && (j === after.length || common[i + 1][j] >= common[i][j + 1])) {
      lines.push(`- ${before[i]}`);
      i += 1;
    } else {
      lines.push(`+ ${after[j]}`);
      j += 1;
    }
  }
  return lines.join("\n");
}
