//! What the reference producer does, and what it does wrong.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aaep_types::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::ProducerFault;
use super::listener::Terms;
use super::serve::Attached;

/// Events that wait for one listener; who is slower hears no more.
const QUEUE: usize = 4096;

/// Pieces of text in a flood.
const PIECES: usize = 60;

/// What is kept for those who come back.
const KEPT: usize = 512;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) listeners: Vec<Listener>,
    pending: HashMap<String, Pending>,
    recent: VecDeque<Value>,
    /// It says nothing any more, for a fault.
    stopped: bool,
}

/// What a listener is told.
#[derive(Debug)]
pub(super) enum ListenerMessage {
    Event(Value),
    Terms(Terms),
    End,
}

#[derive(Debug)]
pub(super) struct Listener {
    /// Its subscription; nothing without a handshake.
    pub(super) id: Option<String>,
    pub(super) stranger: bool,
    pub(super) terms: Terms,
    pub(super) closed: bool,
    pub(super) sender: mpsc::Sender<ListenerMessage>,
    /// Where it will be read, as long as nobody reads it.
    pub(super) waiting: Option<mpsc::Receiver<ListenerMessage>>,
}

#[derive(Debug)]
struct Pending {
    session: Session,
    confirmation: bool,
    /// What was decided, if anything was; later ones count only for faults.
    decided: Option<Value>,
    over: bool,
    wake: mpsc::Sender<Value>,
}

#[derive(Debug)]
pub(super) struct World {
    pub(super) fault: Option<ProducerFault>,
    state: Mutex<State>,
}

/// Where a session stands.
#[derive(Clone, Debug)]
struct Session {
    id: String,
    number: Arc<AtomicU64>,
    state: Arc<Mutex<&'static str>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn random() -> String {
    format!("{:016x}{:016x}", RandomState::new().hash_one(1), RandomState::new().hash_one(2))
}

impl World {
    pub(super) fn new(fault: Option<ProducerFault>) -> Self {
        Self { fault, state: Mutex::default() }
    }

    pub(super) fn is(&self, fault: ProducerFault) -> bool {
        self.fault == Some(fault)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Events that wait for one listener at most.
    pub(super) fn queue(&self) -> usize {
        if self.is(ProducerFault::SlowOnesBlockAll) { 64 } else { QUEUE }
    }

    /// A listener without a handshake.
    pub(super) fn listen(&self) -> mpsc::Receiver<ListenerMessage> {
        let (sender, heard) = mpsc::channel(self.queue());
        let terms = Terms::plain();
        let listener =
            Listener { id: None, stranger: false, terms, closed: false, sender, waiting: None };
        self.lock().listeners.push(listener);
        heard
    }

    /// The stream of a subscription; a second one takes over from the first.
    pub(super) fn attach(&self, id: &str) -> Option<Attached> {
        let queue = self.queue();
        let mut state = self.lock();
        let mut open = state.listeners.iter_mut().filter(|listener| !listener.closed);
        let listener = open.find(|listener| listener.id.as_deref() == Some(id))?;
        let heard = listener.waiting.take().unwrap_or_else(|| {
            let (sender, heard) = mpsc::channel(queue);
            listener.sender = sender;
            heard
        });
        Some((heard, listener.terms.clone()))
    }

    /// What came after this event, as far as it is remembered.
    pub(super) fn after(&self, last: &str) -> Vec<Value> {
        if self.is(ProducerFault::ForgetsWhoComesBack) {
            return Vec::new();
        }
        let state = self.lock();
        let later = state.recent.iter().skip_while(|event| event["event_id"] != last).skip(1);
        later.cloned().collect()
    }

    /// A stream ended.
    pub(super) fn left(&self) {
        if self.is(ProducerFault::StopsWhenOneLeaves) {
            self.stop();
        }
    }

    /// Says nothing any more.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
    }

