//! `aaep token`: who may come in, without editing files by hand.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::support::*;

const AAEP: &str = env!("CARGO_BIN_EXE_aaep");

fn aaep(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(AAEP);
    command.arg("token").args(arguments).arg("--config").arg(directory.join("aaep.toml"));
    command.env_clear().env("HOME", directory);
    command
}

fn text(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn good(directory: &Path, arguments: &[&str]) -> String {
    let output = aaep(directory, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", text(&output));
    text(&output)
}

fn refused(directory: &Path, arguments: &[&str]) -> String {
    let output = aaep(directory, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
    text(&output)
}

fn token_in(directory: &Path, name: &str) -> String {
    let file = directory.join("tokens").join(name);
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

// covers: S4
#[test]
fn a_token_counts_as_soon_as_it_is_made_and_no_longer_than_until_it_is_revoked() {
    run(async {
        let hub = Hub::start(Setup::durable().toml("# A remark of the owner's."));
        let directory = hub.directory();
        let told =
            |said: &str| assert!(said.contains(&format!("process {}", hub.process())), "{said}");
        let before = hub.log().len();
        told(&good(directory, &["new", "ann-phone", "--user", "ann"]));
        hub.logs_after(before, &["were read again"]);
        let first = token_in(directory, "ann-phone");
        let mut ear = Ear::subscribe(client(&hub.base(), Some(&first))).await;
        // A second one of the same name, and the first is taken away: no moment without one.
        let before = hub.log().len();
        good(directory, &["new", "ann-phone", "--user", "ann"]);
        hub.logs_after(before, &["were read again"]);
        let second = token_in(directory, "ann-phone-2");
        let mut other = Ear::subscribe(client(&hub.base(), Some(&second))).await;
        let listed = good(directory, &["list"]);
        let digits: Vec<&str> = listed
            .lines()
            .filter(|line| line.starts_with("ann-phone: accessibility_consumer of ann"))
            .filter_map(|line| line.rsplit(' ').next())
            .collect();
        assert_eq!(digits.len(), 2, "{listed}");
        let before = hub.log().len();
        told(&good(directory, &["revoke", "ann-phone", "--token", digits[0]]));
        hub.logs_after(before, &["were read again"]);
        assert_eq!(ear.until_end().await, Vec::<serde_json::Value>::new());
        let shut_out = client(&hub.base(), Some(&first)).get("events").await.unwrap();
        assert_eq!(shut_out.status, 401);
        good(directory, &["revoke", "ann-phone"]);
        assert_eq!(other.until_end().await, Vec::<serde_json::Value>::new());
        let config = std::fs::read_to_string(directory.join("aaep.toml")).unwrap();
        assert!(config.contains("# A remark of the owner's."), "{config}");
        assert!(!config.contains("ann-phone") && config.contains("[[principals]]"), "{config}");
    });
}

#[test]
fn an_agent_gets_its_role_and_asks_for_its_user() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let before = hub.log().len();
        good(hub.directory(), &["new", "bank", "--role", "agent", "--user", "ann"]);
        hub.logs_after(before, &["were read again"]);
        let client = client(&hub.base(), Some(&token_in(hub.directory(), "bank")));
        let body = json!({"producer": {"agent_id": "bank"}, "summary_normal": "Looking."});
        let answer = client.post("agent/sessions", body.to_string()).await.unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
    });
}

#[test]
fn what_cannot_be_done_is_said_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (directory, config) = (directory.path(), directory.path().join("aaep.toml"));
    let said = refused(directory, &["list"]);
    assert!(said.contains("aaep.toml"), "{said}");
    std::fs::write(&config, "# mine\n").unwrap();
    std::fs::set_permissions(&config, PermissionsExt::from_mode(0o600)).unwrap();
    let said = good(directory, &["list"]);
    assert!(said.contains("aaep token new"), "{said}");
    let said = good(directory, &["new", "reader", "--user", "ann"]);
    assert!(said.contains("No hub runs"), "{said}");
    let before = std::fs::read_to_string(&config).unwrap();
    assert!(before.starts_with("# mine\n"), "{before}");
    for (arguments, why) in [
        (&["new", "reader", "--user", "bob"][..], "differ in role or user"),
        (&["new", "local", "--user", "ann"], "without a token"),
        (&["new", " x"], "no spaces around it"),
        (&["revoke", "nobody"], "aaep token list"),
        (&["revoke", "reader", "--token", "zz"], "aaep token list"),
        (&["revoke", "reader", "--token", ""], "aaep token list"),
    ] {
        let said = refused(directory, arguments);
        assert!(said.contains(why) && !said.contains(".checked"), "{said}");
        assert_eq!(std::fs::read_to_string(&config).unwrap(), before);
    }
    let entries = std::fs::read_dir(directory.join("tokens")).unwrap().count();
    assert_eq!(entries, 1, "no token is left of what was refused");
    std::fs::write(&config, "listen = [").unwrap();
    refused(directory, &["new", "reader"]);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), "listen = [");
}

