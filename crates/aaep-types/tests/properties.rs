//! What holds for every message, tried on generated and on damaged ones.

mod support;

use aaep_types::json::Members;
use aaep_types::{
    Event, EventKind, Extensions, LenientEvent, Message, Payload, Severity, is_valid, validate,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use support::build::{seed, text};
use support::mutate::{Mutator, Random};
use support::vectors;

/// The same cases in every run.
fn run<S: Strategy<Value: std::fmt::Debug>>(
    cases: u32,
    strategy: S,
    test: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let outcome = TestRunner::new_with_rng(config, random).run(&strategy, test);
    assert!(outcome.is_ok(), "{outcome:?}");
}

fn has_error(bytes: &[u8]) -> bool {
    validate(bytes).iter().any(|problem| problem.severity == Severity::Error)
}

/// Whether the two passes, the two readers and the patient one agree on these bytes.
fn agree(bytes: &[u8]) -> Result<bool, TestCaseError> {
    let valid = !has_error(bytes);
    prop_assert_eq!(is_valid(bytes), valid);
    prop_assert_eq!(Message::parse(bytes).is_ok(), valid);
    match (Event::parse(bytes), Message::parse(bytes)) {
        (Ok(event), Ok(Message::Event(same))) => {
            prop_assert_eq!(event, *same);
            prop_assert!(
                LenientEvent::parse(bytes).is_ok_and(|heard| heard.deviations().is_empty())
            );
        }
        (Ok(_), other) => prop_assert!(false, "an event, but {other:?}"),
        (Err(invalid), other) => {
            prop_assert!(invalid.problems.iter().any(|p| p.severity == Severity::Error));
            prop_assert!(!matches!(other, Ok(Message::Event(_))), "an event after all");
        }
    }
    Ok(valid)
}

// covers: E1, E20, D22
#[test]
fn what_we_emit_we_accept_and_write_again_byte_for_byte() {
    run(3_000, seed(), |seed| {
        let (envelope, payload, extensions) = (seed.envelope(), seed.payload(), seed.extensions());
        let json = Event::emit(&envelope, &payload, &extensions)
            .map_err(|invalid| TestCaseError::fail(invalid.to_string()))?;
        prop_assert_eq!(json.find(['\n', '\u{2028}', '\u{2029}']), None);
        let event = Event::parse(json.as_bytes())
            .map_err(|invalid| TestCaseError::fail(invalid.to_string()))?;
        prop_assert_eq!(event.to_json(), json.as_str());
        prop_assert_eq!(event.envelope(), &envelope);
        prop_assert_eq!(event.payload(), &payload);
        prop_assert_eq!(event.extensions(), &extensions);
        prop_assert!(agree(json.as_bytes())?);
        // Others read the same texts.
        let theirs: serde_json::Value =
            serde_json::from_str(&json).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(theirs["producer"]["agent_id"].as_str(), Some(seed.texts[0].as_str()));
        Ok(())
    });
}

fn read_ours(kind: EventKind, object: &str) -> Option<Payload<'_>> {
    let members = Members::whole(object, 64).ok()??;
    if members.faults().is_empty() { Payload::read_ours(kind, members) } else { None }
}

/// An event of ours around a payload, and whether both ways of reading it at our source agree.
fn both_at_source(kind: EventKind, members: &str) -> Result<bool, TestCaseError> {
    let (name, urgency) = (kind.as_str(), kind.usual_urgency().as_str());
    let number = u8::from(kind != EventKind::SessionStarted);
    let more = if members.is_empty() { String::new() } else { format!(",{members}") };
    let event = format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"{name}","event_id":"evt_1","session_id":"sess_1","sequence_number":{number},"timestamp":"2026-05-24T14:22:11.342Z","producer":{{"agent_id":"x"}},"urgency":"{urgency}","localization_hints":{{"primary_language":"en","text_direction":"auto"}}{more}}}"#
    );
    let object = format!("{{{members}}}");
    let alone = read_ours(kind, &object);
    let whole = Event::parse_ours(event.as_bytes()).ok();
    prop_assert_eq!(alone.as_ref(), whole.as_ref().map(Event::payload), "{}", event);
    Ok(alone.is_some())
}

