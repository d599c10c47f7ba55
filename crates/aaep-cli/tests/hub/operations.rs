//! Starting, reloading, stopping: what an operator sees of a hub.

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
    Hub::start_in(Setup::default().arguments(&words), hub.shared_directory());
}

// covers: W5
#[test]
fn a_key_that_cannot_be_used_is_named_with_a_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let made = init(directory.path());
    let key = made.join("tls/key.pem");
    let config = made.join("aaep.toml");
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
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
            // A test is agent and listener at once.
            own.env("AAEP_DEVELOPMENT__OWN_REPLIES", "true");
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

/// A request of which the last byte is missing, and the hub waits for it.
struct Unfinished(Raw, String);

impl Unfinished {
    fn post(hub: &Hub, path: &str, token: &str, body: &str) -> Self {
        let mut raw = Raw::connect(hub);
        let length = body.len().to_string();
        let headers = [
            ("content-type", "application/json"),
            ("content-length", &*length),
            ("expect", "100-continue"),
        ];
        let (most, last) = body.split_at(body.len() - 1);
        raw.send(raw.head("POST", path, Some(token), &headers) + "\r\n");
        assert_eq!(raw.reply().status, 100);
        raw.send(most);
        Self(raw, last.to_owned())
    }

    fn finish(mut self) -> Reply {
        self.0.send(self.1);
        self.0.reply()
    }
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
        // Requests on their way: the hub waits for the last byte of each.
        let reply = decision(text(&question, "reply_token"), &ear.subscription, "accept");
        let invoke = format!("agent/requests/{}/invoke", text(&request, "request_id"));
        let replies = Unfinished::post(&hub, "replies", &person.token("reader"), &reply);
        let opening = agent.opening().to_string();
        let begins = Unfinished::post(&hub, "agent/sessions", &person.token("agent"), &opening);
        let invokes = Unfinished::post(&hub, &invoke, &person.token("agent"), "{}");
        let mut waits = Raw::connect(&hub);
        let path = format!("agent/requests/{}?wait=60", text(&request, "request_id"));
        waits.send(waits.head("GET", &path, Some(&person.token("agent")), &[]) + "\r\n");
        // Connections are taken in their order: when this is answered, the others are in.
        assert_eq!(hub.outside(None).get("readyz").await.unwrap().status, 200);
        hub.signal("TERM");
        hub.logs(&["Stopping."]);
        // Who waits is told how things stand, and who hears that it is over.
        let waited = waits.reply();
        assert_eq!((waited.status, waited.text().contains("\"pending\"")), (200, true));
        assert_eq!(ear.until_end().await, Vec::<Value>::new());
        socket.event("awaiting.confirmation").await;
        assert_eq!(socket.close_code().await, Some(1001));
        // What was on its way counts, but for what would begin something new.
        let refused = begins.finish();
        assert_eq!((refused.status, refused.text().contains("about to stop")), (503, true));
        assert_eq!(replies.finish().status, 204);
        let granted = invokes.finish();
        assert_eq!(granted.status, 200, "{}", granted.text());
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
            ear.until_end().await;
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
            aaep_transport::ws::connect(&late, true, &options, Default::default()).await.unwrap();
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
        assert_eq!(gone.until_end().await, Vec::<Value>::new());
        assert_eq!(socket.close_code().await, Some(4002));
        let refused = client(&hub.base(), Some(&token("first"))).get("events").await.unwrap();
        assert_eq!(refused.status, 401);
        // A connection that was let in before hears why not, and nothing else.
        late.send(request(json!({}))).await.unwrap();
        let session = agent_client.open().await;
        agent_client.complete(&session).await;
        stays.event("session.completed").await;
        let (_sender, mut late) = late.split();
        let why = soon("an answer", late.receive()).await.unwrap().unwrap();
        assert!(why.contains("authentication_required"), "{why}");
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

#[test]
fn a_reload_says_what_needs_a_restart() {
    let people = principal("first", "accessibility_consumer");
    // Where it listens stands in the file: what a flag says, a reload does not change.
    let there = "listen = [\"127.0.0.1:0\"]";
    let start = Setup::default().arguments(&["--ephemeral"]).toml(there).principals(&people);
    let hub = Hub::start(start);
    let config = hub.directory().join("aaep.toml");
    let before = hub.log().len();
    let changed = "listen = [\"127.0.0.1:1\"]\nallowed_origins = [\"https://a.example\"]\n[limits]\nbody_bytes = 100000\n";
    std::fs::write(&config, format!("{changed}{people}")).unwrap();
    hub.signal("HUP");
    let said = hub.logs_after(before, &["only after a restart"]);
    assert!(said.ends_with("restart: allowed_origins, limits.body_bytes, listen."), "{said}");
    hub.logs_after(before, &["were read again"]);
    // What is taken over is not among it.
    let before = hub.log().len();
    let second = principal("second", "accessibility_consumer");
    std::fs::write(&config, format!("{there}\n{second}")).unwrap();
    hub.signal("HUP");
    hub.logs_after(before, &["were read again"]);
    let log = hub.log();
    assert!(!log[before..].iter().any(|line| line.contains("restart")), "{log:#?}");
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
