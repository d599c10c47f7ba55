//! The handshake of the reference producer.

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::listener::Terms;
use super::world::{Listener, ListenerMessage, World, random};
use super::{ProducerFault, STRANGER};
use crate::suite::http::{Request, answer};

/// What its manifest says, but for its name and its levels.
fn manifest(agent: &str, levels: &Value) -> Value {
    json!({
        "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:producer.manifest",
        "agent_id": agent, "aaep_versions_supported": ["1.0.0"],
        "conformance_levels_supported": levels, "transports_supported": ["sse"],
    })
}

impl World {
    /// What lies at the manifest's place.
    pub(super) fn manifest(&self) -> String {
        let all = json!([1, 2, 3]);
        let manifest = match self.fault {
            Some(ProducerFault::NoManifest) => return answer("404 Not Found", "", ""),
            Some(ProducerFault::ManifestOfAnother) => manifest("another", &all),
            Some(ProducerFault::ManifestClaimsLess) => manifest("reference", &json!([1])),
            _ => manifest("reference", &all),
        };
        answer("200 OK", "content-type: application/json\r\n", &manifest.to_string())
    }

    /// `POST subscriptions`.
    pub(super) fn subscribe(&self, request: &Request) -> String {
        let asked = serde_json::from_slice::<Value>(&request.body).unwrap_or_default();
        let stranger = is_stranger(request);
        match self.judge(&request.body, &asked) {
            Some((code, why)) => {
                let code =
                    if self.is(ProducerFault::RejectsWithoutCode) { "because" } else { code };
                let rejected = json!({ "type": "subscription.rejected",
                    "reason_code": code, "reason_message": why });
                let rejected = match self.fault {
                    Some(ProducerFault::RejectsWithServerError) => {
                        return answer("500 Internal Server Error", "", "");
                    }
                    Some(ProducerFault::RejectsWithoutWords) => {
                        json!({ "type": "subscription.rejected", "reason_code": code })
                    }
                    _ => rejected,
                };
                answer("422 Unprocessable Content", JSON, &rejected.to_string())
            }
            None => {
                let terms = Terms::of(&asked["capabilities"], self.fault);
                let accepted = self.accept(terms, stranger);
                answer("201 Created", JSON, &accepted.to_string())
            }
        }
    }

    fn judge(&self, body: &[u8], asked: &Value) -> Option<(&'static str, &'static str)> {
        let capabilities = &asked["capabilities"];
        if !aaep_types::is_valid(body) && !self.is(ProducerFault::AcceptsAnyRequest) {
            return Some(("capabilities_incompatible", "This is no request."));
        }
        if asked["aaep_version"].as_str().is_some_and(|version| !version.starts_with("1."))
            && !self.is(ProducerFault::AcceptsAnyVersion)
        {
            return Some(("version_unsupported", "Only version 1 is spoken here."));
        }
        let signs =
            matches!(self.fault, Some(ProducerFault::AcceptsUnsigned | ProducerFault::SignsBadly));
        if capabilities["accept_signed_manifests_only"] == true && !signs {
            return Some(("manifest_signature_required", "There is no signature."));
        }
        let unknown = capabilities["x-vendor"].is_object();
        (unknown && self.is(ProducerFault::RefusesUnknownCapabilities))
            .then_some(("capabilities_incompatible", "What is x-vendor?"))
    }

    fn accept(&self, terms: Terms, stranger: bool) -> Value {
        let same = self.is(ProducerFault::SameSubscriptionId);
        let id = if same { "sub_same".into() } else { format!("sub_{}", random()) };
        let mut accepted = json!({
            "type": "subscription.accepted", "subscription_id": id, "aaep_version": "1.0.0",
            "producer": { "agent_id": "reference" }, "honored_capabilities": terms.honored,
        });
        if self.is(ProducerFault::AcceptsInPart)
            && let Some(accepted) = accepted.as_object_mut()
        {
            accepted.remove("producer");
        }
        if self.is(ProducerFault::SignsBadly) {
            accepted["signed_manifest"] = json!("eyJhbGciOiJub25lIn0.e30.AAAA");
        }
        let (listener, heard) = mpsc::channel(self.queue());
        self.lock().listeners.push(Listener {
            id: Some(id),
            stranger,
            terms,
            closed: false,
            sender: listener,
            waiting: Some(heard),
        });
        accepted
    }

    /// New terms, or goodbye; the body of the answer, if there is one.
    pub(super) fn change(&self, message: &Value, stranger: bool) -> String {
        let id = message["subscription_id"].as_str().unwrap_or_default();
        let mut state = self.lock();
        let any = self.is(ProducerFault::AnyCloseEndsAll);
        let mut mine = state.listeners.iter_mut().filter(|listener| {
            let named = listener.id.as_deref() == Some(id) && listener.stranger == stranger;
            !listener.closed && (named || (any && listener.id.is_some()))
        });
        if message["type"] == "subscription.close" {
            for listener in mine {
                listener.closed = true;
                if !self.is(ProducerFault::SpeaksAfterClose) {
                    let _ = listener.sender.try_send(ListenerMessage::End);
                }
            }
            return answer("204 No Content", "", "");
        }
        let Some(listener) = mine.next() else { return answer("204 No Content", "", "") };
        let terms = listener.terms.changed(&message["capabilities"], self.fault);
        listener.terms = terms.clone();
        let told = json!({
            "type": "subscription.accepted", "subscription_id": id, "aaep_version": "1.0.0",
            "producer": { "agent_id": "reference" }, "honored_capabilities": terms.honored,
        });
        let _ = listener.sender.try_send(ListenerMessage::Terms(terms));
        answer("200 OK", JSON, &told.to_string())
    }

    /// Whether a reply may name this subscription.
    pub(super) fn may_name(&self, id: &str, stranger: bool) -> bool {
        let state = self.lock();
        let found = state.listeners.iter().find(|it| it.id.as_deref() == Some(id));
        let Some(listener) = found else { return self.is(ProducerFault::TakesUnknownSubscription) };
        let open = !listener.closed || self.is(ProducerFault::TakesFromClosed);
        let able = listener.terms.may_reply() || self.is(ProducerFault::TakesFromMute);
        let own = listener.stranger == stranger || self.is(ProducerFault::TakesBorrowed);
        open && able && own
    }
}

const JSON: &str = "content-type: application/json\r\n";

/// Whether somebody else than the owner sends this.
pub(super) fn is_stranger(request: &Request) -> bool {
    request.header("authorization").is_some_and(|token| token.ends_with(STRANGER))
}
