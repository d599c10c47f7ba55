// The documentation as a site: axe-core finds nothing, light and dark, and the search finds a page.
// `cargo xtask book` makes it and names it in AAEP_BOOK.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { extname, join, normalize } from "node:path";
import { after, test } from "node:test";

import { Browser } from "./support/browser.js";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const site = process.env.AAEP_BOOK ?? "";
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
  ".json": "application/json", ".txt": "text/plain" };

const server = createServer((request, response) => {
  const path = normalize(decodeURIComponent(new URL(request.url ?? "/", "http://x").pathname));
  try {
    const file = readFileSync(join(site, path.endsWith("/") ? `${path}index.html` : path));
    response.setHeader("content-type", TYPES[extname(path)] ?? (path.endsWith("/") ? "text/html" : "application/octet-stream"));
    response.end(file);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((listens) => server.listen(0, "127.0.0.1", () => listens(undefined)));
const address = server.address();
const origin = typeof address === "object" && address ? `http://127.0.0.1:${address.port}` : "";
const browser = await Browser.open();
after(async () => {
  await browser.close();
  server.close();
});

// print.html has all of them once more.
const PAGES = readdirSync(site, { recursive: true }).map(String).filter((path) => path.endsWith(".html") && path !== "print.html").sort();
assert.ok(PAGES.length >= 30 && PAGES.includes("tutorial.html"), `only ${PAGES}`);

for (const colorScheme of ["light", "dark"]) {
  test(`axe-core finds nothing in the site, ${colorScheme}`, async () => {
    const tab = await browser.tab({ colorScheme }, { notes: false });
    for (const page of PAGES) {
      await tab.page.goto(`${origin}/${page}`);
      await tab.page.evaluate(axe);
      const found = await tab.page.evaluate(async () => {
        const options = { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] };
        const { violations } = await globalThis.axe.run(document, options);
        return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | ")}`);
      });
      assert.deepEqual(found, [], page);
    }
    assert.ok(tab.asked.every((url) => url.startsWith(origin)), `it loads nothing from elsewhere: ${tab.asked}`);
    await tab.page.context().close();
  });
}

test("the search is reached by keyboard, and finds a page", async () => {
  const tab = await browser.tab({}, { notes: false });
  await tab.page.goto(`${origin}/tutorial.html`);
  await tab.page.keyboard.press("/");
  await tab.page.keyboard.type("passkey");
  await tab.page.locator("#mdbook-searchresults a, #searchresults a").first().waitFor();
  const results = await tab.page.locator("#mdbook-searchresults a, #searchresults a").allTextContents();
  assert.ok(results.some((text) => /passkey/i.test(text)), results.join());
  await tab.page.context().close();
});

test("without scripts everything is there to be read", async () => {
  const tab = await browser.tab({ javaScriptEnabled: false }, { notes: false });
  await tab.page.goto(`${origin}/tutorial.html`);
  assert.ok(await tab.page.getByRole("heading", { name: "In ten minutes" }).isVisible());
  await tab.page.context().close();
});
