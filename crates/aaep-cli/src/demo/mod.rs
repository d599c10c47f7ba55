//! `aaep demo`: a hub on this machine with an agent to talk to. The first thing a newcomer runs.

mod agent;
mod scripts;
mod talk;
mod topics;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep_agent::{Agent, Producer};
use aaep_engine::Role;
use aaep_hub::access::{LOCAL_USER, Token};
use aaep_hub::config::{
    Config, Development, Flags, Label, LogLevel, PrincipalEntry, Surroundings, System, load,
};
use aaep_hub::{Fault, Hub, Running};

use crate::arguments::DemoOptions;
use crate::exit::{self, Exit};
use crate::signals::Signals;

/// What its directories and its socket are called.
pub(crate) const NAME: &str = "aaep-demo";

/// How long the agent may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(10);

pub(crate) fn run(options: &DemoOptions, out: &mut impl Write) -> io::Result<Exit> {
    if let Some(text) = &options.say {
        return talk::say(text, options, out);
    }
    let (config, token) = match config(options).and_then(with_page) {
        Ok(ready) => ready,
        Err(fault) => return Ok(unable(&fault)),
    };
    crate::log::Log::begin(&config, None);
    let kept = config.data.clone();
    let prepared = match Hub::builder().config(config).prepare() {
        Ok(prepared) => prepared,
        Err(fault) => return Ok(unable(&fault)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let running = match prepared.start().await {
            Ok(running) => running,
            Err(fault) => return Ok(unable(&fault)),
        };
        let code = match token.map(|token| running.page_code(token)).transpose() {
            Ok(code) => code,
            Err(fault) => return Ok(unable(&fault)),
        };
        greet(&running, options, kept.as_deref(), code.as_deref(), out)?;
        Ok(match serve(running).await {
            Ok(()) => Exit::Good,
            Err(fault) => unable(&fault),
        })
    });
    // A thread may still wait for a line from the terminal.
    runtime.shutdown_background();
    ended
}

fn unable(fault: &Fault) -> Exit {
    exit::say(&fault.to_string());
    Exit::Unable
}

/// What the demo is: open to this machine. Your own configuration, and what your own hub keeps, are
/// left alone, unless you name them.
fn config(options: &DemoOptions) -> Result<Config, Fault> {
    let surroundings = Surroundings::of_process()?;
    let flags = Flags {
        config: options.config.clone(),
        listen: options.listen.clone(),
        data: options.data.clone(),
        ephemeral: options.ephemeral,
        local_replies: true,
        published_suite: !options.strict,
        ..Flags::default()
    };
    if flags.config.is_some() {
        return load(&flags, &surroundings).map(|loaded| loaded.config);
    }
    // Beside the directories of a hub. Without a home directory nothing is kept.
    let of_its_own = |usual: Option<PathBuf>| Some(usual?.with_file_name(NAME));
    let variables = &surroundings.variables;
    let data = flags.data.or_else(|| of_its_own(System::HERE.data(variables)));
    let data = data.filter(|_| !flags.ephemeral);
    let state = of_its_own(System::HERE.state(variables)).filter(|_| data.is_some());
    let mut config = Config {
        ephemeral: data.is_none(),
        data,
        state,
        development: Development { local_replies: true, ..Development::default() },
        ..Config::default()
    };
    if !flags.listen.is_empty() {
        config.listen = flags.listen;
    }
    config.compatibility.published_suite = flags.published_suite;
    config.log.level = LogLevel::Warn;
    // A socket of its own, so that a real hub may run beside it.
    config.hub.agent_id = Label::parse(NAME).unwrap_or(config.hub.agent_id);
    config.hub.agent_name = Label::parse("AAEP demo").unwrap_or(config.hub.agent_name);
    Ok(config)
}

/// The name of the page's principal.
const PAGE: &str = "page";

/// Lets the page in, with a token of its own that lives as long as the demo. A user who has a principal
/// of that name already has the token for it too, and pastes it.
fn with_page(mut config: Config) -> Result<(Config, Option<Token>), Fault> {
    let (Ok(name), Ok(user)) = (Label::parse(PAGE), Label::parse(LOCAL_USER)) else {
        return Ok((config, None));
    };
    if config.principals.iter().any(|entry| entry.name == name) {
        return Ok((config, None));
    }
    let token = Token::generate()?;
    let (role, token_sha256) = (Role::AccessibilityConsumer, Some(token.hash()));
    config.principals.push(PrincipalEntry {
        name,
        role,
        user,
        token_sha256,
        token_file: None,
        certificate_sha256: None,
        certificate_name: None,
    });
    Ok((config, Some(token)))
}

