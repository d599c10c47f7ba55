//! A parked action is out of reach.
use aaep_agent::Parked;

fn peek(parked: &Parked<String>) -> &str {
    &parked.action
}

fn take(parked: Parked<String>) -> String {
    let Parked { action, .. } = parked;
    action
}

fn main() {}
