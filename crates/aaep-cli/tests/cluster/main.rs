//! Several real hubs on one real store: killed, stopped and woken, and with the store away.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs and clocks

#[path = "../../../../testing/nats.rs"]
mod nats;
#[path = "../../../../testing/postgres.rs"]
mod postgres;
#[allow(dead_code)] // other tests cut more
#[path = "../../../aaep-store/tests/postgres/proxy.rs"]
mod proxy;
#[path = "../../../../testing/skipped.rs"]
mod skipped;
#[path = "../hub/support/mod.rs"]
mod support;

mod old_copy;
mod rounds;
mod sick;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use skipped::skipped;
use support::*;

/// What all nodes of a cluster share.
struct Shared {
    store: String,
    key: PathBuf,
    /// Where the nodes listen, one after the other.
    ports: std::sync::Mutex<Vec<u16>>,
    hosts: String,
    _place: tempfile::TempDir,
}

impl Shared {
    fn new(store: String) -> Self {
        let place = tempfile::tempdir().unwrap();
        let key = place.path().join("cluster.key");
        let bytes: Vec<u8> = (0..64).collect();
        std::fs::write(&key, bytes).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        let ports: Vec<u16> = (0..6).map(|_| postgres::free_port()).collect();
        let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let (hosts, ports) = (hosts.join(","), std::sync::Mutex::new(ports));
        Self { store, key, ports, hosts, _place: place }
    }

    fn setup(&self) -> (Setup, String) {
        let address = format!("127.0.0.1:{}", postgres::free_port());
        let own = format!("http://{address}/aaep/v1");
        (self.setup_with(&address, &self.key), own)
    }

    /// A node whose own hub listens here while it owns the log, with this key.
    fn setup_with(&self, address: &str, key: &Path) -> Setup {
        let port = self.ports.lock().unwrap().pop().unwrap_or_default();
        self.setup_at(&format!("127.0.0.1:{port}"), &self.store, address, key)
    }

    /// The same with its own door here, and this store.
    fn setup_at(&self, listen: &str, store: &str, address: &str, key: &Path) -> Setup {
        let key = key.to_str().unwrap();
        let own = ["--cluster-key", key, "--cluster-address", address];
        let arguments = [&["--listen", listen, "--cluster", store][..], &own[..]].concat();
        Setup::durable()
            .set("AAEP_DEVELOPMENT__OWN_REPLIES", "false")
            .set("AAEP_ALLOWED_HOSTS", &self.hosts)
            .arguments(&arguments)
    }

    /// A node with this address that never owned anything, in a directory of its own.
    fn named(&self, address: &str) -> Arc<Hub> {
        Hub::start(self.setup_with(address, &self.key))
    }

    /// A node, and where its own hub is while it owns the log.
    fn node(&self) -> (Arc<Hub>, String) {
        let (setup, own) = self.setup();
        (Hub::start(setup), own)
    }

    /// Two nodes, of which the first owns the log.
    fn pair(&self) -> (Arc<Hub>, Arc<Hub>, String) {
        let (a, own) = self.node();
        a.logs(&["This node owns the log"]);
        let (b, _) = self.node();
        b.logs(&["owns the log; callers are passed on"]);
        (a, b, own)
    }
}

fn server() -> Option<postgres::Server> {
    postgres::Server::start("").map_err(|why| skipped(&why)).ok()
}

