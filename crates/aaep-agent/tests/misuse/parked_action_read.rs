//! A parked action is out of reach.
use aaep_agent::Parked;

fn peek(parked: &Parked<String>) -> &str {
    &parked.action //~ E0616
}

fn main() {}
