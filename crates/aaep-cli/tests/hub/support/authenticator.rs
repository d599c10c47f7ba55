//! A software authenticator: what a security key and a browser do, without a person.

use aaep_hub::passkey::{Assertion, Base64, PublicKey, SignedYes};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Hub, Raw};

/// The flags: somebody touched it, was recognised, and a credential follows.
const TOUCHED: u8 = 0x01;
const RECOGNISED: u8 = 0x04;
const CREDENTIAL: u8 = 0x40;

const ID: &[u8] = b"blue key";

/// An authenticator with one passkey, at a page of a hub's.
pub struct Authenticator {
    pair: EcdsaKeyPair,
    signed: u32,
    origin: String,
    token: String,
}

impl Authenticator {
    /// One at `localhost`, for the holder of this token.
    pub fn new(hub: &Hub, token: String) -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        let origin = format!("http://localhost:{}", hub.address().port());
        Self { pair, signed: 0, origin, token }
    }

    /// What the hub says to the page.
    pub fn post(&self, hub: &Hub, path: &str, body: &Value) -> (u16, Value) {
        let (mut raw, body) = (Raw::connect(hub), body.to_string());
        let authorization = match self.token.as_str() {
            "" => String::new(),
            token => format!("authorization: Bearer {token}\r\n"),
        };
        let head = format!(
            "POST /aaep/v1/{path} HTTP/1.1\r\nhost: {}\r\norigin: {}\r\n{authorization}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            &self.origin["http://".len()..],
            self.origin,
            body.len()
        );
        raw.send(head);
        let reply = raw.reply();
        (reply.status, serde_json::from_slice(&reply.body).unwrap_or_default())
    }

    /// Registers its passkey, and says what came back.
    pub fn register(&self, hub: &Hub, subscription: &str, name: &str) -> (u16, Value) {
        let asked = json!({ "subscription_id": subscription });
        let (status, options) = self.post(hub, "presence/passkeys/options", &asked);
        if status != 200 {
            return (status, options);
        }
        let registration = json!({
            "clientDataJSON": self.client_data("webauthn.create", &options["challenge"]),
            "attestationObject": self.attestation(),
        });
        let body = json!({ "name": name, "registration": registration });
        self.post(hub, "presence/passkeys", &body)
    }

    /// Signs a yes to what has this token, or a change of passkeys without one.
    pub fn sign(&mut self, hub: &Hub, reply_token: &str) -> (u16, Value) {
        let asked = json!({ "reply_token": reply_token });
        let (status, options) = self.post(hub, "presence/passkeys/challenge", &asked);
        if status != 200 {
            return (status, options);
        }
        self.signed += 1;
        let client_data_json = self.client_data("webauthn.get", &options["challenge"]);
        let data = self.data(TOUCHED | RECOGNISED);
        let message = [data.as_slice(), Sha256::digest(&client_data_json.0).as_slice()].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &message).unwrap();
        let assertion = Assertion {
            credential_id: Base64(ID.to_vec()),
            client_data_json,
            authenticator_data: Base64(data),
            signature: Base64(signature.as_ref().to_vec()),
        };
        let shown = json!({ "reply_token": reply_token, "assertion": assertion });
        self.post(hub, "presence/passkeys/assertion", &shown)
    }

    /// A yes that another key signed, in the place of this kept one: over the same action, with its own
    /// key beside it.
    pub fn forge(&self, kept: &[u8]) -> Vec<u8> {
        let mut yes: SignedYes = serde_json::from_slice(kept).unwrap();
        let data = yes.assertion.authenticator_data.0.as_slice();
        let hash = Sha256::digest(&yes.assertion.client_data_json.0);
        let message = [data, hash.as_slice()].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &message).unwrap();
        yes.assertion.signature = Base64(signature.as_ref().to_vec());
        yes.key = PublicKey::Es256 { point: Base64(self.pair.public_key().as_ref().to_vec()) };
        serde_json::to_vec(&yes).unwrap()
    }

    /// Removes its passkey, and says what came back.
    pub fn remove(&self, hub: &Hub, subscription: &str) -> (u16, Value) {
        let body = json!({ "subscription_id": subscription, "id": Base64(ID.to_vec()) });
        self.post(hub, "presence/passkeys/remove", &body)
    }

    fn client_data(&self, kind: &str, challenge: &Value) -> Base64 {
        let data = json!({ "type": kind, "challenge": challenge, "origin": self.origin });
        Base64(data.to_string().into_bytes())
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let counter = self.signed.to_be_bytes();
        [Sha256::digest("localhost").as_slice(), &[flags], &counter].concat()
    }

    /// `{fmt: "none", attStmt: {}, authData: ...}` in CBOR, with the key as COSE writes it.
    fn attestation(&self) -> Base64 {
        let point = self.pair.public_key().as_ref();
        let mut data = self.data(TOUCHED | RECOGNISED | CREDENTIAL);
        data.extend([0; 16]);
        data.extend((ID.len() as u16).to_be_bytes());
        data.extend(ID);
        // {1: 2, 3: -7, -1: 1, -2: x, -3: y}
        data.extend([0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 32]);
        data.extend(&point[1..33]);
        data.extend([0x22, 0x58, 32]);
        data.extend(&point[33..]);
        let mut object = vec![0xa3];
        object.extend(b"\x63fmt\x64none\x67attStmt\xa0\x68authData\x58");
        object.push(u8::try_from(data.len()).unwrap());
        object.extend(data);
        Base64(object)
    }
}
