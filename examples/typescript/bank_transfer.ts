// The bank transfer of §6.10: node bank_transfer.ts, or with the address of a hub behind it (see the README
// for older Nodes)

import { Agent, NotApproved } from "./aaep_agent.ts";
import { localHub, Stranger } from "./aaep_hub.ts";

const url = process.argv[2] ?? (await localHub());
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
  if (error instanceof NotApproved) {
    console.log(`Not done: ${error.status}.`);
  } else if (error instanceof Stranger) {
    console.error(`Not asked: ${error.message}.`);
    process.exitCode = 1;
  } else {
    throw error;
  }
}
