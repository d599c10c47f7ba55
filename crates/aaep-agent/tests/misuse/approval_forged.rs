//! An approval cannot be made.
use std::marker::PhantomData;

use aaep_agent::Approval;

fn forge() -> Approval<u32> {
    Approval { request: "req_1".into(), by: "me".into(), reply: Default::default(), action: PhantomData } //~ E0451
}

fn main() {}
