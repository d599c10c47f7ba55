//! One tenant takes as much as it is given. Whatever it fills, it is told so, and another tenant is
//! served as if nobody else were there.

use std::sync::Arc;

use crate::support::*;

/// Everything that a person needs from a hub: an agent begins, asks, is answered, ends.
pub async fn is_served(person: &Person) {
    let (agent, mut ear) = (person.agent(), person.phone().await);
    let session = agent.open().await;
    let request = agent.ask(&session).await;
    let question = ear.event("awaiting.confirmation").await;
    ear.decide(&question, "accept").await;
    assert_eq!(agent.outcome(&request).await, "accepted");
    agent.complete(&session).await;
}

/// A hub where everybody together may have 30 of this, and one principal 20.
fn crowded(setup: Setup, bound: &str) -> Arc<Hub> {
    let share = format!("{bound}_per_principal");
    Hub::start(setup.limit(bound, 30).limit(&share, 20))
}

/// That somebody is refused, and told which bound it was.
pub fn refused(answer: &FullResponse, bound: &str) {
    assert_eq!(answer.status, 429, "{answer:?}");
    let value = body(answer);
    let said = value["text"].as_str().or(value["reason_message"].as_str()).unwrap();
    assert!(said.contains(&format!("(limits.{bound})")), "{said}");
}

// covers: I29, I22
#[test]
fn one_who_opens_sessions_without_end_leaves_room_for_others() {
    run(async {
        let hub = crowded(Setup::default(), "sessions");
        let (victim, attacker) = (hub.person(), hub.person());
        // With a token, and without one: those without are one user.
        for eve in [attacker.agent(), hub.local_agent()] {
            let mut open = Vec::new();
            for _ in 0..40 {
                let answer = eve.post("agent/sessions", &eve.opening()).await;
                match open.len() {
                    20 => refused(&answer, "sessions_per_principal"),
                    _ => open.push(text(&body(&answer), "session_id").to_owned()),
                }
            }
            is_served(&victim).await;
            // What is ended makes room.
            for session in &open {
                eve.complete(session).await;
            }
            assert_eq!(eve.post("agent/sessions", &eve.opening()).await.status, 201);
        }
    });
}

// covers: I29, I22, S5
#[test]
fn producer_ids_are_freed_when_they_are_no_longer_used_also_after_a_restart() {
    run(async {
        let setup = || Setup::durable().limit("producers", 60).limit("producers_per_principal", 20);
        let hub = Hub::start(setup());
        let (victim, attacker) = (hub.person(), hub.person());
        let opening = |id: usize| json!({ "producer": { "agent_id": format!("squatter {id}") }, "summary_normal": "Hm." });
        for eve in [hub.local_agent(), attacker.agent()] {
            // One after the other: more than there is room for at once.
            for id in 0..45 {
                let answer = eve.post("agent/sessions", &opening(id)).await;
                assert_eq!(answer.status, 201, "{answer:?}");
                eve.complete(text(&body(&answer), "session_id")).await;
            }
        }
        is_served(&victim).await;
        let eve = hub.local_agent();
        for id in 100..125 {
            let answer = eve.post("agent/sessions", &opening(id)).await;
            match id {
                0..120 => assert_eq!(answer.status, 201, "{answer:?}"),
                _ => refused(&answer, "producers_per_principal"),
            }
        }
        // What is used is nobody else's, and of what was used before, the newest are kept.
        assert_eq!(attacker.agent().post("agent/sessions", &opening(100)).await.status, 404);
        assert_eq!(victim.agent().post("agent/sessions", &opening(44)).await.status, 404);
        let free = victim.helper().post("agent/sessions", &opening(0)).await;
        assert_eq!(free.status, 201, "{free:?}");
        let directory = hub.shared_directory();
        hub.kill();
        let hub = Hub::start_in(setup(), directory);
        let victim = victim.at(&hub);
        is_served(&victim).await;
        let answer = hub.local_agent().post("agent/sessions", &opening(125)).await;
        refused(&answer, "producers_per_principal");
        assert_eq!(victim.agent().post("agent/sessions", &opening(100)).await.status, 404);
        assert_eq!(victim.agent().post("agent/sessions", &opening(44)).await.status, 404);
    });
}

// covers: I22, I29, E11
#[test]
fn an_agent_id_and_its_producer_are_short() {
    run(async {
        let person = Hub::shared().person();
        let agent = person.agent();
        let id = |length| json!({ "agent_id": "i".repeat(length) });
        let long = json!({ "agent_id": "i", "about": "x".repeat(5000) });
        let opening = |producer| json!({ "producer": producer, "summary_normal": "Hm." });
        assert_eq!(agent.post("agent/sessions", &opening(id(256))).await.status, 201);
        for (producer, name) in [(id(257), "agent_id"), (long, "producer")] {
            let answer = agent.post("agent/sessions", &opening(producer)).await;
            assert_eq!(answer.status, 400, "{answer:?}");
            assert!(text(&body(&answer), "text").contains(name), "{answer:?}");
        }
    });
}

