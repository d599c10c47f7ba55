//! Signed tokens (JWT) of identity providers.
//!
//! A token is believed if its issuer is one of the configuration's, a key of that issuer that fits the
//! algorithm has signed it, it was made for this hub, and it is neither too old nor too new. Keys are
//! read from a file at every start and reload, or fetched in the background: a request never waits for
//! somebody else's server. A refused client learns nothing of why.

mod fetch;
mod keys;
mod recent;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use aaep_engine::{Principal, Role};
use arc_swap::ArcSwap;
use jsonwebtoken::{Header, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::Notify;

use self::fetch::Fetching;
use self::keys::Keys;
use self::recent::Recent;
use super::TokenHash;
use crate::config::{IssuerEntry, Label};
use crate::sign_in::Offer;
use crate::{Fault, files};

/// The longest token that is looked at, in bytes.
const MAX_TOKEN_BYTES: usize = 8 << 10;

/// The largest JWK set, in bytes.
const MAX_KEYS_BYTES: usize = 256 << 10;

/// An identity provider: its entry in the configuration, and its keys.
pub(super) struct Issuer {
    entry: Arc<IssuerEntry>,
    keys: ArcSwap<Keys>,
    /// Certificates that vouch for where the keys are fetched.
    roots: Option<Vec<u8>>,
    /// What was verified under these keys, so that a message costs no signature.
    recent: Mutex<Recent>,
    /// Somebody showed a key that is not known: it may be new.
    unknown_key: Arc<Notify>,
    fetching: OnceLock<Fetching>,
}

/// Somebody whom a token names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signed {
    pub(super) principal: Principal,
    /// When the token is no longer believed, in milliseconds of the wall clock.
    pub(super) expires: i64,
    pub(super) issuer: Arc<IssuerEntry>,
    /// Whether it was seen for the first time.
    pub(super) is_new: bool,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer").field("entry", &self.entry).finish_non_exhaustive()
    }
}

/// What is read of a token before it is verified.
#[derive(Deserialize)]
struct Claimed {
    iss: String,
}

impl Issuer {
    /// Reads the keys, if they are in a file.
    pub(super) fn new(entry: &IssuerEntry) -> Result<Self, Fault> {
        let read = |path: &PathBuf| {
            files::read_trusted(path, u64::try_from(MAX_KEYS_BYTES).unwrap_or(u64::MAX))
        };
        let keys = match &entry.keys_file {
            Some(path) => {
                let bytes = read(path)?;
                Keys::parse(&bytes).map_err(|what| {
                    Fault::file(path, what, "Put the issuer's JWK set there, with its public keys.")
                })?
            }
            None => Keys::default(),
        };
        Ok(Self {
            entry: Arc::new(entry.clone()),
            keys: ArcSwap::from_pointee(keys),
            roots: entry.keys_ca.as_ref().map(read).transpose()?,
            recent: Mutex::default(),
            unknown_key: Arc::new(Notify::new()),
            fetching: OnceLock::new(),
        })
    }

    pub(super) fn entry(&self) -> &Arc<IssuerEntry> {
        &self.entry
    }

    /// How people sign in with it, if they do.
    pub(super) fn offer(&self) -> Option<Offer> {
        let sign_in = self.entry.sign_in.clone()?;
        Some(Offer {
            name: self.entry.name.to_string(),
            issuer: self.entry.issuer.clone(),
            client_id: sign_in.client_id,
            scopes: sign_in.scopes,
            resource: sign_in.resource,
            audience: sign_in.audience,
        })
    }

    /// Certificates in PEM that vouch for it, beside those of this machine.
    pub(super) fn roots(&self) -> Option<Vec<u8>> {
        self.roots.clone()
    }

    /// Begins to fetch the keys, if that is where they come from. To be called inside a runtime.
    pub(super) fn keep_fresh(self: &Arc<Self>) {
        if self.entry.keys_url.is_some() {
            self.fetching.get_or_init(|| Fetching::start(self));
        }
    }

    fn take_keys(&self, keys: Keys) {
        self.keys.store(Arc::new(keys));
        self.recent().clear();
    }

