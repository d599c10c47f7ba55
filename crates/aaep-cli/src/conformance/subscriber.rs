//! `aaep conformance subscriber`.

use std::time::Duration;

use aaep_conformance::suite::subscriber::{Keys, Listening, Subject, Watch};
use aaep_conformance::suite::{Report, subscriber};
use clap::Args;

use super::Format;
use crate::exit;

/// Check a subscriber: it listens to the suite, which is the producer.
///
/// What it announces is posted to URL/observer by it or by a program beside it; or it is run by the suite
/// (behind --), and what it prints is what it announces.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 if the level was granted, 1 if not, and 2 if the run was cut short.

Examples:
  aaep conformance subscriber http://127.0.0.1:8709/aaep/v1 --level 3
  aaep conformance subscriber http://127.0.0.1:0/aaep/v1 --level 3 -- aaep listen --line {url}
  aaep conformance subscriber grpc://127.0.0.1:0 -- aaep listen --line {url}
  aaep conformance subscriber unix:/tmp/suite.sock -- aaep listen --line 'stdio:aaep stdio {url}'")]
pub(super) struct SubscriberOptions {
    /// Where the suite listens, with http, ws, grpc or unix; port 0 takes a free one.
    #[arg(value_name = "URL")]
    url: String,
    /// The level to check.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=3), default_value_t = 2)]
    pub(super) level: u8,
    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,
    /// What is typed for accept, reject, answer or quit; {n} is the question's number, {text} the answer.
    #[arg(long, value_name = "NAME=TEXT")]
    key: Vec<String>,
    /// Seconds that the whole run may take.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600), default_value_t = 180)]
    deadline: u64,
    /// Seconds to wait for what should happen.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600), default_value_t = 8)]
    patience: u64,
    /// Milliseconds in which nothing has to happen before nothing counts as having happened.
    #[arg(long, value_parser = clap::value_parser!(u64).range(50..=60_000), default_value_t = 700)]
    quiet: u64,
    /// The program to run, and its arguments; {url} is where it has to listen.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

impl SubscriberOptions {
    pub(super) fn subject(&self) -> Result<Subject, String> {
        let mut keys = Keys::default();
        for given in &self.key {
            let (name, text) = given.split_once('=').unwrap_or((given, ""));
            let place = match name {
                "accept" => &mut keys.accept,
                "reject" => &mut keys.reject,
                "answer" => &mut keys.answer,
                "quit" => &mut keys.quit,
                _ => return Err("--key names nothing. See --help.".into()),
            };
            text.clone_into(place);
        }
        let watch = match self.command.is_empty() {
            true => Watch::Observer,
            false => Watch::Command { command: self.command.clone(), keys },
        };
        Ok(Subject {
            watch,
            patience: Duration::from_secs(self.patience),
            deadline: Duration::from_secs(self.deadline),
            quiet: Duration::from_millis(self.quiet),
            ..Subject::new(&self.url, self.level)
        })
    }
}

/// Says where it listens, and runs every check.
pub(super) async fn run(subject: &Subject) -> Report {
    match Listening::start(subject).await {
        Ok(listening) => {
            if matches!(subject.watch, Watch::Observer) {
                // Beside the report, which may be for a program.
                exit::say(&format!("Listening at {} for the subscriber.", listening.url()));
            }
            listening.run().await
        }
        // It says again why it cannot, in a report.
        Err(_) => subscriber::run(subject).await,
    }
}
