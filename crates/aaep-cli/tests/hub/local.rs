//! HTTP over the Unix socket: the whole interface, for processes of this user alone.

use crate::skipped::skipped;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use aaep_transport::client::{Options, SessionSecret};
use http::StatusCode;

use crate::support::*;

fn over_socket(hub: &Hub) -> HttpClient {
    let session_secret = Some(SessionSecret::generate().unwrap());
    let options = Options { session_secret, ..Options::default() };
    HttpClient::over_socket(hub.socket(), "/aaep/v1", options)
}

/// Status line and body of whatever comes back for these bytes.
fn raw(hub: &Hub, request: &str) -> String {
    let mut stream = UnixStream::connect(hub.socket()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

// covers: W10, W4, D4, C1
#[test]
fn agents_and_listeners_use_the_socket_and_answers_count() {
    run(async {
        // Without the development option: the kernel says who answers.
        let hub = Hub::start(Setup::default());
        let agent = Agent::new(over_socket(&hub), "tidy");
        for http in [true, false] {
            let mut ear = match http {
                true => Ear::subscribe(over_socket(&hub)).await,
                false => Ear::unix(&hub).await,
            };
            let session = agent.open().await;
            let request = agent.ask(&session).await;
            let asked = ear.event("awaiting.confirmation").await;
            ear.decide(&asked, "accept").await;
            assert_eq!(agent.outcome(&request).await, "accepted");
            assert_eq!(agent.look(&request, 0).await["decided_by"], "socket");
            assert_eq!(agent.invoke(&request, "{}").await.status, StatusCode::OK);
            agent.complete(&session).await;
        }
        // What was begun there is nobody's on loopback, and the other way round.
        let session = agent.open().await;
        let path = format!("agent/sessions/{session}");
        assert_eq!(hub.anonymous().get(&path).await.unwrap().status, 404);
        assert_eq!(over_socket(&hub).get(&path).await.unwrap().status, 404);
    });
}

// covers: W10, W5, S5
#[test]
fn the_socket_has_the_same_doors() {
    let hub = Hub::start(Setup::default());
    let get = |headers: &str| {
        raw(
            &hub,
            &format!("GET /aaep/v1/agent/inputs HTTP/1.1\r\nconnection: close\r\n{headers}\r\n"),
        )
    };
    let secret = SessionSecret::generate().unwrap();
    let shown = format!("host: localhost\r\naaep-session-secret: {}\r\n", secret.as_str());
    assert!(get(&shown).starts_with("HTTP/1.1 200"), "{}", get(&shown));
    assert!(get("host: evil.example\r\n").starts_with("HTTP/1.1 403"));
    assert!(get("").starts_with("HTTP/1.1 400"));
    assert!(get(&format!("{shown}origin: https://evil.example\r\n")).starts_with("HTTP/1.1 403"));
    // A client behind a proxy is not this user.
    assert!(get(&format!("{shown}x-forwarded-for: 10.0.0.1\r\n")).starts_with("HTTP/1.1 401"));
    let wrong = format!("host: localhost\r\nauthorization: Bearer {}\r\n", token("nobody"));
    assert!(get(&wrong).starts_with("HTTP/1.1 401"));
    // What is neither of the two is closed, and so is silence.
    assert_eq!(raw(&hub, "\u{1}\u{2}\u{3}\u{4}garbage"), "");
    assert!(raw(&hub, "NONSENSE\r\n\r\n").starts_with("HTTP/1.1 400"));
}

// covers: W10
#[test]
fn curl_speaks_over_the_socket() {
    let hub = Hub::start(Setup::default());
    let mut curl = Command::new("curl");
    curl.args(["-sf", "--max-time", "20", "--unix-socket"]).arg(hub.socket());
    let Ok(done) = curl.arg("http://localhost/healthz").output() else {
        skipped("there is no curl here.");
        return;
    };
    assert!(done.status.success(), "{done:?}");
}

// covers: W10, S5
#[test]
fn a_process_of_another_user_is_refused_at_the_socket() {
    let own = Command::new("id").arg("-u").output().unwrap();
    if own.stdout != b"0\n" {
        skipped("only root can run a program as another user.");
        return;
    }
    let hub = Hub::start(Setup::default());
    // As if somebody had opened the directories: the kernel still says who it is.
    let mut directory = hub.socket();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    while directory.pop() && directory.starts_with(hub.directory()) {
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let asked = |user: &str| {
        let url = "http://localhost/healthz";
        let mut curl = Command::new("setpriv");
        curl.args(["--reuid", user, "--regid", user, "--clear-groups", "--", "curl", "-sS"]);
        curl.args(["--max-time", "20", "--unix-socket"]).arg(hub.socket()).arg(url);
        curl.output().unwrap()
    };
    assert!(asked("0").status.success(), "{:?}", asked("0"));
    let refused = asked("65534");
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
    let why = String::from_utf8_lossy(&refused.stderr).to_lowercase();
    assert!(!why.contains("permission"), "{why}");
    // It got as far as the hub, which refused it.
    hub.logs(&["a connection was refused", "65534"]);
}
