//! The work is a closure that only an approval calls: what has begun already is refused.
use aaep_agent::Session;

async fn transfer() -> Result<(), std::io::Error> {
    Ok(())
}

async fn begun(session: &Session) {
    let confirm = session.confirm("transfer", "Move the money.", "It is gone.").irreversible();
    let _ = confirm.run(transfer()).await; //~ E0277
}

async fn done(session: &Session) {
    let confirm = session.confirm("transfer", "Move the money.", "It is gone.").irreversible();
    let _ = confirm.run(transfer().await).await; //~ E0277
}

fn main() {}
