#!/usr/bin/env node
// An output module for Speech Dispatcher that writes down what a listener would hear. Each message
// takes as long as it would at HEARD_WPM words a minute, so that what is interrupted is cut here too.
//
// The protocol is line by line, on standard input and output.

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const LOG = process.env.HEARD_LOG ?? "/dev/null";
const WPM = Number(process.env.HEARD_WPM ?? 300);

const put = (...lines) => process.stdout.write(`${lines.join("\n")}\n`);
const note = (entry) => appendFileSync(LOG, `${JSON.stringify({ at: Date.now(), ...entry })}\n`);

const ENTITIES = { lt: "<", gt: ">", amp: "&", quot: '"', apos: "'" };

/** The words of a message, without its markup. */
const plain = (ssml) => ssml.replace(/<[^>]+>/g, "")
  .replace(/&(lt|gt|amp|quot|apos);/g, (_, name) => ENTITIES[name])
  .replace(/\s+/g, " ").trim();

/** How long a word takes; Chinese has no spaces between words. */
const length = (word) => (60_000 / WPM) * Math.max(1, (word.match(/\p{Script=Han}/gu)?.length ?? 0) / 2);

let speaking = null;

function speak(text) {
  stop();
  const words = text.split(" ").filter((word) => word !== "");
  const one = { text, heard: [], timer: null };
  speaking = one;
  put("701 BEGIN");
  note({ kind: "begin", text });
  const next = () => {
    const word = words[one.heard.length];
    if (word === undefined) {
      speaking = null;
      note({ kind: "end", text });
      return put("702 END");
    }
    one.timer = setTimeout(() => {
      one.heard.push(word);
      next();
    }, length(word));
  };
  next();
}

function stop() {
  if (!speaking) return;
  clearTimeout(speaking.timer);
  note({ kind: "cut", text: speaking.text, heard: speaking.heard.join(" ") });
  speaking = null;
  put("703 STOP");
}

/** What to do with the lines up to a single dot. */
let block = null;
const lines = [];

const COMMANDS = {
  INIT: () => put("299-heard: writes down what it says", "299 OK LOADED SUCCESSFULLY"),
  AUDIO: () => take("207 OK RECEIVING AUDIO SETTINGS", () => put("203 OK AUDIO INITIALIZED")),
  LOGLEVEL: () => take("207 OK RECEIVING LOGLEVEL SETTINGS", () => put("203 OK LOG LEVEL SET")),
  SET: () => take("203 OK RECEIVING SETTINGS", () => put("203 OK SETTINGS RECEIVED")),
  STOP: stop,
  PAUSE: stop,
  QUIT: () => {
    stop();
    put("210 OK QUIT");
    process.exit(0);
  },
};
for (const name of ["SPEAK", "CHAR", "KEY", "SOUND_ICON"]) {
  COMMANDS[name] = () => take("202 OK RECEIVING MESSAGE", (text) => {
    put("200 OK SPEAKING");
    speak(plain(text));
  });
}

function take(answer, then) {
  put(answer);
  lines.length = 0;
  block = then;
}

createInterface({ input: process.stdin }).on("line", (line) => {
  if (block === null) {
    const command = line.trim();
    if (COMMANDS[command]) COMMANDS[command]();
    else if (command.startsWith("LIST VOICES")) put("200-heard\ten\tnone", "200 OK VOICE LIST SENT");
    else if (command.startsWith("DEBUG")) put("200 OK DEBUGGING SET");
    else put("300 ERR UNKNOWN COMMAND");
  } else if (line === ".") {
    const then = block;
    block = null;
    then(lines.join("\n"));
  } else {
    lines.push(line.startsWith("..") ? line.slice(1) : line);
  }
}).on("close", () => process.exit(0));
