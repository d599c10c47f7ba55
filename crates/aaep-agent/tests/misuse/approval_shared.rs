//! An approval cannot be shared: neither lent, nor counted.
use std::sync::Arc;

use aaep_agent::{Approval, Parked, Session};

async fn lent(session: &Session, parked: Parked<u32>, approval: &Approval<u32>) {
    let _ = session.invoke(parked, approval).await; //~ E0308
}

async fn counted(session: &Session, parked: Parked<u32>, approval: Arc<Approval<u32>>) {
    let _ = session.invoke(parked, *approval).await; //~ E0507
}

fn main() {}
