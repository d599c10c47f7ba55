//! A parked action comes back once.
use aaep_agent::{Approval, Parked, Session};

async fn twice(session: &Session, parked: Parked<u32>, approval: Approval<u32>) {
    let _ = session.invoke(parked, approval).await;
    let _ = parked.decision().await; //~ E0382
}

fn main() {}
