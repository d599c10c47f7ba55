//! Yeses that were signed with a passkey, by a software authenticator, and what is kept of them.

use aaep_engine::Record;

use crate::durable::House;
use crate::erasure::rewrite;
use crate::support::*;

/// What `aaep audit verify` says of every signature.
fn verified(house: &House) -> (i32, Value) {
    let (code, said) = house.aaep(&["audit", "verify", "--json"]);
    (code, serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}")))
}

/// What is put in the place of a signature.
type Forgery<'a> = &'a dyn Fn(usize, &[u8]) -> Vec<u8>;

/// Puts this in the place of each signature that is kept, by its number among them.
fn forge(house: &House, forged: impl Fn(usize, &[u8]) -> Vec<u8>) {
    let mut found = 0;
    rewrite(house, |number, _, bytes| {
        let (_, mut record, _) = Record::decode(bytes).unwrap();
        if let Record::Resolved { assertion, .. } = &mut record
            && !assertion.is_empty()
        {
            *assertion = forged(found, assertion).into();
            found += 1;
            *bytes = record.encode(number);
        }
    });
    assert_eq!(found, 2);
}

fn kept(house: &House) -> Vec<Vec<u8>> {
    let kept = std::cell::RefCell::new(Vec::new());
    forge(house, |_, assertion| {
        kept.borrow_mut().push(assertion.to_vec());
        assertion.to_vec()
    });
    kept.into_inner()
}

// covers: I34, I26
#[test]
fn a_signature_that_was_tampered_with_in_the_journal_is_found_without_the_hub() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let mut key = Authenticator::new(&hub, person.token("reader"));
        assert_eq!(key.register(&hub, &ear.subscription, "Blue key").0, 201);
        let session = agent.open().await;
        for name in ["a.txt", "b.txt"] {
            let request = agent.ask_for(&session, &deletion(name)).await;
            let asked = ear.event("awaiting.confirmation").await;
            assert_eq!(asked["extensions"]["presence"]["needs"], "pin", "{asked}");
            ear.decide(&asked, "accept").await;
            assert_eq!(agent.look(&request, 0).await["status"], "pending", "it is not signed");
            assert_eq!(key.sign(&hub, text(&asked, "reply_token")).0, 204);
            ear.decide(&asked, "accept").await;
            assert_eq!(agent.outcome(&request).await, "accepted");
        }
        hub.signal("TERM");
        hub.ended();

        let (code, said) = verified(&house);
        assert_eq!((code, &said["whole"], &said["signed"]), (0, &true.into(), &2.into()), "{said}");
        assert_eq!(said["signed_with_unknown_key"], 0, "{said}");
        let genuine = kept(&house);
        assert_eq!(verified(&house).0, 0, "linking it anew alone changes nothing");

        let other_bit = |_: usize, assertion: &[u8]| {
            let mut yes: Value = serde_json::from_slice(assertion).unwrap();
            let signature = text(&yes["assertion"], "signature");
            let last = if signature.as_bytes()[20] == b'A' { "B" } else { "A" };
            let other = [&signature[..20], last, &signature[21..]].concat();
            yes["assertion"]["signature"] = other.into();
            yes.to_string().into_bytes()
        };
        let swapped = |at: usize, _: &[u8]| genuine[1 - at].clone();
        let no_signature = |_: usize, _: &[u8]| b"{}".to_vec();
        let forger = Authenticator::new(&hub, String::new());
        let other_key = |_: usize, assertion: &[u8]| forger.forge(assertion);
        let forgeries: [(Forgery, &str); 4] = [
            (&other_bit, "The signature is not of this passkey."),
            (&swapped, "The answer is for another question."),
            (&no_signature, "What is kept of it is no signature."),
            (&other_key, "Its key was not registered then."),
        ];
        for (forged, why) in forgeries {
            forge(&house, forged);
            let (code, said) = verified(&house);
            assert_eq!((code, &said["whole"]), (1, &false.into()), "{said}");
            assert!(text(&said, "text").ends_with(why), "{said}");
            let (code, said) = house.aaep(&["audit", "verify"]);
            assert!(
                code == 1 && said.contains("It says that a passkey signed the answer."),
                "{said}"
            );
            forge(&house, |at, _| genuine[at].clone());
            assert_eq!(verified(&house).0, 0);
        }
        // A hub that did not name the keys yet: whose they were is not known, and that is said.
        rewrite(&house, |number, _, bytes| {
            let (_, mut record, _) = Record::decode(bytes).unwrap();
            if let Record::Administered { to, .. } = &mut record {
                *to = "".into();
                *bytes = record.encode(number);
            }
        });
        let (code, said) = verified(&house);
        assert_eq!((code, &said["signed_with_unknown_key"]), (0, &2.into()), "{said}");
        let (code, said) = house.aaep(&["audit", "verify"]);
        assert!(
            code == 0 && said.contains("For 2 of these, whose key it was is not known"),
            "{said}"
        );
    });
}

