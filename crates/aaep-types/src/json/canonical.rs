//! The canonical form of a value (RFC 8785): one text, however the value was written.

use std::ops::ControlFlow;

use serde_json::Value;

use super::fault::{JsonFault, JsonFaultKind};
use super::marks::Marks;
use super::scan::{Raw, Scanner};
use super::walk::walk;

/// How deep a value may nest.
const DEPTH: usize = 64;

/// A value in canonical form: members sorted, numbers and escapes written in one way, no space.
/// Nothing at all stays nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Canonical(String);

impl Canonical {
    // enforces: D36
    /// The canonical form of a JSON text. Two texts have the same one only if they say the same:
    /// what two readers may read in two ways, and a number that a double does not hold exactly, is
    /// refused.
    pub fn of(json: &str) -> Result<Self, Box<JsonFault>> {
        if json.is_empty() {
            return Ok(Self::default());
        }
        if is_plainly_canonical(json.as_bytes()) {
            return Ok(Self(json.to_owned()));
        }
        let marks = Marks::of(json.as_bytes());
        let mut scanner = Scanner::new(json, marks.words(), DEPTH);
        scanner.skip_space();
        scanner.value()?;
        let ambiguity = scanner.ambiguity().cloned();
        if let Some(fault) = ambiguity.or_else(|| scanner.into_faults().into_iter().next()) {
            return Err(Box::new(fault));
        }
        check_numbers(json)?;
        // What was just scanned and walked to its end can be read and written.
        let unreadable = |_| Box::new(JsonFault { offset: 0, kind: JsonFaultKind::Unexpected });
        let value: Value = serde_json::from_str(json).map_err(unreadable)?;
        serde_json_canonicalizer::to_string(&value).map(Self).map_err(unreadable)
    }

