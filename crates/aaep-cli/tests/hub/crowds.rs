//! What one user's programs do together, and on many connections at once, is nobody else's burden.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::*;
use crate::tenants::{is_served, refused};

// covers: I29, I22
#[test]
fn two_agents_of_one_user_have_the_share_of_that_user() {
    run(async {
        let setup = Setup::default()
            .limit("sessions_per_user", 5)
            .limit("pending_requests_per_user", 3)
            .limit("subscriptions_per_user", 4)
            .limit("known_calls_per_user", 2);
        let hub = Hub::start(setup);
        let (victim, attacker) = (hub.person(), hub.person());
        let agents = [attacker.agent(), attacker.helper()];
        let mut sessions = Vec::new();
        for number in 0..5 {
            sessions.push(agents[number % 2].open().await);
        }
        for eve in &agents {
            refused(&eve.post("agent/sessions", &eve.opening()).await, "sessions_per_user");
        }
        for number in 0..3 {
            let asks = deletion(&number.to_string());
            let answer = agents[number % 2].try_ask(&sessions[number % 2], &asks).await;
            assert_eq!(answer.status, 201, "{answer:?}");
        }
        let full = agents[1].try_ask(&sessions[1], &deletion("more")).await;
        refused(&full, "pending_requests_per_user");
        let call = json!({ "tool": "look", "summary_normal": "Looking." });
        for number in 0..3 {
            let (eve, session) = (&agents[number % 2], &sessions[number % 2]);
            let answer = eve.try_emit(session, "tool.invoked", call.clone()).await;
            match number {
                0..2 => assert_eq!(answer.status, 201, "{answer:?}"),
                _ => refused(&answer, "known_calls_per_user"),
            }
        }
        for number in 0..5 {
            let client = attacker.client(["reader", "phone"][number % 2]);
            let answer = client.post("subscriptions", request(everything())).await.unwrap();
            match number {
                0..4 => assert_eq!(answer.status, 201, "{answer:?}"),
                _ => refused(&answer, "subscriptions_per_user"),
            }
        }
        is_served(&victim).await;
    });
}

/// A megabyte that is valid JSON up to its last byte.
fn junk() -> String {
    let mut junk = String::from(r#"{"kind":"confirmation","tool":"x","arguments":["#);
    while junk.len() < 1_000_000 {
        junk.push_str(r#"{"a":[1,2,3],"b":"\u00e9"},"#);
    }
    junk
}

// covers: I29
#[test]
fn nobody_waits_behind_the_junk_of_64_connections() {
    run(async {
        let hub = Hub::start(Setup::default());
        let (victim, attacker) = (hub.person(), hub.person());
        let eve = attacker.agent();
        let session = eve.open().await;
        let path = format!("agent/sessions/{session}/requests");
        let (over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let junk = Arc::new(junk());
        let attack: Vec<_> = (0..64)
            .map(|_| {
                let (client, path) = (attacker.client("agent"), path.clone());
                let (over, answered, junk) = (over.clone(), answered.clone(), junk.clone());
                tokio::spawn(async move {
                    while !over.load(Ordering::Relaxed) {
                        let answer = client.post(&path, junk.to_string()).await.unwrap();
                        assert_eq!(answer.status, 400, "{answer:?}");
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        soon("the attack", async {
            while answered.load(Ordering::Relaxed) < 8 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        // How many of theirs were answered while one call of the victim's was.
        let agent = victim.agent();
        let session = agent.open().await;
        let mut overtook = Vec::new();
        for percent in 0..20 {
            let before = answered.load(Ordering::Relaxed);
            agent.progress(&session, percent).await;
            overtook.push(answered.load(Ordering::Relaxed) - before);
        }
        is_served(&victim).await;
        over.store(true, Ordering::Relaxed);
        for one in attack {
            one.await.unwrap();
        }
        overtook.sort_unstable();
        assert!(overtook[10] < 32, "a call waits behind those of all 64: {overtook:?}");
    });
}

// covers: I22, I29
#[test]
fn an_event_longer_than_the_bound_is_refused_and_the_bound_named() {
    run(async {
        let hub = Hub::start(Setup::default().limit("event_bytes", 20_000));
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.phone().await);
        let session = agent.open().await;
        let long = "x".repeat(20_000);
        let piece = |text: &str| json!({ "chunk": text, "position": 0, "complete": true });
        let mut question = deletion("a");
        question["context"] = json!({ "why": long });
        let opening = json!({ "producer": { "agent_id": "long" }, "summary_normal": "Hm.",
            "extra_context": { "why": long } });
        for answer in [
            agent.try_emit(&session, "output.streaming", piece(&long)).await,
            agent.try_ask(&session, &question).await,
            agent.post("agent/sessions", &opening).await,
        ] {
            assert_eq!(answer.status, 413, "{answer:?}");
            assert!(text(&body(&answer), "text").contains("(limits.event_bytes)"), "{answer:?}");
        }
        // Arguments have a bound of their own: nobody reads them inside the core.
        let mut large = deletion("a");
        large["arguments"] = json!({ "path": "a", "data": long });
        assert_eq!(agent.try_ask(&session, &large).await.status, 201);
        let short = agent.try_emit(&session, "output.streaming", piece(&long[..16_000])).await;
        assert_eq!(short.status, 201, "{short:?}");
        let heard = ear.event("output.streaming").await;
        assert_eq!(text(&heard, "chunk").len(), 16_000);
    });
}

/// Begins a call for each of these principals; none is over, since no body comes. One of them is
/// refused, and told which bound it was: the last, whichever that is.
fn fill(hub: &Hub, tokens: Vec<String>, bound: &str) -> Vec<Raw> {
    let body = [("content-type", "application/json"), ("content-length", "100")];
    let begin = |token: &String| {
        let mut raw = Raw::connect(hub);
        raw.send(raw.head("POST", "replies", Some(token), &body) + "\r\n");
        raw
    };
    let mut calls: Vec<Raw> = tokens.iter().map(begin).collect();
    let until = std::time::Instant::now() + PATIENCE;
    let refused = loop {
        if let Some(reply) = calls.iter_mut().find_map(Raw::reply_at_once) {
            break reply;
        }
        assert!(std::time::Instant::now() < until, "nobody is refused");
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.text().contains(&format!("(limits.{bound})")), "{}", refused.text());
    calls
}

// covers: I29, I22
#[test]
fn calls_under_way_are_bounded_for_one_principal_one_user_and_all() {
    run(async {
        let setup = Setup::default()
            .limit("calls_per_principal", 10)
            .limit("calls_per_user", 15)
            .limit("calls", 40);
        let hub = Hub::start(setup);
        let (victim, others) = (hub.person(), [(); 4].map(|()| hub.person()));
        let calls = |person: &Person, reader: usize, phone: usize| {
            let mut tokens = vec![person.token("reader"); reader];
            tokens.resize(reader + phone, person.token("phone"));
            tokens
        };
        let taken = fill(&hub, calls(&others[0], 11, 0), "calls_per_principal");
        is_served(&victim).await;
        drop(taken);
        let taken = fill(&hub, calls(&others[1], 8, 8), "calls_per_user");
        is_served(&victim).await;
        // Several users together can fill what is for everybody, and are told that.
        let more = [calls(&others[2], 8, 7), calls(&others[3], 6, 5)].concat();
        let all = fill(&hub, more, "calls");
        drop((taken, all));
        soon("room", async {
            while victim.client("reader").get("status").await.unwrap().status != 200 {}
        })
        .await;
        is_served(&victim).await;
    });
}
