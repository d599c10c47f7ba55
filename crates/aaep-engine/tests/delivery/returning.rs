//! Those who come back: what they missed, and how things stand.

use super::*;

// covers: D28, I3
#[test]
fn after_a_restart_what_waits_is_told_again_with_its_id_and_token() {
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    let session = hall.world.open();
    let request = hall.world.ask(session, "{}");
    let asked = hall.world.events.last().unwrap().json.clone();
    hall.offered = hall.world.events.len();
    hall.world.restart(ClockTrust::Trusted);
    hall.remind();
    hall.drain();
    hall.listen(1, &ann, "{}");
    assert_eq!(hall.kinds(1), [SessionStarted, StateChanged, AwaitingConfirmation]);
    assert_eq!(hall.heard[2].json, *asked);
    hall.world.reply(request, "accept");
    assert_eq!(hall.world.decided(request), Some((Outcome::Accepted, true)));
}

// covers: I32, W7
#[test]
fn whoever_missed_an_end_before_a_restart_is_not_told_that_everything_follows() {
    let over = r#"{"summary_normal":"Over."}"#;
    // What was surely heard before the restart is forgotten with its session; the rest is said again.
    for surely_heard in [true, false] {
        let mut hall = Hall::new(Limits::default());
        let ann = hall.world.ann.clone();
        hall.listen(1, &ann, "{}");
        let (ends, goes_on) = (hall.world.open(), hall.world.open());
        hall.drain();
        let last = hall.heard.last().unwrap().id.clone();
        hall.delivery.detach(id(1));
        hall.world.emit(ends, SessionCompleted, over).unwrap();
        if surely_heard {
            // A later record says that everything up to the end had left.
            hall.world.ask(goes_on, "{}");
        }
        let newest = hall.world.events.last().unwrap().event;
        let newest = newest.id().to_string();
        hall.offered = hall.world.events.len();
        hall.world.restart(ClockTrust::Trusted);
        hall.delivery = Delivery::new(Limits::default());
        hall.remind();
        hall.drain();
        let now = hall.world.now.boot;
        let mut come_back = |number, last: &str| {
            hall.heard.clear();
            hall.delivery.subscribe(id(number), &ann, Terms::new(&Capabilities::none()), now);
            let resumed = hall.delivery.attach(id(number), &ann, Some(last), now).unwrap();
            hall.drain();
            (resumed, hall.kinds(number).contains(&SessionCompleted))
        };
        if surely_heard {
            assert_eq!(come_back(2, &last), (Resumed::Snapshot, false));
            assert_eq!(come_back(3, &newest), (Resumed::All, false), "nothing was missed");
        } else {
            assert_eq!(come_back(2, &last), (Resumed::All, true), "the end is told");
        }
    }
}

