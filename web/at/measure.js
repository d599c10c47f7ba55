// How soon a request is heard, and whether anything is heard twice or cut in a run of 200 mixed
// events, with Orca at 300 words a minute.
//
//   node at/measure.js [chromium|firefox]... [--latency]
//
// With --latency only the first is measured. A request that is heard too late is a failure, as is anything
// that was lost, cut or said twice; the machine's load is said with the figures.

import { availableParallelism, loadavg } from "node:os";

import { Hub } from "../tests/support/hub.js";
import { Desktop, orcaVersion, sleep } from "./desktop.js";
import { Listener } from "./listener.js";
import { MILD } from "./scenarios.js";

const REQUESTS = 20;
/** What is aimed at for each of them, in milliseconds. */
const SOON_MS = 400;
const EVENTS = 200;
/** One of so many events is a request: a step, by its turn. */
const ASKS_EVERY = 24;

const [latency, browsers] = [process.argv.includes("--latency"), process.argv.slice(2).filter((word) => word !== "--latency")];
if (browsers.length === 0) browsers.push("chromium", "firefox");

/** Waits until words were said to their end, or cut. */
const said = (desktop, since, words) => desktop.until(
  () => desktop.heard(since).some(({ kind, text }) => kind !== "begin" && text.includes(words)), 30_000, `"${words}"`);

/** Answers what is open, and waits until that was heard. */
async function reject(desktop) {
  const since = Date.now();
  await desktop.key("ctrl+shift+7");
  await said(desktop, since, "rejected");
}

/** From before the request is sent to the hub until its first word is spoken, in milliseconds. */
async function latencies(listener) {
  const { desktop } = listener;
  const agent = await listener.agent("Asking.");
  await desktop.quiet(2000);
  const all = [];
  for (let number = 1; number <= REQUESTS; number += 1) {
    const action = `Open door number ${number}.`;
    const since = Date.now();
    await agent.confirm(action, MILD);
    await said(desktop, since, action);
    const [first] = desktop.heard(since).filter(({ kind, text }) => kind === "begin" && text.includes(action));
    all.push(first.at - since);
    await desktop.quiet(1000);
    await reject(desktop);
    await desktop.quiet(1500);
  }
  await agent.end("That is all.");
  return all.sort((one, other) => one - other);
}

/** An event of each kind, by turns; the number tells them apart. */
async function chatter(agent, number) {
  const call = `call_${number}`;
  switch (number % 4) {
    case 0: return agent.emit("progress.updated", { progress: { step: number, total_steps: EVENTS }, summary_normal: `Mark ${number}, step.` });
    case 1: return agent.emit("tool.invoked", { tool: "look", tool_call_id: call, summary_normal: `Mark ${number}, looking.` });
    case 2: return agent.emit("tool.completed", { tool: "look", tool_call_id: `call_${number - 1}`, status: "success", summary_normal: `Mark ${number}, found.` });
    default: return agent.emit("output.streaming", { chunk: `Mark ${number}, written.`, position: 0, complete: true, output_id: `out_${number}` });
  }
}

/** Two hundred events at ten a second, requests among them, each answered when it was heard. */
async function mixed(listener) {
  const { desktop } = listener;
  const agent = await listener.agent("Doing a lot.");
  await desktop.quiet(2000);
  const began = Date.now();
  const asked = [];
  let answering = Promise.resolve();
  for (let number = 1; number <= EVENTS; number += 1) {
    if (number % ASKS_EVERY === 0) {
      await answering;
      const action = `Mark ${number}, asked.`;
      const since = Date.now();
      await agent.confirm(action, MILD);
      asked.push(action);
      answering = said(desktop, since, action).then(() => reject(desktop));
      // It is waited for below; until then nobody else takes its failure.
      answering.catch(() => {});
    } else {
      await chatter(agent, number);
      await sleep(100);
    }
  }
  await answering;
  await agent.end("That is all.");
  await said(desktop, began, "That is all.");
  await desktop.quiet(3000);
  const all = desktop.heard(began).filter(({ kind }) => kind !== "begin");
  const times = (mark) => all.filter(({ text }) => text.includes(mark)).length;
  const marks = Array.from({ length: EVENTS }, (_, index) => `Mark ${index + 1},`);
  const outcomes = asked.map((_, index) => `Request ${index + 1}: rejected.`);
  return {
    twice: [...marks, ...outcomes].filter((mark) => times(mark) > 1),
    unheard: [...asked, ...outcomes].filter((mark) => times(mark) === 0),
    cut: all.filter(({ kind, text }) => kind === "cut" && /Allow this\?|Request \d+:/.test(text)).map(({ text }) => text),
    requests: asked.length,
  };
}

let failed = false;
for (const kind of browsers) {
  const hub = await Hub.start("demo", { options: ["--ephemeral"] });
  let desktop;
  try {
    desktop = await Desktop.start();
    await desktop.browser(kind, hub.origin);
    const listener = new Listener(desktop, hub);
    await listener.home();
    await listener.field();
    const all = await latencies(listener);
    const late = all.filter((ms) => ms > SOON_MS).length;
    console.log(`Orca ${orcaVersion()}, ${kind}: from a request to its first spoken word, ${REQUESTS} requests: ` +
      `least ${all[0]} ms, half within ${all[REQUESTS / 2 - 1]} ms, most ${all.at(-1)} ms; ` +
      `${late} took more than ${SOON_MS} ms. Load of the machine: ${loadavg()[0].toFixed(1)} on ${availableParallelism()} processors.`);
    failed ||= late > 0;
    if (latency) continue;
    await listener.home();
    await listener.field();
    const { twice, unheard, cut, requests } = await mixed(listener);
    console.log(`Orca ${orcaVersion()}, ${kind}: ${EVENTS} mixed events, ${requests} of them requests: ` +
      `${twice.length} heard twice, ${unheard.length} requests or outcomes unheard, ${cut.length} of them cut.`);
    for (const what of [...twice, ...unheard, ...cut]) console.log(`  ${what}`);
    failed ||= twice.length + unheard.length + cut.length > 0;
  } catch (error) {
    failed = true;
    console.log(`Orca ${orcaVersion()}, ${kind}: ${error.message}`);
  } finally {
    await desktop?.stop();
    await hub.stop();
  }
}
process.exit(failed ? 1 : 0);
