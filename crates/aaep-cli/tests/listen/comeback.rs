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
