//! Owners that are killed or stopped at random, and one that is cut off from the store: what people
//! decided and what ran is written down outside, and compared in the end.

use super::sick::sql;
use super::*;
use proxy::{PASS, Proxy, SWALLOW_ANSWERS};

/// Rounds in the tests; `AAEP_KILLS=5000` runs more by hand.
const ROUNDS: u64 = 6;

/// One of three nodes, with the place where it always starts.
struct Place {
    hub: Arc<Hub>,
    listen: String,
    address: String,
}

impl Place {
    fn new(shared: &Shared) -> Self {
        let port = shared.ports.lock().unwrap().pop().unwrap();
        let listen = format!("127.0.0.1:{port}");
        let address = format!("127.0.0.1:{}", postgres::free_port());
        let setup = shared.setup_at(&listen, &shared.store, &address, &shared.key);
        Self { hub: Hub::start(setup), listen, address }
    }

    fn start_again(&mut self, shared: &Shared) {
        let setup = shared.setup_at(&self.listen, &shared.store, &self.address, &shared.key);
        self.hub = Hub::start_in(setup, self.hub.shared_directory());
    }
}

/// Numbers that look random and follow from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Which node owns the log, as the store says.
fn owner(server: &postgres::Server, nodes: &[Place]) -> usize {
    let end = Instant::now() + PATIENCE;
    loop {
        let node = sql(server, "SELECT node FROM aaep_lease WHERE until > clock_timestamp()");
        let found = nodes.iter().position(|place| node.starts_with(&format!("{}#", place.address)));
        if let Some(found) = found {
            return found;
        }
        assert!(Instant::now() < end, "nobody owns the log");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Who hears the question again at this node, however often the connection breaks meanwhile.
async fn hears(person: &Person, request: &Value) -> (Ear, Value) {
    let end = Instant::now() + PATIENCE;
    loop {
        let attempt = async {
            let mut ear = person.reader().await;
            loop {
                let heard = ear.event("awaiting.confirmation").await;
                if heard["event_id"] == request["event_id"] {
                    return (ear, heard);
                }
            }
        };
        // A node that is about to take over lets nobody in, and its callers come again.
        let attempt = futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(attempt));
        if let Ok(Ok(heard)) = tokio::time::timeout(Duration::from_secs(10), attempt).await {
            return heard;
        }
        assert!(Instant::now() < end, "the question is not heard again");
    }
}

/// What became of a request, however often the connection breaks.
async fn status(agent: &Agent, request: &Value, wait: u64) -> String {
    let path = format!("agent/requests/{}?wait={wait}", text(request, "request_id"));
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = agent.client.get(&path).await.ok();
        if let Some(answer) = answer.filter(|answer| answer.status.as_u16() == 200) {
            return text(&body(&answer), "status").to_owned();
        }
        assert!(Instant::now() < end, "nobody says what became of the request");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Answers first this and then the other, until one counts. An answer to an owner that is taken over
/// from is lost, and so is its subscription: then the question is heard again.
async fn decides(
    person: &Person,
    agent: &Agent,
    request: &Value,
    (first, second): (&str, &str),
) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let (ear, heard) = hears(person, request).await;
        let answer = |what| decision(text(&heard, "reply_token"), &ear.subscription, what);
        let reader = person.client("reader");
        if reader.post("replies", answer(first)).await.is_ok_and(|it| it.status.as_u16() == 204) {
            let _ = reader.post("replies", answer(second)).await;
        }
        let now = status(agent, request, 3).await;
        if now != "pending" {
            return now;
        }
        assert!(Instant::now() < end, "no answer counts");
    }
}

