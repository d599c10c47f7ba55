// Confirmations one after the other with @aaep/agent: how long each took, in microseconds.

import { Agent } from "@aaep/agent";

const [url, count] = process.argv.slice(2);
const agent = new Agent("bench-typescript", { url });
await agent.session("Measuring.", async (session) => {
  for (let turn = 0; turn < Number(count); turn += 1) {
    const began = performance.now();
    await session.confirm({
      tool: "transfer", arguments: { amount: "500.00", turn },
      action: "Transfer 500 euros.", consequence: "It cannot be called back.",
    }).run(() => undefined);
    console.log(Math.round((performance.now() - began) * 1000));
  }
});
await agent.close();
