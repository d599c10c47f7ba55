//! Taking up a session again after a restart of this process.

use aaep_types::OutputId;
use serde_json::Value;

use crate::agent::Agent;
use crate::call::Call;
use crate::error::Error;
use crate::line::Line;
use crate::session::Session;
use crate::ticket::SessionTicket;

/// A session that an earlier run of this process opened, and what it left open.
#[derive(Debug)]
pub struct Resumed {
    /// The session.
    pub session: Session,
    /// Calls that were begun and not completed.
    pub calls: Vec<OpenCall>,
    /// Outputs that are not complete, and where each goes on, in Unicode scalar values: see
    /// [`Session::output_at`].
    pub outputs: Vec<(OutputId, u64)>,
}

/// A call that an earlier run of this process began. Nobody here knows how it ended, or whether it
/// did. [Take it up](Session::take_up) and complete it with what you found out; otherwise the hub
/// says at the session's end that its outcome is unknown (I11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The tool.
    pub tool: String,
    /// The call's id.
    pub id: String,
}

impl Agent {
    // enforces: I3, I11
    /// Takes up a session again that an earlier run of this process opened. Parked actions are taken
    /// up with their tickets ([`Session::park_again`]), questions with the names of their requests
    /// ([`Session::pose_again`]).
    ///
    /// The session is named by its [ticket](Session::ticket), or by that of something parked in it.
    /// For an agent with a token its id is enough. If its lease ran out meanwhile, the session is
    /// over, and the error says so.
    pub async fn resume(&self, session: impl Into<SessionTicket>) -> Result<Resumed, Error> {
        let SessionTicket { id: session, secret } = session.into();
        let secret = secret.or_else(|| self.0.secret.clone());
        let answer = self.0.get(&format!("agent/sessions/{session}"), secret.as_ref()).await;
        let answer = answer.map_err(|error| match error {
            Error::Refused(refused) if refused.status == 404 => Error::SessionOver,
            other => other,
        })?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|_| Error::odd_reading())?;
        let list = |name: &str| answer.get(name).and_then(Value::as_array).into_iter().flatten();
        let calls = list("calls").filter_map(|call| {
            Some(OpenCall { tool: text(call, "tool")?, id: text(call, "tool_call_id")? })
        });
        let outputs = list("outputs").filter_map(|output| {
            let id = OutputId::parse(&text(output, "output_id")?).ok()?;
            Some((id, output.get("position").and_then(Value::as_u64)?))
        });
        Ok(Resumed {
            calls: calls.collect(),
            outputs: outputs.collect(),
            session: Session::new(Line::with_secret(self.0.clone(), session, secret, None)),
        })
    }
}

impl Session {
    /// Takes up a call of an earlier run of this process, to complete it.
    pub fn take_up(&self, call: OpenCall) -> Call {
        Call::new(self.line.clone(), call.tool, call.id)
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}
