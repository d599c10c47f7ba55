//! The twelve core events: each is the envelope and a payload.

use super::envelope::{
    BOUNDARY, DECISION, ENVELOPE_ROWS, LANGUAGE, LONG_TEXT, LOW_TO_HIGH, NAME, PARAGRAPHS,
};
use super::shapes::Shape;
use super::table::{
    ANY_TEXT, Kind, List, Member, Object, Others, Rule, at_least, between, optional, required,
    text, text_or_empty,
};

/// A core event type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CoreEvent {
    /// `aaep:agent.session.started`
    SessionStarted,
    /// `aaep:agent.session.completed`
    SessionCompleted,
    /// `aaep:agent.session.errored`
    SessionErrored,
    /// `aaep:agent.session.cancelled`
    SessionCancelled,
    /// `aaep:agent.state.changed`
    StateChanged,
    /// `aaep:agent.progress.updated`
    ProgressUpdated,
    /// `aaep:agent.tool.invoked`
    ToolInvoked,
    /// `aaep:agent.tool.completed`
    ToolCompleted,
    /// `aaep:agent.output.streaming`
    OutputStreaming,
    /// `aaep:agent.awaiting.confirmation`
    AwaitingConfirmation,
    /// `aaep:agent.awaiting.clarification`
    AwaitingClarification,
    /// `aaep:agent.handoff.requested`
    HandoffRequested,
}

impl CoreEvent {
    /// All twelve, in the order of the specification.
    pub const ALL: [Self; 12] = [
        Self::SessionStarted,
        Self::SessionCompleted,
        Self::SessionErrored,
        Self::SessionCancelled,
        Self::StateChanged,
        Self::ProgressUpdated,
        Self::ToolInvoked,
        Self::ToolCompleted,
        Self::OutputStreaming,
        Self::AwaitingConfirmation,
        Self::AwaitingClarification,
        Self::HandoffRequested,
    ];

    /// The value of `type` on such an event.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::SessionStarted => "aaep:agent.session.started",
            Self::SessionCompleted => "aaep:agent.session.completed",
            Self::SessionErrored => "aaep:agent.session.errored",
            Self::SessionCancelled => "aaep:agent.session.cancelled",
            Self::StateChanged => "aaep:agent.state.changed",
            Self::ProgressUpdated => "aaep:agent.progress.updated",
            Self::ToolInvoked => "aaep:agent.tool.invoked",
            Self::ToolCompleted => "aaep:agent.tool.completed",
            Self::OutputStreaming => "aaep:agent.output.streaming",
            Self::AwaitingConfirmation => "aaep:agent.awaiting.confirmation",
            Self::AwaitingClarification => "aaep:agent.awaiting.clarification",
            Self::HandoffRequested => "aaep:agent.handoff.requested",
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::SessionStarted => "core/agent.session.started.schema.json",
            Self::SessionCompleted => "core/agent.session.completed.schema.json",
            Self::SessionErrored => "core/agent.session.errored.schema.json",
            Self::SessionCancelled => "core/agent.session.cancelled.schema.json",
            Self::StateChanged => "core/agent.state.changed.schema.json",
            Self::ProgressUpdated => "core/agent.progress.updated.schema.json",
            Self::ToolInvoked => "core/agent.tool.invoked.schema.json",
            Self::ToolCompleted => "core/agent.tool.completed.schema.json",
            Self::OutputStreaming => "core/agent.output.streaming.schema.json",
            Self::AwaitingConfirmation => "core/agent.awaiting.confirmation.schema.json",
            Self::AwaitingClarification => "core/agent.awaiting.clarification.schema.json",
            Self::HandoffRequested => "core/agent.handoff.requested.schema.json",
        }
    }

    pub(super) fn payload(self) -> Object {
        let members: &[Member] = match self {
            Self::SessionStarted => &SESSION_STARTED,
            Self::SessionCompleted => &SESSION_COMPLETED,
            Self::SessionErrored => &SESSION_ERRORED,
            Self::SessionCancelled => &SESSION_CANCELLED,
            Self::StateChanged => &STATE_CHANGED,
            Self::ProgressUpdated => &PROGRESS_UPDATED,
            Self::ToolInvoked => &TOOL_INVOKED,
            Self::ToolCompleted => &TOOL_COMPLETED,
            Self::OutputStreaming => &OUTPUT_STREAMING,
            Self::AwaitingConfirmation => &AWAITING_CONFIRMATION,
            Self::AwaitingClarification => &AWAITING_CLARIFICATION,
            Self::HandoffRequested => &HANDOFF_REQUESTED,
        };
        let rule =
            (self == Self::AwaitingConfirmation).then_some(Rule::IrreversibleDefaultsToReject);
        Object { shared: &ENVELOPE_ROWS, members, others: Others::Anything, rule }
    }
}

