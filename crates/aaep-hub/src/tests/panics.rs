//! What becomes of a hub in which something panics (I28). Jobs that panic are handed to a hub with real
//! sockets and a real journal, from inside the crate: there is no switch for it in what is shipped.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_types)] // tests with real sockets

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aaep_engine::{Principal, RequestId, Role, SubscriberMessage};
use aaep_types::agent_api::{ApiErrorKind, AskUser, InvokeAction, OpenSession, RequestStatus};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::access::AuthenticatedPeer;
use crate::config::{Config, Flags, Surroundings, load};
use crate::core::Core;
use crate::hub::Hub;
use crate::{Listening, Running};

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn run(directory: &Path) -> Running {
    let flags = Flags {
        data: Some(directory.join("data")),
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        ..Flags::default()
    };
    let home = directory.to_str().unwrap().to_owned();
    let variables = [("HOME".to_owned(), home)].into();
    let surroundings = Surroundings { variables, directory: directory.to_owned() };
    let mut config: Config = load(&flags, &surroundings).unwrap().config;
    config.unix_socket.enabled = false;
    Hub::builder().config(config).start().await.unwrap()
}

fn agent() -> Principal {
    Principal::new("cook", Role::Agent, "ann")
}

fn ann() -> Principal {
    Principal::new("reader", Role::AccessibilityConsumer, "ann")
}

/// A question that waits, somebody who hears it, and the yes to it.
pub(crate) struct Asked {
    request: RequestId,
    listening: Listening,
    yes: Bytes,
}

pub(crate) async fn ask(hub: &Hub) -> Asked {
    let mut listening = hub.listen_inside(&ann()).await.unwrap();
    let door = hub.agent(&agent());
    let opening = json!({"producer": {"agent_id": "cook"}, "summary_normal": "Cooking."});
    let opening = OpenSession::parse(opening.to_string().as_bytes()).unwrap();
    let session = door.open(opening, None).await.unwrap().session_id;
    let question = json!({
        "kind": "confirmation", "tool": "oven", "arguments": {"on": true},
        "action": "Turn the oven on.", "consequence": "It gets hot.", "risk_level": "high",
        "irreversible": true, "reversibility": "irreversible", "default_decision": "reject",
        "timeout_seconds": 600, "summary_normal": "May I turn the oven on?",
    });
    let question = AskUser::parse(question.to_string().as_bytes()).unwrap();
    let asked = door.ask(session, question, None).await.unwrap();
    let request = RequestId::parse(&asked.state.request_id).unwrap();
    let yes = yes(&mut listening).await;
    Asked { request, listening, yes }
}

/// Waits for the question, and makes the reply that accepts it.
async fn yes(listening: &mut Listening) -> Bytes {
    let event = loop {
        let event = timeout(PATIENCE, listening.next()).await.unwrap().unwrap();
        let event: Value = serde_json::from_slice(&event).unwrap();
        if event.get("reply_token").is_some() {
            break event;
        }
    };
    let reply = json!({
        "type": "confirmation.reply", "reply_token": event["reply_token"], "decision": "accept",
        "subscription_id": listening.subscription().as_str(), "timestamp": event["timestamp"],
    });
    Bytes::from(reply.to_string())
}

fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The yes counts, as far as this step goes, and then the step panics.
fn accept_and_panic(core: &mut Core, yes: &Bytes) {
    let yes = SubscriberMessage::parse(yes).unwrap();
    let arrival = crate::presence::Arrival::default();
    let _ = core.message(&AuthenticatedPeer::inside(ann()), yes, &arrival);
    assert!(core.stages_something(), "the accept is staged");
    panic!("injected");
}

