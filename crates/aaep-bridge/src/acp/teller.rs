//! Tells what an agent does, and asks its questions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aaep_agent::{Agent, Call, Confirmation, Kind, Output, Progress, Session, ToolStatus};
use aaep_types::Reversibility;
use serde_json::Value;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::message::{Permission, key, skips_asking, text_of};
use super::{Proxy, Wires, judged};
use crate::act::{Judgment, shown};
use crate::place::Scene;

/// How long a hub that was not there is left alone.
const HUB_RESTS: Duration = Duration::from_secs(5);

/// Sessions of the agent at the same time, and calls of tools in one of them, that are followed.
const SESSIONS: usize = 64;
const CALLS: usize = 256;

/// Characters of one thought that are told.
const THOUGHT: usize = 400;

/// The largest arguments that people are asked about, in bytes.
const MAX_ASKED_BYTES: usize = 512 * 1024;

/// Something that was said, for the teller.
#[derive(Debug)]
pub(super) enum Note {
    Name(String),
    Place(String, PathBuf),
    Prompt(String, String),
    Update(String, Value),
    Asked(Permission),
    /// A question was answered elsewhere, or taken back.
    Withdrawn(String),
    Mode(String, String),
    ModeRefused(String, String),
    Cancelled(String),
    TurnEnded(String, Option<String>),
    Lost(u64),
}

/// Whether there is something to tell in an update: the rest is not even kept.
pub(super) fn is_told(update: &Value) -> bool {
    let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
    matches!(
        kind,
        "agent_message_chunk"
            | "agent_thought_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan"
            | "current_mode_update"
    )
}

/// One turn of one session.
struct Turn {
    session: Arc<Session>,
    output: Option<Output>,
    thought: String,
    calls: BTreeMap<String, Known>,
    plan: String,
    /// Stops the agent when the person stops the session.
    watch: JoinHandle<()>,
}

/// What is known of a call of a tool.
#[derive(Default)]
struct Known {
    call: Value,
    running: Option<Call>,
    asked: bool,
    over: bool,
}

/// A question that is put to the person.
struct Open {
    task: JoinHandle<Option<Call>>,
    session: String,
    call: String,
}

pub(super) struct Teller<E, A> {
    proxy: Proxy,
    wires: Arc<Wires<E, A>>,
    agent: Option<Agent>,
    rests_until: Option<Instant>,
    places: BTreeMap<String, PathBuf>,
    turns: BTreeMap<String, Turn>,
    open: BTreeMap<String, Open>,
}