/// The members of an event that its envelope does not have, as JSON without braces.
fn payload_of(event: &serde_json::Value) -> Option<String> {
    const ENVELOPE: [&str; 13] = [
        "@context",
        "aaep_version",
        "type",
        "event_id",
        "session_id",
        "sequence_number",
        "timestamp",
        "producer",
        "verbosity",
        "urgency",
        "localization_hints",
        "correlation_id",
        "extensions",
    ];
    let members = event.as_object()?.iter().filter(|(name, _)| !ENVELOPE.contains(&name.as_str()));
    let members: Vec<String> =
        members.map(|(name, value)| format!("{}:{value}", serde_json::json!(name))).collect();
    Some(members.join(","))
}

// covers: E1, E19
#[test]
fn a_payload_of_ours_is_judged_alone_as_it_is_within_its_event() {
    run(1_000, seed(), |seed| {
        let json = Event::emit(&seed.envelope(), &seed.payload(), &seed.extensions())
            .map_err(|invalid| TestCaseError::fail(invalid.to_string()))?;
        let event = serde_json::from_str(&json).unwrap_or_default();
        let members = payload_of(&event).unwrap_or_default();
        prop_assert!(both_at_source(seed.kind, &members)?);
        // What belongs around a payload has no place in it.
        let around = format!("{{{members},\"extensions\":{{}}}}");
        prop_assert_eq!(read_ours(seed.kind, &around), None);
        for broken in [r#""type":"x""#, r#""@odd":1"#, "", "1", "}"] {
            let accepted = both_at_source(seed.kind, &format!("{members},{broken}"))?;
            prop_assert!(!accepted);
        }
        Ok(())
    });
    let parsed = |folder: &str| {
        let texts = vectors(folder).into_iter().filter(|vector| vector.bytes.len() < 8_000);
        texts.filter_map(|vector| serde_json::from_slice(&vector.bytes).ok()).collect()
    };
    let mutator = Mutator::new(parsed("valid"), parsed("warning"));
    let mut valid = 0;
    for seed in 0..10_000 {
        let mut random = Random::new(3_000_000 + seed);
        let text = mutator.text(&mut random);
        let Ok(event) = serde_json::from_str::<serde_json::Value>(&text) else { continue };
        let named = event["type"].as_str().and_then(EventKind::parse);
        let kind = named.unwrap_or(*random.pick(&EventKind::ALL));
        let Some(members) = payload_of(&event) else { continue };
        let agreed = both_at_source(kind, &members);
        valid += usize::from(agreed.unwrap_or_else(|why| panic!("{why}: {text}")));
    }
    assert!(valid > 1_000, "only {valid} of them were valid");
}

/// A JSON value, as somebody else might have spelled it.
fn foreign() -> impl Strategy<Value = String> {
    let number =
        proptest::sample::select(vec!["0", "-0", "1.50", "1e2", "-3.0E-1", "9007199254740992"]);
    let string =
        text().prop_map(|text| serde_json::Value::from(text).to_string().replace('/', "\\/"));
    let escaped = Just(r#""\u00e9\ud83c\udf31""#.to_owned());
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        number.prop_map(str::to_owned),
        string,
        escaped
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..4);
        let object = proptest::collection::btree_map("[a-z]{1,6}", inner, 0..4);
        prop_oneof![
            list.prop_map(|items| format!("[ {} ]", items.join(" , "))),
            object.prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("\"{name}\" :\t{value}")).collect();
                format!("{{{}}}", members.join(",\n"))
            }),
        ]
    })
}

