//! Taking up a session again after a restart of this process.

use std::time::Duration;

use aaep_types::OutputId;
use aaep_types::agent_api::{OpenOutput, OpenTool};

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
        let state = self.0.session_state(session, Duration::ZERO, secret.as_ref()).await;
        let state = state.map_err(|error| match error {
            Error::Refused(refused) if refused.status == 404 => Error::SessionOver,
            other => other,
        })?;
        let call = |call: OpenTool| OpenCall {
            tool: call.tool.as_ref().to_owned(),
            id: call.tool_call_id.to_string(),
        };
        let output = |output: OpenOutput| Some((output.output_id?, output.position));
        Ok(Resumed {
            calls: state.calls.into_iter().map(call).collect(),
            outputs: state.outputs.into_iter().filter_map(output).collect(),
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