impl<E, A> Teller<E, A>
where
    E: AsyncWrite + Unpin + Send + 'static,
    A: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(proxy: Proxy, wires: Arc<Wires<E, A>>) -> Self {
        let (places, turns, open) = Default::default();
        Self { proxy, wires, agent: None, rests_until: None, places, turns, open }
    }

    pub(super) async fn run(mut self, mut heard: mpsc::Receiver<Note>) {
        while let Some(note) = heard.recv().await {
            self.settle().await;
            // What cannot be told is no reason to hold the agent up; its editor still asks.
            let _ = self.tell(note).await;
        }
        for (_, open) in std::mem::take(&mut self.open) {
            open.task.abort();
            let _ = open.task.await;
        }
        let turns = std::mem::take(&mut self.turns);
        for (_, turn) in turns {
            let words = format!("{} has ended.", self.proxy.name);
            self.end(turn, words).await;
        }
        if let Some(agent) = self.agent {
            agent.close().await;
        }
    }

    /// Waits for a question about this call that is being answered here just now.
    async fn claimed(&mut self, session: &str, update: &Value) {
        let call = update.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        let of = |open: &Open| open.session == session && open.call == call;
        let found = self.open.iter().find(|(_, open)| of(open)).map(|(id, _)| id.clone());
        let Some(id) = found else { return };
        let waits = super::lock(&self.wires.questions).open.contains_key(&id);
        if !waits {
            self.decided(&id).await;
        }
    }

    /// Questions that were decided: their calls run.
    async fn settle(&mut self) {
        let done: Vec<_> = self
            .open
            .iter()
            .filter(|(_, open)| open.task.is_finished())
            .map(|(id, _)| id.clone())
            .collect();
        for id in done {
            self.decided(&id).await;
        }
    }

    async fn decided(&mut self, id: &str) {
        let Some(open) = self.open.remove(id) else { return };
        let Ok(Some(running)) = open.task.await else { return };
        let turn = self.turns.get_mut(&open.session);
        if let Some(known) = turn.and_then(|turn| turn.calls.get_mut(&open.call)) {
            known.running = Some(running);
        }
    }

    async fn tell(&mut self, note: Note) -> Result<(), aaep_agent::Error> {
        match note {
            Note::Name(name) => self.proxy.name = name,
            Note::Place(session, place) => {
                if self.places.len() < SESSIONS {
                    self.places.insert(session, place);
                }
            }
            Note::Prompt(session, text) => {
                if let Some(turn) = self.turns.remove(&session) {
                    let words = format!("{} begins something else.", self.proxy.name);
                    self.end(turn, words).await;
                }
                let about = format!("{}: {}", self.proxy.name, shown(&text));
                self.turn(&session, Some(about)).await;
            }
            Note::Update(session, update) => {
                if self.turn(&session, None).await.is_some() {
                    self.update(&session, &update).await?;
                }
            }
            Note::Asked(asked) => self.asked(asked).await?,
            Note::Withdrawn(id) => {
                if let Some(open) = self.open.remove(&id) {
                    open.task.abort();
                    let _ = open.task.await;
                }
            }
            Note::Mode(session, mode) => {
                let words = match skips_asking(&mode) {
                    Some(what) => format!("From now on {what}: its mode is {}.", shown(&mode)),
                    None => format!("The mode is {}.", shown(&mode)),
                };
                self.say(&session, words).await?;
            }
            Note::ModeRefused(session, mode) => {
                let words =
                    format!("The mode {} was refused: in it the agent asks less.", shown(&mode));
                self.say(&session, words).await?;
            }
            Note::Cancelled(session) => {
                if let Some(turn) = self.turns.get_mut(&session) {
                    turn.flush().await;
                }
            }
            Note::TurnEnded(session, reason) => {
                let Some(turn) = self.turns.remove(&session) else { return Ok(()) };
                let name = &self.proxy.name;
                let words = match reason.as_deref() {
                    Some("end_turn") => format!("{name} is done."),
                    Some("cancelled") => format!("{name} was stopped."),
                    Some("max_tokens" | "max_turn_requests") => {
                        format!("{name} stopped, because it came to its limit.")
                    }
                    Some("refusal") => format!("{name} refuses to go on."),
                    Some(other) => format!("{name} stopped: {}.", shown(other)),
                    None => format!("{name} failed."),
                };
                self.withdraw_of(&session).await;
                self.end(turn, words).await;
            }
            Note::Lost(count) => {
                let sessions: Vec<_> = self.turns.keys().cloned().collect();
                for session in sessions {
                    let words = format!("{count} updates came too quickly, and were not told.");
                    self.say(&session, words).await?;
                }
            }
        }
        Ok(())
    }

    async fn withdraw_of(&mut self, session: &str) {
        self.settle().await;
        let ids: Vec<_> = self
            .open
            .iter()
            .filter(|(_, open)| open.session == session)
            .map(|(id, _)| id.clone())
            .collect();
        for id in ids {
            if let Some(open) = self.open.remove(&id) {
                open.task.abort();
                let _ = open.task.await;
            }
        }
    }

    async fn say(&mut self, session: &str, words: String) -> Result<(), aaep_agent::Error> {
        match self.turn(session, None).await {
            Some(turn) => turn.session.progress(Progress::described(words)).await,
            None => Ok(()),
        }
    }

    async fn hub(&mut self) -> Option<Agent> {
        if let Some(agent) = &self.agent {
            return Some(agent.clone());
        }
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let connect = self.proxy.connect.clone();
        // It may have to wait until a hub has started.
        match tokio::task::spawn_blocking(move || connect()).await {
            Ok(Ok(agent)) => self.agent = Some(agent),
            _ => self.rests_until = Some(Instant::now() + HUB_RESTS),
        }
        self.agent.clone()
    }

    /// The turn of this session, begun if none is; none if nobody can be told.
    async fn turn(&mut self, session: &str, about: Option<String>) -> Option<&mut Turn> {
        if self.turns.get(session).is_some_and(|turn| turn.session.is_stopped()) && about.is_some()
        {
            self.turns.remove(session);
        }
        if !self.turns.contains_key(session) {
            if self.turns.len() >= SESSIONS {
                return None;
            }
            let agent = self.hub().await?;
            let about = about.unwrap_or_else(|| format!("{} works.", self.proxy.name));
            let Ok(opened) = agent.session(about).open().await else {
                self.rests_until = Some(Instant::now() + HUB_RESTS);
                self.agent = None;
                return None;
            };
            let opened = Arc::new(opened);
            let (watched, wires, of) = (opened.clone(), self.wires.clone(), session.to_owned());
            let watch = tokio::spawn(async move {
                watched.stopped().await;
                wires.stop(&of).await;
            });
            let (output, thought, calls, plan) = Default::default();
            let turn = Turn { session: opened, output, thought, calls, plan, watch };
            self.turns.insert(session.to_owned(), turn);
        }
        self.turns.get_mut(session)
    }

    fn place(&self, session: &str) -> PathBuf {
        self.places.get(session).cloned().unwrap_or_else(|| PathBuf::from("/"))
    }

    fn judge(&self, session: &str, call: &Value) -> Judgment {
        let place = self.place(session);
        judged::judge(call, &place, &Scene::new(&place, self.proxy.home.clone()))
    }

    async fn update(&mut self, id: &str, update: &Value) -> Result<(), aaep_agent::Error> {
        let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
        let content = || update.get("content").and_then(text_of);
        let Some(turn) = self.turns.get_mut(id) else { return Ok(()) };
        match kind {
            "agent_message_chunk" => {
                turn.thinks().await?;
                if let Some(text) = content() {
                    if turn.output.is_none() {
                        turn.output = Some(turn.session.output()?);
                    }
                    if let Some(output) = &mut turn.output {
                        output.write(&text).await?;
                    }
                }
            }
            "agent_thought_chunk" => {
                turn.finish().await;
                if turn.thought.len() < 4 * THOUGHT {
                    turn.thought += &content().unwrap_or_default();
                }
            }
            "plan" => {
                turn.flush().await;
                turn.plan(update).await?;
            }
            "current_mode_update" => {
                let mode = update.get("currentModeId").and_then(Value::as_str).unwrap_or_default();
                let mode = mode.to_owned();
                turn.flush().await;
                return Box::pin(self.tell(Note::Mode(id.to_owned(), mode))).await;
            }
            _ => {
                turn.flush().await;
                self.call_changed(id, update).await?;
            }
        }
        Ok(())
    }

    /// A call of a tool began, goes on, or ended.
    async fn call_changed(&mut self, id: &str, update: &Value) -> Result<(), aaep_agent::Error> {
        self.claimed(id, update).await;
        let Some(turn) = self.turns.get_mut(id) else { return Ok(()) };
        let Some(known) = turn.known(update) else { return Ok(()) };
        let status = known.call.get("status").and_then(Value::as_str).unwrap_or_default();
        let over = match status {
            "completed" => Some(ToolStatus::Success),
            "failed" => Some(ToolStatus::Error),
            _ => None,
        };
        let begins = over.is_some() || status == "in_progress";
        let (call, asked) = (known.call.clone(), known.asked);
        if known.over || !begins {
            return Ok(());
        }
        // What was asked here and decided elsewhere is withdrawn by now, or runs.
        let running = known.running.take();
        known.over = over.is_some();
        let session = turn.session.clone();
        let judgment = self.judge(id, &call);
        // What failed and never ran was refused.
        if running.is_none() && asked && over == Some(ToolStatus::Error) {
            return Ok(());
        }
        let running = match running {
            Some(running) => Some(running),
            // Allowed in the editor, so it is nothing that was consented to here.
            None if asked => None,
            None => {
                let tool = session.tool(judged::wire_name(&call)).summary(judgment.action());
                tool.risk(judgment.risk()).begin().await.ok()
            }
        };
        let Some(running) = running else {
            // It would have to be asked, but it runs: the person learns at least that.
            let who = match asked {
                true => "Allowed in the editor",
                false => "Done without asking you",
            };
            let words = format!("{who}: {}", judgment.action());
            let call = call.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
            if let Some(known) = self.turns.get_mut(id).and_then(|turn| turn.calls.get_mut(call)) {
                known.over = true;
            }
            return session.progress(Progress::described(words)).await;
        };
        match over {
            Some(status) => {
                let end = if status == ToolStatus::Success { "Done" } else { "Failed" };
                let title = call.get("title").and_then(Value::as_str).unwrap_or("a tool");
                running.complete(status, format!("{end}: {}.", shown(title))).await
            }
            None => {
                let Some(turn) = self.turns.get_mut(id) else { return Ok(()) };
                let call = call.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
                if let Some(known) = turn.calls.get_mut(call) {
                    known.running = Some(running);
                }
                Ok(())
            }
        }
    }

    /// Puts a question of the agent to the person, while the editor does the same.
    async fn asked(&mut self, asked: Permission) -> Result<(), aaep_agent::Error> {
        let (id, name) = (key(&asked.id), asked.session.clone());
        if self.turn(&name, None).await.is_none() {
            self.left_to_the_editor(&id).await;
            return Ok(());
        }
        let Some(turn) = self.turns.get_mut(&name) else { return Ok(()) };
        turn.flush().await;
        let call_id = asked.call_id().to_owned();
        let mut call = asked.call.clone();
        if let Some(known) = turn.known(&asked.call) {
            known.asked = true;
            call = known.call.clone();
        }
        let session = turn.session.clone();
        let judgment = self.judge(&name, &call);
        let arguments = call.to_string();
        if !asked.has_yes() || arguments.len() > MAX_ASKED_BYTES {
            self.left_to_the_editor(&id).await;
            let who = match self.proxy.editor_asks {
                true => "The agent asks something that only its editor can answer",
                false => "The agent asked what cannot be asked here, so it is not done",
            };
            let words = format!("{who}: {}", judgment.action());
            return session.progress(Progress::described(words)).await;
        }
        let question = Question {
            session,
            judgment,
            tool: judged::wire_name(&call),
            arguments,
            always: asked.offers_always() && self.proxy.editor_asks,
            seconds: u32::try_from(self.proxy.timeout.as_secs())
                .unwrap_or(u32::MAX)
                .clamp(1, 86_400),
        };
        let (wires, of, alone) = (self.wires.clone(), id.clone(), !self.proxy.editor_asks);
        let task = tokio::spawn(async move {
            let running = question.decide(&wires, &of).await;
            // Nobody could be asked, and nobody else asks.
            if alone && let Some(asked) = wires.claim(&of) {
                wires.answer(&asked, false).await;
            }
            running
        });
        self.open.insert(id, Open { task, session: name, call: call_id });
        Ok(())
    }

    /// Nobody can be asked here. Without an editor that asks, it is a no.
    async fn left_to_the_editor(&self, id: &str) {
        if !self.proxy.editor_asks
            && let Some(asked) = self.wires.claim(id)
        {
            self.wires.answer(&asked, false).await;
        }
    }

    async fn end(&self, mut turn: Turn, words: String) {
        turn.flush().await;
        turn.calls.clear();
        turn.watch.abort();
        let _ = (&mut turn.watch).await;
        // Questions that waited are withdrawn, so nobody else holds it.
        if let Ok(session) = Arc::try_unwrap(turn.session).map_err(drop) {
            let _ = session.complete(words).await;
        }
    }
}

