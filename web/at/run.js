// What is heard of the page with Orca, compared with the transcripts in `web/heard`.
//
//   node at/run.js [chromium|firefox]... [--write]
//
// A transcript that differs is a failure; with --write it is replaced.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";

import { Hub } from "../tests/support/hub.js";
import { Desktop } from "./desktop.js";
import { Listener } from "./listener.js";
import { SCENARIOS } from "./scenarios.js";

const args = process.argv.slice(2);
const write = args.includes("--write");
const only = process.env.AAEP_AT_ONLY?.split(",");
const browsers = args.filter((arg) => !arg.startsWith("--"));
if (browsers.length === 0) browsers.push("chromium", "firefox");

const folder = new URL("../heard/", import.meta.url);
mkdirSync(folder, { recursive: true });

let failed = 0;

/** Compares a transcript with the one that is kept. */
function compare(name, text) {
  const file = new URL(`${name}.txt`, folder);
  const kept = existsSync(file) ? readFileSync(file, "utf8") : "";
  if (write) writeFileSync(file, text);
  if (kept === text) {
    console.log(`${name}: as before.`);
  } else if (write) {
    console.log(`${name}: written.`);
  } else if (kept === "") {
    console.log(`${name}: no transcript is kept.\n${text}`);
  } else {
    failed += 1;
    console.log(`${name}: heard otherwise.\n--- kept\n${kept}\n--- heard\n${text}`);
  }
}

for (const kind of browsers) {
  const hub = await Hub.start("demo", { options: ["--ephemeral"] });
  let desktop;
  try {
    desktop = await Desktop.start();
    await desktop.browser(kind, process.env.AAEP_AT_PAGE ?? hub.origin);
    for (const [name, { about, play }] of Object.entries(SCENARIOS)) {
      if (only && !only.includes(name)) continue;
      const listener = new Listener(desktop, hub);
      await listener.home();
      await play(listener);
      compare(`${kind}-${name}`, listener.transcript(about));
    }
  } finally {
    await desktop?.stop();
    await hub.stop();
  }
}
process.exit(failed > 0 ? 1 : 0);
