//! The macro that declares objects.

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
