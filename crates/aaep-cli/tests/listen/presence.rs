//! A yes that needs the person's PIN.

use std::io::Write;
use std::process::{Command, Stdio};

use aaep_transport::client::{Options, SessionSecret};

use crate::speech::brltty::Brltty;
use crate::speech::{Dispatcher, installed};
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

// covers: I34
#[test]
fn with_a_pin_the_question_stays_on_the_display_until_the_yes_has_left_and_no_is_still_taken() {
    if !installed("brltty") {
        return;
    }
    let mut brltty = Brltty::start(40);
    let hub = Hub::start(Setup::durable());
    set_pin(&hub);
    let braille = format!("--braille={}", brltty.host());
    let mut tty = Tty::start(&["--pause", "0", &braille], &around(&hub));
    tty.sees("Press ? for help.");
    run(async {
        let agent = agent(&hub);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        tty.sees("Press y for yes");
        brltty.shows_like("? “Delete old.txt” No undo. High risk.");
        tty.types("y").sees("type yes and press Enter");
        let before = tty.all().len();
        tty.types("yes\n").sees("This needs your PIN.");
        assert!(!tty.all()[before..].contains("yes, sent"), "{}", tty.all());
        brltty.showed("? This needs your PIN.");
        tty.types("cafe\r").sees("That is not your PIN.");
        brltty.shows_like("? That is not your PIN.");
        brltty.shows_like("? “Delete old.txt” No undo. High risk.");
        // The PIN is left with a no, on the display.
        tty.types("y").sees("type yes and press Enter");
        tty.types("yes\n").sees("This needs your PIN.");
        brltty.shows_like("? “Delete old.txt” No undo. High risk.");
        brltty.press("LNDN");
        brltty.shows_like("? yes");
        brltty.press("FWINLT");
        let answers = brltty.now_shows("  no");
        let no = answers.rfind("  no").map(|at| answers[..at].chars().count() + 2).unwrap();
        brltty.press(&format!("ROUTE {no}"));
        tty.sees("Request 1: rejected.");
        assert_eq!(agent.outcome(&request).await, "rejected");
    });
    tty.types("q").sees("Goodbye.");
    assert_eq!(tty.ended(), 0);
}

// covers: I34
#[test]
fn with_one_key_it_is_said_that_a_pin_needs_a_keyboard_and_no_is_still_taken() {
    let hub = Hub::start(Setup::durable());
    set_pin(&hub);
    let mut tty = Tty::start(&["--pause", "0", "--scan=1"], &around(&hub));
    tty.sees("Connected to");
    run(async {
        let agent = agent(&hub);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        tty.sees("Request 1 waits for you");
        tty.types(" ").sees("No.");
        tty.sees("Yes.");
        tty.types(" ").sees("Are you sure?");
        tty.sees("Yes, I am sure.");
        tty.types(" ").sees("a PIN needs a keyboard. Nothing was answered.");
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        tty.types(" ").sees("No.");
        tty.types(" ").sees("Request 1: rejected.");
        assert_eq!(agent.outcome(&request).await, "rejected");
    });
}

// covers: I34
#[test]
fn with_speech_each_character_of_a_pin_is_a_dot_and_with_lines_it_is_not_shown_either() {
    if !installed("speech-dispatcher") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let dispatcher = Dispatcher::start(directory.path(), 3000);
    let log = dispatcher.log();
    let hub = Hub::start(Setup::durable());
    set_pin(&hub);
    let mut variables = around(&hub);
    variables.push(("SPEECHD_ADDRESS".into(), dispatcher.address()));
    let options = ["--pause", "0", "--line", "--speak=speech-dispatcher"];
    let mut tty = Tty::start(&options, &variables);
    tty.sees("Connected to");
    run(async {
        let agent = agent(&hub);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        tty.sees("Request 1 waits for you");
        tty.types("yes\n").sees("To be sure: type yes");
        tty.types("yes\n").sees("This needs your PIN.");
        log.ends("Enter alone leaves it.");
        // What happens meanwhile waits until it was typed.
        agent.progress(&session, 50).await;
        for key in PIN.chars() {
            tty.types(&key.to_string());
        }
        log.ends("dot");
        assert!(!tty.all().contains("Going on."), "{}", tty.all());
        tty.types("\r").sees("Unlocked for 900 seconds.");
        log.ends("Request 1: accepted.");
        tty.sees("Request 1: accepted.");
        assert!(tty.all().contains("Going on."), "{}", tty.all());
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
    let heard = log.texts("begin").join(" ");
    for word in PIN.split(' ') {
        assert!(!tty.all().contains(word) && !heard.contains(word), "{}\n{heard}", tty.all());
    }
    assert!(heard.contains("dot"), "{heard}");
    tty.types("quit\n").sees("Goodbye.");
    assert_eq!(tty.ended(), 0);
}
