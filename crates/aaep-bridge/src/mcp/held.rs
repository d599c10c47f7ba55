//! A call that waits: what the person is told of it, and what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use aaep_agent::{Call, Confirmation, Error, Kind, NotApproved, RiskLevel, Session};
use aaep_policy::{Ruling, Verdict};
use aaep_types::{Decision, Reversibility};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::asking::Asking;
use super::message::{Hint, ROUNDS, ToolCall, again, key, not_done, told, waiting};
use super::{CONTINUED, HELD, Running, State, lock};
use crate::act::shown;
use crate::consent;

/// How soon a client hears that something waits, and how often then.
const FIRST_PULSE: Duration = Duration::from_secs(1);
const PULSE: Duration = Duration::from_secs(10);

/// The largest arguments that people are asked about, in bytes.
const MAX_ASKED_BYTES: usize = 512 * 1024;

impl State {
    /// Decides one call, and passes it on or answers it.
    pub(super) async fn decide(self: Arc<Self>, call: ToolCall, line: Vec<u8>) {
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
                let running = Running { call: running, asked: call, line: line.clone(), rounds: 0 };
                lock(&self.running).insert(id.clone(), running);
                if self.forward(&line).await.is_err() {
                    lock(&self.running).remove(&id);
                }
            }
            Err(reason) => drop(self.say(&not_done(&call.id, &reason)).await),
        }
    }

    /// A question of the server, to be put to the person. Whether the client gets it instead.
    pub(super) async fn server_asked(
        self: &Arc<Self>,
        id: Value,
        params: Value,
        line: Vec<u8>,
    ) -> bool {
        if lock(&self.asking).len() >= HELD {
            let _ = self
                .forward(told(&id, &json!({ "action": "cancel" })).to_string().as_bytes())
                .await;
            return false;
        }
        let (state, name) = (self.clone(), key(&id));
        let mut tasks = self.tasks.lock().await;
        while tasks.try_join_next().is_some() {}
        let mut asking = lock(&self.asking);
        let task = tasks.spawn(async move {
            let result = match state.session().await {
                Ok(session) => {
                    let server =
                        id.as_str().map_or(state.proxy.name.as_str(), |id| state.named(id).0);
                    state.asking(&session, server).elicit(&params).await
                }
                // Nobody can be asked here. The client can, if it says so.
                Err(_) if state.client_asks.load(std::sync::atomic::Ordering::Relaxed) => {
                    lock(&state.asking).remove(&key(&id));
                    let _ = super::write(&mut **state.client.lock().await, &line).await;
                    return;
                }
                Err(_) => json!({ "action": "cancel" }),
            };
            if lock(&state.asking).remove(&key(&id)).is_some() {
                let _ = state.forward(told(&id, &result).to_string().as_bytes()).await;
            }
        });
        asking.insert(name, task);
        false
    }

    fn asking<'a>(&self, session: &'a Session, server: &'a str) -> Asking<'a> {
        Asking { session, server, seconds: self.seconds() }
    }

    /// What the server wants to know before it answers a call. Whether the client gets it instead.
    pub(super) async fn server_wants(
        self: &Arc<Self>,
        id: String,
        asks: Vec<(String, Value)>,
        all_ours: bool,
        given: Option<Value>,
        line: Vec<u8>,
    ) -> bool {
        let Some(mut running) = lock(&self.running).remove(&id) else { return true };
        running.rounds += 1;
        if !all_ours || running.rounds > ROUNDS {
            self.comes_back(running, given).await;
            return true;
        }
        let state = self.clone();
        let mut tasks = self.tasks.lock().await;
        while tasks.try_join_next().is_some() {}
        let mut held = lock(&self.held);
        let name = id.clone();
        let task = tasks.spawn(async move {
            let session = match state.session().await {
                Ok(session) => session,
                Err(_) => {
                    lock(&state.held).remove(&id);
                    state.comes_back(running, given).await;
                    let _ = super::write(&mut **state.client.lock().await, &line).await;
                    return;
                }
            };
            let mut answers = Map::new();
            let asking = async {
                let (server, _) = state.named(&running.asked.tool);
                for (key, params) in &asks {
                    let result = state.asking(&session, server).elicit(params).await;
                    answers.insert(key.clone(), result);
                }
            };
            tokio::select! {
                () = asking => {}
                () = state.pulse(&running.asked) => return,
            }
            // The client has given it up meanwhile.
            if lock(&state.held).remove(&id).is_none() {
                return;
            }
            let text = String::from_utf8_lossy(&running.line).into_owned();
            let Some(next) = again(text.trim(), &Value::Object(answers), given.as_ref()) else {
                return;
            };
            lock(&state.running).insert(id, running);
            let _ = state.forward(next.as_bytes()).await;
        });
        held.insert(name, task);
        false
    }

    /// The client will come back to this call itself: it need not be asked again then.
    async fn comes_back(&self, running: Running, given: Option<Value>) {
        if let Some(call) = running.call {
            let _ = call.succeed("The server wants to know something first.").await;
        }
        let mut continued = lock(&self.continued);
        if continued.len() >= CONTINUED {
            continued.remove(0);
        }
        continued.push((running.asked.what(), given));
    }

    fn seconds(&self) -> u32 {
        u32::try_from(self.proxy.timeout.as_secs()).unwrap_or(u32::MAX).clamp(1, 86_400)
    }

    /// Says every now and then that the call waits, if the client wants to know.
    async fn pulse(&self, call: &ToolCall) {
        let (mut count, mut pause) = (0, FIRST_PULSE);
        loop {
            tokio::time::sleep(pause).await;
            (count, pause) = (count + 1, PULSE);
            if let Some(token) = &call.progress
                && self.say(&waiting(token, count)).await.is_err()
            {
                return;
            }
        }
    }

    /// The call as the hub knows it, if it may run; otherwise why not.
    async fn ask(&self, call: &ToolCall) -> Result<Option<Call>, String> {
        let (server, plain) = self.named(&call.tool);
        let tool = wire_name(server, plain);
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
        // The hook has told that it runs, and will tell how it ended.
        if self.is_given(call).await {
            return Ok(None);
        }
        self.confirm(&session, &tool, arguments, call, &ruling).await.map(Some)
    }

    /// Whether the person has just said yes to this very call in the program's hook.
    async fn is_given(&self, call: &ToolCall) -> bool {
        let (Some(given), Some(id)) = (&self.proxy.given, &call.call_id) else { return false };
        let agent = self.hub.lock().await.as_ref().map(|(agent, _)| agent.clone());
        let Some(agent) = agent else { return false };
        // Programs write the server's name before the tool's.
        let fits = |tool: &str| {
            let server = tool.strip_suffix(call.tool.as_str());
            server.is_some_and(|server| server.starts_with("mcp__") && server.ends_with("__"))
        };
        given.take(&agent, id, &call.arguments, fits).await
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
        let hint = lock(&self.hints).get(&call.tool).copied().unwrap_or(Hint::Destroys);
        let (server, plain) = self.named(&call.tool);
        let action = format!("Use {} of {}.", shown(plain), shown(server));
        let (consequence, risk) = match hint {
            Hint::Looks => {
                ("The server says that it only looks. Nobody has checked that.", RiskLevel::Medium)
            }
            Hint::Adds => (
                "The server says that it destroys nothing. Nobody has checked that.",
                RiskLevel::High,
            ),
            Hint::Destroys => ("Nobody has said that this can be undone.", RiskLevel::High),
        };
        let request = Confirmation::irreversible(tool, action, consequence).risk(risk);
        self.settle(session, request.arguments_json(arguments)).await
    }

    async fn settle<K: Kind>(
        &self,
        session: &Session,
        request: Confirmation<K>,
    ) -> Result<Call, String> {
        let seconds = self.seconds();
        let until = Instant::now() + Duration::from_secs(seconds.into());
        let request = request.timeout_seconds(seconds);
        let parked = session.park((), request).await.map_err(|error| unasked(&error))?;
        let decided = consent::decision(&parked, until).await;
        let approval = decided.map_err(|refusal| match refusal {
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

    /// The server of a tool, and what it calls it.
    fn named<'a>(&'a self, tool: &'a str) -> (&'a str, &'a str) {
        super::several::split(&self.proxy.servers, tool).unwrap_or((&self.proxy.name, tool))
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
