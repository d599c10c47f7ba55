//! What takes real time. All of it waits at once, from the first of these tests on.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::support::*;

type Scenario = fn() -> Pin<Box<dyn Future<Output = ()> + Send>>;

const SCENARIOS: &[(&str, Scenario)] = &[
    ("keep_alive", || Box::pin(keep_alive())),
    ("lease", || Box::pin(lease())),
    ("held", || Box::pin(held())),
    ("unattached", || Box::pin(unattached())),
    ("grace", || Box::pin(grace())),
    ("wait", || Box::pin(wait())),
    ("countdown", || Box::pin(countdown())),
];

/// Waits for all of them, so that none is left behind; if this one failed, so does the test.
fn wait_for(name: &str) {
    static FAILED: LazyLock<BTreeMap<&str, String>> = LazyLock::new(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let begun: Vec<_> =
            SCENARIOS.iter().map(|(name, scenario)| (*name, runtime.spawn(scenario()))).collect();
        let failed = begun.into_iter().filter_map(|(name, scenario)| {
            let failed = runtime.block_on(scenario).err()?.into_panic();
            let text = failed.downcast_ref::<String>().cloned();
            Some((name, text.unwrap_or_else(|| "it panicked".into())))
        });
        failed.collect()
    });
    assert!(SCENARIOS.iter().any(|(known, _)| *known == name));
    if let Some(failed) = FAILED.get(name) {
        panic!("{failed}");
    }
}

