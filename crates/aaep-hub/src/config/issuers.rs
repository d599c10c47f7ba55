//! Identity providers whose signed tokens are believed.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aaep_engine::Role;
use serde::{Deserialize, Serialize};

use super::{Label, RoleName};

/// An identity provider, and what the claims of its tokens (JWT) mean here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IssuerEntry {
    /// What its principals are named after: with `login`, the subject `ann` is `login/ann`.
    pub name: Label,
    /// The `iss` of its tokens, to the letter.
    pub issuer: String,
    /// What their `aud` has to name.
    pub audience: String,
    /// A file with its public keys (a JWK set); this or an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_file: Option<PathBuf>,
    /// Where its public keys are, `https` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_url: Option<String>,
    /// Certificates in PEM that vouch for that address, beside those of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_ca: Option<PathBuf>,
    /// How often the keys are fetched again.
    #[serde(default = "refresh_seconds")]
    pub refresh_seconds: u32,
    /// Algorithms that are accepted.
    #[serde(default = "algorithms")]
    pub algorithms: Vec<SigningAlgorithm>,
    /// How far its clock may be from this machine's.
    #[serde(default = "clock_skew_seconds")]
    pub clock_skew_seconds: u32,
    /// The claim that names the program or device.
    #[serde(default = "subject")]
    pub name_claim: String,
    /// The claim that names the person it acts for.
    #[serde(default = "subject")]
    pub user_claim: String,
    /// The role of all its principals; this, or a claim and what its values mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<RoleEntry>,
    /// The claim that says the role: a text or a list of texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_claim: Option<String>,
    /// Which role each of its values stands for; others stand for none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, RoleEntry>,
    /// How people sign in with it, by `aaep login` or from the page. Without it, tokens come from
    /// elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<SignInEntry>,
}

/// How people sign in with an identity provider. The client is a public one: it has no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignInEntry {
    /// What the hub and its clients are called there.
    pub client_id: String,
    /// What is asked for. `offline_access` brings a token that is worth new ones.
    #[serde(default = "scopes")]
    pub scopes: Vec<String>,
    /// What the access token is to be good for (RFC 8707), if the provider has to be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The same, for providers that want it as the parameter `audience`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
}

fn scopes() -> Vec<String> {
    vec!["openid".into(), "offline_access".into()]
}

/// A role, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RoleEntry(#[serde(with = "RoleName")] pub Role);

/// How tokens may be signed. All are asymmetric: verifying one does not allow making one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SigningAlgorithm {
    /// ECDSA with P-256.
    ES256,
    /// ECDSA with P-384.
    ES384,
    /// Ed25519.
    EdDSA,
    /// RSA, PKCS #1 v1.5, of at least 2048 bits.
    RS256,
    /// RSA, PSS, of at least 2048 bits.
    PS256,
}

fn refresh_seconds() -> u32 {
    300
}

fn clock_skew_seconds() -> u32 {
    60
}

fn subject() -> String {
    "sub".into()
}

fn algorithms() -> Vec<SigningAlgorithm> {
    use SigningAlgorithm::{ES256, ES384, EdDSA, PS256, RS256};
    vec![ES256, ES384, EdDSA, RS256, PS256]
}

impl IssuerEntry {
    /// One with every key set, for what lists all keys.
    pub(super) fn with_every_key() -> Self {
        let path = || Some(PathBuf::from("path"));
        let role = RoleEntry(Role::Agent);
        Self {
            name: Label::fixed("name"),
            issuer: "issuer".into(),
            audience: "audience".into(),
            keys_file: path(),
            keys_url: Some("url".into()),
            keys_ca: path(),
            refresh_seconds: refresh_seconds(),
            algorithms: algorithms(),
            clock_skew_seconds: clock_skew_seconds(),
            name_claim: subject(),
            user_claim: subject(),
            role: Some(role),
            role_claim: Some("role".into()),
            roles: BTreeMap::from([("value".into(), role)]),
            sign_in: Some(SignInEntry {
                client_id: "client".into(),
                scopes: scopes(),
                resource: Some("resource".into()),
                audience: Some("audience".into()),
            }),
        }
    }

    /// What only several keys together can get wrong: the key, what is wrong, and what to do.
    pub(super) fn wrong(&self) -> Option<(&'static str, &'static str, &'static str)> {
        let https = self.keys_url.as_ref().is_none_or(|url| url.starts_with("https://"));
        if self.keys_file.is_some() == self.keys_url.is_some() {
            let what = "It needs either keys_file or keys_url.";
            return Some(("keys_file", what, "Give exactly one of the two."));
        }
        if !https {
            let what = "Whoever is on the way could exchange the keys.";
            return Some(("keys_url", what, "Give an address that begins with https://."));
        }
        if self.issuer.is_empty() || self.audience.is_empty() {
            let what = "A token is believed only if it names its issuer and this hub.";
            return Some(("audience", what, "Say both issuer and audience."));
        }
        if self.algorithms.is_empty() {
            return Some(("algorithms", "Nothing would be accepted.", "Name at least one."));
        }
        if self.refresh_seconds == 0 {
            return Some((
                "refresh_seconds",
                "It cannot be fetched all the time.",
                "Give at least 1.",
            ));
        }
        if self.role.is_some() == self.role_claim.is_some() {
            let what = "It needs either role, or role_claim with roles.";
            return Some(("role", what, "Give exactly one of the two."));
        }
        if self.role_claim.is_some() == self.roles.is_empty() {
            let what = "role_claim and roles belong together.";
            return Some(("roles", what, "Say what each value of the claim stands for."));
        }
        let sign_in = self.sign_in.as_ref();
        if sign_in.is_some() && crate::sign_in::split(&self.issuer).is_none() {
            let what = "People would type their passwords where others can read along.";
            return Some(("issuer", what, "Sign in with an issuer that begins with https://."));
        }
        let bad = |scope: &String| scope.is_empty() || scope.contains(char::is_whitespace);
        if sign_in
            .is_some_and(|sign_in| sign_in.client_id.is_empty() || sign_in.scopes.iter().any(bad))
        {
            let what = "It needs a client_id, and scopes without spaces.";
            return Some(("sign_in", what, "Take over what the provider says of this client."));
        }
        None
    }
}
