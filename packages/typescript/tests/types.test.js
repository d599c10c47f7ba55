// The types, made from our schemas, take every valid message of the shared vectors, and refuse what a schema can
// tell is wrong.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const here = fileURLToPath(new URL(".", import.meta.url));
const vectors = join(process.env.AAEP_REPOSITORY, "vectors");

/** The messages of a folder that are JSON and have one of our types. */
function* messages(folder) {
  for (const name of readdirSync(join(vectors, folder)).filter((one) => one.endsWith(".json")).sort()) {
    try {
      const text = readFileSync(join(vectors, folder, name), "utf8");
      const { type } = JSON.parse(text);
      if (typeof type === "string") yield { name, text, type };
    } catch {
      // It shows a fault of JSON.
    }
  }
}

const NAMED = {
  "confirmation.reply": "ConfirmationReply", "clarification.reply": "ClarificationReply",
  "subscription.request": "SubscriptionRequest", "subscription.accepted": "SubscriptionAccepted",
  "subscription.rejected": "SubscriptionRejected", "subscription.renegotiate": "SubscriptionRenegotiate",
  "subscription.close": "SubscriptionClose",
};
const CORE = /^aaep:agent\.(session\.(started|completed|errored|cancelled)|state\.changed|progress\.updated|tool\.(invoked|completed)|output\.streaming|awaiting\.(confirmation|clarification)|handoff\.requested)$/;

function typed({ text, type }, at) {
  const name = CORE.test(type) ? "AaepEvent" : NAMED[type];
  return name === undefined ? undefined : `export const m${at}: A.${name} = ${text.trim()};`;
}

async function complaints(file, lines) {
  writeFileSync(join(here, file), `import type * as A from "@aaep/agent";\n${lines.join("\n")}\n`);
  const options = ["--noEmit", "--strict", "--module", "nodenext", "--skipLibCheck", "--pretty", "false", file];
  const compiler = join(here, "node_modules/typescript/bin/tsc");
  const { stdout } = await promisify(execFile)(process.execPath, [compiler, ...options], { cwd: here, maxBuffer: 1 << 26 })
    .catch((error) => error);
  return stdout;
}

test("every valid message has its type", async () => {
  const lines = [...messages("valid")].map(typed).filter(Boolean);
  assert.ok(lines.length > 60, String(lines.length));
  assert.equal(await complaints("valid.ts", lines), "");
});

test("a message without what it needs, or with a word that is none, has not", async () => {
  const bad = [
    '{ "type": "confirmation.reply", "decision": "accept" }',
    '{ "type": "confirmation.reply", "reply_token": "rpl_1", "subscription_id": "sub_1", "decision": "perhaps", "timestamp": "2026-05-24T14:22:11.342Z" }',
  ];
  const said = await complaints("invalid.ts", bad.map((text, at) => `export const m${at}: A.ConfirmationReply = ${text};`));
  assert.equal(said.split("\n").filter((line) => line.startsWith("invalid.ts")).length, 2, said);
});
