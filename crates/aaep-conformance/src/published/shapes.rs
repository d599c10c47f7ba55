//! The strings that have a shape of their own: identifiers, versions, tags and names.
//!
//! All of them are ASCII, and a shape covers the whole string: nothing may follow it, not even a
//! newline.

/// A shape. Each is judged by [`Shape::fits`] and put into words by [`Shape::description`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    EventId,
    SessionId,
    ReplyToken,
    SubscriptionId,
    ToolCallId,
    OutputId,
    Version,
    Language,
    Script,
    ToolName,
    MediaType,
    ErrorCode,
    CancellationReason,
    CompactJws,
}

impl Shape {
    /// What such a string looks like, as the end of the sentence "Make this …".
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::EventId => "`evt_` followed by 1 to 64 ASCII letters or digits",
            Self::SessionId => "`sess_` followed by 1 to 64 ASCII letters or digits",
            Self::ReplyToken => "`rpl_` followed by 1 to 64 ASCII letters or digits",
            Self::SubscriptionId => "`sub_` followed by 1 to 64 ASCII letters or digits",
            Self::ToolCallId => "`call_` followed by 1 to 64 ASCII letters or digits",
            Self::OutputId => "`out_` followed by 1 to 64 ASCII letters or digits",
            Self::Version => "a version such as `1.0.0` or `1.2.0-rc.1`",
            Self::Language => "a language tag such as `en` or `pt-BR`",
            Self::Script => "a four-letter script code such as `Latn`",
            Self::ToolName => {
                "a tool name of 1 to 256 ASCII letters, digits, `_`, `.` or `-`, \
                 beginning with a letter or `_`"
            }
            Self::MediaType => "a media type such as `text/plain`, without parameters",
            Self::ErrorCode => {
                "2 to 64 capital ASCII letters, digits or `_`, beginning with a letter"
            }
            Self::CancellationReason => {
                "2 to 64 small ASCII letters, digits or `_`, beginning with a letter"
            }
            Self::CompactJws => "a JWS in compact form: three base64url parts joined by `.`",
        }
    }

    pub(super) fn fits(self, text: &str) -> bool {
        match self {
            Self::EventId => is_id("evt_", text),
            Self::SessionId => is_id("sess_", text),
            Self::ReplyToken => is_id("rpl_", text),
            Self::SubscriptionId => is_id("sub_", text),
            Self::ToolCallId => is_id("call_", text),
            Self::OutputId => is_id("out_", text),
            Self::Version => is_version(text),
            Self::Language => is_language(text),
            Self::Script => {
                text.len() == 4
                    && begins_and_goes_on(text, is_capital, |byte| byte.is_ascii_lowercase())
            }
            Self::ToolName => {
                (1..=256).contains(&text.len())
                    && begins_and_goes_on(
                        text,
                        |byte| byte.is_ascii_alphabetic() || byte == b'_',
                        |byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte),
                    )
            }
            Self::MediaType => text.split_once('/').is_some_and(|(kind, subtype)| {
                is_media_type_name(kind) && is_media_type_name(subtype)
            }),
            Self::ErrorCode => {
                (2..=64).contains(&text.len())
                    && begins_and_goes_on(text, is_capital, |byte| {
                        is_capital(byte) || byte.is_ascii_digit() || byte == b'_'
                    })
            }
            Self::CancellationReason => {
                (2..=64).contains(&text.len())
                    && begins_and_goes_on(text, is_small, |byte| {
                        is_small(byte) || byte.is_ascii_digit() || byte == b'_'
                    })
            }
            Self::CompactJws => {
                text.split('.').count() == 3
                    && text.split('.').all(|part| {
                        is_made_of(part, |byte| {
                            byte.is_ascii_alphanumeric() || b"_-".contains(&byte)
                        })
                    })
            }
        }
    }
}

/// A prefix and 1 to 64 letters or digits.
fn is_id(prefix: &str, text: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| rest.len() <= 64 && is_alphanumeric(rest))
}

/// Three numbers, and after a `-` anything made of letters, digits, `.` and `-`. Looser than
/// SemVer: leading zeros and empty identifiers pass.
fn is_version(text: &str) -> bool {
    let (numbers, suffix) = match text.split_once('-') {
        Some((numbers, suffix)) => (numbers, Some(suffix)),
        None => (text, None),
    };
    let suffix_fits = suffix.is_none_or(|suffix| {
        is_made_of(suffix, |byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    });
    suffix_fits
        && numbers.split('.').count() == 3
        && numbers.split('.').all(|number| is_made_of(number, |byte| byte.is_ascii_digit()))
}

/// Subtags of 1 to 8 letters or digits joined by `-`; the first has letters only. Looser than
/// BCP 47, which is not the schemas' subject.
fn is_language(text: &str) -> bool {
    text.split('-').enumerate().all(|(at, subtag)| {
        subtag.len() <= 8
            && is_made_of(subtag, |byte| {
                byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit())
            })
    })
}

