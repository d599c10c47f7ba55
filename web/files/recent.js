// What is remembered of what came: which ids, how many at once, and how much was left out.

/** Ids of events that are remembered, to tell duplicates. */
const MAX_IDS = 16_384;
/** Events a second that are told, critical ones aside (S3), and how many may come at once. */
const RATE = 100;
const BURST = 1000;
/** Agents whose silence is counted apart. */
const MAX_SILENT = 64;
/** How often the same silence is told. */
const SILENCE_EVERY_MS = 3000;

/** Remembers what came last. */
export class Memory {
  constructor() {
    /** @type {Set<string>} */
    this.known = new Set();
  }

  /** @param {string} id */
  isNew(id) {
    if (this.known.has(id)) return false;
    this.known.add(id);
    if (this.known.size > MAX_IDS) {
      for (const oldest of this.known) {
        this.known.delete(oldest);
        break;
      }
    }
    return true;
  }
}

/** How many events a second are told (S3). */
export class Pace {
  constructor() {
    this.level = BURST;
    this.at = 0;
  }

  /** Whether there is room in the bucket (S3). @param {number} now */
  may(now) {
    const elapsed = Math.max(0, now - this.at);
    this.at = Math.max(this.at, now);
    this.level = Math.min(BURST, this.level + (elapsed * RATE) / 1000);
    if (this.level < 1) return false;
    this.level -= 1;
    return true;
  }
}

/** What was not told, by agent and reason. */
export class Silences {
  constructor() {
    /** @type {Map<string, {agent: Agent, why: SilenceHappening["why"], count: number, due: number, told: number}>} */
    this.all = new Map();
  }

  /**
   * Counts what is not told (I19, S3).
   * @param {Agent} agent @param {SilenceHappening["why"]} why @param {number} now
   */
  add(agent, why, now) {
    const key = `${why} ${agent.id}`;
    const one = this.all.get(key) ?? { agent, why, count: 0, due: Infinity, told: -Infinity };
    one.count += 1;
    // Too much is told when it is over, or at least not with every event.
    const soonest = why === "too_much" ? now + SILENCE_EVERY_MS : now;
    one.due = Math.min(one.due, Math.max(soonest, one.told + SILENCE_EVERY_MS));
    // The oldest gives way.
    if (!this.all.has(key) && this.all.size >= MAX_SILENT) {
      for (const oldest of this.all.keys()) {
        this.all.delete(oldest);
        break;
      }
    }
    this.all.set(key, one);
  }

  /** @param {number} now @param {Happening[]} out */
  tell(now, out) {
    for (const one of this.all.values()) {
      if (one.due > now) continue;
      const { agent, why, count } = one;
      out.push({ kind: "silence", agent, why, count });
      Object.assign(one, { count: 0, due: Infinity, told: now });
    }
  }
}
