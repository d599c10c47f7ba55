//! In a real pseudo-terminal.

use crate::tty::Tty;
use crate::{around, demo, say};

/// A listener that takes answers at once: a test reads faster than anybody.
fn listen(hub: &crate::support::Hub, options: &[&str]) -> Tty {
    let mut arguments = vec!["--pause", "0"];
    arguments.extend(options);
    Tty::start(&arguments, &around(hub))
}

// covers: T21, T30, C28, H26
#[test]
fn the_demo_is_heard_and_answered_with_keys_and_the_screen_holds_every_line() {
    let hub = demo();
    let mut tty = listen(&hub, &[]);
    tty.sees("Connected to");
    say(&hub, "transfer 20 euros to Ann");
    let asked = tty.sees("Press y for yes");
    assert!(
        asked.contains("Allow this? “Transfer 20 euros to Ann.” It cannot be undone."),
        "{asked}"
    );
    // What was written last ends at the cursor: that is how screen readers know that it is new.
    assert!(tty.all().ends_with("t for more time."), "{:?}", tty.all());
    tty.types("y").sees("type yes and press Enter");
    assert!(tty.all().ends_with("An empty line goes back. "), "{:?}", tty.all());
    tty.types("yes\n").sees("Request 1: accepted.");
    tty.sees("20 euros were sent to Ann.");
    say(&hub, "ask me something");
    tty.sees("Press a, then type your answer");
    tty.types("a").sees("An empty line goes back.");
    tty.types("Lagos\n").sees("In Lagos the sun shines.");
    say(&hub, "delete the record");
    tty.sees("Press y for yes");
    tty.types("n").sees("rejected");
    tty.sees("Nothing was done.");
    tty.types("q").sees("Goodbye.");
    assert_eq!(tty.ended(), 0);
    assert!(tty.is_as_found());
    // The screen is what was printed, line by line, with a cursor at its end.
    let (screen, cursor, asked) = tty.shown();
    let printed = tty.all().replace('\u{7}', "");
    assert_eq!(screen.trim_end(), printed.trim_end());
    assert_eq!(cursor, (u16::try_from(printed.lines().count()).unwrap(), 0), "{printed}");
    assert!(asked.iter().all(|asked| asked == "bell") && asked.len() >= 3, "{asked:?}");
    assert!(!printed.contains('\u{1b}'), "{printed:?}");
}

#[test]
fn whatever_ends_it_the_terminal_is_as_it_was_found() {
    let hub = demo();
    for name in ["INT", "TERM", "HUP", "typed"] {
        let mut tty = listen(&hub, &[]);
        tty.sees("Connected to");
        tty.types("?").sees("q, or quit: leave.");
        assert!(!tty.is_as_found(), "keys come one by one");
        match name {
            "typed" => drop(tty.types("\u{3}")),
            name => tty.signal(name),
        }
        assert_eq!(tty.ended(), 0, "{name}");
        assert!(tty.is_as_found(), "{name}");
    }
}

// covers: T21
#[test]
fn what_was_typed_before_a_request_was_printed_does_not_answer_it() {
    let hub = demo();
    let mut tty = listen(&hub, &[]);
    tty.sees("Connected to");
    // It sleeps while somebody types and the agent asks.
    tty.signal("STOP");
    tty.types("y\ny");
    say(&hub, "book a room");
    let mut other = listen(&hub, &[]);
    other.sees("Press y for yes");
    tty.signal("CONT");
    let heard = tty.sees("Press y for yes");
    assert!(heard.contains("Nothing waits for you."), "{heard}");
    tty.types("l").sees("1 request waits:");
    tty.types("y").sees("Request 1: accepted.");
    other.sees("The room is booked.");
}

// covers: T21
#[test]
fn a_key_pressed_the_moment_a_request_appears_is_not_taken() {
    let hub = demo();
    let mut tty = Tty::start(&["--pause", "3600000"], &around(&hub));
    tty.sees("Connected to");
    say(&hub, "book a room");
    tty.sees("Press y for yes");
    tty.types("y").sees("Not taken: request 1 had only just been said.");
    tty.types("\u{1b}[A").types("l").sees("1 request waits:");
}

// covers: T21
#[test]
fn the_second_step_is_not_taken_from_what_was_typed_ahead() {
    let hub = demo();
    let mut tty = listen(&hub, &[]);
    tty.sees("Connected to");
    say(&hub, "delete the record");
    tty.sees("Press y for yes");
    tty.types("yyes\nyes\n").sees("type yes and press Enter");
    tty.types("\n").sees("Nothing was sent. Request 1 still waits.");
    tty.types("n").sees("Request 1: rejected.");
}

