//! Nothing else than an approval gives an action back.
use aaep_agent::{Parked, Session};

async fn without(session: &Session, parked: Parked<u32>) {
    let _ = session.invoke(parked).await; //~ E0061
}

async fn by_word_of_mouth(session: &Session, parked: Parked<u32>) {
    let _ = session.invoke(parked, true).await; //~ E0308
}

fn main() {}