async fn pause(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

// covers: W3
#[test]
fn a_stream_with_nothing_to_say_says_so_every_fifteen_seconds() {
    wait_for("keep_alive");
}

async fn keep_alive() {
    let hub = Hub::shared();
    tokio::task::spawn_blocking(move || {
        let mut raw = Raw::connect(&hub);
        let head = raw.head("GET", "events", None, &[]);
        let begin = Instant::now();
        raw.send(head + "\r\n");
        let reply = raw.reply();
        assert_eq!(reply.status, 200);
        // Nobody speaks as `local`, so the first thing to come is a sign of life.
        let mut byte = [0];
        std::io::Read::read_exact(&mut raw.stream, &mut byte).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
        let mut rest = String::from_utf8(byte.to_vec()).unwrap();
        while !rest.contains("keep-alive") {
            let mut byte = [0];
            std::io::Read::read_exact(&mut raw.stream, &mut byte).unwrap();
            rest.push(byte[0].into());
        }
        assert!(rest.contains("\n: keep-alive"), "{rest:?}");
    })
    .await
    .unwrap();
}

// covers: T1, I5, I13
#[test]
fn a_session_whose_agent_is_gone_ends_and_one_whose_agent_waits_does_not() {
    wait_for("lease");
}

async fn lease() {
    let person = Hub::shared().person();
    let (agent, mut ear) = (person.agent(), person.reader().await);
    let mut opening = agent.opening();
    opening["lease_seconds"] = json!(15);
    let open = || async {
        text(&body(&agent.post("agent/sessions", &opening).await), "session_id").to_owned()
    };
    let (silent, waiting) = (open().await, open().await);
    let (lost, kept) = (agent.ask(&silent).await, agent.ask(&waiting).await);
    let view = agent.look(&kept, 25).await;
    assert_eq!(view["status"], "pending");
    let errored = ear.event("session.errored").await;
    assert_eq!(errored["session_id"], silent);
    assert_eq!(agent.look(&lost, 0).await["status"], "cancelled");
    let gone = agent.try_emit(&silent, "session.completed", json!({})).await;
    assert_eq!(gone.status, 404);
    agent.complete(&waiting).await;
    ear.event("session.completed").await;
    ear.is_lawful();
}

// covers: D27
#[test]
fn a_handshake_without_a_stream_waits_ten_seconds_for_one() {
    wait_for("held");
}

async fn held() {
    let person = Hub::shared().person();
    let asked = request(json!({ "event_filters": { "exclude": ["aaep:agent.progress.*"] } }));
    assert_eq!(person.client("reader").post("messages", asked).await.unwrap().status, 202);
    pause(12).await;
    // Too late: the stream begins under the default terms, and nobody answers.
    let mut ear = Ear::listen(person.client("reader")).await;
    let agent = person.agent();
    let session = agent.open().await;
    assert_eq!(ear.next().await["type"], "aaep:agent.session.started");
    agent.progress(&session, 5).await;
    assert_eq!(ear.next().await["type"], "aaep:agent.progress.updated");
}

// covers: H19, I22
#[test]
fn a_subscription_that_nobody_attaches_to_expires_after_thirty_seconds() {
    wait_for("unattached");
}

async fn unattached() {
    let person = Hub::shared().person();
    let client = person.client("reader");
    let answer = client.post("subscriptions", request(json!({}))).await.unwrap();
    let id = text(&body(&answer), "subscription_id").to_owned();
    let mut attached = Ear::subscribe(person.client("phone")).await;
    pause(32).await;
    let path = format!("events?subscription_id={id}");
    assert_eq!(client.get(&path).await.unwrap().status, 404);
    let agent = person.agent();
    agent.open().await;
    attached.event("session.started").await;
}

// covers: D2, H20, I14, W3
#[test]
fn the_last_one_who_could_answer_may_stay_away_for_thirty_seconds() {
    wait_for("grace");
}

async fn grace() {
    let person = Hub::shared().person();
    let (agent, mut ear) = (person.agent(), person.reader().await);
    let session = agent.open().await;
    let request = agent.ask(&session).await;
    ear.event("awaiting.confirmation").await;
    drop(ear);
    pause(20).await;
    assert_eq!(agent.look(&request, 0).await["status"], "pending");
    assert_eq!(agent.outcome(&request).await, "timed_out");
    assert_eq!(agent.look(&request, 0).await["decided_by"], "nobody there");
}

// covers: W8
#[test]
fn a_wait_ends_with_the_outcome_or_with_its_time() {
    wait_for("wait");
}

async fn wait() {
    let person = Hub::shared().person();
    let (agent, mut ear) = (person.agent(), person.reader().await);
    let session = agent.open().await;
    let request = agent.ask(&session).await;
    let question = ear.event("awaiting.confirmation").await;
    let begin = Instant::now();
    assert_eq!(agent.look(&request, 2).await["status"], "pending");
    assert!(begin.elapsed() >= Duration::from_secs(2));
    let (inputs, begin) = (agent.inputs(2).await, Instant::now());
    assert!(inputs.is_empty() && begin.elapsed() < Duration::from_secs(2));
    let waiting = agent.look(&request, 60);
    let (view, ()) = tokio::join!(waiting, ear.decide(&question, "reject"));
    assert_eq!(view["status"], "rejected");
    // Two programs may share a principal: neither disturbs the other's wait.
    let other = person.agent();
    let begin = Instant::now();
    let (one, two) = tokio::join!(agent.inputs(3), other.inputs(3));
    assert!(one.is_empty() && two.is_empty());
    assert!(begin.elapsed() >= Duration::from_secs(3));
}

// covers: C18, L6, E15
#[test]
fn a_long_wait_is_counted_down_whatever_its_length_and_leaves_no_hole() {
    wait_for("countdown");
}

async fn countdown() {
    let person = Hub::shared().person();
    let (agent, mut ear) = (person.agent(), person.reader().await);
    let session = agent.open().await;
    // Each of these is one character of five code points.
    let mut long = deletion("x");
    long["action"] = json!("👩‍👩‍👦".repeat(3_000));
    long["timeout_seconds"] = json!(61);
    let request = agent.ask_for(&session, &long).await;
    ear.event("awaiting.confirmation").await;
    let told = ear.event("progress.updated").await;
    let (left, action) = text(&told, "summary_normal").split_once(": ").unwrap();
    assert!(left.ends_with("seconds left to answer"), "{left}");
    assert!(action.ends_with("👩‍👩‍👦"), "cut between characters as people see them: {action}");
    assert_eq!(agent.withdraw(&request).await.status, 204);
    agent.complete(&session).await;
    ear.event("session.completed").await;
    let numbers: Vec<u64> = ear
        .heard
        .iter()
        .filter_map(|text| serde_json::from_str::<Value>(text).unwrap()["sequence_number"].as_u64())
        .collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>());
    ear.is_lawful();
}
