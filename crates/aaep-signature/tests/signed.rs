//! What counts as a signed manifest, and what does not.
#![allow(clippy::unwrap_used)] // tests

use aaep_signature::*;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{EncodingKey, Header, encode};
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;

fn manifest(agent_id: &str) -> Value {
    json!({
        "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:producer.manifest",
        "agent_id": agent_id, "aaep_versions_supported": ["1.0.0"],
        "conformance_levels_supported": [1], "transports_supported": ["sse"],
    })
}

fn es256() -> SigningKey {
    SigningKey::from_pem(rcgen::KeyPair::generate().unwrap().serialize_pem().as_bytes()).unwrap()
}

fn eddsa() -> SigningKey {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    SigningKey::from_pem(pair.serialize_pem().as_bytes()).unwrap()
}

fn signed(key: &SigningKey) -> String {
    key.sign(&manifest("bank").to_string(), NOW, 3600).unwrap()
}

fn anybody(text: &str) -> Result<Verified, Unverified> {
    verify(text, Some("bank"), &Signers::Anybody, NOW + 1)
}

fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0_u32, |group, byte| group << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            text.push(char::from(LETTERS[(group >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}

/// Header and payload of our choice, and a signature.
fn forged(header: &Value, payload: &Value, signature: &str) -> String {
    let parts = [header, payload].map(|part| base64url(part.to_string().as_bytes()));
    format!("{}.{}.{signature}", parts[0], parts[1])
}

fn payload() -> Value {
    let mut payload = manifest("bank");
    (payload["iat"], payload["exp"]) = (NOW.into(), (NOW + 3600).into());
    payload
}

// covers: S7
#[test]
fn what_was_signed_with_either_algorithm_is_verified() {
    for (key, algorithm) in [(es256(), Algorithm::ES256), (eddsa(), Algorithm::EdDSA)] {
        let verified = anybody(&signed(&key)).unwrap();
        assert_eq!(verified.agent_id, "bank");
        assert_eq!(verified.key.algorithm(), algorithm);
        assert_eq!(verified.key.fingerprint(), key.public().fingerprint());
        assert_eq!((verified.issued, verified.expires), (NOW, NOW + 3600));
        let read: Value = serde_json::from_str(&verified.manifest).unwrap();
        assert_eq!(read["agent_id"], "bank");
        let again = PublicKey::from_json(&key.public().to_json()).unwrap();
        assert_eq!(again.fingerprint(), key.public().fingerprint());
    }
}

// covers: S7
#[test]
fn rsa_is_verified_and_other_keys_are_not_taken() {
    let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let der = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).unwrap();
    // Behind the head of PKCS #8 stands the key as the library wants it.
    let key = EncodingKey::from_rsa_der(&der.as_ref()[26..]);
    let mut header = Header::new(jsonwebtoken::Algorithm::RS256);
    let jwk = Jwk::from_encoding_key(&key, header.alg).unwrap();
    header.jwk = Some(jwk.clone());
    let verified = anybody(&encode(&header, &payload(), &key).unwrap()).unwrap();
    assert_eq!(verified.key.algorithm(), Algorithm::RS256);
    let pem = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap().serialize_pem();
    assert_eq!(SigningKey::from_pem(pem.as_bytes()).unwrap_err(), BadKey::OtherKind);
    assert_eq!(SigningKey::from_pem(b"nothing").unwrap_err(), BadKey::NoPrivateKey);
    let mut short = serde_json::to_value(jwk).unwrap();
    short["n"] = short["n"].as_str().unwrap()[..171].into();
    assert_eq!(PublicKey::from_json(&short.to_string()), Err(BadKey::NotPublic));
}

// covers: S7
#[test]
fn no_algorithm_and_a_shared_secret_do_not_count() {
    let key = es256();
    let jwk: Value = serde_json::from_str(&key.public().to_json()).unwrap();
    for none in ["none", "None", "NONE", ""] {
        let text = forged(&json!({ "alg": none, "jwk": jwk }), &payload(), "");
        assert_eq!(anybody(&text).unwrap_err(), Unverified::Algorithm, "{none}");
    }
    // The public key as the secret of an HMAC, in every form in which it lies around.
    let list = KeyList::from_json(&json!({ "keys": [jwk] }).to_string()).unwrap();
    let json_form = key.public().to_json();
    for secret in [json_form.as_bytes(), key.public().fingerprint().as_bytes()] {
        let mut header = Header::new(jsonwebtoken::Algorithm::HS256);
        header.kid = Some(key.public().fingerprint().to_owned());
        let text = encode(&header, &payload(), &EncodingKey::from_secret(secret)).unwrap();
        assert_eq!(anybody(&text).unwrap_err(), Unverified::Algorithm);
        let listed = verify(&text, None, &Signers::Listed(&list), NOW);
        assert_eq!(listed.unwrap_err(), Unverified::Algorithm);
    }
    // A shared secret shown as the key.
    let secret = EncodingKey::from_secret(b"open to everybody");
    let mut header = Header::new(jsonwebtoken::Algorithm::HS256);
    header.jwk = Some(Jwk::from_encoding_key(&secret, header.alg).unwrap());
    let text = encode(&header, &payload(), &secret).unwrap();
    assert_eq!(anybody(&text).unwrap_err(), Unverified::Algorithm);
}

// covers: S7
#[test]
fn a_key_that_is_not_the_one_that_is_named_does_not_count() {
    let (own, other) = (es256(), es256());
    let text = signed(&own);
    let (header, rest) = text.split_once('.').unwrap();
    let swap = |header: Value| format!("{}.{rest}", base64url(header.to_string().as_bytes()));
    let jwk =
        |key: &SigningKey| -> Value { serde_json::from_str(&key.public().to_json()).unwrap() };
    let named = |key: &SigningKey| key.public().fingerprint().to_owned();
    assert!(!header.is_empty());
    // Another key's id beside the own key, and another key beside the own id.
    let swapped = swap(json!({ "alg": "ES256", "kid": named(&other), "jwk": jwk(&own) }));
    assert_eq!(anybody(&swapped).unwrap_err(), Unverified::SwappedKey);
    let swapped = swap(json!({ "alg": "ES256", "kid": named(&own), "jwk": jwk(&other) }));
    assert_eq!(anybody(&swapped).unwrap_err(), Unverified::SwappedKey);
    // Another key with its own id: the signature is not its.
    let swapped = swap(json!({ "alg": "ES256", "kid": named(&other), "jwk": jwk(&other) }));
    assert_eq!(anybody(&swapped).unwrap_err(), Unverified::Signature);
    // By a list: the header chooses among its keys, and may name no other.
    let both = json!({ "keys": [jwk(&own), jwk(&other)] }).to_string();
    let both = KeyList::from_json(&both).unwrap();
    let listed = |text: &str, list: &KeyList| verify(text, None, &Signers::Listed(list), NOW);
    assert!(listed(&text, &both).is_ok());
    let swapped = swap(json!({ "alg": "ES256", "kid": named(&other) }));
    assert_eq!(listed(&swapped, &both).unwrap_err(), Unverified::Signature);
    let only = KeyList::from_json(&json!({ "keys": [jwk(&other)] }).to_string()).unwrap();
    assert_eq!(listed(&text, &only).unwrap_err(), Unverified::UnknownKey);
    // An id that the listed key has, with the own key shown.
    let swapped = swap(json!({ "alg": "ES256", "kid": named(&other), "jwk": jwk(&own) }));
    assert_eq!(listed(&swapped, &only).unwrap_err(), Unverified::SwappedKey);
    // No key at all, and one of another kind than the algorithm.
    assert_eq!(anybody(&swap(json!({ "alg": "ES256" }))).unwrap_err(), Unverified::UnknownKey);
    let kind = swap(json!({ "alg": "EdDSA", "jwk": jwk(&own) }));
    assert_eq!(anybody(&kind).unwrap_err(), Unverified::Algorithm);
}

// covers: S7
#[test]
fn what_is_stale_or_of_somebody_else_does_not_count() {
    let key = es256();
    let at = |text: &str, now| verify(text, Some("bank"), &Signers::Anybody, now);
    let text = signed(&key);
    assert!(at(&text, NOW + 3600 + SKEW_SECONDS).is_ok());
    assert_eq!(at(&text, NOW + 3601 + SKEW_SECONDS).unwrap_err(), Unverified::Stale);
    assert!(at(&text, NOW - SKEW_SECONDS).is_ok());
    assert_eq!(at(&text, NOW - SKEW_SECONDS - 1).unwrap_err(), Unverified::Early);
    let other = Unverified::OtherAgent { signed: "bank".into(), expected: "shop".into() };
    assert_eq!(verify(&text, Some("shop"), &Signers::Anybody, NOW).unwrap_err(), other);
    // By a list that says whose the key is.
    let mut jwk: Value = serde_json::from_str(&key.public().to_json()).unwrap();
    jwk["agent_id"] = "shop".into();
    let list = KeyList::from_json(&json!({ "keys": [jwk] }).to_string()).unwrap();
    let others = Unverified::OthersKey { agent_id: "bank".into() };
    assert_eq!(verify(&text, None, &Signers::Listed(&list), NOW).unwrap_err(), others);
    // A time that is missing, backwards or too long.
    let bare = manifest("bank").to_string();
    for seconds in [0, u32::MAX] {
        assert_eq!(key.sign(&bare, NOW, seconds).unwrap_err(), NotSigned::Time);
    }
    let event = r#"{"type":"aaep:agent.session.started"}"#;
    assert!(matches!(key.sign(event, NOW, 1), Err(NotSigned::NoManifest(_))));
}

#[test]
fn a_signature_without_a_time_or_over_something_else_does_not_count() {
    let pair = rcgen::KeyPair::generate().unwrap();
    let public = SigningKey::from_pem(pair.serialize_pem().as_bytes()).unwrap();
    let key = EncodingKey::from_ec_der(&pair.serialize_der());
    let sign = |payload: &Value, typ: Option<&str>| {
        let mut header = Header::new(jsonwebtoken::Algorithm::ES256);
        header.typ = typ.map(str::to_owned);
        header.jwk = serde_json::from_str(&public.public().to_json()).ok();
        anybody(&encode(&header, payload, &key).unwrap())
    };
    assert!(sign(&payload(), None).is_ok());
    assert_eq!(sign(&manifest("bank"), None).unwrap_err(), Unverified::NoTime);
    let mut wrong = payload();
    wrong["exp"] = (NOW - 1).into();
    assert_eq!(sign(&wrong, None).unwrap_err(), Unverified::NoTime);
    wrong["exp"] = (NOW + MAX_LIFE_SECONDS + 1).into();
    assert_eq!(sign(&wrong, None).unwrap_err(), Unverified::NoTime);
    let token = json!({ "sub": "ann", "iat": NOW, "exp": NOW + 60 });
    assert_eq!(sign(&token, None).unwrap_err(), Unverified::NoManifest);
    assert_eq!(sign(&payload(), Some("at+jwt")).unwrap_err(), Unverified::Malformed);
    for text in ["", "a.b", "a.b.c.d", "...", "a.b.c"] {
        assert!(anybody(text).is_err(), "{text}");
    }
    assert_eq!(anybody(&"a.".repeat(MAX_BYTES)).unwrap_err(), Unverified::Malformed);
}

// covers: S7
#[test]
fn a_key_that_was_seen_is_remembered_and_another_one_is_noticed() {
    let (own, other) = (es256(), eddsa());
    let first = anybody(&signed(&own)).unwrap();
    let second = anybody(&signed(&other)).unwrap();
    let mut known = KnownAgents::default();
    assert_eq!(known.judge("https://a", &first), KeyStatus::New);
    known.remember("https://a", &first, NOW);
    assert_eq!(known.judge("https://a", &first), KeyStatus::Unchanged);
    assert_eq!(known.judge("https://a", &second), KeyStatus::Changed);
    known.remember("https://a", &second, NOW);
    assert_eq!(known.judge("https://a", &second), KeyStatus::Changed, "the first one stays");
    assert_eq!(known.judge("https://b", &second), KeyStatus::New);
    let renamed = own.sign(&manifest("shop").to_string(), NOW, 60).unwrap();
    let renamed = verify(&renamed, None, &Signers::Anybody, NOW).unwrap();
    assert_eq!(known.judge("https://a", &renamed), KeyStatus::Changed);
    assert!(known.find("https://a").is_some() && known.find("https://b").is_none());
    let mut read = KnownAgents::from_json(&known.to_json()).unwrap();
    assert_eq!(read, known);
    assert_eq!(read.forget("nobody"), 0);
    assert_eq!(read.forget("bank"), 1);
    assert_eq!(read.judge("https://a", &second), KeyStatus::New);
    for wrong in ["", "{}", "[]", r#"{"version":2,"agents":[]}"#] {
        assert_eq!(KnownAgents::from_json(wrong), Err(NotAList), "{wrong}");
    }
}

#[test]
fn a_list_with_a_key_that_cannot_verify_is_refused_as_a_whole() {
    let good: Value = serde_json::from_str(&es256().public().to_json()).unwrap();
    let secret = json!({ "kty": "oct", "k": "c2VjcmV0" });
    for wrong in [
        json!({ "keys": [] }),
        json!({ "keys": [good, secret] }),
        json!({ "keys": [{ "kty": "EC", "crv": "P-256", "x": "AA", "y": "\"" }] }),
        json!({}),
        json!([good]),
    ] {
        assert_eq!(KeyList::from_json(&wrong.to_string()), Err(BadKey::NotPublic), "{wrong}");
    }
}

proptest! {
    // covers: S7
    #[test]
    fn no_change_of_a_signed_manifest_is_believed(at in 0_usize..900, to in "[A-Za-z0-9_.-]") {
        let text = signed(&eddsa());
        prop_assume!(at < text.len() && !text[at..].starts_with(&to));
        let changed = format!("{}{to}{}", &text[..at], &text[at + 1..]);
        // The last character of a part may hold bits that stand for nothing.
        let last = text.as_bytes().get(at + 1).is_none_or(|next| *next == b'.');
        prop_assume!(!last);
        prop_assert!(anybody(&changed).is_err());
    }

    #[test]
    fn no_text_makes_the_verifier_stumble(text in "[ -~]{0,200}", parts in prop::collection::vec("[A-Za-z0-9_-]{0,80}", 3)) {
        prop_assert!(anybody(&text).is_err());
        prop_assert!(anybody(&parts.join(".")).is_err());
    }
}
