//! What the hub says of itself (§5.10), at `/.well-known/aaep-manifest.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aaep_types::profile::Profile;
use aaep_types::{AAEP_VERSION, CORE_CONTEXT, EventKind, KNOWN_EXTENSIONS};
use arc_swap::ArcSwapOption;
use bytes::Bytes;
use serde_json::json;

use crate::config::{Config, Language};
use crate::hub::Hub;
use crate::{clock, files};

/// Where it is.
pub(crate) const PATH: &str = "/.well-known/aaep-manifest.json";

/// How long a signature is good, in seconds. After that, a copied manifest proves nothing.
const SIGNED_SECONDS: u32 = 24 * 60 * 60;

/// How old a signature becomes before the manifest is signed anew, in seconds.
const RENEWED_SECONDS: i64 = 60 * 60;

/// How often it is looked at how old it is: a machine may have slept.
const LOOK_UP: Duration = Duration::from_secs(60);

/// How long a list of agents is told before it is made again.
const FRESH: Duration = Duration::from_secs(1);

/// The user whose agents are named, or everybody's.
type Audience = Option<Arc<str>>;

/// Manifests that were made, to be sent to many: a slow reader holds a reference, not a copy.
pub(crate) struct Manifests {
    /// For everybody: the hub's own part.
    own: Bytes,
    /// The same, signed, and when it was, in seconds of Unix time.
    signed: ArcSwapOption<(Bytes, i64)>,
    /// For those who are let in, by the user whose agents are named; `None` for all of them.
    listed: Mutex<BTreeMap<Audience, (Instant, Bytes)>>,
}

impl Manifests {
    pub(crate) fn new(config: &Config, profile: Option<&Profile>) -> Self {
        Self {
            own: of(config, profile, None).into(),
            signed: ArcSwapOption::empty(),
            listed: Mutex::default(),
        }
    }

    /// The hub's own part, signed; `None` if the hub has no key.
    pub(crate) fn signed(&self) -> Option<Bytes> {
        self.signed.load().as_ref().map(|signed| signed.0.clone())
    }

    fn is_due(&self, now: i64) -> bool {
        let signed = self.signed.load();
        signed.as_ref().is_some_and(|signed| !(signed.1..signed.1 + RENEWED_SECONDS).contains(&now))
    }

    // enforces: I22, I29
    /// The hub's own part.
    pub(crate) fn own(&self) -> Bytes {
        self.own.clone()
    }

    /// The list of a moment ago, if there is one.
    pub(crate) fn listed(&self, user: Option<&Arc<str>>) -> Option<Bytes> {
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        listed.retain(|_, (made, _)| now.duration_since(*made) < FRESH);
        listed.get(&user.cloned()).map(|(_, bytes)| bytes.clone())
    }

    /// Keeps a list for the next caller.
    pub(crate) fn keep(&self, user: Option<Arc<str>>, text: String) -> Bytes {
        let bytes = Bytes::from(text);
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        listed.insert(user, (Instant::now(), bytes.clone()));
        bytes
    }
}

impl Hub {
    // enforces: S7, S11
    /// Signs the manifest with the key in force, and offers it to subscribers from now on; without a
    /// key it is offered unsigned.
    pub(crate) fn sign_manifest(&self) {
        let (manifests, key) = (&self.0.manifests, self.0.manifest_key.load_full());
        let now = clock::now().wall.as_millis().div_euclid(1000);
        let own = std::str::from_utf8(&manifests.own).unwrap_or_default();
        let signed = key.and_then(|key| match key.sign(own, now, SIGNED_SECONDS) {
            Ok(signed) => Some(signed),
            Err(error) => {
                tracing::error!(%error, "the manifest cannot be signed");
                None
            }
        });
        let mut offer = (**self.0.offer.load()).clone();
        offer.signed_manifest.clone_from(&signed);
        manifests.signed.store(signed.map(|signed| Arc::new((Bytes::from(signed), now))));
        let offer = Arc::new(offer);
        self.0.offer.store(offer.clone());
        self.tell(move |core| core.set_offer(offer));
    }

    /// Signs it anew before it is stale, as long as the hub works.
    pub(crate) async fn keep_manifest_fresh(self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_UP) => {}
                () = self.stopping() => return,
            }
            if self.0.manifests.is_due(clock::now().wall.as_millis().div_euclid(1000)) {
                self.sign_manifest();
            }
        }
    }
}

// enforces: H22, W15
/// Where the manifest lies for programs on this machine (B.7.1): beside the socket, with
/// `.manifest.json` in the place of `.sock`. It is taken away when the hub stops.
pub(crate) struct LocalFile(PathBuf);

