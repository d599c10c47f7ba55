//! The published `aaep-minimal-producer`, heard as far as it goes. It is installed by `cargo xtask
//! test --only guests`, which also says where: `AAEP_GUESTS`. docs/guests.md says what to expect.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Piped;
use crate::support::*;

/// It, on a port of its own.
struct Producer {
    child: Child,
    url: String,
}

impl Producer {
    fn start() -> Self {
        let home = std::env::var_os("AAEP_GUESTS").expect("AAEP_GUESTS names their environment");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(Path::new(&home).join("bin/aaep-minimal-producer"));
        command.args(["--log-level", "ERROR", "--port", &port.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self { child: command.spawn().unwrap(), url: format!("http://127.0.0.1:{port}/") }
    }

    /// Says something to it; it may still be starting.
    fn say(&self, words: &str) {
        run(async {
            let client = client(&self.url, None);
            let until = Instant::now() + PATIENCE;
            let message = json!({ "user_message": words }).to_string();
            loop {
                match client.post("sessions", message.clone()).await {
                    Ok(answer) if answer.status.is_success() => return,
                    other => assert!(Instant::now() < until, "{other:?}"),
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Somebody who hears it ask. Its pretended model asks once, so each test has one of its own.
fn asked() -> (Producer, Piped) {
    let producer = Producer::start();
    let mut listener = Piped::start(&[&producer.url], &[("HOME".into(), "/nonexistent".into())]);
    listener.sees("Connected to");
    producer.say("transfer 50 to Ann");
    listener.sees("Started: “Processing: transfer 50 to Ann”.");
    listener.sees("It cannot be undone.");
    listener.sees("Type yes or no and press Enter.");
    (producer, listener)
}

// covers: D4, E26, V2, C28
#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn the_minimal_producer_is_heard_and_told_yes() {
    let (_producer, mut listener) = asked();
    listener.types("yes");
    listener.sees("To be sure: type yes and press Enter.");
    listener.types("yes");
    listener.sees("Request 1: yes, sent.");
    listener.sees("“Transferred $500.00");
    listener.sees("“Here's what I found.”");
    listener.sees("Done. “Response complete.”");
}

// covers: D4, C28
#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn the_minimal_producer_is_told_no_and_cannot_give_more_time() {
    let (_producer, mut listener) = asked();
    listener.types("time");
    listener.sees("the hub cannot do this");
    listener.types("no");
    listener.sees("Request 1: no, sent.");
    let heard = listener.sees("\nDone.");
    assert!(!heard.contains("Transferred"), "{heard}");
    listener.types("quit");
    assert_eq!(listener.ended().0, 0);
}
