//! A software authenticator, and everything that can be wrong with its answers.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
};
use ciborium::Value;
use serde_json::json;

use super::*;

enum Pair {
    P256(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

struct Authenticator {
    pair: Pair,
    counter: u32,
    flags: u8,
}

impl Authenticator {
    fn p256() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap();
        Self { pair: Pair::P256(pair), counter: 1, flags: USER_PRESENT | USER_VERIFIED }
    }

    fn ed25519() -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        Self { pair: Pair::Ed(pair), counter: 0, flags: USER_PRESENT | USER_VERIFIED }
    }

    fn data(&self, domain: &str, flags: u8) -> Vec<u8> {
        let mut data = Sha256::digest(domain).to_vec();
        data.push(flags);
        data.extend(self.counter.to_be_bytes());
        data
    }

    fn cose(&self) -> Value {
        let int = |value: i64| Value::from(value);
        match &self.pair {
            Pair::P256(pair) => {
                let point = pair.public_key().as_ref();
                Value::Map(vec![
                    (int(1), int(2)),
                    (int(3), int(-7)),
                    (int(-1), int(1)),
                    (int(-2), Value::Bytes(point[1..33].to_vec())),
                    (int(-3), Value::Bytes(point[33..].to_vec())),
                ])
            }
            Pair::Ed(pair) => Value::Map(vec![
                (int(1), int(1)),
                (int(3), int(-8)),
                (int(-1), int(6)),
                (int(-2), Value::Bytes(pair.public_key().as_ref().to_vec())),
            ]),
        }
    }

    fn create(&self, challenge: &Challenge, origin: &str, key: &Value) -> Registration {
        let mut data = self.data("localhost", self.flags | HAS_CREDENTIAL);
        data.extend([0; 16]);
        data.extend([0, 3]);
        data.extend(b"id1");
        ciborium::into_writer(key, &mut data).unwrap();
        let text = |text: &str| Value::Text(text.to_owned());
        let object = Value::Map(vec![
            (text("fmt"), text("none")),
            (text("attStmt"), Value::Map(Vec::new())),
            (text("authData"), Value::Bytes(data)),
        ]);
        let mut bytes = Vec::new();
        ciborium::into_writer(&object, &mut bytes).unwrap();
        Registration {
            client_data_json: client_data("webauthn.create", challenge, origin),
            attestation_object: Base64(bytes),
        }
    }

    fn get(&self, challenge: &Challenge, origin: &str, domain: &str) -> Assertion {
        let client_data_json = client_data("webauthn.get", challenge, origin);
        let authenticator_data = self.data(domain, self.flags);
        let hash = Sha256::digest(&client_data_json.0);
        let message = [authenticator_data.as_slice(), hash.as_slice()].concat();
        let signature = match &self.pair {
            Pair::P256(pair) => {
                pair.sign(&SystemRandom::new(), &message).unwrap().as_ref().to_vec()
            }
            Pair::Ed(pair) => pair.sign(&message).as_ref().to_vec(),
        };
        Assertion {
            credential_id: Base64(b"id1".to_vec()),
            client_data_json,
            authenticator_data: Base64(authenticator_data),
            signature: Base64(signature),
        }
    }
}

const ORIGIN: &str = "http://localhost:8707";