/// Whether it runs, once.
async fn runs(agent: &Agent, request: &Value) -> bool {
    let path = format!("agent/requests/{}/invoke", text(request, "request_id"));
    let end = Instant::now() + PATIENCE;
    let mut lost = false;
    loop {
        let said = agent.client.post(&path, "{}").await.ok().map(|answer| answer.status.as_u16());
        match said {
            Some(200) => return true,
            // An answer that was lost may have been a yes; then it is on record.
            Some(409) => return lost && status(agent, request, 0).await == "invoked",
            _ => lost = true,
        }
        assert!(Instant::now() < end, "nobody says whether it runs");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

// covers: I2, I3, I11
#[test]
fn whoever_is_killed_or_stopped_in_the_middle_every_answer_counts_once_and_runs_once() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    let rounds = std::env::var("AAEP_KILLS").ok().and_then(|text| text.parse().ok());
    let rounds: u64 = rounds.unwrap_or(ROUNDS);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut dice = Dice(since.as_nanos() as u64);
    println!("seed {}", dice.0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut nodes: Vec<Place> = (0..3).map(|_| Place::new(&shared)).collect();
        let person = nodes[0].hub.person();
        let (mut witness, mut took) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let victim = owner(&server, &nodes);
            // Every node looks twice a second who the owner is.
            tokio::time::sleep(Duration::from_millis(800)).await;
            let other = (victim + 1) % nodes.len();
            let here = person.at(&nodes[other].hub);
            let agent = here.agent();
            let session = agent.open().await;
            let asked = agent.ask_for(&session, &deletion(&format!("{round}.txt"))).await;
            let (kills, accepts) = (dice.below(2) == 0, dice.below(3) > 0);
            tokio::time::sleep(Duration::from_millis(dice.below(300))).await;
            let name = if kills { "KILL" } else { "STOP" };
            nodes[victim].hub.signal(name);
            let (view, after) = open_again(&agent, &asked).await;
            assert_eq!(view["status"], "pending", "round {round}: {view}");
            took.push(after);
            let (first, second) = if accepts { ("accept", "reject") } else { ("reject", "accept") };
            let expected = if accepts { "accepted" } else { "rejected" };
            assert_eq!(
                decides(&here, &agent, &asked, (first, second)).await,
                expected,
                "round {round}, {name}"
            );
            let ran = runs(&agent, &asked).await;
            assert_eq!(ran, accepts, "round {round}, {name}");
            witness.push((asked, if accepts { "invoked" } else { "rejected" }));
            if kills {
                nodes[victim].hub.kill();
                nodes[victim].start_again(&shared);
            } else {
                nodes[victim].hub.signal("CONT");
            }
        }
        // Everything is as it was written down, at every node.
        for node in &nodes {
            let agent = person.at(&node.hub).agent();
            for (asked, expected) in &witness {
                assert_eq!(status(&agent, asked, 0).await, *expected, "{asked}");
            }
        }
        took.sort();
        println!(
            "{rounds} rounds; open again: median {:?}, longest {:?}",
            took[took.len() / 2],
            took.last()
        );
        let longest = took.last().copied().unwrap_or_default();
        assert!(longest < PATIENCE, "{longest:?}");
    });
}

/// The owner hears nothing from the store any more, while what it sends arrives: it may keep things, and
/// must not say so.
// covers: I2, I10, I24
#[test]
fn an_owner_that_hears_nothing_from_the_store_acknowledges_nothing_and_another_goes_on() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let cut = Proxy::start(server.port);
        let listen = format!("127.0.0.1:{}", shared.ports.lock().unwrap().pop().unwrap());
        let address = format!("127.0.0.1:{}", postgres::free_port());
        let through = postgres::address(cut.port);
        let a = Hub::start(shared.setup_at(&listen, &through, &address, &shared.key));
        a.logs(&["This node owns the log"]);
        let (b, _) = shared.node();
        b.logs(&["owns the log; callers are passed on"]);
        let person = b.person();
        let Question { agent, asked, heard, ear: _ear, .. } = question(&person).await;
        let minority = client(&format!("http://{address}/aaep/v1"), Some(&person.token("phone")));
        let accepted = minority.post("subscriptions", request(everything())).await.unwrap();
        let subscription = text(&body(&accepted), "subscription_id").to_owned();
        let _hears = minority.events(&format!("events?subscription_id={subscription}"), None).await;
        cut.set(SWALLOW_ANSWERS);
        let late = decision(text(&heard, "reply_token"), &subscription, "accept");
        let wait = Duration::from_secs(6);
        let said = tokio::time::timeout(wait, minority.post("replies", late)).await;
        let said = said.ok().and_then(Result::ok).map(|answer| answer.status.as_u16());
        assert_ne!(said, Some(204), "the minority acknowledged an answer");
        b.logs(&["This node owns the log"]);
        // What was sent before the cut may have arrived: then it counts, and once.
        let (view, _) = open_again(&agent, &asked).await;
        let counted = view["status"] != "pending";
        if !counted {
            let (mut ear, again) = hears(&person, &asked).await;
            ear.decide(&again, "reject").await;
        }
        let expected = if counted { "accepted" } else { "rejected" };
        assert_eq!(agent.outcome(&asked).await, expected);
        cut.set(PASS);
        a.logs(&["owns the log; callers are passed on"]);
        assert_eq!(person.at(&a).agent().look(&asked, 0).await["status"], expected);
        a.has_not_panicked();
    });
}

/// A node's copy of the log is verified with the cluster's key, and with no other.
// covers: I33
#[test]
fn a_nodes_copy_is_verified_with_the_key_of_the_cluster() {
    let Some(server) = server() else { return };
    let shared = Shared::new(server.address());
    run(async {
        let (a, _) = shared.node();
        a.logs(&["This node owns the log"]);
        let person = a.person();
        let Question { agent, asked, heard, mut ear, .. } = question(&person).await;
        ear.decide(&heard, "accept").await;
        assert_eq!(agent.outcome(&asked).await, "accepted");
        let verify = |key: &Path| {
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_aaep"));
            command.args(["audit", "verify", "--cluster-key"]).arg(key);
            command.env_clear().env("HOME", a.home()).output().unwrap()
        };
        let done = verify(&shared.key);
        assert_eq!(done.status.code(), Some(0), "{done:?}");
        let other = a.home().join("other.key");
        let bytes: Vec<u8> = (64..128).collect();
        std::fs::write(&other, bytes).unwrap();
        std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_ne!(verify(&other).status.code(), Some(0));
    });
}