/// Makes something panic; see that nothing counts afterwards, that everybody is told, and that the
/// next start goes on from before the step.
async fn breaks_down(inject: impl AsyncFnOnce(&Hub, Bytes)) {
    let place = tempfile::tempdir().unwrap();
    let mut running = run(place.path()).await;
    let address = running.addresses()[0];
    let hub = running.hub().clone();
    let mut asked = ask(&hub).await;
    assert!(get(address, "/healthz").contains("200 OK"));
    let (door, request) = (hub.agent(&agent()), asked.request);
    let waits = {
        let door = door.clone();
        tokio::spawn(async move { door.request(request, Duration::from_secs(60)).await })
    };
    inject(&hub, asked.yes.clone()).await;
    let fault = timeout(PATIENCE, running.failed()).await.unwrap().unwrap_err();
    assert!(fault.to_string().contains("broke down"), "{fault}");
    // Everybody who waits gets an error, and health says so, for as long as the process is there.
    let waited = timeout(PATIENCE, waits).await.unwrap().unwrap();
    assert_eq!(waited.unwrap_err().kind, ApiErrorKind::Unavailable);
    while timeout(PATIENCE, asked.listening.next()).await.unwrap().is_some() {}
    let (health, ready) = (get(address, "/healthz"), get(address, "/readyz"));
    assert!(health.contains(" 503 ") && health.ends_with("broken\n"), "{health}");
    assert!(ready.contains(" 503 "), "{ready}");
    // No answer counts, nothing is asked, nothing is invoked.
    assert!(!asked.listening.replier().send(asked.yes.clone()).await);
    let invoked = door.invoke(request, InvokeAction::default(), None).await;
    assert_eq!(invoked.unwrap_err().kind, ApiErrorKind::Unavailable);
    let looked = door.request(request, Duration::ZERO).await;
    assert_eq!(looked.unwrap_err().kind, ApiErrorKind::Unavailable);
    drop(asked);
    assert!(running.failed().await.is_err(), "asking again gives the same");
    assert!(timeout(PATIENCE, running.stop()).await.unwrap().is_err());
    goes_on(place.path(), request).await;
}

/// A new start finds the question pending; a yes to it counts.
async fn goes_on(directory: &Path, request: RequestId) {
    let running = run(directory).await;
    let hub = running.hub().clone();
    let door = hub.agent(&agent());
    let state = door.request(request, Duration::ZERO).await.unwrap();
    assert_eq!(state.status, RequestStatus::Pending);
    let early = door.invoke(request, InvokeAction::default(), None).await.unwrap_err();
    assert_eq!(early.kind, ApiErrorKind::Conflict);
    let mut listening = hub.listen_inside(&ann()).await.unwrap();
    let yes = yes(&mut listening).await;
    assert!(listening.replier().send(yes).await);
    let granted = door.invoke(request, InvokeAction::default(), None).await.unwrap();
    assert_eq!(granted.arguments.as_deref(), Some(r#"{"on":true}"#));
    drop(listening);
    running.stop().await.unwrap();
}

// covers: I28
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_the_callers_task_ends_the_hub() {
    breaks_down(async |hub, yes| {
        let called = hub.call(move |core| accept_and_panic(core, &yes)).await;
        assert!(called.is_err(), "the caller of the job is told as well");
    })
    .await;
}

// covers: I28
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_a_job_that_was_queued_ends_the_hub() {
    breaks_down(async |hub, yes| hub.tell(move |core| accept_and_panic(core, &yes))).await;
}

// covers: I28
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_when_a_timer_is_due_ends_the_hub() {
    breaks_down(async |hub, yes| {
        let armed = hub.look(move |core| {
            core.on_tick = Some(Box::new(move |core| {
                accept_and_panic(core, &yes);
                None
            }));
        });
        armed.await.unwrap();
    })
    .await;
}

// covers: I28
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_while_somebody_is_answered_ends_the_hub() {
    breaks_down(async |hub, _| {
        // Nothing was recorded, so the answer is told at once.
        hub.0.inbox.push(Box::new(|_| Some(Box::new(|| panic!("injected")))));
        hub.0.inbox.call();
    })
    .await;
}

// covers: I28
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_in_the_journals_thread_ends_the_hub() {
    breaks_down(async |hub, _| {
        hub.0.inbox.push(Box::new(|core| {
            // Something durable that changes nothing, so that the journal's thread reports.
            core.note_for_test();
            Some(Box::new(|| {
                let name = std::thread::current().name().map(str::to_owned);
                assert_eq!(name.as_deref(), Some("aaep-journal"));
                panic!("injected");
            }))
        }));
        hub.0.inbox.call();
    })
    .await;
}

/// Where the child of the next test works.
const DIRECTORY: &str = "AAEP_TEST_PANIC_DIRECTORY";

// covers: I28
#[test]
fn a_process_whose_hub_panics_ends_soon_and_says_why() {
    let place = tempfile::tempdir().unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "panics::child", "--ignored", "--nocapture"])
        .env(DIRECTORY, place.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert_eq!(child.status.code(), Some(2), "{said}");
    assert!(said.contains("injected") && said.contains("broke down"), "{said}");
}

/// Does what `aaep hub` does: waits until the hub fails, says why, and ends with 2.
#[test]
#[ignore = "a child of the test above"]
fn child() {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let fault = runtime.block_on(async {
        let mut running = run(Path::new(&directory)).await;
        let hub = running.hub().clone();
        let asked = ask(&hub).await;
        let yes = asked.yes.clone();
        hub.tell(move |core| accept_and_panic(core, &yes));
        timeout(PATIENCE, running.failed()).await.unwrap().unwrap_err()
    });
    eprintln!("{fault}");
    std::process::exit(2);
}
