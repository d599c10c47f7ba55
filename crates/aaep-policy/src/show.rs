//! Arguments in words. Whatever stands in an argument is set apart from our own words, and cannot
//! be taken for them: text is in quotes it cannot close, invisible and silent characters are
//! written out, secrets are left out, and what is shortened says so.

use std::borrow::Cow;

use aaep_types::json::{Members, Raw, elements};
use aaep_types::{deception, secret};
use icu_segmenter::GraphemeClusterSegmenter;

use crate::arguments::{Arguments, members_of};
use crate::decimal::Decimal;
use crate::words::Words;

/// Characters of one text that are shown.
const MAX_TEXT: usize = 160;
/// Characters of a name that are shown.
const MAX_NAME: usize = 48;
/// Characters of a number that are shown.
const MAX_NUMBER: usize = 48;
/// Things of one list or object that are shown.
const MAX_ITEMS: usize = 12;
/// Levels of nesting that are shown.
const MAX_LEVELS: usize = 4;

/// Writes values until there is no room left.
pub(crate) struct Show {
    out: Words,
    left: usize,
}

impl Show {
    /// With room for about so many characters.
    pub(crate) fn new(room: usize) -> Self {
        Self { out: Words::default(), left: room }
    }

    pub(crate) fn finish(self) -> Words {
        self.out
    }

    /// Our own words.
    fn say(&mut self, words: &str) {
        self.out.ours(words);
        self.left = self.left.saturating_sub(words.chars().count());
    }

    /// What an argument says.
    fn tell(&mut self, text: &str) {
        self.out.theirs(text);
        self.left = self.left.saturating_sub(text.chars().count());
    }

    /// All arguments of a call: `amount: 40.00, recipient: "bob"`.
    pub(crate) fn arguments(&mut self, arguments: &Arguments<'_>) {
        match arguments {
            Arguments::None => self.say("no arguments"),
            Arguments::Named(members) if members.is_empty() => self.say("no arguments"),
            Arguments::Named(members) => self.members(members, 1),
            Arguments::Other(value) => self.value(*value, 1),
        }
    }

    /// The value of an argument; one whose name says that it is a secret is not shown.
    pub(crate) fn named(&mut self, name: &str, value: Raw<'_>) {
        self.named_at(name, value, 1);
    }

    fn named_at(&mut self, name: &str, value: Raw<'_>, level: usize) {
        // enforces: T14
        match secret::names_secret(name) {
            Some(kind) if !matches!(value, Raw::Null | Raw::Bool(_)) => {
                self.say(kind.replacement())
            }
            _ => self.value(value, level),
        }
    }

    fn value(&mut self, value: Raw<'_>, level: usize) {
        match value {
            Raw::Null => self.say("nothing"),
            Raw::Bool(true) => self.say("true"),
            Raw::Bool(false) => self.say("false"),
            Raw::Number(number) => self.number(number),
            Raw::String(string) => self.text(&string.decode()),
            Raw::Array(_) if level > MAX_LEVELS => self.say("(a list)"),
            Raw::Object(_) if level > MAX_LEVELS => self.say("(more inside)"),
            Raw::Array(text) => self.list(&elements(text), level),
            Raw::Object(_) => {
                let members = members_of(value);
                if members.is_empty() {
                    return self.say("(nothing inside)");
                }
                self.say("(");
                self.members(&members, level + 1);
                self.say(")");
            }
        }
    }

    fn number(&mut self, number: &str) {
        if number.len() <= MAX_NUMBER {
            return self.tell(number);
        }
        let begin = &number[..MAX_NUMBER];
        self.tell(&format!("{begin}… (the first {MAX_NUMBER} of {} characters)", number.len()));
    }

    /// A text; a plain number in a string is shown like a number.
    fn text(&mut self, text: &str) {
        if text.len() <= MAX_NUMBER && Decimal::parse_plain(text).is_some() {
            return self.tell(text);
        }
        let text = secret::redact(text);
        let shown = quoted(&text, MAX_TEXT.min(self.left));
        self.tell(&shown);
    }

