//! `aaep conformance producer`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep_conformance::suite::{Script, Start, Target, Texts};
use aaep_types::profile::Profile;
use clap::{Args, ValueEnum};

use super::Format;
use crate::lines::Plain;

/// Check a producer over HTTP, WebSocket, gRPC, a Unix socket or stdio.
///
/// It listens as several subscribers, begins sessions, answers, and answers as nobody should. Use it on
/// what moves no real money.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 if the level was granted, 1 if not, and 2 if the run was cut short.
A check that did not get what it needs is not exercised, and then the level is not granted.

Examples:
  aaep conformance producer http://127.0.0.1:8707/aaep/v1 --level 1
  aaep conformance producer unix:/run/user/1000/aaep/aaep-hub.sock --level 3 --start agent
  aaep conformance producer grpc://127.0.0.1:8708 --control http://127.0.0.1:8707/aaep/v1
  aaep conformance producer 'stdio:aaep stdio' --control http://127.0.0.1:8707/aaep/v1
  aaep conformance producer http://127.0.0.1:8000 --start sessions --text confirm=\"book a room\" --format html")]
pub(super) struct ProducerOptions {
    /// Where events come from: http, https, ws, wss, grpc, grpcs, unix, or stdio: and a command.
    #[arg(value_name = "URL")]
    url: String,
    /// The level to check.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=3), default_value_t = 2)]
    pub(super) level: u8,
    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// How a session is begun.
    #[arg(long, value_enum, default_value_t = How::UserInput)]
    start: How,
    /// Where sessions are begun and manifests are, if not at URL; http or https. Needed for grpc and stdio,
    /// unless nothing has to be begun.
    #[arg(long, value_name = "URL")]
    control: Option<String>,
    /// The token of somebody who may answer.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The token of somebody who may not answer.
    #[arg(long, value_name = "FILE")]
    stranger_token_file: Option<PathBuf>,
    /// Where that somebody comes in, if not at URL: everybody on a socket is the same user.
    #[arg(long, value_name = "URL", requires = "stranger_token_file")]
    stranger_url: Option<String>,
    /// The token of an agent, for --start agent; otherwise a session secret is used.
    #[arg(long, value_name = "FILE")]
    agent_token_file: Option<PathBuf>,
    /// What to say for tool, confirm, short, withdraw, clarify, stream, fail, cancel, progress or flood.
    #[arg(long, value_name = "NAME=TEXT")]
    text: Vec<String>,
    /// A profile whose rules are checked besides.
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Seconds that the whole run may take.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600), default_value_t = 120)]
    deadline: u64,
    /// Seconds to wait for what should happen.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600), default_value_t = 10)]
    patience: u64,
    /// Milliseconds in which nothing has to happen before nothing counts as having happened; a question is
    /// left without an answer for ten times as long.
    #[arg(long, value_parser = clap::value_parser!(u64).range(50..=60_000), default_value_t = 400)]
    quiet: u64,
    /// Believe whatever listens on a loopback address.
    #[arg(long)]
    trust_loopback: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum How {
    /// A text is posted to messages, as a user would say it.
    UserInput,
    /// A text is posted to sessions, as published producers have it.
    Sessions,
    /// The suite plays the agent, over the agent API of a hub.
    Agent,
    /// Nothing is done; somebody else makes it do things.
    Wait,
}

impl ProducerOptions {
    pub(super) fn target(&self) -> Result<Target, String> {
        let mut texts = Texts::default();
        for given in &self.text {
            let (name, text) = given.split_once('=').unwrap_or((given, ""));
            let script = Script::ALL.iter().find(|script| script.name() == name);
            let script = script
                .ok_or_else(|| format!("--text {} names nothing. See --help.", Plain(name)))?;
            texts.set(*script, text);
        }
        let token = |path: &Option<PathBuf>| path.as_deref().map(read_token).transpose();
        let start = match self.start {
            How::UserInput => Start::UserInput,
            How::Sessions => Start::Sessions,
            How::Agent => Start::AgentApi { token: token(&self.agent_token_file)? },
            How::Wait => Start::Wait,
        };
        Ok(Target {
            start,
            control: self.control.clone(),
            token: token(&self.token_file)?,
            stranger: token(&self.stranger_token_file)?,
            stranger_url: self.stranger_url.clone(),
            trust_loopback: self.trust_loopback,
            texts,
            profile: self.profile.as_deref().map(read_profile).transpose()?,
            quiet: Duration::from_millis(self.quiet),
            patience: Duration::from_secs(self.patience),
            deadline: Duration::from_secs(self.deadline),
            ..Target::new(&self.url, self.level)
        })
    }
}

fn read_token(path: &Path) -> Result<String, String> {
    let shown = path.to_string_lossy();
    let text = std::fs::read_to_string(path);
    let text =
        text.map_err(|error| format!("cannot read {}: {error}. Name a token.", Plain(&shown)))?;
    Ok(text.trim().to_owned())
}

fn read_profile(path: &Path) -> Result<Profile, String> {
    let shown = path.to_string_lossy();
    let bytes = std::fs::read(path)
        .map_err(|error| format!("cannot read {}: {error}. Name a profile.", Plain(&shown)))?;
    Profile::parse(&bytes).map_err(|why| format!("{} is no profile. {why}", Plain(&shown)))
}
