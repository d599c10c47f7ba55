//! Nor to what can be taken back only with some trouble.
use aaep_agent::Confirmation;

fn main() {
    let _ = Confirmation::with_effort("move", "Move it.", "It is moved.").accept_on_silence(); //~ E0599
}