    fn list(&mut self, items: &[Raw<'_>], level: usize) {
        match items.len() {
            0 => return self.say("(an empty list)"),
            1 => self.say("(1 item: "),
            count => self.say(&format!("({count} items: ")),
        }
        self.several(items.iter(), |show, item| show.value(*item, level + 1));
        self.say(")");
    }

    fn members(&mut self, members: &Members<'_>, level: usize) {
        self.several(members.iter(), |show, member| {
            show.tell(&name(&member.name));
            show.say(": ");
            show.named_at(&member.name, member.value, level);
        });
    }

    fn several<T>(&mut self, items: impl Iterator<Item = T>, show: impl Fn(&mut Self, T)) {
        let mut more = 0;
        for (index, item) in items.enumerate() {
            if index > 0 && (self.left == 0 || index >= MAX_ITEMS) {
                more += 1;
                continue;
            }
            if index > 0 {
                self.say(", ");
            }
            show(self, item);
        }
        if more > 0 {
            self.say(&format!(", and {more} more"));
        }
    }
}

/// A name: bare if it is one word for programs, else in quotes.
pub(crate) fn name(text: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-/:@".contains(&byte);
    if (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(plain) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(quoted(&secret::redact(text), MAX_NAME))
    }
}

/// Text in quotes, with room for so many characters; what is left out is said after them.
fn quoted(text: &str, room: usize) -> String {
    let (body, whole) = visible(text, room.max(8));
    let length = || text.chars().count();
    let body = if runs_right_to_left(&body) { format!("\u{2068}{body}\u{2069}") } else { body };
    if whole < text.len() {
        let shown = text[..whole].chars().count();
        format!("\"{body}…\" (the first {shown} of {} characters)", length())
    } else if is_like_prose(text) {
        // A listener hears no quotes; the length tells where the text ends.
        format!("\"{body}\" ({} characters)", length())
    } else {
        format!("\"{body}\"")
    }
}

/// The beginning of a text with everything in it visible, and how many bytes of it that is. Whole
/// characters as people see them are taken or left (rule L6).
fn visible(text: &str, room: usize) -> (String, usize) {
    // enforces: L6
    let mut out = String::new();
    let (mut used, mut taken) = (0, 0);
    for end in GraphemeClusterSegmenter::new().segment_str(text).skip(1) {
        let cluster = escaped(&text[taken..end], &text[..taken], &text[end..]);
        used += cluster.chars().count();
        if used > room {
            break;
        }
        out.push_str(&cluster);
        taken = end;
    }
    (out, taken)
}

/// One character as people see them, between what stands before and after it.
fn escaped(cluster: &str, before: &str, after: &str) -> String {
    let mut out = String::with_capacity(cluster.len());
    let mut previous = before.chars().next_back();
    let mut rest = cluster.chars();
    while let Some(sign) = rest.next() {
        let next = rest.clone().next().or_else(|| after.chars().next());
        push_visible(&mut out, sign, previous, next);
        previous = Some(sign);
    }
    out
}

/// Everything that is, or is heard as, the quotes that we put around a text.
const QUOTES: [char; 15] =
    ['"', '“', '”', '„', '‟', '«', '»', '″', '‶', '〝', '〞', '〟', '＂', '❝', '❞'];

fn push_visible(out: &mut String, sign: char, previous: Option<char>, next: Option<char>) {
    match sign {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if QUOTES.contains(&sign) => out.extend(['\\', sign]),
        _ if deception::is_hidden(sign, previous, next) => out.extend(sign.escape_unicode()),
        _ => out.push(sign),
    }
}

fn runs_right_to_left(text: &str) -> bool {
    !text.is_ascii() && deception::runs_both_ways(&format!("a{text}"))
}

/// Whether a text could be heard as a sentence and the beginning of another.
fn is_like_prose(text: &str) -> bool {
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        let ends = matches!(sign, '.' | '!' | '?' | ':' | ';' | '。' | '！' | '？' | '؟' | '।');
        if sign == '\n' || ends && signs.peek().is_some_and(|next| next.is_whitespace()) {
            return true;
        }
        if matches!(sign, '(' | ')') || QUOTES.contains(&sign) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str) -> String {
        let mut show = Show::new(400);
        show.arguments(&Arguments::read(json).unwrap());
        show.finish().finish()
    }

