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
    const file = new URL(`${name}.txt`, this.folder);
    if (this.write) return this.keep(file, name, all);
    if (!existsSync(file)) {
      console.log(`${name}: no transcript is kept; --write keeps one.\n${all[0]}`);
      return false;
    }
    const kept = readFileSync(file, "utf8").replace(AGREED, "");
    const others = all.filter((one) => !isSame(kept, one));
    console.log(`${name}: ${all.length - others.length} of ${all.length} as kept.`);
    if (others.length > 0) console.log(differences(kept, others[0]));
    return others.length === 0;
  }

  /**
   * Whether each run differs at most by words that were lost or came late, as on a busy machine: not by
   * other words, words in another order, words twice or cut.
   */
  isOnlyLess(name, all) {
    const file = new URL(`${name}.txt`, this.folder);
    if (!existsSync(file)) return false;
    const kept = readFileSync(file, "utf8").replace(AGREED, "");
    return all.every((one) => isOnlyLess(kept, one));
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
  }

  get passed() {
    return this.inARow >= this.wanted;
  }

  get isUndecided() {
    return !this.passed && this.left >= this.wanted - this.inARow;
  }

  /** @param {boolean} asKept @param {boolean} onlyLess whether nothing but less was heard */
  note(asKept, onlyLess) {
    this.left -= 1;
    this.inARow = asKept ? this.inARow + 1 : 0;
    if (!asKept && !onlyLess) this.wanted = 2;
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
