//! Signed manifests: a hub that signs, listeners that remember, and impostors.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use aaep_signature::SigningKey;

use crate::support::*;

const AAEP: &str = env!("CARGO_BIN_EXE_aaep");

fn aaep(home: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(AAEP);
    command.args(arguments).env_clear().env("HOME", home).stdin(Stdio::null());
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Runs `aaep manifest`; its exit status and what it said.
fn manifest(home: &Path, arguments: &[&str]) -> (i32, String) {
    let output = aaep(home, &[&["manifest"], arguments].concat());
    (output.status.code().unwrap(), said(&output))
}

/// A new key in this file, which may be there.
fn keygen(home: &Path, file: &Path) -> String {
    let _ = std::fs::remove_file(file);
    let (code, said) = manifest(home, &["keygen", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let line = said.lines().find(|line| line.starts_with("Its fingerprint: ")).unwrap();
    line.rsplit(' ').next().unwrap().to_owned()
}

/// `aaep listen --json`, until it is dropped.
struct Listener {
    child: Child,
    lines: Receiver<Value>,
}

impl Listener {
    fn start(home: &Path, base: &str, more: &[&str]) -> Self {
        let mut command = Command::new(AAEP);
        command.args(["listen", "--json", base]).args(more).env_clear().env("HOME", home);
        command.env("LANG", "en_GB.UTF-8").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (send, lines) = channel();
        let out = child.stdout.take().unwrap();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = send.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, lines }
    }

    /// The next line about the connection.
    fn next(&self) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).expect("nothing more was said");
            if ["connected", "lost"].iter().any(|what| line["happening"] == *what) {
                return line;
            }
        }
    }

    fn connected(&self) -> Value {
        let line = self.next();
        assert_eq!(line["happening"], "connected", "{line}");
        line
    }

    /// Why it does not listen.
    fn refused(&self) -> String {
        let line = self.next();
        assert_eq!(line["happening"], "lost", "{line}");
        text(&line, "why").to_owned()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn sign_with(key: &Path) -> Setup {
    Setup::default().toml(&format!("[hub]\nmanifest_key = {:?}", key.to_str().unwrap()))
}

// covers: S7, S11, H11
#[test]
fn a_hub_that_signs_is_verified_inline_and_by_address() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        let (home, key) = (home.path(), home.path().join("key.pem"));
        let fingerprint = keygen(home, &key);
        let hub = Hub::start(sign_with(&key));
        // A listener that wants only signed manifests is served, with the manifest in the answer.
        let wanted = json!({ "accept_signed_manifests_only": true });
        let answer = hub.anonymous().post("subscriptions", request(wanted)).await.unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        let inline = text(&body(&answer), "signed_manifest").to_owned();
        let file = home.join("inline.jws");
        std::fs::write(&file, &inline).unwrap();
        let (code, shown) =
            manifest(home, &["verify", file.to_str().unwrap(), "--agent-id", "aaep-hub"]);
        assert!(code == 0 && shown.contains(&fingerprint), "{shown}");
        // By its address too, over either way.
        let socket = format!("unix:{}", hub.socket().display());
        for address in [hub.base(), socket] {
            let (code, shown) = manifest(home, &["verify", &address, "--json"]);
            assert_eq!(code, 0, "{shown}");
            let shown: Value = serde_json::from_str(&shown).unwrap();
            assert_eq!(shown["agent_id"], "aaep-hub");
            assert_eq!(shown["key"], *fingerprint);
        }
        // Unsigned it is what it was.
        let plain = client(&hub.base().replace("/aaep/v1", ""), None);
        let plain = plain.get(".well-known/aaep-manifest.json").await.unwrap();
        assert_eq!(body(&plain)["agent_id"], "aaep-hub");
        let (code, shown) = manifest(home, &["show", &hub.base()]);
        assert!(code == 0 && shown.contains("aaep_versions_supported"), "{shown}");
    });
}

