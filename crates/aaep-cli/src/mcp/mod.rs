//! `aaep mcp`: stands before servers of the Model Context Protocol, and asks before their tools run.

mod servers;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use aaep_bridge::mcp::listen;
use clap::Args;
use tokio::io::{BufReader, DuplexStream};

use crate::exit::{Exit, say};
use crate::signals::Signals;
use crate::stdio;
use servers::{Servers, Upstream};

/// Stand before an MCP server: ask before its tools run.
///
/// Write it before the server's own command in your agent's settings. Calls of tools wait for your
/// answer, questions of the server are put to you; everything else passes unchanged.
#[derive(Args, Debug)]
#[command(after_help = "\
What a server says of its tools is not believed: without a policy every call is asked.
In a policy file the tools are named SERVER.TOOL, such as files.read_text_file.
It ends as the server ends, or with 2 if that cannot be started.

A file for --config has the form that agents use: {\"mcpServers\": {\"files\": {\"command\": \"…\",
\"args\": [], \"env\": {}}, \"web\": {\"url\": \"https://…\", \"headers\": {}}}}. Tools of several servers are
named with their server: files__read_text_file.

Examples:
  aaep mcp --name files -- npx -y @modelcontextprotocol/server-filesystem .
  aaep mcp --name files --policy policy.toml -- mcp-server-filesystem .
  aaep mcp --name web --url https://example.org/mcp
  aaep mcp --config servers.json
  aaep mcp --listen 127.0.0.1:8808 --config servers.json")]
pub(crate) struct McpOptions {
    /// The server's name, as you know it. Without it: its command or its address.
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
    /// A server at this address (streamable HTTP), in place of a command.
    #[arg(long, value_name = "URL", group = "target")]
    url: Option<String>,
    /// A header for the server at the address, as in 'Authorization: Bearer x'. Other users of this
    /// machine can see it; in a file for --config they cannot.
    #[arg(long, value_name = "HEADER", requires = "url", value_parser = header)]
    header: Vec<(String, String)>,
    /// Several servers, from this file.
    #[arg(long, value_name = "FILE", group = "target", conflicts_with = "name")]
    config: Option<PathBuf>,
    /// Let clients come to this address of this machine (streamable HTTP), in place of standard input.
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    listen: Option<SocketAddr>,
    /// The server's command.
    #[arg(value_name = "COMMAND", group = "target", required_unless_present_any = ["url", "config"], last = true)]
    command: Vec<String>,
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is written as NAME: VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| "an address is written as 127.0.0.1:8808".to_owned())?;
    match address.ip().is_loopback() {
        true => Ok(address),
        // Nobody is asked who they are.
        false => Err("only addresses of this machine can be used, such as 127.0.0.1".into()),
    }
}

pub(crate) fn run(options: &McpOptions, out: &mut impl Write) -> io::Result<Exit> {
    let servers = match Servers::read(options) {
        Ok(servers) => servers,
        Err(why) => {
            say(&why);
            return Ok(Exit::Unable);
        }
    };
    match options.listen {
        Some(address) => listens(servers, address, out),
        None => stdio::serve(out, move |to_client| serve(servers, to_client)),
    }
}

async fn serve(servers: Servers, to_client: DuplexStream) -> Exit {
    let Upstream { to, from, children } = match servers.start() {
        Ok(started) => started,
        Err(why) => {
            say(&why);
            return Exit::Unable;
        }
    };
    let input = BufReader::new(stdio::input());
    let done = servers.proxy().run(input, to_client, BufReader::new(from), to).await;
    if let Err(error) = &done
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        say(&error.to_string());
    }
    let mut exit = Exit::Good;
    for child in children {
        exit = exit.max(stdio::ended(child).await);
    }
    exit
}

/// Serves clients over HTTP until it is stopped.
fn listens(servers: Servers, address: SocketAddr, out: &mut impl Write) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let listener = match tokio::net::TcpListener::bind(address).await {
            Ok(listener) => listener,
            Err(error) => {
                say(&format!("{address} cannot be used: {error}. Choose another with --listen."));
                return Ok(Exit::Unable);
            }
        };
        let address = listener.local_addr()?;
        writeln!(out, "Clients come to http://{address}{}.", listen::PATH)?;
        out.flush()?;
        let open: listen::Open = Arc::new(move || {
            let opened = servers.open();
            Box::pin(async move { opened })
        });
        let stopped = async {
            match Signals::new() {
                Ok(mut signals) => signals.stop().await,
                Err(_) => std::future::pending().await,
            }
        };
        listen::serve(listener, open, stopped).await;
        Ok(Exit::Good)
    });
    runtime.shutdown_background();
    served
}
