//! Streamed text: where it is cut, and that nothing of it is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod support;

use aaep_shaping::Terms;
use aaep_types::{CoalesceBoundary, CoalesceBoundary::*, Event, Payload};
use proptest::prelude::*;
use support::*;

fn stream(listener: &mut Listener, chunks: &[&str]) -> Vec<String> {
    let (mut heard, mut position) = (Vec::new(), 0);
    for (number, text) in chunks.iter().enumerate() {
        heard.extend(listener.say(chunk(1, number as u64 + 1, text, position, false)));
        position += text.chars().count() as u64;
    }
    heard
}

// covers: H7, D15
#[test]
fn with_boundary_none_every_chunk_passes_as_it_came() {
    let mut listener = Listener::new(cutting_at(&[None]));
    let event = listener.prepare(chunk(1, 1, "He", 0, false));
    listener.shaper.offer(&event, at(0)).unwrap();
    let sent = listener.drain();
    assert!(std::ptr::eq(&*sent[0].bytes, &**event.json()), "the very same bytes");
}

// covers: H7, D15, D19
#[test]
fn a_sentence_goes_out_when_the_next_begins_named_after_its_last_whole_part() {
    let mut listener = Listener::new(Terms::default());
    let heard = stream(&mut listener, &["All ", "is well", ". ", "Né", "xt"]);
    assert_eq!(heard, ["3 0:All is well.  sentence"]);
}

// covers: H7
#[test]
fn several_boundaries_mean_the_finest() {
    let mut listener = Listener::new(cutting_at(&[Word, Paragraph, Completion]));
    assert_eq!(stream(&mut listener, &["one", " two", " thr"]), ["1 0:one  word", "2 4:two  word"]);
}

// covers: H7, D20
#[test]
fn completion_alone_means_one_chunk_with_everything() {
    let mut listener = Listener::new(cutting_at(&[Completion]));
    assert_eq!(stream(&mut listener, &["One. ", "Two.\n\n", "Three."]), Vec::<String>::new());
    assert_eq!(listener.shaper.next_deadline(), Option::None);
    let last = listener.say(chunk(1, 4, "", 17, true));
    assert_eq!(last, ["4 0:One. Two.\n\nThree. completion"]);
}

