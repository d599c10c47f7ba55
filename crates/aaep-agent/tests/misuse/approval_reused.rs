//! An approval is good for one run.
use aaep_agent::{Approval, Parked, Session};

async fn twice(session: &Session, one: Parked<u32>, two: Parked<u32>, approval: Approval<u32>) {
    let _ = session.invoke(one, approval).await;
    let _ = session.invoke(two, approval).await; //~ E0382
}

fn main() {}
