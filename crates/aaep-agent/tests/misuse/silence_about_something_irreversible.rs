//! Silence never means yes to what cannot be taken back.
use aaep_agent::Confirmation;

fn main() {
    let _ = Confirmation::irreversible("send", "Send it.", "It is sent.").accept_on_silence(); //~ E0599
}
