// Made from our schemas by tools/types.mjs. To change it, change the schemas and run
// `cargo xtask typescript --write`.

/** The agent asks for an answer. */
export interface AwaitingClarification {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.awaiting.clarification" | "https://aaep-protocol.org/types/agent.awaiting.clarification" | "https://aaep-protocol.org/vocab/v1#agent.awaiting.clarification";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  urgency: "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** What it wants to know. */
  question: string;
  /** Ties the reply to this request. */
  reply_token: string;
  /** How long an answer is waited for. */
  timeout_seconds: number;
  /** How the answer may look; free text when absent. */
  accepted_response_kinds?: ("freetext" | "yes_no" | "multiple_choice" | "numeric")[];
  /** What to choose from. */
  choices?: ({
    /** What is sent back. */
    value: string;
    /** What is said. */
    label: string;
  })[];
  /** Why it asks. */
  context?: string;
  /** The answer that counts when none comes. */
  default_response?: string;
  /** In a word or two. */
  summary_terse?: string;
  /** In a sentence. */
  summary_normal?: string;
  /** In full. */
  summary_detailed?: string;
  [translated: `question_${string}`]: string;
  [translated: `context_${string}`]: string;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
}

/** The agent asks for consent. */
export interface AwaitingConfirmation {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.awaiting.confirmation" | "https://aaep-protocol.org/types/agent.awaiting.confirmation" | "https://aaep-protocol.org/vocab/v1#agent.awaiting.confirmation";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  urgency: "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** What will be done. */
  action: string;
  /** What comes of it. */
  consequence: string;
  /** Ties the reply to this request. */
  reply_token: string;
  /** How long an answer is waited for. */
  timeout_seconds: number;
  /** What counts when no answer comes. */
  default_decision: "accept" | "reject";
  /** How much can go wrong. */
  risk_level?: "low" | "medium" | "high";
  /** Whether it cannot be taken back. */
  irreversible?: boolean;
  /** The same with more shades. */
  reversibility?: "reversible" | "reversible_with_effort" | "irreversible";
  /** The decisions that may be sent; `accept` and `reject` when absent. */
  allowed_replies?: string[];
  /** More that may be worth knowing. */
  extra_context?: Record<string, unknown>;
  /** In a word or two. */
  summary_terse?: string;
  /** In a sentence. */
  summary_normal?: string;
  /** In full. */
  summary_detailed?: string;
  [translated: `action_${string}`]: string;
  [translated: `consequence_${string}`]: string;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
}

/** The task is handed to a person or another agent. */
export interface HandoffRequested {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.handoff.requested" | "https://aaep-protocol.org/types/agent.handoff.requested" | "https://aaep-protocol.org/vocab/v1#agent.handoff.requested";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  urgency: "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** Why. */
  reason: string;
  /** Who is wanted. */
  target_kind: "human" | "specialist_agent" | "escalation_queue";
  /** Where they are reached. */
  target_uri?: string;
  /** How soon. */
  urgency_for_handoff?: "low" | "medium" | "high";
  /** What they need to know. */
  packaged_context?: Record<string, unknown>;
  /** In a word or two. */
  summary_terse?: string;
  /** In a sentence. */
  summary_normal?: string;
  /** In full. */
  summary_detailed?: string;
  [translated: `reason_${string}`]: string;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
}

/** A piece of the answer. */
export interface OutputStreaming {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.output.streaming" | "https://aaep-protocol.org/types/agent.output.streaming" | "https://aaep-protocol.org/vocab/v1#agent.output.streaming";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  /** How soon it has to be heard; `normal` when absent. */
  urgency?: "background" | "normal" | "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** The text; an empty one may close an output. */
  chunk: string;
  /** Where it begins, in Unicode scalar values from the start of its output. */
  position: number;
  /** Whether it is the last of its output. */
  complete: boolean;
  /** Where it may be cut. */
  coalesce_hint?: "none" | "word" | "sentence" | "paragraph" | "completion";
  /** The output it belongs to, when a session has several. */
  output_id?: string;
  /** Its media type; plain text when absent. */
  content_type?: string;
  /** Its language, where that is not the envelope's (§11.5.3). */
  language?: string;
  [translated: `chunk_${string}`]: string;
}

