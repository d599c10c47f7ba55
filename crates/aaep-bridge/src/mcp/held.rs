//! A call that waits: what the person is told of it, and what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use aaep_agent::{Call, Confirmation, Error, Kind, NotApproved, RiskLevel, Session};
use aaep_policy::{Ruling, Verdict};
use aaep_types::{Decision, Reversibility};
use tokio::io::AsyncWrite;

use super::message::{ToolCall, key, not_done, waiting};
use super::{Server, State, forward, lock};
use crate::act::shown;

/// How often a client hears that something waits.
const PULSE: Duration = Duration::from_secs(10);

/// The largest arguments that people are asked about, in bytes.
const MAX_ASKED_BYTES: usize = 512 * 1024;

impl<W: AsyncWrite + Unpin + Send + 'static> State<W> {
    /// Decides one call, and passes it on or answers it.
    pub(super) async fn decide<S>(
        self: Arc<Self>,
        call: ToolCall,
        line: Vec<u8>,
        server: &Server<S>,
    ) where
        S: AsyncWrite + Unpin + Send + 'static,
    {
        let decided = tokio::select! {
            decided = self.ask(&call) => decided,
            () = self.pulse(&call) => return,
        };
        let id = key(&call.id);
        // The client has given it up meanwhile.
        if lock(&self.held).remove(&id).is_none() {
            return;
        }
        match decided {
            Ok(running) => {
                if let Some(running) = running {
                    lock(&self.running).insert(id, running);
                }
                if forward(server, &line).await.is_err() {
                    lock(&self.running).remove(&key(&call.id));
                }
            }
            Err(reason) => drop(self.say(&not_done(&call.id, &reason)).await),
        }
    }

    /// Says every now and then that the call waits, if the client wants to know.
    async fn pulse(&self, call: &ToolCall) {
        let mut count = 0;
        loop {
            tokio::time::sleep(PULSE).await;
            count += 1;
            if let Some(token) = &call.progress
                && self.say(&waiting(token, count)).await.is_err()
            {
                return;
            }
        }
    }

    /// The call as the hub knows it, if it may run; otherwise why not.
    async fn ask(&self, call: &ToolCall) -> Result<Option<Call>, String> {
        let tool = wire_name(&self.proxy.name, &call.tool);
        let arguments = call.arguments.to_string();
        let ruling = self.proxy.policy.decide(&tool, &arguments);
        if ruling.verdict == Verdict::Silent {
            return Ok(None);
        }
        let session = self.session().await?;
        if ruling.verdict == Verdict::Announce {
            let step = session.tool(&tool).summary(ruling.normal()).risk(ruling.risk);
            match step.arguments_json(arguments.as_str()).begin().await {
                Ok(running) => return Ok(Some(running)),
                // A policy of the hub wants it asked.
                Err(Error::Refused(refused)) if refused.status == 409 => {}
                Err(error) => return Err(unasked(&error)),
            }
        }
        if arguments.len() > MAX_ASKED_BYTES {
            return Err("It is not done: its arguments are too large to be asked about. Make smaller steps.".into());
        }
        self.confirm(&session, &tool, arguments, call, &ruling).await.map(Some)
    }

    async fn confirm(
        &self,
        session: &Session,
        tool: &str,
        arguments: String,
        call: &ToolCall,
        ruling: &Ruling,
    ) -> Result<Call, String> {
        if ruling.rule.is_some() {
            let (action, consequence) = (&ruling.action, &ruling.consequence);
            return match ruling.reversibility {
                Reversibility::Irreversible => {
                    let request = Confirmation::irreversible(tool, action, consequence);
                    self.settle(session, request.risk(ruling.risk).arguments_json(arguments)).await
                }
                Reversibility::ReversibleWithEffort => {
                    let request = Confirmation::with_effort(tool, action, consequence);
                    self.settle(session, request.risk(ruling.risk).arguments_json(arguments)).await
                }
                Reversibility::Reversible => {
                    let request = Confirmation::reversible(tool, action, consequence);
                    let request = match ruling.default {
                        Decision::Accept => request.accept_on_silence(),
                        Decision::Reject => request,
                    };
                    self.settle(session, request.risk(ruling.risk).arguments_json(arguments)).await
                }
            };
        }
        // What a server says of its tools is a hint: it makes the words milder, never the question.
        let reads = lock(&self.readers).get(&call.tool).copied().unwrap_or(false);
        let action = format!("Use {} of {}.", shown(&call.tool), shown(&self.proxy.name));
        let (consequence, risk) = match reads {
            true => {
                ("The server says that it only looks. Nobody has checked that.", RiskLevel::Medium)
            }
            false => ("Nobody has said that this can be undone.", RiskLevel::High),
        };
        let request = Confirmation::irreversible(tool, action, consequence).risk(risk);
        self.settle(session, request.arguments_json(arguments)).await
    }

    async fn settle<K: Kind>(
        &self,
        session: &Session,
        request: Confirmation<K>,
    ) -> Result<Call, String> {
        let seconds = u32::try_from(self.proxy.timeout.as_secs()).unwrap_or(u32::MAX);
        let request = request.timeout_seconds(seconds.clamp(1, 86_400));
        let parked = session.park((), request).await.map_err(|error| unasked(&error))?;
        let approval = parked.decision().await.map_err(|refusal| match refusal {
            Error::NotApproved(NotApproved::Rejected { .. }) => {
                "The person said no. Do not try it in another way; ask what they want instead."
                    .to_owned()
            }
            Error::NotApproved(NotApproved::TimedOut) => {
                "Nobody answered in time, so it is not done.".to_owned()
            }
            error if error.is_unavailable() => unasked(&error),
            other => format!("It is not done: {other}"),
        })?;
        let ((), running) =
            session.invoke(parked, approval).await.map_err(|error| unasked(&error))?;
        Ok(running)
    }

    /// The session of this server, opened with its first call, and again after it ended.
    async fn session(&self) -> Result<Arc<Session>, String> {
        let mut hub = self.hub.lock().await;
        if let Some((_, session)) = hub.as_ref().filter(|(_, session)| !session.is_stopped()) {
            return Ok(session.clone());
        }
        let agent = match hub.take() {
            Some((agent, _)) => agent,
            None => {
                // It may have to wait until a hub has started.
                let connect = self.proxy.connect.clone();
                let connected = tokio::task::spawn_blocking(move || connect()).await;
                let connected = connected.unwrap_or_else(|error| Err(error.to_string()));
                connected
                    .map_err(|why| format!("Nobody could be asked, so it is not done: {why}"))?
            }
        };
        let about = format!("An agent uses the server {}.", shown(&self.proxy.name));
        let session = agent.session(about).open().await.map_err(|error| unasked(&error))?;
        let session = Arc::new(session);
        *hub = Some((agent, session.clone()));
        Ok(session)
    }
}

/// The tool as the protocol and policies know it: `files.read_text_file`. What a name may not hold
/// becomes an underscore; people hear it as the client wrote it.
fn wire_name(server: &str, tool: &str) -> String {
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name = format!("{server}.{tool}");
    let mut name: String = name.chars().map(|c| if sound(c) { c } else { '_' }).take(256).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.replace_range(..1, "_");
    }
    name
}

fn unasked(error: &Error) -> String {
    format!("Nobody could be asked, so it is not done: {}", shown(&error.report()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_name_that_the_protocol_takes() {
        let long = "x".repeat(500);
        for (server, tool) in [
            ("files", "read_text_file"),
            ("", ""),
            ("7", "a b"),
            ("ä/b", "c\u{202e}"),
            ("f", long.as_str()),
        ] {
            let name = wire_name(server, tool);
            assert!(aaep_types::ToolName::parse(&name).is_ok(), "{name}");
        }
        assert_eq!(wire_name("files", "read-it"), "files.read-it");
    }
}
