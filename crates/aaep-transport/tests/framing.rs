//! Framing under any chunking and any text.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use std::time::Duration;

use aaep_transport::sse::{self, Frame};
use aaep_transport::{TooLong, length};
use bytes::BytesMut;
use proptest::prelude::*;

/// Cuts bytes into pieces as the numbers say, again and again.
fn cut<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut sizes = sizes.iter().copied().cycle();
    let mut pieces = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(1).clamp(1, rest.len());
        let (piece, after) = rest.split_at(size);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

type ReadFrame = Result<Frame, TooLong>;

fn events(bytes: &[u8], sizes: &[usize], max: usize) -> Vec<ReadFrame> {
    let mut decoder = sse::Decoder::new(max);
    let mut found = Vec::new();
    for piece in cut(bytes, sizes) {
        decoder.push(piece);
        found.extend(std::iter::from_fn(|| decoder.next()));
    }
    found
}

fn frame(name: Option<&str>, id: Option<&str>, data: &str) -> ReadFrame {
    Ok(Frame { name: name.map(Into::into), id: id.map(Into::into), data: data.into() })
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1_usize..40, 1..10)
}

/// Text that means to break out.
fn hostile() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "\n",
        "\r",
        "\r\n",
        "\n\n",
        "data: ",
        "event: evil",
        "id: 7",
        "retry: 1",
        ":",
        " ",
        "\0",
        "{\"a\":1}",
        "\u{feff}",
        "é",
        "\u{2028}",
        "\u{85}",
        "x",
    ]);
    prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())
}

fn one_line(text: &str) -> String {
    text.replace(['\r', '\n', '\0'], " ")
}

fn normal_lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

proptest! {
    // covers: W1
    #[test]
    fn events_survive_any_chunking(
        texts in prop::collection::vec("[ -~é✓]{0,60}", 1..8),
        sizes in sizes(),
    ) {
        let mut bytes = BytesMut::new();
        for (number, text) in texts.iter().enumerate() {
            sse::write_frame(&mut bytes, Some("aaep.event"), Some(&number.to_string()), text);
            bytes.extend_from_slice(sse::KEEP_ALIVE.as_bytes());
        }
        let expected: Vec<_> = texts.iter().enumerate()
            .map(|(number, text)| frame(Some("aaep.event"), Some(&number.to_string()), text))
            .collect();
        prop_assert_eq!(events(&bytes, &sizes, 1000), expected);
    }

    // covers: W1, D27
    #[test]
    fn hostile_text_yields_exactly_one_event(
        name in prop::option::of(hostile()),
        id in prop::option::of(hostile()),
        data in hostile(),
        sizes in sizes(),
    ) {
        let mut bytes = BytesMut::new();
        sse::write_frame(&mut bytes, name.as_deref(), id.as_deref(), &data);
        let name = name.as_deref().map(one_line).filter(|name| !name.is_empty());
        let id = id.as_deref().map(one_line);
        let expected = frame(name.as_deref(), id.as_deref(), &normal_lines(&data));
        prop_assert_eq!(events(&bytes, &sizes, 1000), [expected]);
    }

    #[test]
    fn any_bytes_are_read_alike_in_any_chunking(
        bytes in prop::collection::vec(
            prop::sample::select(b"data: idevntry\r\n\n\n:7\0\xEF\xBB\xBF\xFF".to_vec()), 0..300),
        sizes in sizes(),
        max in 0_usize..40,
    ) {
        prop_assert_eq!(events(&bytes, &sizes, max), events(&bytes, &[usize::MAX], max));
    }

    // covers: W1, W10
    #[test]
    fn prefixed_messages_survive_any_chunking(
        messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 1..8),
        sizes in sizes(),
    ) {
        let mut bytes = BytesMut::new();
        for message in &messages {
            length::encode(&mut bytes, message).unwrap();
        }
        let mut decoder = length::Decoder::new(50);
        let mut found = Vec::new();
        for piece in cut(&bytes, &sizes) {
            decoder.push(piece);
            found.extend(std::iter::from_fn(|| decoder.next()));
        }
        let expected: Vec<_> = messages.into_iter()
            .map(|m| if m.len() > 50 { Err(TooLong { max: 50 }) } else { Ok(m.into()) })
            .collect();
        prop_assert_eq!(found, expected);
        prop_assert!(!decoder.is_in_message());
    }
}