/// The request as the agent sees it at this hub, as soon as anybody serves it; and how long that took.
async fn open_again(agent: &Agent, request: &Value) -> (Value, Duration) {
    let (begun, path) = (Instant::now(), format!("agent/requests/{}", text(request, "request_id")));
    loop {
        let answer = agent.client.get(&path).await;
        if let Ok(answer) = answer
            && answer.status.as_u16() == 200
        {
            return (body(&answer), begun.elapsed());
        }
        assert!(begun.elapsed() < PATIENCE, "the request is not open again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A question that waits, and those who wait for its answer.
struct Question {
    agent: Agent,
    session: String,
    ear: Ear,
    asked: Value,
    heard: Value,
}

async fn question(person: &Person) -> Question {
    let agent = person.agent();
    let session = agent.open().await;
    let mut ear = person.reader().await;
    let asked = agent.ask(&session).await;
    let heard = ear.event("awaiting.confirmation").await;
    Question { agent, session, ear, asked, heard }
}

/// The owner is killed in the middle of a question, which is open again at the other node; its answer
/// counts once, and what it allows runs once.
async fn dies_in_the_middle_of_a_question(shared: &Shared) {
    let (a, b, _) = shared.pair();
    let person = b.person();
    let Question { agent, asked, heard, ear: _ear, .. } = question(&person).await;
    a.kill();
    let (view, took) = open_again(&agent, &asked).await;
    println!("open again after {took:?}");
    assert_eq!(view["status"], "pending", "{view}");
    let mut ear = person.reader().await;
    let again = ear.event("awaiting.confirmation").await;
    assert_eq!(again["reply_token"], heard["reply_token"]);
    assert_eq!(again["event_id"], heard["event_id"]);
    ear.decide(&again, "accept").await;
    ear.decide(&again, "reject").await;
    assert_eq!(agent.outcome(&asked).await, "accepted");
    assert_eq!(agent.invoke(&asked, "{}").await.status.as_u16(), 200);
    assert_eq!(agent.look(&asked, 0).await["status"], "invoked");
    // The one that died comes back, and passes callers on.
    let (c, _) = shared.node();
    c.logs(&["owns the log; callers are passed on"]);
    assert_eq!(person.at(&c).agent().look(&asked, 0).await["status"], "invoked");
    b.has_not_panicked();
    // In good order it goes quicker: the log says who is done with it.
    b.signal("TERM");
    assert!(b.ended().success());
    let (view, _) = open_again(&person.at(&c).agent(), &asked).await;
    assert_eq!(view["status"], "invoked", "{view}");
}

// covers: I2, I3
#[test]
fn a_hub_that_dies_in_the_middle_of_a_question_is_followed_by_another_on_postgresql() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(dies_in_the_middle_of_a_question(&shared));
}

// covers: I2, I3
#[test]
fn a_hub_that_dies_in_the_middle_of_a_question_is_followed_by_another_on_jetstream() {
    let Ok(cluster) = nats::Cluster::start(3, true).map_err(|why| skipped(&why)) else { return };
    let shared = Shared::new(cluster.address());
    run(dies_in_the_middle_of_a_question(&shared));
}

// covers: I2, I24
#[test]
fn a_zombie_that_wakes_lets_nothing_through() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let (a, b, own) = shared.pair();
        let person = b.person();
        let Question { agent, asked, heard, ear: _ear, .. } = question(&person).await;
        let zombie = client(&own, Some(&person.token("phone")));
        let terms = request(everything());
        let accepted = zombie.post("subscriptions", terms).await.unwrap();
        let subscription = text(&body(&accepted), "subscription_id").to_owned();
        let _hears = zombie.events(&format!("events?subscription_id={subscription}"), None).await;
        a.signal("STOP");
        b.logs(&["This node owns the log"]);
        let mut ear = person.reader().await;
        let again = ear.event("awaiting.confirmation").await;
        assert_eq!(again["reply_token"], heard["reply_token"]);
        ear.decide(&again, "reject").await;
        assert_eq!(agent.outcome(&asked).await, "rejected");
        a.signal("CONT");
        // It still believes that the question is open.
        let late = decision(text(&heard, "reply_token"), &subscription, "accept");
        let said = zombie.post("replies", late).await.map(|answer| answer.status.as_u16());
        // A connection that breaks has acknowledged nothing either.
        assert!(!matches!(said, Ok(204)), "a zombie acknowledged an answer");
        a.logs(&["owns the log; callers are passed on"]);
        assert_eq!(person.at(&a).agent().look(&asked, 0).await["status"], "rejected");
        assert_eq!(agent.invoke(&asked, "{}").await.status.as_u16(), 409);
        a.has_not_panicked();
    });
}

// covers: I10
#[test]
fn while_the_store_is_away_nothing_is_asked_and_then_all_goes_on() {
    let Some(mut server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let (a, _) = shared.node();
        a.logs(&["This node owns the log"]);
        let person = a.person();
        let Question { agent, session, ear, asked, heard } = question(&person).await;
        server.kill();
        let reply = decision(text(&heard, "reply_token"), &ear.subscription, "accept");
        let answer = person.client("reader").post("replies", reply.clone()).await.unwrap();
        assert_eq!(answer.status.as_u16(), 503, "{answer:?}");
        let refused = agent.try_ask(&session, &deletion("more.txt")).await;
        assert_eq!(refused.status.as_u16(), 503, "{refused:?}");
        a.logs(&["The store of the cluster does not answer", "no answer counts"]);
        server.restart();
        a.logs(&["The journal takes records again."]);
        // The answer was on its way: it counts once, whether it is sent again or not.
        let answer = person.client("reader").post("replies", reply).await.unwrap();
        assert_eq!(answer.status.as_u16(), 204, "{answer:?}");
        assert_eq!(agent.outcome(&asked).await, "accepted");
        agent.ask_for(&session, &deletion("more.txt")).await;
        let told = a.log().iter().filter(|line| line.contains("no answer counts")).count();
        assert_eq!(told, 1, "it is said once");
    });
}

#[test]
fn a_node_without_what_a_cluster_needs_does_not_start_and_says_what_it_is() {
    let shared = Shared::new("postgres://aaep@127.0.0.1:1/postgres".into());
    let refused = |setup: Setup, words: &[&str]| {
        let (status, said) = setup.fails();
        assert_eq!(status, 2, "{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
    };
    let setup = || shared.setup().0;
    refused(setup(), &["The store does not answer"]);
    refused(setup().principals(""), &["nobody has any", "principals with tokens"]);
    refused(setup().set("AAEP_ALLOWED_HOSTS", ""), &["allowed_hosts"]);
    refused(setup().set("AAEP_EPHEMERAL", "true"), &["Leave --ephemeral out"]);
    refused(setup().set("AAEP_DEVELOPMENT__LOCAL_REPLIES", "true"), &["Turn development off"]);
    refused(setup().set("AAEP_BEHIND_PROXY", "127.0.0.1"), &["Leave behind_proxy out"]);
    refused(setup().set("AAEP_GRPC", "127.0.0.1:0"), &["Leave grpc out"]);
    std::fs::write(&shared.key, [7; 64]).unwrap();
    refused(setup(), &["two halves are the same"]);
    std::fs::write(&shared.key, [7; 32]).unwrap();
    refused(setup(), &["It holds 32 bytes", "/dev/urandom"]);
    std::fs::remove_file(&shared.key).unwrap();
    refused(setup(), &["cluster.key"]);
}
