//! Values that are secrets because of what stands before them: `password=…`, `"api_key": "…"`,
//! `--token …`, `Bearer …`, `https://user:…@host`.

use super::name::{named_at_end, names_secret};
use super::{Kind, SecretMatch, begins_word, is_mixed, is_removed, run_end};

pub(super) fn find(text: &str, found: &mut Vec<SecretMatch>) {
    assignments(text, found);
    flags(text, found);
    authorizations(text, found);
    addresses(text, found);
}

/// How a value was given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Given {
    /// In quotes, after `=`, or after a flag: as to a program.
    Exactly,
    /// After a colon, as people write too.
    Loosely,
}

/// `name=value`, `name: value`, with or without quotes around either.
fn assignments(text: &str, found: &mut Vec<SecretMatch>) {
    let mut at = 0;
    while let Some(next) = text[at..].find([':', '=']) {
        let sign = at + next;
        at = sign + 1;
        let equals = text.as_bytes()[sign] == b'=';
        if let Some(secret) = assigned(text, sign, equals) {
            at = at.max(secret.range.end);
            found.push(secret);
        }
    }
}

fn assigned(text: &str, sign: usize, equals: bool) -> Option<SecretMatch> {
    let before = text[..sign].trim_end_matches(' ');
    if before.len() + 2 < sign || before.ends_with(['=', '!', '<', '>', ':']) {
        return None;
    }
    let after = &text[sign + 1..];
    if after.starts_with(['=', ':']) || after.starts_with("//") {
        return None;
    }
    let name = before.trim_end_matches(['"', '\'', '`', '\\']);
    let kind = named_at_end(name)?;
    let value = Value::read(text, sign + 1, in_query(name));
    let given = if equals || value.quoted { Given::Exactly } else { Given::Loosely };
    value.judge(kind, given)
}

/// Whether the name stands in the query of an address, where `&` ends a value.
fn in_query(name: &str) -> bool {
    let part = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.');
    name.trim_end_matches(part).ends_with(['?', '&'])
}

/// A value and what surrounds it.
struct Value<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    quoted: bool,
    in_query: bool,
}

/// Bytes of a value in quotes; beyond them, the quotes are taken for something else.
const MAX_QUOTED: usize = 1024;

/// Bytes of a value by which it is judged.
const MAX_JUDGED: usize = 128;

/// Spaces before a value.
const MAX_SPACES: usize = 4;

impl<'a> Value<'a> {
    fn read(text: &'a str, from: usize, in_query: bool) -> Self {
        let spaces = text.as_bytes()[from..].iter().take(MAX_SPACES);
        let start = from + spaces.take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let slashes = text.as_bytes()[start..].iter().take(2);
        let open = start + slashes.take_while(|byte| **byte == b'\\').count();
        let quote = text[open..].chars().next();
        if let Some(quote) = quote.filter(|quote| matches!(quote, '"' | '\'' | '`' | '“' | '„'))
        {
            let inside = open + quote.len_utf8();
            if let Some(end) = closing(&text[inside..], quote) {
                return Self { text, start: inside, end: inside + end, quoted: true, in_query };
            }
        }
        // Only what turns out to be a secret is followed to its end.
        let near = cut(&text[start..], MAX_JUDGED);
        let near = &near[..value_end(near, in_query)];
        let value = near.trim_start_matches(['"', '\'', '`']);
        let start = start + (near.len() - value.len());
        let value = value.trim_end_matches(CLOSERS);
        Self { text, start, end: start + value.len(), quoted: false, in_query }
    }

    fn judge(&self, kind: Kind, given: Given) -> Option<SecretMatch> {
        let value = &self.text[self.start..self.end];
        let bracket = value.starts_with('[') && (!self.quoted || value.ends_with(']'));
        if bracket || is_placeholder(value) || is_removed(&self.text[self.start..]) {
            return None;
        }
        let secret = match (kind, given) {
            (Kind::Password, Given::Exactly) => true,
            (Kind::Password, Given::Loosely) => self.is_like_password(value),
            (_, Given::Exactly) => is_like_key(value, 4) || is_code(value),
            (_, Given::Loosely) => is_like_key(value, 8),
        };
        let certain = given == Given::Exactly;
        secret.then(|| SecretMatch { range: self.start..self.whole_end(), kind, certain })
    }