/** A long task moved on. */
export interface ProgressUpdated {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.progress.updated" | "https://aaep-protocol.org/types/agent.progress.updated" | "https://aaep-protocol.org/vocab/v1#agent.progress.updated";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  /** How soon it has to be heard; `normal` when absent. */
  urgency?: "background" | "normal" | "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** How far it is. */
  progress: {
    /** How much is done. */
    percent?: number;
    /** Which step this is. */
    step?: number;
    /** How many steps there are. */
    total_steps?: number;
    /** What is being done. */
    description?: string;
  };
  /** In a word or two. */
  summary_terse?: string;
  /** In a sentence. */
  summary_normal?: string;
  /** In full. */
  summary_detailed?: string;
  /** How long it may still take. */
  eta_ms?: number;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
}

/** A session was given up. */
export interface SessionCancelled {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.session.cancelled" | "https://aaep-protocol.org/types/agent.session.cancelled" | "https://aaep-protocol.org/vocab/v1#agent.session.cancelled";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  /** How soon it has to be heard; `normal` when absent. */
  urgency?: "background" | "normal" | "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** Who gave it up. */
  cancelled_by: "user" | "producer" | "timeout" | "system";
  /** Why, in one word for programs. */
  cancellation_reason?: string;
  /** In a word or two: what was given up. */
  summary_terse?: string;
  /** In a sentence: what was given up. */
  summary_normal: string;
  /** In full: what was given up. */
  summary_detailed?: string;
  /** What there was by then. */
  partial_result?: string;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
  [translated: `partial_result_${string}`]: string;
}

/** A session ended well. */
export interface SessionCompleted {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.session.completed" | "https://aaep-protocol.org/types/agent.session.completed" | "https://aaep-protocol.org/vocab/v1#agent.session.completed";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  /** How soon it has to be heard; `normal` when absent. */
  urgency?: "background" | "normal" | "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** In a word or two: what came of it. */
  summary_terse?: string;
  /** In a sentence: what came of it. */
  summary_normal: string;
  /** In full: what came of it. */
  summary_detailed?: string;
  /** How long it took. */
  duration_ms?: number;
  /** How many tools were called. */
  tool_invocations_count?: number;
  /** What was written, in short. */
  output_summary?: string;
  /** Where the result is. */
  result_uri?: string;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
  [translated: `output_summary_${string}`]: string;
}

/** A session ended with an error. */
export interface SessionErrored {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.session.errored" | "https://aaep-protocol.org/types/agent.session.errored" | "https://aaep-protocol.org/vocab/v1#agent.session.errored";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  urgency: "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** What kind of error. */
  error_category: "transient" | "permanent" | "requires_user" | "unknown";
  /** The error's name for programs. */
  error_code?: string;
  /** In a word or two: what went wrong. */
  summary_terse?: string;
  /** In a sentence: what went wrong. */
  summary_normal: string;
  /** In full: what went wrong. */
  summary_detailed?: string;
  /** Whether trying again makes sense. */
  recoverable?: boolean;
  /** What the user can do. */
  remediation_hint?: string;
  /** Where to read more. */
  error_uri?: string;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
  [translated: `remediation_hint_${string}`]: string;
}

/** A session began. */
export interface SessionStarted {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.session.started" | "https://aaep-protocol.org/types/agent.session.started" | "https://aaep-protocol.org/vocab/v1#agent.session.started";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  sequence_number?: 0;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  /** How soon it has to be heard; `normal` when absent. */
  urgency?: "background" | "normal" | "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** In a word or two: what it is about. */
  summary_terse?: string;
  /** In a sentence: what it is about. */
  summary_normal: string;
  /** In full: what it is about. */
  summary_detailed?: string;
  /** How long it may take. */
  expected_duration_ms?: number;
  /** Who asked for it. */
  requested_by?: string;
  /** What they asked, in their words. */
  request_text?: string;
  /** The tools at hand. */
  tools_available?: string[];
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
  [translated: `request_text_${string}`]: string;
}

