//! The names of event types (§3.2.2).

use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

use crate::context::is_reserved_prefix;
use crate::event::EventKind;
use crate::json::{Raw, Writer};
use crate::report::Report;
use crate::rule::{self, Rule};
use crate::uri::Uri;
use crate::wire::Wire;

/// The two addresses under which the core types also go (§3.2.2); `aaep:` means the same.
const CORE_ADDRESSES: [&str; 2] =
    ["https://aaep-protocol.org/types/", "https://aaep-protocol.org/vocab/v1#"];

/// The type of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeName<'a> {
    /// One of the twelve.
    Core(EventKind),
    /// An extension's, as `prefix:local`.
    Prefixed {
        /// The extension's prefix.
        prefix: Cow<'a, str>,
        /// The rest.
        local: Cow<'a, str>,
    },
    /// An extension's, as an absolute URI.
    Address(Uri<'a>),
}

/// Why a type name is refused.
enum Wrong {
    Shape,
    NotCore,
    Reserved,
}

impl<'a> TypeName<'a> {
    /// Which of the twelve it is.
    pub fn kind(&self) -> Option<EventKind> {
        match self {
            TypeName::Core(kind) => Some(*kind),
            _ => None,
        }
    }

    fn parse(text: Cow<'a, str>) -> Result<Self, Wrong> {
        if let Some(core) = core_name(&text) {
            // enforces: E5
            return EventKind::parse(&core).map(TypeName::Core).ok_or(Wrong::NotCore);
        }
        match text.split_once(':') {
            Some((prefix, _)) if is_reserved_prefix(prefix) => Err(Wrong::Reserved),
            Some((prefix, local)) if is_prefix(prefix) && is_local(local) => {
                let (prefix, local) = (prefix.to_owned(), local.to_owned());
                Ok(TypeName::Prefixed { prefix: prefix.into(), local: local.into() })
            }
            Some((_, rest)) if !rest.is_empty() => {
                Uri::parse(text).map(TypeName::Address).map_err(|_| Wrong::Shape)
            }
            _ => Err(Wrong::Shape),
        }
    }
}

/// The compact form of a core type's name, if this is meant to be one (decision D23).
pub(crate) fn core_name(text: &str) -> Option<Cow<'_, str>> {
    // enforces: E4, D23
    if text.starts_with("aaep:") {
        return Some(Cow::Borrowed(text));
    }
    let local = CORE_ADDRESSES.iter().find_map(|address| text.strip_prefix(address))?;
    Some(Cow::Owned(format!("aaep:{local}")))
}

fn is_prefix(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().skip(1).all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

fn is_local(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte))
}

impl fmt::Display for TypeName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeName::Core(kind) => f.write_str(kind.as_str()),
            TypeName::Prefixed { prefix, local } => write!(f, "{prefix}:{local}"),
            TypeName::Address(uri) => uri.fmt(f),
        }
    }
}

impl<'a> Wire<'a> for TypeName<'a> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        let Raw::String(string) = raw else {
            report.wrong_type(rule, "a string", raw);
            return None;
        };
        match Self::parse(string.decode()) {
            Ok(name) => Some(name),
            Err(Wrong::NotCore) => {
                report.error(rule::E5, format_args!("Use one of the twelve core types, or a prefix of your own: nothing else may live under `aaep:`."));
                None
            }
            Err(Wrong::Reserved) => {
                report
                    .error(rule::X3, format_args!("Choose another prefix; this one is reserved."));
                None
            }
            Err(Wrong::Shape) => {
                report.error(rule, format_args!("Write `prefix:name` or an absolute URI."));
                None
            }
        }
    }

    fn write(&self, out: &mut Writer) {
        out.string(&self.to_string());
    }

    fn schema() -> Value {
        let names: Vec<String> = EventKind::ALL.iter().flat_map(|kind| kind.spellings()).collect();
        let foreign = json!({
            "pattern": "^(aaep|xsd|rdf|rdfs|@[^:]*):|^https://aaep-protocol\\.org/(types/|vocab/v1#)",
        });
        json!({
            "type": "string",
            "anyOf": [
                { "enum": names },
                { "pattern": "^[A-Za-z_][A-Za-z0-9._-]*:[A-Za-z0-9._~-]+$", "not": foreign },
                { "format": "uri", "pattern": "^[^:]+:.", "not": foreign },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> Option<EventKind> {
        TypeName::parse(text.into()).ok()?.kind()
    }

    // covers: E4, D23
    #[test]
    fn the_three_spellings_of_a_core_type_mean_the_same() {
        for text in [
            "aaep:agent.tool.invoked",
            "https://aaep-protocol.org/types/agent.tool.invoked",
            "https://aaep-protocol.org/vocab/v1#agent.tool.invoked",
        ] {
            assert_eq!(kind(text), Some(EventKind::ToolInvoked), "{text}");
        }
    }

    // covers: E4, E5, X3
    #[test]
    fn what_is_no_type_name_is_refused() {
        for text in [
            "",
            "agent.tool.invoked",
            "aaep:",
            "aaep:agent.dreaming",
            "xsd:string",
            "rdf:x",
            "@x:y",
            ":x",
            "a b:c",
            "x:",
        ] {
            assert!(TypeName::parse(text.into()).is_err(), "{text}");
        }
    }

    // covers: E4
    #[test]
    fn extension_types_are_prefixed_or_absolute() {
        for text in ["medai:patient.consulted", "https://example.org/types#seen", "urn:x:y:z"] {
            let name = TypeName::parse(text.into()).ok().expect(text);
            assert_eq!(name.to_string(), text);
            assert_eq!(name.kind(), None);
        }
    }
}
