//! Processor time is divided between users, whichever way they come.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::*;

/// Messages in a flood.
const FLOOD: usize = 600;

/// How often links had to wait, and how many messages of subscribers were taken.
async fn figures(hub: &Hub) -> (usize, usize) {
    let answer = hub.outside(None).get("metrics").await.unwrap();
    let figures = String::from_utf8(answer.body.to_vec()).unwrap();
    let figure = |name: &str| {
        let found = figures.lines().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_else(|| panic!("no {name} in {figures}")).trim().parse().unwrap()
    };
    (figure("aaep_waits_for_others_total{of=\"links\"}"), figure("aaep_replies_total"))
}

/// Sends a flood of junk over a link, and behind it the answer to a question.
async fn flood_and_answer(agent: &Agent, ear: &mut Ear, name: &str) {
    let session = agent.open().await;
    let request = agent.ask_for(&session, &deletion(name)).await;
    let question = ear.event("awaiting.confirmation").await;
    for number in 0..FLOOD {
        let junk = decision(&format!("rpl_{number:032x}"), &ear.subscription, "accept");
        ear.send(&junk).await;
    }
    ear.decide(&question, "reject").await;
    assert_eq!(agent.outcome(&request).await, "rejected");
    agent.complete(&session).await;
    ear.event("session.completed").await;
}

/// A hub where one user gets a hundredth of the time.
fn strict() -> Arc<Hub> {
    Hub::start(Setup::default().limit("processor_percent_per_user", 1))
}

/// Floods over a link, alone and then beside somebody else.
async fn flood(hub: &Arc<Hub>, agent: Agent, mut ear: Ear) {
    flood_and_answer(&agent, &mut ear, "alone").await;
    assert_eq!(figures(hub).await, (0, FLOOD + 1), "alone nobody waits");
    let (victim, over) = (hub.person().agent(), Arc::new(AtomicBool::new(false)));
    // From now on there is somebody else.
    assert!(victim.inputs(0).await.is_empty());
    let until = over.clone();
    let quiet = tokio::spawn(async move {
        while !until.load(Ordering::Relaxed) {
            assert!(victim.inputs(0).await.is_empty());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    flood_and_answer(&agent, &mut ear, "beside somebody").await;
    over.store(true, Ordering::Relaxed);
    quiet.await.unwrap();
    let (waited, taken) = figures(hub).await;
    assert_eq!(taken, 2 * (FLOOD + 1), "every message was taken");
    // One turn lasts for a few messages.
    assert!(waited >= FLOOD / 60, "it waited {waited} times");
}

// covers: I29, I7, D40
#[test]
fn a_web_socket_that_floods_waits_for_others_and_no_answer_on_it_is_lost() {
    run(async {
        for negotiated in [true, false] {
            let hub = strict();
            let eve = hub.person();
            let ear = Ear::web_socket(&hub, Some(&eve.token("reader")), negotiated).await;
            flood(&hub, eve.agent(), ear).await;
        }
    });
}

// covers: I29, I7, D40
#[test]
fn a_unix_connection_that_floods_waits_for_others_and_no_answer_on_it_is_lost() {
    run(async {
        let hub = strict();
        let ear = Ear::unix(&hub).await;
        flood(&hub, hub.local_agent(), ear).await;
    });
}
