//! Starting, reloading, stopping: what whoever runs a hub sees of it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use http::StatusCode;

use crate::support::*;

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--ephemeral"], more].concat()
}

// covers: W5, S5, D4
#[test]
fn a_hub_that_would_not_be_safe_does_not_start_and_says_why() {
    let exposed = arguments(&["--listen", "0.0.0.0:0"]);
    let cases = [
        (Setup::default().arguments(&exposed), "there is no TLS", "aaep hub init"),
        (
            Setup::default()
                .arguments(&exposed)
                .principals("")
                .toml("behind_proxy = [\"10.0.0.1\"]"),
            "nobody has a token",
            "listen on 127.0.0.1",
        ),
        (
            Setup::default()
                .arguments(&exposed)
                .toml("behind_proxy = [\"10.0.0.1\"]\n[development]\nlocal_replies = true"),
            "lets any program on this machine approve",
            "Turn development.local_replies off",
        ),
        (
            Setup::default()
                .principals("")
                .toml("loopback_without_credentials = false\n[unix_socket]\nenabled = false"),
            "Nobody could come in",
            "aaep hub init",
        ),
        (Setup::default().toml("colour = \"red\""), "colour", "aaep.toml"),
        (Setup::default().toml("[limits]\nsessions = 0"), "limits.sessions", "at least 1"),
        (Setup::default().set("AAEP_LIMITS__SESIONS", 1), "AAEP_LIMITS__SESIONS", "--print-config"),
    ];
    for (setup, what, remedy) in cases {
        let (code, said) = setup.fails();
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(what) && said.contains(remedy), "{what}: {said}");
    }
}

// covers: W10
#[test]
fn what_another_hub_holds_is_named_with_a_way_out() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = Setup::default().arguments(&arguments(&["--listen", &address])).fails();
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains(&address) && said.contains("choose another address with --listen"),
        "{said}"
    );

    // The data directory.
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let words = ["--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let hub = Hub::start_in(Setup::default().arguments(&words), tempfile::tempdir().unwrap());
    let (code, said) = Setup::default().arguments(&words).fails();
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("Another hub (process ") && said.contains("--data"), "{said}");
    // The Unix socket, in the same place as the other's.
    let free = arguments(&["--listen", "127.0.0.1:0"]);
    let mut second = Setup::default().arguments(&free).command(directory.path());
    let ended = second.env("XDG_RUNTIME_DIR", hub.directory().join("run")).output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("another hub listens at") && said.contains("another agent id"), "{said}");
    assert!(hub.is_up());
    // Once it has ended, its place is free; its lock does not outlive it.
    hub.signal("KILL");
    hub.ended();
    Hub::start_in(Setup::default().arguments(&words), tempfile::tempdir().unwrap());
}

// covers: W5
#[test]
fn a_key_that_cannot_be_used_is_named_with_a_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let made = init(directory.path());
    let key = made.join("tls/key.pem");
    let config = made.join("aaep.toml");
    let start = || {
        let mut command = Setup::default().arguments(&[]).command(directory.path());
        command.arg("--listen").arg("127.0.0.1:0").env("AAEP_CONFIG", "");
        let mut command = Command::new(command.get_program());
        command.args(["hub", "--ephemeral", "--listen", "127.0.0.1:0", "--config"]).arg(&config);
        command.env("XDG_RUNTIME_DIR", directory.path().join("run")).output().unwrap()
    };
    let said = |what: &str| {
        let ended = start();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{what}: {said}");
        assert!(said.contains(key.to_str().unwrap()), "{what}: {said}");
        said
    };
    let whole = std::fs::read(&key).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert!(said("others can read it").contains("chmod"), "{}", said(""));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&key, "no key").unwrap();
    said("it is none");
    std::fs::remove_file(&key).unwrap();
    said("it is missing");
    std::fs::create_dir(&key).unwrap();
    said("it is a directory");
    std::fs::remove_dir(&key).unwrap();
    std::fs::write(&key, whole).unwrap();
}

/// Runs `aaep hub init`; the directory that it made.
fn init(directory: &std::path::Path) -> std::path::PathBuf {
    let made = directory.join("made");
    let ended = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(["hub", "init", "--host", "hub.example", "--dir"])
        .arg(&made)
        .output()
        .unwrap();
    assert!(ended.status.success(), "{ended:?}");
    made
}

