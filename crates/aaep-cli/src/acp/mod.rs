//! `aaep acp`: between an editor and an agent of the Agent Client Protocol.

mod client;
mod desk;
mod run;
mod terminals;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aaep_agent::Producer;
use aaep_bridge::acp::{Allowed, Proxy};
use aaep_bridge::doors::Door;
use clap::Args;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, DuplexStream, duplex};
use tokio::process::Child;

use crate::discovery;
use crate::exit::{Exit, say};
use crate::hook;
use crate::stdio;

/// What may be on its way in one direction, in bytes.
const ROOM: usize = 64 * 1024;

/// How long an answer is waited for, in seconds.
const TIMEOUT_SECONDS: u64 = 3600;

/// How long a hub that does not answer is waited for.
const HUB_ANSWERS: Duration = Duration::from_secs(20);

/// Stand between an editor and an agent: hear what it does, and answer its questions.
///
/// Write it before the agent's own command in your editor's settings. Everything passes unchanged;
/// the agent's questions are put to you as well, and the first answer counts.
#[derive(Args, Debug)]
#[command(after_help = "\
The agent speaks the Agent Client Protocol. Silence is a no. A yes counts once; to be asked no more,
answer in the editor, or use --offer-always.
It ends as the agent ends, or with 2 if that cannot be started.

With --run there is no editor: what you type goes to the agent, and everything that it does is heard
here, as by aaep listen. Speech, braille and sounds are set by the same variables: AAEP_SPEAK and so on.
A line that begins with / is for aaep, such as /stop or /quit.

Examples:
  aaep acp -- gemini --acp
  aaep acp --run -- gemini --acp
  aaep acp --run --agent codex -- /opt/codex/bin/codex
  aaep acp --agent claude
  aaep acp --keep-asking -- npx -y @agentclientprotocol/claude-agent-acp")]
pub(crate) struct AcpOptions {
    /// The agent's name, as you know it. Without it: its own, or its command.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Refuse modes in which the agent asks less, such as yolo.
    #[arg(long)]
    keep_asking: bool,
    /// After your answer, also ask for how long it counts, where the agent offers that. Silence means
    /// this once.
    #[arg(long)]
    offer_always: bool,
    /// Seconds to wait for an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_SECONDS, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// The hub. Then none is started.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// Use the agent here, without an editor.
    #[arg(long)]
    run: bool,
    #[command(flatten)]
    terminal: TerminalOptions,
    /// A program that is known: claude, codex, gemini, opencode, copilot, qwen or kimi. It is started so
    /// that it asks over a protocol that fails closed. A command behind -- says where it is, and what else
    /// to give it.
    #[arg(long, value_name = "PROGRAM", value_parser = door)]
    agent: Option<Door>,
    /// The agent's command.
    #[arg(value_name = "COMMAND", required_unless_present = "agent", last = true)]
    command: Vec<String>,
}

/// How an agent is used in a terminal.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct TerminalOptions {
    /// List the sessions that the agent remembers, and end.
    #[arg(long, conflicts_with = "resume")]
    sessions: bool,
    /// Take this session up again.
    #[arg(long, value_name = "SESSION")]
    resume: Option<String>,
    /// Write everything that is heard into this file too, with the time.
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
}

impl TerminalOptions {
    fn any(&self) -> bool {
        self.sessions || self.resume.is_some() || self.transcript.is_some()
    }
}

/// Uses a program in this terminal, behind its door. Modes in which it asks less are refused.
pub(crate) fn run_at_door(
    door: Door,
    terminal: &TerminalOptions,
    command: &[String],
    out: &mut impl Write,
) -> io::Result<Exit> {
    let options = AcpOptions {
        name: None,
        keep_asking: true,
        offer_always: false,
        timeout: TIMEOUT_SECONDS,
        hub: None,
        run: true,
        terminal: terminal.clone(),
        agent: Some(door),
        command: command.to_vec(),
    };
    run::run(&options, out)
}

/// The program of this name, behind its door.
pub(crate) fn door(name: &str) -> Result<Door, String> {
    Door::ALL.into_iter().find(|door| door.host().id() == name).ok_or_else(|| {
        let known: Vec<_> = Door::ALL.iter().map(|door| door.host().id()).collect();
        format!("there is no program of this name; there are {}", known.join(", "))
    })
}

/// An agent that was started, and both ends of what it says in the Agent Client Protocol.
struct Started {
    child: Child,
    to: Box<dyn AsyncWrite + Send + Unpin>,
    from: Box<dyn AsyncRead + Send + Unpin>,
}

/// Starts the agent; if that fails, says so.
fn start(options: &AcpOptions) -> Option<Started> {
    let mut command = options.command.clone();
    let Some(door) = options.agent else {
        let (child, to, from) = stdio::start(&command, &[])?;
        return Some(Started { child, to: Box::new(to), from: Box::new(from) });
    };
    if command.is_empty() {
        command.push(door.host().id().to_owned());
    }
    let how = door.start(options.terminal.resume.as_deref());
    // What the person adds comes first, so that it cannot undo what makes the program ask.
    command.extend(how.arguments);
    let (child, to, from) = stdio::start(&command, &how.environment)?;
    if door.speaks_acp() {
        return Some(Started { child, to: Box::new(to), from: Box::new(from) });
    }
    let (client_to, door_from) = duplex(ROOM);
    let (door_to, client_from) = duplex(ROOM);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    tokio::spawn(async move {
        let (door_from, from) = (BufReader::new(door_from), BufReader::new(from));
        if let Err(error) = door.run(home, door_from, door_to, from, to).await
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            say(&error.to_string());
        }
    });
    Some(Started { child, to: Box::new(client_to), from: Box::new(client_from) })
}

pub(crate) fn run(options: &AcpOptions, out: &mut impl Write) -> io::Result<Exit> {
    if options.run {
        return run::run(options, out);
    }
    if options.terminal.any() {
        say("--sessions, --resume and --transcript need --run. See `aaep acp --help`.");
        return Ok(Exit::Unable);
    }
    stdio::serve(out, move |to_editor| serve(options, to_editor))
}

fn proxy(options: &AcpOptions, editor_asks: bool) -> Proxy {
    let usual = match options.agent {
        Some(door) => door.host().name(),
        None => stdio::name(&options.command),
    };
    let name = options.name.clone().unwrap_or_else(|| usual.to_owned());
    let (hub, title) = (options.hub.clone(), name.clone());
    Proxy {
        home: std::env::var_os("HOME").map(PathBuf::from),
        timeout: Duration::from_secs(options.timeout),
        keeps_asking: options.keep_asking,
        editor_asks,
        offers_lasting: options.offer_always,
        allowed: Allowed::default(),
        given: hook::given(),
        connect: Arc::new(move || {
            let producer = Producer::new("acp").name(title.clone());
            discovery::connect(hub.as_deref(), producer, HUB_ANSWERS)
        }),
        name,
    }
}

async fn serve(options: &AcpOptions, to_editor: DuplexStream) -> Exit {
    let Some(Started { child, to, from }) = start(options) else { return Exit::Unable };
    let editor = BufReader::new(stdio::input());
    let done = proxy(options, true).run(editor, to_editor, BufReader::new(from), to).await;
    if let Err(error) = &done
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        say(&error.to_string());
    }
    stdio::ended(child).await
}
