//! Answers: how they are given, and how they are not.

use aaep_subscriber::inbox::{Answer, InboxError};
use aaep_subscriber::words::Words;
use aaep_subscriber::{Notification, RequestOutcome};
use aaep_types::ResponseKind::{Freetext, MultipleChoice, Numeric, YesNo};

use crate::listen::talk::SecondStep;
use crate::listen::talk::stories::{Story, consent, mild, question, reply};

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

// covers: T21, C9
#[test]
fn a_no_can_say_why_and_a_yes_only_that_it_is_for_this_session() {
    let lines = || Story::with(|settings| settings.lines = true);
    let because = Answer::RejectBecause("use the branch".into());
    let no = lines().asked(consent(1, "Go")).types("no use the branch").replies();
    assert_eq!(no, reply(1, &because));
    let session = Answer::AcceptBecause("for this session".into());
    let yes = lines().asked(mild(1, "Go")).types("yes for this session").replies();
    assert_eq!(yes, reply(1, &session));
    // The second step stays, and a yes that was begun anew says nothing.
    let mut story = lines();
    story.asked(consent(1, "Go")).types("yes for this session");
    assert_eq!(story.replies(), Vec::<String>::new());
    assert_eq!(story.types("yes").replies(), reply(1, &session));
    let mut story = lines();
    story.asked(consent(1, "Go")).types("yes for this session").types("").types("yes");
    assert_eq!(story.types("yes").replies(), reply(1, &Answer::Accept));
    let mut story = lines();
    story.asked(consent(1, "Go")).types("yes for ever");
    assert_eq!(story.replies(), Vec::<String>::new());
    // Speech recognition writes down what was said to somebody else.
    let mut story = Story::with(|settings| {
        settings.lines = true;
        settings.dictation = true;
    });
    assert_eq!(story.asked(mild(1, "Go")).types("no not now dear").replies(), Vec::<String>::new());
}

// covers: T21
#[test]
fn the_second_step_can_be_wanted_for_everything_or_for_nothing() {
    let always =
        |settings: &mut crate::listen::talk::Settings| settings.second_step = SecondStep::Always;
    let never =
        |settings: &mut crate::listen::talk::Settings| settings.second_step = SecondStep::Never;
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
    story.happens(Notification::Asked(mild(1, "Go").into())).heard();
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
    story.settled(mild(1, "Open it"), RequestOutcome::TimedOut).types_at_once("y").is("
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

// covers: T21
#[test]
fn the_users_own_rule_answers_and_says_so() {
    let rules = "[[rule]]\nagent = \"tidy\"\nanswer = \"accept\"\n";
    let standing = crate::listen::standing::StandingRules::parse(rules).unwrap();
    let mut story = Story::with(|settings| settings.standing = Some(standing));
    story
        .asked(mild(1, "Open the window"))
        .settled(mild(1, "Open the window"), RequestOutcome::Accepted)
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

#[test]
fn lines_are_typed_where_keys_cannot_be_and_own_words_are_asked_back_for() {
    let lines = |settings: &mut crate::listen::talk::Settings| settings.lines = true;
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
    for (language, _) in Words::languages() {
        let help = Story::in_language(language, |_| {}).types("?").heard();
        // And a line on who wrote the words.
        let lines = 18 + usize::from(Words::new(&[language]).by_machine());
        assert_eq!(help.lines().count(), lines, "{help}");
        assert!(!help.contains("terminal."), "{help}");
    }
}

#[test]
fn numbers_are_said_and_felt_in_the_digits_of_the_country_and_taken_in_them() {
    let mut story = Story::in_language("ar-EG", |settings| settings.lines = true);
    let heard = story.asked(mild(1, "Go")).asked(mild(12, "Stay")).heard();
    assert!(heard.contains("الطلب ١٢") && heard.contains("٥ دقائق"), "{heard}");
    assert!(!heard.contains(|sign: char| sign.is_ascii_digit()), "{heard}");
    story.asked(question(13, &[MultipleChoice], &["Bus", "Train"])).heard();
    let labels: Vec<_> =
        story.talk.on_display(13).unwrap().answers.into_iter().map(|label| label.text).collect();
    assert_eq!(labels, ["١ Bus", "٢ Train"]);
    assert_eq!(story.types("لا ١٢").replies(), reply(12, &Answer::Reject));
    let mut west = Story::in_language("ar-MA", |_| {});
    let heard = west.asked(mild(12, "Stay")).heard();
    assert!(heard.contains("الطلب 12"), "{heard}");
}

#[test]
fn an_answer_that_is_refused_says_why_and_the_request_is_as_it_was() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).types("y").heard();
    story.refused(1, &InboxError::MayNotReply).is("
        Nothing was sent: request 1 cannot be answered from here.
    ");
    assert_eq!(story.types("n").replies(), reply(1, &Answer::Reject));
    story.refused(1, &InboxError::NotWaiting).is("Nothing was sent: request 1 no longer waits.");
    story.types("l").is("> l\nNothing waits for you.");
    story.asked(mild(2, "Stay")).types("y").heard();
    let again = story.refused(2, &InboxError::NotConnected).heard();
    assert!(again.starts_with("Your answer to request 2 could not be sent."), "{again}");
    assert!(again.contains("Request 2 still waits."), "{again}");
}

// covers: T21, C28
#[test]
fn a_program_names_its_request_and_makes_a_grave_yes_certain() {
    let mut story = Story::with(|settings| settings.lines = true);
    story.asked(consent(1, "Delete")).asked(mild(2, "Open")).heard();
    assert_eq!(story.named(1, Some(Answer::Accept), false).replies(), Vec::<String>::new());
    assert_eq!(story.named(1, Some(Answer::YesNo(true)), true).replies(), Vec::<String>::new());
    assert_eq!(story.named(1, None, true).replies(), Vec::<String>::new());
    assert_eq!(story.named(7, Some(Answer::Accept), true).replies(), Vec::<String>::new());
    assert_eq!(story.named(2, Some(Answer::Accept), false).replies(), reply(2, &Answer::Accept));
    assert_eq!(story.named(1, Some(Answer::Accept), true).replies(), reply(1, &Answer::Accept));
    story
        .named(1, Some(Answer::Reject), true)
        .is("Nothing was sent: you answered request 1 before.");
}