/// What is put to the person.
struct Question {
    session: Arc<Session>,
    judgment: Judgment,
    tool: String,
    arguments: String,
    always: bool,
    seconds: u32,
}

impl Question {
    async fn decide<E, A>(self, wires: &Wires<E, A>, id: &str) -> Option<Call>
    where
        E: AsyncWrite + Unpin,
        A: AsyncWrite + Unpin,
    {
        let mut consequence = self.judgment.consequence().to_owned();
        if self.always {
            consequence += " A yes here counts once; to be asked no more, answer in the editor.";
        }
        let action = self.judgment.action();
        match self.judgment.reversibility() {
            Reversibility::Irreversible => {
                let request = Confirmation::irreversible(&self.tool, action, consequence);
                self.settle(request, wires, id).await
            }
            _ => {
                let request = Confirmation::with_effort(&self.tool, action, consequence);
                self.settle(request, wires, id).await
            }
        }
    }

    async fn settle<K: Kind, E, A>(
        self,
        request: Confirmation<K>,
        wires: &Wires<E, A>,
        id: &str,
    ) -> Option<Call>
    where
        E: AsyncWrite + Unpin,
        A: AsyncWrite + Unpin,
    {
        let request = request.risk(self.judgment.risk()).arguments_json(self.arguments);
        let request = request.timeout_seconds(self.seconds);
        // Nobody can be asked here: the editor still asks.
        let parked = self.session.park((), request).await.ok()?;
        let decided = parked.decision().await;
        if decided.as_ref().is_err_and(aaep_agent::Error::is_unavailable) {
            return None;
        }
        // If the editor was first, this one is withdrawn.
        let asked = wires.claim(id)?;
        let running = match decided {
            // Announced first; what cannot be announced does not run.
            Ok(approval) => self.session.invoke(parked, approval).await.ok(),
            Err(_) => None,
        };
        wires.answer(&asked, running.is_some()).await;
        running.map(|((), running)| running)
    }
}

