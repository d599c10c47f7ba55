//! Nobody adds a way in which silence could mean yes.
use aaep_agent::{Confirmation, Kind};

enum Whatever {}

impl Kind for Whatever {} //~ E0277

fn risky(request: Confirmation<Whatever>) {
    let _ = request.accept_on_silence(); //~ E0599
}

fn main() {}
