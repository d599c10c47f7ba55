// What the page costs in the browser: its own script time for each event at 50 events a second, and
// its heap over 100,000 events.

import { Browser } from "./support/browser.js";
import { Agent, Hub } from "./support/hub.js";

const RATE = 50;
const SECONDS = Number(process.env.AAEP_BENCH_SECONDS ?? 20);
const EVENTS = Number(process.env.AAEP_BENCH_EVENTS ?? 100_000);
const WANTED_MS = 2;
/** Between the second tenth, when the memory of ids is full, and the end. */
const WANTED_GROWTH = 1.1;

const [hub, browser] = await Promise.all([Hub.start("demo", { options: ["--ephemeral"] }), Browser.open()]);
// Whoever notes what is heard would grow with it.
const tab = await browser.tab({}, { notes: false });
await tab.open(hub.origin);
const cdp = await tab.page.context().newCDPSession(tab.page);
await cdp.send("Performance.enable");

async function metrics() {
  const { metrics } = await cdp.send("Performance.getMetrics");
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

/** What the page does in a while, in seconds of its main thread. */
async function during(work) {
  const before = await metrics();
  await work();
  const after = await metrics();
  return { script: after.ScriptDuration - before.ScriptDuration, task: after.TaskDuration - before.TaskDuration };
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function pace() {
  const agents = await Promise.all(Array.from({ length: 5 }, (_, at) => Agent.begin(hub, `Session ${at}.`, `Agent${at}`)));
  await sleep(1000);
  const heard = () => tab.page.evaluate(() => document.querySelector("aaep-subscriber").inbox.memory.known.size);
  const before = await heard();
  const idle = await during(() => sleep(SECONDS * 1000));
  const busy = await during(async () => {
    const began = performance.now();
    const sent = [];
    for (let at = 0; at < RATE * SECONDS; at += 1) {
      const wait = began + (at * 1000) / RATE - performance.now();
      if (wait > 0) await sleep(wait);
      const agent = agents[at % agents.length];
      sent.push(agent.emit("state.changed", { from_state: at < agents.length ? "idle" : at % 10 < 5 ? "thinking" : "deciding",
        to_state: at % 10 < 5 ? "deciding" : "thinking", summary_normal: `Step ${at} of many, in words that take a line.` }));
    }
    await Promise.all(sent);
    await sleep(1000);
  });
  const events = (await heard()) - before;
  const of = (name) => ((busy[name] - idle[name]) * 1000) / events;
  console.log(`${events} events at ${RATE} a second, of the hub, over ${SECONDS} s:`);
  console.log(`  script time of an event: ${of("script").toFixed(3)} ms (wanted: under ${WANTED_MS} ms)`);
  console.log(`  all work of the main thread for an event, layout included: ${of("task").toFixed(3)} ms`);
  for (const agent of agents) await agent.end();
  return events >= RATE * SECONDS * 0.95 && of("script") < WANTED_MS;
}

async function heap() {
  await cdp.send("HeapProfiler.collectGarbage");
  const { JSHeapUsedSize, Nodes } = await metrics();
  return { bytes: JSHeapUsedSize, nodes: Nodes };
}

/** Sessions of ten events each, fed as fast as they are taken, on a clock that goes 20 ms an event. */
async function grow() {
  console.log(`${EVENTS} events, fed straight to the element:`);
  const samples = [];
  for (let tenth = 0; tenth < 10; tenth += 1) {
    await tab.page.evaluate(async ([from, to]) => {
      const element = document.querySelector("aaep-subscriber");
      const start = Date.now();
      element.connection.now = () => start + globalThis.fed * 20;
      for (globalThis.fed = from; globalThis.fed < to; globalThis.fed += 1) {
        const at = globalThis.fed;
        const session = `sess_bench${Math.floor(at / 10)}`;
        const types = ["session.started", "state.changed", "tool.invoked", "progress.updated", "tool.completed",
          "output.streaming", "awaiting.confirmation", "state.changed", "output.streaming", "session.completed"];
        const type = types[at % 10];
        element.hear(JSON.stringify({ type: `aaep:agent.${type}`, event_id: `evt_bench${at}`, session_id: session,
          timestamp: new Date(start + at * 20).toISOString(), producer: { agent_id: `agent${at % 3}`, agent_name: "Bench" },
          summary_normal: `This is what event ${at} says.`, from_state: "awaiting_input", to_state: "thinking", tool: "t",
          progress: { percent: 50 }, chunk: `A sentence of ${at}. `, position: type === "output.streaming" && at % 10 === 8 ? 20 : 0,
          complete: at % 10 === 8, action: `Do ${at}.`, consequence: "Then it is done.", reply_token: `rpl_${at}`,
          timeout_seconds: 60, default_decision: "reject", risk_level: "low", irreversible: false,
          extensions: at % 10 === 7 ? { outcome: { request_event_id: `evt_bench${at - 1}`, outcome: "rejected" } } : {} }));
        if (at % 200 === 0) await new Promise((done) => setTimeout(done, 0));
      }
    }, [(tenth * EVENTS) / 10, ((tenth + 1) * EVENTS) / 10]);
    samples.push(await heap());
  }
  const shown = ({ bytes, nodes }) => `${(bytes / 1024 / 1024).toFixed(2)} MiB, ${nodes} nodes`;
  samples.forEach((sample, at) => console.log(`  after ${((at + 1) * EVENTS) / 10}: ${shown(sample)}`));
  const growth = samples[9].bytes / samples[1].bytes;
  console.log(`  the end beside the second tenth: ${growth.toFixed(3)} times (wanted: under ${WANTED_GROWTH})`);
  return growth < WANTED_GROWTH;
}

const good = [await pace(), await grow()];
await browser.close();
await hub.stop();
process.exitCode = good.every(Boolean) ? 0 : 1;
