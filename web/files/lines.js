// Lines of spans: our words, and the agent's set apart and made safe.

import { safe } from "./safe.js";

/** @param {Line} line */
export const plain = (line) => line.map((span) => span.text).join("");

/** Adds words of ours. @param {Line} line @param {string} text */
export function ours(line, text) {
  const last = line.at(-1);
  if (last && !last.theirs) last.text += text;
  else if (text !== "") line.push({ text, theirs: false });
}

/** Adds words of the agent, made safe. @param {Line} line @param {string} text */
export function theirs(line, text) {
  const made = safe(text).text;
  if (made !== "") line.push({ text: made, theirs: true });
}

/** Adds another line. @param {Line} line @param {Line} other */
export function append(line, other) {
  for (const span of other) {
    if (span.theirs) line.push(span);
    else ours(line, span.text);
  }
}
