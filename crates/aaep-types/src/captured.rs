//! Lines of a capture: a message, and when it arrived.
//!
//! A capture is JSON Lines. Each line is an object with three members, in this order: `captured_at`
//! (the wall clock at arrival), `offset_ms` (milliseconds since the capture began, by a clock that never
//! goes back, with three decimals), and `message`, byte for byte as it came, on one line. What was no
//! JSON is kept in `message` as a string.
//!
//! ```
//! use aaep_types::{Timestamp, captured};
//!
//! let at = Timestamp::parse("2026-05-24T14:22:11.342Z").unwrap();
//! let line = captured::write(at, 1_500, r#"{"type":"x"}"#);
//! let read = captured::read(line.as_bytes()).unwrap();
//! assert_eq!((read.offset_ms, read.message), (1.5, r#"{"type":"x"}"#));
//! // A line without these members is a message itself.
//! assert_eq!(captured::message(b"{}"), b"{}");
//! ```

use std::borrow::Cow;

use crate::json::{Members, Raw, Writer};
use crate::time::Timestamp;

/// How deep a captured message may nest before it is not looked into.
const DEPTH: usize = 66;

/// How every captured line begins: told apart from messages without reading either.
const BEGINNING: &[u8] = b"{\"captured_at\":";

/// One line of a capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Captured<'a> {
    /// The wall clock at arrival.
    pub captured_at: Timestamp,
    /// Milliseconds since the capture began.
    pub offset_ms: f64,
    /// What arrived.
    pub message: &'a str,
}

/// Reads a line of a capture; `None` if it is none.
pub fn read(line: &[u8]) -> Option<Captured<'_>> {
    if !line.starts_with(BEGINNING) {
        return None;
    }
    let text = std::str::from_utf8(line).ok()?;
    let members = Members::whole(text, DEPTH).ok().flatten()?;
    let captured_at = Timestamp::parse_loose(&members.text("captured_at")?).ok()?;
    let Raw::Number(offset) = members.find("offset_ms")? else { return None };
    let offset_ms = offset.parse::<f64>().ok().filter(|offset| offset.is_finite())?;
    let message = span(text, members.find("message")?)?;
    Some(Captured { captured_at, offset_ms, message: &text[message] })
}

/// The message of a line: what was captured, or the line itself.
pub fn message(line: &[u8]) -> &[u8] {
    read(line).map_or(line, |captured| captured.message.as_bytes())
}

/// Writes a line of a capture, without its end. Line ends between the parts of the message become
/// spaces; a text that is no JSON becomes a string.
pub fn write(captured_at: Timestamp, offset_us: u64, message: &str) -> String {
    let mut out = Writer::with_capacity(message.len() + 80);
    out.open('{');
    out.name("captured_at");
    out.string(&captured_at.to_string());
    out.comma();
    out.name("offset_ms");
    out.display(format_args!("{}.{:03}", offset_us / 1000, offset_us % 1000));
    out.comma();
    out.name("message");
    match Members::index(message.trim(), DEPTH) {
        // Inside of strings JSON has no line ends.
        Ok((Some(_), end)) if end == message.trim().len() => {
            out.json(&message.trim().replace(['\r', '\n'], " "));
        }
        _ => out.string(message),
    }
    out.close('}');
    out.finish()
}

/// The message with another reply token in place of its own, wherever its own stands as a whole string.
/// `other` is given the token.
pub fn replace_token(message: &str, other: impl FnOnce(&str) -> String) -> Cow<'_, str> {
    let Some(members) = Members::whole(message, DEPTH).ok().flatten() else {
        return message.into();
    };
    match members.find("reply_token") {
        Some(Raw::String(token)) if !token.raw.is_empty() => {
            let mut new = Writer::new();
            new.string(&other(&token.decode()));
            message.replace(&format!("\"{}\"", token.raw), &new.finish()).into()
        }
        _ => message.into(),
    }
}

/// The message with this stamp in place of its own, if it has one.
pub fn replace_timestamp(message: &str, stamp: Timestamp) -> Cow<'_, str> {
    let members = Members::whole(message, DEPTH).ok().flatten();
    let Some(place) = members.and_then(|members| span(message, members.find("timestamp")?)) else {
        return message.into();
    };
    format!("{}\"{stamp}\"{}", &message[..place.start], &message[place.end..]).into()
}