/// Where to listen and how to answer, in plain lines. "Ready." is the last one.
fn greet(
    running: &Running,
    options: &DemoOptions,
    kept: Option<&Path>,
    code: Option<&str>,
    out: &mut impl Write,
) -> io::Result<()> {
    let (mut url, mut page) = (String::new(), String::new());
    for address in running.addresses() {
        (url, page) = (running.url(*address), running.page(*address));
        writeln!(out, "Listening: {url}")?;
    }
    if let Some(socket) = running.socket() {
        writeln!(out, "Socket: {}", socket.display())?;
    }
    match code {
        Some(code) => {
            writeln!(out, "Page: {page}#code={code}")?;
            writeln!(out, "Open the page in your browser. Its code works once, for 15 minutes.")?;
        }
        None => writeln!(out, "Page: {page}")?,
    }
    writeln!(
        out,
        "This is for trying out. Anyone on this machine can listen, speak and answer in your name."
    )?;
    match kept {
        Some(data) => writeln!(
            out,
            "What is asked and answered is kept in {}. --ephemeral keeps nothing.",
            data.display()
        )?,
        None => writeln!(out, "Nothing is kept: when it ends, everything is forgotten.")?,
    }
    if options.strict {
        writeln!(out, "It follows the specification strictly.")?;
    } else {
        writeln!(
            out,
            "To please the published conformance suite, streams without a handshake hear the start of each session twice. --strict turns that off."
        )?;
    }
    let place = if running
        .addresses()
        .iter()
        .any(|address| address.port() == aaep_hub::config::DEFAULT_PORT)
    {
        String::new()
    } else {
        format!(" --hub {url}")
    };
    writeln!(
        out,
        "To talk with it, hear it and answer it, in another terminal: aaep demo{place} --say \"transfer 20 euros to Ann\""
    )?;
    writeln!(
        out,
        "To hear it and answer it all the time, in another terminal: aaep listen{}",
        place.replace(" --hub", "")
    )?;
    writeln!(out, "To hear everything: curl -N {url}/events")?;
    writeln!(
        out,
        "To say something without our command: curl -H 'Content-Type: application/json' -d '{{\"kind\":\"user_input\",\"text\":\"help\"}}' {url}/messages"
    )?;
    writeln!(
        out,
        "To answer without our command, put the question's reply_token into: curl -H 'Content-Type: application/json' -d '{{\"type\":\"confirmation.reply\",\"reply_token\":\"rpl_...\",\"decision\":\"accept\",\"timestamp\":\"'$(date -u +%Y-%m-%dT%H:%M:%S.000Z)'\"}}' {url}/messages"
    )?;
    writeln!(out, "It understands: {}.", understands())?;
    writeln!(out, "Ready. Stop with Ctrl-C.")?;
    out.flush()
}

fn understands() -> String {
    let said: Vec<&str> = topics::EXAMPLES.iter().map(|(said, _)| *said).collect();
    said.join(", ")
}

/// Works until somebody wants it to stop, or it cannot go on.
async fn serve(mut running: Running) -> Result<(), Fault> {
    let mut signals = Signals::new()?;
    let unusable = |error: aaep_agent::Error| Fault::System { what: error.to_string() };
    let producer =
        Producer::new("demo-agent").name("Demonstration").version(env!("CARGO_PKG_VERSION"));
    let agent = Agent::embed(running.hub(), producer).map_err(unusable)?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopped = async move { drop(stopped.await) };
    let working = tokio::spawn(agent::work(agent.clone(), stopped));
    let failed = tokio::select! {
        failed = running.failed() => Some(failed),
        () = signals.stop() => None,
    };
    drop(stop);
    let _ = working.await;
    if let Some(failed) = failed {
        return failed;
    }
    exit::say("Stopping.");
    let _ = tokio::time::timeout(GOODBYE, agent.close()).await;
    running.stop().await
}