/// A day, in milliseconds: the longest duration the schemas allow.
const DURATION_MS: Kind = between(0, 86_400_000);

/// From a second to a day: how long a question may wait.
const TIMEOUT_SECONDS: Kind = between(1, 86_400);

/// Events that need the user now say so, if they say anything of their urgency.
const CRITICAL: Member = optional("urgency", Kind::Exactly("critical"));

const SUMMARY_NORMAL_REQUIRED: Member = required("summary_normal", LONG_TEXT);
const SUMMARY_NORMAL: Member = optional("summary_normal", LONG_TEXT);
const SUMMARY_TERSE: Member = optional("summary_terse", PARAGRAPHS);
const SUMMARY_DETAILED: Member = optional("summary_detailed", LONG_TEXT);

const REPLY_TOKEN: Member = required("reply_token", Kind::Shaped(Shape::ReplyToken));
const TOOL: Member = required("tool", Kind::Shaped(Shape::ToolName));
const TOOL_CALL_ID: Member = optional("tool_call_id", Kind::Shaped(Shape::ToolCallId));

static SESSION_STARTED: [Member; 8] = [
    required("type", Kind::Exactly("aaep:agent.session.started")),
    SUMMARY_NORMAL_REQUIRED,
    SUMMARY_TERSE,
    SUMMARY_DETAILED,
    optional("expected_duration_ms", DURATION_MS),
    optional("requested_by", NAME),
    optional("request_text", text_or_empty(16_384)),
    optional(
        "tools_available",
        Kind::List(&List { item: NAME, min: 0, max: Some(256), unique: true }),
    ),
];

static SESSION_COMPLETED: [Member; 8] = [
    required("type", Kind::Exactly("aaep:agent.session.completed")),
    SUMMARY_NORMAL_REQUIRED,
    SUMMARY_TERSE,
    SUMMARY_DETAILED,
    optional("duration_ms", DURATION_MS),
    optional("tool_invocations_count", at_least(0)),
    optional("output_summary", text_or_empty(16_384)),
    optional("result_uri", Kind::Uri),
];

static SESSION_ERRORED: [Member; 10] = [
    required("type", Kind::Exactly("aaep:agent.session.errored")),
    CRITICAL,
    required(
        "error_category",
        Kind::OneOf(&["transient", "permanent", "requires_user", "unknown"]),
    ),
    SUMMARY_NORMAL_REQUIRED,
    SUMMARY_TERSE,
    SUMMARY_DETAILED,
    optional("error_code", Kind::Shaped(Shape::ErrorCode)),
    optional("error_uri", Kind::Uri),
    optional("recoverable", Kind::Boolean),
    optional("remediation_hint", PARAGRAPHS),
];

static SESSION_CANCELLED: [Member; 7] = [
    required("type", Kind::Exactly("aaep:agent.session.cancelled")),
    required("cancelled_by", Kind::OneOf(&["user", "producer", "timeout", "system"])),
    SUMMARY_NORMAL_REQUIRED,
    SUMMARY_TERSE,
    SUMMARY_DETAILED,
    optional("cancellation_reason", Kind::Shaped(Shape::CancellationReason)),
    optional("partial_result", text_or_empty(16_384)),
];

static STATE_CHANGED: [Member; 7] = [
    required("type", Kind::Exactly("aaep:agent.state.changed")),
    required("from_state", text(64)),
    required("to_state", text(64)),
    SUMMARY_TERSE,
    SUMMARY_NORMAL,
    SUMMARY_DETAILED,
    optional("expected_duration_ms", DURATION_MS),
];

static PROGRESS_UPDATED: [Member; 6] = [
    required("type", Kind::Exactly("aaep:agent.progress.updated")),
    required("progress", Kind::Object(&PROGRESS)),
    SUMMARY_TERSE,
    SUMMARY_NORMAL,
    SUMMARY_DETAILED,
    optional("eta_ms", DURATION_MS),
];

