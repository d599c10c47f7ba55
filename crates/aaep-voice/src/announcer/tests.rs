use super::*;
use crate::utterance::Part;

fn said(class: Class, text: &str) -> Utterance {
    let parts = text.split_inclusive(". ").map(|text| Part {
        text: text.trim().into(),
        language: None,
        from_agent: false,
    });
    let mut utterance = Utterance::new(class).of_session(&"sess_1".into());
    utterance.parts = parts.collect();
    utterance
}

fn question(number: u32) -> Utterance {
    said(Class::Request, &format!("Question {number}. It cannot be undone.")).of_request(number)
}

/// What is said now, with its id.
#[track_caller]
fn says(announcer: &mut Announcer, expected: &str) -> Id {
    match announcer.poll(0) {
        Some(Action::Say { id, utterance }) => {
            assert_eq!(utterance.text(), expected);
            id
        }
        other => panic!("{expected:?} expected, not {other:?}"),
    }
}

#[track_caller]
fn whole(announcer: &mut Announcer, expected: &str) {
    let id = says(announcer, expected);
    announcer.ended(id, End::Spoken, 0);
}

#[test]
fn a_request_interrupts_chatter_which_goes_on_afterwards_where_it_was_cut() {
    let mut announcer = Announcer::default();
    announcer.push(said(Class::Text, "One. Two. Three."));
    let id = says(&mut announcer, "One. Two. Three.");
    announcer.reached(id, 1, 3);
    announcer.asked(1);
    announcer.push(question(1));
    assert_eq!(announcer.poll(0), Some(Action::Stop));
    whole(&mut announcer, "Question 1. It cannot be undone.");
    assert_eq!(announcer.poll(0), None, "chatter waits while a request is open");
    announcer.settled(1);
    let id = says(&mut announcer, "Two. Three.");
    announcer.reached(id, 1, 2);
    announcer.push(said(Class::Outcome, "Later."));
    assert_eq!(announcer.poll(0), Some(Action::Stop));
    whole(&mut announcer, "Later.");
    whole(&mut announcer, "Three.");
}

#[test]
fn a_request_never_interrupts_another_request_and_done_never_interrupts_a_question() {
    let mut announcer = Announcer::default();
    announcer.asked(1);
    announcer.push(question(1));
    let first = says(&mut announcer, "Question 1. It cannot be undone.");
    announcer.asked(2);
    announcer.push(question(2));
    announcer.push(said(Class::End, "Done."));
    announcer.push(said(Class::Error, "Failed."));
    announcer.push(said(Class::Outcome, "Request 7: accepted."));
    assert_eq!(announcer.poll(0), None);
    announcer.ended(first, End::Spoken, 0);
    whole(&mut announcer, "Question 2. It cannot be undone.");
    whole(&mut announcer, "Failed.");
    whole(&mut announcer, "Request 7: accepted.");
    whole(&mut announcer, "Done.");
}

#[test]
fn what_became_of_one_request_is_said_before_the_next_one_is_read_again() {
    let mut announcer = Announcer::default();
    for number in [1, 2] {
        announcer.asked(number);
        announcer.push(question(number));
        whole(&mut announcer, &format!("Question {number}. It cannot be undone."));
    }
    // Answered with a key; the next one is read again, and then comes what became of the first.
    announcer.settled(1);
    announcer.push(said(Class::Feedback, "Sent."));
    let id = says(&mut announcer, "Sent.");
    announcer.push(question(2));
    assert_eq!(announcer.poll(0), None, "an answer to a key is heard");
    announcer.push(said(Class::Outcome, "Rejected."));
    announcer.ended(id, End::Spoken, 0);
    whole(&mut announcer, "Rejected.");
    // One that was not heard yet still comes first.
    announcer.asked(3);
    announcer.push(question(3));
    whole(&mut announcer, "Question 3. It cannot be undone.");
    whole(&mut announcer, "Question 2. It cannot be undone.");
}

#[test]
fn of_progress_and_states_only_the_latest_is_said_and_nothing_twice() {
    let mut announcer = Announcer::default();
    announcer.asked(1);
    for percent in [10, 20, 30, 30] {
        announcer.push(said(Class::Progress, &format!("{percent} percent.")));
        announcer.push(said(Class::State, "Thinking."));
    }
    announcer.settled(1);
    whole(&mut announcer, "Thinking.");
    whole(&mut announcer, "30 percent.");
    announcer.push(said(Class::Progress, "30 percent."));
    assert_eq!(announcer.poll(0), None);
    announcer.push(said(Class::Progress, "40 percent."));
    announcer.push(said(Class::End, "Done."));
    whole(&mut announcer, "Done.");
    assert_eq!(announcer.poll(0), None, "progress of what is over");
}

#[test]
fn a_result_does_not_overtake_the_text_that_leads_to_it() {
    let mut announcer = Announcer::default();
    announcer.asked(1);
    announcer.push(said(Class::Text, "The answer."));
    announcer.push(said(Class::End, "Done."));
    announcer.push(said(Class::End, "Another is done.").of_session(&"sess_2".into()));
    whole(&mut announcer, "Another is done.");
    assert_eq!(announcer.poll(0), None);
    announcer.settled(1);
    whole(&mut announcer, "The answer.");
    whole(&mut announcer, "Done.");
}