    /// Whether the token of a reply is known, and whether the reply counts.
    pub(super) fn reply(&self, reply: &Value, stranger: bool) -> (bool, bool) {
        let mut state = lock(&self.state);
        let token = reply["reply_token"].as_str().unwrap_or_default();
        let forged = self.is(ProducerFault::TakesForged) && !state.pending.contains_key(token);
        let pending = if forged {
            state.pending.values_mut().find(|pending| !pending.over)
        } else {
            state.pending.get_mut(token)
        };
        let Some(pending) = pending else { return (false, false) };
        let confirms = reply["type"] == "confirmation.reply";
        let fits = pending.confirmation == confirms || self.is(ProducerFault::TakesWrongKind);
        let fits = fits
            && (confirms || reply["response"].is_string() || self.is(ProducerFault::TakesMisfit));
        let entitled = !stranger || self.is(ProducerFault::TakesStolen);
        let again = pending.decided.is_some() || pending.over;
        let repeats = match self.fault {
            Some(ProducerFault::TakesReplayed | ProducerFault::TakesLate) => pending.over,
            Some(
                ProducerFault::TakesTwice | ProducerFault::RaceRunsTwice | ProducerFault::LastWins,
            ) => !pending.over,
            Some(ProducerFault::EachSubscriptionCounts) => {
                !pending.over
                    && pending
                        .decided
                        .as_ref()
                        .is_some_and(|before| before["subscription_id"] != reply["subscription_id"])
            }
            _ => false,
        };
        if !fits || !entitled || (again && !repeats) {
            return (true, false);
        }
        let late = self.is(ProducerFault::TakesLate) && pending.decided.is_some();
        if pending.over && reply["decision"] == "accept" && !late {
            let session = pending.session.clone();
            drop(state);
            self.run_tool(&session);
            return (true, true);
        }
        pending.decided = Some(reply.clone());
        (true, pending.wake.try_send(reply.clone()).is_ok())
    }

    fn emit(&self, session: &Session, kind: &str, members: Value) {
        let number = session.number.fetch_add(1, Ordering::Relaxed);
        if (self.is(ProducerFault::NoEnd) && kind == "session.completed")
            || (self.is(ProducerFault::NoStart) && kind == "session.started" && number == 0)
        {
            return;
        }
        let mut event = self.envelope(session, kind, number);
        if let (Some(event), Value::Object(members)) = (event.as_object_mut(), members) {
            event.extend(members);
        }
        self.spoil(kind, &mut event);
        self.publish(kind, &event);
        if self.is(ProducerFault::StartsTwice) && kind == "session.started" {
            event["event_id"] = json!(format!("evt_{}", random()));
            event["sequence_number"] = json!(session.number.fetch_add(1, Ordering::Relaxed));
            self.publish(kind, &event);
        }
    }

