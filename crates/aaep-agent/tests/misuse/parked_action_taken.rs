//! A parked action is out of reach, also for who has the whole of it.
use aaep_agent::Parked;

fn take(parked: Parked<String>) -> String {
    let Parked { action, .. } = parked; //~ E0451
    action
}

fn main() {}
