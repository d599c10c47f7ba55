//! Tells what an agent does, and asks its questions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aaep_agent::{Agent, Call, ToolStatus};
use serde_json::Value;
use tokio::io::AsyncWrite;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::message::{Permission, Reply, mode_name, picture, skips_asking, text_of};
use super::question::Question;
use super::turn::{THOUGHT, Turn};
use super::{Proxy, Wires, judged};
use crate::act::{Judgment, shown};
use crate::place::Scene;

/// How long a hub that was not there is left alone.
const HUB_RESTS: Duration = Duration::from_secs(5);

/// Sessions of the agent that are followed at the same time.
const SESSIONS: usize = 64;

/// Some agents say that a call runs, and only then ask. So long the question may take to come.
const ASKS_SOON: Duration = Duration::from_millis(700);

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
    /// A question was answered elsewhere, or taken back: the list of those is looked at.
    Withdrawn,
    Mode(String, String),
    ModeRefused(String, String),
    /// A mode that was to be refused is in force.
    ModeStays(String),
    /// What was said of an earlier session is over.
    Recalled(String),
    Cancelled(String),
    TurnEnded(String, Option<String>),
    Lost(u64),
}

/// Whether there is something to tell in an update: the rest is not even kept.
pub(super) fn is_told(update: &Value) -> bool {
    let kind = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
    matches!(
        kind,
        "agent_message_chunk" | "agent_thought_chunk" | "tool_call" | "tool_call_update" | "plan"
    )
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
    /// Questions that are put to the person, by their serial.
    open: BTreeMap<u64, Open>,
    /// Calls that run, as the agent says, though they would have to be asked: by session and call.
    /// They are told as such unless their question comes by then.
    early: BTreeMap<(String, String), Instant>,
}