// covers: D27
#[test]
fn an_event_looks_as_published_clients_expect_it() {
    let mut bytes = BytesMut::new();
    sse::write_frame(&mut bytes, None, Some("evt_1"), r#"{"a":1}"#);
    assert_eq!(&bytes[..], b"id: evt_1\ndata: {\"a\":1}\n\n");
    bytes.clear();
    sse::write_frame(&mut bytes, Some("aaep.event"), None, "x");
    assert_eq!(&bytes[..], b"event: aaep.event\ndata: x\n\n");
}

#[test]
fn all_that_the_format_allows_is_read() {
    let cases: [(&[u8], &[ReadFrame]); 8] = [
        (b"\xEF\xBB\xBFdata: a\n\n", &[frame(None, None, "a")]),
        (b"data:a\rdata:  b\r\r", &[frame(None, None, "a\n b")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", &[frame(None, None, "a"), frame(None, None, "b")]),
        (b": comment\ndata\nunknown: x\nevent: e\n\n", &[frame(Some("e"), None, "")]),
        (b"id: 1\n\nevent: lost\n\ndata: a\n\n", &[frame(None, None, "a")]),
        (b"id: 1\0\nid\ndata: a\n\n", &[frame(None, Some(""), "a")]),
        (b"data: \xFF\n\n", &[frame(None, None, "\u{fffd}")]),
        (b"data: cut off", &[]),
    ];
    for (bytes, expected) in cases {
        for sizes in [1, 2, 3, 1000] {
            assert_eq!(events(bytes, &[sizes], 100), expected, "{}", bytes.escape_ascii());
        }
    }
}

// covers: W7
#[test]
fn the_last_id_and_the_retry_time_are_kept() {
    let mut decoder = sse::Decoder::new(10);
    decoder.push(b"id: 1\ndata: a\n\nretry: 250\nretry: x1\n\ndata: b\n\nid: 2\ndata: unfinished");
    assert_eq!(decoder.next(), Some(frame(None, Some("1"), "a")));
    assert_eq!(decoder.next(), Some(frame(None, None, "b")));
    assert_eq!(decoder.next(), None);
    assert_eq!(decoder.last_id(), Some("1"));
    assert_eq!(decoder.retry(), Some(Duration::from_millis(250)));
}

// covers: W6
#[test]
fn an_event_that_is_too_long_is_reported_once_and_the_next_is_read() {
    let long =
        [b"id: 7\ndata: ".as_slice(), &[b'x'; 9000], b"\ndata: more\n\ndata: next\n\n"].concat();
    let many = b"data: 1234567\ndata: 1234567\ndata: 1234567\nid: 7\n\ndata: next\n\n".to_vec();
    for bytes in [long, many] {
        for sizes in [1, 7, 100_000] {
            let expected = [Err(TooLong { max: 10 }), frame(None, None, "next")];
            assert_eq!(events(&bytes, &[sizes], 10), expected);
        }
        let mut decoder = sse::Decoder::new(10);
        decoder.push(&bytes);
        while decoder.next().is_some() {}
        assert_eq!(decoder.last_id(), Some("7"), "who comes back must not be sent the same again");
    }
}

#[test]
fn endless_lines_take_no_memory() {
    for start in ["data: ", ": ", "event: ", "unknown", "data: x\ndata: "] {
        let mut decoder = sse::Decoder::new(1000);
        let peak = allocation_counter::measure(|| {
            decoder.push(start.as_bytes());
            for _ in 0..2000 {
                decoder.push(&[b'x'; 1024]);
                let _ = decoder.next();
            }
        });
        assert!(peak.bytes_max < 32 * 1024, "{start}: {} bytes", peak.bytes_max);
    }
}

#[test]
fn an_announced_length_takes_no_memory() {
    let mut decoder = length::Decoder::new(1000);
    let peak = allocation_counter::measure(|| {
        decoder.push(&[0xFF; 4]);
        assert_eq!(decoder.next(), Some(Err(TooLong { max: 1000 })));
        for _ in 0..2000 {
            decoder.push(&[b'x'; 1024]);
            assert_eq!(decoder.next(), None);
        }
    });
    assert!(peak.bytes_max < 1024, "{} bytes", peak.bytes_max);
    assert!(decoder.is_in_message());
}
