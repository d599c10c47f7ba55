//! `aaep acp`: between an editor and an agent of the Agent Client Protocol.

mod client;
mod run;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aaep_agent::Producer;
use aaep_bridge::acp::Proxy;
use clap::Args;
use tokio::io::{BufReader, DuplexStream};

use crate::discovery;
use crate::exit::{Exit, say};
use crate::stdio;

/// How long a hub that does not answer is waited for.
const HUB_ANSWERS: Duration = Duration::from_secs(20);

/// Stand between an editor and an agent: hear what it does, and answer its questions.
///
/// Write it before the agent's own command in your editor's settings. Everything passes unchanged;
/// the agent's questions are put to you as well, and the first answer counts.
#[derive(Args, Debug)]
#[command(after_help = "\
The agent speaks the Agent Client Protocol. Silence is a no. A yes counts once; to be asked no more,
answer in the editor.
It ends as the agent ends, or with 2 if that cannot be started.

With --run there is no editor: what you type goes to the agent, and everything that it does is heard
here, as by aaep listen. Speech, braille and sounds are set by the same variables: AAEP_SPEAK and so on.
A line that begins with / is for aaep, such as /stop or /quit.

Examples:
  aaep acp -- gemini --acp
  aaep acp --run -- gemini --acp
  aaep acp --keep-asking -- npx -y @agentclientprotocol/claude-agent-acp")]
pub(crate) struct AcpOptions {
    /// The agent's name, as you know it. Without it: its own, or its command.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Refuse modes in which the agent asks less, such as yolo.
    #[arg(long)]
    keep_asking: bool,
    /// Seconds to wait for an answer.
    #[arg(long, value_name = "SECONDS", default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// The hub. Then none is started.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// Use the agent here, without an editor.
    #[arg(long)]
    run: bool,
    /// List the sessions that the agent remembers, and end.
    #[arg(long, requires = "run", conflicts_with = "resume")]
    sessions: bool,
    /// Take this session up again.
    #[arg(long, value_name = "SESSION", requires = "run")]
    resume: Option<String>,
    /// Write everything that is heard into this file too, with the time.
    #[arg(long, value_name = "FILE", requires = "run")]
    transcript: Option<PathBuf>,
    /// The agent's command.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,
}

pub(crate) fn run(options: &AcpOptions, out: &mut impl Write) -> io::Result<Exit> {
    if options.run {
        return run::run(options, out);
    }
    stdio::serve(out, move |to_editor| serve(options, to_editor))
}

fn proxy(options: &AcpOptions, editor_asks: bool) -> Proxy {
    let name = options.name.clone().unwrap_or_else(|| stdio::name(&options.command).to_owned());
    let (hub, title) = (options.hub.clone(), name.clone());
    Proxy {
        home: std::env::var_os("HOME").map(PathBuf::from),
        timeout: Duration::from_secs(options.timeout),
        keeps_asking: options.keep_asking,
        editor_asks,
        connect: Arc::new(move || {
            let producer = Producer::new("acp").name(title.clone());
            discovery::connect(hub.as_deref(), producer, HUB_ANSWERS)
        }),
        name,
    }
}

async fn serve(options: &AcpOptions, to_editor: DuplexStream) -> Exit {
    let Some((child, to, from)) = stdio::start(&options.command) else { return Exit::Unable };
    let editor = BufReader::new(stdio::input());
    let done = proxy(options, true).run(editor, to_editor, BufReader::new(from), to).await;
    if let Err(error) = &done
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        say(&error.to_string());
    }
    stdio::ended(child).await
}