    /// Where it ends, however long it is.
    fn whole_end(&self) -> usize {
        if self.quoted {
            return self.end;
        }
        let rest = &self.text[self.start..];
        self.start + rest[..value_end(rest, self.in_query)].trim_end_matches(CLOSERS).len()
    }

    /// After a colon a password has something in it that a word has not, or it is the whole clause.
    fn is_like_password(&self, value: &str) -> bool {
        let letters = value.chars().all(char::is_alphabetic);
        let rest = self.text[self.end..].trim_start_matches([' ', '\t']);
        let ends = rest.is_empty() || rest.starts_with(|next: char| !next.is_alphanumeric());
        value.chars().count() >= 4 && (!letters || ends)
    }
}

/// What closes a sentence or a bracket, and not a value without quotes.
const CLOSERS: [char; 14] =
    ['.', ',', ';', ':', '!', '?', ')', ']', '}', '>', '"', '\'', '`', '\\'];

/// Where a value without quotes ends.
fn value_end(text: &str, in_query: bool) -> usize {
    let ends = |sign: char| sign.is_whitespace() || in_query && matches!(sign, '&' | '#');
    text.find(ends).unwrap_or(text.len())
}

/// The beginning of a text.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// Where the quote that was opened is closed, before the end of the line.
fn closing(text: &str, quote: char) -> Option<usize> {
    let closes = match quote {
        '“' => '”',
        '„' => '“',
        same => same,
    };
    let near = cut(text, MAX_QUOTED);
    let line = &near[..near.find('\n').unwrap_or(near.len())];
    let end = line.find(closes)?;
    // The quotes themselves may be escaped.
    Some(text[..end].trim_end_matches('\\').len())
}

/// A word that says something about a secret, and is none.
const WORDS: [&str; 40] = [
    "none",
    "null",
    "nil",
    "undefined",
    "true",
    "false",
    "yes",
    "no",
    "ok",
    "required",
    "optional",
    "missing",
    "empty",
    "unset",
    "set",
    "unknown",
    "invalid",
    "valid",
    "wrong",
    "incorrect",
    "correct",
    "expired",
    "changed",
    "unchanged",
    "updated",
    "reset",
    "removed",
    "redacted",
    "hidden",
    "masked",
    "accepted",
    "rejected",
    "needed",
    "saved",
    "forgotten",
    "string",
    "text",
    "default",
    "requested",
    "protected",
];

