//! Filter, rate, merging, critical events, load, pace, bounds.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use aaep_shaping::{Filter, Glance, HeldLimits, Overflow, Shape, Terms};
use aaep_types::{CoalesceBoundary, Event, LanguageTag, Level, Urgency, Verbosity};
use proptest::prelude::*;
use support::*;

fn at_rate(rate: u32) -> Terms {
    Terms { rate: Some(rate), ..Terms::default() }
}

fn without(pattern: &str) -> Terms {
    Terms { filter: Filter::new(["aaep:agent.*"], [pattern]), ..Terms::default() }
}

// covers: H16, I20, H8, T28
#[test]
fn a_critical_event_passes_filter_and_rate_at_once() {
    let mut terms = without("aaep:agent.*");
    terms.rate = Some(1);
    let mut listener = Listener::new(terms);
    assert!(listener.say(tool(1, 1)).is_empty());
    assert_eq!(listener.say(handoff(1, 2)), ["2"]);
    assert_eq!(listener.say(handoff(1, 3)), ["3"]);
}

// covers: H16, D13
#[test]
fn an_event_of_any_type_that_says_critical_is_critical() {
    let mut listener = Listener::new(without("aaep:agent.tool.*"));
    let urgent = tool(1, 1).replace(EN, &format!(r#""urgency":"critical",{EN}"#));
    assert_eq!(listener.say(urgent), ["1"]);
}

// covers: D14, H17, I19, I20
#[test]
fn a_critical_event_flushes_its_own_session_merged_and_borrows() {
    let mut listener = Listener::new(at_rate(1));
    assert_eq!(listener.say(tool(1, 1)), ["1"]);
    listener.offer(tool(2, 1));
    listener.offer(state(1, 2, "idle", "thinking"));
    listener.offer(state(1, 3, "thinking", "writing_output"));
    listener.offer(progress(1, 4, 10));
    listener.offer(progress(1, 5, 20));
    listener.offer(chunk(1, 6, "I need", 0, false));
    listener.offer(chunk(1, 7, " help", 6, false));
    let heard = listener.say(handoff(1, 8));
    assert_eq!(heard, ["3 idle>writing_output", "5", "7 0:I need help none", "8"]);
    // Three were borrowed; session 2 waits until a second's worth of them is paid back (D38).
    assert_eq!(listener.shaper.next_deadline(), Some(at(2000)));
    listener.now = at(2000);
    assert_eq!(listener.heard(), ["1"]);
}

// covers: D38, I20, H17, T15
#[test]
fn of_three_hundred_calls_that_wait_one_is_told_before_a_question_and_says_how_many() {
    let mut listener = Listener::new(at_rate(1));
    listener.say(tool(2, 1));
    for call in 0..300 {
        listener.offer(call_of(1, 2 * call + 1, "read", None));
        listener.offer(call_of(1, 2 * call + 2, "read", Some("success")));
    }
    let heard = listener.say(handoff(1, 601));
    assert_eq!(heard, ["599", "600 300 × read. Seen.", "601"]);
    // The end is not late for what went before the question.
    listener.offer(completed(1, 602));
    assert_eq!(listener.shaper.next_deadline(), Some(at(2000)));
}

// covers: D38, T11, T15, T24
#[test]
fn a_failure_an_open_call_and_one_that_was_asked_about_are_told_themselves() {
    let mut listener = Listener::new(at_rate(1));
    assert_eq!(listener.say(call_of(1, 1, "open", None)), ["1"]);
    listener.offer(call_of(1, 2, "read", None));
    listener.offer(call_of(1, 3, "read", Some("error")));
    listener.offer(call_of(1, 4, "open", Some("success")));
    let asked = call_of(1, 5, "pay", None).replace(r#""tool""#, r#""irreversible":false,"tool""#);
    listener.offer(asked);
    listener.offer(call_of(1, 6, "pay", Some("success")));
    listener.offer(call_of(1, 7, "look", None));
    listener.offer(call_of(1, 8, "look", Some("success")));
    listener.offer(call_of(1, 9, "still", None));
    let heard: Vec<_> = listener.wait().iter().map(short).collect();
    let expected = ["2", "3 2 × read, look. Seen.", "4 Seen.", "5", "6 Seen.", "9"];
    assert_eq!(heard, expected);
}

// covers: D14
#[test]
fn a_resolution_is_never_held_and_borrows() {
    let mut listener = Listener::new(at_rate(1));
    listener.say(tool(1, 1));
    let json = state(1, 2, "awaiting_input", "thinking");
    let event = listener.preparer.prepare_resolution(json).unwrap();
    listener.shaper.offer(&event, listener.now).unwrap();
    assert_eq!(listener.heard(), ["2 awaiting_input>thinking"]);
    assert!(listener.say(tool(1, 3)).is_empty());
    assert_eq!(listener.shaper.next_deadline(), Some(at(2000)));
}

// covers: D31
#[test]
fn where_a_filter_hides_an_outcome_it_comes_as_critical() {
    let mut listener = Listener::new(without("aaep:agent.state.changed"));
    let event = listener.prepare(state(1, 1, "awaiting_input", "thinking"));
    listener.shaper.offer(&event, listener.now).unwrap();
    assert!(listener.heard().is_empty());
    listener.shaper.offer_past_filter(&event, listener.now).unwrap();
    let sent = listener.drain();
    assert_eq!(Event::parse(sent[0].bytes.as_bytes()).unwrap().urgency(), Urgency::Critical);
    let open = Listener::new(Terms::default()).say(state(1, 1, "awaiting_input", "thinking"));
    assert_eq!(open.len(), 1);
}

// covers: H3, H17, T8
#[test]
fn over_budget_states_become_one_chain_and_tools_wait_in_order() {
    let mut listener = Listener::new(at_rate(1));
    listener.say(tool(2, 1));
    listener.offer(state(1, 1, "idle", "thinking"));
    listener.offer(state(1, 2, "thinking", "deciding"));
    listener.offer(tool(1, 3));
    listener.offer(state(1, 4, "calling_tool", "thinking"));
    listener.offer(state(1, 5, "thinking", "idle"));
    let heard: Vec<_> = listener.wait().iter().map(short).collect();
    assert_eq!(heard, ["2 idle>deciding", "3", "5 calling_tool>idle"]);
}

// covers: H17, H7
#[test]
fn over_budget_text_is_held_and_merged_until_there_is_budget() {
    let mut terms = cutting_at(&[CoalesceBoundary::None]);
    terms.rate = Some(1);
    let mut listener = Listener::new(terms);
    assert_eq!(listener.say(chunk(1, 1, "a", 0, false)), ["1 0:a "]);
    for number in 2..6 {
        assert!(listener.say(chunk(1, number, "b", number - 1, false)).is_empty());
    }
    listener.now = at(1000);
    assert_eq!(listener.heard(), ["5 1:bbbb none"]);
}

// covers: H10, T10
#[test]
fn under_low_load_progress_is_told_in_steps_and_never_lost() {
    let mut listener = Listener::new(Terms { load: Level::Low, ..Terms::default() });
    let told: Vec<_> =
        (0..=50).flat_map(|p| listener.say(progress(1, u64::from(p) + 1, p))).collect();
    assert_eq!(told, ["1", "6", "11", "16", "21", "26", "31", "36", "41", "46", "51"]);
    assert!(listener.say(progress(1, 52, 51)).is_empty());
    assert_eq!(listener.shaper.next_deadline(), Some(at(10_000)));
    assert_eq!(listener.say(tool(1, 53)), ["52", "53"]);
}

// covers: H10
#[test]
fn under_low_load_state_changes_settle_before_they_are_told() {
    let mut listener = Listener::new(Terms { load: Level::Low, ..Terms::default() });
    assert!(listener.say(state(1, 1, "idle", "thinking")).is_empty());
    listener.now = at(1000);
    assert!(listener.say(state(1, 2, "thinking", "deciding")).is_empty());
    assert_eq!(listener.shaper.next_deadline(), Some(at(3000)));
    listener.now = at(3000);
    assert_eq!(listener.heard(), ["2 idle>deciding"]);
}

// covers: H10
#[test]
fn a_low_pace_coalesces_more_and_holds_for_a_bounded_time() {
    let mut listener = Listener::new(Terms { pace_wpm: Some(60), ..Terms::default() });
    let sentence = "Six words take about six seconds. ";
    let mut heard = Vec::new();
    for number in 0..4 {
        heard.extend(listener.say(chunk(1, number + 1, sentence, number * 34, false)));
    }
    assert_eq!(heard.len(), 1, "the second sentence waits for the listener");
    let next = listener.shaper.next_deadline().unwrap();
    assert!(next > at(3000) && next < at(10_001), "{next:?}");
    listener.now = next;
    assert_eq!(listener.heard().len(), 1, "the others come as one");
}

// covers: L4, H14
#[test]
fn new_terms_hold_for_what_is_offered_after_them() {
    let mut listener = Listener::new(Terms::default());
    listener.offer(chunk(1, 1, "Half a", 0, false));
    listener.shaper.renegotiate(without("aaep:agent.tool.*"), listener.now);
    assert_eq!(listener.heard(), ["1 0:Half a none"]);
    assert!(listener.say(tool(1, 2)).is_empty());
    assert_eq!(listener.shaper.pending_bytes(), 0);
}

// covers: I4, I22
#[test]
fn what_cannot_be_merged_overflows_and_is_said() {
    let limits = HeldLimits { max_events: 8, max_bytes: 1 << 20, ..HeldLimits::default() };
    let mut listener = Listener::with_limits(at_rate(1), limits);
    listener.say(tool(2, 1));
    for number in 1..100 {
        listener.offer(progress(1, number, 1)); // merged, however many
    }
    let overflow = (100..200).find_map(|number| listener.try_offer(tool(1, number)).err());
    assert!(matches!(overflow, Some(Overflow { events: 9, .. })), "{overflow:?}");
    assert!(overflow.unwrap().to_string().contains("too slow"));
}

const TRANSLATED: &str = r#""localization_hints":{"primary_language":"en"},"from_state":"idle","to_state":"thinking","summary_terse":"T","summary_normal":"Thinking.","summary_detailed":"Hard.","summary_terse_yo":"R","summary_normal_yo":"Mo ń ronú.","summary_detailed_yo":"Gan.","summary_terse_fr":"P","summary_normal_fr":"Je pense.","summary_detailed_fr":"Fort.""#;

fn shaped(verbosity: Option<Verbosity>, languages: &[&str]) -> Terms {
    let tags: Vec<_> = languages.iter().map(|tag| LanguageTag::parse(*tag).unwrap()).collect();
    Terms { shape: Shape::new(verbosity, &tags), ..Terms::default() }
}

// covers: H4, H5, L2, L3, D25, E12
#[test]
fn a_thousand_subscriptions_of_eight_shapes_cost_eight_serialisations() {
    let mut listener = Listener::new(Terms::default());
    let event = listener.prepare(event(1, 1, "state.changed", TRANSLATED));
    let mut shapes = Vec::new();
    for languages in [&["en"][..], &["yo-NG"], &["fr-CA", "en"], &["sw", "yo"]] {
        for verbosity in [Verbosity::Terse, Verbosity::Detailed] {
            shapes.push(shaped(Some(verbosity), languages));
        }
    }
    for number in 0..1000 {
        let terms = shapes[number % 8].clone();
        let languages = terms.shape.languages();
        let other = Shape::new(terms.shape.verbosity(), &languages); // equal, not the same
        let bytes = event.bytes(&other);
        assert!(std::ptr::eq(&*bytes, &*event.bytes(&terms.shape)));
    }
    assert_eq!(event.serialisations(), 8);
}

// covers: H5, L2, L8, D25, H4
#[test]
fn the_first_language_that_can_be_served_is_and_is_named() {
    let mut listener = Listener::new(Terms::default());
    let event = listener.prepare(event(1, 1, "state.changed", TRANSLATED));
    let bytes = event.bytes(&shaped(Some(Verbosity::Terse), &["sw", "yo-NG"]).shape);
    assert!(bytes.contains(r#""primary_language":"yo""#), "{bytes}");
    assert!(bytes.contains(r#""summary_terse":"R","summary_normal":"Mo ń ronú.""#), "{bytes}");
    assert!(!bytes.contains("_fr") && !bytes.contains("detailed"), "{bytes}");
    assert!(Event::parse(bytes.as_bytes()).is_ok());
}

// covers: L3, L11, H2, E12
#[test]
fn what_no_language_fits_and_what_nobody_asked_for_stays_as_it_was() {
    let mut listener = Listener::new(Terms::default());
    let event = listener.prepare(event(1, 1, "state.changed", TRANSLATED));
    for terms in [Terms::default(), shaped(None, &["sw"]), shaped(Some(Verbosity::Detailed), &[])] {
        assert!(std::ptr::eq(&*event.bytes(&terms.shape), &**event.json()));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Event(u32, u8),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (1u32..4, 0u8..7).prop_map(|(session, kind)| Step::Event(session, kind)),
        1 => (0u64..3000).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..120)
}

fn any_terms() -> impl Strategy<Value = Terms> {
    let cuts = prop::sample::subsequence(CoalesceBoundary::ALL.to_vec(), 1..=5);
    (prop::option::of(1u32..10), prop::bool::ANY, prop::option::of(50u16..300), cuts).prop_map(
        |(rate, low, pace_wpm, cuts)| {
            let load = if low { Level::Low } else { Level::Medium };
            Terms { rate, load, pace_wpm, ..cutting_at(&cuts) }
        },
    )
}

/// The next event of a session; its outputs go on where they were.
fn next(session: u32, number: u64, kind: u8, position: &mut u64) -> String {
    match kind {
        0 => state(session, number, "thinking", "deciding"),
        1 => progress(session, number, (number % 100) as u32),
        2 => tool(session, number),
        3 => handoff(session, number),
        _ => {
            let text = ["One", " two. ", "\n\n"][number as usize % 3];
            let json = chunk(session, number, text, *position, false);
            *position += text.len() as u64;
            json
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    // covers: I19, I20, H3, H16, H17
    #[test]
    fn order_is_kept_rates_hold_and_critical_events_never_wait(terms in any_terms(), steps in steps()) {
        let rate = terms.rate;
        let mut listener = Listener::new(terms);
        let (mut numbers, mut positions) = ([0u64; 4], [0u64; 4]);
        let (mut sent, mut texts, mut tools) = (Vec::new(), [0usize; 4], 0);
        for step in steps {
            match step {
                Step::Wait(millis) => {
                    listener.now = at(listener.now.as_micros() / 1000 + millis);
                    let now = listener.now;
                    sent.extend(listener.drain().into_iter().map(|d| (now, d, false)));
                }
                Step::Event(session, kind) => {
                    let which = session as usize;
                    numbers[which] += 1;
                    tools += usize::from(kind == 2);
                    let json = next(session, numbers[which], kind, &mut positions[which]);
                    listener.offer(json);
                    let now = listener.now;
                    let drained = listener.drain();
                    if kind == 3 {
                        let id = format!("evt_{session}x{}", numbers[which]);
                        prop_assert!(drained.iter().any(|d| d.event.event_id().as_str() == id));
                    }
                    sent.extend(drained.into_iter().map(|d| (now, d, kind == 3)));
                }
            }
        }
        for session in 1..4u32 {
            let which = session as usize;
            if positions[which] > 0 {
                numbers[which] += 1; // T18: an open output is completed before the end
                listener.offer(chunk(session, numbers[which], "", positions[which], true));
            }
            listener.offer(completed(session, numbers[which] + 1));
        }
        let start = sent.len();
        sent.extend(listener.wait().into_iter().map(|d| (at(0), d, true)));
        let mut last = [0u64; 4];
        for (_, delivery, _) in &sent {
            let which = (1..4).find(|s| delivery.event.session_id().as_str().ends_with(&s.to_string())).unwrap();
            let number = delivery.event.sequence_number().unwrap();
            prop_assert!(number > last[which], "{number} after {}", last[which]);
            last[which] = number;
            if let aaep_types::Payload::OutputStreaming(output) =
                Event::parse(delivery.bytes.as_bytes()).unwrap().payload()
            {
                prop_assert_eq!(output.position.get() as usize, texts[which]);
                texts[which] += output.chunk.as_str().len();
            }
        }
        for which in 1..4 {
            prop_assert_eq!(texts[which] as u64, positions[which], "no text is lost");
            prop_assert_eq!(last[which], numbers[which] + 1, "the end is heard");
        }
        let kind = Some(aaep_types::EventKind::ToolInvoked);
        prop_assert_eq!(sent.iter().filter(|(_, d, _)| d.event.kind() == kind).count(), tools);
        if let Some(rate) = rate {
            let paid: Vec<_> = sent[..start].iter().filter(|(_, _, flush)| !flush).collect();
            for (first, (from, ..)) in paid.iter().enumerate() {
                for (count, (to, ..)) in paid.iter().enumerate().skip(first) {
                    let budget = to.since(*from).as_micros() as usize * rate as usize / 1_000_000;
                    prop_assert!(count - first < budget + rate as usize + 1);
                }
            }
        }
        prop_assert_eq!(listener.shaper.pending_bytes(), 0);
    }

    // covers: H3, H8, H17, I19
    #[test]
    fn a_glance_comes_to_what_offering_comes_to(terms in any_terms(), filtered: bool, steps in steps()) {
        let filter = if filtered { without("aaep:agent.progress.*").filter } else { terms.filter.clone() };
        let terms = Terms { filter, ..terms };
        let (mut slow, mut quick) = (Listener::new(terms.clone()), Listener::new(terms));
        let (mut numbers, mut positions) = ([0u64; 4], [0u64; 4]);
        for step in steps {
            match step {
                Step::Wait(millis) => {
                    slow.now = at(slow.now.as_micros() / 1000 + millis);
                    quick.now = slow.now;
                }
                Step::Event(session, kind) => {
                    let which = session as usize;
                    numbers[which] += 1;
                    let json = next(session, numbers[which], kind, &mut positions[which]);
                    let event = quick.prepare(json.clone());
                    slow.offer(json);
                    match quick.shaper.glance(&event, quick.now) {
                        Glance::Offer => quick.shaper.offer(&event, quick.now).unwrap(),
                        Glance::Unwanted => prop_assert!(slow.drain().is_empty()),
                        Glance::Passes => {
                            let heard = slow.drain();
                            prop_assert_eq!(heard.len(), 1);
                            let bytes = event.bytes(&quick.shaper.terms().shape);
                            prop_assert_eq!(&heard[0].bytes, &bytes);
                        }
                    }
                }
            }
            prop_assert_eq!(slow.heard(), quick.heard());
            prop_assert_eq!(slow.shaper.next_deadline(), quick.shaper.next_deadline());
        }
    }

    // covers: I22, I4
    #[test]
    fn memory_stays_within_its_bound_or_the_subscription_ends(terms in any_terms(), steps in steps()) {
        let limits = HeldLimits { max_events: 12, max_bytes: 12_000, ..HeldLimits::default() };
        let mut listener = Listener::with_limits(terms, limits);
        let (mut numbers, mut positions) = ([0u64; 4], [0u64; 4]);
        for step in steps {
            let Step::Event(session, kind) = step else { continue };
            let which = session as usize;
            numbers[which] += 1;
            let json = next(session, numbers[which], kind, &mut positions[which]);
            if listener.try_offer(json).is_err() {
                break;
            }
            if kind == 3 {
                listener.drain();
            }
            prop_assert!(listener.shaper.pending_events() <= limits.max_events);
            prop_assert!(listener.shaper.pending_bytes() <= limits.max_bytes);
        }
    }
}
