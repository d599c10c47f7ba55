//! What everybody came for: an agent asks, a person answers, the action runs once.

use crate::support::*;

/// Asks, answers, invokes, ends; whatever the transport.
async fn consent(agent: &Agent, ear: &mut Ear) {
    let session = agent.open().await;
    assert_eq!(ear.event("session.started").await["session_id"], session);
    // Odd spacing and numbers: what comes back is these bytes.
    let arguments = r#"{ "path":"old.txt", "weight": 1.50e1 ,"é":"\u00e9"}"#;
    let asked = format!(
        r#"{{"kind":"confirmation","tool":"delete_file","arguments":{arguments},"action":"Delete old.txt","consequence":"It is gone.","risk_level":"high","irreversible":true,"timeout_seconds":300,"default_decision":"reject","summary_normal":"May I?"}}"#
    );
    let path = format!("agent/sessions/{session}/requests");
    let answer = agent.client.post(&path, asked).await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
    let request = body(&answer);
    assert_eq!(request["status"], "pending");
    assert!(!answer.body.windows(4).any(|four| four == b"rpl_"), "{answer:?}");

    let question = ear.event("awaiting.confirmation").await;
    assert_eq!(question["event_id"], request["event_id"]);
    ear.decide(&question, "accept").await;
    assert_eq!(agent.outcome(&request).await, "accepted");
    let outcome = ear.event("state.changed").await;
    assert_eq!(outcome["extensions"]["outcome"]["request_event_id"], question["event_id"]);
    assert_eq!(outcome["extensions"]["outcome"]["outcome"], "accepted");

    let changed = agent.invoke(&request, r#"{"arguments":{"path":"new.txt"}}"#).await;
    assert_eq!((changed.status.as_u16(), &body(&changed)["rule"]), (409, &json!("T12")));
    // The same action, written in another way.
    let rewritten = arguments.replace(' ', "").replace("1.50e1", "15");
    let granted = agent.invoke(&request, &format!(r#"{{"arguments":{rewritten}}}"#)).await;
    assert_eq!(granted.status, 200, "{granted:?}");
    let granted_text = String::from_utf8(granted.body.to_vec()).unwrap();
    assert!(granted_text.ends_with(&format!(r#""arguments":{arguments}}}"#)), "{granted_text}");
    let again = agent.invoke(&request, "{}").await;
    assert_eq!(again.status, 409, "{again:?}");
    assert_eq!(agent.look(&request, 0).await["status"], "invoked");

    let invoked = ear.event("tool.invoked").await;
    let call = body(&granted)["tool_call_id"].clone();
    assert_eq!((&invoked["tool_call_id"], &invoked["irreversible"]), (&call, &json!(true)));
    let completed = json!({ "tool": "delete_file", "tool_call_id": call, "status": "success",
        "summary_normal": "Deleted." });
    agent.emit(&session, "tool.completed", completed).await;
    assert_eq!(agent.look(&request, 0).await["status"], "completed");
    agent.complete(&session).await;
    ear.event("session.completed").await;
    ear.is_lawful();
}

// covers: C1, C27, T12, I1, W4, W8, H13
#[test]
fn consent_over_http_with_a_handshake() {
    run(async {
        let person = Hub::shared().person();
        consent(&person.agent(), &mut person.reader().await).await;
    });
}

// covers: W9, C27
#[test]
fn consent_over_a_web_socket_with_a_handshake() {
    run(async {
        let person = Hub::shared().person();
        let token = person.token("reader");
        let mut ear = Ear::web_socket(&person.hub, Some(&token), true).await;
        consent(&person.agent(), &mut ear).await;
    });
}

// covers: D4, D27, W9
#[test]
fn consent_over_a_web_socket_that_offers_nothing() {
    run(async {
        let person = Hub::shared().person();
        let token = person.token("reader");
        let mut ear = Ear::web_socket(&person.hub, Some(&token), false).await;
        consent(&person.agent(), &mut ear).await;
    });
}

// covers: D4, D27, W4
#[test]
fn consent_over_a_stream_without_a_handshake_by_somebody_with_a_token() {
    run(async {
        let person = Hub::shared().person();
        let mut ear = Ear::listen(person.client("reader")).await;
        consent(&person.agent(), &mut ear).await;
    });
}

// covers: W10, D4
#[test]
fn consent_over_the_unix_socket() {
    run(async {
        let hub = Hub::start(Setup::default());
        consent(&hub.local_agent(), &mut Ear::unix(&hub).await).await;
    });
}

// covers: W15, C22, H21, I19
#[test]
fn all_transports_at_once_hear_the_same() {
    run(async {
        let hub = Hub::start(Setup::default().toml("[development]\nlocal_replies = true"));
        let mut ears = [
            Ear::subscribe(hub.anonymous()).await,
            Ear::listen(hub.anonymous()).await,
            Ear::web_socket(&hub, None, true).await,
            Ear::web_socket(&hub, None, false).await,
            Ear::unix(&hub).await,
        ];
        for replier in 0..ears.len() {
            let before: Vec<usize> = ears.iter().map(|ear| ear.heard.len()).collect();
            let agent = hub.local_agent();
            let session = agent.open().await;
            let request = agent.ask(&session).await;
            // Everybody reads at every step: a listener that reads nothing answers no ping, and on a
            // busy machine five rounds take longer than the hub waits for one.
            let mut questions = Vec::new();
            for ear in &mut ears {
                questions.push(ear.event("awaiting.confirmation").await);
            }
            ears[replier].decide(&questions[replier], "reject").await;
            assert_eq!(agent.outcome(&request).await, "rejected");
            agent.progress(&session, 50).await;
            for ear in &mut ears {
                ear.event("progress.updated").await;
            }
            agent.complete(&session).await;
            let mut heard = Vec::new();
            for (ear, before) in ears.iter_mut().zip(before) {
                ear.event("session.completed").await;
                ear.is_lawful();
                let events =
                    ear.heard[before..].iter().filter(|text| text.contains("event_id\":\"evt_"));
                heard.push(events.cloned().collect::<Vec<_>>());
            }
            assert_eq!(heard[0].len(), 6, "{:#?}", heard[0]);
            assert!(heard.iter().all(|events| *events == heard[0]), "{heard:#?}");
        }
    });
}

// covers: S4, S5
#[test]
fn several_agents_share_one_endpoint_and_none_can_touch_the_session_of_another() {
    run(async {
        let person = Hub::shared().person();
        let (agent, helper, mut ear) = (person.agent(), person.helper(), person.reader().await);
        let (one, two) = (agent.open().await, helper.open().await);
        for (id, session) in [(&agent.id, &one), (&helper.id, &two)] {
            let started = ear.event("session.started").await;
            assert_eq!(
                (&started["session_id"], &started["producer"]["agent_id"]),
                (&json!(session), &json!(id))
            );
        }
        let request = helper.ask(&two).await;
        let id = text(&request, "request_id");
        let nobodys = format!("sess_{}", "0".repeat(32));
        let foreign = [
            agent.try_emit(&two, "progress.updated", json!({})).await,
            agent.try_emit(&nobodys, "progress.updated", json!({})).await,
        ];
        assert_eq!(foreign[0].status, 404);
        assert_eq!(foreign[0].body, foreign[1].body);
        assert_eq!(agent.try_ask(&two, &deletion("x")).await.status, 404);
        assert_eq!(agent.client.get(&format!("agent/requests/{id}")).await.unwrap().status, 404);
        assert_eq!(agent.withdraw(&request).await.status, 404);
        assert_eq!(agent.invoke(&request, "{}").await.status, 404);
        assert_eq!(helper.look(&request, 0).await["status"], "pending");
        // Who shows a token is told of the agents of their user, and nobody else is.
        let manifest = async |token: Option<&str>| {
            let hub = person.hub.outside(token);
            let manifest = hub.get(".well-known/aaep-manifest.json").await.unwrap();
            assert_eq!(manifest.status, 200);
            body(&manifest)
        };
        let agents = manifest(Some(&person.token("reader"))).await["agents"].clone();
        let agents = agents.as_array().unwrap();
        assert!(agents.contains(&json!(agent.id)) && agents.contains(&json!(helper.id)));
        assert_eq!(manifest(None).await.get("agents"), None);
        let other = person.hub.person();
        assert_eq!(manifest(Some(&other.token("reader"))).await["agents"], json!([]));
    });
}

// covers: S4, S5
#[test]
fn nobody_speaks_in_the_name_of_a_producer_that_is_another_principals() {
    run(async {
        let person = Hub::shared().person();
        let (agent, helper) = (person.agent(), person.helper());
        agent.complete(&agent.open().await).await;
        let mut stolen = helper.opening();
        for id in [agent.id.as_str(), "aaep-hub"] {
            stolen["producer"]["agent_id"] = json!(id);
            let answer = helper.post("agent/sessions", &stolen).await;
            assert!(answer.status.is_client_error(), "{answer:?}");
            assert_eq!(body(&answer)["rule"], "S5");
        }
        agent.open().await;
    });
}
