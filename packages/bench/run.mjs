// A confirmation through each package beside the Rust library, against one hub, with somebody who says yes at
// once: node run.mjs RUST PYTHON [ROUNDS]. In the directory into which the packages are installed.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { Hub } from "./hub.js";

const [rust, python, rounds = "5"] = process.argv.slice(2);
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const COUNT = 220;
const WARM = 20;
const limits = { AAEP_LIMITS__PROMPTS_PER_WINDOW: "4000000", AAEP_LIMITS__REPLIES_PER_SECOND: "100000" };
const clients = {
  Rust: [rust], Python: [python, here("confirm.py")], TypeScript: [process.execPath, here("confirm.mjs")],
};

const hub = await Hub.start("accept", { environment: limits });
const took = Object.fromEntries(Object.keys(clients).map((name) => [name, []]));
for (let round = 0; round < Number(rounds); round += 1) {
  for (const [name, [program, ...args]] of Object.entries(clients)) {
    const { stdout } = await promisify(execFile)(program, [...args, hub.url, `${COUNT}`]);
    took[name].push(...stdout.trim().split("\n").slice(WARM).map(Number));
  }
}
await hub.stop();
const p50 = (all) => all.sort((one, other) => one - other)[Math.floor(all.length / 2)];
const base = p50(took.Rust);
for (const [name, all] of Object.entries(took)) {
  const middle = p50(all);
  console.log(`${name}: p50 ${middle} µs, ${(middle / base).toFixed(2)} times, ${middle - base} µs more (${all.length} confirmations)`);
}
console.log(`load: ${readFileSync("/proc/loadavg", "utf8").split(" ").slice(0, 3).join(" ")}`);
