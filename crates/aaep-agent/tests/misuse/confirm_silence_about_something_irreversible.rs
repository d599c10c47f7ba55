//! Silence never means yes to something that cannot be taken back, in one expression either.
use aaep_agent::Session;

fn silence(session: &Session) {
    let confirm = session.confirm("transfer", "Move the money.", "It is gone.").irreversible();
    let _ = confirm.accept_on_silence(); //~ E0599
    let confirm = session.confirm("transfer", "Move the money.", "It is gone.").with_effort();
    let _ = confirm.accept_on_silence(); //~ E0599
}

fn main() {}