    fn envelope(&self, session: &Session, kind: &str, number: u64) -> Value {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut millis = i64::try_from(since.as_millis()).unwrap_or_default();
        if self.is(ProducerFault::ClockGoesBack) {
            millis -= i64::try_from(number).unwrap_or_default() * 1000;
        }
        let stamp = Timestamp::from_millis(millis).map(|stamp| stamp.to_string());
        let number = if self.is(ProducerFault::SkipsNumbers) { number * 2 } else { number };
        json!({
            "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
            "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_{}", random()),
            "session_id": session.id, "sequence_number": number, "timestamp": stamp,
            "producer": { "agent_id": "reference" },
            "localization_hints": { "primary_language": "en" },
        })
    }

    /// Faults that change one event.
    fn spoil(&self, kind: &str, event: &mut Value) {
        let remove = |event: &mut Value, name: &str| {
            event.as_object_mut().map(|event| event.remove(name));
        };
        match (self.fault, kind) {
            (Some(ProducerFault::NoUrgency), _) if kind.starts_with("awaiting") => {
                remove(event, "urgency")
            }
            (Some(ProducerFault::NoSummary), "session.started") => remove(event, "summary_normal"),
            (Some(ProducerFault::BadEventId), _) => event["event_id"] = json!("42"),
            (Some(ProducerFault::SameEventId), _) => event["event_id"] = json!("evt_same"),
            (Some(ProducerFault::WrongContext), _) => {
                event["@context"] = json!("https://example.org/v1")
            }
            (Some(ProducerFault::ExtraMember), _) => event["mood"] = json!("good"),
            (Some(ProducerFault::NoCategory), "session.errored") => remove(event, "error_category"),
            (Some(ProducerFault::NoCancelledBy), "session.cancelled") => {
                remove(event, "cancelled_by")
            }
            (Some(ProducerFault::EmptyProgress), "progress.updated") => {
                event["progress"] = json!({})
            }
            (Some(ProducerFault::WrongFromState), "state.changed") => {
                event["from_state"] = json!("resting")
            }
            (Some(ProducerFault::ToolOtherName), "tool.completed") => {
                event["tool"] = json!("another")
            }
            (Some(ProducerFault::SaysCardNumber), "session.completed") => {
                event["summary_normal"] = json!("Paid with card 4111 1111 1111 1111.");
            }
            _ => {}
        }
    }

    fn publish(&self, kind: &str, event: &Value) {
        let one = self.is(ProducerFault::OneListenerOnly) && kind.starts_with("awaiting");
        let most = if one { 1 } else { usize::MAX };
        let mut state = self.lock();
        let full = |listener: &Listener| listener.sender.capacity() == 0;
        if state.stopped
            || (self.is(ProducerFault::SlowOnesBlockAll) && state.listeners.iter().any(full))
        {
            return;
        }
        if state.recent.len() == KEPT {
            state.recent.pop_front();
        }
        state.recent.push_back(event.clone());
        let mut place = 0;
        state.listeners.retain(|listener| {
            place += 1;
            if place > most || (listener.closed && !self.is(ProducerFault::SpeaksAfterClose)) {
                return true;
            }
            let told = listener.sender.try_send(ListenerMessage::Event(event.clone()));
            // A subscription stays while nobody reads it: its listener may come back.
            told.is_ok() || listener.id.is_some()
        });
    }

    fn enter(&self, session: &Session, to: &'static str, said: &str) {
        let from = std::mem::replace(&mut *lock(&session.state), to);
        let members = json!({ "from_state": from, "to_state": to, "summary_normal": said });
        self.emit(session, "state.changed", members);
    }

    /// Plays what a text asks for.
    pub(super) async fn play(self: Arc<Self>, text: String) {
        let session = Session {
            id: format!("sess_{}", random()),
            number: Arc::default(),
            state: Arc::new(Mutex::new("idle")),
        };
        self.emit(&session, "session.started", json!({ "summary_normal": "Getting to work." }));
        self.enter(&session, "thinking", "Thinking.");
        match text.as_str() {
            text if text.starts_with("transfer") => self.transfer(&session, text).await,
            text if text.starts_with("ask me") => self.question(&session).await,
            "three sentences" => self.sentences(&session),
            "help" => self.flood(&session).await,
            "fail" => return self.emit(&session, "session.errored", json!({
                "error_category": "permanent", "urgency": "critical", "summary_normal": "It failed.",
            })),
            "give up" => return self.emit(&session, "session.cancelled", json!({
                "cancelled_by": "producer", "summary_normal": "Given up.",
            })),
            "a long job" => self.emit(&session, "progress.updated", json!({
                "progress": { "percent": 50 }, "summary_normal": "Half of it is done.",
            })),
            _ => self.run_tool_named(&session, "balance", false),
        }
        self.emit(&session, "session.completed", json!({ "summary_normal": "Done." }));
        if self.is(ProducerFault::SpeaksAfterEnd) {
            self.enter(&session, "thinking", "Thinking on.");
        }
    }

    fn run_tool(&self, session: &Session) {
        self.run_tool_named(session, "transfer", true);
    }

    fn run_tool_named(&self, session: &Session, tool: &str, irreversible: bool) {
        if *lock(&session.state) != "calling_tool" {
            self.enter(session, "calling_tool", "It is being done.");
        }
        let call = format!("call_{}", random());
        let mut invoked = json!({
            "tool": tool, "tool_call_id": call, "summary_normal": "Using a tool.",
        });
        if irreversible {
            invoked["irreversible"] = json!(true);
        }
        self.emit(session, "tool.invoked", invoked);
        let completed = json!({
            "tool": tool, "tool_call_id": call, "status": "success", "summary_normal": "It worked.",
        });
        let times = match self.fault {
            Some(ProducerFault::ToolNeverReturns) => 0,
            Some(ProducerFault::ToolReturnsTwice) => 2,
            _ => 1,
        };
        for _ in 0..times {
            self.emit(session, "tool.completed", completed.clone());
        }
        self.enter(session, "thinking", "Thinking.");
    }

    /// Says a lot in a short time.
    async fn flood(&self, session: &Session) {
        self.enter(session, "writing_output", "Writing.");
        let mut position = 0;
        for piece in 1..=PIECES {
            // In pieces that are no sentences.
            let half = if piece % 2 == 0 { "of very many. " } else { "This is one sentence " };
            self.emit(
                session,
                "output.streaming",
                json!({
                    "chunk": half, "position": position, "complete": piece == PIECES,
                    "output_id": "out_1",
                }),
            );
            position += half.chars().count();
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.enter(session, "thinking", "Thinking.");
    }

    fn sentences(&self, session: &Session) {
        self.enter(session, "writing_output", "Writing.");
        let mut position = 0;
        for (text, complete) in [("One. ", false), ("Two. ", false), ("Three.", true)] {
            let complete = complete && !self.is(ProducerFault::TextNeverEnds);
            if !(self.is(ProducerFault::TextLost) && position == 5) {
                self.emit(session, "output.streaming", json!({
                    "chunk": text, "position": position, "complete": complete, "output_id": "out_1",
                }));
            }
            position += text.chars().count();
        }
        if self.is(ProducerFault::TextAfterEnd) {
            self.emit(
                session,
                "output.streaming",
                json!({
                    "chunk": "Four.", "position": position, "complete": false, "output_id": "out_1",
                }),
            );
        }
        self.enter(session, "thinking", "Thinking.");
    }

    /// Makes a request known; gives its token and what replies wake.
    fn issue(&self, session: &Session, confirmation: bool) -> (String, mpsc::Receiver<Value>) {
        let same = self.is(ProducerFault::SameToken);
        let token = if same { "rpl_same".into() } else { format!("rpl_{}", random()) };
        let (wake, woken) = mpsc::channel(8);
        let session = session.clone();
        let pending = Pending { session, confirmation, decided: None, over: false, wake };
        lock(&self.state).pending.insert(token.clone(), pending);
        (token, woken)
    }

    async fn settle(
        &self,
        token: &str,
        woken: &mut mpsc::Receiver<Value>,
        seconds: u64,
    ) -> Vec<Value> {
        let wait = match self.fault {
            Some(ProducerFault::GivesUpEarly) => Duration::from_millis(1),
            Some(ProducerFault::WaitsForEver) => Duration::from_secs(86_400),
            _ => Duration::from_secs(seconds),
        };
        let first = tokio::time::timeout(wait, woken.recv()).await.ok().flatten();
        let mut replies: Vec<Value> = first.into_iter().collect();
        if matches!(
            self.fault,
            Some(
                ProducerFault::TakesTwice
                    | ProducerFault::RaceRunsTwice
                    | ProducerFault::LastWins
                    | ProducerFault::EachSubscriptionCounts
            )
        ) {
            tokio::time::sleep(Duration::from_millis(150)).await;
            replies.extend(std::iter::from_fn(|| woken.try_recv().ok()));
        }
        if let Some(pending) = lock(&self.state).pending.get_mut(token) {
            pending.over = true;
        }
        replies
    }

    async fn transfer(&self, session: &Session, text: &str) {
        let seconds = if text.contains("1 second") { 1 } else { 300 };
        let (token, mut woken) = self.issue(session, true);
        self.enter(session, "awaiting_input", "Waiting for an answer.");
        let default = if self.is(ProducerFault::DefaultAccept) { "accept" } else { "reject" };
        self.emit(
            session,
            "awaiting.confirmation",
            json!({
                "action": "Transfer 20 euros to Ann.", "consequence": "The money is gone.",
                "reply_token": token, "timeout_seconds": seconds, "default_decision": default,
                "risk_level": "high", "irreversible": true, "urgency": "critical",
                "summary_normal": "Transfer 20 euros to Ann?",
            }),
        );
        if self.is(ProducerFault::RunsBeforeTheAnswer) {
            return self.run_tool(session);
        }
        if text.contains("take it back") {
            tokio::time::sleep(Duration::from_millis(300)).await;
            let taken_back = !self.is(ProducerFault::TakesCancelled);
            if taken_back && let Some(pending) = self.lock().pending.get_mut(&token) {
                pending.over = true;
            }
            self.enter(session, "thinking", "It is no longer needed.");
            let late = tokio::time::timeout(Duration::from_secs(1), woken.recv()).await;
            return match late.ok().flatten() {
                Some(reply) if reply["decision"] == "accept" => self.run_tool(session),
                _ => {}
            };
        }
        let replies = self.settle(&token, &mut woken, seconds).await;
        let says_yes = |reply: &Value| {
            let plain = reply["modified_action"].is_null() || self.is(ProducerFault::TakesModified);
            plain && (reply["decision"] == "accept" || reply["type"] == "clarification.reply")
        };
        let deciding =
            if self.is(ProducerFault::LastWins) { replies.last() } else { replies.first() };
        let yes = match deciding {
            Some(reply) => {
                (says_yes(reply) || self.is(ProducerFault::RunsAfterNo))
                    && !self.is(ProducerFault::RefusesEverything)
            }
            None => self.is(ProducerFault::TimeoutAccepts) || self.is(ProducerFault::DefaultAccept),
        };
        let twice = matches!(
            self.fault,
            Some(
                ProducerFault::TakesTwice
                    | ProducerFault::RaceRunsTwice
                    | ProducerFault::EachSubscriptionCounts
            )
        );
        let runs = if twice { replies.iter().filter(|it| says_yes(it)).count() } else { 1 };
        match yes {
            true if self.is(ProducerFault::NeverRunsAfterYes) => {}
            true => (0..runs).for_each(|_| self.run_tool(session)),
            false if self.is(ProducerFault::SilentAfterNo) => {}
            false => self.enter(session, "thinking", "It is not done: the answer was no."),
        }
    }

    async fn question(&self, session: &Session) {
        let (token, mut woken) = self.issue(session, false);
        self.enter(session, "awaiting_input", "Waiting for an answer.");
        self.emit(
            session,
            "awaiting.clarification",
            json!({
                "question": "Where are you?", "reply_token": token, "timeout_seconds": 300,
                "accepted_response_kinds": ["freetext"], "urgency": "critical",
                "summary_normal": "Where are you?",
            }),
        );
        self.settle(&token, &mut woken, 300).await;
        if self.is(ProducerFault::StuckAfterAnswer) {
            std::future::pending::<()>().await;
        }
        self.enter(session, "thinking", "An answer came.");
    }
}
