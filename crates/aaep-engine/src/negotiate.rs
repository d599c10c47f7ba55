//! The handshake (§5): what a subscriber asks for, and what it gets of it.

use aaep_types::handshake::{Capabilities, SubscriptionRequest};
use aaep_types::json::Writer;
use aaep_types::{
    AAEP_VERSION, KNOWN_EXTENSIONS, KnownExtension, LanguageTag, RejectionCode, Set,
    SubscriptionId, Uri, Whole, choose_language,
};

use crate::principal::{Principal, Role};

/// Bytes of what a subscriber asks for. It is kept as long as the subscription, and its filters are
/// looked at for every event.
const CAPABILITIES_BYTES: usize = 8 * 1024;

/// What a producer has to offer.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The producer object of the answer, as JSON.
    pub producer: String,
    /// Languages that can be served.
    pub languages: Vec<LanguageTag<'static>>,
    /// The addresses of extensions that its agents use besides those that it knows itself.
    pub extensions: Vec<String>,
    /// Where the manifest is.
    pub manifest_uri: Option<String>,
    /// The manifest, signed; without it signed-only subscribers are refused.
    pub signed_manifest: Option<String>,
}

/// A refusal with one of the codes of §5.5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why, for programs.
    pub code: RejectionCode,
    /// Why, for people.
    pub message: String,
}

impl Rejection {
    /// Refuses.
    pub fn new(code: RejectionCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The message to send.
    pub fn to_json(&self) -> String {
        let mut out = Writer::new();
        out.open('{');
        for (name, value) in [
            ("type", "subscription.rejected"),
            ("reason_code", self.code.as_str()),
            ("reason_message", &self.message),
        ] {
            out.name(name);
            out.string(value);
            out.comma();
        }
        out.close('}');
        out.finish()
    }
}

/// What was agreed on.
#[derive(Clone, Debug)]
pub struct Agreement<'a> {
    /// The terms; never more permissive than asked (§5.4.4).
    pub honored: Capabilities<'a>,
    /// What was not granted, and why.
    pub notes: Option<String>,
}

impl Agreement<'_> {
    /// Nothing beyond what everybody gets.
    pub(crate) fn nothing() -> Self {
        Self { honored: Capabilities::none(), notes: None }
    }
}

/// Agrees with a subscriber, or says why not.
pub fn negotiate<'a>(
    request: &SubscriptionRequest<'a>,
    peer: &Principal,
    offer: &Offer,
) -> Result<Agreement<'a>, Rejection> {
    // enforces: V1, H15
    if !request.aaep_version.is_served() {
        let text = format!("This producer speaks version {AAEP_VERSION}; ask for that.");
        return Err(Rejection::new(RejectionCode::VersionUnsupported, text));
    }
    agree(&request.capabilities, peer, offer)
}

/// The same for new terms of a subscription that exists.
pub fn agree<'a>(
    asked: &Capabilities<'a>,
    peer: &Principal,
    offer: &Offer,
) -> Result<Agreement<'a>, Rejection> {
    // enforces: I22
    if asked.to_json().len() > CAPABILITIES_BYTES {
        return Err(too_much());
    }
    // enforces: H11, S11
    if asked.demands_signature() && offer.signed_manifest.is_none() {
        let text = "This producer has no signed manifest; accept an unsigned one, or go elsewhere.";
        return Err(Rejection::new(RejectionCode::ManifestSignatureRequired, text));
    }
    // enforces: H14
    let mut honored = asked.clone();
    let mut notes = Vec::new();
    honored.languages = servable(asked, offer, &mut notes);
    honored.supported_extensions = known_extensions(asked, KNOWN_EXTENSIONS, &offer.extensions)?;
    // Every level is served here, so the highest of both is the highest that was asked for.
    // enforces: H9
    honored.supported_conformance_levels = asked
        .supported_conformance_levels
        .clone()
        .or_else(|| Set::new(vec![Whole::new(1).ok()?]).ok());
    // Only extensions that were agreed on keep their capabilities.
    let known = |name: &str| {
        let uri = KNOWN_EXTENSIONS.iter().find(|known| known.prefix == name).map(|known| known.uri);
        honored
            .supported_extensions
            .as_deref()
            .unwrap_or_default()
            .iter()
            .any(|agreed| Some(agreed.as_str()) == uri)
    };
    let other: Vec<_> = asked.other.iter().filter(|(name, _)| known(name)).cloned().collect();
    honored.other = other;
    // An agent never answers (S6), whatever it claims.
    if matches!(peer.role, Role::Agent | Role::Auditor | Role::Listener) {
        for support in
            [&mut honored.supports_confirmation_reply, &mut honored.supports_clarification_reply]
        {
            if support.take() == Some(true) {
                *support = Some(false);
                notes.push("This principal may not answer.".to_owned());
            }
        }
        notes.dedup();
    }
    Ok(Agreement { honored, notes: (!notes.is_empty()).then(|| notes.join(" ")) })
}