/// The message with this behind every string that is an event's or a session's id, so that it is a new
/// message for a listener that heard it before, and still refers to the messages that it did.
pub fn renumber(message: &str, behind: &str) -> String {
    let mut out = String::with_capacity(message.len() + 64);
    let mut parts = message.split('"');
    let mut is_string = false;
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let rest = part.strip_prefix("evt_").or_else(|| part.strip_prefix("sess_"));
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        is_string = !is_string;
        out.push('"');
        out.push_str(part);
        if rest.is_some_and(|rest| is_string && !rest.is_empty() && rest.bytes().all(plain)) {
            out.push_str(behind);
        }
        if part.ends_with('\\') && is_string {
            // The quote that follows belongs to the string.
            is_string = !is_string;
        }
    }
    out
}

/// The answer of a recording to a request for a subscription: everything is honoured, and nothing shaped.
pub fn accepted(subscription_id: &str, version: &str, capabilities: &str) -> String {
    let mut out = Writer::new();
    out.open('{');
    let members = [
        ("type", "subscription.accepted"),
        ("subscription_id", subscription_id),
        ("aaep_version", version),
        (
            "negotiation_notes",
            "A recording is played. Nothing of it is filtered, merged or held back.",
        ),
    ];
    for (name, value) in members {
        out.name(name);
        out.string(value);
        out.comma();
    }
    out.name("producer");
    out.json(r#"{"agent_id":"aaep-replay","agent_name":"A recording"}"#);
    out.comma();
    out.name("honored_capabilities");
    out.json(capabilities);
    out.close('}');
    out.finish()
}

/// Where a value stands in the text that it was found in.
fn span(text: &str, value: Raw<'_>) -> Option<std::ops::Range<usize>> {
    let (inside, quotes) = match value {
        Raw::Number(raw) | Raw::Array(raw) | Raw::Object(raw) => (raw, 0),
        Raw::String(string) => (string.raw, 1),
        Raw::Null | Raw::Bool(_) => return None,
    };
    let start = (inside.as_ptr() as usize).checked_sub(text.as_ptr() as usize)? - quotes;
    let end = start + inside.len() + 2 * quotes;
    text.is_char_boundary(start).then_some(start..end).filter(|range| range.end <= text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = "{\"type\":\"x\",\n \"timestamp\":\"2026-05-24T14:22:11.342Z\",\"reply_token\":\"rpl_1\",\"a\":[\"rpl_1\",\"rpl_12\"]}";

    fn at() -> Timestamp {
        Timestamp::parse("2026-05-24T14:22:11.342Z").unwrap()
    }

    #[test]
    fn a_line_holds_its_message_on_one_line_and_other_lines_are_messages() {
        let line = write(at(), 12_345_678, EVENT);
        assert!(!line.contains('\n') && line.starts_with("{\"captured_at\":\"2026"), "{line}");
        let read = read(line.as_bytes()).unwrap();
        assert_eq!(read.offset_ms, 12345.678);
        assert_eq!(read.message, EVENT.replace('\n', " "));
        for other in ["{}", "[]", "", "{\"captured_at\":1}", "{\"captured_at\":\"x\""] {
            assert_eq!(message(other.as_bytes()), other.as_bytes());
        }
    }

    #[test]
    fn what_is_no_json_is_kept_as_a_string() {
        for text in ["<html>\n\u{1b}", "{\"a\":", "12"] {
            let line = write(at(), 0, text);
            let read = read(line.as_bytes()).unwrap();
            assert_eq!(crate::json::string_value(read.message).as_deref(), Some(text));
        }
    }

    #[test]
    fn tokens_and_stamps_are_replaced_and_nothing_else() {
        let hidden = replace_token(EVENT, |token| format!("{token}_hidden"));
        assert!(hidden.contains("[\"rpl_1_hidden\",\"rpl_12\"]"), "{hidden}");
        let later = Timestamp::parse("2027-01-01T00:00:00.000Z").unwrap();
        let stamped = replace_timestamp(EVENT, later);
        assert_eq!(stamped, EVENT.replace("2026-05-24T14:22:11.342Z", "2027-01-01T00:00:00.000Z"));
        assert_eq!(replace_timestamp("{}", later), "{}");
    }
}
