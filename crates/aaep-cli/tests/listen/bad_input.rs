//! Text that voices could stumble over, and voices that fail: what is asked is heard or felt whole,
//! and can still be answered. With the real Speech Dispatcher and the real BRLTTY.

use aaep_subscriber::words::safe;

use crate::speech::brltty::Brltty;
use crate::speech::{Dispatcher, Log, installed};
use crate::stage::{Stage, request};
use crate::tty::Tty;
use crate::{around, demo, say};

const HOME: (&str, &str) = ("HOME", "/nonexistent");

/// What a producer asks, each in its own way not plain text.
fn texts() -> Vec<(&'static str, String)> {
    let long = "word ".repeat(16_384 / 5 - 1) + "ends now.";
    assert!((16_380..=16_384).contains(&long.len()), "{}", long.len());
    vec![
        ("16,384 characters", long),
        ("emoji", "Send 👩\u{200d}🚀👍🏽 to Ann 🇳🇬".into()),
        ("combining marks", format!("Pay x{} and x\u{303}", "\u{301}".repeat(40))),
        (
            "control characters",
            "nul \0 escape \u{1b}[2J bell \u{7} line\u{85}end \u{9b}31m x".into(),
        ),
        ("SSML", "<speak><break time=\"9s\"/>&amp; <mark name='x'/></speak> now".into()),
        ("SSIP", "now\r\n.\r\nSTOP ALL\r\nSET ALL RATE -100\r\nQUIT".into()),
        ("a single dot", "go\n.\non".into()),
        ("directions", "to \u{202e}nnA\u{202c} and آن".into()),
    ]
}

/// Without spaces: how sentences are cut is no matter.
fn bare(text: &str) -> String {
    text.split_whitespace().collect()
}

#[test]
fn whatever_is_asked_is_heard_whole_and_answered() {
    if !installed("speech-dispatcher") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let dispatcher = Dispatcher::start(directory.path(), 400_000);
    let log = dispatcher.log();
    let stage = Stage::start();
    let variables =
        [(HOME.0.into(), HOME.1.into()), ("SPEECHD_ADDRESS".into(), dispatcher.address())];
    let arguments = ["--pause", "0", "--speak=speech-dispatcher", &stage.base];
    let mut tty = Tty::start(&arguments, &variables);
    tty.sees("Connected to");
    stage.attached(1);
    for (number, (kind, text)) in (1..).zip(texts()) {
        let before = log.all().len();
        stage.send(&request(number, &format!("sess_{number}"), &text));
        log.ends(&format!("Request {number} waits for you"));
        let agent = log.all().split_off(before).into_iter();
        let agent = agent.filter(|heard| heard.kind == "end" && heard.pitch == "-25");
        let heard: String = agent.map(|heard| bare(&heard.text)).collect();
        let wanted = bare(&safe(&text).text);
        assert!(heard.contains(&wanted), "{kind}: {heard} is not {wanted}");
        tty.types("n").sees(&format!("Request {number}: no, sent."));
        assert_eq!(stage.reply(&format!("rpl_{number}"))["decision"], "reject", "{kind}");
    }
    // Only what answers a key was cut, by the next request.
    let cut = log.all().into_iter().filter(|heard| heard.kind == "cut" && heard.pitch == "-25");
    assert_eq!(cut.collect::<Vec<_>>(), []);
}

/// Presses the routing key above "no". The answers are at the end, in one window or in two.
fn presses_no(brltty: &mut Brltty) {
    brltty.press("LNDN");
    let mut shown = brltty.now_shows("yes");
    if !shown.contains("no  yes") {
        brltty.press("FWINLT");
        shown = brltty.now_shows("  no");
    }
    let no = shown.rfind("  no").map(|at| shown[..at].chars().count() + 2).unwrap();
    brltty.press(&format!("ROUTE {no}"));
}

#[test]
fn whatever_is_asked_is_felt_and_answered_with_a_routing_key() {
    if !installed("brltty") {
        return;
    }
    for (number, (kind, text)) in (1..).zip(texts()) {
        let mut brltty = Brltty::start(80);
        let stage = Stage::start();
        let braille = format!("--braille={}", brltty.host());
        let home = [(HOME.0.into(), HOME.1.into())];
        let mut tty = Tty::start(&["--pause", "0", &braille, &stage.base], &home);
        tty.sees("Connected to");
        stage.attached(1);
        stage.send(&request(number, "sess_1", &text));
        tty.sees("Request 1 waits for you");
        brltty.shows_like("? “");
        presses_no(&mut brltty);
        assert_eq!(stage.reply(&format!("rpl_{number}"))["decision"], "reject", "{kind}");
    }
}

#[test]
fn a_display_that_is_unplugged_shows_the_question_again_and_takes_its_answer() {
    if !installed("brltty") {
        return;
    }
    let mut brltty = Brltty::start(40);
    let hub = demo();
    let braille = format!("--braille={}", brltty.host());
    let mut tty = Tty::start(&["--pause", "0", &braille], &around(&hub));
    tty.sees("Connected to");
    say(&hub, "delete the record");
    brltty.shows("? “Delete the record 12345.” No undo.   ");
    brltty.unplug();
    brltty.plug(24);
    // Cut at a word: this is ours, and not what BRLTTY has left of the old one.
    brltty.shows("? “Delete the record    ");
    presses_no(&mut brltty);
    tty.sees("Request 1: rejected.");
}

#[test]
fn two_listeners_who_both_speak_are_both_heard_and_each_tells_the_outcome() {
    if !installed("speech-dispatcher") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let dispatcher = Dispatcher::start(directory.path(), 3000);
    let log = dispatcher.log();
    let hub = demo();
    let mut variables = around(&hub);
    variables.push(("SPEECHD_ADDRESS".into(), dispatcher.address()));
    let arguments = ["--pause", "0", "--speak=speech-dispatcher"];
    let mut both = [(); 2].map(|()| Tty::start(&arguments, &variables));
    both.iter_mut().for_each(|tty| drop(tty.sees("Connected to")));
    say(&hub, "transfer 20 euros to Ann");
    let times = |log: &Log, text: &str| {
        log.texts("end").iter().filter(|heard| heard.contains(text)).count()
    };
    for text in ["Transfer 20 euros to Ann.", "It cannot be undone.", "Press y for yes"] {
        log.wait(text, |_| times(&log, text) >= 2);
    }
    both[0].types("n").sees("Request 1: rejected.");
    both[1].sees("Request 1 was rejected elsewhere.");
    log.ends("Request 1: rejected.");
    log.ends("Request 1 was rejected elsewhere.");
    let once =
        [("It cannot be undone.", 2), ("Request 1: rejected.", 1), ("rejected elsewhere", 1)];
    for (text, wanted) in once {
        assert_eq!(times(&log, text), wanted, "{text}: {:#?}", log.texts("end"));
    }
}
