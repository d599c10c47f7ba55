//! Tries the suite on the reference producer and the reference subscriber: one run of each without a fault,
//! and one for each fault.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use aaep_conformance::suite::reference::{
    OWNER, Producer, ProducerFault, STRANGER, Subscriber, SubscriberFault,
};
use aaep_conformance::suite::subscriber::{Listening, Subject};
use aaep_conformance::suite::{CheckOutcome, Report, Target, producer};

type Failure = Box<dyn Error + Send + Sync>;

/// Runs at a time: some wait long for what never comes.
const AT_ONCE: usize = 12;

async fn against_producer(fault: Option<ProducerFault>) -> Result<Report, Failure> {
    let running = Producer::start(fault).await?;
    let target = Target {
        token: Some(OWNER.into()),
        stranger: Some(STRANGER.into()),
        patience: Duration::from_secs(4),
        ..Target::new(running.base(), 3)
    };
    Ok(producer::run(&target).await)
}

async fn against_subscriber(fault: Option<SubscriberFault>) -> Result<Report, Failure> {
    let subject = Subject {
        patience: Duration::from_secs(6),
        quiet: Duration::from_millis(400),
        ..Subject::new("http://127.0.0.1:0/aaep/v1", 3)
    };
    let listening = Listening::start(&subject).await?;
    let _running = Subscriber::start(listening.url(), fault)?;
    Ok(listening.run().await)
}

fn is_caught(report: &Report, check: &str) -> bool {
    let found = report.check(check).map(|result| &result.outcome);
    matches!(found, Some(CheckOutcome::Failed(_)))
}

#[tokio::main]
async fn main() -> Result<ExitCode, Failure> {
    let (one, other) = tokio::join!(against_producer(None), against_subscriber(None));
    let mut correct = true;
    for report in [one?, other?] {
        let passes = report.granted() == Some(3) && report.tally()[1] == 0;
        correct &= passes;
        let name = report.side.name();
        println!("The correct {name} {}.", if passes { "passes" } else { "does not pass" });
        if !passes {
            println!("{}", report.to_text());
        }
    }
    let mut caught = 0;
    for faults in ProducerFault::ALL.chunks(AT_ONCE) {
        let runs = faults.iter().map(|(fault, _)| tokio::spawn(against_producer(Some(*fault))));
        for ((fault, check), running) in faults.iter().zip(runs.collect::<Vec<_>>()) {
            let found = is_caught(&running.await??, check);
            caught += usize::from(found);
            println!("{fault:?}: {}.", if found { check } else { "not caught" });
        }
    }
    for faults in SubscriberFault::ALL.chunks(AT_ONCE) {
        let runs = faults.iter().map(|(fault, _)| tokio::spawn(against_subscriber(Some(*fault))));
        for ((fault, check), running) in faults.iter().zip(runs.collect::<Vec<_>>()) {
            let found = is_caught(&running.await??, check);
            caught += usize::from(found);
            println!("{fault:?}: {}.", if found { check } else { "not caught" });
        }
    }
    let all = ProducerFault::ALL.len() + SubscriberFault::ALL.len();
    println!("caught {caught} of {all}");
    Ok(if correct && caught == all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