#[test]
fn a_question_that_is_answered_is_not_read_on() {
    let mut announcer = Announcer::default();
    announcer.asked(1);
    announcer.asked(2);
    announcer.push(question(1));
    announcer.push(question(2));
    says(&mut announcer, "Question 1. It cannot be undone.");
    announcer.settled(1);
    announcer.settled(2);
    announcer.push(said(Class::Feedback, "Request 1: yes, sent."));
    assert_eq!(announcer.poll(0), Some(Action::Stop));
    whole(&mut announcer, "Request 1: yes, sent.");
    assert_eq!(announcer.poll(0), None);
}

#[test]
fn what_somebody_else_cut_is_said_again_a_few_times() {
    let mut announcer = Announcer::default();
    announcer.asked(1);
    announcer.push(question(1));
    let mut now = 0;
    for _ in 0..=MAX_RETRIES {
        let Some(Action::Say { id, utterance }) = announcer.poll(now) else { panic!("silence") };
        assert_eq!(utterance.text(), "Question 1. It cannot be undone.");
        announcer.reached(id, 1, 2);
        announcer.ended(id, End::Cut, now);
        assert_eq!(announcer.poll(now), None, "not at once");
        now = announcer.next_deadline().unwrap_or(now);
    }
    assert!(announcer.is_empty());
}

#[test]
fn a_voice_that_is_lost_and_comes_back_loses_nothing() {
    let mut announcer = Announcer::default();
    announcer.asked(1);
    announcer.push(question(1));
    announcer.push(said(Class::Text, "The answer."));
    let id = says(&mut announcer, "Question 1. It cannot be undone.");
    announcer.reached(id, 1, 2);
    announcer.lost();
    assert_eq!(announcer.poll(0), None);
    announcer.ended(id, End::Cut, 0);
    announcer.available();
    whole(&mut announcer, "Question 1. It cannot be undone.");
    announcer.settled(1);
    whole(&mut announcer, "The answer.");
}

#[test]
fn a_person_skips_pauses_and_silences() {
    let mut announcer = Announcer::default();
    announcer.push(said(Class::Text, "One. Two. Three."));
    says(&mut announcer, "One. Two. Three.");
    announcer.skip();
    assert_eq!(announcer.poll(0), Some(Action::Stop));
    says(&mut announcer, "Two. Three.");
    assert!(announcer.pause());
    assert_eq!(announcer.poll(0), Some(Action::Stop));
    assert_eq!(announcer.poll(0), None);
    announcer.push(question(4));
    whole(&mut announcer, "Question 4. It cannot be undone.");
    assert!(!announcer.pause());
    says(&mut announcer, "Two. Three.");
    announcer.push(said(Class::Text, "Four."));
    announcer.silence();
    assert_eq!(announcer.poll(0), Some(Action::Stop));
    assert_eq!(announcer.poll(0), None);
}

#[test]
fn lines_of_one_question_are_said_in_one_go() {
    let mut announcer = Announcer::default();
    announcer.push(question(1));
    announcer.push(said(Class::Request, "Press y for yes.").of_request(1));
    announcer.push(question(2));
    whole(&mut announcer, "Question 1. It cannot be undone. Press y for yes.");
    whole(&mut announcer, "Question 2. It cannot be undone.");
}

#[test]
fn a_voice_that_never_reports_the_end_does_not_hold_everything_up() {
    let mut announcer = Announcer::default();
    announcer.push(said(Class::Text, "One."));
    announcer.push(said(Class::Text, "Two."));
    says(&mut announcer, "One.");
    let over = announcer.next_deadline().unwrap();
    assert!(matches!(announcer.poll(over), Some(Action::Say { .. })));
}

#[test]
fn what_waits_is_bounded_and_what_was_left_out_is_counted() {
    let mut announcer = Announcer::default();
    announcer.asked(1);
    announcer.push(question(1));
    for number in 0..2 * MAX_QUEUED {
        announcer.push(said(Class::Text, &format!("Sentence {number}.")));
    }
    assert_eq!(announcer.len(), MAX_QUEUED);
    assert_eq!(announcer.take_left_out(), 1 + MAX_QUEUED as u64);
    whole(&mut announcer, "Question 1. It cannot be undone.");
}

#[test]
fn what_is_tried_again_later_leaves_no_deadline_in_the_past() {
    let mut announcer = Announcer::default();
    announcer.push(said(Class::Text, "One. Two."));
    let id = says(&mut announcer, "One. Two.");
    announcer.ended(id, End::Cut, 0);
    announcer.asked(1);
    announcer.push(question(1));
    whole(&mut announcer, "Question 1. It cannot be undone.");
    // The text waits for the answer, and so nobody has to come back for it.
    let now = 10 * RETRY_AFTER_MS;
    assert_eq!(announcer.poll(now), None);
    assert!(announcer.next_deadline().is_none_or(|at| at > now), "{:?}", announcer.next_deadline());
    announcer.settled(1);
    assert!(matches!(announcer.poll(now), Some(Action::Say { .. })));
}

#[test]
fn a_warning_of_a_request_is_not_said_once_that_is_settled() {
    let mut announcer = Announcer::default();
    announcer.asked(1);
    announcer.push(said(Class::Notice, "Request 1 waits for 20 seconds only.").of_request(1));
    announcer.push(said(Class::Notice, "Request 2 waits too.").of_request(2));
    announcer.settled(1);
    whole(&mut announcer, "Request 2 waits too.");
    assert_eq!(announcer.poll(0), None);
}
