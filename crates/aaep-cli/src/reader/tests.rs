use std::io;

use aaep_types::json::Members;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// Gives a few bytes at a time, as a slow pipe does.
struct Drip<'a> {
    rest: &'a [u8],
    sizes: std::iter::Cycle<std::vec::IntoIter<usize>>,
}

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes.next().unwrap_or(1).max(1);
        let count = size.min(buffer.len()).min(self.rest.len());
        let (now, later) = self.rest.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}

/// A value that can be kept and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    line: u64,
    text: String,
    stray: Option<Stray>,
}

fn seen(line: u64, text: &str) -> Seen {
    Seen { line, text: text.to_owned(), stray: None }
}

fn stray(line: u64, text: &str, stray: Stray) -> Seen {
    Seen { stray: Some(stray), ..seen(line, text) }
}

fn read_all<R: Read>(mut reader: Reader<R>, is_whole: fn(&[u8]) -> bool) -> Vec<Seen> {
    let mut all = Vec::new();
    while let Some(value) = reader.next(is_whole).unwrap() {
        let text = match value.text {
            Text::Message(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Text::TooLarge => "too large".to_owned(),
            Text::Nothing => "nothing".to_owned(),
        };
        all.push(Seen { line: value.line, text, stray: value.stray });
    }
    all
}

fn is_object(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).ok();
    text.is_some_and(|text| matches!(Members::whole(text, 64), Ok(Some(_))))
}

/// Reads with the usual buffer, and makes sure that one byte at a time gives the same.
fn values_up_to(max_bytes: usize, input: &[u8]) -> Vec<Seen> {
    let values = read_all(Reader::new(input, max_bytes), is_object);
    let drip = Drip { rest: input, sizes: vec![1].into_iter().cycle() };
    let dripped = read_all(Reader::with_chunk(drip, max_bytes, 4), |_| false);
    assert_eq!(values, dripped, "one byte at a time");
    values
}

fn values(input: &str) -> Vec<Seen> {
    values_up_to(1000, input.as_bytes())
}

#[test]
fn values_stand_on_lines_of_their_own_on_one_line_or_on_many() {
    assert_eq!(values("{\"a\":1}\n\n{\"b\":2}"), [seen(1, "{\"a\":1}"), seen(3, "{\"b\":2}")]);
    assert_eq!(values("{}{} {}\r\n"), [seen(1, "{}"), seen(1, "{}"), seen(1, "{}")]);
    let pretty = "{\n  \"a\": [\n    {}\n  ]\n}";
    assert_eq!(values(&format!("{pretty}\n{pretty}\n")), [seen(1, pretty), seen(6, pretty)]);
}

#[test]
fn brackets_and_quotes_in_strings_mean_nothing() {
    let text = r#"{"a":"}\"]\\","b":"{["}"#;
    assert_eq!(values(&format!("{text}{text}")), [seen(1, text), seen(1, text)]);
}

#[test]
fn an_input_without_values_gives_none() {
    for input in ["", " \n\t\r\n", "[]", " [ ] \n"] {
        assert_eq!(values(input), [], "{input:?}");
    }
}

#[test]
fn one_array_is_taken_apart() {
    assert_eq!(values("[{\"a\":[1]},\n {} ]\n"), [seen(1, "{\"a\":[1]}"), seen(2, "{}")]);
    assert_eq!(
        values("[1, \"a,]\\\"\" , [2], x]"),
        [seen(1, "1"), seen(1, "\"a,]\\\"\""), seen(1, "[2]"), seen(1, "x")]
    );
}

#[test]
fn an_array_that_is_not_the_first_value_is_one_value() {
    assert_eq!(values("{}\n[1,\n2]"), [seen(1, "{}"), seen(2, "[1,\n2]")]);
}

#[test]
fn what_does_not_belong_around_the_elements_of_an_array_is_said() {
    assert_eq!(values("[{} {}]"), [seen(1, "{}"), stray(1, "{}", Stray::NoComma)]);
    assert_eq!(values("[,{}]"), [stray(1, "{}", Stray::ExtraComma)]);
    assert_eq!(values("[{},\n]"), [seen(1, "{}"), stray(2, "nothing", Stray::ExtraComma)]);
    assert_eq!(values("[{}\n"), [seen(1, "{}"), stray(2, "nothing", Stray::Unclosed)]);
    assert_eq!(values("["), [stray(1, "nothing", Stray::Unclosed)]);
    assert_eq!(values("[{}] {}{}")[1..], [stray(1, "{}", Stray::AfterArray), seen(1, "{}")]);
}

// covers: E1
#[test]
fn a_byte_order_mark_is_said_with_the_first_value() {
    assert_eq!(values("\u{feff}{}{}"), [stray(1, "{}", Stray::ByteOrderMark), seen(1, "{}")]);
    assert_eq!(values("\u{feff}"), [stray(1, "nothing", Stray::ByteOrderMark)]);
}

#[test]
fn what_begins_like_no_message_ends_with_its_line() {
    assert_eq!(
        values("hello {}\n{}\n12 13\n"),
        [seen(1, "hello {}"), seen(2, "{}"), seen(3, "12 13")]
    );
    assert_eq!(values("}\n{}"), [seen(1, "}"), seen(2, "{}")]);
}

