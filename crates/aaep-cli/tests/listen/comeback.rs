//! A link that is cut, and what is left of what was over (I32).

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::Piped;
use crate::races::nobody_works;
use crate::stage::{Stage, event};
use crate::support::*;

/// Something to cut.
type Cut = Box<dyn FnMut() + Send>;

/// A way to a hub that can be cut.
#[derive(Clone, Default)]
struct Way {
    ways: Arc<Mutex<Vec<Cut>>>,
    is_shut: Arc<AtomicBool>,
}

impl Way {
    fn cut(&self) {
        self.is_shut.store(true, Ordering::SeqCst);
        self.ways.lock().unwrap().drain(..).for_each(|mut cut| cut());
    }

    fn open(&self) {
        self.is_shut.store(false, Ordering::SeqCst);
    }

    /// Passes on whatever comes, unless it is shut.
    fn serve<S>(&self, streams: impl Iterator<Item = S>, hub: impl Fn() -> S, clone: fn(&S) -> S)
    where
        S: Read + Write + Send + Hangs + 'static,
    {
        for inner in streams.filter(|_| !self.is_shut.load(Ordering::SeqCst)) {
            let outer = hub();
            let both = [(clone(&inner), clone(&outer)), (clone(&outer), clone(&inner))];
            for (mut from, mut to) in both {
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
            self.ways.lock().unwrap().push(Box::new(move || {
                inner.hang_up();
                outer.hang_up();
            }));
        }
    }

    fn socket(at: &Path, hub: &Path) -> Self {
        let (way, listener, hub) =
            (Self::default(), UnixListener::bind(at).unwrap(), hub.to_owned());
        let serving = way.clone();
        std::thread::spawn(move || {
            let streams = listener.incoming().map_while(Result::ok);
            serving.serve(
                streams,
                || UnixStream::connect(&hub).unwrap(),
                |s| s.try_clone().unwrap(),
            );
        });
        way
    }

    fn tcp(listener: TcpListener, hub: std::net::SocketAddr) -> Self {
        let way = Self::default();
        let serving = way.clone();
        std::thread::spawn(move || {
            let streams = listener.incoming().map_while(Result::ok);
            serving.serve(streams, || TcpStream::connect(hub).unwrap(), |s| s.try_clone().unwrap());
        });
        way
    }
}

trait Hangs {
    fn hang_up(&self);
}

impl Hangs for UnixStream {
    fn hang_up(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Hangs for TcpStream {
    fn hang_up(&self) {
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// What is said while the link is cut is heard once; what ended meanwhile is over.
fn nothing_is_lost(mut listener: Piped, way: &Way, agent: &Agent) {
    listener.sees("Connected to");
    let (mut works, mut ends) = (String::new(), String::new());
    let says = async |session: &str, what: &str| {
        let members = json!({ "progress": { "description": what }, "summary_normal": what });
        agent.emit(session, "progress.updated", members).await;
    };
    run(async {
        (works, ends) = (agent.open().await, agent.open().await);
        says(&works, "One is heard.").await;
    });
    listener.sees("One is heard.");
    way.cut();
    listener.sees("is lost");
    run(async {
        says(&works, "Two was said meanwhile.").await;
        agent.complete(&ends).await;
        says(&works, "Three was said meanwhile.").await;
    });
    way.open();
    listener.sees("again");
    listener.sees("Two was said meanwhile.");
    listener.sees("Three was said meanwhile.");
    listener.types("what");
    listener.sees("Three was said meanwhile.");
    run(agent.complete(&works));
    listener.sees("Done.");
    nobody_works(&mut listener);
    listener.types("quit");
    let (_, out, _) = listener.ended();
    assert_eq!(out.matches("One is heard.").count(), 1, "{out}");
    assert_eq!(out.matches("Two was said meanwhile.").count(), 1, "{out}");
    assert_eq!(out.matches("Tidying the desk.").count(), 2, "each start once: {out}");
    assert!(!out.contains("missed") && !out.contains("missing"), "{out}");
}

// covers: W7, I19, I32
#[test]
fn a_socket_that_was_cut_is_taken_up_where_it_left_off() {
    let hub = Hub::start(Setup::default());
    let at = hub.home().join("way.sock");
    let way = Way::socket(&at, &hub.socket());
    let home = hub.home().to_str().unwrap().to_owned();
    let place = format!("unix:{}", at.display());
    let listener = Piped::start(&[&place], &[("HOME".into(), home)]);
    nothing_is_lost(listener, &way, &hub.local_agent());
}

// covers: W7, I19, I32
#[test]
fn a_web_socket_that_was_cut_is_taken_up_where_it_left_off() {
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = door.local_addr().unwrap();
    let hub = Hub::start(Setup::durable().toml(&format!("allowed_hosts = [\"{address}\"]")));
    let person = hub.person();
    let way = Way::tcp(door, hub.address());
    let home = hub.home().to_str().unwrap().to_owned();
    let around = [("AAEP_TOKEN".into(), person.token("reader")), ("HOME".into(), home)];
    let listener = Piped::start(&[&format!("ws://{address}/aaep/v1/ws")], &around);
    nothing_is_lost(listener, &way, &person.agent());
}

// covers: I32, T15
#[test]
fn what_comes_after_the_end_of_a_session_brings_nothing_back() {
    let stage = Stage::start();
    let mut listener = Piped::start(&[&stage.base], &[("HOME".into(), "/nonexistent".into())]);
    listener.sees("Connected to");
    stage.attached(1);
    let says = |text: &str| json!({ "summary_normal": text });
    stage.send(&event("session.started", 1, "sess_a", says("Tidying.")));
    listener.sees("Tidying.");
    listener.types("what");
    listener.sees("Tidying.");
    let failed = json!({ "summary_normal": "It broke.", "error_category": "unknown", "urgency": "critical" });
    stage.send(&event("session.errored", 2, "sess_a", failed));
    let late =
        json!({ "tool": "read", "status": "timeout", "summary_normal": "Reading never ended." });
    stage.send(&event("tool.completed", 3, "sess_a", late));
    listener.sees("It broke.");
    listener.sees("Reading never ended.");
    listener.types("what");
    listener.sees("No agent is at work.");
}

/// A question is heard once over gRPC, also after its hub was killed and started again, and the answer
/// counts. `tls` is what the hub's configuration says of it, and `more` what the listener is told.
fn a_question_survives_over_grpc(tls: &str, more: &[&str], reader: impl Fn(&Person) -> HttpClient) {
    let durable = |listen: &str, grpc: &str| {
        Setup::default().arguments(&["--listen", listen, "--grpc", grpc]).toml(tls)
    };
    let hub = Hub::start(durable("127.0.0.1:0", "127.0.0.1:0"));
    let person = hub.person();
    let (url, listen) = (hub.grpc(), hub.address().to_string());
    let grpc = url.rsplit('/').next().unwrap().to_owned();
    let home = hub.home().to_str().unwrap().to_owned();
    let around = [("AAEP_TOKEN".into(), person.token("reader")), ("HOME".into(), home)];
    let arguments = [&[url.as_str(), "--json"], more].concat();
    let mut listener = Piped::start(&arguments, &around);
    listener.sees("\"happening\":\"connected\"");
    let agent = Agent::new(reader(&person), &person.name("agent"));
    let request = run_and_give(async { agent.ask(&agent.open().await).await });
    let asked = listener.sees("\"happening\":\"asked\"");
    let asked: Value = serde_json::from_str(asked.lines().last().unwrap()).unwrap();
    assert_eq!(asked["action"], "Delete old.txt", "{asked}");
    hub.kill();
    listener.sees("\"happening\":\"lost\"");
    let hub = Hub::start_in(durable(&listen, &grpc), hub.shared_directory());
    listener.sees("\"again\":true");
    let yes = json!({ "request": asked["request"], "answer": "accept", "certain": true });
    listener.types(&yes.to_string());
    listener.sees("\"outcome\":\"accepted\"");
    let person = person.at(&hub);
    let agent = Agent::new(reader(&person), &person.name("agent"));
    run(async { assert_eq!(agent.outcome(&request).await, "accepted") });
    listener.types("quit");
    let (code, out, err) = listener.ended();
    assert_eq!(code, 0, "{err}");
    assert_eq!(out.matches("\"happening\":\"asked\"").count(), 1, "{out}");
}

// covers: W7, W11, I32, C28
#[test]
fn over_grpc_an_open_question_is_heard_once_after_the_hub_came_back() {
    a_question_survives_over_grpc("", &[], |person| person.client("agent"));
}

// covers: W5, W7, W11, I32
#[test]
fn over_grpc_with_tls_and_a_token_it_is_the_same() {
    let files = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (files.path().join("hub.pem"), files.path().join("hub.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&key, private).unwrap();
    let tls = format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}\n");
    let roots = made.cert.pem().into_bytes();
    let agents = |person: &Person| {
        let token = aaep_transport::client::Token::parse(&person.token("agent")).unwrap();
        let options = aaep_transport::client::Options {
            token: Some(token),
            extra_roots_pem: Some(roots.clone()),
            ..Default::default()
        };
        HttpClient::new(&person.hub.base(), options).unwrap()
    };
    a_question_survives_over_grpc(&tls, &["--ca", certificate.to_str().unwrap()], agents);
}
