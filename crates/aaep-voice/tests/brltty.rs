//! Braille with the real BRLTTY. Its display is a socket: what is written there is read, and keys are
//! pressed by their names.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs and clocks

mod support;

use std::sync::mpsc::{Receiver, channel};

use aaep_voice::braille::{BrailleDisplay, Event, Label, Pressed, Question, Reply, Settings};
use aaep_voice::speech::Command;
use aaep_voice::utterance::{Class, Utterance};
use support::brltty::Brltty;
use support::{PATIENCE, installed};

fn start(cells: usize) -> Option<(Brltty, BrailleDisplay, Receiver<Event>)> {
    if !installed("brltty") {
        return None;
    }
    let brltty = Brltty::start(cells);
    let settings = Settings { host: Some(brltty.host()), pause_ms: 0, ..Settings::default() };
    let (say, events) = channel();
    let display = BrailleDisplay::start(settings, move |event| drop(say.send(event))).unwrap();
    Some((brltty, display, events))
}

fn grave(number: u32) -> Question {
    let label = |text: &str, reply| Label { text: text.into(), reply };
    Question {
        number,
        text: "“Delete the record.” No undo. High risk.".into(),
        answers: vec![label("no", Reply::No), label("yes", Reply::Yes)],
        second_step: Some("No undo. Sure?".into()),
    }
}

#[test]
fn a_question_is_shown_panned_and_answered_by_routing_keys() {
    let Some((mut brltty, display, events)) = start(40) else { return };
    display.send(vec![Command::Asked(1)]);
    display.ask(grave(1));
    brltty.shows("? “Delete the record.” No undo. High    ");
    brltty.press("FWINRT");
    brltty.shows("? risk.  no  yes                        ");
    brltty.press("ROUTE 13");
    brltty.shows("? No undo. Sure?  no  yes               ");
    brltty.press("ROUTE 22");
    let yes = Event::Answer(Pressed { number: 1, reply: Reply::Yes, certain: true });
    assert_eq!(events.recv_timeout(PATIENCE), Ok(yes));
    let outcome = Utterance::new(Class::Outcome).printed("Request 1: accepted.".into());
    display.send(vec![Command::Settled(1), Command::Say(outcome)]);
    brltty.shows("  Request 1: accepted.                  ");
    // Given back, and taken again for what is new. BRLTTY has no screen of its own to show here, and often
    // leaves the cells as they are: nothing says that the key has come.
    brltty.press("HOME");
    std::thread::sleep(std::time::Duration::from_millis(300));
    display.send(vec![Command::Say(Utterance::new(Class::End).printed("Done.".into()))]);
    brltty.shows("  Done.                                 ");
}

#[test]
fn a_display_that_is_unplugged_and_another_one_shows_the_same_question() {
    let Some((mut brltty, display, events)) = start(40) else { return };
    display.send(vec![Command::Asked(1)]);
    display.ask(grave(1));
    brltty.shows("? “Delete the record.” No undo. High    ");
    brltty.unplug();
    brltty.plug(20);
    brltty.shows("? “Delete the       ");
    brltty.press("LNDN");
    brltty.shows("? yes               ");
    brltty.press("FWINLT");
    brltty.shows("? High risk.  no    ");
    brltty.press("ROUTE 14");
    let no = Event::Answer(Pressed { number: 1, reply: Reply::No, certain: false });
    assert_eq!(events.recv_timeout(PATIENCE), Ok(no));
}

#[test]
fn brltty_that_is_restarted_shows_the_same_question() {
    let Some((mut brltty, display, events)) = start(14) else { return };
    display.send(vec![Command::Asked(1)]);
    display.ask(grave(1));
    brltty.shows("? “Delete the ");
    brltty.restart(14);
    assert!(matches!(events.recv_timeout(PATIENCE), Ok(Event::Lost(_))));
    assert_eq!(events.recv_timeout(PATIENCE), Ok(Event::Back));
    brltty.shows("? “Delete the ");
}

#[test]
fn without_brltty_it_is_said_what_to_look_at() {
    let settings = Settings { host: Some("127.0.0.1:9".into()), ..Settings::default() };
    let why = BrailleDisplay::start(settings, |_| {}).err().unwrap();
    assert!(why.contains("Is it running, with BrlAPI?"), "{why}");
}
