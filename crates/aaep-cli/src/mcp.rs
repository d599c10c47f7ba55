//! `aaep mcp`: stands before a server of the Model Context Protocol, and asks before its tools run.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use aaep_agent::Producer;
use aaep_bridge::mcp::Proxy;
use aaep_policy::Policy;
use clap::Args;
use tokio::io::{BufReader, DuplexStream};

use crate::discovery;
use crate::exit::{Exit, say};
use crate::policy;
use crate::stdio;

/// How long a hub that does not answer is waited for.
const HUB_ANSWERS: Duration = Duration::from_secs(20);

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
    stdio::serve(out, move |to_client| serve(options, policy, to_client))
}

async fn serve(options: &McpOptions, policy: Policy, to_client: DuplexStream) -> Exit {
    let Some((child, to, from)) = stdio::start(&options.command) else { return Exit::Unable };
    let name = options.name.clone().unwrap_or_else(|| stdio::name(&options.command).to_owned());
    let hub = options.hub.clone();
    let proxy = Proxy {
        policy,
        timeout: Duration::from_secs(options.timeout),
        connect: std::sync::Arc::new({
            let name = name.clone();
            move || {
                let producer = Producer::new("mcp").name(format!("MCP server {name}"));
                discovery::connect(hub.as_deref(), producer, HUB_ANSWERS)
            }
        }),
        name,
    };
    let done = proxy.run(BufReader::new(stdio::input()), to_client, BufReader::new(from), to).await;
    if let Err(error) = &done
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        say(&error.to_string());
    }
    stdio::ended(child).await
}