/// The refusal when there is no room for another subscription.
pub(crate) fn too_many(text: String) -> Rejection {
    Rejection::new(RejectionCode::RateLimit, text)
}

/// The refusal of terms that nobody could keep.
pub(crate) fn too_much() -> Rejection {
    let text = format!("Ask for less: capabilities may have {CAPABILITIES_BYTES} bytes.");
    Rejection::new(RejectionCode::CapabilitiesIncompatible, text)
}

// enforces: D25
/// D25: the asked tags that can be served; with none, the primary language has to do.
fn servable<'a>(
    asked: &Capabilities<'a>,
    offer: &Offer,
    notes: &mut Vec<String>,
) -> Option<Set<LanguageTag<'a>, 1, 32>> {
    let wanted = asked.languages.as_deref()?;
    let served: Vec<LanguageTag<'a>> = wanted
        .iter()
        .filter(|tag| choose_language(std::slice::from_ref(*tag), &offer.languages, &[]).is_some())
        .cloned()
        .collect();
    if served.is_empty() {
        notes.push(
            "None of these languages can be served; the agent's own language is used.".to_owned(),
        );
    }
    Set::new(served).ok()
}

// enforces: H12, D24
/// H12, D24: the extensions that we know; X2: no two with the same prefix.
fn known_extensions<'a>(
    asked: &Capabilities<'a>,
    registry: &[KnownExtension],
    others: &[String],
) -> Result<Option<Set<Uri<'a>, 0, 64>>, Rejection> {
    let Some(asked) = asked.supported_extensions.as_deref() else { return Ok(None) };
    let mut prefixes: Vec<&str> = Vec::new();
    let mut agreed = Vec::new();
    for uri in asked {
        let Some(known) = registry.iter().find(|known| known.uri == uri.as_str()) else {
            if others.iter().any(|other| other == uri.as_str()) {
                agreed.push(uri.clone());
            }
            continue;
        };
        // enforces: X2
        if prefixes.contains(&known.prefix) {
            let text =
                format!("Two extensions use the prefix {}; ask for one of them.", known.prefix);
            return Err(Rejection::new(RejectionCode::CapabilitiesIncompatible, text));
        }
        prefixes.push(known.prefix);
        agreed.push(uri.clone());
    }
    Ok(Set::new(agreed).ok())
}

