/** The core of the element, for a voice of your own: what came in, what is told, in which words. */

export interface Agent {
  id: string;
  name: string;
}

/** A request that waits for the user. */
export interface AgentRequest {
  number: number;
  shown_number: number;
  agent: Agent;
  event_id: string;
  session_id: string;
  /** What is echoed in the reply. Never shown. */
  reply_token: string;
  asks: "consent" | "answer";
  action: string;
  consequence: string;
  context: string;
  risk: "low" | "medium" | "high";
  reversibility: "reversible" | "reversible_with_effort" | "irreversible";
  silence_accepts: boolean;
  kinds: string[];
  choices: { value: string; label: string }[];
  default: string | null;
  timeout_seconds: number;
  deadline_ms: number;
  continues: number | null;
  language: string;
}

export type Outcome =
  | "accepted" | "rejected" | "answered"
  | "accepted_elsewhere" | "rejected_elsewhere" | "answered_elsewhere"
  | "timed_out" | "cancelled" | "wrong_clock" | "superseded" | "gone";

/** Something that a person may want to hear, in the order in which it shall be heard. */
export type Happening =
  | { kind: "event"; agent: Agent; event: any; critical: boolean }
  | { kind: "asked"; request: AgentRequest }
  | { kind: "settled"; request: AgentRequest; outcome: Outcome; announced?: boolean }
  | { kind: "text"; agent: Agent; session_id: string; output_id: string; text: string; ends: boolean; after_gap: boolean; language: string }
  | { kind: "silence"; agent: Agent; why: "missing" | "too_much" | "unreadable"; count: number }
  | { kind: "over"; agent: Agent; session_id: string }
  | { kind: "connected"; hub: string; again: boolean; may_reply: boolean }
  | { kind: "lost"; hub: string; why?: string };

/** A piece of what is said: ours, or the agent's, made safe. */
export interface Span {
  text: string;
  theirs: boolean;
}

export interface Manner {
  verbosity: "terse" | "normal" | "detailed";
  load: "low" | "medium" | "high";
  name_agents: boolean;
}

/** What came in, and what is told of it. It does no input or output. */
export class Inbox {
  /** Takes in a message; `now` is the server's time in milliseconds. */
  hear(json: string, now: number): Happening[];
  /** Time passes. */
  tick(now: number): Happening[];
  /** Requests that wait, in the order of asking. */
  waiting(): AgentRequest[];
  /** The hub agreed to these terms. */
  begins(terms: Record<string, unknown>, hub: string): void;
  /** The connection is lost. */
  lost(): void;
  /** An answer was sent. */
  sent(request: AgentRequest, decision: string): void;
}

/** The words of one language. */
export class Words {
  readonly language: string;
  readonly direction: "ltr" | "rtl";
  constructor(language: string, direction: "ltr" | "rtl", messages: Record<string, string | Record<string, string>>);
  /** Reads the message files of a language from beside this package. */
  static load(language: string): Promise<Words>;
  /** What is said of something that happens; nothing when there is nothing to say. */
  say(happening: Happening, manner: Manner): Span[][];
}

/** A line as plain text. */
export function plain(line: Span[]): string;
/** A text in which nothing hides and nothing drives a terminal. */
export function safe(text: string): { text: string };