impl Turn {
    /// What is known of the call that this tells of.
    fn known(&mut self, update: &Value) -> Option<&mut Known> {
        let id = update.get("toolCallId").and_then(Value::as_str)?;
        if !self.calls.contains_key(id) && self.calls.len() >= CALLS {
            // Those that are over make room.
            self.calls.retain(|_, known| !known.over);
            if self.calls.len() >= CALLS {
                return None;
            }
        }
        let known = self.calls.entry(id.to_owned()).or_default();
        if !known.call.is_object() {
            known.call = serde_json::json!({});
        }
        for name in [
            "toolCallId",
            "title",
            "kind",
            "status",
            "rawInput",
            "content",
            "locations",
            "name",
            "_meta",
        ] {
            match update.get(name) {
                None | Some(Value::Null) => {}
                Some(value) => known.call[name] = value.clone(),
            }
        }
        Some(known)
    }

    async fn thinks(&mut self) -> Result<(), aaep_agent::Error> {
        let thought = std::mem::take(&mut self.thought);
        if thought.trim().is_empty() {
            return Ok(());
        }
        let thought: String = thought.trim().chars().take(THOUGHT).collect();
        self.session.thinking(thought).await
    }

    async fn finish(&mut self) {
        if let Some(output) = self.output.take() {
            let _ = output.finish().await;
        }
    }

    /// Everything that was begun is said before something else is.
    async fn flush(&mut self) {
        let _ = self.thinks().await;
        self.finish().await;
    }

    async fn plan(&mut self, update: &Value) -> Result<(), aaep_agent::Error> {
        let entries = update.get("entries").and_then(Value::as_array);
        let entries: Vec<_> = entries.into_iter().flatten().take(1000).collect();
        let is = |entry: &Value, status: &str| entry.get("status").is_some_and(|it| it == status);
        let done = entries.iter().filter(|entry| is(entry, "completed")).count();
        let current = entries.iter().find(|entry| is(entry, "in_progress"));
        let what = current.and_then(|entry| entry.get("content")).and_then(Value::as_str);
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let step = count(done.saturating_add(1).min(entries.len()));
        let words = format!("{step} of {}: {}", entries.len(), what.unwrap_or_default());
        if entries.is_empty() || self.plan == words {
            return Ok(());
        }
        self.plan = words;
        let mut progress = Progress::step(step, count(entries.len()));
        if let Some(what) = what {
            progress = progress.description(shown(what));
        }
        self.session.progress(progress).await
    }
}