/// The message that tells a subscriber what was agreed on.
pub fn accepted(id: SubscriptionId, agreement: &Agreement<'_>, offer: &Offer) -> String {
    let mut out = Writer::new();
    out.open('{');
    for (name, value) in [
        ("type", "subscription.accepted"),
        ("subscription_id", id.as_str()),
        ("aaep_version", AAEP_VERSION),
    ] {
        out.name(name);
        out.string(value);
        out.comma();
    }
    out.name("producer");
    out.json(&offer.producer);
    out.comma();
    out.name("honored_capabilities");
    out.json(&agreement.honored.to_json());
    out.comma();
    let optional = [
        ("manifest_uri", &offer.manifest_uri),
        ("signed_manifest", &offer.signed_manifest),
        ("negotiation_notes", &agreement.notes),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            out.name(name);
            out.string(value);
            out.comma();
        }
    }
    out.close('}');
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_types::Message;

    fn offer() -> Offer {
        Offer {
            producer: r#"{"agent_id":"hub"}"#.into(),
            languages: vec![
                LanguageTag::parse("en-US").unwrap(),
                LanguageTag::parse("yo-NG").unwrap(),
            ],
            extensions: Vec::new(),
            manifest_uri: Some("https://example.org/.well-known/aaep-manifest.json".into()),
            signed_manifest: None,
        }
    }

    fn ask(version: &str, capabilities: &str) -> Result<(String, Option<String>), Rejection> {
        let text = format!(
            r#"{{"type":"subscription.request","aaep_version":"{version}","subscriber_id":"reader","capabilities":{capabilities}}}"#
        );
        let Ok(Message::Request(request)) = Message::parse(text.as_bytes()) else {
            panic!("{text}")
        };
        let ann = Principal::new("reader", Role::AccessibilityConsumer, "ann");
        let agreement = negotiate(&request, &ann, &offer())?;
        let json = accepted(SubscriptionId::from_bits(1), &agreement, &offer());
        assert!(matches!(Message::parse(json.as_bytes()), Ok(Message::Accepted(_))), "{json}");
        Ok((agreement.honored.to_json(), agreement.notes))
    }

    // covers: H9, H13, H14, H15
    #[test]
    fn what_is_asked_within_reason_is_granted_and_nothing_more() {
        let asked = r#"{"max_events_per_second":5,"preferred_verbosity":"terse","languages":["yo"],"supports_confirmation_reply":true,"coalesce_boundaries":["sentence"],"event_filters":{"exclude":["aaep:agent.progress.*"]},"supported_conformance_levels":[1,2]}"#;
        assert_eq!(ask("1.0.0", asked).unwrap().0, asked);
        let (none, notes) = ask("1.0.0", "{}").unwrap();
        assert_eq!((none.as_str(), notes), (r#"{"supported_conformance_levels":[1]}"#, None));
    }

    // covers: V1
    #[test]
    fn an_unknown_major_version_is_refused_and_a_newer_minor_one_served() {
        assert_eq!(ask("99.99.99", "{}").unwrap_err().code, RejectionCode::VersionUnsupported);
        assert!(ask("1.7.0", "{}").is_ok());
        let json = ask("2.0.0", "{}").unwrap_err().to_json();
        assert!(matches!(Message::parse(json.as_bytes()), Ok(Message::Rejected(_))));
    }

    // covers: I22, H15
    #[test]
    fn who_asks_for_endless_terms_is_refused() {
        let patterns = |count| {
            let all: Vec<String> = (0..count).map(|n| format!("\"aaep:x{n}*\"")).collect();
            format!(r#"{{"event_filters":{{"exclude":[{}]}}}}"#, all.join(","))
        };
        assert!(ask("1.0.0", &patterns(500)).is_ok());
        let refused = ask("1.0.0", &patterns(1000)).unwrap_err();
        assert_eq!(refused.code, RejectionCode::CapabilitiesIncompatible);
        let unknown = format!(r#"{{"x":{{"y":"{}"}}}}"#, "z".repeat(CAPABILITIES_BYTES));
        assert!(ask("1.0.0", &unknown).is_err());
    }

    // covers: H11, S11
    #[test]
    fn who_wants_only_signed_manifests_is_refused_while_there_is_none() {
        let refused = ask("1.0.0", r#"{"accept_signed_manifests_only":true}"#).unwrap_err();
        assert_eq!(refused.code, RejectionCode::ManifestSignatureRequired);
    }

    // covers: D25, L3
    #[test]
    fn languages_that_cannot_be_served_are_left_out_and_that_is_said() {
        assert!(
            ask("1.0.0", r#"{"languages":["fr","en-GB"]}"#)
                .unwrap()
                .0
                .contains(r#""languages":["en-GB"]"#)
        );
        let (honored, notes) = ask("1.0.0", r#"{"languages":["fr"]}"#).unwrap();
        assert!(!honored.contains("languages") && notes.is_some());
    }

    // covers: H12, D24
    #[test]
    fn unknown_extensions_are_ignored() {
        let asked = r#"{"supported_extensions":["https://example.org/x","urn:aaep-rs:timing:v1"],"x":{"a":1},"timing":{"factor":3}}"#;
        let (honored, _) = ask("1.0.0", asked).unwrap();
        assert!(
            honored.contains(r#"["urn:aaep-rs:timing:v1"]"#)
                && honored.contains(r#""timing":{"factor":3}"#)
        );
        assert!(!honored.contains("example.org") && !honored.contains("\"x\""));
    }

    // covers: X2
    #[test]
    fn two_extensions_with_one_prefix_are_refused_and_the_prefix_named() {
        let registry = [
            KnownExtension { uri: "urn:one", prefix: "med" },
            KnownExtension { uri: "urn:two", prefix: "med" },
        ];
        let mut asked = Capabilities::none();
        let uris = ["urn:one", "urn:two"].map(|uri| Uri::parse(uri).unwrap());
        asked.supported_extensions = Set::new(uris.to_vec()).ok();
        let refused = known_extensions(&asked, &registry, &[]).unwrap_err();
        assert_eq!(refused.code, RejectionCode::CapabilitiesIncompatible);
        assert!(refused.message.contains("med"));
    }

    // covers: S6
    #[test]
    fn an_agent_gets_no_reply_support_whatever_it_claims() {
        let agent = Principal::new("agent", Role::Agent, "ann");
        let mut asked = Capabilities::none();
        asked.supports_confirmation_reply = Some(true);
        let agreement = agree(&asked, &agent, &offer()).unwrap();
        assert_eq!(agreement.honored.supports_confirmation_reply, Some(false));
    }
}
