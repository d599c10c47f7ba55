//! Nothing of a session comes after its end.
use aaep_agent::Session;

async fn after(session: Session) {
    let _ = session.complete("Done.").await;
    let _ = session.thinking("One more thing.").await; //~ E0382
}

fn main() {}
