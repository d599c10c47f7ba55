//! What people and their programs can say, besides yes and no.

use crate::support::*;

fn question(kinds: Value, more: Value) -> Value {
    let mut asked = json!({ "kind": "clarification", "question": "Which one?",
        "accepted_response_kinds": kinds, "timeout_seconds": 120, "summary_normal": "Which one?" });
    asked.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    asked
}

// covers: C19, C20, C5, D18, D29
#[test]
fn a_question_takes_answers_of_the_kinds_it_asked_for_and_no_others() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let choices = json!({ "choices": [{ "value": "red", "label": "Red" }, { "value": "blue", "label": "Blue" }] });
        let cases = [
            (json!(["freetext"]), json!({}), vec![json!(true), json!(7)], json!("Lagos")),
            (json!(["yes_no"]), json!({}), vec![json!("true"), json!(1)], json!(true)),
            (json!(["numeric"]), json!({}), vec![json!("7"), json!(false)], json!(7.25)),
            (json!(["multiple_choice"]), choices, vec![json!("green"), json!(1)], json!("blue")),
        ];
        for (kinds, more, wrong, right) in cases {
            let request = agent.ask_for(&session, &question(kinds, more)).await;
            let asked = ear.event("awaiting.clarification").await;
            for misfit in wrong {
                ear.answer(&asked, misfit).await;
            }
            // A decision is no answer, and an answer of another kind is none either.
            ear.decide(&asked, "accept").await;
            assert_eq!(agent.look(&request, 0).await["status"], "pending");
            ear.answer(&asked, right.clone()).await;
            assert_eq!(agent.outcome(&request).await, "accepted");
            let view = agent.look(&request, 0).await;
            assert_eq!(
                (&view["response"], text(&view, "decided_by")),
                (&right, &*person.name("reader"))
            );
            assert_eq!(agent.invoke(&request, "{}").await.status, 409);
        }
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: C14, C23, D17
#[test]
fn a_question_that_goes_on_with_its_default_is_told_as_that() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        for (more, words) in [
            (
                json!({ "default_response": "Lagos", "timeout_seconds": 1 }),
                "No answer in time; going on with “Lagos”: Which one?",
            ),
            (
                json!({ "timeout_seconds": 1 }),
                "No answer in time; the agent decides how to go on: Which one?",
            ),
        ] {
            let default = more["default_response"].clone();
            let request = agent.ask_for(&session, &question(json!(["freetext"]), more)).await;
            ear.event("awaiting.clarification").await;
            let told = loop {
                let told = ear.event("state.changed").await;
                if told["extensions"]["outcome"].is_object() {
                    break told;
                }
            };
            assert_eq!(told["summary_normal"], words);
            assert_eq!(told["extensions"]["outcome"]["outcome"], "timed_out");
            assert_eq!(agent.look(&request, 0).await["response"], default);
        }
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: D32, C17
#[test]
fn more_time_asks_again_with_another_token_and_the_old_one_is_dead() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let first = ear.event("awaiting.confirmation").await;
        let more = json!({ "type": "timing:extend", "reply_token": first["reply_token"],
            "subscription_id": ear.subscription, "timestamp": now(), "seconds": 900 });
        ear.send(&more.to_string()).await;
        let superseded = ear.event("state.changed").await;
        assert_eq!(superseded["extensions"]["outcome"]["outcome"], "superseded");
        let second = ear.event("awaiting.confirmation").await;
        assert_eq!(second["timeout_seconds"], 900);
        assert_ne!(second["reply_token"], first["reply_token"]);
        ear.decide(&first, "accept").await;
        let view = agent.look(&request, 0).await;
        assert_eq!((&view["status"], &view["event_id"]), (&json!("pending"), &second["event_id"]));
        assert!(text(&view, "deadline") > text(&request, "deadline"));
        ear.decide(&second, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: C24, I13
#[test]
fn a_person_stops_an_agent_and_the_agent_is_told() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let asked = ear.event("awaiting.confirmation").await;
        let stop = |session: &str, subscription: &str| {
            json!({ "type": "control:cancel", "session_id": session,
                "subscription_id": subscription, "timestamp": now() })
            .to_string()
        };
        let mut stranger = person.hub.person().reader().await;
        let theirs = stranger.subscription.clone();
        stranger.send(&stop(&session, &theirs)).await;
        stranger.send(&stop(&session, &ear.subscription)).await;
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        let (told, ()) = tokio::join!(agent.inputs(30), async {
            ear.send(&stop(&session, &ear.subscription.clone())).await;
        });
        assert_eq!(told, [json!({ "kind": "session_ended", "session_id": session })]);
        let ended = ear.event("session.cancelled").await;
        assert_eq!(ended["cancelled_by"], "user");
        assert_eq!(agent.look(&request, 0).await["status"], "cancelled");
        ear.decide(&asked, "accept").await;
        assert_eq!(agent.invoke(&request, "{}").await.status.as_u16() / 100, 4);
        assert_eq!(agent.try_emit(&session, "progress.updated", json!({})).await.status, 404);
        ear.is_lawful();
    });
}

