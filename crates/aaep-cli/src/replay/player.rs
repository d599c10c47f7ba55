//! One playback: reads the recording, pauses as it did, waits for answers.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use aaep_types::{EventKind, LenientEvent, Limits, Message, ReplyToken, Timestamp, captured};
use tokio::sync::Notify;

use super::ReplayOptions;
use crate::capture::now;
use crate::exit;
use crate::input::Source;
use crate::lines::Plain;
use crate::reader::{Reader, Text};

/// How long a request waits that does not say it.
const PATIENCE: Duration = Duration::from_secs(300);

/// A message on its way to a subscriber.
pub(super) struct Played {
    pub(super) event_id: Option<String>,
    pub(super) text: String,
}

/// What all playbacks share.
pub(super) struct Stage {
    options: ReplayOptions,
    /// Who waits for an answer, by token.
    waiting: Mutex<BTreeMap<String, Waiting>>,
    /// A playback is over.
    pub(super) over: Notify,
    /// Somebody wanted to hear from a place on that is not in the recording.
    found_nothing: AtomicBool,
    /// That place is the one of --from.
    begins_nowhere: AtomicBool,
    /// Somebody else's program was refused, and that was said.
    said_refused: AtomicBool,
}

impl Stage {
    pub(super) fn new(options: ReplayOptions) -> Result<Self, String> {
        // Whether there is anything to play is found out before anybody is invited.
        let mut reader = open(&options)?;
        let first = reader.next(|_| false).map_err(|error| error.to_string())?;
        if !first.is_some_and(|value| matches!(value.text, Text::Message(_))) {
            let name = Source::File(options.file.clone());
            return Err(format!("there is nothing to play in {name}. Name a recording."));
        }
        Ok(Self {
            options,
            waiting: Mutex::default(),
            over: Notify::new(),
            found_nothing: AtomicBool::new(false),
            begins_nowhere: AtomicBool::new(false),
            said_refused: AtomicBool::new(false),
        })
    }

    /// A program of another user was refused. It is said once, however often they try.
    pub(super) fn refused(&self, uid: u32) {
        if !self.said_refused.swap(true, Ordering::Relaxed) {
            exit::say(&format!("A program of another user (user id {uid}) was refused."));
        }
    }

    /// Whether a playback found nothing to begin with.
    pub(super) fn found_nothing(&self) -> bool {
        self.found_nothing.load(Ordering::Relaxed)
    }

    /// Whether that will be so for everybody.
    pub(super) fn begins_nowhere(&self) -> bool {
        self.begins_nowhere.load(Ordering::Relaxed)
    }