#[test]
fn a_line_that_was_cut_short_does_not_swallow_the_next() {
    let next = "{\"type\":\"x\",\"list\":[{\"a\":\"b\"}]}";
    for length in 1..next.len() {
        let cut = &next[..length];
        let input = format!("{cut}\n{next}\n{next}\n");
        assert_eq!(values(&input), [seen(1, cut), seen(2, next), seen(3, next)], "{cut}");
        let last = format!("{next}\n{cut}\n{next}");
        assert_eq!(values(&last), [seen(1, next), seen(2, cut), seen(3, next)], "{cut}");
    }
}

#[test]
fn a_cut_element_does_not_swallow_the_array() {
    let input = "[\n{\"a\":\"b\n{\"c\":1},\n{\"d\":2}\n]";
    assert_eq!(values(input), [seen(2, "{\"a\":\"b"), seen(3, "{\"c\":1}"), seen(4, "{\"d\":2}")]);
}

#[test]
fn a_broken_value_of_many_lines_ends_with_its_brackets() {
    let broken = "{\n  \"a\": \"no quote,\n  \"b\": 1\n  \"c\": oops,,\n}";
    assert_eq!(values(&format!("{broken}\n{{}}")), [seen(1, broken), seen(6, "{}")]);
}

// covers: E21
#[test]
fn a_value_beyond_the_limit_is_skipped_and_reading_goes_on() {
    let large = format!("{{\"a\":\"{}\"}}", "}{".repeat(5_000));
    for limit in [1, 2, 7, 500] {
        let input = format!("{large}\n{{}}{large}{{}}\n");
        let sizes: Vec<_> = values_up_to(limit, input.as_bytes())
            .iter()
            .map(|value| (value.line, value.text.len()))
            .collect();
        let small = if limit < 2 { "too large".len() } else { 2 };
        assert_eq!(sizes, [(1, 9), (2, small), (2, 9), (2, small)], "{limit}");
    }
}

#[test]
fn a_value_of_exactly_the_limit_is_read() {
    let value = "{\"abc\":12}";
    assert_eq!(values_up_to(value.len(), value.as_bytes()), [seen(1, value)]);
    assert_eq!(
        values_up_to(value.len(), b"0123456789\n{}"),
        [seen(1, "0123456789"), seen(2, "{}")]
    );
    assert_eq!(values_up_to(value.len() - 1, value.as_bytes()), [seen(1, "too large")]);
}

#[test]
fn the_buffer_grows_to_the_limit_and_no_further() {
    let input = format!("{{\"a\":\"{}\"}}\n{{}}", "x".repeat(300_000));
    let mut reader = Reader::with_chunk(input.as_bytes(), 10_000, 64);
    while reader.next(|_| false).unwrap().is_some() {}
    assert!(reader.buffer.len() <= 10_000 + 64, "{}", reader.buffer.len());
}

#[test]
fn hostile_openings_are_read_in_linear_time() {
    // Each of these lines could be the rest of the one before, or a message of its own.
    let input = "{\"a\":\n".repeat(20_000);
    let mut reader = Reader::new(input.as_bytes(), 1 << 20);
    let mut count = 0;
    while reader.next(is_object).unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 20_000);
}

#[test]
fn a_reader_says_when_it_has_to_wait() {
    let mut reader = Reader::new(&b"{}{}"[..], 10);
    assert!(reader.next(|_| false).unwrap().is_some() && !reader.is_drained());
    assert!(reader.next(|_| false).unwrap().is_some() && reader.is_drained());
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\n",
        "\r\n",
        " ",
        ",",
        ":",
        "a",
        "1",
        "{}",
        "\n{",
        "\n}",
        "\"a\"",
        "{\"a\":1}\n",
        "{\"a\":\"",
        "é",
        "\u{feff}",
        "{\"a\":{\"b\":[1,\"x\"]}}\n",
    ]);
    vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn the_values_are_the_same_whatever_the_chunks(
        input in pieces(),
        array in any::<bool>(),
        max_bytes in 1..60_usize,
        chunk in 3..20_usize,
        sizes in vec(1..9_usize, 1..5),
    ) {
        let input = if array { format!("[{input}") } else { input };
        let at_once = read_all(Reader::new(input.as_bytes(), max_bytes), |_| false);
        let lines = read_all(Reader::new(input.as_bytes(), max_bytes), is_object);
        prop_assert_eq!(&at_once, &lines);
        let drip = Drip { rest: input.as_bytes(), sizes: sizes.into_iter().cycle() };
        let dripped = read_all(Reader::with_chunk(drip, max_bytes, chunk), is_object);
        prop_assert_eq!(&at_once, &dripped);
    }

    #[test]
    fn sound_objects_are_found_as_they_were_written(
        objects in vec(("[a-z{}\\[\\]:,]{0,9}", 0..5_usize), 1..20),
        between in prop::sample::select(vec!["", "\n", " ", "\r\n", "\n\n"]),
    ) {
        let texts: Vec<String> = objects
            .iter()
            .map(|(word, depth)| {
                let (open, close) = ("{\"k\":[".repeat(*depth), "]}".repeat(*depth));
                format!("{{\"a\":{open}\"{word}\"{close}}}")
            })
            .collect();
        let read = read_all(Reader::new(texts.join(between).as_bytes(), 1000), is_object);
        let found: Vec<_> = read.into_iter().map(|value| value.text).collect();
        prop_assert_eq!(&found, &texts);
        let array = format!("[{}{between}]", texts.join(&format!("{between},{between}")));
        let read = read_all(Reader::new(array.as_bytes(), 1000), is_object);
        prop_assert!(read.iter().all(|value| value.stray.is_none()));
        let found: Vec<_> = read.into_iter().map(|value| value.text).collect();
        prop_assert_eq!(&found, &texts);
    }
}