// covers: H18, D26, H7
#[test]
fn a_renegotiation_is_answered_in_the_body_and_binds_what_follows() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let (client, session) = (person.client("reader"), agent.open().await);
        let renegotiate = |id: &str, capabilities: Value| {
            let message = json!({ "type": "subscription.renegotiate", "subscription_id": id,
                "capabilities": capabilities });
            client.post("replies", message.to_string())
        };
        let filter = json!({ "event_filters": { "exclude": ["aaep:agent.progress.*"] } });
        let answer = renegotiate(&ear.subscription, filter.clone()).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        let accepted = body(&answer);
        assert_eq!(accepted["type"], "subscription.accepted");
        assert_eq!(accepted["honored_capabilities"]["supports_confirmation_reply"], true);
        agent.progress(&session, 10).await;
        let unknown = renegotiate("sub_nobody", filter).await.unwrap();
        assert_eq!((unknown.status.as_u16(), &unknown.body[..]), (204, &b""[..]));
        let signed = json!({ "accept_signed_manifests_only": true });
        agent.complete(&session).await;
        ear.event("session.completed").await;
        assert!(!ear.heard.iter().any(|text| text.contains("progress.updated")));
        let rejected = renegotiate(&ear.subscription, signed).await.unwrap();
        assert_eq!(rejected.status, 200, "{rejected:?}");
        assert_eq!(body(&rejected)["reason_code"], "manifest_signature_required");
        assert_eq!(ear.until_end().await, Vec::<Value>::new());
    });
}

// covers: H19, D2, H20
#[test]
fn a_close_ends_the_stream_and_the_last_one_to_leave_leaves_a_no() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear, mut phone) =
            (person.agent(), person.reader().await, person.phone().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let close = |ear: &Ear| {
            json!({ "type": "subscription.close", "subscription_id": ear.subscription }).to_string()
        };
        phone.send(&close(&ear)).await; // somebody else's: nothing happens
        phone.send(&close(&phone)).await;
        phone.until_end().await;
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        ear.send(&close(&ear)).await;
        ear.until_end().await;
        assert_eq!(agent.outcome(&request).await, "timed_out");
        let path = format!("events?subscription_id={}", ear.subscription);
        assert_eq!(person.client("reader").get(&path).await.unwrap().status, 404);
    });
}

// covers: H11, H15, V1
#[test]
fn a_handshake_that_cannot_be_is_rejected_with_its_reason() {
    run(async {
        let person = Hub::shared().person();
        let client = person.client("reader");
        let newer = request(json!({})).replace("1.0.0", "99.99.99");
        let signed = request(json!({ "accept_signed_manifests_only": true }));
        for (asked, reason) in
            [(newer, "version_unsupported"), (signed, "manifest_signature_required")]
        {
            let answer = client.post("subscriptions", asked.clone()).await.unwrap();
            assert_eq!(answer.status, 422, "{answer:?}");
            assert_eq!(body(&answer)["type"], "subscription.rejected");
            assert_eq!(body(&answer)["reason_code"], reason);
            let mut ear = Ear::listen(person.client("phone")).await;
            ear.send(&asked).await;
            assert_eq!(ear.next().await["reason_code"], reason);
            // The stream goes on under its old terms.
            let agent = person.agent();
            agent.complete(&agent.open().await).await;
            ear.event("session.completed").await;
        }
    });
}

// covers: D4, D27
#[test]
fn a_handshake_without_one_waits_for_its_stream_and_is_answered_there() {
    run(async {
        let person = Hub::shared().person();
        let client = person.client("reader");
        let asked = request(json!({ "event_filters": { "exclude": ["aaep:agent.progress.*"] } }));
        assert_eq!(client.post("messages", asked).await.unwrap().status, 202);
        let mut ear = Ear::listen(client).await;
        assert_eq!(ear.next().await["type"], "subscription.accepted");
        let agent = person.agent();
        let session = agent.open().await;
        agent.progress(&session, 10).await;
        ear.send(&request(json!({}))).await;
        assert_eq!(ear.message("subscription.accepted").await["aaep_version"], "1.0.0");
        agent.progress(&session, 20).await;
        assert_eq!(ear.event("progress.updated").await["progress"]["percent"], 20);
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: D27
#[test]
fn what_a_person_types_reaches_their_agents_and_nobody_elses() {
    run(async {
        let person = Hub::shared().person();
        let stranger = person.hub.person();
        let said = json!({ "kind": "user_input", "text": "Hello, \"agent\"\n\u{7}." });
        let client = person.client("reader");
        let nobody = client.post("messages", said.to_string()).await.unwrap();
        assert_eq!(nobody.status, 409, "{nobody:?}");
        let (agent, helper, other) = (person.agent(), person.helper(), stranger.agent());
        for agent in [&agent, &helper, &other] {
            assert_eq!(agent.inputs(0).await, Vec::<Value>::new());
        }
        assert_eq!(client.post("messages", said.to_string()).await.unwrap().status, 202);
        assert_eq!(agent.inputs(30).await, std::slice::from_ref(&said));
        assert_eq!(helper.inputs(30).await, [said]);
        assert_eq!(other.inputs(0).await, Vec::<Value>::new());
    });
}
