// Types of the page's scripts, for the type checker alone: nobody loads this.

type Agent = { id: string; name: string };
type Choice = { value: string; label: string };

/** A request that waits for the user. */
interface AgentRequest {
  number: number;
  /** By which the person knows it: with more time it stays the same. */
  shown_number: number;
  agent: Agent;
  event_id: string;
  session_id: string;
  /** What is echoed in the reply. Never shown. */
  reply_token: string;
  asks: "consent" | "answer";
  /** What will be done, or what is asked. */
  action: string;
  consequence: string;
  context: string;
  risk: "low" | "medium" | "high";
  reversibility: "reversible" | "reversible_with_effort" | "irreversible";
  silence_accepts: boolean;
  kinds: string[];
  choices: Choice[];
  default: string | null;
  timeout_seconds: number;
  /** By the server's clock. */
  deadline_ms: number;
  /** The number of the request that this one continues with more time. */
  continues: number | null;
  /** It asks something else than the request that it continues, or than before. */
  changed: boolean;
  /** What the hub itself says would run. */
  account: Account | null;
  /** What the agent itself says of it, where the policy's words are asked; may be empty. */
  agent_says: string;
  language: string;
  /** The event as it was received. */
  event: any;
}

/** The extension `urn:aaep-rs:action:v1`. */
interface Account {
  tool: string;
  /** One line for each argument. */
  arguments: string;
  digest: string;
  /** A rule of the policy made the question's words, not the agent. */
  by_policy: boolean;
  shortened: boolean;
  redacted: boolean;
}

type Outcome =
  | "accepted" | "rejected" | "answered"
  | "accepted_elsewhere" | "rejected_elsewhere" | "answered_elsewhere"
  | "timed_out" | "cancelled" | "wrong_clock" | "superseded" | "gone";

type EventHappening = { kind: "event"; agent: Agent; event: any; critical: boolean };
type TextHappening = {
  kind: "text"; agent: Agent; session_id: string; output_id: string; text: string;
  ends: boolean; after_gap: boolean; language: string;
};
type SilenceHappening = {
  kind: "silence"; agent: Agent; why: "missing" | "too_much" | "unreadable"; count: number;
};
/** Nothing more is known of a session, and nobody said how it ended. */
type OverHappening = { kind: "over"; agent: Agent; session_id: string };
/** Whether a hub is who it says, as its signed manifest shows. */
type Identity =
  | { is: "unsigned" }
  | { is: "new" | "verified"; agent_id: string; key: string };

type LinkHappening =
  | { kind: "connected"; hub: string; again: boolean; may_reply: boolean; identity?: Identity | null }
  | { kind: "lost"; hub: string; why?: string };

/** Something that a person may want to hear, in the order in which it shall be heard. */
type Happening =
  | EventHappening
  | { kind: "asked"; request: AgentRequest }
  | { kind: "settled"; request: AgentRequest; outcome: Outcome; announced?: boolean }
  | TextHappening
  | SilenceHappening
  | OverHappening
  | LinkHappening;

/** A piece of what is said: ours, or the agent's. */
type Span = { text: string; theirs: boolean };
/** One line: what is said without a pause. */
type Line = Span[];
/** A phrase of the message files. */
type Phrase = string | Record<string, string>;
/** A value for a placeholder. */
type Given = number | { ours: string } | { theirs: string } | Line;
type Arguments = Record<string, Given>;

type Level = "low" | "medium" | "high";
type Verbosity = "terse" | "normal" | "detailed";

/** How much is said. `load` is how burdened the listener is: the contrary of what is negotiated. */
type Manner = { verbosity: Verbosity; load: Level; name_agents: boolean };

type LookAlike =
  | { kind: "mixed"; word: string; first: string; second: string }
  | { kind: "alike"; word: string; script: string }
  | { kind: "styled" | "digits"; word: string };

/** What the user chose. */
interface Settings {
  /** `auto`, or a tag. */
  language: string;
  verbosity: Verbosity;
  /** How much is taken in at once. */
  load: Level;
  /** Words a minute; 0 for no preference. */
  pace: number;
  /** How the agent's answers are read out. */
  reading: "end" | "sentence" | "silent";
  /** When a second step is asked for. */
  ask_twice: "risky" | "always";
  /** What is announced. */
  hear: "all" | "asks";
  /** What is held with a shortcut's key. */
  modifiers: "ctrl_shift" | "alt_shift" | "ctrl_alt";
  /** The key of each shortcut, as `KeyboardEvent.code`; empty for none. */
  keys: Record<Action, string>;
  sounds: boolean;
  shortcuts: boolean;
  notify: boolean;
}

type Message = Record<string, unknown>;

/** What became of a message. */
type Sent = { ok: boolean; status: number; text: string };

/** What the connection tells. */
interface Ears {
  /** Events that came together, as they were received. */
  events(all: string[]): void;
  connected(hub: string, again: boolean, mayReply: boolean): void;
  /** The stream broke; it is tried again. */
  lost(): void;
  /** The hub does not let this page in: for want of a token, or for a reason of its own. */
  refused(status: number, body: Message): void;
  /** It is not the hub that was known, or its signature does not hold. */
  impostor(why: string): void;
}

/** What the view asks for. */
interface Hands {
  /** The server's time, in milliseconds. */
  now(): number;
  decide(request: AgentRequest, decision: "accept" | "reject"): Promise<Sent>;
  answer(request: AgentRequest, response: string | number | boolean): Promise<Sent>;
  moreTime(request: AgentRequest): Promise<Sent>;
  /** Shows the person's PIN to the hub; the word that it answers. */
  unlock(pin: string): Promise<string>;
  isUnlocked(): boolean;
  connection(): import("./files/connection.js").Connection | null;
  stop(session: string): Promise<Sent>;
  change(changed: Partial<Settings>): void;
  dialog(open: boolean): void;
}

/** What waits to be said. */
type Announcement = { text: string; now: boolean; topic: string; anyway: boolean };

/** What a dialog shows. */
interface Content {
  /** What became of the request before it, if anything. */
  lead: string;
  heading: Line;
  /** Of the agent's words. */
  language: string;
  text: HTMLElement[];
  /** How long it waits, where it does. */
  waits: HTMLElement | null;
  answers: Node[];
  escape: () => void;
}

type Action = "questions" | "repeat" | "now" | "more_time" | "log" | "stop" | "reject" | "accept";

type Sound = "blocked" | "done" | "error" | "waiting";
type Attributes = Record<string, string | boolean | number>;

type Letter = { letter: string; script: string; looks: "itself" | "alike" | "styled" };
type Words = import("./files/words.js").Words;
type Inbox = import("./files/inbox.js").Inbox;
type Keys = import("./files/dom.js").Keys;
