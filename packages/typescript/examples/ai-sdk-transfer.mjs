// Vercel AI SDK: AAEP_URL=… node ai-sdk-transfer.mjs
//
// A scripted model stands for a real one; everything else is the SDK.

import { Agent, Gate } from "@aaep/agent";
import { run } from "@aaep/agent/ai-sdk";
import { generateText, stepCountIs, tool } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";

const consent = { transfer: { action: "Transfer {amount} euros to {to}.", consequence: "It cannot be called back." } };

function scripted() {
  const usage = { inputTokens: {}, outputTokens: {} };
  const wants = (toolCallId, toolName, input) => [{ type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) }];
  const said = [
    wants("call_0", "balance", {}),
    wants("call_1", "transfer", { to: "ann", amount: "500.00" }),
    [{ type: "text", text: "That is all." }],
  ];
  return new MockLanguageModelV3({ doGenerate: async () => {
    const content = said.shift();
    const unified = content[0].type === "text" ? "stop" : "tool-calls";
    return { content, finishReason: { unified, raw: unified }, usage, warnings: [] };
  } });
}

const agent = new Agent("ai-sdk-bank");
await agent.session("Moving money.", async (session) => {
  const gate = new Gate(session, consent);
  const tools = {
    balance: tool({
      description: "The balance.", inputSchema: z.object({}), execute: gate.wrap("balance", async () => "1200.00"),
    }),
    transfer: tool({
      description: "Moves money.", inputSchema: z.object({ to: z.string(), amount: z.string() }), needsApproval: true,
      execute: async ({ to, amount }) => {
        console.log(`moved ${amount} to ${to}`);
        return "moved";
      },
    }),
  };
  const model = scripted();
  const generate = (messages, abortSignal) => generateText({ model, tools, messages, abortSignal, stopWhen: stepCountIs(5) });
  const result = await run(generate, [{ role: "user", content: "Send Ann 500 euros." }], gate);
  console.log(result.text);
});
await agent.close();
