// How much a browser loads, as the hub serves it.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";

import { LANGUAGES } from "../../files/settings.js";
import { Hub } from "../support/hub.js";

/** Files of the hub's own page, which other sites do not load. */
const PAGE = ["index.html", "page.js", "sign-in.js", "page.css", "icon.svg"];

/**
 * Loaded when a request has letters beyond ASCII, when its yes needs the PIN or a passkey, when a hub signs
 * its manifest, and when it does not let the page in.
 */
const LATER = ["alike.js", "alike.json", "base64.js", "pin.js", "passkeys.js", "identity.js", "refused.js"];

const hub = await Hub.start("demo", { options: ["--ephemeral"] });
after(() => hub.stop());

async function served(name) {
  const answer = await fetch(`${hub.origin}/page/${name}`);
  assert.equal(answer.status, 200, name);
  return Buffer.from(await answer.arrayBuffer());
}

test("the element with its styles and the words of one language is at most 40,000 bytes when compressed", async () => {
  const size = (...all) => gzipSync(Buffer.concat(all), { level: 9 }).length;
  const sum = (all) => all.reduce((bytes, one) => bytes + size(one), 0);
  const names = readdirSync(new URL("../../files/", import.meta.url));
  const element = await Promise.all(names.filter((name) => ![...PAGE, ...LATER].includes(name)).map(served));
  console.log(`on demand: ${sum(await Promise.all(LATER.map(served)))} bytes`);
  for (const language of Object.keys(LANGUAGES)) {
    const messages = await Promise.all(["language", "said", "page"].map((name) => served(`messages/${language}/${name}.json`)));
    const all = [...element, ...messages];
    console.log(`the element in ${language}: ${size(...all)} bytes compressed as one, ${sum(all)} file by file`);
    assert.ok(size(...all) <= 40_000, language);
    // Each file has a dictionary of its own then.
    assert.ok(sum(all) <= 47_000, language);
  }
});
