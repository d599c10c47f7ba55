//! `aaep guard allowed`: what is not asked about in sessions that run, and how to take it back.

use std::io::{self, Write};
use std::time::Duration;

use aaep_bridge::Memory;
use aaep_bridge::allowance::{Allowed, TIMES};
use aaep_bridge::hook::producer;
use clap::Args;

use crate::exit::{Exit, say};
use crate::lines::{Plain, count};
use crate::{discovery, hook};

/// How long a hub is waited for.
const HUB_ANSWERS: Duration = Duration::from_secs(3);

/// List what you allowed "for this session", and take it back.
///
/// When you say yes to the same question twice in a session, you are offered not to be asked again. What
/// you agreed to ends with the session, after an hour, or after 20 times, whatever comes first.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0, and with 1 if there is nothing to take back.

Examples:
  aaep guard allowed
  aaep guard allowed --take-back 1
  aaep guard allowed --take-back all")]
pub(crate) struct AllowedOptions {
    /// The number from the list, or all: from now on you are asked again.
    #[arg(long, value_name = "NUMBER", value_parser = which)]
    take_back: Option<Which>,
}

#[derive(Clone, Copy, Debug)]
enum Which {
    All,
    One(usize),
}

fn which(text: &str) -> Result<Which, String> {
    match text {
        "all" => Ok(Which::All),
        number => match number.parse() {
            Ok(number) if number > 0 => Ok(Which::One(number)),
            _ => Err("name a number from the list, or all".into()),
        },
    }
}

pub(crate) fn run(options: &AllowedOptions, out: &mut impl Write) -> io::Result<Exit> {
    let Some(directory) = hook::state() else {
        say("HOME is not set. Set it, and try again.");
        return Ok(Exit::Unable);
    };
    let memory = Memory::at(directory);
    let allowed = memory.allowed();
    let Some(which) = options.take_back else { return list(&allowed, out) };
    let chosen: Vec<_> = match which {
        Which::All => allowed.iter().collect(),
        Which::One(number) => allowed.get(number - 1).into_iter().collect(),
    };
    if chosen.is_empty() {
        writeln!(
            out,
            "There is nothing to take back: you are asked about everything that matters."
        )?;
        return Ok(Exit::Wrong);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        for one in chosen {
            // Nobody starts a hub to tell it that.
            let agent = discovery::connect_to(producer(one.host), HUB_ANSWERS);
            let told = memory.take_back(one, agent.as_ref()).await;
            if let Some(agent) = &agent {
                agent.close().await;
            }
            writeln!(out, "Taken back. You are asked again before this: {}", Plain(&one.words))?;
            if !told {
                writeln!(out, "The hub could not be told, so it still shows it as going on.")?;
            }
        }
        Ok(Exit::Good)
    })
}

fn list(allowed: &[Allowed], out: &mut impl Write) -> io::Result<Exit> {
    if allowed.is_empty() {
        writeln!(
            out,
            "Nothing is allowed for a session: you are asked about everything that matters."
        )?;
        return Ok(Exit::Good);
    }
    for (number, one) in (1..).zip(allowed) {
        let minutes = count(one.left.as_secs().div_ceil(60), "minute");
        writeln!(
            out,
            "{number}. {}: {} Used {} of {TIMES} times, {minutes} left.",
            one.host.name(),
            Plain(&one.words),
            one.used
        )?;
    }
    writeln!(out, "Take one back with `aaep guard allowed --take-back NUMBER`.")?;
    Ok(Exit::Good)
}