impl<E, A> Teller<E, A>
where
    E: AsyncWrite + Unpin + Send + 'static,
    A: AsyncWrite + Unpin + Send + 'static,
{
    pub(super) fn new(proxy: Proxy, wires: Arc<Wires<E, A>>) -> Self {
        let (places, turns, open, early) = Default::default();
        Self { proxy, wires, agent: None, rests_until: None, places, turns, open, early }
    }

    pub(super) async fn run(mut self, mut heard: mpsc::Receiver<Note>) {
        loop {
            let due = self.early.values().min().copied();
            let note = tokio::select! {
                note = heard.recv() => note,
                () = until(due) => {
                    self.settle().await;
                    let _ = self.runs_unasked(None).await;
                    continue;
                }
            };
            let Some(note) = note else { break };
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

    /// The question about this call that was put to the person, if it is not settled.
    fn question_of(&self, session: &str, call: &str) -> Option<u64> {
        let of = |open: &Open| open.session == session && open.call == call;
        self.open.iter().find(|(_, open)| of(open)).map(|(serial, _)| *serial)
    }

    /// Whether a question still waits for its answer, here and in the editor.
    fn waits(&self, serial: u64) -> bool {
        super::lock(&self.wires.questions).open.values().any(|asked| asked.serial == serial)
    }

    /// Questions that were decided, whose calls run, and those that were withdrawn.
    async fn settle(&mut self) {
        let withdrawn = std::mem::take(&mut super::lock(&self.wires.questions).withdrawn);
        for serial in withdrawn {
            self.withdraw(serial).await;
        }
        let done = self.open.iter().filter(|(_, open)| open.task.is_finished());
        let done: Vec<_> = done.map(|(serial, _)| *serial).collect();
        for serial in done {
            self.decided(serial).await;
        }
    }

    async fn withdraw(&mut self, serial: u64) {
        if let Some(open) = self.open.remove(&serial) {
            open.task.abort();
            let _ = open.task.await;
        }
    }

    async fn decided(&mut self, serial: u64) {
        let Some(open) = self.open.remove(&serial) else { return };
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
            Note::Withdrawn => {}
            Note::Mode(session, mode) => {
                let name = shown(mode_name(&mode));
                let words = match skips_asking(&mode) {
                    Some(what) => format!("From now on {what}: its mode is {name}."),
                    None => format!("The mode is {name}."),
                };
                self.say(&session, words).await?;
            }
            Note::ModeRefused(session, mode) => {
                let name = shown(mode_name(&mode));
                let words = format!("The mode {name} was refused: in it the agent asks less.");
                self.say(&session, words).await?;
            }
            Note::ModeStays(session) => {
                let words = "The agent does not leave its mode, so it is stopped.".to_owned();
                self.say(&session, words).await?;
            }
            Note::Recalled(session) => {
                if let Some(turn) = self.turns.remove(&session) {
                    self.end(turn, "So far what was said earlier.".into()).await;
                }
            }
            Note::Cancelled(session) => {
                if let Some(turn) = self.turns.get_mut(&session) {
                    turn.flush().await;
                }
            }
            Note::TurnEnded(session, reason) => {
                let _ = self.runs_unasked(Some(&session)).await;
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
        let of = self.open.iter().filter(|(_, open)| open.session == session);
        let of: Vec<_> = of.map(|(serial, _)| *serial).collect();
        for serial in of {
            self.withdraw(serial).await;
        }
        self.early.retain(|(of, _), _| of != session);
    }

    async fn say(&mut self, session: &str, words: String) -> Result<(), aaep_agent::Error> {
        match self.turn(session, None).await {
            Some(turn) => turn.state(&words).await,
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
            _ => {
                turn.flush().await;
                self.call_changed(id, update).await?;
            }
        }
        Ok(())
    }

    /// A call of a tool began, goes on, or ended.
    async fn call_changed(&mut self, id: &str, update: &Value) -> Result<(), aaep_agent::Error> {
        let call_id = update.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        let question = self.question_of(id, call_id);
        let waits = question.is_some_and(|serial| self.waits(serial));
        if let Some(serial) = question.filter(|_| !waits) {
            // It is being answered here just now.
            self.decided(serial).await;
        }
        let Some(turn) = self.turns.get_mut(id) else { return Ok(()) };
        let Some(known) = turn.known(update) else { return Ok(()) };
        let over = match known.call.get("status").and_then(Value::as_str).unwrap_or_default() {
            "completed" => Some(ToolStatus::Success),
            "failed" => Some(ToolStatus::Error),
            "in_progress" => None,
            _ => return Ok(()),
        };
        let (call, asked, announced) = (known.call.clone(), known.asked, known.running.is_some());
        if known.over || (waits && over.is_none()) {
            return Ok(());
        }
        let early = (id.to_owned(), call_id.to_owned());
        if over.is_none() && !asked && !announced && self.judge(id, &call).is_asked() {
            self.early.entry(early).or_insert_with(|| Instant::now() + ASKS_SOON);
            return Ok(());
        }
        self.early.remove(&early);
        if let Some(serial) = question.filter(|_| waits) {
            // The agent waited for nobody.
            super::lock(&self.wires.questions).open.retain(|_, asked| asked.serial != serial);
            self.withdraw(serial).await;
        }
        let who = match (asked, waits) {
            (true, true) => "Done without waiting for an answer",
            (true, false) => "Allowed in the editor",
            (false, _) => "Done without asking you",
        };
        self.runs(id, call_id, over, who).await
    }

    /// Calls whose questions did not come in time, or not before the end of this session's turn: they
    /// run.
    async fn runs_unasked(&mut self, of: Option<&str>) -> Result<(), aaep_agent::Error> {
        let now = Instant::now();
        let is_due = |call: &(String, String), due: &mut Instant| match of {
            Some(of) => call.0 == of,
            None => *due <= now,
        };
        let due: Vec<_> = self.early.extract_if(.., is_due).map(|(call, _)| call).collect();
        for (session, call) in due {
            self.runs(&session, &call, None, "Done without asking you").await?;
        }
        Ok(())
    }

    /// Tells that a call runs, or how it ended. `who` let it run if nobody here did.
    async fn runs(
        &mut self,
        id: &str,
        call_id: &str,
        over: Option<ToolStatus>,
        who: &str,
    ) -> Result<(), aaep_agent::Error> {
        let Some(turn) = self.turns.get_mut(id) else { return Ok(()) };
        let Some(known) = turn.calls.get_mut(call_id) else { return Ok(()) };
        let (call, asked, running) = (known.call.clone(), known.asked, known.running.take());
        known.over = over.is_some();
        let session = turn.session.clone();
        // What failed and never ran was refused.
        if running.is_none() && asked && over == Some(ToolStatus::Error) {
            return Ok(());
        }
        let judgment = self.judge(id, &call);
        let running = match running {
            Some(running) => Some(running),
            // It is nothing that was consented to here.
            None if asked => None,
            None => {
                let tool = session.tool(judged::wire_name(&call)).summary(judgment.action());
                tool.risk(judgment.risk()).begin().await.ok()
            }
        };
        let Some(turn) = self.turns.get_mut(id) else { return Ok(()) };
        let known = turn.calls.get_mut(call_id);
        match (running, over) {
            (Some(running), Some(status)) => {
                let words = ended(&call, status);
                running.complete(status, words).await
            }
            (Some(running), None) => {
                if let Some(known) = known {
                    known.running = Some(running);
                }
                Ok(())
            }
            // It would have to be asked, but it runs: the person learns at least that.
            (None, _) => {
                if let Some(known) = known {
                    known.over = true;
                }
                turn.state(&format!("{who}: {}", judgment.action())).await
            }
        }
    }

    /// Puts a question of the agent to the person, while the editor does the same.
    async fn asked(&mut self, asked: Permission) -> Result<(), aaep_agent::Error> {
        let name = asked.session.clone();
        if self.turn(&name, None).await.is_none() {
            self.left_to_the_editor(&asked).await;
            return Ok(());
        }
        self.early.remove(&(name.clone(), asked.call_id().to_owned()));
        let Some(turn) = self.turns.get_mut(&name) else { return Ok(()) };
        turn.flush().await;
        let mut call = asked.call.clone();
        if let Some(known) = turn.known(&asked.call) {
            (known.asked, known.over) = (true, false);
            call = known.call.clone();
            // It was told as running, but it waits.
            if let Some(running) = known.running.take() {
                let _ =
                    running.complete(ToolStatus::Error, "Not begun: it waits for an answer.").await;
            }
        }
        let session = turn.session.clone();
        let judgment = self.judge(&name, &call);
        let arguments = call.to_string();
        let has_yes =
            asked.has_yes() || (self.proxy.offers_lasting && !asked.lasting(true).is_empty());
        if !has_yes || arguments.len() > MAX_ASKED_BYTES {
            self.left_to_the_editor(&asked).await;
            let who = match self.proxy.editor_asks {
                true => "The agent asks something that only its editor can answer",
                false => "The agent asked what cannot be asked here, so it is not done",
            };
            return self.say(&name, format!("{who}: {}", judgment.action())).await;
        }
        // Answered in the editor before it came to be asked here.
        if !self.waits(asked.serial) {
            return Ok(());
        }
        let command = call.pointer("/rawInput/command").and_then(Value::as_str).map(str::to_owned);
        if asked.has_yes() && self.is_given(&call).await {
            // The hook has told that it runs, and will tell how it ended.
            if let Some(asked) = self.wires.claim(&asked) {
                let turn = self.turns.get_mut(&name);
                if let Some(known) = turn.and_then(|turn| turn.calls.get_mut(asked.call_id())) {
                    known.over = true;
                }
                command.iter().for_each(|command| self.proxy.allowed.add(command));
                self.wires.answer(&asked, &Reply::Once(true)).await;
            }
            return Ok(());
        }
        let question = Question {
            session,
            judgment,
            tool: judged::wire_name(&call),
            arguments,
            asked: asked.clone(),
            offers_lasting: self.proxy.offers_lasting,
            editor_asks: self.proxy.editor_asks,
            seconds: u32::try_from(self.proxy.timeout.as_secs())
                .unwrap_or(u32::MAX)
                .clamp(1, 86_400),
            command,
            allowed: self.proxy.allowed.clone(),
        };
        let (wires, alone) = (self.wires.clone(), !self.proxy.editor_asks);
        let open = Open {
            session: name,
            call: asked.call_id().to_owned(),
            task: tokio::spawn({
                let asked = asked.clone();
                async move {
                    let running = question.decide(&wires).await;
                    // Nobody could be asked, and nobody else asks.
                    if alone && let Some(asked) = wires.claim(&asked) {
                        wires.answer(&asked, &Reply::Once(false)).await;
                    }
                    running
                }
            }),
        };
        self.open.insert(asked.serial, open);
        Ok(())
    }

    /// Whether the person has just said yes to this very call in the program's hook.
    async fn is_given(&self, call: &Value) -> bool {
        let (Some(given), Some(agent)) = (&self.proxy.given, &self.agent) else { return false };
        let Some((tool, arguments)) = judged::as_in_hook(call) else { return false };
        let id = call.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        // Kimi Code writes the number of the turn before its own name of the call.
        let named = id.split_once(':').map_or(id, |(_, named)| named);
        given.take(agent, named, &arguments, |asked| asked == tool).await
    }

    /// Nobody can be asked here. Without an editor that asks, it is a no.
    async fn left_to_the_editor(&self, asked: &Permission) {
        if !self.proxy.editor_asks
            && let Some(asked) = self.wires.claim(asked)
        {
            self.wires.answer(&asked, &Reply::Once(false)).await;
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

/// How a call ended, and what it shows that is no text.
fn ended(call: &Value, status: ToolStatus) -> String {
    let end = if status == ToolStatus::Success { "Done" } else { "Failed" };
    let title = call.get("title").and_then(Value::as_str).unwrap_or("a tool");
    let mut words = format!("{end}: {}.", shown(title));
    let parts = call.get("content").and_then(Value::as_array).into_iter().flatten();
    let parts = parts.filter_map(|part| part.get("content"));
    for image in parts.filter(|part| part["type"] == "image").take(4) {
        words += &format!(" {}.", picture(image));
    }
    words
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
