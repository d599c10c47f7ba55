// Makes agent/src/protocol.ts from our schemas: node tools/types.mjs SCHEMAS [--check]
//
// SCHEMAS is what `aaep schema --out SCHEMAS` wrote. With --check nothing is written, and it fails if the
// file is another one.

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder, check] = process.argv.slice(2);
const OUT = new URL("../agent/src/protocol.ts", import.meta.url);

const read = (path) => JSON.parse(readFileSync(join(folder, path), "utf8"));
const envelope = read("envelope.schema.json");

/** `agent.awaiting.confirmation` is `AwaitingConfirmation`. */
const named = (file) => file.replace(/\.schema\.json$/, "").replace(/^agent\./, "").split(/[._-]/)
  .map((word) => word[0].toUpperCase() + word.slice(1)).join("");

const literal = (value) => JSON.stringify(value);
const comment = (text, indent) => (text ? `${indent}/** ${text.replaceAll("*/", "* /")} */\n` : "");
const KEY = /^[A-Za-z_$][\w$]*$/;

function typeOf(schema, indent = "") {
  if (schema === true || schema === undefined) return "unknown";
  if ("const" in schema) return literal(schema.const);
  if (schema.enum) return schema.enum.map(literal).join(" | ");
  for (const either of [schema.oneOf, schema.anyOf]) {
    // Where only what is required differs, the members stand beside it.
    if (either && !schema.properties && either.every((one) => typeOf(one) !== "unknown")) {
      return [...new Set(either.map((one) => typeOf(one, indent)))].join(" | ");
    }
  }
  switch (Array.isArray(schema.type) ? undefined : schema.type) {
    case "string": return "string";
    case "integer": case "number": return "number";
    case "boolean": return "boolean";
    case "null": return "null";
    case "array": {
      const rest = typeOf(schema.items, indent);
      if (schema.prefixItems) return `[${schema.prefixItems.map((item) => typeOf(item, indent)).join(", ")}, ...(${rest})[]]`;
      return rest.includes(" ") ? `(${rest})[]` : `${rest}[]`;
    }
    default:
  }
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ type }, indent)).join(" | ");
  if (schema.properties || schema.patternProperties) return members(schema, indent);
  if (schema.type === "object") return "Record<string, unknown>";
  return "unknown";
}

function members({ properties = {}, required = [], patternProperties = {}, additionalProperties, unevaluatedProperties }, indent) {
  const inner = `${indent}  `;
  let out = "{\n";
  for (const [name, schema] of Object.entries(properties)) {
    const key = KEY.test(name) ? name : literal(name);
    out += `${comment(schema.description, inner)}${inner}${key}${required.includes(name) ? "" : "?"}: ${typeOf(schema, inner)};\n`;
  }
  for (const [pattern, schema] of Object.entries(patternProperties)) {
    const before = /^\^([a-z_]+_)\[/.exec(pattern)?.[1];
    if (before) out += `${inner}[translated: \`${before}\${string}\`]: ${typeOf(schema, inner)};\n`;
  }
  // Where everything else is allowed too, it is unknown.
  if (additionalProperties !== false && unevaluatedProperties !== false) out += `${inner}[other: string]: unknown;\n`;
  return `${out}${indent}}`;
}

function whole(name, schema) {
  const isEvent = schema.allOf?.some(({ $ref }) => $ref === envelope.$id);
  // What an event says of the envelope may be no more than a bound.
  const own = Object.fromEntries(Object.entries(schema.properties ?? {})
    .map(([key, one]) => [key, { ...(isEvent && typeOf(one) === "unknown" ? envelope.properties[key] : {}), ...one }]));
  const all = isEvent
    ? { ...schema, properties: { ...envelope.properties, ...own }, required: [...(envelope.required ?? []), ...(schema.required ?? [])] }
    : schema;
  const body = typeOf(all);
  const about = comment(schema.description ?? schema.title, "");
  return body.startsWith("{") ? `${about}export interface ${name} ${body}\n` : `${about}export type ${name} = ${body};\n`;
}

let out = "// Made from our schemas by tools/types.mjs. To change it, change the schemas and run\n// `cargo xtask typescript --write`.\n\n";
const events = [];
for (const [part, suffix] of [["core", ""], ["handshake", ""], ["extensions", "Extension"]]) {
  for (const file of readdirSync(join(folder, part)).filter((one) => one.endsWith(".schema.json")).sort()) {
    const name = named(file) + (suffix && !/\.(cancel|extend|unlock|state|capability)\./.test(file) ? suffix : "");
    if (part === "core") events.push(name);
    out += `${whole(name, read(`${part}/${file}`))}\n`;
  }
}
out += `${whole("ProducerManifest", read("producer.manifest.schema.json"))}\n`;
out += `/** An event of the core. */\nexport type AaepEvent =\n${events.map((name) => `  | ${name}`).join("\n")};\n`;

if (check === "--check") {
  if (readFileSync(OUT, "utf8") !== out) {
    console.error("agent/src/protocol.ts is not what our schemas say; run `cargo xtask typescript --write`.");
    process.exit(1);
  }
} else {
  writeFileSync(OUT, out);
}
