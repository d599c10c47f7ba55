//! How an object is read, written and described, and the macro that declares one.

use serde_json::{Value, json};
use std::borrow::Cow;

use crate::json::{Member, Members, Raw, Writer, each_member};
use crate::report::Report;
use crate::rule::Rule;

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

/// Declares an object: a struct, how it is read and written, and its description.
///
/// A line reads: presence, field, optionally the name on the wire when Rust cannot spell it, the
/// type, and the rule that a wrong or missing value breaks.
macro_rules! object {
    (
        $(#[doc = $doc:literal])*
        $vis:vis struct $name:ident, fields $fields:ident, unknown($unknown:expr) $(, check($check:path))? $(, extra($extra:path))? {
            $(
                $(#[doc = $field_doc:literal])*
                $presence:ident $field:ident $(as $wire:literal)? : $type:ty, $rule:ident;
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name<'a> {
            $(
                $(#[doc = $field_doc])*
                pub $field: $crate::wire::object!(@type $presence $type),
            )*
            /// Members that this version does not know, as they stood in the text.
            pub other: $crate::wire::Others<'a>,
        }

        /// The members while they are being read.
        #[derive(Debug, Default)]
        #[allow(dead_code)] // a check need not look at every member
        pub struct $fields<'a> {
            $(pub(crate) $field: $crate::wire::Slot<$type>,)*
            pub(crate) other: $crate::wire::Others<'a>,
        }

        impl<'a> $crate::wire::Object<'a> for $name<'a> {
            type Fields = $fields<'a>;
            const MEMBERS: &'static [$crate::wire::MemberInfo] = &[$(
                $crate::wire::MemberInfo {
                    name: $crate::wire::object!(@name $field $($wire)?),
                    required: $crate::wire::object!(@required $presence),
                    human: <$type as $crate::wire::Wire<'a>>::HUMAN,
                    doc: concat!($($field_doc, "\n"),*),
                    schema: <$type as $crate::wire::Wire<'a>>::schema,
                },
            )*];
            const UNKNOWN: $crate::wire::Unknown = $unknown;

            fn place(
                fields: &mut $fields<'a>,
                name: &str,
                raw: $crate::json::Raw<'a>,
                report: &mut $crate::report::Report,
            ) -> Option<usize> {
                let index = 0;
                $(
                    if name == $crate::wire::object!(@name $field $($wire)?) {
                        fields.$field = report.within(name, |report| {
                            <$type as $crate::wire::Wire<'a>>::read(raw, $crate::rule::$rule, report)
                        }).into();
                        return Some(index);
                    }
                    let index = index + 1;
                )*
                let _ = index;
                None
            }

            fn others<'f>(fields: &'f mut $fields<'a>) -> &'f mut $crate::wire::Others<'a> {
                &mut fields.other
            }

            $(
                fn check(fields: &$fields<'a>, report: &mut $crate::report::Report) {
                    $check(fields, report);
                }
            )?

            fn check_required(fields: &$fields<'a>, report: &mut $crate::report::Report) {
                let _ = (fields, &report);
                $(
                    if $crate::wire::object!(@required $presence) && fields.$field.is_absent() {
                        let name = $crate::wire::object!(@name $field $($wire)?);
                        report.missing(name, $crate::rule::$rule);
                    }
                )*
            }

            fn build(fields: $fields<'a>) -> Option<Self> {
                Some(Self {
                    $($field: $crate::wire::object!(@build $presence fields.$field),)*
                    other: fields.other,
                })
            }

            fn write_members(&self, out: &mut $crate::json::Writer) {
                $(
                    $crate::wire::object!(
                        @write $presence self.$field,
                        $crate::wire::object!(@name $field $($wire)?), out
                    );
                )*
                for (name, raw) in &self.other {
                    out.name(name);
                    out.raw(*raw);
                    out.comma();
                }
            }

            $(
                fn schema_extra() -> Vec<(&'static str, serde_json::Value)> {
                    $extra()
                }
            )?
        }

        impl<'a> $crate::wire::Wire<'a> for $name<'a> {
            fn read(
                raw: $crate::json::Raw<'a>,
                rule: $crate::rule::Rule,
                report: &mut $crate::report::Report,
            ) -> Option<Self> {
                $crate::wire::read_object(raw, rule, report)
            }

            fn write(&self, out: &mut $crate::json::Writer) {
                $crate::wire::write_object(self, out);
            }

            fn schema() -> serde_json::Value {
                $crate::wire::object_schema::<Self>()
            }
        }
    };

    (@type required $type:ty) => { $type };
    (@type optional $type:ty) => { Option<$type> };
    (@required required) => { true };
    (@required optional) => { false };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $wire:literal) => { $wire };
    (@build required $slot:expr) => {
        match $slot {
            $crate::wire::Slot::Good(value) => value,
            _ => return None,
        }
    };
    (@build optional $slot:expr) => {
        match $slot {
            $crate::wire::Slot::Good(value) => Some(value),
            $crate::wire::Slot::Bad => return None,
            $crate::wire::Slot::Absent => None,
        }
    };
    (@write required $value:expr, $name:expr, $out:ident) => {
        $out.name($name);
        $crate::wire::Wire::write(&$value, $out);
        $out.comma();
    };
    (@write optional $value:expr, $name:expr, $out:ident) => {
        if let Some(value) = &$value {
            $out.name($name);
            $crate::wire::Wire::write(value, $out);
            $out.comma();
        }
    };
}

pub(crate) use object;