fn is_media_type_name(text: &str) -> bool {
    begins_and_goes_on(
        text,
        |byte| byte.is_ascii_alphabetic(),
        |byte| byte.is_ascii_alphanumeric() || b".+_-".contains(&byte),
    )
}

fn is_alphanumeric(text: &str) -> bool {
    is_made_of(text, |byte| byte.is_ascii_alphanumeric())
}

fn is_capital(byte: u8) -> bool {
    byte.is_ascii_uppercase()
}

fn is_small(byte: u8) -> bool {
    byte.is_ascii_lowercase()
}

/// Whether the text has at least one byte and all of them are `allowed`.
fn is_made_of(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(allowed)
}

/// Whether the text begins with a byte that is `first` and every later one is `later`.
fn begins_and_goes_on(text: &str, first: fn(u8) -> bool, later: fn(u8) -> bool) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(first) && bytes.all(later)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: E7, E8, C6, H13, T13
    #[test]
    fn identifiers_have_their_prefix_and_1_to_64_ascii_letters_or_digits() {
        let shapes = [
            (Shape::EventId, "evt_"),
            (Shape::SessionId, "sess_"),
            (Shape::ReplyToken, "rpl_"),
            (Shape::SubscriptionId, "sub_"),
            (Shape::ToolCallId, "call_"),
            (Shape::OutputId, "out_"),
        ];
        for (shape, prefix) in shapes {
            let id = |rest: &str| format!("{prefix}{rest}");
            assert!(shape.fits(&id("a")) && shape.fits(&id(&"Z9".repeat(32))));
            for rest in ["", "a_b", "a-b", "é", "٣", "a\n", " a", &"a".repeat(65)] {
                assert!(!shape.fits(&id(rest)), "{prefix}{rest:?}");
            }
            assert!(!shape.fits("a") && !shape.fits(&id("a").to_uppercase()));
        }
    }

    // covers: E18
    #[test]
    fn a_version_is_three_numbers_and_an_optional_suffix() {
        for version in ["1.0.0", "01.2.3", "1.0.0-rc.1", "1.0.0--", "1.0.0-."] {
            assert!(Shape::Version.fits(version), "{version}");
        }
        for version in
            ["1.0", "1.0.0.0", "1.0.0-", "1.0.0\n", "1.0.0+b", "v1.0.0", "1..0", "1.0.0-é"]
        {
            assert!(!Shape::Version.fits(version), "{version:?}");
        }
    }

    // covers: L1
    #[test]
    fn language_tags_are_subtags_of_1_to_8_ascii_letters_or_digits() {
        for tag in ["e", "en", "pt-BR", "es-419", "abcdefgh-12345678-x"] {
            assert!(Shape::Language.fits(tag), "{tag}");
        }
        for tag in ["", "e1", "en-", "-en", "en--US", "abcdefghi", "en-123456789", "en_US", "en\n"]
        {
            assert!(!Shape::Language.fits(tag), "{tag:?}");
        }
    }

    #[test]
    fn the_other_shapes_hold_to_the_last_character() {
        let long = |first: &str, length: usize| format!("{first}{}", "_".repeat(length - 1));
        let table: [(Shape, &[&str], &[&str]); 6] = [
            (Shape::Script, &["Latn"], &["latn", "LATN", "Lat", "Latin", "Latn\n"]),
            (
                Shape::ToolName,
                &["_", "a.b-c", &long("a", 256)],
                &["", "1a", "a b", &long("a", 257)],
            ),
            (
                Shape::MediaType,
                &["text/plain", "a/b.c+d_-"],
                &["text", "text/", "a/b/c", "a/1", "a/b;c"],
            ),
            (Shape::ErrorCode, &["AB", "A_9", &long("A", 64)], &["A", "Ab", "_A", &long("A", 65)]),
            (
                Shape::CancellationReason,
                &["ab", "a_9", &long("a", 64)],
                &["a", "aB", "9a", "ab\n", &long("a", 65)],
            ),
            (
                Shape::CompactJws,
                &["a.b.c", "-_.0.Z"],
                &["a.b", "a..c", "a.b.c.d", "a.b.c=", "a.b.c\n"],
            ),
        ];
        for (shape, good, bad) in table {
            for text in good {
                assert!(shape.fits(text), "{shape:?} {text}");
            }
            for text in bad {
                assert!(!shape.fits(text), "{shape:?} {text:?}");
            }
        }
    }
}