    /// Takes a reply; whether it counts is not told. One of another kind, or for another subscription,
    /// changes nothing.
    pub(super) fn reply(&self, message: &Message<'_>) {
        let (token, subscription, kind) = match message {
            Message::ConfirmationReply(reply) => {
                (&reply.reply_token, &reply.subscription_id, EventKind::AwaitingConfirmation)
            }
            Message::ClarificationReply(reply) => {
                (&reply.reply_token, &reply.subscription_id, EventKind::AwaitingClarification)
            }
            _ => return,
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(request) = waiting.get(token.as_str()) else { return };
        let is_theirs = |own: &String| own == subscription.as_str();
        if request.kind == kind && request.subscription.as_ref().is_none_or(is_theirs) {
            let _ = request.answered.send(());
            waiting.remove(token.as_str());
        }
    }

    /// Begins to play to a subscriber that heard this event last. Without a handshake it has no
    /// subscription.
    pub(super) fn play(
        self: &Arc<Self>,
        last: Option<String>,
        subscription: Option<String>,
    ) -> tokio::sync::mpsc::Receiver<Played> {
        let (sender, receiver) = tokio::sync::mpsc::channel(16);
        let stage = self.clone();
        let listener = Listener { subscription, to: sender };
        thread::spawn(move || stage.rounds(last, &listener));
        receiver
    }

    fn rounds(&self, last: Option<String>, listener: &Listener) {
        let from = last
            .map(StartPoint::After)
            .or_else(|| self.options.from.as_deref().map(StartPoint::read));
        for round in 1_u64.. {
            let from = from.as_ref().filter(|_| round == 1);
            match self.round(round, from, listener) {
                Ok(true) if self.options.again && !self.begins_nowhere() => {}
                Ok(_) => return,
                Err(why) => return exit::say(&why),
            }
        }
    }

    /// Plays everything once; false if nobody listens any more.
    fn round(
        &self,
        round: u64,
        from: Option<&StartPoint>,
        listener: &Listener,
    ) -> Result<bool, String> {
        let mut reader = open(&self.options)?;
        let (mut number, mut begun, mut before) = (0, from.is_none(), None);
        loop {
            let value = match reader.next(|_| false) {
                Ok(Some(value)) => value,
                Ok(None) => {
                    if let Some(from) = from.filter(|_| !begun) {
                        self.is_not_there(from);
                    }
                    return Ok(true);
                }
                Err(error) => return Err(Source::File(self.options.file.clone()).explain(&error)),
            };
            let Text::Message(line) = value.text else { continue };
            number += 1;
            let read = captured::read(line);
            let message = read.map_or(line, |read| read.message.as_bytes());
            // A line that was cut short, or is no event: it cannot be said.
            let Ok(event) = LenientEvent::parse(message) else {
                continue;
            };
            let time =
                read.map_or_else(|| event.timestamp().map(millis), |read| Some(read.offset_ms));
            if !begun {
                match from {
                    Some(StartPoint::Number(first)) => begun = number >= *first,
                    Some(StartPoint::Event(id)) => begun = event.event_id() == id,
                    Some(StartPoint::After(id)) if event.event_id() == id => {
                        begun = true;
                        continue;
                    }
                    _ => {}
                }
                if !begun {
                    continue;
                }
            }
            self.pause(before, time);
            before = time.or(before);
            if !self.say(&event, round, listener)? {
                return Ok(false);
            }
        }
    }

    /// The recording is over, and the place to begin with did not come.
    fn is_not_there(&self, from: &StartPoint) {
        let file = Source::File(self.options.file.clone());
        let (what, then) = match from {
            StartPoint::Number(number) => (format!("message {number}"), "Choose another --from."),
            StartPoint::Event(id) => (format!("event {}", Plain(id)), "Choose another --from."),
            StartPoint::After(id) => (
                format!("event {}", Plain(id)),
                "A subscriber wanted to go on after it; let it begin anew.",
            ),
        };
        exit::say(&format!("Nothing is played: {what} is not in {file}. {then}"));
        self.found_nothing.store(true, Ordering::Relaxed);
        let is_for_all = !matches!(from, StartPoint::After(_));
        self.begins_nowhere.fetch_or(is_for_all, Ordering::Relaxed);
    }

    /// Pauses as the recording did; a clock that went back makes no pause.
    fn pause(&self, before: Option<f64>, time: Option<f64>) {
        let (Some(before), Some(time), false) = (before, time, self.options.no_delay) else {
            return;
        };
        let seconds = ((time - before) / 1000.0 / self.options.speed).clamp(0.0, 86_400.0);
        let pause = Duration::from_secs_f64(seconds);
        let most = self.options.max_pause.map_or(Duration::MAX, Duration::from_secs);
        thread::sleep(pause.min(most));
    }

    /// Says an event, and waits for the answer if it asks; false if nobody listens any more.
    fn say(
        &self,
        event: &LenientEvent<'_>,
        round: u64,
        listener: &Listener,
    ) -> Result<bool, String> {
        let asks = event.kind().filter(|kind| {
            matches!(kind, EventKind::AwaitingConfirmation | EventKind::AwaitingClarification)
        });
        let mut text = event.as_json().to_owned();
        if !self.options.keep_stamps {
            text = captured::replace_timestamp(&text, now()).into_owned();
        }
        if round > 1 {
            text = captured::renumber(&text, &format!("_{round}"));
        }
        let mut request = None;
        if let Some(kind) = asks {
            let fresh = ReplyToken::from_bits(random()?).as_str().to_owned();
            text = captured::replace_token(&text, |_| fresh.clone()).into_owned();
            request = Some((fresh, kind));
        }
        let event_id = match round {
            1 => event.event_id().to_owned(),
            _ => format!("{}_{round}", event.event_id()),
        };
        let waits = request.filter(|_| !self.options.no_wait).map(|(token, kind)| {
            let (answered, answer) = mpsc::channel();
            let subscription = listener.subscription.clone();
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.insert(token.clone(), Waiting { kind, subscription, answered });
            (token, answer)
        });
        let is_gone = listener.to.blocking_send(Played { event_id: Some(event_id), text }).is_err();
        let Some((token, answer)) = waits else { return Ok(!is_gone) };
        if !is_gone {
            let patience = event.timeout_seconds().map_or(PATIENCE, Duration::from_secs);
            exit::say(match listener.answers(&answer, patience) {
                true => "A request was answered. The recording goes on.",
                false => "Nobody answered a request in time. The recording goes on.",
            });
        }
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&token);
        Ok(!listener.to.is_closed())
    }
}

/// A request that waits for its answer.
struct Waiting {
    kind: EventKind,
    /// Whose answer counts. Without a handshake, anybody's that knows the token.
    subscription: Option<String>,
    answered: mpsc::Sender<()>,
}

/// The listeners of one playback.
struct Listener {
    subscription: Option<String>,
    to: tokio::sync::mpsc::Sender<Played>,
}

impl Listener {
    /// Whether an answer came in time, while somebody listened.
    fn answers(&self, answer: &mpsc::Receiver<()>, patience: Duration) -> bool {
        const LOOK: Duration = Duration::from_millis(200);
        let mut left = patience;
        while !left.is_zero() && !self.to.is_closed() {
            match answer.recv_timeout(left.min(LOOK)) {
                Ok(()) => return true,
                Err(_) => left = left.saturating_sub(LOOK),
            }
        }
        false
    }
}

/// Where a playback begins.
enum StartPoint {
    Number(u64),
    Event(String),
    After(String),
}

impl StartPoint {
    fn read(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Event(text.to_owned()), Self::Number)
    }
}

fn open(options: &ReplayOptions) -> Result<Reader<File>, String> {
    let source = Source::File(options.file.clone());
    let opened = File::open(&options.file).and_then(|file| match file.metadata()?.is_dir() {
        true => Err(io::ErrorKind::IsADirectory.into()),
        false => Ok(file),
    });
    let file = opened.map_err(|error| source.explain(&error))?;
    Ok(Reader::new(file, Limits::default().max_bytes))
}

fn millis(stamp: Timestamp) -> f64 {
    stamp.as_micros() as f64 / 1000.0
}

/// Bits that nobody can guess.
pub(super) fn random() -> Result<u128, String> {
    let mut bits = [0; 16];
    let drawn = getrandom::fill(&mut bits);
    drawn
        .map_err(|error| format!("The system gives no randomness: {error}. Nothing is played."))?;
    Ok(u128::from_be_bytes(bits))
}