    /// The text; empty for nothing.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// How deep what is recognised at a glance may nest.
const PLAIN_DEPTH: usize = 16;

/// Whether a text is its own canonical form, told at a glance, as most arguments that programs write
/// are: printable ASCII without escapes, names in order, whole numbers that a double holds, no space.
/// Reading and writing it took a sixth of a recovery; what is not recognised takes the long
/// way, to the same text.
fn is_plainly_canonical(json: &[u8]) -> bool {
    plain_value(json, PLAIN_DEPTH).is_some_and(<[u8]>::is_empty)
}

/// What follows a plain value.
fn plain_value(json: &[u8], depth: usize) -> Option<&[u8]> {
    match json.first()? {
        b'"' => plain_string(json).map(|(_, rest)| rest),
        b'{' => plain_object(&json[1..], depth.checked_sub(1)?),
        b'[' => plain_array(&json[1..], depth.checked_sub(1)?),
        b't' => json.strip_prefix(b"true"),
        b'f' => json.strip_prefix(b"false"),
        b'n' => json.strip_prefix(b"null"),
        _ => plain_number(json),
    }
}

/// A string's content, and what follows it.
fn plain_string(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = json.strip_prefix(b"\"")?;
    let end = text
        .iter()
        .position(|byte| !matches!(byte, b' '..=b'~') || matches!(byte, b'"' | b'\\'))?;
    let (text, rest) = text.split_at(end);
    Some((text, rest.strip_prefix(b"\"")?))
}

/// At most fifteen digits: every such number is a double, and written as it is.
fn plain_number(json: &[u8]) -> Option<&[u8]> {
    let digits = json.strip_prefix(b"-").unwrap_or(json);
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = digits.split_at(count);
    match number {
        [b'0'] if digits.len() == json.len() => Some(rest),
        [b'1'..=b'9', ..] if count <= 15 && !matches!(rest.first(), Some(b'.' | b'e' | b'E')) => {
            Some(rest)
        }
        _ => None,
    }
}

fn plain_array(mut json: &[u8], depth: usize) -> Option<&[u8]> {
    if let Some(rest) = json.strip_prefix(b"]") {
        return Some(rest);
    }
    loop {
        let rest = plain_value(json, depth)?;
        match rest.split_first()? {
            (b',', rest) => json = rest,
            (b']', rest) => return Some(rest),
            _ => return None,
        }
    }
}

fn plain_object(mut json: &[u8], depth: usize) -> Option<&[u8]> {
    if let Some(rest) = json.strip_prefix(b"}") {
        return Some(rest);
    }
    let mut before: Option<&[u8]> = None;
    loop {
        let (name, rest) = plain_string(json)?;
        // Each comes after the one before, so none comes twice.
        if before.is_some_and(|before| before >= name) {
            return None;
        }
        before = Some(name);
        let rest = plain_value(rest.strip_prefix(b":")?, depth)?;
        match rest.split_first()? {
            (b',', rest) => json = rest,
            (b'}', rest) => return Some(rest),
            _ => return None,
        }
    }
}

fn check_numbers(json: &str) -> Result<(), Box<JsonFault>> {
    let mut inexact = None;
    walk(json, DEPTH, |_, leaf| match leaf {
        Raw::Number(number) if !is_exact(number) => {
            inexact = Some(number);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    let offset = |number: &str| number.as_ptr().addr() - json.as_ptr().addr();
    match inexact {
        Some(number) => {
            Err(Box::new(JsonFault { offset: offset(number), kind: JsonFaultKind::UnsafeNumber }))
        }
        None => Ok(()),
    }
}

/// Whether the canonical text of a number names the same number. Otherwise two amounts that differ
/// in their last digit would be one action.
fn is_exact(number: &str) -> bool {
    let double = number.parse::<f64>().ok();
    let written = double.and_then(|double| serde_json_canonicalizer::to_string(&double).ok());
    written.is_some_and(|written| Decimal::of(number) == Decimal::of(&written))
}

/// A decimal number: its digits without zeros at either end, and the power of ten of the last one.
#[derive(PartialEq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    /// Takes a number that is written as JSON writes them.
    fn of(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = [whole, fraction].concat();
        let digits = all.trim_end_matches('0');
        let dropped = all.len() - digits.len();
        let digits = digits.trim_start_matches('0').to_owned();
        if digits.is_empty() {
            return Some(Self { negative: false, digits, exponent: 0 });
        }
        let exponent = exponent.parse::<i64>().ok()?;
        let exponent = exponent.checked_sub(fraction.len() as i64)?.checked_add(dropped as i64)?;
        Some(Self { negative, digits, exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(json: &str) -> String {
        Canonical::of(json).unwrap().as_str().to_owned()
    }

    fn refused(json: &str) -> (JsonFaultKind, usize) {
        let fault = Canonical::of(json).unwrap_err();
        (fault.kind, fault.offset)
    }

    // covers: D36
    #[test]
    fn the_same_value_has_one_text() {
        for same in [
            r#"{"x":"1","n":[1,2.5]}"#,
            " { \"n\" : [ 1.0 , 25e-1 ] ,\n\"x\" : \"\\u0031\" } ",
            r#"{"n":[10e-1,2.50],"x":"1"}"#,
        ] {
            assert_eq!(canonical(same), r#"{"n":[1,2.5],"x":"1"}"#);
        }
        assert_eq!(canonical("-0"), canonical("0.0e5"));
        assert_eq!(canonical(""), "");
        assert_ne!(canonical(r#""1""#), canonical("1"));
    }

    // covers: D36
    #[test]
    fn members_are_sorted_by_their_code_units_and_escapes_written_in_one_way() {
        // RFC 8785, section 3.2.3: the order of UTF-16, in which an emoji stands before U+FB33.
        let names = ["\\ufb33", "\\ud83d\\ude00", "\\u20ac", "\\u00f6", "\\u0080", "1", "\\r"];
        let object: Vec<String> = names.iter().map(|name| format!("\"{name}\":0")).collect();
        let sorted = ["\\r", "1", "\u{80}", "ö", "€", "😀", "\u{fb33}"];
        let wanted: Vec<String> = sorted.iter().map(|name| format!("\"{name}\":0")).collect();
        let object = format!("{{{}}}", object.join(","));
        assert_eq!(canonical(&object), format!("{{{}}}", wanted.join(",")));
        // Section 3.2.2.2.
        assert_eq!(
            canonical(r#""\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/\u007f\u0008""#),
            "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\u{7f}\\b\""
        );
    }

    // covers: D36
    #[test]
    fn what_is_recognised_at_a_glance_is_what_the_long_way_writes() {
        let plain = [
            "0",
            "7",
            "-7",
            "123456789012345",
            "true",
            "false",
            "null",
            "\"\"",
            "\"a b~\"",
            "[]",
            "{}",
            "[1,[],{}]",
            r#"{"":1,"A":[true],"a":{"b":"c"},"aa":null}"#,
        ];
        for json in plain {
            assert!(is_plainly_canonical(json.as_bytes()), "{json}");
        }
        let other = [
            "-0",
            "00",
            "01",
            "-",
            "1.0",
            "1e3",
            "1E3",
            "1234567890123456",
            "9007199254740993",
            " 1",
            "1 ",
            "[1 ]",
            "[1,]",
            "[,1]",
            "{\"a\":1,}",
            r#"{"b":1,"a":2}"#,
            r#"{"a":1,"a":2}"#,
            "\"\\n\"",
            "\"\u{7f}\"",
            "\"é\"",
            "\"\t\"",
            "\"",
            "[",
            "{",
            "{\"a\"}",
            "truex",
            "tru",
            "{}{}",
        ];
        for json in other {
            assert!(!is_plainly_canonical(json.as_bytes()), "{json}");
        }
        for json in plain {
            let value: Value = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json_canonicalizer::to_string(&value).unwrap(), json);
        }
        let deep = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        assert!(is_plainly_canonical(deep(PLAIN_DEPTH).as_bytes()));
        assert!(!is_plainly_canonical(deep(PLAIN_DEPTH + 1).as_bytes()));
        assert_eq!(canonical(&deep(60)), deep(60));
        assert!(!is_plainly_canonical("[".repeat(100_000).as_bytes()));
    }

    proptest::proptest! {
        // covers: D36
        #[test]
        fn nothing_else_is_recognised_at_a_glance(
            pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 1..9)
        ) {
            let json = pieces.concat();
            if is_plainly_canonical(json.as_bytes()) {
                let value: Value = serde_json::from_str(&json).unwrap();
                assert_eq!(serde_json_canonicalizer::to_string(&value).unwrap(), json);
            }
        }
    }

    const PIECES: [&str; 24] = [
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\"", "{\"a\":", ",\"b\":", "\"\"", "0",
        "1", "-", ".5", "e1", "12345678", "true", "null", " ", "\\", "é", "[]",
    ];

    // covers: D36
    #[test]
    fn numbers_are_written_as_the_rfc_writes_them() {
        // RFC 8785, appendix B: the bits of a double, and its text.
        for (bits, text) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(text.parse::<f64>().map(f64::abs), Ok(f64::from_bits(bits).abs()));
            assert_eq!(canonical(text), text, "{bits:x}");
        }
    }

    // covers: D36, E22
    #[test]
    fn what_cannot_be_carried_exactly_is_refused_where_it_stands() {
        for (json, offset) in [
            (r#"{"euros":9007199254740993}"#, 9),
            ("[0.10000000000000000001]", 1),
            ("[1, 333333333.33333329]", 4),
            ("1e999", 0),
            ("1e-999", 0),
            ("1e-99999999999999999999", 0),
        ] {
            assert_eq!(refused(json), (JsonFaultKind::UnsafeNumber, offset), "{json}");
        }
        assert_eq!(refused(r#"{"a":{"b":1,"\u0062":2}}"#).0, JsonFaultKind::DuplicateName);
        assert_eq!(refused(r#"{"b":1,"b":2}"#).0, JsonFaultKind::DuplicateName);
        assert_eq!(refused(r#"["\ud83d"]"#).0, JsonFaultKind::LoneSurrogate);
        assert_eq!(refused("{} {}").0, JsonFaultKind::Trailing);
        assert_eq!(refused(&"[".repeat(100_000)).0, JsonFaultKind::TooDeep);
    }
}
