// The page in every language that the library speaks: chosen in its settings, told whether a speaker
// has read it, and everything in it said.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { LANGUAGES } from "../../files/settings.js";
import { browser, hub } from "../support/demo.js";
import { Agent } from "../support/hub.js";

const MESSAGES = new URL("../../../crates/aaep-subscriber/messages/", import.meta.url);
const phrases = (tag) => Object.assign({}, ...["language", "said", "page"].map((name) =>
  JSON.parse(readFileSync(new URL(`${tag}/${name}.json`, MESSAGES), "utf8"))));

/** The words of a phrase around its first place. */
const around = (phrase) => phrase.split(/\{\w+\}/).map((part) => part.trim()).filter((part) => part !== "");

for (const [tag, { name, by_machine }] of Object.entries(LANGUAGES)) {
  test(`${name}: chosen, marked if a machine wrote it, and a request is asked and answered in it`, async () => {
    const tab = await browser.tab({ locale: "en-US" });
    await tab.open(hub.origin);
    await tab.page.locator("aaep-subscriber #settings summary").click();
    const select = tab.page.locator("aaep-subscriber #setting-language");
    const own = await select.locator(`option[value=${tag}]`).textContent();
    assert.ok(own.includes(name), own);
    assert.equal(own.includes("written by a machine"), by_machine, own);
    await select.selectOption(tag);
    await tab.page.waitForFunction((wanted) => document.documentElement.lang === wanted, tag);

    const said = phrases(tag);
    assert.equal(await tab.page.evaluate(() => document.documentElement.dir), said.direction);
    assert.equal(await select.inputValue(), tag);
    const about = tab.page.locator("aaep-subscriber #by-machine");
    assert.deepEqual(await about.allTextContents(), by_machine ? [said.by_machine] : []);
    assert.equal(await select.getAttribute("aria-describedby"), by_machine ? "by-machine" : null);
    await tab.hears(said["page.changed"]);

    const agent = await Agent.begin(hub, "Tidying.");
    await agent.confirm("Delete file number 100.", { risk_level: "low", irreversible: false, reversibility: "reversible",
      consequence: "It is gone." });
    const dialog = await tab.dialog("file number 100");
    const asked = await dialog.textContent();
    for (const part of around(said["ask.consent"])) assert.ok(asked.includes(part), `${part} in ${asked}`);
    await dialog.getByRole("button", { name: said["page.reject"], exact: true }).click();
    await tab.hears(said["outcome.rejected"].replace("{number}", "1"));
    await agent.end("Done.");

    // A phrase that there is not would be shown as its key.
    const shown = await tab.page.evaluate(() => {
      const element = document.querySelector("aaep-subscriber");
      return `${document.body.innerText} ${element.shadowRoot.textContent} ${globalThis.heard.map(({ text }) => text).join(" ")}`;
    });
    assert.doesNotMatch(shown, /\b(page|ask|outcome|time|state|undo|risk)\.[a-z_.]+\b|\{\w+\}/);
    assert.deepEqual(tab.errors, []);
    await tab.close();
  });
}

test("a browser's own language is taken without being chosen", async () => {
  const tab = await browser.tab({ locale: "yo-NG" });
  await tab.page.goto(hub.origin);
  await tab.page.waitForFunction(() => document.documentElement.lang === "yo");
  assert.equal(await tab.page.locator("aaep-subscriber #setting-language").inputValue(), "auto");
  await tab.close();
});
