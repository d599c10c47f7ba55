//! `aaep conformance`: tries a producer as several subscribers, or a subscriber as a producer, and reports.

mod producer;
mod subscriber;

use std::io::{self, Write};

use aaep_conformance::suite::Report;
use clap::{Args, Subcommand, ValueEnum};

use crate::exit::Exit;
use crate::validate::unable;

/// Check a producer or a subscriber from outside, and say at which level it conforms.
#[derive(Args, Debug)]
pub(crate) struct ConformanceOptions {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, Subcommand)]
enum Side {
    Producer(producer::ProducerOptions),
    Subscriber(subscriber::SubscriberOptions),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
    Junit,
    Html,
}

pub(crate) fn run(options: ConformanceOptions, out: &mut impl Write) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (run, level, format) = match options.side {
        Side::Producer(options) => {
            let target = match options.target() {
                Ok(target) => target,
                Err(why) => return unable(&why, out),
            };
            let run = runtime.block_on(aaep_conformance::suite::producer::run(&target));
            (run, options.level, options.format)
        }
        Side::Subscriber(options) => {
            let subject = match options.subject() {
                Ok(subject) => subject,
                Err(why) => return unable(&why, out),
            };
            let run = runtime.block_on(subscriber::run(&subject));
            (run, options.level, options.format)
        }
    };
    runtime.shutdown_background();
    print(&run, format, out)?;
    Ok(match (&run.cut_short, run.granted()) {
        (Some(_), _) => Exit::Unable,
        (None, Some(granted)) if granted >= level && run.keeps_profile() => Exit::Good,
        _ => Exit::Wrong,
    })
}

fn print(report: &Report, format: Format, out: &mut impl Write) -> io::Result<()> {
    let text = match format {
        Format::Text => report.to_text(),
        Format::Json => report.to_json(),
        Format::Junit => report.to_junit(),
        Format::Html => report.to_html(),
    };
    out.write_all(text.as_bytes())
}
