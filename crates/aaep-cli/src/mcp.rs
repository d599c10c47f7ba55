//! `aaep mcp`: stands before a server of the Model Context Protocol, and asks before its tools run.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use aaep_agent::Producer;
use aaep_bridge::mcp::Proxy;
use aaep_policy::Policy;
use clap::Args;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::process::{Child, Command};
use tokio::runtime::{Builder, Handle};

use crate::exit::{Exit, say};
use crate::near;
use crate::policy;

/// How long a hub that does not answer is waited for.
const HUB_ANSWERS: Duration = Duration::from_secs(20);

/// What may be on its way in one direction, in bytes.
const ROOM: usize = 64 * 1024;

/// How long a server may take to end when its client is gone.
const SERVER_ENDS: Duration = Duration::from_secs(5);

/// Stand before an MCP server: ask before its tools run.
///
/// Write it before the server's own command in your agent's settings. Calls of tools wait for your
/// answer; everything else passes unchanged.
#[derive(Args, Debug)]
#[command(after_help = "\
What a server says of its tools is not believed: without a policy every call is asked.
In a policy file the tools are named SERVER.TOOL, such as files.read_text_file.
It ends as the server ends, or with 2 if that cannot be started.

Examples:
  aaep mcp --name files -- npx -y @modelcontextprotocol/server-filesystem .
  aaep mcp --name files --policy policy.toml -- mcp-server-filesystem .")]
pub(crate) struct McpOptions {
    /// The server's name, as you know it. Without it: its command.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Tell, or leave alone, what this policy file says.
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Seconds to wait for an answer. Agents give up at some time: Codex after 300.
    #[arg(long, value_name = "SECONDS", default_value_t = 280, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    timeout: u64,
    /// The hub. Then none is started.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// The server's command.
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,
}

pub(crate) fn run(options: &McpOptions, out: &mut impl Write) -> io::Result<Exit> {
    let policy = match options.policy.as_deref().map(policy::read) {
        None => Policy::default(),
        Some(Ok(policy)) => policy,
        Some(Err(why)) => {
            say(&why);
            return Ok(Exit::Unable);
        }
    };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    // This thread has standard output, so it writes, and the work is done elsewhere.
    let (to_client, mut written) = duplex(ROOM);
    let pump = Builder::new_current_thread().build()?;
    thread::scope(|scope| {
        let worker = scope.spawn(move || runtime.block_on(serve(options, policy, to_client)));
        let mut buffer = vec![0; ROOM];
        loop {
            match pump.block_on(written.read(&mut buffer))? {
                0 => break,
                read => out.write_all(&buffer[..read]).and_then(|()| out.flush())?,
            }
        }
        Ok(worker.join().unwrap_or(Exit::Unable))
    })
}

/// Standard input, for a task: a thread reads it, because that may take forever.
fn input() -> DuplexStream {
    let (mut to, from) = duplex(ROOM);
    let runtime = Handle::current();
    thread::spawn(move || {
        let mut buffer = vec![0; ROOM];
        let mut stdin = io::stdin().lock();
        while let Ok(read @ 1..) = stdin.read(&mut buffer) {
            if runtime.block_on(to.write_all(&buffer[..read])).is_err() {
                return;
            }
        }
    });
    from
}

async fn serve(options: &McpOptions, policy: Policy, to_client: DuplexStream) -> Exit {
    let Some((program, arguments)) = options.command.split_first() else { return Exit::Unable };
    let mut server = Command::new(program);
    server.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = match server.spawn() {
        Ok(child) => child,
        Err(error) => {
            say(&format!("cannot start {program}: {error}. Check the command behind --."));
            return Exit::Unable;
        }
    };
    let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Exit::Unable;
    };
    let usual = program.rsplit('/').next().unwrap_or(program);
    let name = options.name.clone().unwrap_or_else(|| usual.to_owned());
    let hub = options.hub.clone();
    let proxy = Proxy {
        policy,
        timeout: Duration::from_secs(options.timeout),
        connect: std::sync::Arc::new({
            let name = name.clone();
            move || {
                let producer = Producer::new("mcp").name(format!("MCP server {name}"));
                near::connect(hub.as_deref(), producer, HUB_ANSWERS)
            }
        }),
        name,
    };
    let done = proxy.run(BufReader::new(input()), to_client, BufReader::new(from), to).await;
    if let Err(error) = &done
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        say(&error.to_string());
    }
    ended(child).await
}

/// The server's end is ours.
async fn ended(mut child: Child) -> Exit {
    match tokio::time::timeout(SERVER_ENDS, child.wait()).await {
        Ok(Ok(status)) if status.success() => Exit::Good,
        Ok(Ok(_)) => Exit::Wrong,
        _ => {
            let _ = child.kill().await;
            Exit::Wrong
        }
    }
}
