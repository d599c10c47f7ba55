// The picture in the README: what a person sees who is asked. With AAEP_PICTURE=write it is kept.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";

import { browser, hub } from "../support/demo.js";

const KEPT = new URL("../../../docs/media/page.png", import.meta.url);

/** Width and height of a PNG. @param {Buffer} png */
const size = (png) => [png.readUInt32BE(16), png.readUInt32BE(20)];

test("the question that the README shows is asked, and looks like something", async () => {
  const tab = await browser.tab({ viewport: { width: 960, height: 600 }, colorScheme: "light" });
  await tab.open(hub.origin);
  await tab.page.locator("#words").fill("transfer 20 euros to Ann");
  await tab.press("Enter");
  const text = await (await tab.dialog("Transfer 20 euros to Ann")).innerText();
  // What the README says of it, to those who do not see it.
  for (const part of [/Transfer 20 euros to Ann/, /cannot be undone/, /Reject/, /Accept/, /More time/, /Answer later/]) {
    assert.match(text, part);
  }
  const picture = await tab.page.screenshot({ animations: "disabled" });
  assert.deepEqual(size(picture), [960, 600]);
  assert.ok(picture.length > 10_000, "it is not empty");
  if (process.env.AAEP_PICTURE === "write") writeFileSync(KEPT, picture);
  assert.deepEqual(size(readFileSync(KEPT)), [960, 600], "the README has its picture");
  await tab.press("Control+Shift+7");
  await tab.noDialog();
  await tab.close();
});
