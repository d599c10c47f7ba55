// The bank transfer of §6.10: node bank_transfer.ts http://127.0.0.1:8707 (see the README for older Nodes)

import { Agent, NotApproved } from "./aaep_agent.ts";

// What is used of Node, so that no packages are needed.
declare const process: { argv: string[]; env: Record<string, string | undefined> };

const url = process.argv[2] ?? process.env.AAEP_URL ?? "http://127.0.0.1:8707";
const agent = new Agent(url, "typescript-bank-assistant", process.env.AAEP_TOKEN);

try {
  await agent.session("Moving $500 to savings, as you asked.", async (session) => {
    await session.tool("balance", "Looking at the balance.", async () => undefined);
    const transfer = {
      tool: "transfer_funds",
      arguments: { from: "checking", to: "savings", amount: "500.00", currency: "USD" },
      action: "Transfer $500 from checking to savings.",
      consequence: "It cannot be easily reversed.",
    };
    await session.confirmed(transfer, async (args) => {
      console.log(`Moving ${JSON.stringify(args)}.`); // here the money would move
    });
    await session.say("Your savings have grown. 💰");
  });
  console.log("Done.");
} catch (error) {
  if (!(error instanceof NotApproved)) throw error;
  console.log(`Not done: ${error.status}.`);
}
