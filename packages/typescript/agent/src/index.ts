/** Consent and announcements for AI agents, for people who use assistive technology. */

export { Agent, type AgentOptions, type SessionOptions } from "./agent.js";
export type { Confirm, Confirmation, Question } from "./asking.js";
export {
  AaepError, InDoubt, Misuse, NotApproved, Refused, SessionOver, Stopped, Stranger, Unanswered, Unavailable,
  type NoReason,
} from "./errors.js";
export { Gate, type Consent, type Decision, type HeldBack } from "./gate.js";
export { localHub } from "./hub.js";
export type { Output } from "./output.js";
export type * from "./protocol.js";
export { redact } from "./secrets.js";
export type { Json, Members, Progress, Session } from "./session.js";
export type { AnnouncedTool, Call, ToolOptions } from "./tool.js";