// covers: I32, W7
#[test]
fn an_end_that_a_question_overtook_is_not_lost_to_who_comes_back_on_another_subscription() {
    let over = r#"{"summary_normal":"Over."}"#;
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    hall.listen(1, &ann, r#"{"max_events_per_second":1}"#);
    let (ends, goes_on) = (hall.world.open(), hall.world.open());
    hall.world.emit(ends, SessionCompleted, over).unwrap();
    // The question goes first; the end is held.
    hall.world.ask(goes_on, "{}");
    hall.drain();
    assert!(hall.kinds(1).contains(&AwaitingConfirmation));
    assert!(!hall.kinds(1).contains(&SessionCompleted));
    let last = hall.heard.last().unwrap().id.clone();
    hall.delivery.detach(id(1));
    let now = hall.world.now.boot;
    hall.delivery.subscribe(id(2), &ann, terms(r#"{"max_events_per_second":1}"#), now);
    assert_eq!(hall.delivery.attach(id(2), &ann, Some(&last), now), Some(Resumed::Snapshot));
}

// covers: W7, I19
#[test]
fn who_comes_back_hears_what_was_missed_in_order_and_nothing_twice() {
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    hall.listen(1, &ann, r#"{"coalesce_boundaries":["none"]}"#);
    let session = hall.world.open();
    hall.drain();
    let last = hall.heard.last().unwrap().id.clone();
    hall.delivery.detach(id(1));
    let request = hall.world.ask(session, "{}");
    hall.world.reply(request, "accept");
    hall.drain();
    assert_eq!(hall.kinds(1), [SessionStarted]);
    let now = hall.world.now.boot;
    assert_eq!(hall.delivery.attach(id(1), &ann, Some(&last), now), Some(Resumed::All));
    hall.drain();
    assert_eq!(hall.kinds(1), [SessionStarted, StateChanged, AwaitingConfirmation, StateChanged]);
    let numbers: Vec<String> = hall
        .heard
        .iter()
        .map(|heard| {
            format!(
                "{:?}",
                Members::whole(&heard.json, 9).unwrap().unwrap().find("sequence_number")
            )
        })
        .collect();
    assert!(numbers.is_sorted() && numbers.len() == 4);
}

// covers: W7, W2, I19, H3
#[test]
fn what_was_held_is_neither_lost_nor_said_twice_when_somebody_comes_back() {
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    // One event a second: the rest is held.
    hall.listen(1, &ann, r#"{"max_events_per_second":1}"#);
    hall.listen(2, &ann, r#"{"max_events_per_second":1}"#);
    let session = hall.world.open();
    let call = |hall: &mut Hall| {
        hall.world.emit(session, ToolInvoked, r#"{"tool":"x","summary_normal":"X."}"#).unwrap();
    };
    (0..3).for_each(|_| call(&mut hall));
    hall.drain();
    assert_eq!(hall.kinds(1), [SessionStarted]);
    let first = hall.heard[0].id.clone();
    hall.world.pass(1);
    hall.drain();
    for number in [1, 2] {
        hall.delivery.detach(id(number));
    }
    call(&mut hall);
    hall.drain();
    // The one heard everything that was sent, the other lost some of it on the way.
    let last = hall.heard.iter().rfind(|heard| heard.subscription == id(1)).unwrap().id.clone();
    let now = hall.world.now.boot;
    assert_ne!(first, last);
    assert_eq!(hall.delivery.attach(id(1), &ann, Some(&last), now), Some(Resumed::All));
    assert_eq!(hall.delivery.attach(id(2), &ann, Some(&first), now), Some(Resumed::All));
    let sent_before: Vec<usize> = [1, 2].map(|n| hall.kinds(n).len()).into();
    for _ in 0..10 {
        hall.world.pass(1);
        hall.drain();
    }
    let since = |number: u128, skip: usize| -> Vec<String> {
        let mine = hall.heard.iter().filter(|heard| heard.subscription == id(number));
        mine.skip(skip).map(|heard| heard.id.clone()).collect()
    };
    let all: Vec<String> = hall.world.events.iter().map(|e| e.event.id().to_string()).collect();
    let after = |id: &str| all[all.iter().position(|known| known == id).unwrap() + 1..].to_vec();
    assert_eq!(since(1, sent_before[0]), after(&last));
    assert_eq!(since(2, sent_before[1]), after(&first));
}

// covers: I20, W7
#[test]
fn what_is_sent_again_keeps_to_the_rate() {
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    hall.listen(1, &ann, r#"{"max_events_per_second":1}"#);
    let session = hall.world.open();
    for _ in 0..3 {
        hall.world.emit(session, ToolInvoked, r#"{"tool":"x","summary_normal":"X."}"#).unwrap();
    }
    for _ in 0..9 {
        hall.drain();
        hall.world.pass(1);
    }
    let (first, before) = (hall.heard[0].id.clone(), hall.heard.len());
    hall.delivery.detach(id(1));
    let now = hall.world.now.boot;
    assert_eq!(hall.delivery.attach(id(1), &ann, Some(&first), now), Some(Resumed::All));
    for sent in 1..before {
        hall.drain();
        assert_eq!(hall.heard.len(), before + sent);
        hall.world.pass(1);
    }
}

// covers: W7, I19, D28
#[test]
fn who_heard_only_a_part_of_how_things_stand_is_told_once_more() {
    let mut hall = Hall::new(Limits::default());
    let (ann, now) = (hall.world.ann.clone(), hall.world.now.boot);
    hall.world.open();
    hall.world.open();
    hall.drain();
    hall.listen(1, &ann, r#"{"coalesce_boundaries":["none"]}"#);
    // Of two starts, the line broke after the first that was told, which may be the later one.
    for told in [0, 1] {
        let last = hall.heard[told].id.clone();
        hall.delivery.detach(id(1));
        assert_eq!(hall.delivery.attach(id(1), &ann, Some(&last), now), Some(Resumed::Snapshot));
        hall.drain();
    }
    assert_eq!(hall.kinds(1), [SessionStarted; 6]);
}

// covers: I22, I29, D28
#[test]
fn how_things_stand_is_made_ready_as_it_is_taken_and_anew_for_who_comes_back() {
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    let now = hall.world.now.boot;
    for _ in 0..50 {
        let session = hall.world.open();
        hall.world.ask(session, "{}");
    }
    hall.drain();
    let all = [[SessionStarted, StateChanged, AwaitingConfirmation]; 50].concat();
    for capabilities in ["{}", r#"{"preferred_verbosity":"terse","coalesce_boundaries":["none"]}"#]
    {
        hall.listen(1, &ann, capabilities);
        assert_eq!(hall.kinds(1), all);
        // A connection that takes one event, and then no more.
        hall.delivery.detach(id(1));
        for more in ["goes on", "comes back"] {
            hall.heard.clear();
            assert_eq!(hall.delivery.attach(id(1), &ann, None, now), Some(Resumed::Snapshot));
            let Some(Deliver::Send { event, .. }) = hall.delivery.poll_output(now) else {
                panic!()
            };
            hall.delivery.pause(id(1));
            hall.drain();
            assert!(hall.heard.is_empty() && hall.delivery.load().most_ready == 0);
            // What is said meanwhile comes after it.
            let late = hall.world.open();
            hall.drain();
            if more == "goes on" {
                hall.delivery.go_on(id(1));
                hall.drain();
                let heard = hall.kinds(1);
                assert_eq!((heard.len(), heard.last()), (all.len(), Some(&SessionStarted)));
            } else {
                hall.delivery.detach(id(1));
                let last = event.event_id().to_string();
                let resumed = hall.delivery.attach(id(1), &ann, Some(&last), now);
                assert_eq!(resumed, Some(Resumed::Snapshot));
                hall.drain();
                assert_eq!(hall.kinds(1).len(), all.len() + 1);
            }
            hall.world.emit(late, SessionCompleted, r#"{"summary_normal":"Done."}"#).unwrap();
            hall.drain();
            hall.delivery.detach(id(1));
        }
        hall.delivery.close(id(1));
        hall.heard.clear();
    }
}

// covers: W7, I19
#[test]
fn where_events_are_merged_an_id_of_long_ago_says_nothing_of_others() {
    let mut hall = Hall::new(Limits { resent_deliveries: 2, ..Limits::default() });
    let (ann, now) = (hall.world.ann.clone(), hall.world.now.boot);
    hall.listen(1, &ann, "{}");
    let session = hall.world.open();
    for chunk in ["One. Two", ". Three"] {
        let position = if chunk == "One. Two" { 0 } else { 8 };
        let text = format!(r#"{{"chunk":"{chunk}","position":{position},"complete":false}}"#);
        hall.world.emit(session, OutputStreaming, &text).unwrap();
    }
    hall.world.ask(session, "{}");
    hall.drain();
    let first = hall.heard[0].id.clone();
    let last = hall.heard[hall.heard.len() - 2].id.clone();
    for (last, resumed) in [(last, Resumed::All), (first, Resumed::Snapshot)] {
        hall.delivery.detach(id(1));
        assert_eq!(hall.delivery.attach(id(1), &ann, Some(&last), now), Some(resumed));
        hall.drain();
    }
}

// covers: W7
#[test]
fn who_was_away_for_too_long_is_told_how_things_stand() {
    let mut hall = Hall::new(Limits { recent_events: 4, ..Limits::default() });
    let ann = hall.world.ann.clone();
    hall.listen(1, &ann, "{}");
    let session = hall.world.open();
    hall.drain();
    let last = hall.heard.last().unwrap().id.clone();
    hall.delivery.detach(id(1));
    for step in 1..9 {
        let progress = format!(r#"{{"progress":{{"step":{step}}},"summary_normal":"On."}}"#);
        hall.world.emit(session, ProgressUpdated, &progress).unwrap();
    }
    hall.drain();
    let now = hall.world.now.boot;
    assert_eq!(hall.delivery.attach(id(1), &ann, Some(&last), now), Some(Resumed::Snapshot));
}

// covers: I22, I29, W7
#[test]
fn one_user_who_says_much_costs_no_other_what_is_kept_for_them() {
    for limits in [
        Limits { recent_bytes_per_user: 20_000, ..Limits::default() },
        Limits { recent_bytes: 40_000, ..Limits::default() },
        Limits { ended_sessions_per_user: 2, ..Limits::default() },
        Limits { ended_sessions: 3, ..Limits::default() },
    ] {
        let mut hall = Hall::new(limits);
        let ann = hall.world.ann.clone();
        hall.listen(1, &ann, r#"{"coalesce_boundaries":["none"]}"#);
        let quiet = hall.world.open();
        hall.drain();
        let last = hall.heard.last().unwrap().id.clone();
        hall.delivery.detach(id(1));
        hall.world.emit(quiet, SessionCompleted, r#"{"summary_normal":"Over."}"#).unwrap();
        hall.drain();
        // Somebody else's agent says much, in many sessions.
        hall.world.agent = Principal::new("loud", Role::Agent, "eve");
        let long =
            format!(r#"{{"progress":{{"percent":1}},"summary_normal":"{}"}}"#, "x".repeat(500));
        for _ in 0..100 {
            let session = hall.world.open();
            hall.world.emit(session, ProgressUpdated, &long).unwrap();
            let over = r#"{"summary_normal":"Over."}"#;
            hall.world.emit(session, SessionCompleted, over).unwrap();
            hall.drain();
        }
        let place = hall.heard.len();
        let now = hall.world.now.boot;
        assert_eq!(hall.delivery.attach(id(1), &ann, Some(&last), now), Some(Resumed::All));
        hall.drain();
        assert_eq!(hall.heard[place..].len(), 1, "the end that was missed");
        let load = hall.delivery.load();
        assert!(load.recent_bytes <= limits.recent_bytes, "{load:?}");
        assert!(load.most_recent_bytes <= limits.recent_bytes_per_user, "{load:?}");
        assert!(load.ended_sessions <= limits.ended_sessions, "{load:?}");
        assert!(load.ended_sessions <= limits.ended_sessions_per_user + 1, "{load:?}");
    }
}

// covers: I22, W7
#[test]
fn what_is_kept_for_those_who_come_back_is_bounded_and_the_newest_stays() {
    let mut hall = Hall::new(Limits { recent_bytes: 20_000, ..Limits::default() });
    let ann = hall.world.ann.clone();
    hall.listen(1, &ann, r#"{"coalesce_boundaries":["none"]}"#);
    let quiet = hall.world.open();
    let progress =
        |text: &str| format!(r#"{{"progress":{{"percent":1}},"summary_normal":"{text}"}}"#);
    let long = progress(&"x".repeat(500));
    let come_back = |hall: &mut Hall, last: &str| {
        let (ann, now) = (hall.world.ann.clone(), hall.world.now.boot);
        let resumed = hall.delivery.attach(id(1), &ann, Some(last), now);
        hall.drain();
        resumed
    };
    for ends in [true, false] {
        hall.world.emit(quiet, ProgressUpdated, &progress("Going on.")).unwrap();
        hall.drain();
        let last = hall.heard.last().unwrap().id.clone();
        hall.delivery.detach(id(1));
        // Many sessions, or one that says much.
        let mut loud = hall.world.open();
        for _ in 0..100 {
            hall.world.emit(loud, ProgressUpdated, &long).unwrap();
            if ends {
                hall.world.emit(loud, SessionCompleted, r#"{"summary_normal":"Over."}"#).unwrap();
                loud = hall.world.open();
            }
        }
        hall.drain();
        assert_eq!(come_back(&mut hall, &last), Some(Resumed::Snapshot));
        // What was said since is there.
        hall.world.emit(quiet, ProgressUpdated, &progress("Still here.")).unwrap();
        hall.drain();
        let last = hall.heard.last().unwrap().id.clone();
        hall.delivery.detach(id(1));
        hall.world.emit(quiet, ProgressUpdated, &progress("Here too.")).unwrap();
        hall.drain();
        let place = hall.heard.len();
        assert_eq!(come_back(&mut hall, &last), Some(Resumed::All));
        assert!(hall.heard[place..].iter().any(|heard| heard.json.contains("Here too.")));
    }
}
