//! Nobody adds a way in which silence could mean yes.
use aaep_agent::{Confirmation, Kind};

enum Whatever {}

impl Kind for Whatever {}

fn risky(request: Confirmation<Whatever>) {
    let _ = request.accept_on_silence();
}

fn main() {}
