// The real browser, by keyboard.

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { chromium } from "playwright-core";

export const CHROMIUM = process.env.AAEP_CHROMIUM ?? "/usr/bin/chromium";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
  "--enable-precise-memory-info", "--js-flags=--expose-gc"];

/** How long anything may take on a busy machine. */
export const PATIENCE = 30_000;

export class Browser {
  static async open() {
    const browser = new Browser();
    browser.directory = mkdtempSync(join(tmpdir(), "aaep-chromium-"));
    browser.chromium = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS, headless: true });
    return browser;
  }

  /** A tab of its own, with everything that it logs and asks for. */
  async tab(options = {}, { notes = true } = {}) {
    const context = await this.chromium.newContext({ locale: "en-US", ...options });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    const tab = new Tab(page);
    if (notes) await tab.begin();
    return tab;
  }

  async close() {
    await this.chromium.close();
    rmSync(this.directory, { recursive: true, force: true });
  }
}

export class Tab {
  constructor(page) {
    this.page = page;
    this.keyboard = page.keyboard;
    /** Everything that went wrong. */
    this.errors = [];
    /** Every address that was asked for. */
    this.asked = [];
    page.on("console", (message) => message.type() === "error" && this.errors.push(message.text()));
    page.on("pageerror", (error) => this.errors.push(String(error)));
    page.on("request", (request) => this.asked.push(request.url()));
  }

  /** Notes everything that the live regions say, in its order. */
  async begin() {
    await this.page.addInitScript(() => {
      globalThis.heard = [];
      const attach = Element.prototype.attachShadow;
      Element.prototype.attachShadow = function (options) {
        const root = attach.call(this, options);
        new MutationObserver((changes) => {
          for (const { addedNodes, target } of changes) {
            if (!(target instanceof Element) || !target.matches(".unseen[aria-live]")) continue;
            for (const node of addedNodes) {
              globalThis.heard.push({ how: target.getAttribute("aria-live"), text: node.textContent });
            }
          }
        }).observe(root, { childList: true, subtree: true });
        return root;
      };
    });
  }

  async open(address) {
    await this.page.goto(address);
    await this.page.locator("aaep-subscriber .state").getByText("Connected").waitFor();
  }

  /** What was announced so far. */
  heard() {
    return this.page.evaluate(() => globalThis.heard.map(({ text }) => text));
  }

  /** Waits until something is announced. */
  async hears(part) {
    try {
      await this.page.waitForFunction((wanted) => globalThis.heard.some(({ text }) => text.includes(wanted)), part,
        { timeout: PATIENCE });
    } catch {
      throw new Error(`never heard ${part}; heard ${JSON.stringify(await this.heard(), null, 1)}`);
    }
  }

  press(...keys) {
    return keys.reduce((before, key) => before.then(() => this.keyboard.press(key)), Promise.resolve());
  }

  /** The dialog, once it is there and can have been read. */
  async dialog(part = "") {
    // The last one keeps the focus for a moment, unseen.
    const dialog = this.page.locator(".dialog:not(.unseen)").filter({ hasText: part });
    await dialog.waitFor();
    await this.page.waitForTimeout(900);
    return dialog;
  }

  async noDialog() {
    await this.page.locator(".dialog:not(.unseen)").waitFor({ state: "hidden" });
  }

  /** What has the focus: its role and its accessible name, as assistive technology is told. */
  async focus() {
    // It stays: a session that ends takes the authenticators of all others with it.
    this.client ??= await this.page.context().newCDPSession(this.page);
    const { nodes } = await this.client.send("Accessibility.getFullAXTree");
    const is = (node, name) => node.properties?.some((property) => property.name === name && property.value.value);
    const focused = nodes.filter((node) => is(node, "focused") && node.role?.value !== "RootWebArea").at(-1);
    return { role: focused?.role?.value, name: focused?.name?.value ?? "" };
  }

  /** Presses Tab until a control of this name has the focus. */
  async to(name) {
    for (let step = 0; step < 60; step += 1) {
      if ((await this.focus()).name === name) return;
      await this.press("Tab");
    }
    throw new Error(`Tab never came to ${name}`);
  }

  /** A picture for people, if anybody wants some. */
  async picture(name) {
    const folder = process.env.AAEP_PICTURES;
    if (!folder) return;
    mkdirSync(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, `${name}.png`), fullPage: false });
  }

  async close() {
    await this.page.context().close();
  }
}
