//! The bank transfer of §6.10: $500 from checking to savings, which cannot be easily reversed.
//!
//! ```console
//! $ cargo run -p aaep-agent --example bank_transfer -- http://127.0.0.1:8707
//! $ cargo run -p aaep-agent --features embedded --example bank_transfer
//! ```
#![allow(missing_docs, clippy::disallowed_methods)] // an example is a program

mod common;

use std::error::Error;

use aaep_agent::{Agent, Confirmation, NotApproved, Producer, RiskLevel};
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
    async fn execute(self, key: String) -> Result<String, std::io::Error> {
        let Self { from, to, amount, currency } = self;
        Ok(format!("{amount} {currency} went from {from} to {to}, receipt {}.", &key[..8]))
    }
}

/// Says whether the money was moved.
pub async fn run(agent: &Agent) -> Result<bool, Box<dyn Error>> {
    let session =
        agent.session("Moving $500 to savings, as you asked.").language("en").open().await?;
    session.thinking("Checking the balance and the limits.").await?;

    let transfer = Transfer { from: "checking", to: "savings", amount: "500.00", currency: "USD" };
    let request = Confirmation::irreversible(
        "transfer_funds",
        "Transfer $500 from checking to savings.",
        "It cannot be easily reversed.",
    )
    .risk(RiskLevel::High)
    .arguments(&transfer)
    .timeout_seconds(300);

    let parked = session.park(transfer, request).await?; // the transfer is out of reach
    let approval = match parked.decision().await {
        Ok(approval) => approval,
        Err(NotApproved::SessionOver) => return Ok(false),
        Err(why) => {
            println!("Not done. {why}");
            session.complete("The money stays where it is.").await?;
            return Ok(false);
        }
    };
    let (transfer, call) = session.invoke(parked, approval).await?; // said, then given back, once

    let key = call.key().unwrap_or_default().to_owned();
    let receipt = call.run_saying(transfer.execute(key), |receipt| receipt.as_str().into()).await?;
    println!("Done. {receipt}");
    session.complete("The transfer is done.").await?;
    Ok(true)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let producer = Producer::new("bank-assistant").name("Bank assistant");
    let place = common::Place::find(std::env::args().nth(1), producer).await?;
    run(&place.agent).await?;
    place.leave().await
}
