//! `aaep doctor`: looks at everything that the hub and hearing it depend on, and says what to do.

mod machine;

use std::io::{self, Write};
use std::path::PathBuf;

use aaep_hub::config::{Config, Flags, Loaded, Surroundings, load};
use aaep_hub::{Tls, start};
use clap::Args;
use serde_json::json;

use crate::exit::Exit;
use crate::lines::Visible;
use crate::listen::{self, HubsOptions};

/// Look at configuration, clock, disk, permissions, certificates, socket, screen reader, speech and
/// braille, and say what to do.
///
/// It changes nothing, and the hub may go on working.
#[derive(Args, Debug)]
#[command(after_help = "\
Each line begins with Good, Missing, Careful or Wrong. What is missing is only needed by those who use it;
careful stands before what works, and has a consequence that you should know.
It ends with 0 if nothing is wrong, and with 1 if something is.

Examples:
  aaep doctor
  aaep doctor --config /etc/aaep/aaep.toml --json")]
pub(crate) struct DoctorOptions {
    /// The hub's configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The hub's data directory.
    #[arg(long, value_name = "DIRECTORY")]
    data: Option<PathBuf>,
    /// Print a line of JSON for each finding.
    #[arg(long)]
    json: bool,
}

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Good,
    /// It is not there, and only some people need it.
    Missing,
    /// It works, and has a consequence that people should know.
    Careful,
    Wrong,
}

/// One thing that was looked at.
struct Finding {
    state: State,
    /// What was looked at, in a word.
    about: &'static str,
    /// How it is, and what to do.
    text: String,
}

impl Finding {
    fn good(about: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Good, about, text: text.into() }
    }

    fn missing(about: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Missing, about, text: text.into() }
    }

    fn careful(about: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Careful, about, text: text.into() }
    }

    fn wrong(about: &'static str, text: impl Into<String>) -> Self {
        Self { state: State::Wrong, about, text: text.into() }
    }
}

pub(crate) fn run(options: &DoctorOptions, out: &mut impl Write) -> io::Result<Exit> {
    let findings = look(options)?;
    for Finding { state, about, text } in &findings {
        let line = if options.json {
            let state = format!("{state:?}").to_lowercase();
            json!({ "state": state, "about": about, "text": text }).to_string()
        } else {
            format!("{state:?}: {text}")
        };
        writeln!(out, "{}", Visible(&line))?;
    }
    let wrong = findings.iter().filter(|finding| finding.state == State::Wrong).count();
    if !options.json {
        match wrong {
            0 => writeln!(out, "Nothing is wrong.")?,
            1 => writeln!(out, "1 thing is wrong.")?,
            more => writeln!(out, "{more} things are wrong.")?,
        }
    }
    Ok(if wrong == 0 { Exit::Good } else { Exit::Wrong })
}

fn look(options: &DoctorOptions) -> io::Result<Vec<Finding>> {
    let (config, data) = (options.config.clone(), options.data.clone());
    let flags = Flags { config, data, ..Flags::default() };
    let mut findings = Vec::new();
    let loaded = Surroundings::of_process().and_then(|surroundings| load(&flags, &surroundings));
    match loaded {
        Ok(Loaded { config, file, warnings }) => {
            findings.push(Finding::good(
                "configuration",
                match file {
                    Some(file) => format!("The configuration {} can be read.", file.display()),
                    None => {
                        "There is no configuration file, so everything is as by default.".into()
                    }
                },
            ));
            findings
                .extend(warnings.into_iter().map(|text| Finding::careful("configuration", text)));
            findings.extend(of_configuration(&config));
            findings.extend(machine::data(&config));
            findings.push(machine::clock(&config));
        }
        Err(fault) => findings.push(Finding::wrong("configuration", fault.to_string())),
    }
    findings.push(hub()?);
    findings.push(machine::screen_reader());
    findings.push(machine::speech());
    findings.push(machine::braille());
    Ok(findings)
}

/// What a hub with this configuration would say at its start.
fn of_configuration(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    match start::check(config) {
        Ok(warnings) => {
            findings.extend(warnings.into_iter().map(|text| Finding::careful("safety", text)));
        }
        Err(fault) => findings.push(Finding::wrong("safety", fault.to_string())),
    }
    match start::policy(config) {
        Ok(Some(_)) => findings.push(Finding::good("policy", "The policy can be read.")),
        Ok(None) => findings.push(Finding::missing(
            "policy",
            "There is no policy: agents decide themselves what they ask about. `aaep hub --policy FILE` puts one in force.",
        )),
        Err(fault) => findings.push(Finding::wrong("policy", fault.to_string())),
    }
    if let Some((certificate, key)) = config.tls.files() {
        let loaded = Tls::load(certificate, key).map(|tls| (tls.warning(), days_left(&tls)));
        findings.push(match loaded {
            Ok((None, Some(days))) if days < RENEWAL_DAYS => Finding::careful(
                "certificate",
                format!(
                    "The certificate {} is valid for {days} more days. Replace it before, and send SIGHUP.",
                    certificate.display()
                ),
            ),
            Ok((None, _)) => Finding::good(
                "certificate",
                format!("The certificate {} is valid.", certificate.display()),
            ),
            Ok((Some(warning), _)) => Finding::wrong("certificate", warning),
            Err(fault) => Finding::wrong("certificate", fault.to_string()),
        });
    }
    findings.push(match start::allow_connections(config) {
        None => Finding::good("files", "As many connections as the limits allow can be open."),
        Some(warning) => Finding::wrong("files", warning),
    });
    if let Some(text) = crate::presence::missing_for(config) {
        findings.push(Finding::missing("presence", text));
    }
    findings
}

/// A certificate that ends sooner is worth a word.
const RENEWAL_DAYS: i64 = 14;

/// For how many whole days the certificate is still good.
fn days_left(tls: &Tls) -> Option<i64> {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((tls.expires()? - i64::try_from(now.as_secs()).ok()?).div_euclid(86_400))
}

/// Whether a hub answers where commands look for it.
fn hub() -> io::Result<Finding> {
    let hubs = match listen::hubs(&HubsOptions::default()) {
        Ok(hubs) => hubs,
        Err(why) => return Ok(Finding::wrong("hub", why)),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let asked = runtime.block_on(async {
        let mut all = Vec::new();
        for hub in hubs {
            all.push(crate::status::reached(hub).await);
        }
        all
    });
    let answers = asked.iter().find(|(_, answer)| answer.is_ok());
    Ok(match (answers, asked.first()) {
        (Some((name, _)), _) => Finding::good("hub", format!("A hub answers at {name}.")),
        (None, Some((name, Err(why)))) => Finding::missing(
            "hub",
            format!("No hub answers at {name}: {why}. Start one with `aaep hub`."),
        ),
        _ => Finding::missing("hub", "No hub runs here. Start one with `aaep hub`."),
    })
}
