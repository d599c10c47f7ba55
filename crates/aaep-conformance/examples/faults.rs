//! Tries the suite on the reference producer: one run without a fault, one run for each fault.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::process::ExitCode;

use aaep_conformance::suite::reference::{Fault, OWNER, Producer, STRANGER};
use aaep_conformance::suite::{Outcome, Report, Target, producer};

async fn run(fault: Option<Fault>) -> Result<Report, Box<dyn Error + Send + Sync>> {
    let running = Producer::start(fault).await?;
    let target = Target {
        token: Some(OWNER.into()),
        stranger: Some(STRANGER.into()),
        patience: std::time::Duration::from_secs(3),
        ..Target::new(running.base(), 3)
    };
    Ok(producer::run(&target).await)
}

#[tokio::main]
async fn main() -> Result<ExitCode, Box<dyn Error + Send + Sync>> {
    let correct = run(None).await?.granted() == Some(3);
    println!("The correct producer {}.", if correct { "passes" } else { "does not pass" });
    let mut caught = 0;
    // Ten at a time: some wait long for what never comes.
    for faults in Fault::ALL.chunks(12) {
        let runs = faults.iter().map(|(fault, _)| tokio::spawn(run(Some(*fault))));
        for ((fault, check), running) in faults.iter().zip(runs.collect::<Vec<_>>()) {
            let report = running.await??;
            let found = report.check(check).map(|result| &result.outcome);
            let is_caught = matches!(found, Some(Outcome::Failed(_)));
            caught += usize::from(is_caught);
            println!("{fault:?}: {}.", if is_caught { check } else { "not caught" });
        }
    }
    println!("caught {caught} of {}", Fault::ALL.len());
    Ok(if correct && caught == Fault::ALL.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