// covers: I34, S6
#[test]
fn nobody_whose_yes_does_not_count_has_a_passkey() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let ear = person.reader().await;
        let mut asked = everything();
        let extensions = asked["supported_extensions"].as_array_mut().unwrap();
        extensions.push("urn:aaep-rs:presence:v1".into());
        let mut phone = Ear::web_socket_for(&hub, &person.token("phone"), asked).await;
        for shown in [person.token("agent"), token("auditor"), String::new()] {
            let key = Authenticator::new(&hub, shown.clone());
            let (status, said) = key.register(&hub, &ear.subscription, "Sly key");
            assert_eq!((status, &said["error"]), (403, &"forbidden".into()), "{shown} {said}");
            for path in ["", "/options", "/remove", "/challenge", "/assertion"] {
                let path = format!("presence/passkeys{path}");
                assert_eq!(key.post(&hub, &path, &json!({})).0, 403, "{shown} {path}");
            }
            let shown = Some(&*shown).filter(|shown| !shown.is_empty());
            let listed = client(&hub.base(), shown).get("presence/passkeys").await.unwrap();
            assert_eq!(listed.status, 403, "{shown:?}");
        }
        // Nothing of that was told: the first thing that is heard is the person's own.
        let mut key = Authenticator::new(&hub, person.token("reader"));
        assert_eq!(key.register(&hub, &ear.subscription, "Blue key").0, 201);
        assert_eq!(phone.message("presence:state").await["state"], "passkey_added");
        let told = phone.heard.iter().filter(|heard| heard.contains("presence:state")).count();
        assert_eq!(told, 1, "{:?}", phone.heard);
        let listed = person.client("reader").get("presence/passkeys").await.unwrap();
        assert_eq!(body(&listed)["passkeys"].as_array().unwrap().len(), 1);
        assert_eq!(key.sign(&hub, "").0, 204);
    });
}

// covers: I34, S9
#[test]
fn a_passkey_that_comes_or_goes_is_told_to_everybody_who_listens_and_is_in_the_audit() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let ear = person.reader().await;
        let mut asked = everything();
        asked["supported_extensions"]
            .as_array_mut()
            .unwrap()
            .push("urn:aaep-rs:presence:v1".into());
        let mut phone = Ear::web_socket_for(&hub, &person.token("phone"), asked.clone()).await;
        let stranger = hub.person();
        let mut other = Ear::web_socket_for(&hub, &stranger.token("phone"), asked).await;

        let mut key = Authenticator::new(&hub, person.token("reader"));
        assert_eq!(key.register(&hub, &ear.subscription, "Blue key").0, 201);
        assert_eq!(phone.message("presence:state").await["state"], "passkey_added");
        // Without showing that somebody is there, it cannot be taken away.
        assert_eq!(key.remove(&hub, &ear.subscription).0, 403);
        assert_eq!(key.sign(&hub, "").0, 204);
        assert_eq!(key.remove(&hub, &ear.subscription).0, 204);
        assert_eq!(phone.message("presence:state").await["state"], "passkey_removed");
        // Nobody else's: what comes first to a stranger is about themselves.
        let theirs = Authenticator::new(&hub, stranger.token("reader"));
        let at = stranger.reader().await;
        assert_eq!(theirs.register(&hub, &at.subscription, "Theirs").0, 201);
        assert_eq!(other.message("presence:state").await["state"], "passkey_added");

        hub.signal("TERM");
        hub.ended();
        let (code, said) = house.aaep(&["audit", "export", "--kind", "administered"]);
        let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines: Vec<Value> = lines.collect();
        assert!(lines.iter().all(|line| text(line, "to").starts_with("key ")), "{said}");
        assert_eq!(lines[0]["to"], lines[1]["to"]);
        assert_ne!(lines[0]["to"], lines[2]["to"], "each has a key of its own");
        let acts: Vec<(String, String)> = lines
            .iter()
            .map(|line| (text(line, "act").to_owned(), text(line, "what").to_owned()))
            .collect();
        let user = |person: &Person| person.name("user");
        let expected = [
            ("passkey_added".to_owned(), user(&person)),
            ("passkey_removed".to_owned(), user(&person)),
            ("passkey_added".to_owned(), user(&stranger)),
        ];
        assert_eq!((code, acts), (0, expected.to_vec()), "{said}");
        assert_eq!(house.aaep(&["audit", "verify"]).0, 0);
    });
}

// covers: I34
#[test]
fn a_policy_that_asks_for_a_passkey_while_there_is_none_says_what_to_do() {
    run(async {
        use std::os::unix::fs::PermissionsExt;
        let house = House::new();
        let policy = house.0.path().join("policy.toml");
        std::fs::write(&policy, "[[rule]]\ntool = \"wipe\"\npresence = \"passkey\"\n").unwrap();
        std::fs::set_permissions(&policy, std::fs::Permissions::from_mode(0o600)).unwrap();
        let setup = || Setup::durable().toml("policy = \"policy.toml\"");
        let missing = "The policy asks for a passkey and none is registered";
        let hub = Hub::start_in(setup(), house.0.clone());
        let said = hub.logs(&[missing, "under Passkeys"]);
        assert!(!said.contains("PIN"), "{said}");
        let person = hub.person();
        let ear = person.reader().await;
        let key = Authenticator::new(&hub, person.token("reader"));
        assert_eq!(key.register(&hub, &ear.subscription, "Blue key").0, 201);
        hub.signal("TERM");
        hub.ended();
        // Now there is one, and nothing is missing.
        let hub = Hub::start_in(setup(), house.0.clone());
        hub.greetings();
        let log = hub.log().join("\n");
        assert!(!log.contains(missing) && !log.contains("No PIN is set"), "{log}");
    });
}
