//! What agents are answered: the engine's values in the words of the agent API.

use aaep_engine::{Outcome, RequestId, SessionSnapshot, Status, View};
use aaep_types::SessionId;
use aaep_types::agent_api::{
    EventPosted, OpenOutput, OpenTool, RequestState, RequestStatus, SessionOpened, SessionState,
};

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedRequest {
    /// The request.
    pub state: RequestState,
    /// Whether the same was asked already, and waits.
    pub again: bool,
}

/// An answer that is given again when an idempotency key is repeated. What is kept is the status
/// and the body that HTTP has for it.
pub(super) trait Repeatable: Sized {
    fn kept(&self) -> (u16, String);
    fn again(status: u16, answer: &str) -> Option<Self>;
}

impl Repeatable for SessionOpened {
    fn kept(&self) -> (u16, String) {
        (201, self.to_json())
    }

    fn again(_: u16, answer: &str) -> Option<Self> {
        Self::parse(answer.as_bytes())
    }
}

impl Repeatable for EventPosted {
    fn kept(&self) -> (u16, String) {
        (201, self.to_json())
    }

    fn again(_: u16, answer: &str) -> Option<Self> {
        Self::parse(answer.as_bytes())
    }
}

impl Repeatable for AskedRequest {
    fn kept(&self) -> (u16, String) {
        (if self.again { 200 } else { 201 }, self.state.to_json())
    }

    fn again(status: u16, answer: &str) -> Option<Self> {
        Some(Self { state: RequestState::parse(answer.as_bytes())?, again: status == 200 })
    }
}

/// A request as its agent sees it.
pub(super) fn request_state(request: RequestId, view: &View) -> RequestState {
    RequestState {
        request_id: request.to_string(),
        event_id: view.event.id(),
        session_id: view.session,
        digest: view.digest.to_string(),
        deadline: view.deadline,
        status: status(view),
        decided_by: view.decided_by.clone(),
        response: view.response.clone(),
        reply: view.reply.clone(),
    }
}

fn status(view: &View) -> RequestStatus {
    match view.status {
        Status::Pending => RequestStatus::Pending,
        Status::Resolved { outcome: Outcome::TimedOut, .. }
            if !view.confirmation && view.response.is_none() =>
        {
            RequestStatus::Unanswered
        }
        // D11: silence that means yes is a yes to the agent.
        Status::Resolved { outcome: Outcome::TimedOut, runs: true } => RequestStatus::Accepted,
        Status::Resolved { outcome, .. } => match outcome {
            Outcome::Accepted => RequestStatus::Accepted,
            Outcome::Rejected => RequestStatus::Rejected,
            Outcome::TimedOut => RequestStatus::TimedOut,
            Outcome::Cancelled => RequestStatus::Cancelled,
            Outcome::Superseded => RequestStatus::Superseded,
        },
        Status::Expired => RequestStatus::Expired,
        Status::Invoked => RequestStatus::Invoked,
        Status::Completed => RequestStatus::Completed,
        Status::Unknown => RequestStatus::Unknown,
    }
}

/// An open session as its agent sees it.
pub(super) fn session_state(session: SessionId, snapshot: SessionSnapshot) -> SessionState {
    let call = |(tool_call_id, tool)| OpenTool { tool_call_id, tool };
    let output = |(output_id, position)| OpenOutput { output_id, position };
    SessionState {
        session_id: session,
        state: snapshot.state.into_owned(),
        calls: snapshot.calls.into_iter().map(call).collect(),
        outputs: snapshot.outputs.into_iter().map(output).collect(),
    }
}
