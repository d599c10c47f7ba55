//! A confirmed call is neither copied nor made by default.
use aaep_agent::ConfirmedCall;

fn copied(call: ConfirmedCall) -> (ConfirmedCall, ConfirmedCall) {
    (call.clone(), call) //~ E0599
}

fn empty() -> ConfirmedCall {
    ConfirmedCall::default() //~ E0599
}

fn main() {}
