//! The bank transfer of §6.10: $500 from checking to savings, which cannot be easily reversed.
//!
//! ```console
//! $ cargo run -p aaep-agent --example bank_transfer -- http://127.0.0.1:8707
//! $ cargo run -p aaep-agent --features embedded --example bank_transfer
//! ```
#![allow(missing_docs, clippy::disallowed_methods)] // an example is a program

mod common;

use std::time::Duration;

use aaep_agent::{Agent, ConfirmedCall, Error, Producer, RiskLevel};
use serde::Serialize;

/// What would be done. Amounts are text, so that no number changes on its way.
#[derive(Debug, Serialize)]
struct Transfer {
    from: &'static str,
    to: &'static str,
    amount: &'static str,
    currency: &'static str,
}

impl Transfer {
    /// The bank itself. It knows idempotency keys: the same key moves the money once.
    async fn execute(self, call: ConfirmedCall) -> Result<String, std::io::Error> {
        let Self { from, to, amount, currency } = self;
        Ok(format!("{amount} {currency} went from {from} to {to}, receipt {}.", &call.key()[..8]))
    }
}

/// Says whether the money was moved.
pub async fn run(agent: &Agent) -> Result<bool, Error> {
    let session =
        agent.session("Moving $500 to savings, as you asked.").language("en").open().await?;
    session.thinking("Checking the balance and the limits.").await?;

    let transfer = Transfer { from: "checking", to: "savings", amount: "500.00", currency: "USD" };
    let moved = session
        .confirm(
            "transfer_funds",
            "Transfer $500 from checking to savings.",
            "It cannot be easily reversed.",
        )
        .irreversible()
        .risk(RiskLevel::High)
        .args(&transfer)
        .wait(Duration::from_secs(300))
        // Called only after somebody said yes.
        .run_saying(|call| transfer.execute(call), |receipt| receipt.as_str().into())
        .await;
    match moved {
        Ok(receipt) => {
            println!("Done. {receipt}");
            session.complete("The transfer is done.").await?;
            Ok(true)
        }
        Err(Error::NotApproved(why)) => {
            println!("Not done. {why}");
            session.complete("The money stays where it is.").await?;
            Ok(false)
        }
        Err(Error::SessionOver) => Ok(false),
        Err(error) => Err(error),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let producer = Producer::new("bank-assistant").name("Bank assistant");
    let place = common::Place::find(std::env::args().nth(1), producer).await?;
    run(&place.agent).await?;
    place.leave().await
}
