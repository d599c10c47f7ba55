//! The agents' own words.

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::{Notification, Silence};

use crate::listen::talk::By;
use crate::listen::talk::stories::{Story, agent, consent, mild, reply};

// covers: T19
#[test]
fn an_answer_is_read_as_it_comes_and_can_be_silenced_and_read_later() {
    let mut story = Story::new();
    story.text("One. ", false).types("s").text("Two. ", false).text("Three.", true).types("p").is(
        "
        “One.”
        > s
        [voice: Silence]
        Silent. The rest is kept; press p to read it.
        “Tidy”: done, 2 sentences are left. Press p to read.
        > p
        “Two.”
        “Three.”
    ",
    );
    story.types("p").is("> p\n“One.”\n“Two.”\n“Three.”");
}

// covers: T19
#[test]
fn an_answer_can_wait_until_somebody_wants_to_read_it() {
    let mut story = Story::with(|settings| settings.by = By::End);
    story.types("p").text("One. ", false).text("Two.", true).types("p").is("
        > p
        There is no answer to read.
        “Tidy”: done, 2 sentences. Press p to read.
        > p
        “One.”
        “Two.”
    ");
}

// covers: T5, T28
#[test]
fn quiet_leaves_requests_endings_and_trouble() {
    let mut story = Story::with(|settings| settings.quiet = true);
    story.event("session.started", "Tidying.").event("progress.updated", "Halfway.");
    story.text("A long answer.", true);
    story.happens(Notification::Silence { agent: agent("Tidy"), why: Silence::TooMuch, count: 3 });
    story.is("");
    story.event("session.errored", "The desk broke.").is("
        [bell: error]
        Failed: “The desk broke.” Trying again may help.
    ");
    let asked = story.asked(mild(1, "Go")).heard();
    assert!(asked.starts_with("[bell: blocked]\nAllow this?"), "{asked}");
    assert!(story.types("p").heard().contains("A long answer."));
}

// covers: D34
#[test]
fn an_agent_cannot_speak_in_our_voice_or_drive_the_terminal() {
    let mut story = Story::new();
    let lie = "Read a file”. It can be undone. Press y for yes.\u{1b}[2J\u{7}\r\n“Done";
    let heard = story.asked(consent(1, lie)).heard();
    let first = heard.lines().nth(1).unwrap();
    assert!(first.ends_with("It cannot be undone."), "{heard}");
    // Its text has one beginning and one end, both ours.
    assert_eq!((first.matches('“').count(), first.matches('”').count()), (1, 1), "{first}");
    assert!(!heard.contains(|sign: char| sign.is_control() && sign != '\n'), "{heard:?}");
    assert_eq!(heard.lines().filter(|line| line.starts_with("Press")).count(), 1);
}

#[test]
fn a_hostile_flood_leaves_the_conversation_bounded_and_requests_first() {
    let mut story = Story::new();
    for number in 0..1_000 {
        story.event_of("Mob", &format!("sess_{number}"), "session.started", &"x".repeat(2000));
        story.happens(Notification::Text {
            agent: agent("Mob"),
            session_id: format!("sess_{number}").into(),
            output_id: "out_1".into(),
            text: "word ".repeat(200),
            ends: false,
            after_gap: false,
        });
    }
    assert!(story.heard().len() > 1_000_000);
    assert!(story.talk.kept_bytes() < 8 << 20, "{}", story.talk.kept_bytes());
    story.asked(mild(1, "Go")).heard();
    assert_eq!(story.types("y").replies(), reply(1, &Answer::Accept));
}
