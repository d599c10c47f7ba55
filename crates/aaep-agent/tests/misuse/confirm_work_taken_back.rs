//! Work that was handed over to be confirmed is out of reach, and so is what is asked.
use aaep_agent::{ConfirmedCall, Session};

async fn twice(session: &Session, money: String) {
    let work = move |_: ConfirmedCall| async move { Ok::<_, std::io::Error>(drop(money)) };
    let confirm = session.confirm("transfer", "Move the money.", "It is gone.").irreversible();
    let asked = confirm.run(work);
    drop(work); //~ E0382
    let _ = asked.await;
}

async fn again(session: &Session) {
    let confirm = session.confirm("transfer", "Move the money.", "It is gone.").irreversible();
    let _ = confirm.run(|_| async { Ok::<_, std::io::Error>(()) }).await;
    let _ = confirm.run(|_| async { Ok::<_, std::io::Error>(()) }).await; //~ E0382
}

fn main() {}
