//! `aaep replay`: plays a recording back, as a producer would say it.

mod door;
mod grpc;
mod player;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aaep_transport::server::Server;
use clap::Args;

use crate::exit::{self, Exit};
use crate::signals::Signals;
use door::{Door, Guests};
use player::Stage;

/// How long the last words may take to leave.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Play a recording back, as a producer: every subscriber hears it from its beginning.
///
/// Nothing happens but words: no tool runs. A request of the recording gets a fresh reply token and a
/// stamp of now, and waits for a real answer; then the recording goes on as it was.
#[derive(Args, Debug)]
#[command(after_help = "\
It waits for a subscriber, plays, and ends with 0 once somebody heard everything; with --loop or --stay it
runs until it is stopped. It listens on this machine alone, and plays to programs of yours alone.
It ends with 2 if it cannot play the file, or if nothing of it is where it should begin.

Examples:
  aaep replay session.jsonl
  aaep replay session.jsonl --listen 127.0.0.1:8800 --speed 10
  aaep listen 'stdio:aaep replay session.jsonl --stdio'
  aaep replay session.jsonl --socket /tmp/play/replay.sock --no-delay --no-wait
See docs/tools.md.")]
pub(crate) struct ReplayOptions {
    /// The recording: a capture, or messages one after the other.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Listen on this address of this machine, for streams over HTTP and WebSockets.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Listen on this Unix socket too.
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Listen on this address of this machine for gRPC too.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) grpc: Option<SocketAddr>,
    /// Play to the program that started this one, over standard input and output, and to nobody else.
    #[arg(long, conflicts_with_all = ["socket", "grpc", "stay"])]
    pub(crate) stdio: bool,
    /// So many times as fast.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    pub(crate) speed: f64,
    /// Without any pause.
    #[arg(long, conflicts_with = "speed")]
    pub(crate) no_delay: bool,
    /// Pause at most so many seconds.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) max_pause: Option<u64>,
    /// Begin with this message: its number, from 1, or its event id.
    #[arg(long, value_name = "PLACE")]
    pub(crate) from: Option<String>,
    /// Again and again. From the second time on, ids of sessions and events are new.
    #[arg(long = "loop")]
    pub(crate) again: bool,
    /// Do not wait for answers to requests.
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Keep the stamps of the recording. Requests may then seem to be over.
    #[arg(long)]
    pub(crate) keep_stamps: bool,
    /// Go on listening after the recording was heard.
    #[arg(long)]
    pub(crate) stay: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.parse::<f64>().map_err(|error| error.to_string())?;
    if factor.is_finite() && factor > 0.0 { Ok(factor) } else { Err("more than 0".into()) }
}

pub(crate) fn run(options: ReplayOptions, out: &mut impl Write) -> io::Result<Exit> {
    if options.stdio {
        return play_to_parent(options, out);
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let ended = runtime.block_on(replay(options, out));
    // A player may still pause.
    runtime.shutdown_background();
    match ended {
        Ok(exit) => exit,
        Err(why) => {
            exit::say(&why);
            Ok(Exit::Unable)
        }
    }
}

/// Standard output is for the recording, and what is said to people goes to standard error.
fn play_to_parent(options: ReplayOptions, out: &mut impl Write) -> io::Result<Exit> {
    let stage = match Stage::new(options) {
        Ok(stage) => Arc::new(stage),
        Err(why) => {
            exit::say(&why);
            return Ok(Exit::Unable);
        }
    };
    crate::stdio::serve(out, move |to| async move {
        let options = aaep_transport::link::Options::default();
        let link = aaep_transport::stdio::serve(crate::stdio::input(), to, &options);
        door::serve_link(&stage, link, true).await;
        if stage.found_nothing() { Exit::Unable } else { Exit::Good }
    })
}

fn on_this_machine(address: SocketAddr) -> Result<(), String> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    Err("A recording is played on this machine alone: use an address of 127.0.0.0/8 or ::1.".into())
}

async fn bound(address: SocketAddr) -> Result<(Server, SocketAddr), String> {
    on_this_machine(address)?;
    let server = Server::bind(address)
        .await
        .map_err(|error| format!("Cannot listen on {address}: {error}. Choose another address."))?;
    let address = server.local_addr().map_err(|error| error.to_string())?;
    Ok((server, address))
}

async fn replay(options: ReplayOptions, out: &mut impl Write) -> Result<io::Result<Exit>, String> {
    let mut signals = Signals::new().map_err(|fault| fault.to_string())?;
    let stays = options.again || options.stay;
    let (address, socket, grpc) = (options.listen, options.socket.clone(), options.grpc);
    let stage = Arc::new(Stage::new(options)?);
    let (server, address) = bound(address).await?;
    let mut lines = vec![format!("Playing: http://{address}/aaep/v1")];
    if let Some(address) = grpc {
        let (server, address) = bound(address).await?;
        lines.push(format!("gRPC: grpc://{address}"));
        let service = grpc::service(stage.clone(), Guests::At(address));
        tokio::spawn(server.serve_http2(service, std::future::pending()));
    }
    #[cfg(unix)]
    if let Some(path) = socket {
        let options = aaep_transport::link::Options::default();
        let listener = aaep_transport::unix::Listener::bind(&path, options)
            .map_err(|error| format!("The socket: {error}"))?;
        lines.push(format!("Socket: {}", path.display()));
        tokio::spawn(door::serve_socket(listener, stage.clone()));
    }
    #[cfg(not(unix))]
    if socket.is_some() {
        return Err("There are no Unix sockets here.".into());
    }
    let door = Door { stage: stage.clone(), guests: Guests::At(address) };
    tokio::spawn(server.serve(door, std::future::pending()));
    if !Guests::ARE_TOLD {
        lines.push(
            "Any user of this machine can hear it: this system does not tell who connects.".into(),
        );
    }
    lines.push("Waiting for a subscriber. Stop with Ctrl-C.".into());
    let said = lines.iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
    if let Err(error) = said {
        return Ok(Err(error));
    }
    let over = async {
        loop {
            stage.over.notified().await;
            // Where --from is nowhere, nobody will ever hear anything.
            if !stays || stage.begins_nowhere() {
                return;
            }
        }
    };
    tokio::select! {
        () = signals.stop() => return Ok(Ok(Exit::Good)),
        () = over => tokio::time::sleep(LAST_WORDS).await,
    }
    Ok(Ok(if stage.found_nothing() { Exit::Unable } else { Exit::Good }))
}
