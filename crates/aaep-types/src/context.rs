//! `@context` (§3.2.1) and the extensions that we know by their address.

use serde_json::{Value, json};

use crate::Malformed;
use crate::envelope::array;
use crate::json::{Raw, Writer};
use crate::list::read_element;
use crate::report::Report;
use crate::rule::Rule;
use crate::uri::Uri;
use crate::wire::Wire;

/// The protocol's own context.
pub const CORE_CONTEXT: &str = "https://aaep-protocol.org/context/v1";

/// An extension that we know: its address and the prefix that it declares (decision D24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownExtension {
    /// The address that stands in `@context`.
    pub uri: &'static str,
    /// The prefix of its members and types.
    pub prefix: &'static str,
}

/// Our own extensions. Others declare prefixes that we do not know.
pub const KNOWN_EXTENSIONS: &[KnownExtension] = &[
    KnownExtension { uri: "urn:aaep-rs:outcome:v1", prefix: "outcome" },
    KnownExtension { uri: "urn:aaep-rs:timing:v1", prefix: "timing" },
    KnownExtension { uri: "urn:aaep-rs:control:v1", prefix: "control" },
    KnownExtension { uri: crate::action::URI, prefix: crate::action::PREFIX },
    KnownExtension { uri: crate::redaction::URI, prefix: crate::redaction::PREFIX },
    KnownExtension { uri: crate::resume::URI, prefix: crate::resume::PREFIX },
    KnownExtension { uri: crate::team::URI, prefix: crate::team::PREFIX },
    KnownExtension { uri: crate::presence::URI, prefix: crate::presence::PREFIX },
];

/// Prefixes that no extension may take (§7.3.2).
pub fn is_reserved_prefix(prefix: &str) -> bool {
    matches!(prefix, "aaep" | "xsd" | "rdf" | "rdfs") || prefix.starts_with('@')
}

/// The vocabularies of an event: the protocol's, then those of extensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context<'a> {
    extensions: Vec<Uri<'a>>,
    listed: bool,
}

impl<'a> Context<'a> {
    /// The protocol's own and nothing else.
    pub fn core() -> Self {
        Self::default()
    }

    /// The protocol's own and these.
    pub fn with(extensions: Vec<Uri<'a>>) -> Self {
        let listed = !extensions.is_empty();
        Self { extensions, listed }
    }

    /// The addresses of the extensions.
    pub fn extensions(&self) -> &[Uri<'a>] {
        &self.extensions
    }

    /// Whether a prefix is that of an extension of ours, whose address is here. The prefix alone does not
    /// make it ours: others may have the same.
    pub fn is_ours(&self, prefix: &str) -> bool {
        KNOWN_EXTENSIONS.iter().any(|known| {
            known.prefix == prefix && self.extensions.iter().any(|uri| uri.as_str() == known.uri)
        })
    }

    // enforces: D24
    /// Those of some prefixes that are not declared. An address that we know declares its own prefix;
    /// one that we do not know declares one prefix, whichever that is. Reserved prefixes are none.
    pub fn undeclared<'p>(&self, prefixes: impl IntoIterator<Item = &'p str>) -> Vec<&'p str> {
        let is_known = |uri: &str| KNOWN_EXTENSIONS.iter().any(|known| known.uri == uri);
        let mut left = self.extensions.iter().filter(|uri| !is_known(uri.as_str())).count();
        let mut declared: Vec<&str> = Vec::new();
        let mut missing = Vec::new();
        for prefix in prefixes.into_iter().filter(|prefix| !is_reserved_prefix(prefix)) {
            if self.is_ours(prefix) || declared.contains(&prefix) {
                continue;
            }
            match left.checked_sub(1) {
                Some(fewer) => {
                    left = fewer;
                    declared.push(prefix);
                }
                None => missing.push(prefix),
            }
        }
        missing
    }
}

const EXPECTED: Malformed = Malformed(
    "Write \"https://aaep-protocol.org/context/v1\", or an array of URIs that begins with it.",
);

impl<'a> Wire<'a> for Context<'a> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        match raw {
            Raw::String(string) if string.decode() == CORE_CONTEXT => Some(Self::core()),
            Raw::Array(_) => read_list(raw, rule, report),
            Raw::String(_) => {
                report.error(rule, format_args!("{EXPECTED}"));
                None
            }
            other => {
                report.wrong_type(rule, "a string or an array of strings", other);
                None
            }
        }
    }

    fn write(&self, out: &mut Writer) {
        if !self.listed {
            return out.string(CORE_CONTEXT);
        }
        out.open('[');
        out.string(CORE_CONTEXT);
        out.comma();
        for uri in &self.extensions {
            uri.write(out);
            out.comma();
        }
        out.close(']');
    }

    fn schema() -> Value {
        json!({
            "oneOf": [
                { "const": CORE_CONTEXT },
                {
                    "type": "array",
                    "minItems": 1,
                    "prefixItems": [{ "const": CORE_CONTEXT }],
                    "items": { "type": "string", "format": "uri" },
                },
            ],
        })
    }
}

fn read_list<'a>(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Context<'a>> {
    let list = array(raw);
    let first = list.first().is_some_and(
        |first| matches!(first, Raw::String(string) if string.decode() == CORE_CONTEXT),
    );
    if !first {
        report.error(rule, format_args!("{EXPECTED}"));
    }
    let count = list.len().saturating_sub(1);
    let extensions: Vec<Uri<'a>> = list
        .into_iter()
        .enumerate()
        .skip(1)
        .filter_map(|(index, element)| read_element(index, element, rule, report))
        .collect();
    (first && extensions.len() == count).then_some(Context { extensions, listed: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: D24, E24
    #[test]
    fn a_known_address_declares_its_own_prefix_and_an_unknown_one_one_other() {
        let with = |uris: &[&str]| {
            Context::with(uris.iter().map(|uri| Uri::parse(uri.to_string()).unwrap()).collect())
        };
        let known = with(&["urn:aaep-rs:outcome:v1"]);
        assert_eq!(known.undeclared(["outcome", "medai"]), ["medai"]);
        let unknown = with(&["https://example.org/medai"]);
        assert_eq!(unknown.undeclared(["medai", "outcome", "medai"]), ["outcome"]);
        assert_eq!(unknown.undeclared(["medai", "fin"]), ["fin"]);
        // Somebody else's extension may have the prefix of one of ours.
        assert!(unknown.undeclared(["outcome"]).is_empty());
        assert!(!unknown.is_ours("outcome") && known.is_ours("outcome"));
        let two = with(&["https://example.org/medai", "https://example.org/fin"]);
        assert!(two.undeclared(["medai", "fin"]).is_empty());
        assert_eq!(Context::core().undeclared(["medai"]), ["medai"]);
    }

    // covers: X3
    #[test]
    fn some_prefixes_are_reserved() {
        for prefix in ["aaep", "xsd", "rdf", "rdfs", "@id"] {
            assert!(is_reserved_prefix(prefix));
        }
        assert!(!is_reserved_prefix("medai"));
    }
}
