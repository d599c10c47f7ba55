//! The real `aaep hub` and those who talk with it: agents, ears, and hostile bytes.
#![allow(dead_code, unused_imports)] // each module of tests uses its own part of this

mod agent;
mod authenticator;
mod ear;
mod people;
mod process;
mod raw;

use std::time::Duration;

pub use agent::{Agent, deletion};
pub use authenticator::Authenticator;
pub use ear::{Ear, everything, lawful};
pub use people::{Person, client, token};
pub use process::{Hub, Setup};
pub use raw::{Raw, Reply};

pub use aaep_transport::client::{FullResponse, HttpClient};
pub use serde_json::{Value, json};

/// The longest that anything may take. No test depends on how fast something is; this only keeps a
/// broken hub from holding up everybody.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a test.
pub fn run(test: impl Future<Output = ()>) {
    run_and_give(test);
}

/// Runs the part of a test that waits, and gives what came of it.
pub fn run_and_give<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(4 * PATIENCE, test).await.expect("it ended") })
}

/// What happens within the patience of a test.
pub async fn soon<T>(what: &str, happens: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, happens).await {
        Ok(happened) => happened,
        Err(_) => panic!("waited in vain for {what}"),
    }
}

/// Now, as messages are stamped.
pub fn now() -> String {
    stamp(0)
}

/// So many seconds from now.
pub fn stamp(seconds: i64) -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let millis = since.as_millis() as i64 + seconds * 1000;
    aaep_types::Timestamp::from_millis(millis).unwrap().to_string()
}

/// A confirmation reply.
pub fn decision(token: &str, subscription: &str, decision: &str) -> String {
    json!({ "type": "confirmation.reply", "reply_token": token, "decision": decision,
        "subscription_id": subscription, "timestamp": now() })
    .to_string()
}

/// A clarification reply.
pub fn answer(token: &str, subscription: &str, response: Value) -> String {
    json!({ "type": "clarification.reply", "reply_token": token, "response": response,
        "subscription_id": subscription, "timestamp": now() })
    .to_string()
}

/// A subscription request with these capabilities.
pub fn request(capabilities: Value) -> String {
    json!({ "type": "subscription.request", "aaep_version": "1.0.0",
        "subscriber_id": "test", "capabilities": capabilities })
    .to_string()
}

/// The body of an answer, as JSON.
pub fn body(answer: &FullResponse) -> Value {
    let text = String::from_utf8_lossy(&answer.body);
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{} {text:?}", answer.status))
}

/// A member that is a text.
pub fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("no text {name:?} in {value}"))
}
