//! One token, and everything that can be wrong with it.

use aaep_engine::{Principal, Role};
use aaep_hub::access::{Access, ApiSurface, Denied, Via};
use aaep_hub::config::Config;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{KeyPair, PKCS_ED25519, PKCS_RSA_SHA256, RsaKeySize, SigningKey};
use serde_json::{Value, json};

use crate::support::{AUDIENCE, ISSUER, Key, claims, config, now, set, with};

struct Provider {
    _place: tempfile::TempDir,
    config: Config,
    key: Key,
}

impl Provider {
    fn new() -> Self {
        let (place, key) = (tempfile::tempdir().unwrap(), Key::new("first"));
        let config = config(place.path(), &set(&[&key]));
        Self { _place: place, config, key }
    }

    fn who(&self, token: &str) -> Result<Principal, Denied> {
        let access = Access::new(&self.config).unwrap();
        let twice = [(); 2].map(|()| {
            access.who(Some(token), Via::Network, ApiSurface::Listener).map(|known| known.principal)
        });
        // The second time it is remembered; nothing else may be different.
        assert_eq!(twice[0], twice[1]);
        twice.into_iter().next().unwrap()
    }

    fn denied(&self, token: &str) {
        assert_eq!(self.who(token), Err(Denied::UnknownToken), "{token}");
    }

    fn denies(&self, claims: &Value) {
        self.denied(&self.key.sign(claims));
    }
}

fn ann() -> Principal {
    Principal::new("login/ann", Role::AccessibilityConsumer, "ann")
}

// covers: S4, S14
#[test]
fn a_token_that_the_issuer_signed_for_this_hub_names_its_principal() {
    let provider = Provider::new();
    assert_eq!(provider.who(&provider.key.sign(&claims(60))), Ok(ann()));
    let one = with(claims(60), "aud", json!(AUDIENCE));
    let one = with(one, "groups", json!("agents"));
    let agent = Principal::new("login/ann", Role::Agent, "ann");
    assert_eq!(provider.who(&provider.key.sign(&one)), Ok(agent));
    let no_id = Header::new(Algorithm::ES256);
    let token = encode(&no_id, &claims(60), &provider.key.private).unwrap();
    assert_eq!(provider.who(&token), Ok(ann()), "with a single key no id is needed");
}

// covers: S4
#[test]
fn keys_of_every_kind_verify_what_they_signed() {
    let place = tempfile::tempdir().unwrap();
    let edwards = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let rsa = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap();
    // PKCS #1: a header of 9 bytes with a zero before the modulus, then the exponent 65537.
    let modulus = &rsa.public_key_raw()[9..9 + 256];
    let keys = json!({"keys": [
        {"kty": "OKP", "crv": "Ed25519", "kid": "e", "x": base64url(edwards.public_key_raw())},
        {"kty": "RSA", "kid": "r", "use": "sig", "n": base64url(modulus), "e": "AQAB"},
        {"kty": "of another world", "kid": "x"},
    ]});
    let access = Access::new(&config(place.path(), &keys.to_string())).unwrap();
    for (pair, header) in [
        (&edwards, json!({"alg": "EdDSA", "kid": "e", "typ": "at+jwt"})),
        (&rsa, json!({"alg": "RS256", "kid": "r"})),
    ] {
        let part = |value: &Value| base64url(value.to_string().as_bytes());
        let message = format!("{}.{}", part(&header), part(&claims(60)));
        let signature = pair.sign(message.as_bytes()).unwrap();
        let token = format!("{message}.{}", base64url(&signature));
        let known = access.who(Some(&token), Via::Network, ApiSurface::Listener);
        assert_eq!(known.map(|known| known.principal), Ok(ann()), "{header}");
        // The same signature under another algorithm of the same key, and a changed one.
        let swapped =
            token.replacen(&part(&header), &part(&json!({"alg": "PS256", "kid": "r"})), 1);
        let mut changed = signature.clone();
        changed[0] ^= 1;
        for wrong in [swapped, format!("{message}.{}", base64url(&changed))] {
            let known = access.who(Some(&wrong), Via::Network, ApiSurface::Listener);
            assert_eq!(known, Err(Denied::UnknownToken));
        }
    }
}

