//! Ways to a hub: one that breaks, one with TLS and a token, and a producer that knows no handshake.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)]

#[path = "support/hub.rs"]
mod hub;
#[path = "support/proxy.rs"]
mod proxy;

use std::sync::{Arc, Mutex};

use aaep_agent::{Agent, Producer, Progress, Remote};
use aaep_hub::config::{Flags, HostName, Surroundings, load};
use aaep_hub::init;
use aaep_subscriber::client::Hub;
use aaep_subscriber::inbox::Answer;
use aaep_subscriber::{Notification, RequestOutcome};
use aaep_transport::server::Server;
use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use hub::{House, Listener, transfer};
use proxy::Proxy;

/// The ids of the events that were told.
fn numbers(told: &[Notification]) -> Vec<u64> {
    let number = |told: &Notification| match told {
        Notification::Event { json, .. } => {
            let event: serde_json::Value = serde_json::from_str(json).unwrap();
            event["sequence_number"].as_u64()
        }
        _ => None,
    };
    told.iter().filter_map(number).collect()
}

// covers: H24, C25, I19
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks_is_taken_up_where_it_left_off() {
    let proxy = Proxy::bind().await;
    let host = HostName::parse(&proxy.address.to_string()).unwrap();
    let house = House::start_known_as(host).await;
    proxy.open(house.address());
    let mut listener =
        Listener::at(Hub::parse(&format!("http://{}", proxy.address)).unwrap()).await;
    let mut other = Listener::at(house.ways().remove(0)).await;
    let agent = house.agent();
    let session = agent.session("Moving money.").open().await.unwrap();
    let parked = session.park((), transfer()).await.unwrap();
    listener.asked().await;
    proxy.cut();
    listener.until(|told| matches!(told, Notification::Lost { .. })).await;
    // What happens meanwhile: somebody else answers, and the agent goes on.
    let request = other.asked().await;
    other.client.answer(request.id, Answer::Accept).unwrap();
    let approval = parked.decision().await.unwrap();
    let ((), call) = session.invoke(parked, approval).await.unwrap();
    call.succeed("Moved.").await.unwrap();
    other.until_event("tool.completed").await;
    proxy.open(house.address());
    assert_eq!(listener.settled().await, RequestOutcome::AcceptedElsewhere);
    session.complete("Done.").await.unwrap();
    listener.until_event("session.completed").await;
    assert_eq!(listener.times_asked(), 1);
    let told = listener.close().await;
    let numbers = numbers(&told);
    assert!(numbers.is_sorted(), "{numbers:?}");
    let silent = told.iter().any(|told| matches!(told, Notification::Silence { .. }));
    assert!(!silent, "nothing was missed: {told:#?}");
}

/// How much of a session was done, as it was told.
fn percents(told: &[Notification]) -> Vec<u64> {
    let percent = |told: &Notification| match told {
        Notification::Event { json, .. } => {
            let event: serde_json::Value = serde_json::from_str(json).unwrap();
            event["progress"]["percent"].as_u64()
        }
        _ => None,
    };
    told.iter().filter_map(percent).collect()
}

/// A link is cut in the middle of a session, and taken up again: what was said meanwhile is heard
/// once, in order, and the picture is the hub's.
async fn a_cut_link_loses_nothing(house: &House, way: Hub, cut: impl Fn(), open: impl Fn()) {
    let mut listener = Listener::at(way).await;
    let agent = house.agent();
    let session = agent.session("Moving money.").open().await.unwrap();
    let over = agent.session("Counting.").open().await.unwrap();
    session.progress(Progress::percent(10)).await.unwrap();
    let ten = |told: &Notification| percents(std::slice::from_ref(told)) == [10];
    listener.until(ten).await;
    for percents_away in [[20, 30], [40, 50]] {
        cut();
        listener.until(|told| matches!(told, Notification::Lost { .. })).await;
        for percent in percents_away {
            session.progress(Progress::percent(percent)).await.unwrap();
        }
        open();
        listener.until(|told| matches!(told, Notification::Connected { again: true, .. })).await;
        let last = percents_away[1];
        listener.until(|told| percents(std::slice::from_ref(told)) == [u64::from(last)]).await;
    }
    cut();
    listener.until(|told| matches!(told, Notification::Lost { .. })).await;
    over.complete("Counted.").await.unwrap();
    let _parked = session.park((), transfer()).await.unwrap();
    open();
    listener.asked().await;
    let doing = listener.client.doing();
    assert_eq!(doing.len(), 1, "{doing:?}");
    assert_eq!((&*doing[0].session_id, doing[0].waiting), (session.id().as_str(), 1));
    session.complete("Done.").await.unwrap();
    listener.until_event("session.completed").await;
    assert_eq!(listener.times_asked(), 1);
    let told = listener.close().await;
    assert_eq!(percents(&told), [10, 20, 30, 40, 50]);
    let starts = |told: &&Notification| matches!(told, Notification::Event { json, .. } if json.contains("session.started"));
    assert_eq!(told.iter().filter(starts).count(), 2, "{told:#?}");
    let silent = told.iter().any(|told| matches!(told, Notification::Silence { .. }));
    assert!(!silent, "nothing was missed: {told:#?}");
}