// covers: W5, S5
#[test]
fn what_init_makes_starts_with_tls_and_lets_in_who_shows_a_token() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let made = init(directory.path());
        let hub = Hub::start_by(directory, |command| {
            let mut own = Command::new(command.get_program());
            own.args(["hub", "--ephemeral", "--listen", "127.0.0.1:0", "--config"]);
            own.arg(made.join("aaep.toml"));
            own.env("XDG_RUNTIME_DIR", made.parent().unwrap().join("run"));
            own
        });
        let base = hub.base();
        assert!(base.starts_with("https://"), "{base}");
        let pem = std::fs::read(made.join("tls/certificate.pem")).unwrap();
        let connect = |token: Option<String>, trust: bool| {
            let token = token.map(|token| aaep_transport::client::Token::parse(&token).unwrap());
            let extra_roots_pem = trust.then(|| pem.clone());
            let options =
                aaep_transport::client::Options { token, extra_roots_pem, ..Default::default() };
            HttpClient::new(&base.replace("127.0.0.1", "localhost"), options).unwrap()
        };
        let token = |name: &str| {
            Some(std::fs::read_to_string(made.join("tokens").join(name)).unwrap().trim().to_owned())
        };
        let agent = Agent::new(connect(token("agent"), true), "agent");
        let mut ear = Ear::subscribe(connect(token("listener"), true)).await;
        let request = agent.ask(&agent.open().await).await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        // Without a token, with a wrong one, without trust, without TLS.
        let nobody = connect(None, true).get("events").await.unwrap();
        assert_eq!(nobody.status, StatusCode::UNAUTHORIZED);
        let wrong = connect(Some(format!("aaep_{}", "w".repeat(43))), true);
        assert_eq!(wrong.get("agent/inputs").await.unwrap().status, StatusCode::UNAUTHORIZED);
        assert!(connect(token("agent"), false).get("agent/inputs").await.is_err());
        let plain = client(&base.replace("https", "http"), None);
        assert!(plain.get("events").await.is_err());
        hub.signal("TERM");
        assert!(hub.ended().success());
    });
}

// covers: I23
#[test]
fn a_hub_that_is_stopped_loses_no_answer_and_begins_nothing_new() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let mut socket = Ear::web_socket(&hub, Some(&person.token("phone")), true).await;
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let question = ear.event("awaiting.confirmation").await;
        // Three requests are on their way, and not there in full.
        let cut = |message: String| {
            let mut raw = Raw::connect(&hub);
            let (head, rest) = message.split_at(message.len() - 1);
            raw.send(head);
            (raw, rest.to_owned())
        };
        let raw = Raw::connect(&hub);
        let reply = decision(text(&question, "reply_token"), &ear.subscription, "accept");
        let opening = agent.opening().to_string();
        let reply = cut(raw.post("replies", Some(&person.token("reader")), &reply));
        let begins = cut(raw.post("agent/sessions", Some(&person.token("agent")), &opening));
        let look = format!("agent/requests/{}", text(&request, "request_id"));
        let look = cut(raw.head("GET", &look, Some(&person.token("agent")), &[]) + "\r\n");
        // The hub has seen the heads when it answers on another connection.
        assert_eq!(hub.outside(None).get("readyz").await.unwrap().status, 200);
        let waiting = agent.look(&request, 60);
        let (view, ()) = tokio::join!(waiting, async {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            hub.signal("TERM");
        });
        // A call that waits ends at once; nothing is decided yet.
        assert_eq!(view["status"], "pending");
        hub.logs(&["Stopping."]);
        assert_eq!(ear.to_end().await, Vec::<Value>::new());
        socket.event("awaiting.confirmation").await;
        assert_eq!(socket.close_code().await, Some(1001));
        let finish = |(mut raw, rest): (Raw, String)| {
            raw.send(rest);
            raw.reply()
        };
        assert_eq!(finish(reply).status, 204);
        let refused = finish(begins);
        assert_eq!((refused.status, refused.text().contains("about to stop")), (503, true));
        let seen = finish(look);
        assert_eq!(
            (seen.status, seen.text().contains("\"accepted\"")),
            (200, true),
            "{}",
            seen.text()
        );
        let status = hub.ended();
        assert_eq!(status.code(), Some(0), "{status}");
        assert!(std::net::TcpStream::connect(hub.address()).is_err());
        assert!(!hub.socket().exists());
    });
}

