// The page before the conformance suite, which is the producer that it listens to. What its live regions say
// goes to the suite's observer, and what the suite's person does is done in the page. The report is the
// one in docs/conformance; with AAEP_REPORTS=write it is replaced.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import { test } from "node:test";

import { browser, hub } from "../support/demo.js";
import { BINARY } from "../support/hub.js";

const KEPT = new URL("../../../docs/conformance/page.txt", import.meta.url);

/** A report without what differs from run to run. @param {string} report */
const lasting = (report) => report.replaceAll("the subscriber that came", "the page")
  .replace(/ not exercised, in .*/g, " not exercised.").replace(/, in this report of.*/g, "");

/** The suite, and where it listens. */
function suite() {
  const child = spawn(BINARY, ["conformance", "subscriber", "http://127.0.0.1:0/aaep/v1", "--level", "3",
    "--quiet", "1000", "--patience", "15", "--deadline", "380"], { stdio: ["ignore", "pipe", "pipe"] });
  const run = { child, report: "" };
  child.stdout.on("data", (piece) => (run.report += piece));
  run.ended = new Promise((ended) => child.on("exit", ended));
  run.listening = new Promise((found) => {
    let said = "";
    child.stderr.on("data", (piece) => {
      said += piece;
      const url = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said);
      if (url) found(Number(url[1]));
    });
  });
  return run;
}

/** The page of the hub, with the suite in the place of its API. */
function proxy(port) {
  const server = createServer((asked, answer) => {
    const to = asked.url.startsWith("/aaep/v1/") ? port : hub.port;
    const headers = { ...asked.headers, host: `127.0.0.1:${to}` };
    delete headers.origin;
    const passed = request({ port: to, host: "127.0.0.1", path: asked.url, method: asked.method, headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
      answer.flushHeaders();
    });
    passed.on("error", () => answer.destroy());
    answer.on("close", () => passed.destroy());
    asked.pipe(passed);
  });
  return new Promise((ready) => server.listen(0, "127.0.0.1", () => ready(server)));
}

/** Does in the page what the person does. */
async function act(tab, order) {
  if (order.do === "quit") {
    await tab.page.evaluate(() => document.querySelector("aaep-subscriber").remove());
    return;
  }
  const dialog = tab.page.locator(".dialog:not(.unseen)").filter({ hasText: order.about });
  // It may be on its way, and in its first moments nothing answers it; or it was taken back, and never comes.
  await dialog.waitFor({ timeout: 4000 });
  await tab.page.waitForTimeout(900);
  const name = { accept: "Accept", reject: "Reject", answer: "Send text" }[order.do];
  if (order.do === "answer") await dialog.getByRole("textbox").fill(order.text);
  // What is settled cannot be pressed any more; nor can anybody press it.
  await dialog.getByRole("button", { name, exact: true }).click({ timeout: 2000 });
}

// covers: V3, T28, T30, C28, H24
test("the page conforms as a subscriber", { timeout: 400_000 }, async () => {
  const run = suite();
  const port = await run.listening;
  const server = await proxy(port);
  const observer = `http://127.0.0.1:${port}/aaep/v1/observer`;
  const tab = await browser.tab();
  await tab.page.exposeFunction("announced", (text) =>
    fetch(observer, { method: "POST", body: JSON.stringify({ announced: text }) }).catch(() => {}));
  await tab.page.addInitScript(() => {
    const push = globalThis.heard.push.bind(globalThis.heard);
    globalThis.heard.push = (...said) => {
      for (const { text } of said) globalThis.announced(text);
      return push(...said);
    };
  });
  await tab.page.goto(`http://127.0.0.1:${server.address().port}/`);
  let over = false;
  // A dialog takes the focus, and is read by its name: that is how a question is heard.
  const dialogs = (async () => {
    let last = "";
    while (!over) {
      const name = await tab.page.evaluate(() => {
        const focused = (root) => root?.shadowRoot?.activeElement ?? root;
        const dialog = focused(document.activeElement)?.closest?.("[role=dialog], [role=alertdialog]");
        return dialog ? dialog.innerText : "";
      }).catch(() => "");
      if (name !== "" && name !== last) {
        await fetch(observer, { method: "POST", body: JSON.stringify({ announced: name }) }).catch(() => {});
      }
      last = name;
      await new Promise((later) => setTimeout(later, 100));
    }
  })();
  const person = (async () => {
    while (!over) {
      const told = await fetch(observer).catch(() => undefined);
      if (told?.status === 200) await act(tab, await told.json()).catch(() => {});
    }
  })();
  const code = await run.ended;
  over = true;
  await Promise.all([person, dialogs]);
  await tab.close();
  server.closeAllConnections();
  server.close();
  assert.equal(code, 0, run.report);
  if (process.env.AAEP_REPORTS === "write") {
    mkdirSync(new URL(".", KEPT), { recursive: true });
    writeFileSync(KEPT, lasting(run.report));
  }
  assert.ok(existsSync(KEPT), "no report is kept to compare with; AAEP_REPORTS=write keeps one");
  assert.equal(lasting(run.report), readFileSync(KEPT, "utf8"));
});
