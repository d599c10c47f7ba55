// Other sites' links, images and frames, in a real browser: none of them reaches what is for programs.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { browser, hub } from "../support/demo.js";
import { Agent } from "../support/hub.js";

/** A site of somebody else: another host, so that what it asks for is cross-site. */
async function foreignSite(html) {
  const server = createServer((_, answer) => answer.writeHead(200, { "content-type": "text/html" }).end(html));
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { server, address: `http://localhost:${server.address().port}/` };
}

// covers: S5, W5
test("no link, frame, image or address bar takes what was said to an agent", async () => {
  const agent = await Agent.begin(hub, "Listening.");
  // From the first look on, what people say is kept for it.
  await hub.get("agent/inputs", agent.secret);
  await hub.say("Hello.");
  const target = `${hub.base}/agent/inputs`;
  const site = await foreignSite(`<a href="${target}">A prize</a><iframe src="${target}?from=frame"></iframe>
    <img src="${target}?from=image"><script>fetch("${target}?from=fetch", { mode: "no-cors" }).catch(() => {});</script>`);
  const tab = await browser.tab();
  /** Every answer of the agents' part of the API, with what the browser said of itself. */
  const answers = [];
  tab.page.on("response", (response) => {
    if (response.url().startsWith(target)) answers.push([response.url(), response.status(), response.request()]);
  });
  await tab.page.goto(site.address, { waitUntil: "networkidle" });
  await tab.page.getByText("A prize").click();
  await tab.page.waitForURL(target);
  const [address, status, request] = answers.find(([url]) => url === target);
  const headers = await request.allHeaders();
  assert.deepEqual([headers["sec-fetch-site"], headers["sec-fetch-mode"], headers["sec-fetch-dest"]],
    ["cross-site", "navigate", "document"], "it was a navigation from another site");
  assert.equal(status, 403, address);
  // The address bar: nobody's page, and no program either.
  const typed = await tab.page.goto(target);
  assert.equal(typed.status(), 403);
  for (const [url, refused] of answers) assert.equal(refused, 403, url);
  // Some answers the browser keeps even from us; that it asked, it does not.
  const from = tab.asked.filter((url) => url.startsWith(target)).map((url) => new URL(url).searchParams.get("from"));
  assert.deepEqual(from.filter(Boolean).sort(), ["fetch", "frame", "image"], "each way was tried");
  // Nobody took it.
  const { inputs } = await hub.get("agent/inputs", agent.secret);
  assert.deepEqual(inputs.map(({ text }) => text), ["Hello."]);
  await agent.end();
  await tab.close();
  site.server.close();
});
