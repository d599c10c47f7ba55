//! URIs (RFC 3986).

use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

use crate::Malformed;
use crate::json::{Raw, Writer};
use crate::report::Report;
use crate::rule::Rule;
use crate::wire::{Wire, read_string};

/// An absolute URI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uri<'a>(Cow<'a, str>);

impl<'a> Uri<'a> {
    /// Takes a URI with a scheme.
    pub fn parse(text: impl Into<Cow<'a, str>>) -> Result<Self, Malformed> {
        let text = text.into();
        match fluent_uri::Uri::parse(text.as_ref()) {
            Ok(_) => Ok(Self(text)),
            Err(_) => Err(Malformed("Write a URI with its scheme, such as https://example.org/x.")),
        }
    }

    /// The URI as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same, no longer borrowing.
    pub fn into_owned(self) -> Uri<'static> {
        Uri(Cow::Owned(self.0.into_owned()))
    }
}

impl fmt::Display for Uri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'a> Wire<'a> for Uri<'a> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        read_string(raw, rule, report, Self::parse)
    }

    fn write(&self, out: &mut Writer) {
        out.string(&self.0);
    }

    fn schema() -> Value {
        json!({ "type": "string", "format": "uri" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: E3, E11
    #[test]
    fn a_uri_has_a_scheme_and_no_stray_characters() {
        for good in ["https://example.org/a?b#c", "urn:aaep-rs:outcome:v1", "mailto:x@example.org"]
        {
            assert!(Uri::parse(good).is_ok(), "{good}");
        }
        for wrong in
            ["", "example.org", "/a", "https://exa mple.org", "https://example.org/é", "h://[::1"]
        {
            assert!(Uri::parse(wrong).is_err(), "{wrong}");
        }
    }
}
