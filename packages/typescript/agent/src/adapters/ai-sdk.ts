/** Vercel AI SDK 6: tools with `needsApproval` become questions of consent. */

import type { ModelMessage, ToolApprovalResponse } from "ai";

import type { Decision, Gate } from "../gate.js";
import type { Json } from "../session.js";

type Now<T> = T | PromiseLike<T>;

/** What `generateText` gives, and `streamText` bit by bit, as far as it matters here. */
interface Generated {
  content: Now<readonly { type: string }[]>;
  response: Now<{ messages: readonly ModelMessage[] }>;
}

/** What came of it, once it is there. */
interface Whole<G> {
  result: G;
  content: readonly { type: string }[];
  messages: readonly ModelMessage[];
}

interface ApprovalRequest {
  type: "tool-approval-request";
  approvalId: string;
  toolCall: { toolCallId: string; toolName: string; input: unknown };
}

interface ToolEnd {
  type: "tool-result" | "tool-error";
  toolCallId: string;
}

/**
 * Runs an agent to its end: `generate` calls `generateText` or `streamText` with the messages and the signal
 * it is given. What
 * `needsApproval` holds back is asked through the gate; the tool runs after a yes, and the model is told of a
 * no. When the user stops the session, the signal aborts, and this throws `Stopped`.
 *
 *     const generate = (messages, abortSignal) => generateText({ model, tools, messages, abortSignal, stopWhen });
 *     const result = await run(generate, messages, gate);
 *
 * Tools that are not held back: `execute: gate.wrap("name", execute)`.
 */
export async function run<G extends Generated>(
  generate: (messages: ModelMessage[], signal: AbortSignal) => Now<G>, messages: readonly ModelMessage[], gate: Gate,
): Promise<G> {
  let all = [...messages];
  const generated = async (): Promise<Whole<G>> => {
    const result = await generate(all, gate.session.signal);
    const [content, response] = await Promise.all([result.content, result.response]);
    return { result, content, messages: response.messages };
  };
  let last = await gate.unlessStopped(generated);
  for (let held = requests(last); held.length > 0; held = requests(last)) {
    const calls = held.map(({ approvalId: id, toolCall: { toolName: tool, input } }) =>
      ({ id, tool, arguments: input as { [name: string]: Json } }));
    last = await gate.heldBack(calls, async (decisions) => {
      const content: ToolApprovalResponse[] = held.map(({ approvalId }) => answer(approvalId, decisions.get(approvalId)));
      all = [...all, ...last.messages, { role: "tool", content }];
      const next = await generated();
      tell(next, held, decisions);
      return next;
    });
  }
  return last.result;
}

const requests = ({ content }: Whole<unknown>) =>
  content.filter((part) => part.type === "tool-approval-request") as unknown as ApprovalRequest[];

function answer(approvalId: string, decision: Decision | undefined): ToolApprovalResponse {
  const base = { type: "tool-approval-response", approvalId } as const;
  if (decision?.call !== undefined) return { ...base, approved: true };
  const reason = `${decision?.whyNot?.message ?? ""} Do not try it again unless the user asks for it.`;
  return { ...base, approved: false, reason };
}

/** The SDK takes an error of a tool, and tells the model. */
function tell(next: Whole<unknown>, held: ApprovalRequest[], decisions: ReadonlyMap<string, Decision>): void {
  const told = next.messages.flatMap(({ content }): unknown[] => (typeof content === "string" ? [] : [...content]));
  const ended = new Map<string, boolean>();
  for (const part of [...next.content, ...told] as (ToolEnd & { output?: { type?: string } })[]) {
    const failed = part.type === "tool-error" || part.output?.type?.startsWith("error") === true;
    if (part.type === "tool-result" || failed) ended.set(part.toolCallId, !failed || ended.get(part.toolCallId) === true);
  }
  for (const { approvalId, toolCall: { toolCallId } } of held) {
    const call = decisions.get(approvalId)?.call;
    if (call !== undefined && ended.get(toolCallId) !== true) {
      call.failed = `${call.tool} ${ended.has(toolCallId) ? "failed" : "was not run"}.`;
    }
  }
}
