//! The conversation as a listener hears it. `>` is what is typed; what is in brackets is not said.

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::{Happening, Outcome, Silence};
use aaep_types::ResponseKind::{Freetext, MultipleChoice, Numeric, YesNo};

use super::stories::{Story, agent, consent, mild, question, reply};
use super::{By, SecondStep};

// covers: T21, T30, T36, C28, C25
#[test]
fn a_whole_session_is_heard_with_the_action_first_and_the_keys_last() {
    Story::new()
        .event("session.started", "Tidying the desk.")
        .asked(consent(1, "Delete old.txt"))
        .types("y")
        .types("yes")
        .settled(consent(1, "Delete old.txt"), Outcome::Accepted)
        .event("session.completed", "The desk is tidy.")
        .is("
            Started: “Tidying the desk.”
            [bell: blocked]
            Allow this? “Delete old.txt”. It cannot be undone.
            What happens: “It is gone for good.” High risk.
            Request 1 waits for you, for 5 minutes.
            Press y for yes, n for no, d for details, t for more time.
            > y
            This cannot be undone, and the risk is high. To be sure: type yes and press Enter. An empty line goes back.
            > yes
            Request 1: yes, sent.
            [reply 1: Accept]
            Request 1: accepted.
            [bell: done]
            Done. “The desk is tidy.”
        ");
}

// covers: T21
#[test]
fn what_is_harmless_takes_one_key_and_what_is_grave_a_word() {
    assert_eq!(
        Story::new().asked(mild(1, "Open it")).types("y").replies(),
        reply(1, &Answer::Accept)
    );
    assert_eq!(
        Story::new().asked(mild(1, "Open it")).types("n").replies(),
        reply(1, &Answer::Reject)
    );
    assert_eq!(
        Story::new().asked(consent(1, "Go")).types("n").replies(),
        reply(1, &Answer::Reject)
    );
    for second in ["y", "", "n o", "yes please", "y yes"] {
        let mut story = Story::new();
        story.asked(consent(1, "Go")).types("y").types(second);
        assert_eq!(story.replies(), Vec::<String>::new(), "{second}");
        // It still waits, and the whole way is open again.
        assert_eq!(story.types("y").types("YES ").replies(), reply(1, &Answer::Accept));
    }
    let refused = Story::new().asked(consent(1, "Go")).types("y").types("no").replies();
    assert_eq!(refused, reply(1, &Answer::Reject));
}

// covers: T21
#[test]
fn the_second_step_can_be_wanted_for_everything_or_for_nothing() {
    let always = |settings: &mut super::Settings| settings.second_step = SecondStep::Always;
    let never = |settings: &mut super::Settings| settings.second_step = SecondStep::Never;
    assert_eq!(Story::with(always).asked(mild(1, "Go")).types("y").replies().len(), 0);
    assert_eq!(Story::with(never).asked(consent(1, "Go")).types("y").replies().len(), 1);
}

// covers: T21, S10
#[test]
fn a_bare_enter_never_answers_and_says_where_one_is() {
    let mut story = Story::new();
    story.types("\n");
    story.asked(mild(1, "Go")).heard();
    story.types("\n").types("\r").types(" ").types("").is("
        > \\n
        Request 1 waits for your answer. Press r to hear it again.
        > \\r
        Request 1 waits for your answer. Press r to hear it again.
        >
        Request 1 waits for your answer. Press r to hear it again.
        >
        Request 1 waits for your answer. Press r to hear it again.
    ");
}

// covers: T21
#[test]
fn a_key_that_was_pressed_before_a_request_could_be_heard_does_not_answer_it() {
    let mut story = Story::new();
    story.types("y");
    story.happens(Happening::Asked(mild(1, "Go").into())).heard();
    story.types_at_once("y").types_at_once("n").is("
        > y
        Not taken: request 1 had only just been said. Press again.
        > n
        Not taken: request 1 had only just been said. Press again.
    ");
    assert_eq!(story.types("y").replies(), reply(1, &Answer::Accept));
}

// covers: T21, C25
#[test]
fn a_key_meant_for_a_request_that_has_gone_does_not_answer_the_next_one() {
    let mut story = Story::new();
    story.asked(mild(1, "Open it")).asked(mild(2, "Close it")).heard();
    story.settled(mild(1, "Open it"), Outcome::TimedOut).types_at_once("y").is("
        Request 1 timed out: nobody answered in time. It counts as no.
        It was: “Open it”.
        Request 2 still waits.
        Allow this? “Close it”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Request 2 waits for you, for 4 minutes 58 seconds.
        Press y for yes, n for no, d for details, t for more time.
        > y
        Not taken: request 2 had only just been said. Press again.
    ");
}

// covers: T28, S10
#[test]
fn a_second_request_is_announced_at_once_and_the_first_stays_in_focus() {
    let mut story = Story::new();
    story.asked(mild(1, "Open it")).heard();
    story.asked(mild(2, "Close it")).types("n").settled(mild(1, "Open it"), Outcome::Rejected).is(
        "
        [bell: blocked]
        Allow this? “Close it”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Request 2 waits for you, for 5 minutes.
        Request 2 waits too. Press Tab to go to it.
        > n
        Request 1: no, sent.
        [reply 1: Reject]
        Request 2 still waits.
        Allow this? “Close it”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Request 2 waits for you, for 4 minutes 57 seconds.
        Press y for yes, n for no, d for details, t for more time.
        Request 1: rejected.
    ",
    );
}

#[test]
fn a_request_can_be_heard_again_listed_looked_into_and_spelled() {
    let mut story = Story::new();
    story
        .event("session.started", "Tidying.")
        .asked(mild(1, "Pay \u{430}nn"))
        .asked(mild(2, "B"))
        .heard();
    story.types("r").is("
        > r
        Allow this? “Pay аnn”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Careful: the word “аnn” mixes Cyrillic and Latin letters.
        Request 1 waits for you, for 4 minutes 57 seconds.
        Press y for yes, n for no, d for details, t for more time.
    ");
    story.types("l").is("
        > l
        2 requests wait:
        Request 1, from “Tidy”: “Pay аnn” It waits 4 minutes 56 seconds more. You are here.
        Request 2, from “Tidy”: “B” It waits 4 minutes 56 seconds more.
    ");
    story.types("d").is("
        > d
        Allow this? “Pay аnn”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Careful: the word “аnn” mixes Cyrillic and Latin letters.
        Without an answer it counts as no.
        Request 1 waits for you, for 4 minutes 55 seconds.
        It comes from “Tidy”, whose id is “tidy”.
        Press y for yes, n for no, d for details, t for more time.
    ");
    let spelled = story.types("c").heard();
    assert!(spelled.contains("Cyrillic") && spelled.ends_with("t for more time.\n"), "{spelled}");
    story.types("\t").heard();
    assert_eq!(story.types("y").replies(), reply(2, &Answer::Accept));
}

#[test]
fn tab_and_next_go_round_and_a_number_goes_there() {
    let mut story = Story::new();
    for number in 1..=3 {
        story.asked(mild(number, "Go")).heard();
    }
    let at = |story: &mut Story, key: &str| {
        let heard = story.types(key).heard();
        heard.lines().find(|line| line.contains("waits for you")).map(|line| line[..9].to_owned())
    };
    for (key, number) in [("\t", 2), ("\t", 3), ("\t", 1), ("3", 3), ("next", 1), ("j", 2)] {
        assert_eq!(at(&mut story, key), Some(format!("Request {number}")), "{key}");
    }
    story.types("9").is("> 9\nNo request 9 waits for an answer.");
    let mut alone = Story::new();
    alone.asked(mild(7, "Go")).heard();
    alone.types("\t").is("> \\t\nOnly request 7 waits.");
}

#[test]
fn n_is_no_where_that_is_asked_and_next_elsewhere() {
    let mut story = Story::new();
    story.asked(question(1, &[Freetext], &[])).asked(mild(2, "Go")).heard();
    assert_eq!(story.types("n").replies(), Vec::<String>::new());
    assert_eq!(story.types("n").replies(), reply(2, &Answer::Reject));
}

// covers: C28
#[test]
fn the_four_kinds_of_questions_are_answered_and_gently_asked_again() {
    let mut free = Story::new();
    free.asked(question(1, &[Freetext], &[])).types("a").types("Lagos, by the sea").is("
        [bell: blocked]
        Question: “Where are you?”
        Answer in your own words.
        Request 1 waits for you, for 5 minutes.
        Press a, then type your answer and press Enter.
        Press d for details, t for more time.
        > a
        Type your answer to request 1 and press Enter. An empty line goes back.
        > Lagos, by the sea
        Request 1: your answer was sent.
        [reply 1: Text(\"Lagos, by the sea\")]
    ");
    let mut number = Story::new();
    number.asked(question(1, &[Numeric], &[])).heard();
    number.types("a").types("seven").types("7,5").is("
        > a
        Type your answer to request 1 and press Enter. An empty line goes back.
        > seven
        That is no number. Type one in digits, such as 3 or 2.5.
        > 7,5
        Request 1: your answer was sent.
        [reply 1: Number(7.5)]
    ");
    let mut choice = Story::new();
    choice.asked(question(1, &[MultipleChoice], &["Red", "Blue"])).types("3").types("2").is("
        [bell: blocked]
        Question: “Where are you?”
        Choose one of 2 answers.
        1: “Red”.
        2: “Blue”.
        Request 1 waits for you, for 5 minutes.
        Press the number of your choice.
        Press d for details, t for more time.
        > 3
        That is none of the choices. Type the number of one.
        > 2
        Request 1: your answer was sent.
        [reply 1: Choice(\"blue\")]
    ");
    let yes_no = Story::new().asked(question(1, &[YesNo], &[])).types("n").replies();
    assert_eq!(yes_no, reply(1, &Answer::YesNo(false)));
    let mut back = Story::new();
    back.asked(question(1, &[Freetext], &[])).types("a").heard();
    back.types("  ").is("
        >
        Nothing was sent. Request 1 still waits.
        Press a, then type your answer and press Enter.
        Press d for details, t for more time.
    ");
}

// covers: C28
#[test]
fn choices_are_taken_by_number_by_name_and_by_the_beginning_of_only_one() {
    let many: Vec<String> = (1..=12).map(|n| format!("Room {n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let value = |label: &str| Answer::Choice(label.to_lowercase());
    for (typed, answer) in [
        ("12", Some(value("Room 12"))),
        ("٣", Some(value("Room 3"))),
        ("room 5", Some(value("Room 5"))),
        ("Room 1", Some(value("Room 1"))),
        ("room", None),
        ("13", None),
        ("0", None),
    ] {
        let mut story = Story::new();
        story.asked(question(1, &[MultipleChoice], &many)).types("a").types(typed);
        let expected = answer.map_or(Vec::new(), |answer| reply(1, &answer));
        assert_eq!(story.replies(), expected, "{typed}");
    }
    // One key cannot say a number of two digits.
    let mut story = Story::new();
    story.asked(question(1, &[MultipleChoice], &many)).heard();
    story.types("1").is("
        > 1
        Press a, then type the number of your choice and press Enter.
        Press d for details, t for more time.
    ");
}

// covers: C25, D30
#[test]
fn what_becomes_of_a_request_is_said_as_what_it_is() {
    for (outcome, says) in [
        (Outcome::AcceptedElsewhere, "Request 1 was accepted elsewhere."),
        (Outcome::RejectedElsewhere, "Request 1 was rejected elsewhere."),
        (Outcome::TimedOut, "Request 1 timed out: nobody answered in time. It counts as no."),
        (Outcome::Cancelled, "Request 1 was cancelled."),
        (Outcome::Gone, "Request 1 no longer waits. Nobody said why."),
    ] {
        let mut story = Story::new();
        story.asked(mild(1, "Go")).heard();
        story.settled(mild(1, "Go"), outcome).is(&format!("{says}\nIt was: “Go”."));
        story.types("y").is("> y\nNothing waits for you.");
    }
}

// covers: C25
#[test]
fn a_request_that_goes_while_an_answer_is_typed_takes_nothing_with_it() {
    let mut story = Story::new();
    story.asked(consent(1, "Go")).types("y").heard();
    story.event("progress.updated", "Still tidying.").settled(consent(1, "Go"), Outcome::Cancelled);
    story.types("yes").is("
        Request 1 was cancelled.
        It was: “Go”.
        No answer is needed any more. What you typed was not sent.
        “Still tidying.”
        > yes
        Nothing waits for you.
    ");
}

// covers: D32, C25
#[test]
fn more_time_keeps_the_question_in_focus_without_asking_anew() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).asked(mild(2, "Stay")).heard();
    story.types("t").settled(mild(1, "Go"), Outcome::Superseded);
    let mut longer = mild(3, "Go");
    (longer.continues, longer.timeout_seconds) = (Some(1), 600);
    longer.deadline_ms += 600_000;
    story.asked(longer).is("
        > t
        More time was asked for, for request 1.
        [more time for 1: 600]
        Request 1 gets more time.
        More time was given: request 1 is now request 3.
        Allow this? “Go”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Request 3 waits for you, for 10 minutes.
        Press y for yes, n for no, d for details, t for more time.
    ");
    assert_eq!(story.types("y").replies(), reply(3, &Answer::Accept));
}

#[test]
fn that_time_runs_out_is_said_once_with_a_way_to_get_more() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).heard();
    story.after(200).is("");
    story.after(70).after(10).is("Request 1 waits 29 seconds more. Press t for more time.");
}

#[test]
fn an_agent_is_stopped_only_after_it_was_asked_back() {
    let mut story = Story::new();
    story.event("session.started", "Tidying the desk.").heard();
    story.types("x").types("y").is("
        > x
        Stop “Tidy”? Press x again to stop it; any other key goes back.
        > y
        Nothing was stopped.
    ");
    story.types("x").types("x").is("
        > x
        Stop “Tidy”? Press x again to stop it; any other key goes back.
        > x
        “Tidy” was told to stop.
        [stop sess_1]
    ");
    story.event_of("Cook", "sess_2", "session.started", "Cooking.").heard();
    story.types("x").types("2").types("x").is("
        > x
        Which agent shall be stopped? Press its number; any other key goes back.
        1: “Cook”. “Cook”: Started: “Cooking.”
        2: “Tidy”. Started: “Tidying the desk.”
        > 2
        Stop “Tidy”? Press x again to stop it; any other key goes back.
        > x
        “Tidy” was told to stop.
        [stop sess_1]
    ");
}

#[test]
fn what_agents_do_now_is_told_when_asked() {
    let mut story = Story::new();
    story.types("w").is("> w\nNo agent is at work.");
    story.event("session.started", "Tidying the desk.").asked(mild(1, "Go")).heard();
    story.types("w").is("
        > w
        Started: “Tidying the desk.”
        It waits for your answer to request 1.
    ");
    story.event("session.completed", "Tidy.").heard();
    story.types("w").is("> w\nNo agent is at work.");
}

// covers: T19
#[test]
fn an_answer_is_read_as_it_comes_and_can_be_silenced_and_read_later() {
    let mut story = Story::new();
    story.text("One. ", false).types("s").text("Two. ", false).text("Three.", true).types("p").is(
        "
        “One.”
        > s
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
    story.happens(Happening::Silence { agent: agent("Tidy"), why: Silence::TooMuch, count: 3 });
    story.is("");
    story.event("session.errored", "The desk broke.").is("
        [bell: error]
        Failed: “The desk broke.” Trying again may help.
    ");
    let asked = story.asked(mild(1, "Go")).heard();
    assert!(asked.starts_with("[bell: blocked]\nAllow this?"), "{asked}");
    assert!(story.types("p").heard().contains("A long answer."));
}

#[test]
fn leaving_is_asked_back_while_something_waits() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).heard();
    story.types("q").types("y").is("
        > q
        1 request waits. If nobody else listens, it will get no answer from you. Press q again to leave; any other key stays.
        > y
        Still listening.
    ");
    story.types("q").heard();
    story.types("q").is("> q\nGoodbye.\n[ends]");
    Story::new().types("q").is("> q\nGoodbye.\n[ends]");
}

#[test]
fn once_ends_with_the_first_request_or_session() {
    let once = |settings: &mut super::Settings| settings.once = true;
    let mut story = Story::with(once);
    story.asked(mild(1, "Go")).types("y").settled(mild(1, "Go"), Outcome::Accepted);
    assert!(story.heard().ends_with("[ends]\n"));
    let mut story = Story::with(once);
    story.asked(mild(1, "Go")).settled(mild(1, "Go"), Outcome::TimedOut);
    assert!(story.heard().ends_with("[ends with 1]\n"));
    let mut story = Story::with(once);
    story.event("session.started", "Tidying.").event("session.completed", "Tidy.");
    assert!(story.heard().ends_with("[ends]\n"));
    let mut story = Story::with(once);
    story.event("session.errored", "Broken.");
    assert!(story.heard().ends_with("[ends with 1]\n"));
}

// covers: T21
#[test]
fn the_users_own_rule_answers_and_says_so() {
    let rules = "[[rule]]\nagent = \"tidy\"\naction = \"Open *\"\nanswer = \"accept\"\n";
    let standing = super::Standing::parse(rules).unwrap();
    let mut story = Story::with(|settings| settings.standing = Some(standing));
    story
        .asked(mild(1, "Open the window"))
        .settled(mild(1, "Open the window"), Outcome::Accepted)
        .is("
        Allow this? “Open the window”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Request 1 waits for you, for 5 minutes.
        Your own rule in line 1 says yes.
        Request 1: yes, sent.
        [reply 1: Accept]
        Request 1: accepted.
    ");
    assert_eq!(story.asked(consent(2, "Open the vault")).replies(), Vec::<String>::new());
    assert_eq!(story.types("y").types("yes").replies(), reply(2, &Answer::Accept));
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
fn lines_are_typed_where_keys_cannot_be_and_own_words_are_asked_back_for() {
    let lines = |settings: &mut super::Settings| settings.lines = true;
    let mut story = Story::with(lines);
    story.asked(question(1, &[Freetext], &[])).heard();
    story.types("Lagos").types("yes").is("
        > Lagos
        Send this as your answer to request 1: Lagos? Type yes or no.
        > yes
        Request 1: your answer was sent.
        [reply 1: Text(\"Lagos\")]
    ");
    story.asked(question(2, &[Freetext], &[])).heard();
    story.types("Lagos").types("no").heard();
    assert_eq!(story.types("answer list").replies(), reply(2, &Answer::Text("list".into())));
    story.asked(mild(3, "Go")).asked(mild(4, "Stay")).heard();
    assert_eq!(story.types("yes please").replies(), Vec::<String>::new());
    assert_eq!(story.types("no 4").replies(), reply(4, &Answer::Reject));
    assert_eq!(story.types("yes 9").replies(), Vec::<String>::new());
    assert_eq!(story.types("Yes").replies(), reply(3, &Answer::Accept));
    story.asked(consent(5, "Delete")).heard();
    story.types("yes").types("yes").is("
        > yes
        This cannot be undone, and the risk is high. To be sure: type yes and press Enter. An empty line goes back.
        > yes
        Request 5: yes, sent.
        [reply 5: Accept]
    ");
    story.asked(question(6, &[Numeric], &[])).heard();
    assert_eq!(story.types("12").replies(), reply(6, &Answer::Number(12.0)));
    story.types("nonsense").is("> nonsense\nThat is no command. Type help for help.");
}

#[test]
fn other_languages_have_words_and_keys_of_their_own() {
    let mut arabic = Story::in_language("ar", |_| {});
    arabic.asked(mild(1, "Go")).heard();
    assert_eq!(arabic.types("ن").replies(), reply(1, &Answer::Accept));
    let mut chinese = Story::in_language("zh-CN", |settings| settings.lines = true);
    chinese.asked(consent(1, "Go")).heard();
    assert_eq!(chinese.types("同意").types("同意").replies(), reply(1, &Answer::Accept));
    for language in ["en", "ar", "zh"] {
        let help = Story::in_language(language, |_| {}).types("?").heard();
        assert_eq!(help.lines().count(), 16, "{help}");
        assert!(!help.contains("terminal."), "{help}");
    }
}

#[test]
fn the_hub_that_goes_and_comes_back_is_told_and_what_waits_still_does() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).heard();
    let lost = Happening::Lost { hub: "home".into(), why: "it does not answer".into() };
    let again = Happening::Connected { hub: "home".into(), again: true, may_reply: true };
    let heard = story.happens(lost).happens(again).heard();
    assert_eq!(heard.lines().count(), 4, "{heard}");
    assert!(heard.contains("Start one with") && heard.contains("Press ? for help."), "{heard}");
    assert_eq!(story.types("y").replies(), reply(1, &Answer::Accept));
}

#[test]
fn a_hostile_flood_leaves_the_conversation_bounded_and_requests_first() {
    let mut story = Story::new();
    for number in 0..1_000 {
        story.event_of("Mob", &format!("sess_{number}"), "session.started", &"x".repeat(2000));
        story.happens(Happening::Text {
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
