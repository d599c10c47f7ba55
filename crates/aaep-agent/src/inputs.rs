//! What people say to the agent.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep_types::SessionId;
use aaep_types::agent_api::AgentInput;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::agent::Inner;
use crate::error::Error;
use crate::line::not_too_soon;

/// Something that somebody said to the agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InputEvent {
    /// A user wants something.
    UserInput(String),
    /// A session ended without its agent; the session itself knows it too.
    SessionEnded(SessionId),
    /// Something that this version does not know.
    Other(Value),
}

/// What people say to the agent, one after the other. The hub keeps it from the first
/// [`next`](Self::next) on, and hands each thing out once: what is under way while the connection
/// breaks is lost, and its user says it again.
#[derive(Debug)]
pub struct Inputs {
    agent: Arc<Inner>,
    waiting: VecDeque<InputEvent>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").finish_non_exhaustive()
    }
}

impl Inputs {
    pub(crate) fn new(agent: Arc<Inner>) -> Self {
        Self { agent, waiting: VecDeque::new() }
    }

    /// Waits for the next thing. It goes on through restarts of the hub; an error is a refusal, which
    /// waiting does not mend.
    pub async fn next(&mut self) -> Result<InputEvent, Error> {
        loop {
            if let Some(input) = self.waiting.pop_front() {
                return Ok(input);
            }
            let asked = Instant::now();
            match self.agent.inputs().await {
                Ok(inputs) => self.waiting.extend(inputs.into_iter().map(InputEvent::from)),
                Err(error) if error.is_unavailable() => {
                    tracing::debug!(why = error.report(), "the hub is asked for input again");
                    sleep(std::time::Duration::from_secs(1)).await;
                }
                Err(error) => return Err(error),
            }
            if self.waiting.is_empty() {
                not_too_soon(asked).await;
            }
        }
    }
}

impl From<AgentInput> for InputEvent {
    fn from(input: AgentInput) -> Self {
        match input {
            AgentInput::UserInput(text) => Self::UserInput(text.as_ref().to_owned()),
            AgentInput::SessionEnded(session) => Self::SessionEnded(session),
            other => Self::Other(serde_json::from_str(&other.to_json()).unwrap_or_default()),
        }
    }
}
