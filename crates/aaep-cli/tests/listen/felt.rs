//! What is felt of `aaep listen --braille`, with the real hub and the real BRLTTY, where a keyboard is
//! used beside the display.

use crate::heard::{Stage, mild};
use crate::speech::brltty::Brltty;
use crate::speech::installed;
use crate::support::*;
use crate::tty::Tty;

/// A hub with an agent, and somebody with a display of so many cells; none without BRLTTY.
fn reader(cells: usize, options: &[&str]) -> Option<(Stage, Tty, Brltty)> {
    if !installed("brltty") {
        return None;
    }
    let brltty = Brltty::start(cells);
    let mut stage = Stage::start();
    let (braille, base) = (format!("--braille={}", brltty.host()), stage.hub.base());
    let mut arguments = vec!["--pause", "0", &braille, &base];
    arguments.extend(options);
    let mut tty = Tty::start(&arguments, &stage.around());
    tty.sees("Press ? for help.");
    brltty.showed("Press ? for help.");
    stage.begin("Cleaning up.", "en");
    Some((stage, tty, brltty))
}

/// Reads on to the answers: everything that was on the display, as one text.
fn read(brltty: &mut Brltty) -> String {
    let mut shown = brltty.now_shows("? “");
    let mut text = String::new();
    loop {
        text += shown.trim_start_matches('?').trim_end();
        if shown.contains(" no ") {
            return text;
        }
        brltty.press("FWINRT");
        shown = brltty.shows_other_than(&shown);
    }
}

// covers: I31
#[test]
fn what_the_hub_says_would_run_is_felt_before_what_the_agent_says_comes_of_it() {
    let Some((stage, _tty, mut brltty)) = reader(20, &[]) else { return };
    let mut request = deletion("the old mail.");
    request["tool"] = "bank.transfer".into();
    request["arguments"] = json!({ "amount": 9001, "to": "Eve" });
    request["consequence"] = "There is more room.".into();
    stage.ask(&request);
    let text = read(&mut brltty);
    let said = [
        "“Delete the old mail.”",
        "High risk.",
        "The hub says: tool “bank.transfer”,",
        "9001",
        "Eve”.",
        "“There is more room.”",
        "no",
    ];
    let places: Vec<_> = said.iter().map(|piece| text.find(piece)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
}

#[test]
fn answers_to_keys_and_time_that_runs_out_are_felt_in_front_of_the_question() {
    let Some((stage, mut tty, mut brltty)) = reader(40, &[]) else { return };
    let mut request = mild("Empty the bin.");
    request["timeout_seconds"] = 24.into();
    stage.ask(&request);
    brltty.shows_like("? “Empty the bin.” Undo is possible.");
    brltty.press("LNDN");
    let answers = brltty.now_shows(" no  yes");
    tty.types("l").sees("1 request waits");
    brltty.shows_like("? 1 request waits");
    // A routing key leads back from it.
    brltty.press("ROUTE 9");
    brltty.shows(&answers);
    tty.types("d").sees("The hub says");
    brltty.shows_like("? Allow this? “Empty the bin.”");
    brltty.press("ROUTE 9");
    brltty.shows(&answers);
    // Half of its time is over.
    tty.sees("Press t for more time.");
    brltty.showed("? Request 1 waits 12 seconds more.");
    brltty.shows(&answers);
}

#[test]
fn the_display_and_the_keyboard_are_at_the_same_request() {
    let Some((stage, mut tty, mut brltty)) = reader(40, &[]) else { return };
    stage.ask(&mild("First thing."));
    brltty.shows_like("? “First thing.”");
    stage.ask(&mild("Second thing."));
    tty.sees("Request 2 waits too.");
    brltty.showed("? Request 2 waits too.");
    brltty.shows_like("? “First thing.”");
    tty.types("\t").sees("Allow this? “Second thing.”");
    brltty.shows_like("? “Second thing.”");
    tty.types("y").sees("Request 2: accepted.");
    brltty.shows_like("? “First thing.”");
    brltty.press("LNDN");
    brltty.shows_like(" no  yes");
    tty.types("2").sees("No request 2");
    brltty.shows_like("? No request 2 waits for an answer.");
    brltty.shows_like(" no  yes");
    tty.types("n").sees("Request 1: rejected.");
    brltty.showed("  Request 1: rejected.");
}