#[test]
fn words_and_enter_work_in_a_terminal_too() {
    let hub = demo();
    let mut tty = listen(&hub, &["--line"]);
    tty.sees("Connected to");
    assert!(tty.is_as_found() || !tty.all().contains('\u{1b}'));
    say(&hub, "book a room");
    tty.sees("Type yes or no and press Enter.");
    tty.types("perhaps\n").sees("That is no command.");
    tty.types("yes\n").sees("The room is booked.");
    tty.types("\u{4}").sees("Goodbye.");
    assert_eq!(tty.ended(), 0);
}

// covers: T21
#[test]
fn ctrl_d_goes_back_while_typing_and_leaves_only_if_it_is_meant() {
    let hub = demo();
    let mut keys = listen(&hub, &[]);
    let mut lines = listen(&hub, &["--line"]);
    keys.sees("Connected to");
    lines.sees("Connected to");
    say(&hub, "ask me something");
    keys.sees("Press a, then type your answer");
    keys.types("a").sees("An empty line goes back.");
    keys.types("\u{4}").sees("Nothing was sent. Request 1 still waits.");
    keys.types("\u{4}").sees("Press q again to leave");
    keys.types("r").sees("Still listening.");
    lines.sees("Type answer, a space and your answer");
    lines.types("\u{4}").sees("Type quit again to leave");
    lines.types("no\n").sees("Still listening.");
    lines.types("\u{4}").sees("Type quit again to leave");
    lines.types("\u{4}").sees("Goodbye.");
    assert_eq!(lines.ended(), 0);
    keys.types("a").types("Lagos\n").sees("In Lagos the sun shines.");
}

#[test]
fn an_agent_is_stopped_from_the_terminal() {
    let hub = demo();
    let mut tty = listen(&hub, &[]);
    tty.sees("Connected to");
    say(&hub, "a long job");
    tty.sees("Step 1 of 5");
    tty.types("w").sees("Step");
    tty.types("x").sees("Press x again to stop it");
    tty.types("x").sees("was told to stop");
    tty.sees("Cancelled by the user");
}

// covers: D32
#[test]
fn more_time_is_asked_for_and_given() {
    let hub = demo();
    let mut tty = listen(&hub, &[]);
    tty.sees("Connected to");
    say(&hub, "book a room");
    tty.sees("Press y for yes");
    let said = tty.types("t").sees("Request 1 now waits");
    assert!(!said.contains("Allow this?"), "{said}");
    tty.types("y").sees("Request 1: accepted.");
}

#[test]
fn other_languages_are_spoken() {
    let hub = demo();
    for (language, connected, keys, yes, booked) in [
        ("ar", "hub", "اضغط ن", "ن", "The room is booked."),
        ("zh", "hub", "按 y 同意", "y", "The room is booked."),
        ("fr", "hub", "Appuyez sur y pour oui", "y", "The room is booked."),
        ("yo", "hub", "Tẹ y fún bẹ́ẹ̀ni", "y", "The room is booked."),
    ] {
        let _ = connected;
        let mut around = around(&hub);
        around.push(("LANG".into(), format!("{language}_XX.UTF-8")));
        let mut tty = Tty::start(&["--pause", "0"], &around);
        tty.sees("demo");
        say(&hub, "book a room");
        tty.sees(keys);
        tty.types(yes).sees(booked);
    }
}

#[test]
fn lines_are_broken_between_words_in_a_narrow_terminal() {
    let hub = demo();
    let mut tty = Tty::start_in(40, &["--pause", "0"], &around(&hub));
    tty.sees("Connected to demo.");
    say(&hub, "transfer 20 euros to Ann");
    tty.sees("for more time.");
    let all = tty.all();
    assert!(all.lines().all(|line| line.chars().count() <= 40), "{all}");
    let whole = all.replace('\n', " ");
    assert!(whole.contains("Press y for yes, n for no, d for details, t for more time."), "{all}");
}

// covers: T21
#[test]
fn one_key_answers_everything() {
    let hub = demo();
    let mut tty = Tty::start(&["--pause", "0", "--scan=1"], &around(&hub));
    tty.sees("Press your key to hear what you can choose.");
    say(&hub, "delete the record");
    tty.sees("Press your key to hear what you can choose.");
    tty.types(" ").sees("No.");
    tty.sees("Yes.");
    tty.types(" ").sees("Are you sure?");
    tty.sees("Go back.");
    tty.sees("Yes, I am sure.");
    tty.types(" ").sees("Request 1: accepted.");
}
