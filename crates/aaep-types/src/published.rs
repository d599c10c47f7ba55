//! Our own extensions, published as §7.7 asks of anyone: for each its address, its version, a JSON-LD
//! context and its schemas. The page about them is `docs/extensions.md`.

use serde_json::{Map, Value, json};

use crate::schema::Schema;
use crate::{action, presence, redaction, resume, team};

/// One of our extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnExtension {
    /// Its address, which stands in `@context`.
    pub uri: &'static str,
    /// Its prefix.
    pub prefix: &'static str,
    /// Its version; the first number is also in the address (§7.9).
    pub version: &'static str,
    /// What it is for.
    pub purpose: &'static str,
    /// The terms that it defines.
    pub terms: &'static [&'static str],
    /// The names of its schemas, as `aaep schema` knows them.
    pub schemas: &'static [&'static str],
}

// enforces: X7, X10
/// Every extension of ours.
pub const OWN_EXTENSIONS: &[OwnExtension] = &[
    OwnExtension {
        uri: "urn:aaep-rs:outcome:v1",
        prefix: "outcome",
        version: "1.0.0",
        purpose: "Which request an event resolves, and how.",
        terms: &["request_event_id", "outcome", "reason"],
        schemas: &["extensions/outcome"],
    },
    OwnExtension {
        uri: "urn:aaep-rs:timing:v1",
        prefix: "timing",
        version: "1.0.0",
        purpose: "More time to answer.",
        terms: &["extend", "supersedes", "factor", "seconds"],
        schemas: &["extensions/timing.extend", "extensions/timing", "extensions/timing.capability"],
    },
    OwnExtension {
        uri: "urn:aaep-rs:control:v1",
        prefix: "control",
        version: "1.0.0",
        purpose: "A person stops the agent.",
        terms: &["cancel"],
        schemas: &["extensions/control.cancel"],
    },
    OwnExtension {
        uri: action::URI,
        prefix: action::PREFIX,
        version: "1.0.0",
        purpose: "The hub's own account of an action that is asked about.",
        terms: &["tool", "arguments", "digest", "described_by", "shortened", "redacted"],
        schemas: &["extensions/action"],
    },
    OwnExtension {
        uri: redaction::URI,
        prefix: redaction::PREFIX,
        version: "1.0.0",
        purpose: "What was taken out of the texts of an event.",
        terms: &["removed"],
        schemas: &["extensions/redaction"],
    },
    OwnExtension {
        uri: resume::URI,
        prefix: resume::PREFIX,
        version: "1.0.0",
        purpose: "Where a listener left off, on connections that have no way of their own to say so.",
        terms: &["last_event_id", "subscription_id"],
        schemas: &["extensions/resume"],
    },
    OwnExtension {
        uri: team::URI,
        prefix: team::PREFIX,
        version: "1.0.0",
        purpose: "Who speaks in a session besides the agent that opened it.",
        terms: &["agents"],
        schemas: &["extensions/team"],
    },
    OwnExtension {
        uri: presence::URI,
        prefix: presence::PREFIX,
        version: "1.0.0",
        purpose: "How present a person has to be to say yes, and how they show it.",
        terms: &["needs", "unlock", "pin", "state", "seconds", "failures"],
        schemas: &[
            "extensions/presence",
            "extensions/presence.unlock",
            "extensions/presence.state",
        ],
    },
];

impl OwnExtension {
    /// Its JSON-LD context: what its prefix and its terms stand for.
    pub fn context(&self) -> Value {
        let mut terms = Map::new();
        terms.insert("@version".into(), json!(1.1));
        terms.insert(self.prefix.into(), json!(format!("{}#", self.uri)));
        for term in self.terms.iter().filter(|term| **term != self.prefix) {
            terms.insert((*term).into(), json!(format!("{}:{term}", self.prefix)));
        }
        json!({ "@context": terms })
    }
}

/// The JSON-LD contexts of our extensions, each with its file.
pub fn contexts() -> Vec<Schema> {
    let file = |own: &OwnExtension| Schema {
        path: format!("extensions/{}.context.jsonld", own.prefix),
        document: own.context(),
    };
    OWN_EXTENSIONS.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KNOWN_EXTENSIONS, schema};

    // covers: X7, X10
    #[test]
    fn every_extension_that_we_know_is_published_with_version_context_and_schemas() {
        assert_eq!(OWN_EXTENSIONS.len(), KNOWN_EXTENSIONS.len());
        let schemas = schema::all();
        for (own, known) in OWN_EXTENSIONS.iter().zip(KNOWN_EXTENSIONS) {
            assert_eq!((own.uri, own.prefix), (known.uri, known.prefix));
            // §7.9: the major version is in the address.
            let major = own.version.split('.').next().unwrap_or_default();
            assert!(own.uri.ends_with(&format!(":v{major}")), "{}", own.uri);
            let context = &own.context()["@context"];
            assert_eq!(context[own.prefix], format!("{}#", own.uri));
            assert!(!own.schemas.is_empty());
            for name in own.schemas {
                assert!(schemas.iter().any(|schema| schema.name() == *name), "{name}");
            }
        }
    }

    // covers: X5, X7
    #[test]
    fn an_extension_is_judged_by_its_own_members_whatever_else_the_event_says() {
        let event = |prefix: &str, uri: &str, (kind, payload): (&str, &str)| {
            format!(
                r#"{{"@context":["https://aaep-protocol.org/context/v1","{uri}"],"aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_1","session_id":"sess_1","sequence_number":1,"timestamp":"2026-05-24T14:22:11.000Z","producer":{{"agent_id":"a"}},"localization_hints":{{"primary_language":"en"}},{payload},"summary_terse":"T","summary_normal":"N","summary_detailed":"D","extensions":{{"{prefix}":{{"odd":7}}}}}}"#
            )
        };
        let progress = ("progress.updated", r#""progress":{"percent":1}"#);
        let state = ("state.changed", r#""from_state":"thinking","to_state":"deciding""#);
        for own in OWN_EXTENSIONS {
            let judged = |uri: &str, said: (&str, &str)| {
                let problems = crate::validate(event(own.prefix, uri, said).as_bytes());
                problems.into_iter().map(|found| (found.pointer, found.rule)).collect::<Vec<_>>()
            };
            let found = judged(own.uri, progress);
            assert_eq!(found, judged(own.uri, state), "{}", own.prefix);
            let inside = format!("/extensions/{}", own.prefix);
            assert!(found.iter().all(|(at, _)| at.starts_with(&inside)), "{found:?}");
            // Two of them add nothing to events.
            let adds = !["control", "resume"].contains(&own.prefix);
            assert_eq!(found.is_empty(), !adds, "{}: {found:?}", own.prefix);
            // Another extension may have its prefix, and other members.
            assert_eq!(judged("https://example.org/another/v1", progress), []);
        }
        // Nor does a schema of ours refer to anything outside itself.
        for schema in schema::all().iter().filter(|schema| schema.path.starts_with("extensions/")) {
            assert!(!schema.document.to_string().contains("$ref"), "{}", schema.path);
        }
    }

    // covers: X7, X10
    #[test]
    fn the_page_tells_of_every_extension_and_every_schema() {
        let page = include_str!("../../../docs/extensions.md");
        for own in OWN_EXTENSIONS {
            for told in [own.uri, own.version].iter().chain(own.terms).chain(own.schemas) {
                assert!(page.contains(&format!("`{told}`")), "{told} of {}", own.prefix);
            }
        }
    }
}
