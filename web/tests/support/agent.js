// An agent that is a process of its own: it does what it is told, and sends back what came of it.

import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

import { Agent, Hub } from "./hub.js";

const FILE = fileURLToPath(import.meta.url);

/** The same methods as those of an agent that is this process. */
export class AgentProcess {
  /** @param {Hub} hub */
  static async begin(hub) {
    const agent = new AgentProcess();
    agent.child = fork(FILE, [String(hub.port)]);
    // It has begun when it says so.
    await new Promise((begun) => agent.child.once("message", begun));
    return agent;
  }

  /** @param {keyof Agent} does */
  call(does, ...given) {
    return new Promise((done, fails) => {
      this.child.once("message", ({ answer, error }) => (error ? fails(new Error(error)) : done(answer)));
      this.child.send({ does, given });
    });
  }

  stop() {
    this.child.disconnect();
  }
}

if (process.argv[1] === FILE) {
  const hub = new Hub("hub", { port: Number(process.argv[2]), directory: "" });
  const agent = await Agent.begin(hub, "Cleaning up.");
  process.send("begun");
  process.on("message", async ({ does, given }) => {
    try {
      process.send({ answer: await agent[does](...given) ?? null });
    } catch (error) {
      process.send({ error: String(error) });
    }
  });
}