// covers: W7, I19, I32
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_web_socket_that_breaks_is_taken_up_where_it_left_off() {
    let proxy = Proxy::bind().await;
    let host = HostName::parse(&proxy.address.to_string()).unwrap();
    let house = House::start_known_as(host).await;
    proxy.open(house.address());
    let way = Hub::parse(&format!("ws://{}", proxy.address)).unwrap();
    a_cut_link_loses_nothing(&house, way, || proxy.cut(), || proxy.open(house.address())).await;
}

// covers: W7, I19, I32
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_breaks_is_taken_up_where_it_left_off() {
    let house = House::start().await;
    let proxy = proxy::SocketProxy::bind(house.socket());
    let way = Hub::parse(&format!("unix:{}", proxy.path.display())).unwrap();
    a_cut_link_loses_nothing(&house, way, || proxy.cut(), || proxy.open()).await;
}

// covers: H24, C28
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_init_made_is_enough_to_listen_over_tls() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("aaep");
    init(&directory, &[]).unwrap();
    let flags = Flags {
        config: Some(directory.join("aaep.toml")),
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        ephemeral: true,
        ..Flags::default()
    };
    let mut config = load(&flags, &Surroundings::default()).unwrap().config;
    config.unix_socket.enabled = false;
    let running = aaep_hub::Hub::builder().config(config).start().await.unwrap();
    let token = |name: &str| std::fs::read_to_string(directory.join("tokens").join(name)).unwrap();
    let certificate = std::fs::read(directory.join("tls").join("certificate.pem")).unwrap();
    let port = running.addresses()[0].port();
    let remote = Remote::at(format!("https://localhost:{port}/aaep/v1"))
        .token(token("agent").trim())
        .trust_pem(certificate.clone());
    let agent = Agent::connect(remote, Producer::new("test-agent")).unwrap();
    for scheme in ["https", "wss"] {
        let hub = Hub::parse(&format!("{scheme}://localhost:{port}")).unwrap();
        let hub = hub.token(&token("listener")).unwrap().trust_pem(certificate.clone());
        let mut listener = Listener::at(hub).await;
        let session = agent.session("Moving money.").open().await.unwrap();
        let parked = session.park((), transfer()).await.unwrap();
        let request = listener.asked().await;
        listener.client.answer(request.id, Answer::Accept).unwrap();
        assert_eq!(parked.decision().await.unwrap().by(), "listener");
        assert_eq!(listener.settled().await, RequestOutcome::Accepted);
        session.complete("Done.").await.unwrap();
        listener.close().await;
    }
}

const ASKS: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:agent.awaiting.confirmation","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"minimal"},"urgency":"critical","action":"Delete the build","consequence":"It is gone","reply_token":"rpl_1","timeout_seconds":60,"default_decision":"reject","irreversible":true,"risk_level":"high"}"#;

// covers: D4, C28, C7
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producer_that_knows_no_handshake_is_heard_and_answered() {
    let server = Server::bind("127.0.0.1:0").await.unwrap();
    let address = server.local_addr().unwrap();
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let hears = said.clone();
    let stream = || async {
        // The body ends at once; the listener comes back, and hears the same again.
        ([("content-type", "text/event-stream")], format!("id: evt_1\ndata: {ASKS}\n\n"))
    };
    let take = move |body: String| async move {
        hears.lock().unwrap().push(body);
        StatusCode::ACCEPTED
    };
    let app =
        Router::new().route("/aaep/v1/events", get(stream)).route("/aaep/v1/messages", post(take));
    let serving = tokio::spawn(server.serve(app, std::future::pending()));
    let mut listener = Listener::at(Hub::parse(&format!("http://{address}")).unwrap()).await;
    let request = listener.asked().await;
    listener.client.answer(request.id, Answer::Reject).unwrap();
    let waiting = async {
        while said.lock().unwrap().is_empty() {
            listener.until(|_| true).await;
        }
    };
    tokio::time::timeout(hub::LONG, waiting).await.unwrap();
    let reply = said.lock().unwrap()[0].clone();
    assert!(reply.contains("rpl_1") && reply.contains("reject"), "{reply}");
    assert_eq!(listener.times_asked(), 1);
    listener.close().await;
    serving.abort();
}