static PROGRESS: Object = Object {
    shared: &[],
    members: &[
        optional("percent", Kind::Number { min: 0, max: 100 }),
        optional("step", at_least(1)),
        optional("total_steps", at_least(1)),
        optional("description", PARAGRAPHS),
    ],
    others: Others::Forbidden,
    rule: Some(Rule::NotEmpty),
};

static TOOL_INVOKED: [Member; 11] = [
    required("type", Kind::Exactly("aaep:agent.tool.invoked")),
    TOOL,
    SUMMARY_NORMAL_REQUIRED,
    SUMMARY_TERSE,
    SUMMARY_DETAILED,
    optional("description", PARAGRAPHS),
    optional("args_summary", text_or_empty(16_384)),
    optional("expected_duration_ms", DURATION_MS),
    optional("risk_level", LOW_TO_HIGH),
    optional("irreversible", Kind::Boolean),
    TOOL_CALL_ID,
];

static TOOL_COMPLETED: [Member; 9] = [
    required("type", Kind::Exactly("aaep:agent.tool.completed")),
    TOOL,
    required("status", Kind::OneOf(&["success", "error", "timeout"])),
    TOOL_CALL_ID,
    optional("duration_ms", DURATION_MS),
    SUMMARY_TERSE,
    SUMMARY_NORMAL,
    SUMMARY_DETAILED,
    optional("error_message", PARAGRAPHS),
];

static OUTPUT_STREAMING: [Member; 8] = [
    required("type", Kind::Exactly("aaep:agent.output.streaming")),
    required("chunk", text_or_empty(16_384)),
    required("position", at_least(0)),
    required("complete", Kind::Boolean),
    optional("coalesce_hint", BOUNDARY),
    optional("output_id", Kind::Shaped(Shape::OutputId)),
    optional("content_type", Kind::Shaped(Shape::MediaType)),
    optional("language", LANGUAGE),
];

static AWAITING_CONFIRMATION: [Member; 15] = [
    required("type", Kind::Exactly("aaep:agent.awaiting.confirmation")),
    CRITICAL,
    required("action", LONG_TEXT),
    required("consequence", LONG_TEXT),
    REPLY_TOKEN,
    required("timeout_seconds", TIMEOUT_SECONDS),
    required("default_decision", DECISION),
    SUMMARY_TERSE,
    SUMMARY_NORMAL,
    SUMMARY_DETAILED,
    optional("risk_level", LOW_TO_HIGH),
    optional("irreversible", Kind::Boolean),
    optional(
        "reversibility",
        Kind::OneOf(&["reversible", "reversible_with_effort", "irreversible"]),
    ),
    optional(
        "allowed_replies",
        Kind::List(&List { item: ANY_TEXT, min: 1, max: Some(32), unique: true }),
    ),
    optional("extra_context", Kind::AnyObject),
];

static AWAITING_CLARIFICATION: [Member; 12] = [
    required("type", Kind::Exactly("aaep:agent.awaiting.clarification")),
    CRITICAL,
    required("question", LONG_TEXT),
    REPLY_TOKEN,
    required("timeout_seconds", TIMEOUT_SECONDS),
    SUMMARY_TERSE,
    SUMMARY_NORMAL,
    SUMMARY_DETAILED,
    optional(
        "accepted_response_kinds",
        Kind::List(&List {
            item: Kind::OneOf(&["freetext", "yes_no", "multiple_choice", "numeric"]),
            min: 1,
            max: Some(4),
            unique: true,
        }),
    ),
    optional(
        "choices",
        Kind::List(&List { item: Kind::Object(&CHOICE), min: 2, max: Some(32), unique: true }),
    ),
    optional("context", PARAGRAPHS),
    optional("default_response", text_or_empty(4_096)),
];

static CHOICE: Object = Object {
    shared: &[],
    members: &[required("value", NAME), required("label", text(1_024))],
    others: Others::Forbidden,
    rule: None,
};

static HANDOFF_REQUESTED: [Member; 10] = [
    required("type", Kind::Exactly("aaep:agent.handoff.requested")),
    CRITICAL,
    required("reason", LONG_TEXT),
    required("target_kind", Kind::OneOf(&["human", "specialist_agent", "escalation_queue"])),
    optional("target_uri", Kind::Uri),
    optional("packaged_context", Kind::AnyObject),
    optional("urgency_for_handoff", LOW_TO_HIGH),
    SUMMARY_TERSE,
    SUMMARY_NORMAL,
    SUMMARY_DETAILED,
];
