//! What people say to the agent.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep_types::SessionId;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::agent::{Inner, LONGEST_WAIT};
use crate::error::Error;
use crate::line::not_too_soon;

/// Something that somebody said to the agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// A user wants something.
    Said(String),
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
    waiting: VecDeque<Input>,
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
    pub async fn next(&mut self) -> Result<Input, Error> {
        let path = format!("agent/inputs?wait={}", LONGEST_WAIT.as_secs());
        loop {
            if let Some(input) = self.waiting.pop_front() {
                return Ok(input);
            }
            let asked = Instant::now();
            match self.agent.get(&path, self.agent.secret.as_ref()).await {
                Ok(answer) => self.waiting.extend(read(&answer)),
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

fn read(answer: &[u8]) -> Vec<Input> {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let inputs = answer.get("inputs").and_then(Value::as_array).cloned().unwrap_or_default();
    inputs.into_iter().map(input).collect()
}

fn input(value: Value) -> Input {
    let text = |name: &str| value.get(name).and_then(Value::as_str);
    match (text("kind"), text("text"), text("session_id")) {
        (Some("user_input"), Some(said), _) => Input::Said(said.to_owned()),
        (Some("session_ended"), _, Some(session)) => match SessionId::parse(session) {
            Ok(session) => Input::SessionEnded(session),
            Err(_) => Input::Other(value),
        },
        _ => Input::Other(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_read_and_what_is_new_is_passed_on() {
        let answer = br#"{"inputs":[{"kind":"user_input","text":"hi"},
            {"kind":"session_ended","session_id":"sess_1"},{"kind":"wave"}]}"#;
        let inputs = read(answer);
        assert_eq!(inputs[0], Input::Said("hi".into()));
        assert_eq!(inputs[1], Input::SessionEnded(SessionId::parse("sess_1").unwrap()));
        assert!(matches!(inputs[2], Input::Other(_)));
        assert!(read(b"nonsense").is_empty());
    }
}
