// The page that `aaep inspect` writes: axe-core finds nothing, the keyboard gets everywhere, and
// nothing of a hostile recording runs.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";

import { Browser } from "../support/browser.js";
import { BINARY } from "../support/hub.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** @type {any} */
let browser;
let directory = "";
let url = "";

const BAD = "</pre><script>globalThis.ran = 1</script><img src=x onerror='globalThis.ran = 1'>\u202e";

function recording() {
  let number = 0;
  const event = (session, kind, more) => JSON.stringify({
    "@context": "https://aaep-protocol.org/context/v1", aaep_version: "1.0.0", type: `aaep:agent.${kind}`,
    event_id: `evt_${++number}`, session_id: session, producer: { agent_id: "tidy" },
    timestamp: new Date(Date.UTC(2026, 4, 24) + number * 700).toISOString(),
    localization_hints: { primary_language: "en" }, summary_normal: BAD, ...more,
  });
  return ["sess_1", "sess_2"].flatMap((session) => [
    event(session, "session.started", {}),
    event(session, "state.changed", { from_state: "idle", to_state: "writing_output" }),
    event(session, "output.streaming", { output_id: "out_1", chunk: BAD.repeat(5), position: 0, complete: true }),
    event(session, "tool.invoked", { tool: "files.delete", tool_call_id: "call_1", irreversible: true }),
    event(session, "tool.completed", { tool: "files.delete", tool_call_id: "call_1", status: "success" }),
    event(session, "session.completed", {}),
    "{\"cut in the mid",
  ]).join("\n");
}

before(async () => {
  directory = mkdtempSync(join(tmpdir(), "aaep-inspect-"));
  const [from, to] = [join(directory, "hostile.jsonl"), join(directory, "page.html")];
  writeFileSync(from, recording());
  execFileSync(BINARY, ["inspect", from, "--format", "html", "--output", to]);
  url = pathToFileURL(to).href;
  browser = await Browser.open();
});

after(async () => {
  await browser?.close();
  rmSync(directory, { recursive: true, force: true });
});

for (const colorScheme of ["light", "dark"]) {
  test(`axe-core finds nothing, ${colorScheme}, and nothing runs or is loaded`, async () => {
    const tab = await browser.tab({ colorScheme, viewport: { width: 320, height: 640 } }, { notes: false });
    await tab.page.goto(url);
    const session = await tab.page.context().newCDPSession(tab.page);
    await session.send("Runtime.evaluate", { expression: axe });
    const found = await tab.page.evaluate(async () => {
      const options = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] };
      const { violations } = await globalThis.axe.run(document, options);
      return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html} ${nodes[0].failureSummary}`);
    });
    assert.deepEqual(found, []);
    assert.equal(await tab.page.evaluate(() => globalThis.ran), undefined);
    assert.equal(await tab.page.locator("script, img").count(), 0);
    assert.deepEqual(tab.asked, [url]);
    assert.deepEqual(tab.errors, []);
    const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `it scrolls sideways by ${wide}`);
    await tab.page.context().close();
  });
}

test("by keyboard, each session is one link away, and its picture has a table beside it", async () => {
  const tab = await browser.tab({}, { notes: false });
  await tab.page.goto(url);
  for (const number of [1, 2]) {
    await tab.page.locator("body").evaluate(() => document.activeElement?.blur());
    await tab.page.goto(url);
    for (let presses = 0; presses < number; presses += 1) await tab.keyboard.press("Tab");
    await tab.keyboard.press("Enter");
    assert.equal(await tab.page.evaluate(() => document.activeElement?.id), `s${number}`);
  }
  const pictures = await tab.page.getByRole("img").all();
  assert.equal(pictures.length, 2);
  // Every bar has its row.
  for (const section of await tab.page.locator("section").all()) {
    const rows = await section.locator("table").first().locator("tbody tr").count();
    assert.equal(await section.locator("svg rect").count(), rows);
    assert.ok(rows >= 3);
  }
  await tab.page.context().close();
});
