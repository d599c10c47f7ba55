//! The manifest in which a producer describes itself (§5.10).

use crate::context::Context;
use crate::language::LanguageTag;
use crate::list::Set;
use crate::number::{Ordinal, Whole};
use crate::reply::constant;
use crate::rule;
use crate::text::{Name, Text, UNBOUNDED};
use crate::uri::Uri;
use crate::version::Version;
use crate::vocabulary::Verbosity;
use crate::wire::{Opaque, Unknown, Wire, object};

constant! {
    /// The type of a [`Manifest`].
    ManifestType, "aaep:producer.manifest"
}

object! {
    /// What a producer says of itself. Members that this version does not know are kept.
    pub struct Manifest, fields ManifestFields, unknown(Unknown::Keep) {
        /// The vocabularies in use.
        required context as "@context": Context<'a>, H27;
        /// `aaep:producer.manifest`.
        required type_name as "type": ManifestType, H27;
        /// Names the producer.
        required agent_id: Name<'a, 1, UNBOUNDED>, H27;
        /// Its own version.
        optional agent_version: Name<'a, 1, UNBOUNDED>, H27;
        /// What people call it.
        optional agent_name: Text<'a, 1, UNBOUNDED>, H27;
        /// The versions of the protocol that it speaks.
        required aaep_versions_supported: Set<SupportedVersion<'a>, 1, UNBOUNDED>, H27;
        /// The conformance levels that it meets.
        required conformance_levels_supported: Set<Whole<1, 3>, 1, 3>, H27;
        /// The transports that it offers: a name, or an object that tells more.
        required transports_supported: Transports<'a>, H27;
        /// The languages that it can speak.
        optional languages_supported: Set<LanguageTag<'a>, 0, UNBOUNDED>, H27;
        /// The event types that it emits: names, or prefixes with a trailing `*`.
        optional event_types_emitted: Set<Name<'a, 1, 256>, 0, UNBOUNDED>, H27;
        /// The extensions that it knows, by address.
        optional extensions_supported: Set<Uri<'a>, 0, UNBOUNDED>, H27;
        /// How much it says unless asked otherwise.
        optional default_verbosity: Verbosity, H27;
        /// How many subscriptions it serves at once.
        optional max_concurrent_subscriptions: Ordinal, H27;
        /// Whom to ask.
        optional contact: Contact<'a>, H27;
    }
}

/// A version of the protocol in a manifest, compared as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedVersion<'a>(pub Version<'a>);

impl PartialOrd for SupportedVersion<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SupportedVersion<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.as_str().cmp(other.0.as_str())
    }
}

impl<'a> Wire<'a> for SupportedVersion<'a> {
    fn read(
        raw: crate::json::Raw<'a>,
        rule: rule::Rule,
        report: &mut crate::report::Report,
    ) -> Option<Self> {
        Version::read(raw, rule, report).map(Self)
    }

    fn write(&self, out: &mut crate::json::Writer) {
        self.0.write(out);
    }

    fn schema() -> serde_json::Value {
        Version::schema()
    }
}

/// A value that is either a name or an object that tells more.
macro_rules! name_or_object {
    ($(#[doc = $doc:literal])* $name:ident) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name<'a> {
            /// Just a name.
            Name(Name<'a, 1, UNBOUNDED>),
            /// An object.
            Object(Opaque<'a>),
        }

        impl<'a> Wire<'a> for $name<'a> {
            fn read(
                raw: crate::json::Raw<'a>,
                rule: rule::Rule,
                report: &mut crate::report::Report,
            ) -> Option<Self> {
                match raw {
                    crate::json::Raw::String(_) => Name::read(raw, rule, report).map(Self::Name),
                    crate::json::Raw::Object(_) => Opaque::read(raw, rule, report).map(Self::Object),
                    other => {
                        report.wrong_type(rule, "a string or an object", other);
                        None
                    }
                }
            }

            fn write(&self, out: &mut crate::json::Writer) {
                match self {
                    Self::Name(name) => name.write(out),
                    Self::Object(object) => object.write(out),
                }
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "object" }] })
            }
        }
    };
}

name_or_object! {
    /// One transport.
    Transport
}
name_or_object! {
    /// Whom to ask: an address, or an object that tells more.
    Contact
}

/// The transports of a manifest; at least one.
pub type Transports<'a> = crate::list::List<Transport<'a>, 1, UNBOUNDED>;