// covers: H7
#[test]
fn what_the_producer_says_about_a_chunks_end_is_believed() {
    let mut listener = Listener::new(Terms::default());
    let json =
        chunk(1, 1, "Ready", 0, false).replace("false}", r#"false,"coalesce_hint":"sentence"}"#);
    assert_eq!(listener.say(json), ["1 0:Ready sentence"]);
}

// covers: H7
#[test]
fn a_finished_sentence_is_not_held_forever() {
    let mut listener = Listener::new(Terms::default());
    assert!(stream(&mut listener, &["All done."]).is_empty());
    assert_eq!(listener.shaper.next_deadline(), Some(at(2000)));
    listener.now = at(2000);
    assert_eq!(listener.heard(), ["1 0:All done. sentence"]);
}

// covers: H7
#[test]
fn an_unfinished_sentence_waits_for_its_rest() {
    let mut listener = Listener::new(Terms::default());
    assert!(stream(&mut listener, &["All is"]).is_empty());
    assert_eq!(listener.shaper.next_deadline(), Option::None);
}

// covers: I19
#[test]
fn another_event_of_the_session_pushes_held_text_out_first() {
    let mut listener = Listener::new(Terms::default());
    assert!(stream(&mut listener, &["Let me look"]).is_empty());
    assert_eq!(listener.say(tool(1, 2)), ["1 0:Let me look none", "2"]);
}

// covers: I19, D14
#[test]
fn whoever_wants_only_complete_text_gets_other_events_meanwhile_and_in_order() {
    let mut listener = Listener::new(cutting_at(&[Completion]));
    assert!(stream(&mut listener, &["Let me look"]).is_empty());
    assert_eq!(listener.say(tool(1, 2)), ["2"]);
    assert_eq!(listener.say(handoff(1, 3)), ["3"], "part 1 can no longer come after 2");
    assert_eq!(listener.say(chunk(1, 4, ".", 11, true)), ["4 0:Let me look. completion"]);
}

// covers: I19, L4
#[test]
fn text_that_others_have_passed_waits_for_a_newer_part_under_new_terms_too() {
    let mut listener = Listener::new(cutting_at(&[Completion]));
    assert!(stream(&mut listener, &["All is well. "]).is_empty());
    assert_eq!(listener.say(tool(1, 2)), ["2"]);
    listener.shaper.renegotiate(Terms::default(), listener.now);
    assert!(listener.heard().is_empty(), "part 1 can no longer come after 2");
    assert_eq!(listener.shaper.next_deadline(), Option::None);
    assert_eq!(listener.say(tool(1, 3)), ["3"]);
    assert!(listener.say(chunk(1, 4, "And ", 13, false)).is_empty(), "nor can it name a cut");
    let rest = listener.say(chunk(1, 5, "so on.", 17, true));
    assert!(rest[0].starts_with("5 0:All is well. And so on."), "{rest:?}");
}

// covers: T17, L9
#[test]
fn text_in_another_language_is_not_joined() {
    let mut listener = Listener::new(cutting_at(&[Completion]));
    listener.offer(chunk(1, 1, "Hello. ", 0, false));
    let french = chunk(1, 2, "Salut.", 7, true).replace("true}", r#"true,"language":"fr"}"#);
    assert_eq!(listener.say(french), ["1 0:Hello.  sentence", "2 7:Salut. "]);
}

// covers: L10
#[test]
fn joined_text_that_runs_both_ways_says_so() {
    let mut listener = Listener::new(Terms::default());
    let plain = |json: String| json.replace(r#","text_direction":"auto""#, "");
    listener.offer(plain(chunk(1, 1, "Shalom is ", 0, false)));
    listener.offer(plain(chunk(1, 2, "שלום.", 10, true)));
    let sent = listener.drain();
    assert!(sent[0].bytes.contains(r#""text_direction":"auto""#), "{}", sent[0].bytes);
}

// covers: H17
#[test]
fn a_release_longer_than_a_chunk_may_be_is_split() {
    let mut listener = Listener::new(cutting_at(&[Completion]));
    let text = "é".repeat(10_000);
    listener.offer(chunk(1, 1, &text, 0, false));
    listener.offer(chunk(1, 2, &text, 10_000, false));
    listener.offer(chunk(1, 3, "", 20_000, true));
    let sent = listener.drain();
    assert_eq!(sent.len(), 2);
    assert!(sent[1].bytes.contains(r#""position":10000,"complete":true"#));
}

// covers: L6
#[test]
fn a_grapheme_that_arrives_in_two_chunks_goes_out_in_one() {
    let mut listener = Listener::new(cutting_at(&[Word]));
    let heard = stream(&mut listener, &["👩", "\u{200d}👧 ", "\u{301}x", " y z"]);
    assert_eq!(
        heard,
        ["3 0:👩\u{200d}👧 \u{301}x y  word"],
        "nothing is cut before a combining mark"
    );
}

/// Text that is awkward to cut.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-zA-Z]{1,7}",
        Just(" ".into()),
        Just(". ".into()),
        Just("\n\n".into()),
        Just("\r\n".into()),
        Just("e\u{301}".into()),
        Just("👩\u{200d}👧\u{200d}👦".into()),
        Just("🇩🇪🇫🇷".into()),
        Just("你好。".into()),
        Just("สวัสดี".into()),
        Just("नमस्ते".into()),
        Just("각".into()),
        "\\PC{0,4}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces: Vec<String>| pieces.concat())
}

fn chunked(text: &str, sizes: &[usize]) -> Vec<String> {
    let mut rest: Vec<char> = text.chars().collect();
    let mut chunks = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        chunks.push(rest.drain(..(*size).min(rest.len())).collect());
    }
    chunks
}

fn boundaries() -> impl Strategy<Value = Vec<CoalesceBoundary>> {
    prop::sample::subsequence(CoalesceBoundary::ALL.to_vec(), 1..=5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    // covers: H7, H17, T17, T18, D15, D19, D20, L6, I19
    #[test]
    fn however_text_is_chunked_and_cut_it_reassembles(
        text in texts(),
        sizes in prop::collection::vec(1usize..9, 1..5),
        list in boundaries(),
        rate in prop::option::of(1u32..20),
        wait in 0u64..700,
    ) {
        let terms = Terms { rate, ..cutting_at(&list) };
        let mut listener = Listener::new(terms);
        let (mut position, mut sent, mut number) = (0, Vec::new(), 0);
        let chunks = chunked(&text, &sizes);
        for piece in chunks.iter().map(String::as_str).chain([""]) {
            number += 1;
            let complete = number as usize == chunks.len() + 1;
            listener.offer(chunk(1, number, piece, position, complete));
            position += piece.chars().count() as u64;
            sent.extend(listener.drain());
            listener.now = at(listener.now.as_micros() / 1000 + wait);
        }
        sent.extend(listener.wait());
        let (mut heard, mut last, mut ended) = (String::new(), 0, false);
        for delivery in &sent {
            let event = Event::parse(delivery.bytes.as_bytes()).unwrap();
            let Payload::OutputStreaming(output) = event.payload() else { panic!() };
            prop_assert_eq!(output.position.get(), heard.chars().count() as u64);
            prop_assert!(!ended, "nothing follows the end");
            ended = output.complete;
            heard.push_str(output.chunk.as_str());
            let number = event.envelope().sequence_number.unwrap().get();
            prop_assert!(number > last, "order is kept, and no id is used twice");
            last = number;
        }
        prop_assert_eq!(heard, text);
        prop_assert!(ended);
    }

    // covers: L6, D19
    #[test]
    fn no_cut_of_ours_lies_inside_a_grapheme(
        text in texts(),
        sizes in prop::collection::vec(1usize..9, 1..5),
        cut in prop::sample::select(vec![Word, Sentence, Paragraph]),
    ) {
        let mut listener = Listener::new(cutting_at(&[cut, Completion]));
        let mut heard = Vec::new();
        let mut position = 0;
        for (number, piece) in chunked(&text, &sizes).iter().enumerate() {
            listener.offer(chunk(1, number as u64 + 1, piece, position, false));
            position += piece.chars().count() as u64;
            heard.extend(listener.drain());
        }
        let graphemes = icu_segmenter::GraphemeClusterSegmenter::new();
        let ends: Vec<usize> = graphemes.segment_str(&text).collect();
        let mut length = 0;
        for delivery in &heard {
            let event = Event::parse(delivery.bytes.as_bytes()).unwrap();
            let Payload::OutputStreaming(output) = event.payload() else { panic!() };
            length += output.chunk.as_str().len();
            prop_assert!(ends.contains(&length), "cut at {length} in {text:?}");
        }
    }
}