// covers: S4
#[test]
fn what_is_not_for_us_not_yet_or_no_longer_is_denied() {
    let provider = Provider::new();
    for (name, value) in [
        ("iss", json!("https://login.example.org/")),
        ("iss", json!([ISSUER])),
        ("iss", Value::Null),
        ("aud", json!("another")),
        ("aud", json!([])),
        ("aud", Value::Null),
        ("exp", json!(now() - 1)),
        ("exp", json!("tomorrow")),
        ("exp", Value::Null),
        ("nbf", json!(now() + 60)),
        ("nbf", json!("now")),
        ("iat", json!(now() + 60)),
        ("sub", Value::Null),
        ("sub", json!(7)),
        ("sub", json!("")),
        ("sub", json!("a\nb")),
        ("sub", json!("x".repeat(200))),
        ("groups", json!(["staff"])),
        ("groups", json!(["listeners", "agents"])),
        ("groups", json!({"listeners": true})),
        ("groups", Value::Null),
    ] {
        provider.denies(&with(claims(60), name, value));
    }
}

// covers: S4
#[test]
fn no_other_key_and_no_other_algorithm_signs_for_the_issuer() {
    let provider = Provider::new();
    let (key, good) = (&provider.key, provider.key.sign(&claims(60)));
    let stranger = Key { id: "first".into(), ..Key::new("first") };
    provider.denied(&stranger.sign(&claims(60)));
    let part = |value: Value| base64url(value.to_string().as_bytes());
    let body = part(claims(60));
    // No signature at all, in every spelling.
    for none in ["none", "None", "NONE"] {
        provider.denied(&format!("{}.{body}.", part(json!({"alg": none, "kid": "first"}))));
        provider.denied(&format!("{}.{body}", part(json!({"alg": none}))));
    }
    // The public key as a shared secret.
    let public = key.public();
    for secret in [public.to_string(), public["x"].as_str().unwrap().to_owned(), set(&[key])] {
        let header = Header { kid: Some("first".into()), ..Header::new(Algorithm::HS256) };
        let secret = EncodingKey::from_secret(secret.as_bytes());
        provider.denied(&encode(&header, &claims(60), &secret).unwrap());
    }
    // An unknown id, and a key of the sender's own in the header.
    let header = Header { kid: Some("../first".into()), ..key.header() };
    provider.denied(&encode(&header, &claims(60), &key.private).unwrap());
    let own = serde_json::from_value(stranger.public()).unwrap();
    let header = Header { jwk: Some(own), ..key.header() };
    provider.denied(&encode(&header, &claims(60), &stranger.private).unwrap());
    // A token in a token, extensions that have to be understood, another kind of token.
    for header in [
        Header { cty: Some("JWT".into()), ..key.header() },
        Header { crit: Some(vec!["exp".into()]), ..key.header() },
        Header { typ: Some("logout+jwt".into()), ..key.header() },
    ] {
        provider.denied(&encode(&header, &claims(60), &key.private).unwrap());
    }
    // Cut, lengthened, taken apart.
    let parts: Vec<&str> = good.split('.').collect();
    for wrong in [
        good[..good.len() - 2].to_owned(),
        format!("{good}."),
        format!("{good}.{}", parts[1]),
        format!("{}.{}", parts[0], parts[2]),
        format!("..{}", parts[2]),
        "..".to_owned(),
        "a.b.c".to_owned(),
    ] {
        provider.denied(&wrong);
    }
    assert_eq!(provider.who(&good), Ok(ann()));
}

#[test]
fn a_token_of_a_megabyte_is_not_looked_at() {
    let provider = Provider::new();
    provider.denies(&with(claims(60), "more", json!("x".repeat(1 << 20))));
    let small = with(claims(60), "more", json!("x".repeat(4 << 10)));
    assert_eq!(provider.who(&provider.key.sign(&small)), Ok(ann()));
}

#[test]
fn a_hub_that_expects_only_another_algorithm_takes_none_of_these() {
    let mut provider = Provider::new();
    provider.config.issuers[0].algorithms = vec![aaep_hub::config::SigningAlgorithm::RS256];
    provider.denies(&claims(60));
}