    #[test]
    fn values_are_readable() {
        assert_eq!(
            shown(r#"{"amount":"40.00","to":"bob","urgent":true,"note":null,"count":1e3}"#),
            r#"amount: 40.00, to: "bob", urgent: true, note: nothing, count: 1e3"#
        );
        assert_eq!(
            shown(r#"{"files":["a.txt","b.txt"],"options":{"force":true,"tags":[]},"x":{}}"#),
            r#"files: (2 items: "a.txt", "b.txt"), options: (force: true, tags: (an empty list)), x: (nothing inside)"#
        );
        assert_eq!(shown("{}"), "no arguments");
        assert_eq!(shown("[1,\"a\"]"), "(2 items: 1, \"a\")");
        assert_eq!(shown("[[[[[1]]]]]"), "(1 item: (1 item: (1 item: (1 item: (a list)))))");
    }

    // covers: D34
    #[test]
    fn text_cannot_close_its_quotes_or_hide_anything() {
        assert_eq!(
            shown(r#"["bob\" (safe) \""]"#),
            r#"(1 item: "bob\" (safe) \"" (13 characters))"#
        );
        assert_eq!(shown(r#"["a\\"]"#), r#"(1 item: "a\\")"#);
        assert_eq!(shown("[\"pay \u{202e}005\"]"), "(1 item: \"pay \\u{202e}005\")");
        assert_eq!(shown("[\"a\\u0000b\\u001bc\"]"), "(1 item: \"a\\u{0}b\\u{1b}c\")");
        assert_eq!(shown("[\"a\u{200b}b\u{200d}c\"]"), "(1 item: \"a\\u{200b}b\\u{200d}c\")");
        assert_eq!(shown("[\"\u{301}x\"]"), "(1 item: \"\\u{301}x\")");
        assert_eq!(shown("[\"„Haus“\"]"), "(1 item: \"\\„Haus\\“\" (6 characters))");
        assert_eq!(shown("[\"line\\nline\"]"), "(1 item: \"line\\nline\" (9 characters))");
        assert_eq!(shown("[\"it's fine\"]"), "(1 item: \"it's fine\")");
    }

    #[test]
    fn ordinary_text_of_any_script_stays_as_it_is() {
        for text in ["日本語", "Ẹ káàárọ̀", "👨‍👩‍👧", "क्‍ष", "größer", "x\u{a0}y"]
        {
            assert_eq!(shown(&format!("[\"{text}\"]")), format!("(1 item: \"{text}\")"));
        }
        assert_eq!(shown("[\"می‌خواهم\"]"), "(1 item: \"\u{2068}می‌خواهم\u{2069}\")");
    }

    // covers: L6
    #[test]
    fn long_values_say_how_long_they_are_and_are_cut_between_characters() {
        let long = "x".repeat(500);
        let text = shown(&format!("[\"{long}\"]"));
        assert!(text.contains("xxx…\" (the first 160 of 500 characters)"), "{text}");
        let families = "👨‍👩‍👧".repeat(100);
        let text = shown(&format!("[\"{families}\"]"));
        assert!(text.contains(&format!("{}…\" (the first 160 of 500", "👨‍👩‍👧".repeat(32))), "{text}");
        let number = "1".repeat(60);
        assert!(shown(&format!("[{number}]")).contains("… (the first 48 of 60 characters)"));
        let many = format!("[{}1]", "1,".repeat(99));
        assert!(shown(&many).ends_with("1, and 88 more)"));
        // Not one of them, however many marks it wears, breaks the bound.
        let marks = format!("[\"a{}\"]", "\u{301}".repeat(5000));
        assert!(shown(&marks).contains("(the first 0 of 5001 characters)"));
    }

    // covers: T14
    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(shown(r#"{"password":"x"}"#), "password: [password removed]");
        assert_eq!(shown(r#"{"api_key":{"a":1}}"#), "api_key: [key removed]");
        assert_eq!(shown(r#"{"secret":true}"#), "secret: true");
        assert_eq!(
            shown(r#"{"note":"card 4111 1111 1111 1111"}"#),
            r#"note: "card [card number removed]""#
        );
    }

    #[test]
    fn names_that_are_no_plain_words_are_set_apart_too() {
        assert_eq!(shown(r#"{"and then nothing":1}"#), r#""and then nothing": 1"#);
        assert_eq!(shown(r#"{"":1}"#), r#""": 1"#);
    }
}
