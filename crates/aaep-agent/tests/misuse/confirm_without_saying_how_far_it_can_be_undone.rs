//! Whether something can be undone has to be said before it can be asked.
use aaep_agent::Session;

async fn unstated(session: &Session) {
    let confirm = session.confirm("transfer", "Move the money.", "It is gone.");
    let _ = confirm.run(|_| async { Ok::<_, std::io::Error>(()) }).await; //~ E0599
}

fn main() {}
