//! An approval fits no action of another type.
use aaep_agent::{Approval, Parked, Session};

async fn swap(session: &Session, parked: Parked<u32>, approval: Approval<&'static str>) {
    let _ = session.invoke(parked, approval).await; //~ E0308
}

fn main() {}