/** The agent does something else now. */
export interface StateChanged {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.state.changed" | "https://aaep-protocol.org/types/agent.state.changed" | "https://aaep-protocol.org/vocab/v1#agent.state.changed";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  /** How soon it has to be heard; `normal` when absent. */
  urgency?: "background" | "normal" | "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** What it did so far. */
  from_state: string;
  /** What it does from now on. */
  to_state: string;
  /** In a word or two. */
  summary_terse?: string;
  /** In a sentence. */
  summary_normal?: string;
  /** In full. */
  summary_detailed?: string;
  /** How long it may stay so. */
  expected_duration_ms?: number;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
}

/** A tool came back. */
export interface ToolCompleted {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.tool.completed" | "https://aaep-protocol.org/types/agent.tool.completed" | "https://aaep-protocol.org/vocab/v1#agent.tool.completed";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  /** How soon it has to be heard; `normal` when absent. */
  urgency?: "background" | "normal" | "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** Its name, as it was invoked. */
  tool: string;
  /** The call that ended. */
  tool_call_id?: string;
  /** How it ended. */
  status: "success" | "error" | "timeout";
  /** How long it took. */
  duration_ms?: number;
  /** In a word or two. */
  summary_terse?: string;
  /** In a sentence. */
  summary_normal?: string;
  /** In full. */
  summary_detailed?: string;
  /** What went wrong. */
  error_message?: string;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
  [translated: `error_message_${string}`]: string;
}

/** A tool is about to run. */
export interface ToolInvoked {
  /** The vocabularies in use; the protocol's own comes first. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** The version of the protocol that the producer follows. */
  aaep_version?: string;
  type: "aaep:agent.tool.invoked" | "https://aaep-protocol.org/types/agent.tool.invoked" | "https://aaep-protocol.org/vocab/v1#agent.tool.invoked";
  /** Names this event. */
  event_id: string;
  /** Names the session it belongs to. */
  session_id: string;
  /** Its place in the session: 0 on `session.started`, then one more each time. */
  sequence_number?: number;
  /** When it was emitted. */
  timestamp: string;
  /** Who emitted it. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** How much its texts say; `normal` when absent. */
  verbosity?: "terse" | "normal" | "detailed";
  /** How soon it has to be heard; `normal` when absent. */
  urgency?: "background" | "normal" | "critical";
  /** Language and writing of its texts. */
  localization_hints?: {
    /** The language of the text. */
    primary_language?: string;
    /** Which way it runs; `ltr` when absent. */
    text_direction?: "ltr" | "rtl" | "auto";
    /** Other languages that could be had. */
    available_languages?: string[];
    /** What to try when the primary language is not available, in this order. */
    fallback_chain?: string[];
    /** The script, where the language leaves it open. */
    script?: string;
    /** The calendar that dates are written in. */
    calendar?: string;
  };
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
  /** Its name. */
  tool: string;
  /** Ties the call to its `tool.completed`. */
  tool_call_id?: string;
  /** What the tool does. */
  description?: string;
  /** What it is called with, without secrets. */
  args_summary?: string;
  /** In a word or two. */
  summary_terse?: string;
  /** In a sentence. */
  summary_normal: string;
  /** In full. */
  summary_detailed?: string;
  /** How long it may take. */
  expected_duration_ms?: number;
  /** How much can go wrong; `low` when absent. */
  risk_level?: "low" | "medium" | "high";
  /** Whether it cannot be taken back; false when absent. */
  irreversible?: boolean;
  [translated: `description_${string}`]: string;
  [translated: `args_summary_${string}`]: string;
  [translated: `summary_terse_${string}`]: string;
  [translated: `summary_normal_${string}`]: string;
  [translated: `summary_detailed_${string}`]: string;
}

/** The user answered. */
export interface ClarificationReply {
  /** `clarification.reply`. */
  type: "clarification.reply";
  /** The token of the request, byte for byte. */
  reply_token: string;
  /** The answer. */
  response: string | boolean | number;
  /** The subscription on which this is sent. */
  subscription_id: string;
  /** When the user answered. */
  timestamp: string;
  /** Who answered. */
  decided_by?: string;
  /** How sure the subscriber is that it understood. */
  confidence?: number;
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
}

/** The user decided. */
export interface ConfirmationReply {
  /** `confirmation.reply`. */
  type: "confirmation.reply";
  /** The token of the request, byte for byte. */
  reply_token: string;
  /** Yes or no. */
  decision: "accept" | "reject";
  /** The subscription on which this is sent. */
  subscription_id: string;
  /** When the user decided. */
  timestamp: string;
  /** Who decided. */
  decided_by?: string;
  /** Why. */
  decision_rationale?: string;
  /** What to do instead. */
  modified_action?: Record<string, unknown>;
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
}

