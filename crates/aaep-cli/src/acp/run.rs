//! `aaep acp --run`: an agent in a terminal, without an editor. Words are typed, everything else is
//! heard as `aaep listen` tells it.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use aaep_agent::Producer;
use clap::Parser;
use tokio::io::{BufReader, duplex};
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinSet;

use super::client::{Client, Failed};
use super::desk::Desk;
use super::terminals::Terminals;
use super::{AcpOptions, HUB_ANSWERS, ROOM, Started, proxy, start};
use crate::arguments::{Arguments, Command};
use crate::exit::{Exit, say};
use crate::listen::{self, ListenOptions, Prompts};
use crate::{discovery, lines};

/// Wishes that wait until the agent has time.
const WISHES: usize = 16;

/// How long an agent may take to end.
const ENDS: Duration = Duration::from_secs(5);

pub(super) fn run(options: &AcpOptions, out: &mut impl Write) -> io::Result<Exit> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let exit = runtime.block_on(talk(options, out));
    // A thread may still wait for a key.
    runtime.shutdown_background();
    match exit {
        Ok(exit) => exit,
        Err(why) => {
            out.flush()?;
            say(&why);
            Ok(Exit::Unable)
        }
    }
}

/// How `aaep listen` would be started here.
fn listening(options: &AcpOptions) -> Result<ListenOptions, String> {
    let mut words = vec!["aaep".to_owned(), "listen".to_owned(), "--line".to_owned()];
    if let Some(file) = &options.terminal.transcript {
        words.push(format!("--transcript={}", file.display()));
    }
    words.extend(options.hub.clone());
    match Arguments::try_parse_from(words).map_err(|error| error.to_string())?.command {
        Command::Listen(options) => Ok(options),
        _ => Err("there is a fault in aaep itself".into()),
    }
}

async fn talk(options: &AcpOptions, out: &mut impl Write) -> Result<io::Result<Exit>, String> {
    let listening = listening(options)?;
    // Without a hub nobody could be asked, so the agent is not even started.
    let hub = options.hub.clone();
    let found = tokio::task::spawn_blocking(move || discovery::running(hub.as_deref()).map(drop));
    found.await.map_err(|error| error.to_string())??;
    let place = std::env::current_dir().and_then(|place| place.canonicalize());
    let place = place.map_err(|error| format!("where are we? {error}"))?;
    let Some(Started { mut child, to, from }) = start(options) else {
        return Ok(Ok(Exit::Unable));
    };
    let (client_to, proxy_from) = duplex(ROOM);
    let (proxy_to, client_from) = duplex(ROOM);
    let proxy = proxy(options, false);
    let hub = options.hub.clone();
    let desk = Desk {
        place,
        home: proxy.home.clone(),
        hub: Box::new(move || {
            let producer = Producer::new("acp").name("A coding agent");
            discovery::connect(hub.as_deref(), producer, HUB_ANSWERS)
        }),
        timeout: proxy.timeout,
        allowed: proxy.allowed.clone(),
        terminals: Terminals::default(),
    };
    let relay =
        tokio::spawn(proxy.run(BufReader::new(proxy_from), proxy_to, BufReader::new(from), to));
    let mut client = Client {
        to: Arc::new(Mutex::new(client_to)),
        from: BufReader::new(client_from),
        desk: Arc::new(desk),
        tasks: JoinSet::new(),
        last: 0,
        partial: Vec::new(),
    };
    let session = match begin(&mut client, options, out).await {
        Ok(Some(session)) => session,
        Ok(None) => return Ok(Ok(Exit::Good)),
        Err(why) => {
            let _ = child.kill().await;
            return Err(why);
        }
    };
    let greeting = "Type what the agent should do, and Enter. When it asks, type yes or no. \
        A slash leads to the rest: /help, /stop, /list, /quit.";
    if let Err(error) = writeln!(out, "{greeting}").and_then(|()| out.flush()) {
        return Ok(Err(error));
    }
    let (wish, mut wishes) = mpsc::channel::<String>(WISHES);
    let (over, ended) = oneshot::channel();
    let work = tokio::spawn(async move {
        loop {
            let done = tokio::select! {
                wish = wishes.recv() => match wish {
                    // What the agent refuses was told: its turn failed.
                    Some(text) => client.prompt(&session, &text).await,
                    None => break,
                },
                // Agents talk also when nobody asked them.
                said = client.hear() => match said {
                    Ok(said) => client.heard(&said).await,
                    Err(why) => Err(why),
                },
            };
            if let Err(Failed::Gone) = done {
                break;
            }
        }
        // Nobody is left to talk with the agent: it ends, and what it did is told.
        drop(client);
        let _ = tokio::time::timeout(ENDS, relay).await;
        drop(over);
    });
    let heard = listen::with_prompts(&listening, out, Prompts::new(wish, ended)).await;
    let gone = tokio::time::timeout(2 * ENDS, work).await.is_ok();
    if !gone || tokio::time::timeout(ENDS, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
    heard
}

/// As far as a session; none if there is nothing more to do.
async fn begin(
    client: &mut Client,
    options: &AcpOptions,
    out: &mut impl Write,
) -> Result<Option<String>, String> {
    let gone = || "the agent ended before it was ready. Start it by itself to see why.".to_owned();
    // Behind a door every command is asked about; some would be asked about again in a terminal of ours.
    let agent = client.introduce(options.agent.is_none()).await.map_err(|why| match why {
        Failed::Gone => gone(),
        Failed::Refused(why) => format!("the agent does not begin: {}.", lines::Plain(&why)),
    })?;
    if options.terminal.sessions {
        let listed = client.sessions(&agent).await.map_err(|_| gone())?;
        let Some(listed) = listed else {
            return Err("this agent cannot list its sessions.".into());
        };
        for session in &listed {
            let line = format!("{}: {}", lines::Plain(&session.id), lines::Plain(&session.title));
            writeln!(out, "{line}").map_err(|error| error.to_string())?;
        }
        if listed.is_empty() {
            writeln!(out, "There are no sessions.").map_err(|error| error.to_string())?;
        }
        return Ok(None);
    }
    match client.session(&agent, options.terminal.resume.as_deref()).await {
        Ok(session) => Ok(Some(session)),
        Err(Failed::Gone) => Err(gone()),
        Err(Failed::Refused(why)) => {
            let ways: Vec<_> =
                agent.logins.iter().map(|way| lines::Plain(way).to_string()).collect();
            let ways = match ways.is_empty() {
                true => String::new(),
                false => format!(
                    " If you have to log in, do it with the agent's own program: {}.",
                    ways.join(", ")
                ),
            };
            Err(format!("the agent begins no session: {}.{ways}", lines::Plain(&why)))
        }
    }
}
