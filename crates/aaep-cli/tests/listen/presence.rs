//! A yes that needs the person's PIN.

use std::io::Write;
use std::process::{Command, Stdio};

use aaep_transport::client::{Options, SessionSecret};

use crate::support::*;
use crate::tty::Tty;
use crate::{Piped, around};

const PIN: &str = "cafe au lait";

/// Sets the PIN of this hub's user.
fn set_pin(hub: &Hub) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["presence", "set"])
        .env_clear()
        .envs(around(hub))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let typed = format!("{PIN}\n{PIN}\n");
    child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn agent(hub: &Hub) -> Agent {
    let session_secret = Some(SessionSecret::generate().unwrap());
    let options = Options { session_secret, ..Options::default() };
    Agent::new(HttpClient::over_socket(hub.socket(), "/aaep/v1", options), "tidy")
}

// covers: I34, T21
#[test]
fn a_grave_yes_asks_for_the_pin_which_is_never_shown_and_then_counts_for_a_while() {
    let hub = Hub::start(Setup::durable());
    let mut tty = Tty::start(&["--pause", "0"], &around(&hub));
    tty.sees("No PIN is set");
    tty.sees("Connected to");
    set_pin(&hub);
    run(async {
        let agent = agent(&hub);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        tty.sees("Press y for yes");
        tty.types("y").sees("type yes and press Enter");
        tty.types("yes\n").sees("This needs your PIN.");
        // Enter alone leaves it, a wrong one is said, and the request waits all the while.
        tty.types("\r").sees("Not answered.");
        tty.types("y").sees("type yes and press Enter");
        tty.types("yes\n").sees("This needs your PIN.");
        tty.types("cafe\r").sees("That is not your PIN.");
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        tty.types("y").sees("type yes and press Enter");
        tty.types("yes\n").sees("This needs your PIN.");
        tty.types("cafe au lair\u{7f}t\r").sees("Unlocked for 900 seconds.");
        tty.sees("Request 1: accepted.");
        assert_eq!(agent.outcome(&request).await, "accepted");
        // For a while it is not asked for again.
        let request = agent.ask_for(&session, &deletion("more")).await;
        tty.sees("Press y for yes");
        tty.types("y").sees("type yes and press Enter");
        tty.types("yes\n").sees("Request 2: accepted.");
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
    tty.types("q").sees("Goodbye.");
    assert_eq!(tty.ended(), 0);
    assert!(tty.is_as_found() && !tty.all().contains("cafe"), "{}", tty.all());
}

// covers: I34
#[test]
fn a_program_sends_the_pin_as_a_line_of_its_own() {
    let hub = Hub::start(Setup::durable());
    set_pin(&hub);
    let mut listener = Piped::start(&["--json"], &around(&hub));
    listener.sees("\"connected\"");
    run(async {
        let agent = agent(&hub);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let asked = listener.sees("\"happening\":\"asked\"");
        assert!(asked.contains("\"needs\":\"pin\""), "{asked}");
        listener.types("{\"request\":1,\"answer\":\"accept\",\"certain\":true}");
        listener.sees("This needs your PIN.");
        listener.types(&format!("{{\"pin\":\"{PIN}\"}}"));
        listener.sees("\"state\":\"unlocked\"");
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
}
