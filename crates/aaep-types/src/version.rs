//! Versions of the protocol (§12).

use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

use crate::Malformed;
use crate::json::{Raw, Writer};
use crate::report::Report;
use crate::rule::{self, Rule};
use crate::wire::{Wire, read_string};

/// The version that this library speaks.
pub const AAEP_VERSION: &str = "1.0.0";

const MAJOR: u64 = 1;
const MINOR: u64 = 0;

/// A version of the protocol: a SemVer string without build metadata, which no published version has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version<'a> {
    text: Cow<'a, str>,
    major: u64,
    minor: u64,
}

impl<'a> Version<'a> {
    /// The version that this library speaks.
    pub const OURS: Version<'static> =
        Version { text: Cow::Borrowed(AAEP_VERSION), major: MAJOR, minor: MINOR };

    /// Takes a SemVer string.
    pub fn parse(text: impl Into<Cow<'a, str>>) -> Result<Self, Malformed> {
        let text = text.into();
        if text == AAEP_VERSION {
            return Ok(Self { text, major: MAJOR, minor: MINOR });
        }
        match numbers(&text) {
            Some((major, minor)) => Ok(Self { text, major, minor }),
            None => Err(Malformed("Write a version such as 1.0.0.")),
        }
    }

    /// The version as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The major version.
    pub fn major(&self) -> u64 {
        self.major
    }

    /// Whether we serve it (rule V1): the same major version, at our own minor version.
    pub fn is_served(&self) -> bool {
        // enforces: V1
        self.major == MAJOR
    }

    /// Whether it is a later minor version of ours: its messages may hold members we do not know.
    pub fn is_newer_minor(&self) -> bool {
        self.major == MAJOR && self.minor > MINOR
    }
}

fn numbers(text: &str) -> Option<(u64, u64)> {
    let (core, pre_release) = match text.split_once('-') {
        Some((core, pre_release)) => (core, Some(pre_release)),
        None => (text, None),
    };
    let mut parts = core.split('.').map(number);
    let (major, minor, _patch) = (parts.next()??, parts.next()??, parts.next()??);
    let sound = pre_release.is_none_or(|list| list.split('.').all(is_pre_release));
    (parts.next().is_none() && sound).then_some((major, minor))
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // However long it is, it is a number; what matters is only that it is none of ours.
    (digits && (text == "0" || !text.starts_with('0'))).then(|| text.parse().unwrap_or(u64::MAX))
}

fn is_pre_release(text: &str) -> bool {
    let spelled = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit());
    !text.is_empty() && spelled && (!numeric || text == "0" || !text.starts_with('0'))
}

impl fmt::Display for Version<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl<'a> Wire<'a> for Version<'a> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        let version = read_string(raw, rule, report, Self::parse)?;
        if version.as_str() != AAEP_VERSION {
            report.warning(
                rule::E18,
                format_args!(
                    "This names no version we know to be published; we know {AAEP_VERSION}."
                ),
            );
        }
        Some(version)
    }

    fn write(&self, out: &mut Writer) {
        out.string(&self.text);
    }

    fn schema() -> Value {
        json!({
            "type": "string",
            "pattern": r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*)?$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: E18
    #[test]
    fn a_version_is_semver() {
        for good in
            ["1.0.0", "0.1.0-draft", "1.2.3-rc.1", "10.20.30-a-b.0", "99999999999999999999.0.0"]
        {
            assert!(Version::parse(good).is_ok(), "{good}");
        }
        for wrong in [
            "",
            "1",
            "1.0",
            "1.0.0.0",
            "v1.0.0",
            "01.0.0",
            "1.0.0-",
            "1.0.0-01",
            "1.0.0-a..b",
            "1.0.0+build",
            "1.0.0\n",
            "1.0.x",
        ] {
            assert!(Version::parse(wrong).is_err(), "{wrong}");
        }
    }

    // covers: V1
    #[test]
    fn the_same_major_version_is_served_and_no_other() {
        assert!(Version::parse("1.0.0").unwrap().is_served());
        assert!(Version::parse("1.9.0").unwrap().is_served());
        assert!(!Version::parse("2.0.0").unwrap().is_served());
        assert!(!Version::parse("99.99.99").unwrap().is_served());
        assert!(!Version::parse("0.9.0").unwrap().is_served());
    }

    // covers: D21
    #[test]
    fn a_newer_minor_version_is_told_apart() {
        assert!(Version::parse("1.1.0").unwrap().is_newer_minor());
        assert!(!Version::parse("1.0.7").unwrap().is_newer_minor());
        assert!(!Version::parse("2.1.0").unwrap().is_newer_minor());
    }
}
