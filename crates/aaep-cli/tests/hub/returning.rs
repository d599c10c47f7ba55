//! Coming late, coming back, and coming twice.

use crate::support::*;

async fn tool_call(agent: &Agent, session: &str) {
    let tool = json!({ "tool": "look", "summary_normal": "Looking." });
    agent.emit(session, "tool.invoked", tool).await;
    let done = json!({ "tool": "look", "status": "success", "summary_normal": "Seen." });
    agent.emit(session, "tool.completed", done).await;
}

// covers: W7, W2, I19
#[test]
fn whoever_comes_back_hears_what_they_missed_once_and_in_order() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear, mut stayed) =
            (person.agent(), person.reader().await, person.phone().await);
        let session = agent.open().await;
        agent.progress(&session, 10).await;
        ear.event("progress.updated").await;
        let (id, mut heard) = (ear.subscription.clone(), ear.heard.clone());
        let last = ear.last_event_id();
        drop(ear);
        for _ in 0..3 {
            tool_call(&agent, &session).await;
        }
        let request = agent.ask(&session).await;
        let mut ear = Ear::attach(person.client("reader"), &id, last.as_deref()).await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "reject").await;
        assert_eq!(agent.outcome(&request).await, "rejected");
        agent.complete(&session).await;
        ear.event("session.completed").await;
        stayed.event("session.completed").await;
        heard.extend(ear.heard.into_iter().filter(|text| text.contains("evt_")));
        assert_eq!(heard, stayed.heard);
    });
}

// covers: W7, H3, I19
#[test]
fn what_was_held_back_for_the_rate_is_not_said_twice_to_somebody_who_comes_back() {
    run(async {
        let person = Hub::shared().person();
        let slow = json!({ "max_events_per_second": 1 });
        let mut ear = Ear::subscribe_for(person.client("reader"), slow).await;
        let mut stayed = person.phone().await;
        let agent = person.agent();
        let session = agent.open().await;
        ear.event("session.started").await;
        for _ in 0..2 {
            let tool = json!({ "tool": "look", "summary_normal": "Looking." });
            agent.emit(&session, "tool.invoked", tool).await;
        }
        let (id, last) = (ear.subscription.clone(), ear.last_event_id());
        drop(ear);
        let mut ear = Ear::attach(person.client("reader"), &id, last.as_deref()).await;
        // What is held for a question goes out before it.
        agent.ask(&session).await;
        ear.event("awaiting.confirmation").await;
        stayed.event("awaiting.confirmation").await;
        assert_eq!(ear.heard, stayed.heard[1..]);
    });
}

// covers: W7
#[test]
fn whoever_was_away_when_a_session_ended_is_told_when_they_come_back() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        ear.event("session.started").await;
        let (id, last) = (ear.subscription.clone(), ear.last_event_id());
        drop(ear);
        agent.complete(&session).await;
        // Sessions of others come and go.
        let other = person.hub.person().agent();
        other.complete(&other.open().await).await;
        let mut ear = Ear::attach(person.client("reader"), &id, last.as_deref()).await;
        assert_eq!(ear.next().await["type"], "aaep:agent.session.completed");
    });
}

// covers: W7, D28
#[test]
fn a_newcomer_is_told_how_things_stand_and_nothing_of_what_is_over() {
    run(async {
        let person = Hub::shared().person();
        let agent = person.agent();
        let over = agent.open().await;
        agent.ask(&over).await;
        agent.complete(&over).await;
        let session = agent.open().await;
        tool_call(&agent, &session).await;
        let done = agent.ask_for(&session, &deletion("gone.txt")).await;
        assert_eq!(agent.withdraw(&done).await.status, 204);
        let open = agent.ask(&session).await;
        let mut ear = person.reader().await;
        let told = [ear.next().await, ear.next().await, ear.next().await];
        let kinds = told.each_ref().map(|event| text(event, "type").to_owned());
        let wanted = ["session.started", "state.changed", "awaiting.confirmation"];
        assert_eq!(kinds, wanted.map(|kind| format!("aaep:agent.{kind}")));
        assert!(told.iter().all(|event| event["session_id"] == session));
        assert_eq!(told[1]["to_state"], "awaiting_input");
        assert_eq!(told[2]["event_id"], open["event_id"]);
        // And its token is good.
        ear.decide(&told[2], "accept").await;
        assert_eq!(agent.outcome(&open).await, "accepted");
        // Somebody whose last event nobody remembers is a newcomer.
        let mut phone = person.phone().await;
        phone.event("session.started").await;
        let (id, unknown) = (phone.subscription.clone(), format!("evt_{}", "f".repeat(32)));
        drop(phone);
        let mut phone = Ear::attach(person.client("phone"), &id, Some(&unknown)).await;
        assert_eq!(phone.next().await["type"], "aaep:agent.session.started");
        agent.complete(&session).await;
        phone.event("session.completed").await;
        phone.is_lawful();
    });
}

// covers: W7, S4
#[test]
fn a_second_attach_takes_the_stream_over() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut first) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        first.event("session.started").await;
        let last = first.last_event_id();
        let id = first.subscription.clone();
        let mut second = Ear::attach(person.client("reader"), &id, last.as_deref()).await;
        assert_eq!(first.until_end().await, Vec::<Value>::new());
        agent.progress(&session, 10).await;
        assert_eq!(second.next().await["type"], "aaep:agent.progress.updated");
        let request = agent.ask(&session).await;
        let question = second.event("awaiting.confirmation").await;
        second.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
}