/// Whether something stands there in place of a secret: stars, a variable, a word about it.
fn is_placeholder(value: &str) -> bool {
    let mask = |sign: char| {
        matches!(sign, '*' | '•' | '…' | '.' | '#' | '_' | '-' | 'x' | 'X' | '·' | '●')
    };
    value.is_empty()
        || value.chars().all(mask)
        || value.starts_with(['<', '{', '('])
        || value.strip_prefix(['$', '%']).is_some_and(is_variable)
        || WORDS.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// What follows the sign of a variable: `$DB_PASSWORD`, `${password}`, `%s`.
fn is_variable(name: &str) -> bool {
    let capital = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(['{', '('])
        || name.len() <= 1
        || name.trim_end_matches('%').bytes().all(capital)
}

/// Whether a value has the look of something that a machine made up.
fn is_like_key(value: &str, least: usize) -> bool {
    let sign = |byte: u8| byte.is_ascii_graphic();
    let bytes = value.as_bytes();
    let upper = bytes.iter().any(u8::is_ascii_uppercase);
    let lower = bytes.iter().any(u8::is_ascii_lowercase);
    bytes.iter().copied().all(sign)
        && (bytes.len() >= least && is_mixed(bytes) || bytes.len() >= 20 && upper && lower)
}

/// A code of digits, as they are sent to telephones.
fn is_code(value: &str) -> bool {
    (6..=12).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// `--password value`: a flag whose value is a word of its own.
fn flags(text: &str, found: &mut Vec<SecretMatch>) {
    let mut at = 0;
    while let Some(next) = text[at..].find("--") {
        let from = at + next + 2;
        at = run_end(text.as_bytes(), from, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let after = &text[at..];
        let Some(kind) = after.starts_with(' ').then(|| names_secret(&text[from..at])).flatten()
        else {
            continue;
        };
        let value = Value::read(text, at, false);
        if text[value.start..].starts_with('-') {
            continue;
        }
        if let Some(secret) = value.judge(kind, Given::Exactly) {
            at = at.max(secret.range.end);
            found.push(secret);
        }
    }
}

/// Bytes of a token after `Bearer`, at least.
const MIN_TOKEN: usize = 8;

/// `Bearer …` anywhere; `Basic …` and `Token …` after `Authorization`.
fn authorizations(text: &str, found: &mut Vec<SecretMatch>) {
    let bytes = text.as_bytes();
    for (at, _) in text.match_indices(' ') {
        let Some(scheme) = scheme_before(bytes, at) else { continue };
        let start = run_end(bytes, at, |byte| byte == b' ');
        let end = run_end(bytes, start, |byte| {
            byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
        });
        let token = text[start..end].trim_end_matches('.');
        let fits = match scheme {
            "bearer" => is_random(token.as_bytes()),
            other => is_header(&text[..at - other.len()]),
        };
        if token.len() >= MIN_TOKEN && fits {
            let range = start..start + token.len();
            found.push(SecretMatch { range, kind: Kind::Token, certain: true });
        }
    }
}

/// The word that ends here, if a token can follow it.
fn scheme_before(bytes: &[u8], at: usize) -> Option<&'static str> {
    ["bearer", "basic", "token"].into_iter().find(|scheme| {
        let from = at.checked_sub(scheme.len());
        from.is_some_and(|from| {
            bytes[from..at].eq_ignore_ascii_case(scheme.as_bytes())
                && begins_word(bytes, from, b"-")
        })
    })
}

/// Whether the name of the header that says who asks stands at the end.
fn is_header(text: &str) -> bool {
    let name = text.trim_end_matches([' ', ':', '=', '"', '\'', '\\']);
    let from = name.len().saturating_sub("authorization".len());
    name.as_bytes()[from..].eq_ignore_ascii_case(b"authorization")
}

/// `Bearer` also stands in sentences: a word after it is no token.
fn is_random(token: &[u8]) -> bool {
    let upper = token.iter().any(u8::is_ascii_uppercase);
    let lower = token.iter().any(u8::is_ascii_lowercase);
    token.iter().any(u8::is_ascii_digit) || token.len() >= 20 && upper && lower
}

/// The password in `scheme://user:password@host`.
fn addresses(text: &str, found: &mut Vec<SecretMatch>) {
    for (at, _) in text.match_indices("://") {
        let from = at + 3;
        if !begins_address(text, at) {
            continue;
        }
        let rest = &text[from..];
        let end = rest.find(|sign: char| {
            sign.is_whitespace() || matches!(sign, '/' | '?' | '#' | '"' | '<' | '>')
        });
        let authority = &rest[..end.unwrap_or(rest.len())];
        let Some((person, _)) = authority.rsplit_once('@') else { continue };
        let Some((name, password)) = person.split_once(':') else { continue };
        let start = from + name.len() + 1;
        if !is_placeholder(password) && !is_removed(password) {
            let range = start..start + password.len();
            found.push(SecretMatch { range, kind: Kind::Password, certain: true });
        }
    }
}

fn begins_address(text: &str, at: usize) -> bool {
    text.as_bytes()[..at].last().is_some_and(u8::is_ascii_alphanumeric)
}
