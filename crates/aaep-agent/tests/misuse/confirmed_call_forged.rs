//! Only a yes makes a confirmed call.
use aaep_agent::ConfirmedCall;

fn forge() -> ConfirmedCall {
    ConfirmedCall { id: String::new(), key: String::new(), arguments: None, by: String::new(), reply: Default::default() } //~ E0451
}

fn main() {}
