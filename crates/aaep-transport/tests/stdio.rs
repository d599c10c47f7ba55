//! A program as a producer, over its real standard input and output.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // programs

use aaep_transport::link::{LinkError, Options};
use aaep_transport::stdio;

// covers: W12
#[tokio::test]
async fn a_program_is_spoken_with_and_its_errors_are_for_people() {
    // It answers the handshake, gives back what it hears, and ends.
    let program = r#"
        read request; echo "for people" >&2
        echo '{"jsonrpc":"2.0","id":1,"result":{"type":"subscription.accepted"}}'
        read reply
        echo "{\"jsonrpc\":\"2.0\",\"method\":\"aaep.event\",\"params\":$reply}"
    "#;
    let mut link = stdio::connect(program, &Options::default()).unwrap();
    assert!(link.peer().is_local());
    link.send(r#"{"type":"subscription.request"}"#).await.unwrap();
    let accepted = link.receive().await.unwrap().unwrap();
    assert_eq!(accepted.as_str(), r#"{"type":"subscription.accepted"}"#);
    link.send(r#"{"type":"confirmation.reply","n":1.0}"#).await.unwrap();
    let heard = link.receive().await.unwrap().unwrap();
    let sent =
        r#"{"jsonrpc":"2.0","method":"aaep.reply","params":{"type":"confirmation.reply","n":1.0}}"#;
    assert_eq!(heard.as_str(), sent);
    assert_eq!(link.receive().await.unwrap(), None);
}

// covers: W12, W6
#[tokio::test]
async fn a_program_that_says_something_else_is_told_from_one_that_ends() {
    let options = Options { max_message: 1000, ..Options::default() };
    let mut link =
        stdio::connect("echo hello; head -c 100000 /dev/zero; echo; printf '{'", &options).unwrap();
    assert!(matches!(link.receive().await, Err(LinkError::Violation(_))));
    assert!(matches!(link.receive().await, Err(LinkError::TooLong(_))));
    assert!(matches!(link.receive().await, Err(LinkError::Lost(_))));
    assert_eq!(link.receive().await.unwrap(), None);
    let mut link = stdio::connect("/no/such/program", &options).unwrap();
    assert_eq!(link.receive().await.unwrap(), None);
}
