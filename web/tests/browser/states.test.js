// Every state of the page: without violations that axe-core finds, light and dark, in both
// directions, at 400 % and in forced colours.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

import { browser, hub } from "../support/demo.js";
import { Agent } from "../support/hub.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What axe-core finds. It runs in its own way past the page's policy. */
async function violations(tab, state) {
  const session = await tab.page.context().newCDPSession(tab.page);
  await session.send("Runtime.evaluate", { expression: axe });
  await session.detach();
  const found = await tab.page.evaluate(async () => {
    const options = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] };
    const { violations } = await globalThis.axe.run(document, options);
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) =>
      `${target.join(" ")} ${failureSummary}`).join("; ")}`);
  });
  await tab.picture(state);
  assert.deepEqual(found, [], state);
  const small = await tab.page.evaluate(() => {
    const found = [];
    const look = (root) => {
      for (const one of root.querySelectorAll("*")) {
        if (one.shadowRoot) look(one.shadowRoot);
        if (!one.matches("button, input, select, summary, a[href]") || !one.checkVisibility()) continue;
        const { width, height } = (one.closest("label") ?? one).getBoundingClientRect();
        if (Math.min(width, height) < 44) found.push(`${one.textContent.trim() || one.id} ${width} by ${height}`);
      }
    };
    look(document);
    return found;
  });
  assert.deepEqual(small, [], `${state}: targets under 44 by 44`);
  const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${state} scrolls sideways by ${wide}`);
}

const looks = [];
for (const colorScheme of ["light", "dark"]) {
  for (const locale of ["en-US", "ar", "zh-CN"]) looks.push([`${colorScheme}-${locale}`, { colorScheme, locale }]);
}
looks.push(["forced-en-US", { forcedColors: "active", locale: "en-US" }]);
looks.push(["forced-dark-ar", { forcedColors: "active", colorScheme: "dark", locale: "ar" }]);
// 1280 by 1024 at 400 %.
looks.push(["zoomed-en-US", { locale: "en-US", viewport: { width: 320, height: 256 } }]);
looks.push(["zoomed-ar", { locale: "ar", viewport: { width: 320, height: 256 } }]);

for (const [look, options] of looks) {
  // covers: L7
  test(`every state in ${look} is free of violations`, async () => {
    const bypassCSP = true;
    const tab = await browser.tab({ bypassCSP, ...options });
    await tab.page.goto(hub.origin);
    await tab.page.waitForFunction(() => document.querySelector("aaep-subscriber").connection?.mayReply);
    const direction = options.locale === "ar" ? "rtl" : "ltr";
    assert.equal(await tab.page.evaluate(() => document.documentElement.dir), direction);
    await violations(tab, `${look}-empty`);

    const agent = await Agent.begin(hub, "Writing a letter.");
    const words = "Dear Ann, I am well. How are you? Yours, Bob.";
    await agent.emit("output.streaming", { chunk: words, position: 0, complete: true, output_id: "out_1" });
    await agent.emit("progress.updated", { progress: { percent: 40, description: "Nearly half." },
      summary_normal: "Nearly half of the letter is written." });
    const first = await agent.confirm("Send the letter to ann@example.com.");
    await tab.dialog("ann@example.com");
    await violations(tab, `${look}-confirm`);
    const second = await agent.clarify("Which stamp, and how many?", ["multiple_choice", "numeric", "yes_no", "freetext"],
      { choices: [{ value: "a", label: "The red one" }, { value: "b", label: "The blue one" }],
        context: "Letters need stamps.", default_response: "a" });
    await tab.page.getByRole("dialog").waitFor();
    await tab.page.waitForTimeout(200);
    await tab.press("Control+Shift+9");
    await tab.page.waitForTimeout(900);
    await violations(tab, `${look}-second`);
    await tab.press("Escape");
    await tab.press("Control+Shift+1");
    await tab.dialog("The blue one");
    await violations(tab, `${look}-question`);
    await tab.press("Control+Shift+6");
    await tab.dialog("Tester");
    await violations(tab, `${look}-stop`);
    await tab.press("Escape");
    await tab.press("Escape");
    await tab.press("Escape");
    await tab.noDialog();
    for (const panel of ["#settings", "#help"]) {
      await tab.page.locator(`aaep-subscriber ${panel} summary`).focus();
      await tab.press("Enter");
    }
    await violations(tab, `${look}-list`);
    await agent.withdraw(first);
    await agent.withdraw(second);
    await agent.emit("session.errored", { error_category: "transient", summary_normal: "The pen broke.",
      remediation_hint: "Take another pen." });
    await tab.page.locator("aaep-subscriber .running").waitFor({ state: "hidden" });
    await violations(tab, `${look}-failed`);
    await tab.page.evaluate(() => document.querySelector("#enter").removeAttribute("hidden"));
    await violations(tab, `${look}-token`);
    assert.deepEqual(tab.errors, []);
    await tab.close();
  });
}