#[test]
fn many_at_once_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let config = directory.join("aaep.toml");
    std::fs::write(&config, "").unwrap();
    std::fs::set_permissions(&config, PermissionsExt::from_mode(0o600)).unwrap();
    let names: Vec<String> = (0..8).map(|number| format!("reader-{number}")).collect();
    let children: Vec<_> =
        names.iter().map(|name| aaep(directory, &["new", name]).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let listed = good(directory, &["list"]);
    assert_eq!(listed.lines().count(), names.len(), "{listed}");
    assert!(names.iter().all(|name| listed.contains(name.as_str())), "{listed}");
}

// covers: W5
#[test]
fn a_new_operator_asks_and_answers_with_what_init_made() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().to_owned();
        let within = |home: &Path, arguments: &[&str]| {
            let mut command = Command::new(AAEP);
            command.args(arguments).env_clear().env("HOME", home);
            command.env("XDG_RUNTIME_DIR", home.join("run"));
            command
        };
        std::fs::create_dir(home.join("run")).unwrap();
        std::fs::set_permissions(home.join("run"), PermissionsExt::from_mode(0o700)).unwrap();
        // Without a directory it goes where the hub looks for it.
        let made = within(&home, &["hub", "init"]).output().unwrap();
        assert!(made.status.success(), "{}", text(&made));
        let hub = Hub::start_by(directory, |_| {
            let mut command = within(&home, &["hub", "--listen", "127.0.0.1:0"]);
            command.env("AAEP_LOG", "debug").stdin(std::process::Stdio::null());
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command
        });
        let made = home.join(".config/aaep");
        let (ca, tokens) = (made.join("tls/certificate.pem"), made.join("tokens"));
        // Somebody else's account on the same machine, who was given certificate and tokens.
        let elsewhere = tempfile::tempdir().unwrap();
        let ask = |ca: Option<&Path>| {
            let mut command =
                within(elsewhere.path(), &["ask", "Delete the build?", "--hub", &hub.base()]);
            command.arg("--token-file").arg(tokens.join("agent")).args(["--timeout", "120"]);
            command.args(ca.map(|ca| [Path::new("--ca"), ca]).into_iter().flatten());
            command
        };
        let refused = ask(None).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        let mut listen =
            within(elsewhere.path(), &["listen", &hub.base(), "--line", "--second-step", "never"]);
        listen.arg("--token-file").arg(tokens.join("listener")).arg("--ca").arg(&ca);
        listen.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut listener = listen.spawn().unwrap();
        let asking = tokio::task::spawn_blocking({
            let mut command = ask(Some(&ca));
            move || command.output().unwrap()
        });
        let mut heard = std::io::BufReader::new(listener.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("Type yes or no") {
            line.clear();
            let read = std::io::BufRead::read_line(&mut heard, &mut line).unwrap();
            assert!(read > 0, "the listener has ended");
        }
        let mut keys = listener.stdin.take().unwrap();
        std::io::Write::write_all(&mut keys, b"yes\n").unwrap();
        let answered = asking.await.unwrap();
        assert_eq!(answered.status.code(), Some(0), "{}", text(&answered));
        listener.kill().unwrap();
        listener.wait().unwrap();
    });
}
