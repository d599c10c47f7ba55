//! `aaep hook`: called by a coding agent before a tool runs. Tells or asks the person, and answers.
//!
//! The main thread keeps the time and is the only one that writes: whatever becomes of the work, there
//! is one answer, and it comes last.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use aaep_bridge::hook::{Desk, producer};
use aaep_bridge::host::{HookAnswer, Host, Incoming, MAX_INPUT_BYTES, Reply, own_time};
use aaep_bridge::{Given, Memory};

use aaep_policy::Policy;
use clap::Args;

use crate::exit::Exit;
use crate::{discovery, policy};

/// How long the call itself may take to arrive.
const ARRIVES: Duration = Duration::from_secs(10);

/// How long a hub that does not answer is waited for.
const HUB_ANSWERS: Duration = Duration::from_secs(3);

/// How often it is looked whether the agent is still there.
#[cfg(unix)]
const LOOKS: Duration = Duration::from_millis(500);

/// How long a question may take to be withdrawn.
const GOODBYE: Duration = Duration::from_secs(1);

/// Stand before the tools of a coding agent: tell what it does, ask where it matters.
///
/// The agent calls this before each tool, with the call on standard input, and gets its answer in its
/// own form. Harmless steps are told; deleting, publishing, installing, sending, keys, whatever leaves
/// the project, and whatever is not understood is asked. On any doubt the answer is no.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 if the tool may run, and with 2 if it must not.
If no hub runs, one is started for you, on your own socket. Hear it and answer with `aaep listen`.
How to set up each agent is in docs/bridges.md.

Examples:
  aaep hook
  aaep hook --host claude --host-timeout 86400
  aaep hook --policy ~/.config/aaep/tools.toml")]
pub(crate) struct HookOptions {
    /// The program that calls: claude, codex, gemini, qwen, kimi, copilot, cline or opencode.
    /// Without it, it is recognised by what it says.
    #[arg(long, value_name = "NAME", value_parser = host)]
    pub(crate) host: Option<Host>,
    /// Seconds that the program waits for its hook, as it is set there. The answer comes before.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(5..=86_400))]
    pub(crate) host_timeout: Option<u64>,
    /// The hub. Then none is started.
    #[arg(long, value_name = "URL")]
    pub(crate) hub: Option<String>,
    /// A policy file with rules of your own: they can have anything asked, and let tools run that no
    /// built-in rule knows. A file that cannot be used means no.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
}

fn host(name: &str) -> Result<Host, String> {
    Host::parse(name).ok_or_else(|| {
        let known: Vec<_> = Host::ALL.iter().map(|host| host.id()).collect();
        format!("there is no program of this name; there are {}", known.join(", "))
    })
}

pub(crate) fn run(options: &HookOptions, out: &mut impl Write) -> io::Result<Exit> {
    let begun = Instant::now();
    let Reply { out: line, err, status } = answer(options, begun);
    out.write_all(line.as_bytes())?;
    out.flush()?;
    let _ = io::stderr().write_all(err.as_bytes());
    Ok(if status == 0 { Exit::Good } else { Exit::Unable })
}

fn answer(options: &HookOptions, begun: Instant) -> Reply {
    let bytes = match within(ARRIVES, read) {
        Ok(Ok(bytes)) => bytes,
        Ok(Err(error)) => return refuse(options, &format!("the call cannot be read: {error}")),
        Err(why) => return refuse(options, &format!("the call did not arrive: {why}")),
    };
    let incoming = match Incoming::read(&bytes, options.host) {
        Ok(incoming) => incoming,
        Err(why) => return refuse(options, &why.to_string()),
    };
    let policy = match options.policy.as_deref().map(policy::read) {
        None => Policy::default(),
        Some(Ok(policy)) => policy,
        Some(Err(why)) => {
            let why = format!("It is not done: the policy cannot be used: {why}");
            return HookAnswer::Deny(why).reply(&incoming);
        }
    };
    let waits = options.host_timeout.map(Duration::from_secs);
    let own = own_time(waits.unwrap_or_else(|| incoming.host.usual_timeout()));
    let deadline = begun + own;
    let left = deadline.saturating_duration_since(Instant::now());
    let (call, hub) = (incoming.clone(), options.hub.clone());
    let done = within(left, move || work(&call, hub.as_deref(), policy, deadline));
    match done {
        Ok(answer) => answer.reply(&incoming),
        Err(why) => HookAnswer::Deny(format!("It is not done: {why}.")).reply(&incoming),
    }
}

/// A "no" to a call that was not understood.
fn refuse(options: &HookOptions, why: &str) -> Reply {
    HookAnswer::refuse(options.host, &format!("It is not done: {why}. See `aaep hook --help`."))
}

fn read() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(MAX_INPUT_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    io::stdin().lock().take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Does something elsewhere, and waits no longer than this. A panic there is an error here.
fn within<T: Send + 'static>(
    time: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, &'static str> {
    let (send, receive) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let _ = send.send(work());
    });
    receive.recv_timeout(time).map_err(|error| match error {
        RecvTimeoutError::Timeout => "there was no answer in time",
        RecvTimeoutError::Disconnected => "there is a fault in aaep itself",
    })
}

fn work(incoming: &Incoming, hub: Option<&str>, policy: Policy, deadline: Instant) -> HookAnswer {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return HookAnswer::Deny(format!("It is not done: {error}.")),
    };
    runtime.block_on(async {
        let agent = match discovery::connect(hub, producer(incoming.host), HUB_ANSWERS) {
            Ok(agent) => agent,
            Err(why) => {
                return HookAnswer::Deny(format!(
                    "Nobody could be asked, so it is not done: {why}"
                ));
            }
        };
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let memory = match state() {
            Some(directory) => Memory::at(directory),
            None => return HookAnswer::Deny("It is not done: HOME is not set.".into()),
        };
        // Room to withdraw the question before the time is over.
        let answered = deadline.checked_sub(2 * GOODBYE).unwrap_or(deadline);
        let deadline = tokio::time::Instant::from_std(answered);
        let desk = Desk { memory, home, policy, deadline };
        let answer = tokio::select! {
            answer = desk.handle(incoming, &agent) => answer,
            // What was asked is withdrawn.
            () = gone() => HookAnswer::Deny("The program that called is gone.".into()),
        };
        let _ = tokio::time::timeout(GOODBYE, agent.close()).await;
        answer
    })
}

/// Waits until nobody can read the answer any more: the agent was stopped in mid-question.
#[cfg(unix)]
async fn gone() {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let closed = PollFlags::ERR | PollFlags::HUP;
    loop {
        tokio::time::sleep(LOOKS).await;
        let stdout = rustix::stdio::stdout();
        let mut looked = [PollFd::new(&stdout, PollFlags::empty())];
        if poll(&mut looked, Some(&now)).is_ok() && looked[0].revents().intersects(closed) {
            return;
        }
    }
}

#[cfg(not(unix))]
async fn gone() {
    std::future::pending().await
}

/// What hooks were told, for a proxy before the same calls.
pub(crate) fn given() -> Option<Given> {
    state().map(|directory| Given::new(Memory::at(directory)))
}

/// Where tickets are kept: `$XDG_STATE_HOME/aaep/bridge`, or below `~/.local/state`.
pub(crate) fn state() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    base.map(|base| base.join("aaep").join("bridge"))
}
