// The real demo and a browser, from the first test of a file to its last.

import { after, before } from "node:test";

import { Browser } from "./browser.js";
import { Hub } from "./hub.js";

/** @type {any} */
export let hub;
/** @type {any} */
export let browser;

before(async () => {
  [hub, browser] = await Promise.all([Hub.start("demo", { options: ["--ephemeral"] }), Browser.open()]);
});

after(async () => {
  await browser?.close();
  await hub?.stop();
});