/** A producer agrees to a subscription. */
export interface SubscriptionAccepted {
  /** `subscription.accepted`. */
  type: "subscription.accepted";
  /** Names the subscription. */
  subscription_id: string;
  /** The version of the protocol that will be spoken. */
  aaep_version: string;
  /** Who will speak. */
  producer: {
    /** Names the agent; unique in its deployment, the same across versions. */
    agent_id: string;
    /** The agent's own version. */
    agent_version?: string;
    /** What people call it. */
    agent_name?: string;
    /** The model it uses. */
    model?: string;
    /** Where its manifest is. */
    manifest_uri?: string;
  };
  /** What is granted of what was asked. */
  honored_capabilities: {
    /** How many events a second at most, critical ones aside; no limit when absent. */
    max_events_per_second?: number;
    /** How much is to be said; `normal` when absent. */
    preferred_verbosity?: "terse" | "normal" | "detailed";
    /** Languages, the dearest first; `en-US` when absent. */
    languages?: string[];
    /** Whether it answers confirmations; it does not when absent. */
    supports_confirmation_reply?: boolean;
    /** Whether it answers clarifications; it does not when absent. */
    supports_clarification_reply?: boolean;
    /** Where streamed text may be cut; after a sentence and at the end when absent. */
    coalesce_boundaries?: ("none" | "word" | "sentence" | "paragraph" | "completion")[];
    /** Which events; all of the protocol's own when absent. */
    event_filters?: {
      /** What is wanted. */
      include?: string[];
      /** What is not, even if it is wanted. */
      exclude?: string[];
    };
    /** Conformance levels; only the first when absent. */
    supported_conformance_levels?: number[];
    /** Extensions, by address; none when absent. */
    supported_extensions?: string[];
    /** How much the listener can take in; `medium` when absent. */
    cognitive_load?: "low" | "medium" | "high";
    /** Words a minute that are comfortable. */
    pace_wpm?: number;
    /** Whether only a signed manifest will do; it need not be when absent. */
    accept_signed_manifests_only?: boolean;
    [other: string]: unknown;
  };
  /** Where the producer's manifest is. */
  manifest_uri?: string;
  /** The manifest itself, signed. */
  signed_manifest?: string;
  /** What was not granted, and why. */
  negotiation_notes?: string;
}

/** One side ends a subscription. */
export interface SubscriptionClose {
  /** `subscription.close`. */
  type: "subscription.close";
  /** The subscription. */
  subscription_id: string;
  /** Why, for programs. */
  reason_code?: string;
  /** Why, for people. */
  reason_message?: string;
  [other: string]: unknown;
}

/** A producer refuses a subscription. */
export interface SubscriptionRejected {
  /** `subscription.rejected`. */
  type: "subscription.rejected";
  /** Why, for programs. */
  reason_code: "version_unsupported" | "manifest_signature_required" | "capabilities_incompatible" | "rate_limit" | "authentication_required" | "authorization_denied" | "transport_unavailable" | "unknown";
  /** Why, for people. */
  reason_message: string;
  /** When to try again. */
  retry_after_seconds?: number;
  /** Where else to try. */
  alternative_manifest_uri?: string;
}

/** A subscriber wants other terms. */
export interface SubscriptionRenegotiate {
  /** `subscription.renegotiate`. */
  type: "subscription.renegotiate";
  /** The subscription. */
  subscription_id: string;
  /** What is to change. */
  capabilities: {
    /** How many events a second at most, critical ones aside; no limit when absent. */
    max_events_per_second?: number;
    /** How much is to be said; `normal` when absent. */
    preferred_verbosity?: "terse" | "normal" | "detailed";
    /** Languages, the dearest first; `en-US` when absent. */
    languages?: string[];
    /** Whether it answers confirmations; it does not when absent. */
    supports_confirmation_reply?: boolean;
    /** Whether it answers clarifications; it does not when absent. */
    supports_clarification_reply?: boolean;
    /** Where streamed text may be cut; after a sentence and at the end when absent. */
    coalesce_boundaries?: ("none" | "word" | "sentence" | "paragraph" | "completion")[];
    /** Which events; all of the protocol's own when absent. */
    event_filters?: {
      /** What is wanted. */
      include?: string[];
      /** What is not, even if it is wanted. */
      exclude?: string[];
    };
    /** Conformance levels; only the first when absent. */
    supported_conformance_levels?: number[];
    /** Extensions, by address; none when absent. */
    supported_extensions?: string[];
    /** How much the listener can take in; `medium` when absent. */
    cognitive_load?: "low" | "medium" | "high";
    /** Words a minute that are comfortable. */
    pace_wpm?: number;
    /** Whether only a signed manifest will do; it need not be when absent. */
    accept_signed_manifests_only?: boolean;
    [other: string]: unknown;
  };
}

