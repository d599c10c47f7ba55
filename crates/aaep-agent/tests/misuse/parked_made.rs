//! Nor can one be made without asking, or be copied.
use aaep_agent::Parked;

fn make() -> Parked<u32> {
    Parked::from(5) //~ E0308
}

fn copy(parked: &Parked<u32>) -> Parked<u32> {
    parked.clone() //~ E0308
}

fn main() {}
