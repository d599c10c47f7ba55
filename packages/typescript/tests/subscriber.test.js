// What the installed package @aaep/subscriber does: its core by the shared vectors, its React component on a
// server, and in a real browser with the real hub.

import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";
import { chromium } from "playwright-core";
import { createElement } from "react";
import { renderToString } from "react-dom/server";
import { Agent } from "@aaep/agent";
import { Words, plain } from "@aaep/subscriber/core";
import { Subscriber } from "@aaep/subscriber/react";

import { Hub } from "./hub.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const dist = join(here, "node_modules/@aaep/subscriber/dist");
const CHROMIUM = process.env.AAEP_CHROMIUM ?? "/usr/bin/chromium";
const closing = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

// The vectors of the inbox, as web/tests runs them, with this package's inbox.
const vectors = join(process.env.AAEP_REPOSITORY, "web/tests/unit/vectors.test.js");
const text = readFileSync(vectors, "utf8")
  .replace('"../../files/inbox.js"', '"@aaep/subscriber/core"')
  .replace('new URL("../../../crates/', `new URL("${pathToFileURL(process.env.AAEP_REPOSITORY)}/crates/`);
assert.ok(text.includes("@aaep/subscriber/core") && !text.includes("../../"));
writeFileSync(join(here, "made.vectors.js"), text);
await import("./made.vectors.js");

test("the words are there in every language, and keep the agent's text apart", () => {
  const read = (language, name) => JSON.parse(readFileSync(join(dist, "messages", language, `${name}.json`), "utf8"));
  const languages = readdirSync(join(dist, "messages"));
  assert.equal(languages.length, 11);
  const request = {
    number: 1, agent: { id: "tidy", name: "tidy" }, asks: "consent", action: "Delete the build", consequence: "It is gone",
    context: "", risk: "high", reversibility: "irreversible", silence_accepts: false, kinds: [], choices: [], default: null,
    timeout_seconds: 60, continues: null, account: null, agent_says: "",
  };
  for (const language of languages) {
    const { direction } = read(language, "language");
    const words = new Words(language, direction, { ...read(language, "said"), ...read(language, "page") });
    const lines = words.say({ kind: "asked", request }, { verbosity: "normal", load: "medium", name_agents: false });
    assert.deepEqual(lines.flat().filter(({ theirs }) => theirs).map(({ text: said }) => said), ["Delete the build", "It is gone"], language);
    if (language === "en") assert.equal(plain(lines[0]), "Allow this? Delete the build. It cannot be undone.");
  }
});

test("what a browser loads is at most 40,000 bytes when compressed, in any language", () => {
  const js = readdirSync(dist).filter((name) => name.endsWith(".js"));
  const needed = js.filter((name) => name === "index.js" || name.startsWith("chunk-"));
  const size = (names) => gzipSync(Buffer.concat(names.map((name) => readFileSync(join(dist, name)))), { level: 9 }).length;
  for (const language of readdirSync(join(dist, "messages"))) {
    const messages = ["language", "said", "page"].map((name) => `messages/${language}/${name}.json`);
    const bytes = size([...needed, "styles.css", ...messages]);
    if (["en", "ar"].includes(language)) console.log(`@aaep/subscriber in ${language}: ${bytes} bytes compressed`);
    assert.ok(bytes <= 40_000, `${language}: ${bytes}`);
  }
});

test("React: on a server it is the empty element", () => {
  const html = renderToString(createElement(Subscriber, { base: "https://hub.example/aaep/v1", language: "de" }));
  assert.equal(html, '<aaep-subscriber base="https://hub.example/aaep/v1" language="de"></aaep-subscriber>');
});

const APP = `
import { createElement as h, useState } from "react";
import { createRoot } from "react-dom/client";
import { Subscriber } from "@aaep/subscriber/react";

function App({ base }) {
  const [state, setState] = useState({ connected: false });
  const [count, setCount] = useState(0);
  const [open, setOpen] = useState(false);
  const [here, setHere] = useState(true);
  return h("main", null,
    h("p", { id: "state" }, state.connected ? "connected" : "not connected"),
    h("p", { id: "count" }, String(count)),
    h("p", { id: "open" }, String(open)),
    h("button", { id: "leave", onClick: () => setHere(false) }, "Leave"),
    here && h(Subscriber, { base, onState: setState, onRequests: setCount, onDialog: setOpen }));
}
createRoot(document.getElementById("root")).render(h(App, { base: new URLSearchParams(location.search).get("base") }));
`;

const IMPORTS = JSON.stringify({ imports: { "@aaep/subscriber": "/node_modules/@aaep/subscriber/dist/index.js" } });

