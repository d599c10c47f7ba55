//! `aaep capture`: writes down what a producer says, and when.

mod feed;
mod sink;

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aaep_subscriber::inbox::Backoff;
use aaep_types::{LenientEvent, Timestamp, captured};
use clap::Args;
use sha2::{Digest, Sha256};

use crate::exit::{self, Exit};
use crate::lines::{Plain, count};
use crate::listen::{HubsOptions, hubs};
use crate::signals::Signals;
pub(crate) use feed::{Feed, open_link};
use sink::{Rotation, Sink};

/// Event ids that are remembered, so that what is sent again after a break is written once.
const REMEMBERED: usize = 65_536;

/// Write down what a producer says, and when: JSON Lines that check, validate and replay read.
///
/// It hears and never answers. Reply tokens are hidden, so that the file lets nobody answer.
#[derive(Args, Debug)]
#[command(after_help = "\
It runs until it is stopped (Ctrl-C, or SIGTERM), or until --count or --timeout; then it says how much it
captured and ends with 0. It ends with 2 if nobody answers at first. Later it comes back by itself.

Examples:
  aaep capture --out session.jsonl
  aaep capture ws://127.0.0.1:8707 --type session.started --count 10
  aaep capture http://127.0.0.1:8000/ --raw --timeout 60 --out theirs.jsonl
See docs/tools.md.")]
pub(crate) struct CaptureOptions {
    #[command(flatten)]
    pub(crate) hub: HubsOptions,
    /// Write to this new file, which only you can read. Without it: standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Add to the file if it is there, and go on after its last event.
    #[arg(long, requires = "out")]
    pub(crate) append: bool,
    /// Listen without a handshake, as published tools do.
    #[arg(long)]
    pub(crate) raw: bool,
    /// Keep only events of this type, such as tool.invoked. May be given several times.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) types: Vec<String>,
    /// Keep only events of this session. May be given several times.
    #[arg(long = "session", value_name = "ID")]
    pub(crate) sessions: Vec<String>,
    /// Keep only events of this agent. May be given several times.
    #[arg(long = "agent", value_name = "ID")]
    pub(crate) agents: Vec<String>,
    /// End after this many messages.
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<u64>,
    /// End after this many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Begin a new file when this one has so many bytes. The old one gets a number at its end.
    #[arg(long, value_name = "BYTES", requires = "out")]
    pub(crate) rotate_bytes: Option<u64>,
    /// Begin a new file after so many seconds.
    #[arg(long, value_name = "SECONDS", requires = "out")]
    pub(crate) rotate_seconds: Option<u64>,
    /// Write reply tokens as they are. Who reads the file can then answer in your place.
    #[arg(long)]
    pub(crate) with_tokens: bool,
}

pub(crate) fn run(options: &CaptureOptions, out: &mut impl Write) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(capture(options, out)) {
        Ok(ended) => ended,
        Err(why) => {
            exit::say(&why);
            Ok(Exit::Unable)
        }
    }
}