    fn recent(&self) -> std::sync::MutexGuard<'_, Recent> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whom this token names, if it is one of this issuer's and good at this time.
    fn verify(&self, text: &str, header: &Header, now: i64) -> Option<Signed> {
        let hash = TokenHash::of(text);
        let seen = self.recent().get(&hash);
        let (principal, begins, expires, is_new) = match seen {
            Some(seen) => (seen.principal, seen.begins, seen.expires, false),
            None => {
                let keys = self.keys.load_full();
                let (principal, begins, expires) = self.check(text, header, &keys)?;
                let verified = recent::Verified { principal: principal.clone(), begins, expires };
                if (begins..expires).contains(&now) {
                    let mut recent = self.recent();
                    // Under other keys it has to be verified again.
                    if Arc::ptr_eq(&keys, &self.keys.load()) {
                        recent.insert(hash, verified);
                    }
                }
                (principal, begins, expires, true)
            }
        };
        let good = (begins..expires).contains(&now);
        good.then(|| Signed { principal, expires, issuer: self.entry.clone(), is_new })
    }

    /// Verifies the signature and reads the claims: who it is, from when, until when.
    fn check(&self, text: &str, header: &Header, keys: &Keys) -> Option<(Principal, i64, i64)> {
        let allowed = self.entry.algorithms.iter().any(|algorithm| algorithm.is(header.alg));
        // Nothing of ours needs an extension, a token in a token, or compression.
        let nested = header.cty.as_deref().is_some_and(|cty| cty.eq_ignore_ascii_case("jwt"));
        let typ = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        let is_token = ["jwt", "at+jwt", "application/at+jwt"].contains(&&*typ);
        if !allowed || nested || !is_token || header.crit.is_some() || header.zip.is_some() {
            return None;
        }
        let Some(key) = keys.find(header.kid.as_deref(), header.alg) else {
            self.unknown_key.notify_one();
            return None;
        };
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&self.entry.issuer]);
        validation.set_audience(&[&self.entry.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        // Time is looked at every time a token is shown, by the hub's own clock.
        validation.validate_exp = false;
        let claims = decode::<Map<String, Value>>(text, key, &validation).ok()?.claims;
        let skew = f64::from(self.entry.clock_skew_seconds);
        let seconds = |name: &str| claims.get(name).map(|value| value.as_f64().ok_or(()));
        let expires = seconds("exp")?.ok()? + skew;
        let mut begins = f64::MIN;
        for name in ["nbf", "iat"] {
            match seconds(name) {
                Some(Ok(time)) => begins = begins.max(time - skew),
                Some(Err(())) => return None,
                None => {}
            }
        }
        Some((self.principal(&claims)?, millis(begins), millis(expires)))
    }

    fn principal(&self, claims: &Map<String, Value>) -> Option<Principal> {
        let text = |claim: &str| claims.get(claim)?.as_str();
        let name = format!("{}/{}", self.entry.name, text(&self.entry.name_claim)?);
        let name = Label::parse(&name).ok()?;
        let user = Label::parse(text(&self.entry.user_claim)?).ok()?;
        Some(Principal::new(name.as_str(), self.role(claims)?, user.as_str()))
    }

    /// The one role that the claims stand for. Claims that fit two roles give neither.
    fn role(&self, claims: &Map<String, Value>) -> Option<Role> {
        let Some(claim) = &self.entry.role_claim else { return Some(self.entry.role?.0) };
        let values: Vec<&str> = match claims.get(claim)? {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => return None,
        };
        let mut roles = values.iter().filter_map(|value| self.entry.roles.get(*value));
        let first = roles.next()?;
        roles.all(|other| other == first).then_some(first.0)
    }
}

// enforces: S4, S14
/// Whom a token names, by whichever of these issuers has signed it.
pub(super) fn signed(issuers: &[Arc<Issuer>], text: &str, now: i64) -> Option<Signed> {
    if issuers.is_empty() || text.len() > MAX_TOKEN_BYTES {
        return None;
    }
    let header = decode_header(text).ok()?;
    let claimed: Claimed = jsonwebtoken::dangerous::insecure_decode_claims(text).ok()?;
    issuers
        .iter()
        .filter(|issuer| issuer.entry.issuer == claimed.iss)
        .find_map(|issuer| issuer.verify(text, &header, now))
}

/// Seconds as a claim gives them, in milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a float that is too large becomes the last one"
)]
fn millis(seconds: f64) -> i64 {
    (seconds * 1000.0) as i64
}
