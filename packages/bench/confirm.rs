//! Confirmations one after the other with the Rust library: how long each took, in microseconds.

use std::time::Instant;

use aaep_agent::{Agent, Remote};

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let (url, count) = (words.next().ok_or("no address")?, words.next().ok_or("no count")?);
    let agent = Agent::connect(Remote::at(url), "bench-rust")?;
    let session = agent.session("Measuring.").language("en").open().await?;
    for turn in 0..count.parse::<u32>()? {
        let began = Instant::now();
        session
            .confirm("transfer", "Transfer 500 euros.", "It cannot be called back.")
            .irreversible()
            .args(&serde_json::json!({ "amount": "500.00", "turn": turn }))
            .run(|_| async { Ok::<_, std::io::Error>(()) })
            .await?;
        println!("{}", began.elapsed().as_micros());
    }
    session.complete("Done.").await?;
    agent.close().await;
    Ok(())
}
