// Behind a proxy that hides where the page is from: the page says what is wrong, and asks for no token.

import assert from "node:assert/strict";
import { createServer, request as ask } from "node:http";
import { after, test } from "node:test";

import { browser, hub } from "../support/demo.js";

/** A proxy that writes a Host of its own, as nginx does unless it is told otherwise. */
const proxy = createServer((request, response) => {
  const { hostname, host, port } = new URL(hub.origin);
  const headers = { ...request.headers, host };
  const passed = ask({ hostname, port, path: request.url, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  passed.on("error", () => response.writeHead(502).end());
  request.pipe(passed);
});
after(() => proxy.close());

test("the page says why it is refused, and asks for no token", async () => {
  await new Promise((listens) => proxy.listen(0, "127.0.0.1", () => listens(undefined)));
  const address = proxy.address();
  const tab = await browser.tab();
  await tab.page.goto(`http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}`);
  const state = tab.page.locator("aaep-subscriber .state");
  await state.getByText("Behind a proxy").waitFor();
  assert.match(await state.innerText(), /^Not connected: .*behind_proxy/);
  assert.ok(await tab.page.locator("#enter").isHidden(), "another token would change nothing");
  await tab.hears("behind_proxy");
  await tab.close();
});

test("for want of a token it asks for one", async () => {
  const tab = await browser.tab();
  await tab.page.route(`${hub.origin}/aaep/v1/subscriptions`, (route) => {
    const headers = { ...route.request().headers(), authorization: `Bearer aaep_${"x".repeat(43)}` };
    void route.continue({ headers });
  });
  await tab.page.goto(hub.origin);
  const state = tab.page.locator("aaep-subscriber .state");
  await state.getByText("the hub wants a token").waitFor();
  assert.ok(await tab.page.locator("#enter").isVisible());
  await tab.close();
});