// covers: S7
#[test]
fn a_listener_remembers_the_first_key_and_refuses_another_one() {
    let home = tempfile::tempdir().unwrap();
    let (home, key) = (home.path(), home.path().join("key.pem"));
    let first = keygen(home, &key);
    let hub = Hub::start(sign_with(&key));
    let place = hub.address().to_string();
    let met = Listener::start(home, &hub.base(), &[]).connected();
    assert_eq!(met["identity"], json!({ "is": "new", "agent_id": "aaep-hub", "key": first }));
    assert!(met["said"].to_string().contains("Its key is remembered from now on"), "{met}");
    let met = Listener::start(home, &hub.base(), &["--signed"]).connected();
    assert_eq!(met["identity"]["is"], "verified", "{met}");
    assert!(met["said"].to_string().contains("Its identity is verified: "), "{met}");
    let (_, known) = manifest(home, &["known"]);
    assert!(known.contains(&place) && known.contains(&first), "{known}");
    let file = home.join(".config/aaep/known-agents.json");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // Another key at the same place.
    let second = keygen(home, &key);
    let before = hub.log().len();
    hub.signal("HUP");
    hub.logs_after(before, &["were read again"]);
    let why = Listener::start(home, &hub.base(), &[]).refused();
    assert!(why.contains("this agent's key has changed") && why.contains(&second), "{why}");
    assert!(why.contains(&format!("aaep manifest forget {place}")), "{why}");
    // No signature any more, where there was one.
    let config = hub.directory().join("aaep.toml");
    let written = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, written.replace("manifest_key", "#manifest_key")).unwrap();
    let before = hub.log().len();
    hub.signal("HUP");
    hub.logs_after(before, &["were read again"]);
    let why = Listener::start(home, &hub.base(), &[]).refused();
    assert!(why.contains("has signed its manifest before"), "{why}");
    // After the administrator confirmed the new key, the old one is forgotten and the hub met anew.
    std::fs::write(&config, written).unwrap();
    let before = hub.log().len();
    hub.signal("HUP");
    hub.logs_after(before, &["were read again"]);
    assert_eq!(manifest(home, &["forget", &place]).0, 0);
    let met = Listener::start(home, &hub.base(), &[]).connected();
    assert_eq!(met["identity"]["key"], *second, "{met}");
    // A list of known agents that cannot be read is no reason to believe everybody.
    std::fs::write(&file, "{").unwrap();
    let why = Listener::start(home, &hub.base(), &[]).refused();
    assert!(why.contains("known-agents.json"), "{why}");
}

// covers: S7
#[test]
fn with_a_list_only_its_keys_count() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (own, other) = (home.join("own.pem"), home.join("other.pem"));
    keygen(home, &own);
    keygen(home, &other);
    let hub = Hub::start(sign_with(&own));
    let list = |key: &Path, agent: &str| {
        let (code, list) = manifest(home, &["public", key.to_str().unwrap(), "--agent-id", agent]);
        assert_eq!(code, 0, "{list}");
        let file = home.join(format!("{agent}.json"));
        std::fs::write(&file, list).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let good = list(&own, "aaep-hub");
    let met = Listener::start(home, &hub.base(), &["--signers", &good]).connected();
    assert_eq!(met["identity"]["is"], "verified", "{met}");
    assert_eq!(manifest(home, &["verify", &hub.base(), "--signers", &good]).0, 0);
    let strange = list(&other, "stranger");
    let why = Listener::start(home, &hub.base(), &["--signers", &strange]).refused();
    assert!(why.contains("a key that is not known"), "{why}");
    let others = list(&own, "bank");
    let (code, said) = manifest(home, &["verify", &hub.base(), "--signers", &others]);
    assert!(code == 1 && said.contains("its key is not that of aaep-hub"), "{said}");
    // A hub that does not sign is not listened to.
    let plain = Hub::start(Setup::default());
    for more in [&["--signers", &good][..], &["--signed"]] {
        let why = Listener::start(home, &plain.base(), more).refused();
        assert!(why.contains("sign"), "{why}");
    }
    let (code, said) = manifest(home, &["verify", &plain.base()]);
    assert!(code == 2 && said.contains("does not sign"), "{said}");
}

/// Somebody who accepts every subscription with this manifest, as `bank`.
fn impostor(signed: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}/aaep/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let accepted = json!({
                "type": "subscription.accepted", "subscription_id": "sub_x",
                "aaep_version": "1.0.0", "producer": { "agent_id": "bank" },
                "honored_capabilities": {}, "signed_manifest": signed,
            })
            .to_string();
            let mut seen = [0; 4096];
            let _ = stream.read(&mut seen);
            let head = "HTTP/1.1 201 Created\r\ncontent-type: application/json";
            let _ =
                write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{accepted}", accepted.len());
            // Until the other side has read it.
            let _ = stream.read(&mut seen);
        }
    });
    base
}

