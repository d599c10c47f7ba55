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

    /// Whether a prefix may have been declared: by an extension we know, or by one we do not.
    pub fn may_declare(&self, prefix: &str) -> bool {
        // enforces: D24
        self.extensions.iter().any(|uri| {
            match KNOWN_EXTENSIONS.iter().find(|known| known.uri == uri.as_str()) {
                Some(known) => known.prefix == prefix,
                None => !KNOWN_EXTENSIONS.iter().any(|known| known.prefix == prefix),
            }
        })
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
    fn a_known_address_declares_its_own_prefix_and_an_unknown_one_any_other() {
        let known = Context::with(vec![Uri::parse("urn:aaep-rs:outcome:v1").unwrap()]);
        assert!(known.may_declare("outcome"));
        assert!(!known.may_declare("medai"));
        let unknown = Context::with(vec![Uri::parse("https://example.org/medai").unwrap()]);
        assert!(unknown.may_declare("medai"));
        assert!(!unknown.may_declare("outcome"));
        assert!(!Context::core().may_declare("medai"));
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
