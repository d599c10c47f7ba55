//! How one value is read, written and described; and how an object is made of such values.

mod object;

use serde_json::{Value, json};
use std::borrow::Cow;

use crate::Malformed;
use crate::json::{Member, Members, Raw, Writer, each_member};
use crate::report::Report;
use crate::rule::Rule;

pub(crate) use object::object;

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

/// A member in an object's description.
#[derive(Clone, Copy)]
pub struct MemberInfo {
    /// Its name on the wire.
    pub name: &'static str,
    /// Whether it must be there.
    pub required: bool,
    /// Whether it is text for people.
    pub human: bool,
    /// What it is for.
    pub doc: &'static str,
    /// The schema of its value.
    pub schema: fn() -> Value,
}

/// What to do with members that an object does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// An error under this rule (a warning when the sender's minor version is newer, D21).
    Refuse(Rule),
    /// An error under this rule, whatever version the sender claims.
    RefuseAlways(Rule),
    /// Kept if it is an object, an error otherwise.
    ObjectsOnly(Rule),
    /// Kept.
    Keep,
}

/// Members that an object does not know, in their order, as they stood in the text.
pub type Others<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

/// An object with known members; made by the `object!` macro.
pub trait Object<'a>: Sized {
    /// The members while they are being read.
    type Fields: Default;
    /// What it knows, in the order in which it writes.
    const MEMBERS: &'static [MemberInfo];
    /// What becomes of the rest.
    const UNKNOWN: Unknown;

    /// Reads the member if it is known, and returns its place in [`Self::MEMBERS`].
    fn place(
        fields: &mut Self::Fields,
        name: &str,
        raw: Raw<'a>,
        report: &mut Report,
    ) -> Option<usize>;

    /// The members that are not known.
    fn others<'f>(fields: &'f mut Self::Fields) -> &'f mut Others<'a>;

    /// Checks what concerns more than one member.
    fn check(_fields: &Self::Fields, _report: &mut Report) {}

    /// Reports the required members that are not there.
    fn check_required(fields: &Self::Fields, report: &mut Report);

    /// Makes the value if everything it needs is there and right.
    fn build(fields: Self::Fields) -> Option<Self>;

    /// Writes its members, each followed by a comma.
    fn write_members(&self, out: &mut Writer);

    /// Constraints on several members at once, as further keywords of its JSON Schema.
    fn schema_extra() -> Vec<(&'static str, Value)> {
        Vec::new()
    }
}

/// Reads an object from its indexed members.
pub(crate) fn read_members<'a, T: Object<'a>>(
    members: Members<'a>,
    report: &mut Report,
) -> Option<T> {
    let mut fields = T::Fields::default();
    let mut seen = Seen::default();
    for Member { name, value } in members {
        read_member::<T>(&mut fields, name, value, &mut seen, report);
    }
    check_others(T::others(&mut fields), report);
    finish::<T>(fields, report)
}

/// Checks what is left to check, and makes the value.
fn finish<'a, T: Object<'a>>(fields: T::Fields, report: &mut Report) -> Option<T> {
    T::check(&fields, report);
    T::check_required(&fields, report);
    T::build(fields)
}

/// The members that an object has had already, by their place.
#[derive(Default)]
pub(crate) struct Seen(u64);

impl Seen {
    /// Notes a known member; the second of a name is reported.
    #[inline]
    pub(crate) fn note(&mut self, index: usize, name: &str, report: &mut Report) {
        let bit = 1 << index;
        if self.0 & bit != 0 {
            report.duplicate(name);
        }
        self.0 |= bit;
    }
}

/// Reports duplicate names among unknown members.
pub(crate) fn check_others(other: &Others<'_>, report: &mut Report) {
    if other.len() > 1 {
        let names: Vec<&str> = other.iter().map(|(name, _)| name.as_ref()).collect();
        if let Some(index) = crate::list::repeated(&names) {
            report.duplicate(names[index]);
        }
    }
}

#[inline]
fn read_member<'a, T: Object<'a>>(
    fields: &mut T::Fields,
    name: Cow<'a, str>,
    value: Raw<'a>,
    seen: &mut Seen,
    report: &mut Report,
) {
    match T::place(fields, &name, value, report) {
        Some(index) => seen.note(index, &name, report),
        None => {
            judge_unknown(T::UNKNOWN, &name, value, report);
            T::others(fields).push((name, value));
        }
    }
}

fn judge_unknown(policy: Unknown, name: &str, raw: Raw<'_>, report: &mut Report) {
    match policy {
        Unknown::Keep => {}
        Unknown::Refuse(rule) => {
            report.unknown(name, rule, format_args!("Remove this member; it does not belong here."))
        }
        Unknown::RefuseAlways(rule) => report.within(name, |report| {
            report.error(rule, format_args!("Remove this member; nothing else may stand in a reply."))
        }),
        Unknown::ObjectsOnly(rule) if !matches!(raw, Raw::Object(_)) => {
            report.unknown(name, rule, format_args!("Remove this member, or make it an object: only extensions add members here, and theirs are objects."))
        }
        Unknown::ObjectsOnly(_) => {}
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

/// Reads a nested object.
pub(crate) fn read_object<'a, T: Object<'a>>(
    raw: Raw<'a>,
    rule: Rule,
    report: &mut Report,
) -> Option<T> {
    match raw {
        Raw::Object(text) => {
            let mut fields = T::Fields::default();
            let mut seen = Seen::default();
            each_member(text, |name, value| {
                read_member::<T>(&mut fields, name, value, &mut seen, report);
            });
            finish::<T>(fields, report)
        }
        other => {
            report.wrong_type(rule, "an object", other);
            None
        }
    }
}

/// Writes an object with its braces.
pub(crate) fn write_object<'a, T: Object<'a>>(object: &T, out: &mut Writer) {
    out.open('{');
    object.write_members(out);
    out.close('}');
}

/// The JSON Schema of an object.
pub(crate) fn object_schema<'a, T: Object<'a>>() -> Value {
    let mut properties = serde_json::Map::new();
    for member in T::MEMBERS {
        let mut schema = (member.schema)();
        if let Some(map) = schema.as_object_mut() {
            map.insert("description".into(), json!(member.doc.trim()));
        }
        properties.insert(member.name.into(), schema);
    }
    let required: Vec<_> =
        T::MEMBERS.iter().filter(|member| member.required).map(|member| member.name).collect();
    let mut schema = json!({ "type": "object", "properties": properties });
    if let Some(map) = schema.as_object_mut() {
        if !required.is_empty() {
            map.insert("required".into(), json!(required));
        }
        match T::UNKNOWN {
            Unknown::Refuse(_) | Unknown::RefuseAlways(_) => {
                map.insert("additionalProperties".into(), json!(false));
            }
            Unknown::ObjectsOnly(_) => {
                map.insert("additionalProperties".into(), json!({ "type": "object" }));
            }
            Unknown::Keep => {}
        }
        for (keyword, value) in T::schema_extra() {
            map.insert(keyword.into(), value);
        }
    }
    schema
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
