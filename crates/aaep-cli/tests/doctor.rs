//! `aaep doctor`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // runs the command

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tempfile::TempDir;

/// A machine with nothing but what a test puts there.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        fs::create_dir(machine.data()).unwrap();
        fs::set_permissions(machine.data(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::create_dir(machine.0.path().join("bin")).unwrap();
        machine
    }

    fn data(&self) -> std::path::PathBuf {
        self.0.path().join("data")
    }

    /// How it ends, and what it found about this.
    fn look(&self, about: &str, configuration: &str, host: &str) -> (i32, String, String) {
        let config = self.0.path().join("aaep.toml");
        fs::write(&config, configuration).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_aaep"))
            .args(["doctor", "--json", "--config"])
            .arg(&config)
            .arg("--data")
            .arg(self.data())
            .env_clear()
            .env("HOME", self.0.path())
            .env("XDG_RUNTIME_DIR", self.0.path())
            .env("PATH", self.0.path().join("bin"))
            .env("BRLAPI_HOST", host)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let found = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let found = found.rev().find(|finding| finding["about"] == about);
        let found = found.unwrap_or_else(|| panic!("nothing about {about} in {text}"));
        let word = |name: &str| found[name].as_str().unwrap().to_owned();
        (output.status.code().unwrap(), word("state"), word("text"))
    }

    /// The same, where it does not matter what else there is.
    fn finds(&self, about: &str) -> (i32, String, String) {
        self.look(about, "", "127.0.0.1:1")
    }
}

fn is(found: &(i32, String, String), code: i32, state: &str, words: &str) {
    assert_eq!((found.0, found.1.as_str()), (code, state), "{found:?}");
    assert!(found.2.contains(words), "{found:?}");
}

#[test]
fn a_machine_without_anything_wrong_ends_well() {
    let machine = Machine::new();
    for about in ["configuration", "permissions", "disk", "clock", "files"] {
        is(&machine.finds(about), 0, "good", "");
    }
    is(&machine.finds("safety"), 0, "careful", "loopback_without_credentials");
    for (about, words) in [
        ("policy", "--policy"),
        ("hub", "aaep hub"),
        ("speech", "espeak-ng"),
        ("braille", "brltty"),
    ] {
        is(&machine.finds(about), 0, "missing", words);
    }
}

#[test]
fn a_configuration_that_is_wrong_is_said_with_what_to_do() {
    let machine = Machine::new();
    is(&machine.look("configuration", "listen = [", ":0"), 1, "wrong", "aaep.toml");
    is(&machine.look("safety", "listen = [\"0.0.0.0:8707\"]", ":0"), 1, "wrong", "tls.certificate");
    is(&machine.look("policy", "policy = \"none.toml\"", ":0"), 1, "wrong", "none.toml");
    let tls = "[tls]\ncertificate = \"none.pem\"\nkey = \"none.key\"";
    is(&machine.look("certificate", tls, ":0"), 1, "wrong", "none.pem");
}

/// What is said of a certificate that ends after so many seconds from now.
fn certificate_until(seconds: i64) -> (i32, String, String) {
    let machine = Machine::new();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
    let now = SystemTime::now();
    let away = Duration::from_secs(seconds.unsigned_abs());
    params.not_before = (now - Duration::from_secs(200_000)).into();
    params.not_after = if seconds < 0 { now - away } else { now + away }.into();
    let own = params.self_signed(&key).unwrap();
    let place = |name: &str| machine.0.path().join(name);
    fs::write(place("c.pem"), own.pem()).unwrap();
    fs::write(place("k.pem"), key.serialize_pem()).unwrap();
    fs::set_permissions(place("k.pem"), fs::Permissions::from_mode(0o600)).unwrap();
    let tls = "[tls]\ncertificate = \"c.pem\"\nkey = \"k.pem\"";
    machine.look("certificate", tls, ":0")
}

