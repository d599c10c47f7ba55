// Builds @aaep/subscriber from the files of the element: node tools/element.mjs FILES
//
// FILES is what `cargo run -p aaep-page --example files -- FILES` wrote: what the hub serves.

import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const [files] = process.argv.slice(2);
const own = fileURLToPath(new URL("../subscriber/", import.meta.url));
const out = join(own, "dist");

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
// The parts that are seldom needed stay apart.
await build({
  entryPoints: { index: join(own, "src/index.js"), core: join(own, "src/core.js") },
  outdir: out, bundle: true, splitting: true, format: "esm", minify: true, target: "es2022",
  chunkNames: "[name]-[hash]", alias: { "@element": files }, logLevel: "warning",
});
/** JSON without its spaces. */
const copy = (from, to) => writeFileSync(to, JSON.stringify(JSON.parse(readFileSync(from, "utf8"))));
copy(join(files, "alike.json"), join(out, "alike.json"));
for (const language of readdirSync(join(files, "messages"))) {
  mkdirSync(join(out, "messages", language), { recursive: true });
  for (const name of readdirSync(join(files, "messages", language))) {
    copy(join(files, "messages", language, name), join(out, "messages", language, name));
  }
}
cpSync(join(files, "styles.css"), join(out, "styles.css"));
for (const types of ["index.d.ts", "core.d.ts"]) cpSync(join(own, "src", types), join(out, types));