async fn capture(
    options: &CaptureOptions,
    out: &mut impl Write,
) -> Result<io::Result<Exit>, String> {
    let mut signals = Signals::new().map_err(|fault| fault.to_string())?;
    let mut found = hubs(&options.hub)?;
    if found.len() > 1 {
        return Err("Name one producer to capture.".into());
    }
    let hub = found.pop().ok_or("No hub runs on this machine. Name a producer to capture.")?;
    let rotation = Rotation {
        bytes: options.rotate_bytes,
        after: options.rotate_seconds.map(Duration::from_secs),
    };
    let sink = Sink::open(options.out.as_deref(), options.append, rotation, out)?;
    let last = sink.last_event().map(str::to_owned);
    let mut feed = Feed::new(hub, options.raw, options.with_tokens, last);
    let mut recorder = Recorder {
        options,
        sink,
        begun: Instant::now(),
        written: 0,
        skipped: 0,
        connected: false,
        known: BTreeSet::new(),
        order: VecDeque::new(),
    };
    let until = options.timeout.map(|seconds| recorder.begun + Duration::from_secs(seconds));
    let late = async {
        match until {
            Some(until) => tokio::time::sleep_until(until.into()).await,
            None => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        biased;
        () = signals.stop() => Ok(Ok(())),
        () = late => Err(unheard("the producer did not answer in time")),
        ended = record(&mut feed, &mut recorder) => ended,
    };
    // The time that was wanted is over, and a producer was there.
    let ended = if recorder.connected && ended.is_err() { Ok(Ok(())) } else { ended };
    // What was written is kept, however it ended.
    let finished = recorder.sink.finish();
    let said = count(recorder.written, "message");
    match (&options.out, recorder.skipped) {
        (Some(file), 0) => {
            exit::say(&format!("Captured {said} to {}.", Plain(&file.to_string_lossy())));
        }
        (_, 0) => exit::say(&format!("Captured {said}.")),
        (_, skipped) => exit::say(&format!("Captured {said}. Left out: {skipped} too long.")),
    }
    Ok(ended?.and(finished).map(|()| Exit::Good))
}

/// Connects, and comes back after breaks; ends with the count that was wanted. The inner error is one
/// of writing.
async fn record<W: Write>(
    feed: &mut Feed,
    recorder: &mut Recorder<'_, W>,
) -> Result<io::Result<()>, String> {
    feed.connect().await.map_err(|why| unheard(&why))?;
    recorder.connected = true;
    let mut backoff = Backoff::default();
    loop {
        let why = match feed.next().await {
            Ok(Some(message)) => {
                backoff.reset();
                match recorder.take(&message) {
                    Ok(true) => return Ok(Ok(())),
                    Ok(false) => continue,
                    Err(error) => return Ok(Err(error)),
                }
            }
            Ok(None) => {
                recorder.skipped += 1;
                continue;
            }
            Err(why) => why,
        };
        exit::say(&format!("The stream broke: {}. Trying again.", Plain(&why)));
        loop {
            let jitter = u64::from(recorder.begun.elapsed().subsec_nanos());
            tokio::time::sleep(Duration::from_millis(backoff.wait_ms(jitter, 0))).await;
            if feed.connect().await.is_ok() {
                break;
            }
        }
    }
}

/// Why nobody was heard at all.
fn unheard(why: &str) -> String {
    format!("Nothing can be captured: {}.", Plain(why.trim_end_matches('.')))
}

struct Recorder<'a, W: Write> {
    options: &'a CaptureOptions,
    sink: Sink<'a, W>,
    begun: Instant,
    written: u64,
    skipped: u64,
    /// The producer was there at least once.
    connected: bool,
    known: BTreeSet<String>,
    order: VecDeque<String>,
}

impl<W: Write> Recorder<'_, W> {
    /// Writes a message down, if it is wanted; true once there are enough.
    fn take(&mut self, message: &str) -> io::Result<bool> {
        let (arrived, offset) = (now(), self.begun.elapsed());
        let event = LenientEvent::parse(message.as_bytes()).ok();
        let id = event.as_ref().map(|event| event.event_id().to_owned());
        if !self.wants(event.as_ref()) || id.as_ref().is_some_and(|id| !self.is_new(id)) {
            return Ok(false);
        }
        let shown = match self.options.with_tokens {
            true => message.into(),
            false => captured::replace_token(message, hidden),
        };
        let offset = u64::try_from(offset.as_micros()).unwrap_or(u64::MAX);
        self.sink.write(&captured::write(arrived, offset, &shown))?;
        self.written += 1;
        Ok(self.options.count.is_some_and(|count| self.written >= count))
    }

    fn wants(&self, event: Option<&LenientEvent<'_>>) -> bool {
        let CaptureOptions { types, sessions, agents, .. } = self.options;
        if types.is_empty() && sessions.is_empty() && agents.is_empty() {
            return true;
        }
        let Some(event) = event else { return false };
        let name = event.type_name();
        let is_type = |wanted: &String| {
            name == wanted || name.strip_suffix(wanted.as_str()).is_some_and(ends_a_part)
        };
        (types.is_empty() || types.iter().any(is_type))
            && (sessions.is_empty() || sessions.iter().any(|id| id == event.session_id()))
            && (agents.is_empty() || event.agent_id().is_some_and(|id| agents.contains(&id)))
    }

    fn is_new(&mut self, id: &str) -> bool {
        if !self.known.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

/// `aaep:agent.tool.invoked` is a `tool.invoked`, and no `voked`.
fn ends_a_part(before: &str) -> bool {
    before.ends_with([':', '.'])
}

/// What stands in a capture in place of a reply token: the same for the same token, and of no use.
fn hidden(token: &str) -> String {
    let digest = Sha256::digest(token.as_bytes());
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("rpl_hidden{hex}")
}

/// The wall clock.
pub(crate) fn now() -> Timestamp {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let stamp = i64::try_from(millis).ok().and_then(Timestamp::from_millis);
    stamp.or_else(|| Timestamp::from_millis(0)).unwrap_or_else(|| unreachable!("1970 is a time"))
}