// covers: I29, I11
#[test]
fn idempotency_keys_of_one_push_out_only_its_own() {
    run(async {
        let hub = crowded(Setup::default(), "idempotency_keys");
        let (victim, attacker) = (hub.person(), hub.person());
        let (agent, eve) = (victim.agent(), attacker.agent());
        let first = agent.post_once("agent/sessions", "mine", &agent.opening()).await;
        agent.complete(text(&body(&first), "session_id")).await;
        // Of sessions that ended, the oldest are forgotten.
        for number in 0..45 {
            let key = format!("key {number}");
            let answer = eve.post_once("agent/sessions", &key, &eve.opening()).await;
            assert_eq!(answer.status, 201, "{answer:?}");
            eve.complete(text(&body(&answer), "session_id")).await;
        }
        // Of sessions that are open, none is.
        for number in 100..125 {
            let key = format!("key {number}");
            let answer = eve.post_once("agent/sessions", &key, &eve.opening()).await;
            match number {
                0..120 => assert_eq!(answer.status, 201, "{answer:?}"),
                _ => refused(&answer, "idempotency_keys_per_principal"),
            }
        }
        let again = agent.post_once("agent/sessions", "mine", &agent.opening()).await;
        assert_eq!(body(&again), body(&first));
        let another = agent.post_once("agent/sessions", "another", &agent.opening()).await;
        assert_eq!(another.status, 201, "{another:?}");
        is_served(&victim).await;
    });
}

// covers: I29, I22, H21
#[test]
fn subscriptions_that_nobody_attaches_to_leave_room_for_others() {
    run(async {
        let hub = crowded(Setup::default().limit("unattached_per_principal", 10), "subscriptions");
        let (victim, attacker) = (hub.person(), hub.person());
        for client in [attacker.client("reader"), hub.anonymous()] {
            for number in 0..20 {
                let answer = client.post("subscriptions", request(json!({}))).await.unwrap();
                match number {
                    0..10 => assert_eq!(answer.status, 201, "{answer:?}"),
                    _ => refused(&answer, "unattached_per_principal"),
                }
            }
            // Streams without a handshake count as well.
            assert_eq!(client.get("events").await.unwrap().status, 429);
        }
        is_served(&victim).await;
    });
}

// covers: I22
#[test]
fn subscriptions_that_nobody_attaches_to_take_little_memory() {
    run(async {
        let hub = Hub::start(Setup::default());
        let victim = hub.person();
        is_served(&victim).await;
        let before = hub.memory().unwrap_or_default();
        let patterns: Vec<String> = (0..500).map(|n| format!("aaep:x{n}*")).collect();
        let asked = request(json!({ "event_filters": { "exclude": patterns } }));
        let client = hub.anonymous();
        let mut made = 0;
        for _ in 0..1000 {
            made += usize::from(
                client.post("subscriptions", asked.clone()).await.unwrap().status == 201,
            );
        }
        assert_eq!(made, 256);
        is_served(&victim).await;
        let after = hub.memory().unwrap_or_default();
        // The allocator keeps some for itself.
        assert!(after < before + 20_000, "{before} KB, then {after} KB");
    });
}

// covers: I29, I22
#[test]
fn requests_of_one_leave_room_for_others() {
    run(async {
        let setup = Setup::default().limit("prompts_per_window", 1000);
        let hub = crowded(setup, "pending_requests");
        let (victim, attacker) = (hub.person(), hub.person());
        let eve = attacker.agent();
        let session = eve.open().await;
        let mut asked = Vec::new();
        for number in 0..40 {
            let answer = eve.try_ask(&session, &deletion(&number.to_string())).await;
            match number {
                0..20 => asked.push(body(&answer)),
                _ => refused(&answer, "pending_requests_per_principal"),
            }
        }
        is_served(&victim).await;
        assert_eq!(eve.withdraw(&asked[0]).await.status, 204);
        assert_eq!(eve.try_ask(&session, &deletion("again")).await.status, 201);
    });
}

// covers: I22, I29
#[test]
fn arguments_of_requests_that_wait_are_bounded_in_bytes() {
    run(async {
        let hub = Hub::start(Setup::default().limit("pending_bytes_per_principal", 1_000_000));
        let (victim, attacker) = (hub.person(), hub.person());
        let eve = attacker.agent();
        let session = eve.open().await;
        let mut bytes = 0;
        for number in 0..10 {
            let mut large = deletion(&number.to_string());
            large["arguments"] = json!({ "path": number.to_string(), "data": "x".repeat(200_000) });
            let answer = eve.try_ask(&session, &large).await;
            bytes += 200_000;
            match bytes < 1_000_000 {
                true => assert_eq!(answer.status, 201, "{answer:?}"),
                false => refused(&answer, "pending_bytes_per_principal"),
            }
        }
        is_served(&victim).await;
    });
}