impl LocalFile {
    /// Writes it. That nobody can read it is no reason not to start.
    pub(crate) fn write(socket: &Path, text: &[u8]) -> Option<Self> {
        let path = socket.with_extension("manifest.json");
        // One that a hub left behind which was killed.
        let _ = std::fs::remove_file(&path);
        match files::write_private_for_now(&path, text) {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "the manifest cannot be written");
                None
            }
        }
    }
}

impl Drop for LocalFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

// enforces: H22, H27
/// The manifest; `agents` are those behind the hub, whose events bear their own names. They are told
/// to those who are let in.
pub(crate) fn of(config: &Config, profile: Option<&Profile>, agents: Option<&[String]>) -> String {
    let base = config.base.as_str();
    let mut transports = vec!["sse", "websocket"];
    let mut framing = json!({
        "sse": { "path_prefix": base, "framing": "one event per message, id is the event_id" },
        "websocket": { "path": format!("{base}/ws"), "subprotocol": "aaep.v1", "framing": "one message per text frame" },
    });
    if cfg!(unix) && config.unix_socket.enabled {
        transports.push("unix");
        framing["unix"] = json!({ "framing": "4-byte big-endian length" });
    }
    let mut manifest = json!({
        "@context": CORE_CONTEXT,
        "type": "aaep:producer.manifest",
        "agent_id": config.hub.agent_id.as_str(),
        "agent_name": config.hub.agent_name.as_str(),
        "agent_version": env!("CARGO_PKG_VERSION"),
        "aaep_versions_supported": [AAEP_VERSION],
        "conformance_levels_supported": [1, 2, 3],
        "transports_supported": transports,
        // How each of them is spoken here.
        "transports": framing,
        "languages_supported": config.hub.languages.iter().map(Language::as_str).collect::<Vec<_>>(),
        "event_types_emitted": EventKind::ALL.map(EventKind::as_str),
        "extensions_supported": KNOWN_EXTENSIONS.iter().map(|known| known.uri).collect::<Vec<_>>(),
        "default_verbosity": "normal",
        "max_concurrent_subscriptions": config.limits.subscriptions,
    });
    // enforces: X9
    if let Some(profile) = profile {
        // §9.6: a claim names the profile and its version.
        manifest["profiles"] = json!([{ "profile": profile.uri, "version": profile.version }]);
        let known = manifest["extensions_supported"].as_array_mut().into_iter();
        known.for_each(|known| {
            for uri in &profile.extensions {
                if !known.iter().any(|known| known == uri) {
                    known.push(uri.as_str().into());
                }
            }
        });
    }
    if let Some(agents) = agents {
        manifest["agents"] = agents.into();
    }
    manifest.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: I22, I29
    #[test]
    fn whoever_reads_a_manifest_slowly_holds_a_reference_and_no_copy() {
        let manifests = Manifests::new(&Config::default(), None);
        assert_eq!(manifests.own().as_ptr(), manifests.own().as_ptr());
        let user: Arc<str> = "ann".into();
        let kept = manifests.keep(Some(user.clone()), "{}".into());
        let [first, second] = [(); 2].map(|()| manifests.listed(Some(&user)).unwrap());
        assert!(first.as_ptr() == kept.as_ptr() && second.as_ptr() == kept.as_ptr());
        assert!(manifests.listed(None).is_none(), "that is another list");
    }
    use aaep_types::Message;

    #[test]
    fn a_signature_is_renewed_when_it_is_old_or_the_clock_went_back() {
        let manifests = Manifests::new(&Config::default(), None);
        assert!(!manifests.is_due(5000), "there is no key");
        manifests.signed.store(Some(Arc::new((Bytes::new(), 5000))));
        assert!(!manifests.is_due(5000) && !manifests.is_due(5000 + RENEWED_SECONDS - 1));
        assert!(manifests.is_due(5000 + RENEWED_SECONDS) && manifests.is_due(4999));
    }

    // covers: H22, H27
    #[test]
    fn the_manifest_is_one_and_names_the_agents_behind_the_hub() {
        let text = of(&Config::default(), None, Some(&["cook".to_owned()]));
        let parsed = Message::parse(text.as_bytes());
        assert!(matches!(parsed, Ok(Message::Manifest(_))), "{parsed:?}");
        let own = of(&Config::default(), None, None);
        assert!(matches!(Message::parse(own.as_bytes()), Ok(Message::Manifest(_))));
        assert!(!own.contains("\"agents\""));
        assert!(text.contains(r#""agents":["cook"]"#) && text.contains("/aaep/v1"));
        // The shapes of §5.10.1: names, not objects.
        let told: serde_json::Value = serde_json::from_str(&own).unwrap();
        let transports = told["transports_supported"].as_array().unwrap();
        assert!(transports.iter().all(serde_json::Value::is_string), "{own}");
        assert_eq!(told["languages_supported"], serde_json::json!(["en"]));
    }
}
