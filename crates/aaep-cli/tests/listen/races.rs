//! Two listeners, and a hub that is killed and comes back.

use std::time::{Duration, Instant};

use crate::support::*;
use crate::tty::Tty;
use crate::{Piped, around, demo, say};

// covers: C25, C13, D30
#[test]
fn what_one_listener_answers_the_other_hears() {
    let hub = demo();
    let mut here = Tty::start(&["--pause", "0"], &around(&hub));
    let mut there = Piped::start(&[], &around(&hub));
    here.sees("Connected to");
    there.sees("Connected to");
    say(&hub, "book a room");
    here.sees("Press y for yes");
    there.sees("Type yes or no");
    here.types("n").sees("Request 1: rejected.");
    let heard = there.sees("Request 1 was rejected elsewhere.");
    assert!(!heard.contains("timed out"), "{heard}");
    there.types("yes");
    there.sees("Nothing waits for you.");
}

// covers: C13, C25
#[test]
fn of_two_answers_at_once_one_counts_and_both_hear_the_same() {
    let hub = demo();
    let mut here = Piped::start(&[], &around(&hub));
    let mut there = Piped::start(&[], &around(&hub));
    here.sees("Connected to");
    there.sees("Connected to");
    for round in 1..=5 {
        say(&hub, "book a room");
        let waits = format!("Request {round} waits for you");
        here.sees(&waits);
        there.sees(&waits);
        here.types("yes");
        there.types("no");
        let (first, second) = (here.sees("\nDone."), there.sees("\nDone."));
        let accepted = |heard: &str| {
            heard.contains(&format!("Request {round}: accepted"))
                || heard.contains(&format!("Request {round} was accepted elsewhere"))
        };
        assert_eq!(accepted(&first), accepted(&second), "{first}\n---\n{second}");
        let booked = |heard: &str| heard.contains("The room is booked");
        assert_eq!(booked(&first), accepted(&first), "{first}");
    }
}

// covers: I3, C13, H24
#[test]
fn a_hub_that_is_killed_in_mid_question_comes_back_and_the_answer_counts() {
    let hub = Hub::start(Setup::durable());
    let person = hub.person();
    let token = person.token("reader");
    let around = [
        ("AAEP_TOKEN".to_owned(), token),
        ("HOME".to_owned(), hub.home().to_str().unwrap().to_owned()),
    ];
    let address = hub.address();
    let mut tty = Tty::start(&["--pause", "0", &hub.base()], &around);
    tty.sees("Connected to");
    let agent = person.agent();
    let mut request = Value::Null;
    run(async {
        let session = agent.open().await;
        request = agent.ask(&session).await;
    });
    tty.sees("Press y for yes");
    tty.types("y").sees("type yes and press Enter");
    hub.kill();
    tty.sees("is lost");
    let directory = hub.shared_directory();
    let setup = Setup::durable().arguments(&["--listen", &address.to_string()]);
    let hub = Hub::start_in(setup, directory);
    tty.sees("again");
    // It was announced once, and the second step is still open.
    tty.types("yes\n").sees("Request 1: accepted.");
    assert_eq!(tty.all().matches("Allow this?").count(), 1, "{}", tty.all());
    let person = person.at(&hub);
    run(async {
        assert_eq!(person.agent().outcome(&request).await, "accepted");
    });
}

// covers: H24
#[test]
fn several_hubs_are_heard_at_once_over_different_ways() {
    let (first, second, third) = (demo(), demo(), demo());
    let places = [
        first.base(),
        format!("{}/ws", second.base().replace("http", "ws")),
        format!("unix:{}", third.socket().display()),
    ];
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    let mut listener = Piped::start(&places, &[("HOME".into(), "/nonexistent".into())]);
    for _ in &places {
        listener.sees("Connected to");
    }
    for (number, hub) in (1..).zip([&first, &second, &third]) {
        say(hub, "book a room");
        listener.sees(&format!("Request {number} waits for you"));
    }
    for number in [2, 3, 1] {
        listener.types(&format!("yes {number}"));
        listener.sees(&format!("Request {number}: accepted."));
        listener.sees("The room is booked.");
    }
}

/// Asks what agents do until none does.
pub fn nobody_works(listener: &mut Piped) {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let told = listener.out.text().len();
        listener.types("what");
        while listener.out.text().len() == told && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        if listener.out.text().contains("No agent is at work.") {
            return;
        }
    }
    panic!("a session that ended is still at work: {}", listener.out.text());
}

/// A listener of this person.
fn listens(hub: &Hub, token: String) -> Piped {
    let home = hub.home().to_str().unwrap().to_owned();
    let mut listener =
        Piped::start(&[&hub.base()], &[("AAEP_TOKEN".into(), token), ("HOME".into(), home)]);
    listener.sees("Connected to");
    listener
}

// covers: I32, D28
#[test]
fn a_session_that_failed_while_a_hub_came_back_is_not_said_to_go_on() {
    let hub = Hub::start(Setup::durable());
    let (person, address) = (hub.person(), hub.address());
    let mut listener = listens(&hub, person.token("reader"));
    let mut session = String::new();
    run(async {
        let agent = person.agent();
        session = agent.open().await;
        agent.progress(&session, 10).await;
    });
    // Progress leaves no record, so the hub that comes back cannot go on from there.
    listener.sees("Going on.");
    // It is away while the hub is killed, comes back, and the session fails.
    listener.signal("STOP");
    hub.kill();
    let setup = Setup::durable().arguments(&["--listen", &address.to_string()]);
    let hub = Hub::start_in(setup, hub.shared_directory());
    run(async {
        let error = json!({ "error_category": "unknown", "summary_normal": "It broke." });
        person.at(&hub).agent().emit(&session, "session.errored", error).await;
    });
    listener.signal("CONT");
    listener.sees("again");
    listener.sees("A session is over. Nobody said how it ended.");
    listener.types("what");
    listener.sees("No agent is at work.");
}

// covers: I32, T15
#[test]
fn a_session_that_ends_with_a_tool_open_is_over() {
    let hub = Hub::start(Setup::durable());
    let person = hub.person();
    let mut listener = listens(&hub, person.token("reader"));
    run(async {
        let agent = person.agent();
        let mut opening = agent.opening();
        opening["lease_seconds"] = json!(15);
        let opened = body(&agent.post("agent/sessions", &opening).await);
        let invoked = json!({ "tool": "read", "summary_normal": "Reading." });
        agent.emit(text(&opened, "session_id"), "tool.invoked", invoked).await;
    });
    listener.sees("Reading.");
    listener.sees("Failed");
    nobody_works(&mut listener);
}