// covers: I29, I22
#[test]
fn calls_that_wait_are_bounded_for_one_principal() {
    run(async {
        let hub = crowded(Setup::default(), "waits");
        let (victim, attacker) = (hub.person(), hub.person());
        let token = attacker.token("agent");
        let mut waiting = Vec::new();
        let mut wait = || {
            let mut raw = Raw::connect(&hub);
            raw.send(raw.head("GET", "agent/inputs?wait=60", Some(&token), &[]) + "\r\n");
            waiting.push(raw);
        };
        (0..20).for_each(|_| wait());
        let eve = attacker.agent();
        let answer = soon("the bound", async {
            loop {
                let answer = eve.client.get("agent/inputs?wait=1").await.unwrap();
                if answer.status != 200 {
                    return answer;
                }
                // It came before one of the others, which was refused.
                wait();
            }
        });
        refused(&answer.await, "waits_per_principal");
        assert_eq!(eve.client.get("agent/inputs").await.unwrap().status, 200);
        is_served(&victim).await;
        // A client that hangs up waits no more.
        drop(waiting);
        soon("room", async {
            while eve.client.get("agent/inputs?wait=1").await.unwrap().status != 200 {}
        })
        .await;
    });
}

// covers: I22, I29
#[test]
fn what_people_say_to_an_agent_that_does_not_listen_is_bounded_in_bytes() {
    run(async {
        let hub = Hub::start(Setup::default().limit("input_bytes", 100_000));
        let (victim, attacker) = (hub.person(), hub.person());
        let eve = attacker.agent();
        assert!(eve.inputs(0).await.is_empty());
        let said = json!({ "kind": "user_input", "text": "x".repeat(30_000) }).to_string();
        let client = attacker.client("reader");
        for number in 0..6 {
            let answer = client.post("messages", said.clone()).await.unwrap();
            match number {
                0..3 => assert_eq!(answer.status, 202, "{answer:?}"),
                _ => refused(&answer, "input_bytes"),
            }
        }
        assert_eq!(eve.inputs(0).await.len(), 3);
        assert_eq!(client.post("messages", said).await.unwrap().status, 202);
        is_served(&victim).await;
    });
}

// covers: I29
#[test]
fn an_agent_that_does_not_listen_keeps_from_no_other_what_people_say() {
    run(async {
        let hub = Hub::start(Setup::default().limit("inputs", 2));
        let person = hub.person();
        let agents = [person.agent(), person.helper()];
        let look = async || {
            for agent in &agents {
                agent.inputs(0).await;
            }
        };
        let client = person.client("reader");
        // Whichever of them comes first, the other one takes nothing more.
        for listens in &agents {
            look().await;
            for number in 0..5 {
                let said = json!({ "kind": "user_input", "text": number.to_string() }).to_string();
                let answer = client.post("messages", said).await.unwrap();
                assert_eq!(answer.status, 202, "{answer:?}");
                let heard = listens.inputs(5).await;
                assert_eq!(heard.last().unwrap()["text"], number.to_string());
            }
        }
        // If nobody takes it, the sender is told.
        look().await;
        for number in 0..3 {
            let said = json!({ "kind": "user_input", "text": "Hello?" }).to_string();
            let answer = client.post("messages", said).await.unwrap();
            match number {
                0..2 => assert_eq!(answer.status, 202, "{answer:?}"),
                _ => refused(&answer, "inputs"),
            }
        }
    });
}

/// Agents under ids of this length, each in a session that stays open.
async fn open_as_many(agent: &Agent, agents: usize, id_bytes: usize) {
    for number in 0..agents {
        let id = format!("{number:x<id_bytes$}");
        let opening = json!({ "producer": { "agent_id": id }, "summary_normal": "Hm." });
        assert_eq!(agent.post("agent/sessions", &opening).await.status, 201);
    }
}

const MANIFEST: &str = ".well-known/aaep-manifest.json";

// covers: I22, I29, H22
#[test]
fn the_manifest_names_so_many_agents_and_no_more_to_whoever_is_let_in() {
    run(async {
        let hub = Hub::start(Setup::default().limit("manifest_agents", 20));
        let (person, other) = (hub.person(), hub.person());
        open_as_many(&person.agent(), 30, 40).await;
        let agents = async |token: Option<&str>| {
            let answer = hub.outside(token).get(MANIFEST).await.unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            body(&answer).get("agents").map(|agents| agents.as_array().unwrap().len())
        };
        assert_eq!(agents(None).await, None);
        assert_eq!(agents(Some(&person.token("reader"))).await, Some(20));
        assert_eq!(agents(Some(&token("auditor"))).await, Some(20));
        assert_eq!(agents(Some(&other.token("reader"))).await, Some(0), "they are others'");
    });
}