// covers: D21, E17, V2
#[test]
fn what_others_add_survives_byte_for_byte() {
    let strategy = (foreign(), foreign(), foreign(), text());
    run(2_000, strategy, |(extension, nested, top, words)| {
        let words = serde_json::Value::from(words);
        let json = format!(
            r#"{{"@context":["https://aaep-protocol.org/context/v1","https://example.org/soil"],
            "aaep_version":"1.7.0","type":"https://aaep-protocol.org/types/agent.session.started",
            "event_id":"evt_1","session_id":"sess_1","timestamp":"2026-03-09T09:15:30+01:00",
            "producer":{{"agent_id":{words},"newer":{nested}}},"newest":{top},
            "localization_hints":{{"primary_language":"en","text_direction":"auto"}},
            "summary_normal":{words},"summary_normal_yo":{words},
            "extensions":{{"soil":{{"value":{extension}}}}}}}"#
        );
        let event = Event::parse(json.as_bytes())
            .map_err(|invalid| TestCaseError::fail(format!("{invalid} {json}")))?;
        let written = event.to_json();
        for kept in [
            format!("\"newest\":{top}"),
            format!("\"newer\":{nested}"),
            format!("{{\"soil\":{{\"value\":{extension}}}}}"),
        ] {
            prop_assert_ne!(written.find(&kept), None);
        }
        let again = Event::parse(written.as_bytes())
            .map_err(|invalid| TestCaseError::fail(invalid.to_string()))?;
        prop_assert_eq!(again.to_json(), written.as_str());
        prop_assert!(agree(json.as_bytes())? && agree(written.as_bytes())?);
        Ok(())
    });
}

// covers: E17
#[test]
fn what_is_no_sound_object_never_becomes_an_extension() {
    for json in ["", "1", "[]", "{", "{} {}", r#"{"a":1,"a":2}"#, r#"{"a":{"b":1,"b":1}}"#] {
        assert!(!Extensions::default().set("soil", json), "{json}");
    }
}

// covers: E1
#[test]
fn both_passes_and_both_readers_agree_on_every_vector() {
    for folder in ["valid", "warning", "invalid"] {
        for vector in vectors(folder) {
            let valid = agree(&vector.bytes).unwrap_or_else(|why| panic!("{}: {why}", vector.name));
            assert_eq!(valid, folder != "invalid", "{}", vector.name);
        }
    }
}

// covers: E1, E23
#[test]
fn both_passes_and_both_readers_agree_on_damaged_structure() {
    let parsed = |folder: &str| {
        let texts = vectors(folder).into_iter().filter(|vector| vector.bytes.len() < 8_000);
        texts.filter_map(|vector| serde_json::from_slice(&vector.bytes).ok()).collect()
    };
    let mutator = Mutator::new(parsed("valid"), parsed("warning"));
    let mut valid = 0;
    for seed in 0..10_000 {
        let text = mutator.text(&mut Random::new(1_000_000 + seed));
        valid += usize::from(agree(text.as_bytes()).unwrap_or_else(|why| panic!("{why}: {text}")));
    }
    assert!(valid > 2_000, "only {valid} of them were valid");
}

// covers: E1
#[test]
fn both_passes_and_both_readers_agree_on_damaged_bytes() {
    let originals: Vec<_> = ["valid", "warning"].into_iter().flat_map(vectors).collect();
    for seed in 0..20_000 {
        let mut random = Random::new(2_000_000 + seed);
        let mut bytes = random.pick(&originals).bytes.clone();
        if bytes.len() > 8_000 {
            continue;
        }
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(5) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, *random.pick(b"\"\\{}[]:,0-.eu \n\x00\xff\xc3")),
                3 => bytes.truncate(at + 1),
                _ => {
                    let end = (at + random.below(40)).min(bytes.len());
                    let piece = bytes[at..end].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        agree(&bytes).unwrap_or_else(|why| panic!("{why}: {}", String::from_utf8_lossy(&bytes)));
    }
}

// covers: E1
#[test]
fn no_bytes_make_a_reader_stumble() {
    run(5_000, proptest::collection::vec(any::<u8>(), 0..200), |bytes| {
        prop_assert!(!agree(&bytes)?);
        let _ = LenientEvent::parse(&bytes);
        Ok(())
    });
    let pieces = proptest::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\\",
        "\\u",
        "d83c",
        "\"type\"",
        "\"aaep:agent.state.changed\"",
        "0",
        "-",
        "1e",
        "null",
        "tru",
        " ",
        "é",
        "\u{7f}",
    ]);
    run(5_000, proptest::collection::vec(pieces, 0..40), |pieces| {
        prop_assert!(!agree(pieces.concat().as_bytes())?);
        Ok(())
    });
}
