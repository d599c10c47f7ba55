//! A tool that needs no consent cannot be said to be irreversible.
use aaep_agent::Session;

async fn just_do_it(session: &Session) {
    let _ = session.tool("transfer_funds").irreversible().begin().await; //~ E0599
}

fn main() {}