/** A subscriber introduces itself. */
export interface SubscriptionRequest {
  /** `subscription.request`. */
  type: "subscription.request";
  /** The version of the protocol that it speaks. */
  aaep_version: string;
  /** Its name for programs. */
  subscriber_id: string;
  /** Its name for people. */
  subscriber_name?: string;
  /** Its own version. */
  subscriber_version?: string;
  /** Where it describes itself. */
  subscriber_manifest_uri?: string;
  /** Ties it to traces elsewhere. */
  correlation_id?: string;
  /** What it can do and wants; may be empty. */
  capabilities: {
    /** How many events a second at most, critical ones aside; no limit when absent. */
    max_events_per_second?: number;
    /** How much is to be said; `normal` when absent. */
    preferred_verbosity?: "terse" | "normal" | "detailed";
    /** Languages, the dearest first; `en-US` when absent. */
    languages?: string[];
    /** Whether it answers confirmations; it does not when absent. */
    supports_confirmation_reply?: boolean;
    /** Whether it answers clarifications; it does not when absent. */
    supports_clarification_reply?: boolean;
    /** Where streamed text may be cut; after a sentence and at the end when absent. */
    coalesce_boundaries?: ("none" | "word" | "sentence" | "paragraph" | "completion")[];
    /** Which events; all of the protocol's own when absent. */
    event_filters?: {
      /** What is wanted. */
      include?: string[];
      /** What is not, even if it is wanted. */
      exclude?: string[];
    };
    /** Conformance levels; only the first when absent. */
    supported_conformance_levels?: number[];
    /** Extensions, by address; none when absent. */
    supported_extensions?: string[];
    /** How much the listener can take in; `medium` when absent. */
    cognitive_load?: "low" | "medium" | "high";
    /** Words a minute that are comfortable. */
    pace_wpm?: number;
    /** Whether only a signed manifest will do; it need not be when absent. */
    accept_signed_manifests_only?: boolean;
    [other: string]: unknown;
  };
  /** Members of extensions, keyed by prefix. */
  extensions?: Record<string, unknown>;
}

/** The hub's own account of an action that is asked about; it stands in `extensions`. */
export interface ActionExtension {
  /** The tool that would run. */
  tool: string;
  /** Its arguments: one `path: value` line for each value. Control characters are written as
 codes, secrets are taken out. */
  arguments: string;
  /** The digest of tool and arguments, to which consent is bound. */
  digest: string;
  /** Whose words the question's are. */
  described_by: "policy" | "agent";
  /** Whether something of the arguments was left out. */
  shortened?: boolean;
  /** Whether a secret was taken out. */
  redacted?: boolean;
  [other: string]: unknown;
}

/** The user stops the agent. */
export interface ControlCancel {
  /** `control:cancel`. */
  type: "control:cancel";
  /** The session to stop. */
  session_id: string;
  /** The subscription on which this is sent. */
  subscription_id: string;
  /** When the user asked. */
  timestamp: string;
}

/** Which request an event resolves, and how; it stands in `extensions`. */
export interface OutcomeExtension {
  /** The event that asked. */
  request_event_id: string;
  /** What became of it: `accepted`, `rejected`, `timed_out`, `cancelled`, `superseded`,
 `expired`. Others may come; treat one that you do not know as "no longer asked". */
  outcome: string;
  /** Why: `wrong_clock` where a no came with a clock that cannot be right (decision D42). */
  reason?: string;
  [other: string]: unknown;
}

