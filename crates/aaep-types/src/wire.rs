//! How one value is read, written and described. Objects, which are made of such values, are in
//! `object`.

mod object;

use serde_json::{Value, json};
use std::borrow::Cow;

use crate::Malformed;
use crate::json::{Members, Raw, Writer};
use crate::report::Report;
use crate::rule::Rule;

pub use object::{MemberInfo, Object, Others, Unknown};
pub(crate) use object::{
    Seen, check_others, object, object_schema, read_members, read_object, write_object,
};

/// A value that can stand behind a member's name.
pub trait Wire<'a>: Sized {
    /// Whether it is text for people: such members may have language variants (§11.5.1).
    const HUMAN: bool = false;

    /// The rule that a wrong value breaks: the member's, unless its form has a rule of its own.
    fn rule_for(member: Rule) -> Rule {
        member
    }

    /// Reads it. Whatever is wrong goes to the report, under `rule`; then there is no value.
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self>;

    /// Writes it as JSON.
    fn write(&self, out: &mut Writer);

    /// Its JSON Schema.
    fn schema() -> Value;
}

/// A member as it was met while reading.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Slot<T> {
    /// Not there.
    #[default]
    Absent,
    /// There, but wrong; the report says why.
    Bad,
    /// There, and right.
    Good(T),
}

impl<T> Slot<T> {
    /// The value, if it is right.
    pub fn good(&self) -> Option<&T> {
        match self {
            Slot::Good(value) => Some(value),
            _ => None,
        }
    }

    /// Whether the member was not there at all.
    pub fn is_absent(&self) -> bool {
        matches!(self, Slot::Absent)
    }
}

impl<T> From<Option<T>> for Slot<T> {
    fn from(read: Option<T>) -> Self {
        read.map_or(Slot::Bad, Slot::Good)
    }
}

/// Reads a string that has a form of its own; the report says which form is wanted.
#[inline]
pub(crate) fn read_string<'a, T>(
    raw: Raw<'a>,
    rule: Rule,
    report: &mut Report,
    parse: impl FnOnce(Cow<'a, str>) -> Result<T, Malformed>,
) -> Option<T> {
    match raw {
        Raw::String(string) => {
            parse(string.decode()).map_err(|wrong| report.error(rule, format_args!("{wrong}"))).ok()
        }
        other => {
            report.wrong_type(rule, "a string", other);
            None
        }
    }
}

impl<'a> Wire<'a> for bool {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        match raw {
            Raw::Bool(value) => Some(value),
            other => {
                report.wrong_type(rule, "true or false", other);
                None
            }
        }
    }

    fn write(&self, out: &mut Writer) {
        out.json(if *self { "true" } else { "false" });
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

/// An object that means something only to sender and receiver; kept byte for byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opaque<'a>(&'a str);

impl<'a> Opaque<'a> {
    /// The object's text, braces included; digests are taken over these bytes.
    pub fn as_json(&self) -> &'a str {
        self.0
    }

    /// Takes the text of a JSON object; `None` if it is not one.
    pub fn parse(text: &'a str) -> Option<Self> {
        let members = Members::whole(text, 64).ok()??;
        let sound = members.faults().is_empty() && members.repeated().is_none();
        sound.then_some(Self(text))
    }
}

impl<'a> Wire<'a> for Opaque<'a> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        match raw {
            Raw::Object(text) => Some(Self(text)),
            other => {
                report.wrong_type(rule, "an object", other);
                None
            }
        }
    }

    fn write(&self, out: &mut Writer) {
        out.json(self.0);
    }

    fn schema() -> Value {
        json!({ "type": "object" })
    }
}
