//! One key for everything, and words that come from speech recognition.

use aaep_subscriber::inbox::Answer;
use aaep_types::ResponseKind;

use crate::listen::talk::stories::{Story, consent, mild, question, reply};

fn scanned() -> Story {
    Story::with(|settings| settings.scan_ms = Some(3_000))
}

/// What was offered, line by line, without what was typed.
fn offered(story: &mut Story) -> Vec<String> {
    let heard = story.heard();
    heard.lines().filter(|line| !line.starts_with('>')).map(str::to_owned).collect()
}

// covers: T21
#[test]
fn a_grave_yes_is_given_with_one_key_in_two_steps_that_begin_with_what_is_safe() {
    let mut story = scanned();
    story.asked(consent(1, "Go"));
    assert!(story.heard().ends_with("Press your key to hear what you can choose.\n"));
    story.after(60).is("");
    story.types(" ");
    assert_eq!(offered(&mut story), ["No."]);
    story.after(1).is("");
    story.after(2).is("Yes.");
    story.types(" ");
    assert_eq!(
        offered(&mut story),
        ["This cannot be undone, and the risk is high. Are you sure?", "Go back."]
    );
    story.after(3).is("Yes, I am sure.");
    story.types(" ");
    assert_eq!(offered(&mut story), ["Request 1: yes, sent.", "[reply 1: Accept]"]);
}

// covers: T21, S10
#[test]
fn presses_that_follow_each_other_too_fast_choose_nothing() {
    let mut story = scanned();
    story.asked(mild(1, "Go")).types(" ").after(3).heard();
    // It was meant for what was offered before: it is offered again.
    story.types_at_once(" ");
    assert_eq!(offered(&mut story), ["Yes."]);
    for _ in 0..50 {
        story.types_at_once(" ");
    }
    assert!(story.replies().is_empty());
}

#[test]
fn what_is_offered_stops_after_two_rounds_and_goes_with_its_request() {
    let mut story = scanned();
    story.asked(mild(1, "Go")).heard();
    story.types(" ");
    for _ in 0..12 {
        story.after(3);
    }
    let all = offered(&mut story);
    let round = ["No.", "Yes.", "Hear it again.", "Details.", "More time.", "Go back."];
    let mut wanted = [round, round].concat();
    wanted.push("Nothing was chosen. Press your key to hear it again.");
    assert_eq!(all, wanted);
    story.types(" ").after(3).heard();
    story.settled(mild(1, "Go"), aaep_subscriber::RequestOutcome::Cancelled).heard();
    story.types(" ");
    assert_eq!(offered(&mut story), ["What is being done."]);
}

#[test]
fn a_choice_is_made_and_words_are_written_with_one_key() {
    let mut story = scanned();
    story.asked(question(1, &[ResponseKind::MultipleChoice], &["Lagos", "Kano"])).heard();
    story.types(" ").after(3).types(" ");
    assert_eq!(story.replies(), reply(1, &Answer::Choice("kano".into())));

    let mut story = scanned();
    story.asked(question(2, &[ResponseKind::Freetext], &[])).heard();
    // Write, the first group, its second letter; then Send is offered first.
    story.types(" ").types(" ").types(" ").after(3).types(" ");
    let all = offered(&mut story);
    assert_eq!(all, ["Write an answer.", "a to e.", "a", "b", "Send: b"]);
    story.types(" ");
    assert_eq!(story.replies(), reply(2, &Answer::Text("b".into())));
}

fn dictated() -> Story {
    Story::with(|settings| (settings.lines, settings.dictation) = (true, true))
}

// covers: T21
#[test]
fn spoken_words_say_yes_only_alone_and_with_the_number() {
    let mut story = dictated();
    story.asked(mild(1, "Go")).heard();
    for chatter in ["y", "Yes I told her so.", "yeah", "No way is that true", "okay then", "1 2"] {
        story.types(chatter);
    }
    let heard = story.heard();
    assert!(heard.lines().all(|line| line.starts_with('>')), "{heard}");
    story.types("Yes.").types("Yes, exactly.");
    assert!(story.replies().is_empty());
    story.types("Yes.").types("Yes.");
    assert!(story.replies().is_empty());
    story.types("yes").types("yes 2");
    assert!(story.replies().is_empty());
    story.types("Yes!").is("
        > Yes!
        To be sure, say: yes 1. Anything else goes back.
    ");
    assert_eq!(story.types("Yes, 1.").replies(), reply(1, &Answer::Accept));
}

// covers: T21
#[test]
fn spoken_words_say_no_at_once_and_answer_in_words_only_when_told_to() {
    let mut story = dictated();
    story.asked(mild(1, "Go")).heard();
    assert_eq!(story.types("No.").replies(), reply(1, &Answer::Reject));
    story.asked(question(2, &[ResponseKind::Freetext], &[])).heard();
    assert!(story.types("what shall we eat").replies().is_empty());
    assert!(story.types("Repeat.").heard().contains("Where are you?"));
    assert_eq!(story.types("Answer Lagos.").replies(), reply(2, &Answer::Text("Lagos".into())));
}
