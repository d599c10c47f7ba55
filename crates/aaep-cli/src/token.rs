//! `aaep token`: lets people and programs in, and shuts them out.

use std::io::{self, Write};
use std::path::PathBuf;

use aaep_hub::config::{Flags, Loaded, Surroundings, load};
use aaep_hub::{Fault, tokens};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::exit::{self, Exit};

/// Make, list and revoke the tokens with which people and programs come to the hub.
///
/// They stand in the hub's configuration file. A hub that runs is told at once: who was shut out
/// hears nothing more.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  aaep token new ann-phone --user ann
  aaep token new bank-agent --role agent --user ann
  aaep token list
  aaep token revoke ann-phone
  aaep token deny login/ann
  aaep token allow login/ann")]
pub(crate) struct TokenOptions {
    #[command(subcommand)]
    command: TokenCommand,
    /// The hub's configuration file. Without it: AAEP_CONFIG, or aaep.toml in your configuration directory.
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum TokenCommand {
    New(NewOptions),
    List,
    Revoke(RevokeOptions),
    Deny(NameOptions),
    Allow(NameOptions),
}

/// Shut a principal out, or let it in again, whatever it shows: a token, a certificate, or a token of your
/// identity provider that is good for a while yet.
#[derive(Args, Debug)]
struct NameOptions {
    /// Its name, such as ann-phone, or login/ann for one of an issuer.
    name: String,
}

/// Make a token and put it into a file that only you can read.
///
/// A second one of the same name lets a token be changed without a gap: revoke the first when the
/// second is in use.
#[derive(Args, Debug)]
struct NewOptions {
    /// Names the program or device.
    name: String,
    /// What it may do.
    #[arg(long, default_value = "accessibility_consumer", value_parser = roles())]
    role: String,
    /// On whose behalf.
    #[arg(long, default_value = aaep_hub::access::LOCAL_USER)]
    user: String,
}

/// Shut somebody out: with this token, or with all of that name.
#[derive(Args, Debug)]
struct RevokeOptions {
    /// The name of the program or device.
    name: String,
    /// Only the token whose hash begins like this, as `aaep token list` shows it.
    #[arg(long, value_name = "DIGITS")]
    token: Option<String>,
}

fn roles() -> PossibleValuesParser {
    PossibleValuesParser::new(tokens::ROLES.map(|(name, _)| name))
}

pub(crate) fn run(options: &TokenOptions, out: &mut impl Write) -> io::Result<Exit> {
    match lines(options) {
        Ok(lines) => {
            for line in lines {
                writeln!(out, "{line}")?;
            }
            Ok(Exit::Good)
        }
        Err(fault) => {
            exit::say(&fault.to_string());
            Ok(Exit::Unable)
        }
    }
}

fn lines(options: &TokenOptions) -> Result<Vec<String>, Fault> {
    let flags = Flags { config: options.config.clone(), ..Flags::default() };
    let read = || load(&flags, &Surroundings::of_process()?);
    let Loaded { config, file, .. } = read()?;
    let file = file.ok_or_else(|| Fault::Config {
        place: "aaep token".into(),
        key: String::new(),
        what: "There is no configuration file yet.".into(),
        remedy: "Make one with `aaep hub init`, or name one with --config.".into(),
    });
    let mut lines = match &options.command {
        TokenCommand::List => {
            let holders = tokens::list(&config);
            if holders.is_empty() {
                return Ok(vec!["Nobody has a token. Make one with `aaep token new NAME`.".into()]);
            }
            let line = |holder: tokens::Holder| {
                let tokens::Holder { name, role, user, token } = holder;
                format!("{name}: {role} of {user}, token {token}")
            };
            return Ok(holders.into_iter().map(line).collect());
        }
        TokenCommand::New(new) => {
            let role = tokens::ROLES.iter().find(|(name, _)| *name == new.role);
            let role = role.map_or(aaep_engine::Role::Agent, |(_, role)| *role);
            let made = tokens::create(&file?, &new.name, role, &new.user)?;
            let mut lines = vec![format!("Made a token for {}: {}", new.name, made.file.display())];
            if made.is_further {
                lines.push("Its other tokens go on counting; `aaep token revoke NAME --token DIGITS` takes one away.".into());
            }
            lines
        }
        TokenCommand::Deny(NameOptions { name }) => {
            tokens::deny(&file?, name)?;
            vec![format!("{name} is not let in any more, whatever it shows.")]
        }
        TokenCommand::Allow(NameOptions { name }) => {
            tokens::allow(&file?, name)?;
            vec![format!("{name} is let in again with whatever it has.")]
        }
        TokenCommand::Revoke(revoke) => {
            let count = tokens::revoke(&file?, &revoke.name, revoke.token.as_deref())?;
            let tokens = if count == 1 { "1 token".into() } else { format!("{count} tokens") };
            vec![format!("Revoked {tokens} of {}.", revoke.name)]
        }
    };
    lines.push(match tokens::tell_hub(&config)? {
        Some(process) => format!("The hub that runs (process {process}) reads it again now."),
        None => "No hub runs under this configuration; the next one begins with it.".into(),
    });
    Ok(lines)
}