// covers: W7, D2, I14
#[test]
fn a_question_survives_a_lost_connection_and_is_asked_again_with_the_same_token() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let before = ear.event("awaiting.confirmation").await;
        let id = ear.subscription.clone();
        drop(ear);
        let mut ear = Ear::attach(person.client("reader"), &id, None).await;
        let after = ear.event("awaiting.confirmation").await;
        assert_eq!(before, after);
        ear.decide(&after, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        assert_eq!(agent.look(&request, 0).await["decided_by"], person.name("reader"));
    });
}

// covers: W7
#[test]
fn whoever_comes_back_to_a_gap_is_told_the_state_of_a_session_that_never_changed_it() {
    run(async {
        let person = Hub::shared().person();
        let agent = person.agent();
        let session = agent.open().await;
        let mut phone = person.phone().await;
        phone.event("session.started").await;
        let (id, unknown) = (phone.subscription.clone(), format!("evt_{}", "f".repeat(32)));
        drop(phone);
        let mut phone = Ear::attach(person.client("phone"), &id, Some(&unknown)).await;
        assert_eq!(phone.next().await["type"], "aaep:agent.session.started");
        let state = phone.next().await;
        assert_eq!(state["type"], "aaep:agent.state.changed");
        assert_eq!((&state["session_id"], &state["to_state"]), (&json!(session), &json!("idle")));
        assert_eq!(state["sequence_number"], 1);
        agent.complete(&session).await;
        phone.event("session.completed").await;
        phone.is_lawful();
    });
}

/// What everything asks for, and where it left off.
fn from(last: &str) -> Value {
    let mut asked = everything();
    asked["supported_extensions"].as_array_mut().unwrap().push(json!("urn:aaep-rs:resume:v1"));
    asked["resume"] = json!({ "last_event_id": last });
    asked
}

// covers: W7, W9, W10, D28
#[test]
fn links_go_on_where_they_left_off() {
    run(async {
        let hub = Hub::shared();
        let person = hub.person();
        let token = person.token("reader");
        for local in [false, true] {
            let agent = if local { hub.local_agent() } else { person.agent() };
            let open = async |asked: Value| match local {
                true => Ear::unix_for(&hub, asked).await,
                false => Ear::web_socket_for(&hub, &token, asked).await,
            };
            let mut ear = open(everything()).await;
            let session = agent.open().await;
            let start = loop {
                let start = ear.event("session.started").await;
                if start["session_id"] == session {
                    break start;
                }
            };
            let last = text(&start, "event_id").to_owned();
            drop(ear);
            for percent in [10, 20, 30] {
                agent.progress(&session, percent).await;
            }
            let mut ear = open(from(&last)).await;
            let mut heard = Vec::new();
            while heard.len() < 3 {
                let event = ear.next().await;
                if event["session_id"] == session {
                    assert_eq!(event["type"], "aaep:agent.progress.updated", "{event}");
                    heard.push(event["progress"]["percent"].clone());
                }
            }
            assert_eq!(heard, [json!(10), json!(20), json!(30)]);
            // One that nobody remembers gets how things stand.
            drop(ear);
            let mut ear = open(from("evt_ffff")).await;
            loop {
                let event = ear.next().await;
                if event["session_id"] == session {
                    assert_eq!(event["type"], "aaep:agent.session.started");
                    break;
                }
            }
            // Also of a session that never changed its state (B.1.5).
            let state = loop {
                let state = ear.event("state.changed").await;
                if state["session_id"] == session {
                    break state;
                }
            };
            assert_eq!(state["to_state"], "idle");
            agent.complete(&session).await;
        }
    });
}

// covers: H8, D31
#[test]
fn a_filter_is_honoured_at_once_on_coming_back_and_in_what_a_newcomer_is_told() {
    run(async {
        let person = Hub::shared().person();
        let agent = person.agent();
        let session = agent.open().await;
        tool_call(&agent, &session).await;
        let mut asked = everything();
        let hidden =
            ["aaep:agent.state.changed", "aaep:agent.tool.*", "aaep:agent.session.completed"];
        asked["event_filters"] = json!({ "include": ["aaep:agent.*"], "exclude": hidden });
        let mut ear = Ear::subscribe_for(person.client("reader"), asked).await;
        let start = ear.next().await;
        assert_eq!(start["type"], "aaep:agent.session.started");
        tool_call(&agent, &session).await;
        agent.progress(&session, 10).await;
        let last = ear.next().await;
        assert_eq!(last["type"], "aaep:agent.progress.updated");
        let id = ear.subscription.clone();
        drop(ear);
        tool_call(&agent, &session).await;
        agent.progress(&session, 20).await;
        let mut ear = Ear::attach(person.client("reader"), &id, last["event_id"].as_str()).await;
        assert_eq!(ear.next().await["progress"]["percent"], 20);
        // What is critical comes past every filter.
        agent.ask(&session).await;
        assert_eq!(ear.next().await["type"], "aaep:agent.awaiting.confirmation");
        agent.complete(&session).await;
    });
}

// covers: H22, H27, W15
#[cfg(unix)]
#[test]
fn programs_on_this_machine_find_the_manifest_beside_the_socket() {
    use std::os::unix::fs::PermissionsExt;
    let hub = Hub::start(Setup::default());
    let path = hub.socket().with_extension("manifest.json");
    let text = std::fs::read(&path).unwrap();
    let parsed = aaep_types::Message::parse(&text);
    assert!(matches!(parsed, Ok(aaep_types::Message::Manifest(_))), "{parsed:?}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let told: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(told["transports_supported"], json!(["sse", "websocket", "unix"]));
    assert_eq!(told["languages_supported"], json!(["en"]));
}
