//! An issuer that signs whatever a test wants.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use aaep_hub::config::{Config, IssuerEntry};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::{Value, json};

pub const ISSUER: &str = "https://login.example.org";
pub const AUDIENCE: &str = "aaep-hub";

/// A key for ES256 with an id.
pub struct Key {
    pub id: String,
    pub private: EncodingKey,
}

impl Key {
    pub fn new(id: &str) -> Self {
        let pair = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        Self { id: id.into(), private: EncodingKey::from_ec_der(&pair.serialize_der()) }
    }

    pub fn public(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.private, Algorithm::ES256).unwrap();
        jwk.common.key_id = Some(self.id.clone());
        serde_json::to_value(jwk).unwrap()
    }

    pub fn header(&self) -> Header {
        Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::ES256) }
    }

    pub fn sign(&self, claims: &Value) -> String {
        encode(&self.header(), claims, &self.private).unwrap()
    }
}

pub fn set(keys: &[&Key]) -> String {
    json!({"keys": keys.iter().map(|key| key.public()).collect::<Vec<_>>()}).to_string()
}

pub fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Claims that are good for so many seconds.
pub fn claims(seconds: i64) -> Value {
    json!({
        "iss": ISSUER, "aud": [AUDIENCE, "another"], "sub": "ann", "iat": now(),
        "exp": now() + seconds, "groups": ["staff", "listeners"],
    })
}

/// The claims with one changed, or taken out.
pub fn with(mut claims: Value, name: &str, value: Value) -> Value {
    match value {
        Value::Null => drop(claims.as_object_mut().unwrap().remove(name)),
        value => claims[name] = value,
    }
    claims
}

pub fn entry(keys: &str) -> IssuerEntry {
    toml::from_str(&format!(
        r#"
        name = "login"
        issuer = "{ISSUER}"
        audience = "{AUDIENCE}"
        {keys}
        clock_skew_seconds = 0
        role_claim = "groups"
        roles = {{ listeners = "accessibility_consumer", agents = "agent", watchers = "auditor" }}
        "#
    ))
    .unwrap()
}

/// A configuration that believes the keys of this file.
pub fn config(directory: &Path, keys: &str) -> Config {
    let file = directory.join("keys.json");
    std::fs::write(&file, keys).unwrap();
    let entry = entry(&format!("keys_file = {file:?}"));
    Config { issuers: vec![entry], ephemeral: true, ..Config::default() }
}
