/** AG-UI 1.0: a frontend of AG-UI sees what a hub tells. */

import { EventType, type BaseEvent } from "@ag-ui/core";

import type { AaepEvent } from "../protocol.js";

/**
 * What an AG-UI frontend sees of an event of ours. A session is a run.
 *
 * What AG-UI has no event for is a CUSTOM event `aaep.` and the type, with our event as its value: requests
 * among them. Whoever shows one answers it at the hub, as a subscriber with its own right to answer; a
 * frontend that must not answer is to be given events without `reply_token`.
 */
export function toAgUi(event: AaepEvent): BaseEvent[] {
  const run = { threadId: event.session_id, runId: event.session_id };
  const said = "summary_normal" in event ? event.summary_normal : undefined;
  const event_of = <T extends EventType>(type: T, members: object) => ({ type, ...members }) as BaseEvent;
  switch (event.type) {
    case "aaep:agent.session.started":
      return [event_of(EventType.RUN_STARTED, run)];
    case "aaep:agent.session.completed":
      return [event_of(EventType.RUN_FINISHED, run)];
    case "aaep:agent.session.errored":
    case "aaep:agent.session.cancelled":
      return [event_of(EventType.RUN_ERROR, { message: said ?? "It is over.", code: event.type.slice("aaep:agent.".length) })];
    case "aaep:agent.tool.invoked": {
      const toolCallId = event.tool_call_id;
      return [event_of(EventType.TOOL_CALL_START, { toolCallId, toolCallName: event.tool }), event_of(EventType.TOOL_CALL_END, { toolCallId })];
    }
    case "aaep:agent.tool.completed":
      return [event_of(EventType.TOOL_CALL_RESULT, { messageId: event.event_id, toolCallId: event.tool_call_id, content: said ?? event.status })];
    case "aaep:agent.output.streaming": {
      const messageId = event.output_id ?? event.session_id;
      return [
        ...(event.position === 0 ? [event_of(EventType.TEXT_MESSAGE_START, { messageId, role: "assistant" })] : []),
        ...(event.chunk !== "" ? [event_of(EventType.TEXT_MESSAGE_CONTENT, { messageId, delta: event.chunk })] : []),
        ...(event.complete ? [event_of(EventType.TEXT_MESSAGE_END, { messageId })] : []),
      ];
    }
    default:
      return [event_of(EventType.CUSTOM, { name: event.type.replace("aaep:agent.", "aaep."), value: event })];
  }
}