#[test]
fn a_key_set_without_a_usable_key_is_refused_at_the_start() {
    let place = tempfile::tempdir().unwrap();
    let secret = json!({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "s"}]}).to_string();
    let short = json!({"keys": [{"kty": "RSA", "n": "A".repeat(171), "e": "AQAB"}]}).to_string();
    let other = json!({"keys": [with(Key::new("k").public(), "use", json!("enc"))]}).to_string();
    for keys in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[7]}"#, &secret, &short, &other] {
        let fault = Access::new(&config(place.path(), keys)).unwrap_err().to_string();
        assert!(fault.contains("keys.json") && fault.contains("JWK set"), "{fault}");
    }
}

#[test]
fn what_cannot_be_configured_is_said() {
    let place = tempfile::tempdir().unwrap();
    let load = |text: &str| {
        let file = place.path().join("aaep.toml");
        std::fs::write(&file, format!("ephemeral = true\n[[issuers]]\nname = \"login\"\n{text}"))
            .unwrap();
        let flags = aaep_hub::config::Flags { config: Some(file), ..Default::default() };
        aaep_hub::config::load(&flags, &Default::default())
            .map(drop)
            .map_err(|fault| fault.to_string())
    };
    let who = "issuer = \"a\"\naudience = \"b\"\n";
    for (text, said) in [
        (format!("{who}role = \"agent\""), "keys_file"),
        (format!("{who}role = \"agent\"\nkeys_url = \"http://a/keys\""), "https://"),
        (format!("{who}keys_url = \"https://a/keys\""), "role_claim"),
        (format!("{who}keys_url = \"https://a/keys\"\nrole_claim = \"r\""), "roles"),
        (
            format!(
                "{who}keys_url = \"https://a/keys\"\nrole = \"agent\"\nalgorithms = [\"HS256\"]"
            ),
            "HS256",
        ),
        (
            format!("{who}keys_url = \"https://a/keys\"\nrole = \"agent\"\nalgorithms = []"),
            "at least one",
        ),
    ] {
        let fault = load(&text).unwrap_err();
        assert!(fault.contains(said), "{said}: {fault}");
    }
    load(&format!("{who}keys_url = \"https://a/keys\"\nrole = \"agent\"")).unwrap();
}

fn base64url(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group = chunk.iter().fold(0, |group, byte| group << 8 | u32::from(*byte));
        let group = group << (8 * (3 - chunk.len()));
        for at in 0..=chunk.len() {
            let index = usize::try_from(group >> (18 - 6 * at) & 63).unwrap();
            text.push(char::from(LETTERS[index]));
        }
    }
    text
}

#[test]
fn signing_in_needs_an_issuer_that_is_protected_and_a_client() {
    let judged = |issuer: &str, sign_in: &str| {
        let text = format!(
            "[[issuers]]\nname = \"login\"\nissuer = \"{issuer}\"\naudience = \"hub\"\n\
             keys_url = \"https://login.example/keys\"\nrole = \"accessibility_consumer\"\n\
             sign_in = {sign_in}\n"
        );
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("aaep.toml");
        std::fs::write(&file, text).unwrap();
        let flags = aaep_hub::config::Flags {
            config: Some(file),
            ephemeral: true,
            ..aaep_hub::config::Flags::default()
        };
        let surroundings = aaep_hub::config::Surroundings::default();
        aaep_hub::config::load(&flags, &surroundings).map(drop).map_err(|fault| fault.to_string())
    };
    assert_eq!(judged("https://login.example", r#"{ client_id = "aaep" }"#), Ok(()));
    let plain = judged("http://login.example", r#"{ client_id = "aaep" }"#).unwrap_err();
    assert!(plain.contains("https://"), "{plain}");
    let nobody = judged("https://login.example", r#"{ client_id = "" }"#).unwrap_err();
    assert!(nobody.contains("client_id"), "{nobody}");
    let secret = r#"{ client_id = "aaep", client_secret = "s3cret" }"#;
    assert!(judged("https://login.example", secret).is_err(), "a public client has none");
}