fn client_data(r#type: &str, challenge: &Challenge, origin: &str) -> Base64 {
    let data = json!({"type": r#type, "challenge": challenge.to_base64(), "origin": origin});
    Base64(data.to_string().into_bytes())
}

fn party() -> RelyingParty {
    RelyingParty { id: "localhost".to_owned(), origins: vec![ORIGIN.to_owned()] }
}

fn registered(authenticator: &Authenticator) -> Passkey {
    let challenge = Challenge::for_registration(&Nonce::new([1; 16]));
    let answer = authenticator.create(&challenge, ORIGIN, &authenticator.cose());
    answer.verify(&challenge, &party(), "Blue key").unwrap()
}

#[test]
fn a_signed_yes_is_good_for_one_action_and_can_be_judged_again() {
    for mut authenticator in [Authenticator::p256(), Authenticator::ed25519()] {
        let passkey = registered(&authenticator);
        if authenticator.counter > 0 {
            authenticator.counter += 1;
        }
        let nonce = Nonce::new([7; 16]);
        let challenge = Challenge::for_action(&nonce, "evt_1", "sha256:aa");
        let assertion = authenticator.get(&challenge, ORIGIN, "localhost");
        let counter = assertion.verify(&passkey, &challenge, &party()).unwrap();
        assert_eq!(counter, authenticator.counter);

        let evidence = SignedYes {
            assertion,
            nonce,
            key: passkey.key,
            name: passkey.name,
            domain: "localhost".to_owned(),
            origin: ORIGIN.to_owned(),
        };
        let kept = serde_json::to_string(&evidence).unwrap();
        let evidence: SignedYes = serde_json::from_str(&kept).unwrap();
        assert_eq!(evidence.verify("evt_1", "sha256:aa"), Ok(()));
        assert_eq!(evidence.verify("evt_2", "sha256:aa"), Err(PasskeyError::OtherChallenge));
        assert_eq!(evidence.verify("evt_1", "sha256:ab"), Err(PasskeyError::OtherChallenge));
        let mut other = evidence.clone();
        other.key = registered(&Authenticator::p256()).key;
        assert_eq!(other.verify("evt_1", "sha256:aa"), Err(PasskeyError::Signature));
        let mut turned = evidence;
        turned.assertion.signature.0[9] ^= 1;
        assert_eq!(turned.verify("evt_1", "sha256:aa"), Err(PasskeyError::Signature));
    }
}

#[test]
fn parts_of_a_challenge_cannot_run_into_each_other() {
    let nonce = Nonce::new([7; 16]);
    let one = Challenge::for_action(&nonce, "evt_1", "1aa");
    assert_ne!(one, Challenge::for_action(&nonce, "evt_11", "aa"));
    assert_ne!(one, Challenge::for_action(&Nonce::new([8; 16]), "evt_1", "1aa"));
    assert_ne!(Challenge::for_registration(&nonce), one);
}

#[test]
fn a_replayed_assertion_or_one_of_a_copy_does_not_count() {
    let mut authenticator = Authenticator::p256();
    let mut passkey = registered(&authenticator);
    authenticator.counter = 5;
    let challenge = Challenge::for_action(&Nonce::new([7; 16]), "evt_1", "d");
    let assertion = authenticator.get(&challenge, ORIGIN, "localhost");
    passkey.counter = assertion.verify(&passkey, &challenge, &party()).unwrap();
    // The same again, and the same passkey in another device that has counted less.
    assert_eq!(assertion.verify(&passkey, &challenge, &party()), Err(PasskeyError::Cloned));
    authenticator.counter = 3;
    let copy = authenticator.get(&challenge, ORIGIN, "localhost");
    assert_eq!(copy.verify(&passkey, &challenge, &party()), Err(PasskeyError::Cloned));
    authenticator.counter = 0;
    let copy = authenticator.get(&challenge, ORIGIN, "localhost");
    assert_eq!(copy.verify(&passkey, &challenge, &party()), Err(PasskeyError::Cloned));
}

#[test]
fn an_answer_from_elsewhere_or_without_the_person_does_not_count() {
    let mut authenticator = Authenticator::p256();
    let passkey = registered(&authenticator);
    authenticator.counter = 2;
    let challenge = Challenge::for_action(&Nonce::new([7; 16]), "evt_1", "d");
    let judge = |assertion: Assertion| assertion.verify(&passkey, &challenge, &party());

    let origin = authenticator.get(&challenge, "http://evil.example", "localhost");
    assert_eq!(judge(origin), Err(PasskeyError::OtherOrigin));
    let domain = authenticator.get(&challenge, ORIGIN, "evil.example");
    assert_eq!(judge(domain), Err(PasskeyError::OtherDomain));
    let other = Challenge::for_action(&Nonce::new([7; 16]), "evt_2", "d");
    let request = authenticator.get(&other, ORIGIN, "localhost");
    assert_eq!(judge(request), Err(PasskeyError::OtherChallenge));
    let mut credential = authenticator.get(&challenge, ORIGIN, "localhost");
    credential.credential_id = Base64(b"id2".to_vec());
    assert_eq!(judge(credential), Err(PasskeyError::OtherCredential));

    authenticator.flags = USER_PRESENT;
    let unverified = authenticator.get(&challenge, ORIGIN, "localhost");
    assert_eq!(judge(unverified), Err(PasskeyError::NotVerified));
    authenticator.flags = USER_VERIFIED;
    let untouched = authenticator.get(&challenge, ORIGIN, "localhost");
    assert_eq!(judge(untouched), Err(PasskeyError::NobodyPresent));

    // An answer to a registration is none to a question, and a frame of another page is another page.
    authenticator.flags = USER_PRESENT | USER_VERIFIED;
    let mut created = authenticator.get(&challenge, ORIGIN, "localhost");
    created.client_data_json = client_data("webauthn.create", &challenge, ORIGIN);
    assert_eq!(judge(created), Err(PasskeyError::Malformed));
    let mut framed = authenticator.get(&challenge, ORIGIN, "localhost");
    let data = json!({
        "type": "webauthn.get", "challenge": challenge.to_base64(), "origin": ORIGIN,
        "crossOrigin": true,
    });
    framed.client_data_json = Base64(data.to_string().into_bytes());
    assert_eq!(judge(framed), Err(PasskeyError::OtherOrigin));
}

#[test]
fn a_registration_that_is_wrong_in_any_way_makes_no_passkey() {
    let authenticator = Authenticator::p256();
    let challenge = Challenge::for_registration(&Nonce::new([1; 16]));
    let create = |origin: &str, key: &Value| authenticator.create(&challenge, origin, key);
    let refusal = |answer: Registration| answer.verify(&challenge, &party(), "key").unwrap_err();

    let key = authenticator.cose();
    assert_eq!(refusal(create("http://127.0.0.1:8707", &key)), PasskeyError::OtherOrigin);
    let weak = Value::Map(vec![
        (Value::from(1), Value::from(3)),
        (Value::from(3), Value::from(-257)),
        (Value::from(-1), Value::Bytes(vec![0xff; 128])),
        (Value::from(-2), Value::Bytes(vec![1, 0, 1])),
    ]);
    assert_eq!(refusal(create(ORIGIN, &weak)), PasskeyError::Algorithm);
    let symmetric =
        Value::Map(vec![(Value::from(1), Value::from(4)), (Value::from(3), Value::from(5))]);
    assert_eq!(refusal(create(ORIGIN, &symmetric)), PasskeyError::Algorithm);
    let good = create(ORIGIN, &key);
    let later = Challenge::for_registration(&Nonce::new([2; 16]));
    let replayed = good.verify(&later, &party(), "key");
    assert_eq!(replayed, Err(PasskeyError::OtherChallenge));

    // Cut anywhere, it is refused and nothing panics.
    for length in 0..good.attestation_object.0.len() {
        let mut cut = good.clone();
        cut.attestation_object.0.truncate(length);
        assert!(cut.verify(&challenge, &party(), "key").is_err(), "{length}");
    }
    // Nested without end, likewise.
    let mut deep = good.clone();
    deep.attestation_object.0 = vec![0x81; PART_BYTES];
    assert_eq!(refusal(deep), PasskeyError::Malformed);
}

#[test]
fn values_that_are_too_long_or_not_base64url_are_refused() {
    let long = format!("\"{}\"", "A".repeat(PART_BYTES * 2));
    assert!(serde_json::from_str::<Base64>(&long).is_err());
    assert!(serde_json::from_str::<Base64>("\"a+/=\"").is_err());
    assert!(serde_json::from_str::<Nonce>("\"AAAA\"").is_err());
}
