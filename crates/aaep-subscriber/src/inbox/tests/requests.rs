//! Requests: asked once, answered once, settled as what they are.

use super::*;

// covers: C25, T21, S10
#[test]
fn a_request_is_asked_once_however_often_it_comes() {
    let mut world = World::new();
    let id = world.asks(0);
    assert_eq!(world.told(), ["asked 1"]);
    let again = event(&id, 1, "awaiting.confirmation", 0, START, &confirmation("rpl_1"));
    world.comes(&again);
    // The same token under another id is the same request.
    world.comes(&event("evt_x", 1, "awaiting.confirmation", 1, START, &confirmation("rpl_1")));
    assert!(world.told().is_empty());
    assert_eq!(world.inbox.open_requests().len(), 1);
    world.resolves(1, &id, "accepted");
    world.comes(&again);
    assert_eq!(world.told(), ["settled 1 AcceptedElsewhere"]);
}

// covers: C25, D30
#[test]
fn what_became_of_a_request_is_said_as_what_it_is() {
    use Answer::{Accept, Reject};
    let cases = [
        ("accepted", Some(Accept), "Accepted"),
        ("accepted", Some(Reject), "AcceptedElsewhere"),
        ("accepted", None, "AcceptedElsewhere"),
        ("rejected", Some(Reject), "Rejected"),
        ("rejected", None, "RejectedElsewhere"),
        ("timed_out", None, "TimedOut"),
        ("cancelled", Some(Accept), "Cancelled"),
        (r#"cancelled","reason":"wrong_clock"#, Some(Reject), "WrongClock"),
        (r#"accepted","reason":"wrong_clock"#, None, "AcceptedElsewhere"),
        ("superseded", None, "Superseded"),
        ("something new", None, "Gone"),
    ];
    for (word, answer, outcome) in cases {
        let mut world = World::new();
        let id = world.asks(0);
        world.hears();
        if let Some(answer) = answer.clone() {
            world.inbox.answer(1.into(), answer, world.now).unwrap();
            let ticket = world.sends()[0].ticket;
            world.inbox.handle(InboxInput::Sent(ticket), world.now);
        }
        world.resolves(1, &id, word);
        assert_eq!(world.told(), [format!("settled 1 {outcome}")], "{word} {answer:?}");
        assert!(world.inbox.open_requests().is_empty());
    }
}

// covers: C25, D30
#[test]
fn an_answer_that_never_left_was_not_the_one_that_counted() {
    let mut world = World::new();
    let id = world.asks(0);
    world.hears();
    world.lost();
    world.inbox.answer(1.into(), Answer::Accept, world.now).unwrap();
    assert!(world.sends().is_empty());
    world.inbox.handle(InboxInput::Attached { connection: world.hub }, world.now);
    world.resolves(1, &id, "accepted");
    let told = world.told();
    assert!(told.contains(&"settled 1 AcceptedElsewhere".into()), "{told:?}");
}

// covers: C28, C25
#[test]
fn clarifications_are_treated_with_the_same_care() {
    let mut world = World::new();
    let rest = r#","urgency":"critical","question":"Which?","reply_token":"rpl_q","timeout_seconds":60,"accepted_response_kinds":["multiple_choice"],"choices":[{"value":"a","label":"A"},{"value":"b","label":"B"}]"#;
    let id = world.event("awaiting.clarification", 0, rest);
    assert_eq!(world.told(), ["asked 1"]);
    let now = world.now;
    assert_eq!(
        world.inbox.answer(1.into(), Answer::Accept, now).unwrap_err().to_string(),
        "this is not the kind of answer that is asked for"
    );
    world.inbox.answer(1.into(), Answer::Choice("b".into()), now).unwrap();
    let sent = world.sends();
    let Ok(Message::ClarificationReply(reply)) = Message::parse(sent[0].json.as_bytes()) else {
        panic!("{}", sent[0].json)
    };
    assert_eq!(reply.reply_token.as_str(), "rpl_q");
    world.resolves(1, &id, "accepted");
    assert_eq!(world.told(), ["settled 1 Answered"]);
}

// covers: C28
#[test]
fn a_second_answer_is_refused_here() {
    let mut world = World::new();
    world.asks(0);
    let now = world.now;
    world.inbox.answer(1.into(), Answer::Reject, now).unwrap();
    assert_eq!(world.inbox.answer(1.into(), Answer::Accept, now), Err(InboxError::AlreadyAnswered));
    assert_eq!(world.inbox.answer(2.into(), Answer::Accept, now), Err(InboxError::NotWaiting));
    assert_eq!(world.sends().len(), 1);
}

// covers: D30
#[test]
fn without_our_extension_a_prompt_is_dropped_only_if_it_was_the_only_one() {
    let mut world = World::with(PLAIN, Bounds::default());
    world.asks(0);
    world.asks(1);
    world.event("state.changed", 2, &state("awaiting_input", "calling_tool"));
    assert_eq!(world.told(), ["asked 1", "asked 2", "state.changed"]);
    // At its deadline each is over.
    world.passes(60_000);
    assert_eq!(world.told(), ["settled 1 TimedOut", "settled 2 TimedOut"]);
    world.asks(3);
    assert_eq!(world.told(), ["asked 3"]);
    world.event("state.changed", 4, &state("awaiting_input", "thinking"));
    assert_eq!(world.told(), ["settled 3 Gone", "state.changed"]);
}

// covers: D30
#[test]
fn without_our_extension_the_users_own_answer_explains_what_follows() {
    let cases = [
        (Answer::Accept, "calling_tool", "Accepted"),
        (Answer::Reject, "thinking", "Rejected"),
        (Answer::Reject, "calling_tool", "AcceptedElsewhere"),
        (Answer::Accept, "thinking", "Gone"),
    ];
    for (answer, to, outcome) in cases {
        let mut world = World::with(PLAIN, Bounds::default());
        world.asks(0);
        world.hears();
        world.inbox.answer(1.into(), answer, world.now).unwrap();
        let ticket = world.sends()[0].ticket;
        world.inbox.handle(InboxInput::Sent(ticket), world.now);
        world.event("state.changed", 1, &state("awaiting_input", to));
        assert_eq!(world.told()[0], format!("settled 1 {outcome}"));
    }
}

// covers: C25
#[test]
fn the_end_of_a_session_cancels_what_it_asked() {
    for end in ["completed", "cancelled"] {
        let mut world = World::new();
        world.asks(0);
        world.hears();
        let rest = r#","summary_normal":"Over.","cancelled_by":"user""#;
        world.event(&format!("session.{end}"), 1, rest);
        assert_eq!(world.told(), ["settled 1 Cancelled".into(), format!("session.{end}")]);
        assert!(world.inbox.doing().is_empty());
    }
}

// covers: C25, D30
#[test]
fn where_nobody_tells_outcomes_an_answered_request_is_not_said_to_be_cancelled() {
    for (answers, outcome) in [(true, "Gone"), (false, "Cancelled")] {
        let mut world = World::with(PLAIN, Bounds::default());
        world.asks(0);
        world.hears();
        if answers {
            world.inbox.answer(1.into(), Answer::Accept, world.now).unwrap();
            world.sends();
        }
        world.event("session.completed", 1, r#","summary_normal":"Over.""#);
        assert_eq!(world.told(), [format!("settled 1 {outcome}"), "session.completed".into()]);
    }
}

// covers: C25
#[test]
fn who_has_not_heard_a_question_need_not_hear_it_any_more() {
    let mut world = World::new();
    let id = world.asks(0);
    world.resolves(1, &id, "cancelled");
    assert_eq!(world.told(), ["settled 1 Cancelled unheard"]);
}

// covers: D32
#[test]
fn more_time_is_the_same_question_and_not_a_new_one() {
    let mut world = World::new();
    let id = world.asks(0);
    let now = world.now;
    world.inbox.more_time(1.into(), Duration::from_millis(599_500), now).unwrap();
    let sent = world.sends();
    assert!(sent[0].json.contains("600"), "part of a second counts as a whole one");
    assert!(matches!(Message::parse(sent[0].json.as_bytes()), Ok(Message::MoreTime(_))));
    world.resolves(1, &id, "superseded");
    let rest = confirmation("rpl_new").replace("60", "600")
        + &format!(r#","extensions":{{"timing":{{"supersedes":"{id}"}}}}"#);
    world.event("awaiting.confirmation", 2, &rest);
    let told = world.hears();
    let short: Vec<_> = told.iter().map(short).collect();
    assert_eq!(short, ["settled 1 Superseded unheard", "asked 2"]);
    let Notification::Asked(request) = &told[1] else { panic!() };
    assert_eq!((request.continues, request.timeout_seconds), (Some(1), 600));
    assert_eq!(request.deadline_ms, world.now + 600_000);
}

// covers: I31, S10
#[test]
fn another_action_never_takes_the_place_of_a_question() {
    let account = |euros: u32, digest: &str| {
        format!(
            r#""action":{{"tool":"transfer","arguments":"euros: {euros}","digest":"{digest}","described_by":"agent"}}"#
        )
    };
    let asks = |token: &str, extensions: String| {
        format!("{},\"extensions\":{{{extensions}}}", confirmation(token))
    };
    let supersedes = |id: &str| format!(r#","timing":{{"supersedes":"{id}"}}"#);
    // The same words over another account, other words over the same account: new questions.
    let cases = [
        (account(9001, "d2"), "Delete"),
        (account(5, "d2"), "Delete"),
        (account(5, "d1"), "Save a note"),
    ];
    for (other, words) in cases {
        let mut world = World::new();
        world.comes(&event(
            "evt_1",
            1,
            "awaiting.confirmation",
            0,
            START,
            &asks("rpl_1", account(5, "d1")),
        ));
        world.hears();
        let swapped = asks("rpl_2", other + &supersedes("evt_1"))
            .replace("\"Delete\"", &format!("\"{words}\""));
        world.comes(&event("evt_2", 1, "awaiting.confirmation", 1, START, &swapped));
        let heard = world.hears();
        assert_eq!(heard.iter().map(short).collect::<Vec<_>>(), ["settled 1 Gone", "asked 2"]);
        let Some(Notification::Asked(request)) = heard.last() else { panic!() };
        assert_eq!(request.continues, None, "it is another question");
    }
    // The same in all: more time.
    let mut world = World::new();
    world.comes(&event(
        "evt_1",
        1,
        "awaiting.confirmation",
        0,
        START,
        &asks("rpl_1", account(5, "d1")),
    ));
    world.resolves(1, "evt_1", "superseded");
    world.hears();
    let more = asks("rpl_2", account(5, "d1") + &supersedes("evt_1"));
    world.comes(&event("evt_2", 1, "awaiting.confirmation", 2, START, &more));
    let heard = world.hears();
    let Some(Notification::Asked(request)) = heard.last() else { panic!("{heard:?}") };
    assert_eq!(request.continues, Some(1));
    // Another session supersedes nothing.
    let stolen = asks("rpl_3", account(5, "d1") + &supersedes("evt_2"));
    world.comes(&event("evt_3", 2, "awaiting.confirmation", 0, START, &stolen));
    let heard = world.hears();
    assert_eq!(heard.iter().map(short).collect::<Vec<_>>(), ["asked 3"]);
    assert_eq!(world.inbox.open_requests().len(), 2);
}

// covers: I31, S10, C25
#[test]
fn the_same_event_with_other_words_changes_nothing() {
    let mut world = World::new();
    let id = world.asks(0);
    world.hears();
    let other = confirmation("rpl_1").replace("\"Delete\"", "\"Save a note\"");
    world.comes(&event(&id, 1, "awaiting.confirmation", 0, START, &other));
    world.comes(&event(
        &id,
        1,
        "awaiting.confirmation",
        0,
        START,
        &other.replace("rpl_1", "rpl_2"),
    ));
    assert!(world.told().is_empty());
    let [request] = &world.inbox.open_requests()[..] else { panic!() };
    assert!(matches!(&request.asks, Asks::Consent { action, .. } if action == "Delete"));
    assert_eq!(request.reply_token.as_str(), "rpl_1");
}

// covers: D32
#[test]
fn a_question_that_goes_on_settles_the_old_one_by_itself() {
    let mut world = World::with(PLAIN, Bounds::default());
    let id = world.asks(0);
    world.hears();
    let rest =
        confirmation("rpl_new") + &format!(r#","extensions":{{"timing":{{"supersedes":"{id}"}}}}"#);
    world.event("awaiting.confirmation", 1, &rest);
    assert_eq!(world.told(), ["settled 1 Superseded", "asked 2"]);
}

// covers: C28
#[test]
fn what_a_hub_does_not_grant_is_not_sent() {
    let mut world = World::with("{}", Bounds::default());
    world.asks(0);
    let now = world.now;
    assert_eq!(world.inbox.answer(1.into(), Answer::Accept, now), Err(InboxError::MayNotReply));
    assert_eq!(
        world.inbox.more_time(1.into(), Duration::from_secs(60), now),
        Err(InboxError::NotOffered)
    );
    assert_eq!(world.inbox.stop("sess_1", now), Err(InboxError::NotOffered));
    assert_eq!(world.inbox.stop("sess_2", now), Err(InboxError::NotWaiting));
    assert!(world.sends().is_empty());
}

#[test]
fn an_agent_can_be_stopped() {
    let mut world = World::new();
    world.event("session.started", 0, r#","summary_normal":"Hello.""#);
    let now = world.now;
    world.inbox.stop("sess_1", now).unwrap();
    let sent = world.sends();
    assert!(matches!(Message::parse(sent[0].json.as_bytes()), Ok(Message::StopSession(_))));
    world.lost();
    assert_eq!(world.inbox.stop("sess_1", now), Err(InboxError::NotConnected));
}

// covers: C28, C7
#[test]
fn an_answer_is_kept_while_the_hub_is_away_and_sent_with_the_new_subscription() {
    let mut world = World::new();
    let id = world.asks(0);
    world.hears();
    world.lost();
    world.inbox.answer(1.into(), Answer::Accept, world.now).unwrap();
    assert!(world.sends().is_empty());
    world.passes(5000);
    world.begins(EVERYTHING, "sub_2");
    world.passes(0);
    let sent = world.sends();
    let Ok(Message::ConfirmationReply(reply)) = Message::parse(sent[0].json.as_bytes()) else {
        panic!("{}", sent[0].json)
    };
    assert_eq!(reply.subscription_id.as_str(), "sub_2");
    assert_eq!(reply.reply_token.as_str(), "rpl_1");
    // It breaks again on the way; it is asked again, silently, and the answer goes out again.
    world.inbox.handle(InboxInput::NotSent { ticket: sent[0].ticket, perhaps: true }, world.now);
    world.passes(1000);
    assert_eq!(world.sends().len(), 1);
    world.comes(&event(&id, 1, "awaiting.confirmation", 0, START, &confirmation("rpl_1")));
    assert_eq!(world.told(), ["lost", "connected true true"]);
    assert_eq!(world.inbox.open_requests().len(), 1);
}

// covers: C25, C28
#[test]
fn an_answer_that_could_not_be_sent_in_time_is_not_sent_at_all() {
    let mut world = World::new();
    world.asks(0);
    world.hears();
    world.lost();
    world.inbox.answer(1.into(), Answer::Accept, world.now).unwrap();
    world.passes(60_000);
    world.begins(EVERYTHING, "sub_2");
    world.passes(1);
    assert!(world.sends().is_empty());
    assert_eq!(world.told(), ["lost", "settled 1 TimedOut", "connected true true"]);
}

// covers: C25
#[test]
fn what_is_not_asked_again_after_a_new_subscription_does_not_wait_any_more() {
    let mut world = World::new();
    let (first, _) = (world.asks(0), world.asks(1));
    world.hears();
    world.lost();
    world.begins(EVERYTHING, "sub_2");
    world.comes(&event(
        &first,
        1,
        "awaiting.confirmation",
        0,
        START + 10_000,
        &confirmation("rpl_1"),
    ));
    world.passes(10_000);
    assert_eq!(world.told(), ["lost", "connected true true", "settled 2 Gone"]);
    // If it waits after all, it is asked again, under its number.
    let second =
        event("evt_2", 1, "awaiting.confirmation", 1, START + 10_000, &confirmation("rpl_2"));
    world.comes(&second);
    assert_eq!(world.told(), ["asked 2"]);
}

// covers: I32
#[test]
fn what_is_not_asked_again_on_the_same_subscription_does_not_wait_any_more() {
    let mut world = World::new();
    let (first, _) = (world.asks(0), world.asks(1));
    world.hears();
    world.lost();
    // The hub no longer knows where we left off, and tells how things stand.
    world.inbox.handle(InboxInput::AttachedAnew { connection: world.hub }, world.now);
    let again = confirmation("rpl_1");
    world.comes(&event(&first, 1, "awaiting.confirmation", 0, START + 10_000, &again));
    world.passes(10_000);
    assert_eq!(world.told(), ["lost", "connected true true", "settled 2 Gone"]);
    // Where all that was missed follows, nothing is in doubt.
    world.lost();
    world.inbox.handle(InboxInput::Attached { connection: world.hub }, world.now);
    world.passes(10_000);
    assert_eq!(world.told(), ["lost", "connected true true"]);
    assert_eq!(world.inbox.open_requests().len(), 1);
}

// covers: D9
#[test]
fn deadlines_and_stamps_follow_the_hubs_clock() {
    let mut world = World::new();
    // Its clock is an hour ahead, and the question is 20 seconds old.
    let (hub, now) = (world.hub, world.now);
    let theirs = world.unix() + 3_600_000;
    world.inbox.handle(InboxInput::ServerTime { connection: hub, unix_ms: theirs }, now);
    world.comes(&event(
        "evt_9",
        1,
        "awaiting.confirmation",
        0,
        theirs - 20_000,
        &confirmation("rpl_9"),
    ));
    assert_eq!(world.inbox.open_requests()[0].deadline_ms, now + 40_000);
    world.passes(5000);
    world.inbox.answer(1.into(), Answer::Accept, world.now).unwrap();
    let sent = world.sends();
    let Ok(Message::ConfirmationReply(reply)) = Message::parse(sent[0].json.as_bytes()) else {
        panic!()
    };
    assert_eq!(reply.timestamp.0.as_millis(), theirs + 5000);
}

// covers: D9
#[test]
fn a_deadline_is_corrected_when_the_clock_is_known_better() {
    let mut world = World::new();
    world.comes(&event("evt_9", 1, "awaiting.confirmation", 0, START, &confirmation("rpl_9")));
    assert_eq!(world.inbox.open_requests()[0].deadline_ms, world.now + 60_000);
    world.comes(&event(
        "evt_10",
        1,
        "tool.invoked",
        1,
        START + 30_000,
        r#","tool":"x","summary_normal":"X.""#,
    ));
    assert_eq!(world.inbox.open_requests()[0].deadline_ms, world.now + 30_000);
}

// covers: S10
#[test]
fn a_request_that_cannot_be_answered_from_here_is_heard_all_the_same() {
    let mut world = World::with(EVERYTHING, Bounds { open_requests: 1, ..Bounds::default() });
    world.asks(0);
    world.asks(1);
    world.event("awaiting.confirmation", 2, r#","action":"Delete""#);
    assert_eq!(world.told(), ["asked 1", "!awaiting.confirmation", "!awaiting.confirmation"]);
    assert_eq!(world.rules().iter().filter(|rule| **rule == "S10").count(), 2);
}

// covers: C29
#[test]
fn no_token_shows_itself() {
    let mut world = World::new();
    world.event("awaiting.confirmation", 0, &confirmation("rpl_secret"));
    let open = world.inbox.open_requests();
    assert!(!format!("{:?}", open[0].reply_token).contains("secret"));
    assert!(matches!(open[0].asks, Asks::Consent { .. }));
    let told = world.hears();
    assert!(matches!(&told[0], Notification::Asked(request) if request.number == 1));
    let _ = RequestOutcome::Gone;
}

// covers: S10, D9
#[test]
fn a_request_whose_stamp_says_that_it_is_over_is_asked_all_the_same() {
    let mut world = World::new();
    let (hub, now, unix) = (world.hub, world.now, world.unix());
    world.inbox.handle(InboxInput::ServerTime { connection: hub, unix_ms: unix }, now);
    let old = unix - 86_400_000;
    world.comes(&event("evt_9", 1, "awaiting.confirmation", 0, old, &confirmation("rpl_9")));
    assert_eq!(world.told(), ["asked 1"]);
    assert_eq!(world.inbox.open_requests()[0].deadline_ms, now + 60_000);
}

// covers: S10, C25
#[test]
fn no_session_can_hide_or_settle_what_another_asks() {
    let mut world = World::new();
    let asks = |session| {
        event("evt_9", session, "awaiting.confirmation", 0, START, &confirmation("rpl_9"))
    };
    world.comes(&asks(1));
    world.comes(&asks(2));
    assert_eq!(world.told(), ["asked 1", "asked 2"]);
    // Session 1 speaks of its own, whatever it means.
    world.resolves(1, "evt_9", "accepted");
    assert_eq!(world.told(), ["settled 1 AcceptedElsewhere"]);
    world.resolves(2, "evt_9", "accepted");
    assert!(world.told().is_empty());
    assert_eq!(&*world.inbox.open_requests()[0].session_id, "sess_2");
}
