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