/** The presence that a yes requires; it stands in `extensions`. */
export interface PresenceExtension {
  /** The least that counts. */
  needs: "none" | "listener" | "pin" | "passkey";
  [other: string]: unknown;
}

/** The hub says what became of a PIN that was typed. */
export interface PresenceState {
  /** `presence:state`. */
  type: "presence:state";
  /** The subscription that it is told on. */
  subscription_id: string;
  /** What happened. */
  state: "unlocked" | "wrong" | "wait" | "unset" | "tried" | "changed" | "passkey_added" | "passkey_removed";
  /** `unlocked`: for how long. `wrong` and `wait`: how long until another try is looked at. */
  seconds: number;
  /** How many wrong PINs came since the last right one. */
  failures?: number;
  [other: string]: unknown;
}

/** The user types their PIN. */
export interface PresenceUnlock {
  /** `presence:unlock`. */
  type: "presence:unlock";
  /** The subscription that is unlocked; it is heard on this connection, or by this client. */
  subscription_id: string;
  /** When it was typed. */
  timestamp: string;
  /** What was typed. */
  pin: string;
}

/** What was taken out of the texts of an event; it stands in `extensions`. */
export interface RedactionExtension {
  /** What kinds of things, each once. */
  removed: ("card_number" | "key" | "token" | "private_key" | "password" | "not_for_this_role")[];
  [other: string]: unknown;
}

/** Where a listener left off; it stands in the capabilities of a request. */
export interface ResumeExtension {
  /** The last event that was heard. */
  last_event_id: string;
  /** The subscription on which it was heard. */
  subscription_id?: string;
  [other: string]: unknown;
}

/** Who else speaks in a session; it stands in `extensions` of its start. */
export interface TeamExtension {
  /** Their `agent_id`s, each once. */
  agents: string[];
  [other: string]: unknown;
}

/** How much time a listener needs; it stands in the capabilities of a request. */
export interface TimingCapability {
  /** How many times as long. */
  factor: number;
  [other: string]: unknown;
}

/** The user asks for more time. */
export interface TimingExtend {
  /** `timing:extend`. */
  type: "timing:extend";
  /** The token of the request, byte for byte. */
  reply_token: string;
  /** The subscription on which this is sent. */
  subscription_id: string;
  /** When the user asked. */
  timestamp: string;
  /** How long the request shall wait from now on. */
  seconds: number;
}

/** Which event a request stands in the place of; it stands in `extensions`. */
export interface TimingExtension {
  /** The event that asked before, in whose place this one stands. */
  supersedes: string;
  [other: string]: unknown;
}

/** A producer describes itself. */
export interface ProducerManifest {
  /** The vocabularies in use. */
  "@context": "https://aaep-protocol.org/context/v1" | ["https://aaep-protocol.org/context/v1", ...(string)[]];
  /** `aaep:producer.manifest`. */
  type: "aaep:producer.manifest";
  /** Names the producer. */
  agent_id: string;
  /** Its own version. */
  agent_version?: string;
  /** What people call it. */
  agent_name?: string;
  /** The versions of the protocol that it speaks. */
  aaep_versions_supported: string[];
  /** The conformance levels that it meets. */
  conformance_levels_supported: number[];
  /** The transports that it offers: a name, or an object that tells more. */
  transports_supported: (string | Record<string, unknown>)[];
  /** The languages that it can speak. */
  languages_supported?: string[];
  /** The event types that it emits: names, or prefixes with a trailing `*`. */
  event_types_emitted?: string[];
  /** The extensions that it knows, by address. */
  extensions_supported?: string[];
  /** How much it says unless asked otherwise. */
  default_verbosity?: "terse" | "normal" | "detailed";
  /** How many subscriptions it serves at once. */
  max_concurrent_subscriptions?: number;
  /** Whom to ask. */
  contact?: string | Record<string, unknown>;
  [other: string]: unknown;
}

/** An event of the core. */
export type AaepEvent =
  | AwaitingClarification
  | AwaitingConfirmation
  | HandoffRequested
  | OutputStreaming
  | ProgressUpdated
  | SessionCancelled
  | SessionCompleted
  | SessionErrored
  | SessionStarted
  | StateChanged
  | ToolCompleted
  | ToolInvoked;
