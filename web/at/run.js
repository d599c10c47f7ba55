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

/** One browser, from the start of its desktop to the end. */
async function listen(kind) {
  const hub = await Hub.start("demo", { options: ["--ephemeral"] });
  let desktop;
  const transcripts = new Map();
  try {
    desktop = await Desktop.start();
    await desktop.browser(kind, process.env.AAEP_AT_PAGE?.replace("HUB", String(hub.port)) ?? hub.origin);
    for (const [name, { about, play }] of Object.entries(SCENARIOS)) {
      if (only && !only.includes(name)) continue;
      const listener = new Listener(desktop, hub);
      await listener.home();
      await play(listener);
      transcripts.set(name, listener.transcript(about));
    }
  } finally {
    await desktop?.stop();
    await hub.stop();
  }
  return transcripts;
}

let failed = 0;
for (const kind of browsers) {
  for (const [name, text] of await listen(kind)) {
    const file = new URL(`${kind}-${name}.txt`, folder);
    const kept = existsSync(file) ? readFileSync(file, "utf8") : "";
    if (write) writeFileSync(file, text);
    if (kept === text) {
      console.log(`${kind}, ${name}: as before.`);
    } else if (write) {
      console.log(`${kind}, ${name}: written.`);
    } else {
      failed += 1;
      console.log(`${kind}, ${name}: heard otherwise.\n--- kept\n${kept}\n--- heard\n${text}`);
    }
  }
}
process.exit(failed > 0 ? 1 : 0);