// covers: S7
#[test]
fn whoever_passes_for_an_agent_is_not_listened_to_and_it_is_said_why() {
    let home = tempfile::tempdir().unwrap();
    let (home, key) = (home.path(), home.path().join("key.pem"));
    keygen(home, &key);
    let key = SigningKey::from_pem(&std::fs::read(&key).unwrap()).unwrap();
    let of = |agent_id: &str| {
        json!({
            "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:producer.manifest",
            "agent_id": agent_id, "aaep_versions_supported": ["1.0.0"],
            "conformance_levels_supported": [1], "transports_supported": ["sse"],
        })
        .to_string()
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now = i64::try_from(now.as_secs()).unwrap();
    let good = key.sign(&of("bank"), now, 600).unwrap();
    let (_, rest) = good.split_once('.').unwrap();
    let (payload, _) = rest.split_once('.').unwrap();
    // {"alg":"none"} and {"alg":"HS256"}
    let none = format!("eyJhbGciOiJub25lIn0.{payload}.");
    let none = none + "AAAA";
    let shared = format!("eyJhbGciOiJIUzI1NiJ9.{payload}.AAAA");
    let cases = [
        (key.sign(&of("shop"), now, 600).unwrap(), "it is the manifest of shop, not of bank"),
        (key.sign(&of("bank"), now - 4000, 600).unwrap(), "its time is over"),
        (key.sign(&of("bank"), now + 4000, 600).unwrap(), "its time has not begun"),
        (none, "its algorithm is not one of"),
        (shared, "its algorithm is not one of"),
        (
            good.replacen(&payload[..40], &payload[40..80], 1),
            "its signature is not that of its key",
        ),
    ];
    for (signed, why) in cases {
        let told = Listener::start(home, &impostor(signed), &[]).refused();
        assert!(told.contains(why), "{why}: {told}");
    }
    let met = Listener::start(home, &impostor(good), &[]).next();
    assert!(!met.to_string().contains("not believed"), "{met}");
}

#[test]
fn a_hub_whose_key_cannot_be_used_does_not_start_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key.pem");
    std::fs::write(&key, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").unwrap();
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let (code, said) = sign_with(&key).fails();
    assert!(code == 2 && said.contains("aaep manifest keygen"), "{said}");
    keygen(directory.path(), &key);
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o644)).unwrap();
    let (code, said) = sign_with(&key).fails();
    assert!(code == 2 && said.contains("key.pem"), "{said}");
    // A key that is there is never replaced.
    let (code, said) = manifest(directory.path(), &["keygen", key.to_str().unwrap()]);
    assert!(code == 2 && said.contains("key.pem"), "{said}");
}

/// Somebody in a hub's place who signs nothing: knows no handshake, and streams to everybody.
/// Gives the first line of what was asked of it.
fn takes_the_place_of(address: std::net::SocketAddr) -> Receiver<String> {
    let (send, asked) = channel();
    let until = Instant::now() + PATIENCE;
    let listener = loop {
        match TcpListener::bind(address) {
            Ok(listener) => break listener,
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    std::thread::spawn(move || {
        let mut streams = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut seen = [0; 4096];
            let count = stream.read(&mut seen).unwrap_or(0);
            let head = String::from_utf8_lossy(&seen[..count]).into_owned();
            let _ = send.send(head.lines().next().unwrap_or_default().to_owned());
            if head.starts_with("GET") && head.contains("/events") {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                let _ = stream.write_all(format!("{head}: here\n\n").as_bytes());
                streams.push(stream);
            } else {
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n");
            }
        }
    });
    asked
}

// covers: S7
#[test]
fn whoever_takes_a_hubs_place_after_a_break_is_not_listened_to_either() {
    let home = tempfile::tempdir().unwrap();
    let (home, key) = (home.path(), home.path().join("key.pem"));
    keygen(home, &key);
    let hub = Hub::start(sign_with(&key));
    let (base, address) = (hub.base(), hub.address());
    let listener = Listener::start(home, &base, &[]);
    assert_eq!(listener.connected()["identity"]["is"], "new");
    hub.kill();
    let asked = takes_the_place_of(address);
    let lost = listener.next();
    assert_eq!(lost["happening"], "lost", "{lost}");
    // Who is there now is asked who it is, before anything else.
    let first = asked.recv_timeout(PATIENCE).unwrap();
    assert!(first.contains("/.well-known/aaep-manifest.json"), "{first}");
    drop(listener);
    let streams: Vec<_> = asked.try_iter().filter(|asked| asked.contains("/events")).collect();
    assert!(streams.is_empty(), "{streams:?}");
    // On a way that begins anew, without a handshake.
    let why = Listener::start(home, &base, &[]).refused();
    assert!(why.contains("has signed its manifest before"), "{why}");
}