#[test]
fn a_certificate_that_is_over_or_soon_will_be_is_said() {
    is(&certificate_until(-100_000), 1, "wrong", "has expired");
    is(&certificate_until(3 * 86_400 + 3600), 0, "careful", "3 more days");
    is(&certificate_until(60 * 86_400), 0, "good", "is valid");
}

#[test]
fn a_directory_that_others_can_read_is_said() {
    let machine = Machine::new();
    fs::set_permissions(machine.data(), fs::Permissions::from_mode(0o755)).unwrap();
    is(&machine.finds("permissions"), 1, "wrong", "chmod 700");
    fs::remove_dir(machine.data()).unwrap();
    is(&machine.finds("data"), 0, "missing", "is not there yet");
    fs::write(machine.data(), "").unwrap();
    is(&machine.finds("data"), 1, "wrong", "is no directory");
}

#[test]
fn a_clock_that_went_back_is_said() {
    let machine = Machine::new();
    let file = fs::File::create(machine.data().join("journal")).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(7200)).unwrap();
    is(&machine.finds("clock"), 1, "wrong", "behind the last write");
}

#[test]
fn what_speaks_and_writes_braille_is_found() {
    let machine = Machine::new();
    let program = machine.0.path().join("bin/espeak-ng");
    fs::write(&program, "").unwrap();
    is(&machine.finds("speech"), 0, "good", "espeak-ng");
    is(&machine.look("braille", "", "nowhere:x"), 1, "wrong", "BRLAPI_HOST");
    let door = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // The number is counted from the first port of BRLTTY.
    let number = i32::from(door.local_addr().unwrap().port()) - 4101;
    let host = format!("127.0.0.1:{number}");
    is(&machine.look("braille", "", &host), 0, "good", "BRLTTY answers");
}

/// A program that ends with the test.
struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_hub_that_answers_is_found() {
    let machine = Machine::new();
    let mut hub = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["hub", "--ephemeral", "--listen", "127.0.0.1:0"])
        .env_clear()
        .env("HOME", machine.0.path())
        .env("XDG_RUNTIME_DIR", machine.0.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map(Started)
        .unwrap();
    let mut lines = BufReader::new(hub.0.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("Ready")), "the hub starts");
    is(&machine.finds("hub"), 0, "good", "A hub answers at ");
    drop(hub);
    is(&machine.finds("hub"), 0, "missing", "aaep hub");
}

/// Whether one of these runs here, besides what the test starts.
#[cfg(target_os = "linux")]
fn runs(names: &[&str]) -> bool {
    let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut all = all.filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok());
    all.any(|name| names.contains(&name.trim_end()))
}

#[cfg(target_os = "linux")]
#[test]
fn a_screen_reader_that_runs_is_found() {
    let machine = Machine::new();
    // The developer may use one.
    if !runs(&["orca", "fenrir", "speakup", "espeakup"]) {
        is(&machine.finds("screen reader"), 0, "missing", "aaep listen --speak");
    }
    let program = machine.0.path().join("bin/fenrir");
    fs::copy("/bin/sleep", &program).unwrap();
    let _reader = Command::new(program).arg("60").spawn().map(Started).unwrap();
    is(&machine.finds("screen reader"), 0, "good", " runs.");
}

#[test]
fn words_are_one_line_each_and_the_last_one_counts_them() {
    let machine = Machine::new();
    let output = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["doctor", "--config"])
        .arg(Path::new("/none/aaep.toml"))
        .env("HOME", machine.0.path())
        .env("XDG_RUNTIME_DIR", machine.0.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (last, findings) = lines.split_last().unwrap();
    assert_eq!(*last, "1 thing is wrong.");
    for line in findings {
        let states = ["Good: ", "Missing: ", "Careful: ", "Wrong: "];
        assert!(states.iter().any(|state| line.starts_with(state)), "{line}");
    }
    assert!(findings[0].contains("/none/aaep.toml"), "{text}");
}
