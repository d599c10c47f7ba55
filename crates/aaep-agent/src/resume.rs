//! Taking up a session again after a restart of this process.

use aaep_types::{OutputId, SessionId};
use serde_json::Value;

use crate::agent::Agent;
use crate::call::Call;
use crate::error::Error;
use crate::line::Line;
use crate::session::Session;

/// A session that an earlier run of this process opened, and what it left open.
#[derive(Debug)]
pub struct Resumed {
    /// The session.
    pub session: Session,
    /// Calls that were begun and not completed. Nobody here knows how they ended: complete each with
    /// what you found out, or drop them, which says that it is unknown (I11).
    pub calls: Vec<Call>,
    /// Outputs that are not complete, and where each goes on: see
    /// [`Session::output_at`](crate::Session::output_at).
    pub outputs: Vec<(OutputId, u64)>,
}

impl Agent {
    // enforces: I3, I11
    /// Takes up a session again that an earlier run of this process opened. Parked actions are taken
    /// up with their tickets ([`Session::park_again`]), questions with the names of their requests
    /// ([`Session::pose_again`]).
    ///
    /// An error says that the session is over if its lease ran out meanwhile.
    pub async fn resume(&self, session: SessionId) -> Result<Resumed, Error> {
        let answer = self.0.get(&format!("agent/sessions/{session}")).await;
        let answer = answer.map_err(|error| match error {
            Error::Refused(refused) if refused.status == 404 => Error::SessionOver,
            other => other,
        })?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|_| Error::odd_answer())?;
        let line = Line::new(self.0.clone(), session, None);
        let list = |name: &str| answer.get(name).and_then(Value::as_array).into_iter().flatten();
        let text =
            |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let calls = list("calls").filter_map(|call| {
            Some(Call::new(line.clone(), text(call, "tool")?, text(call, "tool_call_id")?))
        });
        let outputs = list("outputs").filter_map(|output| {
            let id = OutputId::parse(&text(output, "output_id")?).ok()?;
            Some((id, output.get("position").and_then(Value::as_u64)?))
        });
        Ok(Resumed {
            calls: calls.collect(),
            outputs: outputs.collect(),
            session: Session::new(line.clone()),
        })
    }
}