// covers: I23
#[test]
fn an_idle_hub_stops_at_once_however_many_listen() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let mut ears = Vec::new();
        for _ in 0..5 {
            ears.push(Ear::subscribe(person.client("reader")).await);
            ears.push(Ear::listen(person.client("reader")).await);
            ears.push(Ear::web_socket(&hub, Some(&person.token("reader")), false).await);
            ears.push(Ear::unix(&hub).await);
        }
        hub.signal("INT");
        for ear in &mut ears {
            ear.to_end().await;
        }
        assert_eq!(hub.ended().code(), Some(0));
        let warned = |line: &String| line.contains("WARN") || line.contains("grace");
        assert!(!hub.log().iter().any(warned), "{:#?}", hub.log());
    });
}

/// One principal, as TOML.
fn principal(name: &str, role: &str) -> String {
    let hash = aaep_hub::access::Token::parse(&token(name)).unwrap().hash().to_hex();
    format!(
        "[[principals]]\nname = \"{name}\"\nrole = \"{role}\"\nuser = \"ann\"\ntoken_sha256 = \"{hash}\"\n"
    )
}

// covers: S4, S5
#[test]
fn a_reload_shuts_out_who_was_removed_and_a_broken_file_changes_nothing() {
    run(async {
        let (first, second, agent) = (
            principal("first", "accessibility_consumer"),
            principal("second", "accessibility_consumer"),
            principal("worker", "agent"),
        );
        let hub = Hub::start(Setup::default().principals(&format!("{first}{second}{agent}")));
        let config = hub.directory().join("aaep.toml");
        let ear = |name: &str| Ear::subscribe(client(&hub.base(), Some(&token(name))));
        let (mut gone, mut stays) = (ear("first").await, ear("second").await);
        let mut socket = Ear::web_socket(&hub, Some(&token("first")), true).await;
        let late = format!("{}/ws", hub.base().replace("http", "ws"));
        let options = aaep_transport::client::Options {
            token: Some(aaep_transport::client::Token::parse(&token("first")).unwrap()),
            ..Default::default()
        };
        // Connected, and not subscribed yet.
        let mut late =
            aaep_transport::ws::connect(&late, true, &options, &Default::default()).await.unwrap();
        let agent_client = Agent::new(client(&hub.base(), Some(&token("worker"))), "worker");

        for broken in
            ["[[principals]]\nname = 1", "listen = [", "[development]\nlocal_replie = true"]
        {
            std::fs::write(&config, broken).unwrap();
            let before = hub.log().len();
            hub.signal("HUP");
            hub.logs_after(before, &["Everything stays as it was."]);
            agent_client.complete(&agent_client.open().await).await;
            for ear in [&mut gone, &mut stays, &mut socket] {
                ear.event("session.completed").await;
            }
        }

        std::fs::write(&config, format!("{second}{agent}")).unwrap();
        let before = hub.log().len();
        hub.signal("HUP");
        hub.logs_after(before, &["were read again"]);
        assert_eq!(gone.to_end().await, Vec::<Value>::new());
        assert_eq!(socket.close_code().await, Some(4002));
        let refused = client(&hub.base(), Some(&token("first"))).get("events").await.unwrap();
        assert_eq!(refused.status, 401);
        // A connection that was let in before hears nothing either.
        late.send(request(json!({}))).await.unwrap();
        let session = agent_client.open().await;
        agent_client.complete(&session).await;
        stays.event("session.completed").await;
        let (_sender, mut late) = late.split();
        assert_eq!(soon("the end", late.receive()).await, Ok(None));
        assert_eq!(late.close_reason().map(|(code, _)| code), Some(4002));
        // And who was added comes in.
        std::fs::write(&config, format!("{first}{second}{agent}")).unwrap();
        let before = hub.log().len();
        hub.signal("HUP");
        hub.logs_after(before, &["were read again"]);
        ear("first").await;
    });
}

// covers: D4, W5
#[test]
fn a_reload_cannot_make_a_hub_unsafe() {
    run(async {
        let directory = tempfile::tempdir().unwrap();
        let made = init(directory.path());
        let config = made.join("aaep.toml");
        let hub = Hub::start_by(directory, |command| {
            let mut own = Command::new(command.get_program());
            own.args(["hub", "--ephemeral", "--listen", "0.0.0.0:0", "--config"]).arg(&config);
            own.env("XDG_RUNTIME_DIR", made.parent().unwrap().join("run"));
            own
        });
        let safe = std::fs::read_to_string(&config).unwrap();
        // On loopback it would be allowed; but this hub listens everywhere.
        let changed = format!("{safe}\n[development]\nlocal_replies = true\n");
        std::fs::write(&config, changed.replace("0.0.0.0", "127.0.0.1")).unwrap();
        let before = hub.log().len();
        hub.signal("HUP");
        hub.logs_after(before, &["Everything stays as it was.", "local_replies"]);
    });
}