/** A page, and the files of the packages. `body` makes it of the base of a hub; its script is bundled. */
async function served(body, script = "") {
  const folder = mkdtempSync(join(here, "app-"));
  writeFileSync(join(folder, "app.jsx"), script);
  await build({
    entryPoints: [join(folder, "app.jsx")], outfile: join(folder, "made.js"), bundle: true, format: "esm", jsx: "automatic",
    // The element stays beside its words and styles; the page says where.
    plugins: [{ name: "element", setup: ({ onResolve }) => onResolve({ filter: /^@aaep\/subscriber$/ }, ({ path }) => ({ path, external: true })) }],
    define: {
      "process.env.NODE_ENV": '"production"', __VUE_OPTIONS_API__: "true", __VUE_PROD_DEVTOOLS__: "false",
      __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: "false",
    },
    logLevel: "error",
  });
  const page = (base) => `<!doctype html><html lang="en"><title>App</title><script type="importmap">${IMPORTS}</script>`
    + `${body(base)}<script type="module" src="/made.js"></script></html>`;
  const types = { js: "text/javascript", css: "text/css", json: "application/json" };
  const server = createServer(({ url }, answer) => {
    const { pathname, searchParams } = new URL(url, "http://localhost");
    const file = pathname === "/made.js" ? join(folder, "made.js") : join(here, pathname);
    if (pathname === "/") return answer.setHeader("content-type", "text/html").end(page(searchParams.get("base")));
    if (!existsSync(file) || !statSync(file).isFile()) return answer.writeHead(404).end();
    return answer.setHeader("content-type", types[pathname.split(".").at(-1)] ?? "text/plain").end(readFileSync(file));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  closing.push(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

const skip = existsSync(CHROMIUM) ? false : "there is no Chromium here";

/** A browser with the page, connected to a hub where nobody else answers. */
async function opened(origin, { errors = [] } = {}) {
  const hub = await Hub.start(undefined, { environment: { AAEP_ALLOWED_ORIGINS: origin } });
  closing.push(() => hub.stop());
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"], headless: true });
  closing.push(() => browser.close());
  const page = await browser.newPage({ locale: "en-US" });
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${origin}/?base=${encodeURIComponent(hub.base)}`);
  return { hub, page };
}

/** Something is asked; the dialog that shows it is given back, once it takes answers. */
async function asked(hub, page) {
  const agent = new Agent("page-bank", { url: hub.url });
  closing.push(() => agent.close());
  const moved = agent.session("Moving money.", (session) => session.confirm({
    tool: "tidy", arguments: {}, action: "Tidy the desk.", consequence: "It is tidy.", undo: "easily", risk: "low",
  }).run((call) => call.by));
  moved.catch(() => undefined);
  const dialog = page.locator(".dialog:not(.unseen)", { hasText: "Tidy the desk." });
  await dialog.waitFor();
  // Nothing answers in its first moments.
  await page.waitForTimeout(1500);
  return { moved, accept: dialog.getByRole("button", { name: "Accept" }) };
}

test("React: the component hears, answers, tells its page, and leaves", { skip }, async () => {
  const errors = [];
  const { hub, page } = await opened(await served(() => '<div id="root"></div>', APP), { errors });
  await page.locator("#state", { hasText: /^connected$/ }).waitFor();
  const { moved, accept } = await asked(hub, page);
  await page.locator("#count", { hasText: /^1$/ }).waitFor();
  await page.locator("#open", { hasText: /^true$/ }).waitFor();
  await accept.click();
  assert.ok(await moved);
  await page.locator("#count", { hasText: /^0$/ }).waitFor();

  await page.locator("#leave").click();
  await page.locator("aaep-subscriber").waitFor({ state: "detached" });
  assert.deepEqual(errors, []);
});

const readme = readFileSync(join(process.env.AAEP_REPOSITORY, "packages/typescript/subscriber/README.md"), "utf8");
const snippet = (language) => readme.split(`\`\`\`${language}\n`)[1].split("```")[0];
const HUB = "https://hub.example.org/aaep/v1";
const inScript = (text) => text.replaceAll(`"${HUB}"`, 'new URLSearchParams(location.search).get("base")');
const element = '<script type="module">import "@aaep/subscriber";</script>';
const free = "<script>globalThis.yourToken = async () => undefined;</script>";

const PAGES = {
  plain: [(base) => free + snippet("html").replace(HUB, base)],
  Vue: [() => `${free}<div id="app"></div>${element}`, inScript(snippet("js"))],
  React: [() => '<div id="root"></div>', `import { createRoot } from "react-dom/client";
    ${inScript(snippet("jsx")).replace(/base=new (.*?\))(?=\s+token)/, "base={new $1}")}
    createRoot(document.getElementById("root")).render(<Agents />);`],
};

for (const [name, [body, script]] of Object.entries(PAGES)) {
  test(`the README's page, ${name}: it hears and answers`, { skip }, async () => {
    const errors = [];
    const { hub, page } = await opened(await served(body, script), { errors });
    await page.locator("aaep-subscriber").waitFor({ state: "attached" });
    const { moved, accept } = await asked(hub, page);
    if (name !== "plain") await page.getByText("1 waiting").waitFor();
    await accept.click();
    assert.ok(await moved);
    if (name !== "plain") await page.getByText("0 waiting").waitFor();
    assert.deepEqual(errors, []);
  });
}
