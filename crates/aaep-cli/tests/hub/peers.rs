//! What breaks the published producers, and what the published clients need. They know no handshake
//! and no tokens, so the hub runs under the development option, as `aaep demo` will.
//!
//! Two probes are elsewhere: clients that never read in `floods`, newcomers in `returning`.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method};

use crate::support::*;

fn hub() -> Arc<Hub> {
    Hub::start(Setup::default().toml("[development]\nlocal_replies = true"))
}

/// An agent that has asked, and a published client that was asked.
async fn asked(hub: &Hub) -> (Agent, Ear, Value, Value) {
    let (agent, mut ear) = (hub.local_agent(), Ear::listen(hub.anonymous()).await);
    let request = agent.ask(&agent.open().await).await;
    let question = ear.event("awaiting.confirmation").await;
    (agent, ear, request, question)
}

/// A reply as published clients send it: with a subscription of their own invention.
fn reply(question: &Value) -> Value {
    json!({ "type": "confirmation.reply", "reply_token": question["reply_token"],
        "decision": "accept", "subscription_id": "sub_5f3a", "timestamp": now() })
}

async fn post(hub: &Hub, message: impl ToString) -> u16 {
    hub.anonymous().post("messages", message.to_string()).await.unwrap().status.as_u16()
}

// covers: E1, D5
#[test]
fn malformed_json_an_array_a_string_and_null_are_refused_and_nothing_breaks() {
    run(async {
        let hub = hub();
        let (agent, mut ear, request, question) = asked(&hub).await;
        for bytes in ["", "{", "{]", "[]", "[{}]", "\"x\"", "null", "true", "1e999", "{}", "\0"] {
            for path in ["messages", "replies", "subscriptions", "agent/sessions"] {
                let answer = hub.anonymous().post(path, bytes).await.unwrap();
                assert_eq!(answer.status, 400, "{path} {bytes:?}");
                assert_eq!(body(&answer)["error"], "malformed", "{path} {bytes:?}");
            }
        }
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        ear.send(&reply(&question).to_string()).await;
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
}

// covers: C9, C11
#[test]
fn a_reply_token_that_is_a_list_is_no_reply() {
    run(async {
        let hub = hub();
        let (agent, _ear, request, question) = asked(&hub).await;
        for odd in [json!([question["reply_token"]]), json!({}), json!(1), Value::Null] {
            let mut reply = reply(&question);
            reply["reply_token"] = odd;
            assert_eq!(post(&hub, reply).await, 400);
        }
        let mut reply = reply(&question);
        reply["decision"] = json!(["accept"]);
        assert_eq!(post(&hub, reply).await, 400);
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
    });
}

// covers: E21, I22
#[test]
fn a_reply_of_fifty_megabytes_is_not_read() {
    run(async {
        let hub = hub();
        let (agent, mut ear, request, question) = asked(&hub).await;
        let before = hub.memory().unwrap_or(0);
        let mut raw = Raw::connect(&hub);
        let length = (50 << 20).to_string();
        let headers = [("content-type", "application/json"), ("content-length", &*length)];
        raw.send(raw.head("POST", "messages", None, &headers) + "\r\n");
        let beginning = reply(&question).to_string();
        let _ = raw.try_send(beginning.trim_end_matches('}'));
        assert_eq!(raw.reply().status, 413);
        assert!(hub.memory().unwrap_or(0) < before + 20_000);
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        ear.send(&reply(&question).to_string()).await;
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
}

// covers: C10, D8, D9, D4
#[test]
fn a_reply_of_1999_counts_as_none_and_one_to_something_else_as_a_no() {
    run(async {
        let hub = hub();
        let (agent, mut ear, request, question) = asked(&hub).await;
        let mut old = reply(&question);
        old["timestamp"] = json!("1999-01-01T00:00:00Z");
        assert_eq!(post(&hub, old).await, 202);
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        // A no with a wrong stamp is no reply, but the question is withdrawn.
        let mut old = reply(&question);
        old["timestamp"] = json!("1999-01-01T00:00:00Z");
        old["decision"] = json!("reject");
        assert_eq!(post(&hub, old).await, 202);
        assert_eq!(agent.outcome(&request).await, "cancelled");
        assert_eq!(agent.look(&request, 0).await["reply"]["wrong_clock"], true);
        // And people hear that somebody said no, with a clock that is wrong.
        let told = loop {
            let told = ear.event("state.changed").await;
            if told["extensions"]["outcome"].is_object() {
                break told;
            }
        };
        assert_eq!(told["extensions"]["outcome"]["reason"], "wrong_clock", "{told}");
        let words = text(&told, "summary_normal");
        assert!(words.starts_with("Rejected by a device whose clock is wrong; not done"), "{told}");
        let request = agent.ask_for(text(&request, "session_id"), &deletion("again")).await;
        let question = ear.event("awaiting.confirmation").await;
        let mut modified = reply(&question);
        modified["modified_action"] = json!({ "path": "/" });
        assert_eq!(post(&hub, modified).await, 202);
        assert_eq!(agent.outcome(&request).await, "rejected");
        assert_eq!(agent.invoke(&request, "{}").await.status, 409);
    });
}

// covers: S1, S4, D4
#[test]
fn on_a_stream_with_a_handshake_a_reply_with_a_wrong_subscription_counts_for_nothing() {
    run(async {
        let hub = hub();
        let agent = hub.local_agent();
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        let request = agent.ask(&agent.open().await).await;
        let question = ear.event("awaiting.confirmation").await;
        let wrong = reply(&question).to_string();
        assert_eq!(hub.anonymous().post("replies", wrong).await.unwrap().status, 204);
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
}

// covers: D29, C20
#[test]
fn a_clarification_reply_never_answers_a_confirmation() {
    run(async {
        let hub = hub();
        let (agent, mut ear, request, question) = asked(&hub).await;
        for response in [json!("accept"), json!(true)] {
            ear.answer(&question, response).await;
        }
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        ear.decide(&question, "reject").await;
        assert_eq!(agent.outcome(&request).await, "rejected");
    });
}

// covers: S5, S1
#[test]
fn a_plain_text_reply_from_a_foreign_page_is_not_processed() {
    run(async {
        let hub = hub();
        let (agent, _ear, request, question) = asked(&hub).await;
        for (kind, origin, status) in [
            ("text/plain", Some("https://evil.example"), 403),
            ("application/json", Some("https://evil.example"), 403),
            ("application/json", Some("null"), 403),
            ("text/plain", None, 415),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", HeaderValue::from_static(kind));
            origin.map(|origin| headers.insert("origin", HeaderValue::from_static(origin)));
            let sent = reply(&question).to_string();
            let answer = hub.anonymous().request(Method::POST, "messages", headers, sent).await;
            assert_eq!(answer.unwrap().status, status, "{kind} {origin:?}");
        }
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
    });
}

// covers: C14, C13, I7, I9
#[test]
fn without_a_reply_the_default_counts_and_a_late_yes_does_not() {
    run(async {
        let hub = hub();
        let (agent, mut ear) = (hub.local_agent(), Ear::listen(hub.anonymous()).await);
        let session = agent.open().await;
        let mut short = deletion("x");
        short["timeout_seconds"] = json!(1);
        let request = agent.ask_for(&session, &short).await;
        let question = ear.event("awaiting.confirmation").await;
        assert_eq!(agent.outcome(&request).await, "timed_out");
        let outcome = ear.event("state.changed").await;
        assert_eq!(outcome["extensions"]["outcome"]["outcome"], "timed_out");
        // With its own stamp it would have been in time.
        let mut late = reply(&question);
        late["timestamp"] = question["timestamp"].clone();
        assert_eq!(post(&hub, late).await, 202);
        assert_eq!(agent.look(&request, 0).await["status"], "timed_out");
        assert_eq!(agent.invoke(&request, "{}").await.status, 409);
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: D4, D22, C13
#[test]
fn replies_count_as_published_clients_write_them_and_once() {
    run(async {
        let hub = hub();
        let second = now().split('.').next().unwrap().to_owned();
        for (stamp, subscription) in [
            (now(), Some("sub_random")),
            (format!("{second}.123456Z"), None),
            (format!("{second}.123456+00:00"), Some("")),
            (format!("{second}Z"), None),
        ] {
            let (agent, _ear, request, question) = asked(&hub).await;
            let mut reply = reply(&question);
            reply["timestamp"] = json!(stamp);
            let reply_of = reply.as_object_mut().unwrap();
            reply_of.remove("subscription_id");
            subscription.map(|id| reply_of.insert("subscription_id".into(), json!(id)));
            // Twice, and both are taken: duplicates must not be errors.
            assert_eq!(post(&hub, &reply).await, 202, "{stamp}");
            assert_eq!(post(&hub, &reply).await, 202, "{stamp}");
            // The first one counts: what comes with the same token later changes nothing.
            reply["decision"] = json!("reject");
            assert_eq!(post(&hub, &reply).await, 202, "{stamp}");
            assert_eq!(agent.outcome(&request).await, "accepted", "{stamp}");
            agent.complete(text(&request, "session_id")).await;
        }
    });
}

// covers: D27, D4, H15, W1
#[test]
fn the_published_suite_finds_what_it_needs() {
    run(async {
        let hub = hub();
        let agent = hub.local_agent();
        agent.inputs(0).await;
        // It posts before its stream is surely open.
        assert_eq!(post(&hub, request(json!({}))).await, 202);
        let mut raw = Raw::connect(&hub);
        raw.send(raw.head("GET", "events", None, &[("accept", "text/event-stream")]) + "\r\n");
        let head = raw.reply();
        assert_eq!(head.status, 200);
        assert!(head.head.contains("content-type: text/event-stream"), "{}", head.head);
        let hello = json!({ "kind": "user_input", "text": "Hello, please respond briefly." });
        assert_eq!(post(&hub, &hello).await, 202);
        assert_eq!(agent.inputs(30).await, [hello]);
        let session = agent.open().await;
        agent.complete(&session).await;
        let lines = raw.lines_until("session.completed");
        let data: Vec<Value> = lines
            .iter()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
            .collect();
        let types: Vec<&str> = data.iter().map(|message| text(message, "type")).collect();
        assert_eq!(
            types,
            ["subscription.accepted", "aaep:agent.session.started", "aaep:agent.session.completed"]
        );
        assert!(!lines.iter().any(|line| line.starts_with("event:")), "{lines:#?}");
        // A version that nobody speaks, and a WebSocket that offers nothing.
        let newer = request(json!({})).replace("1.0.0", "99.99.99");
        assert_eq!(post(&hub, &newer).await, 202);
        assert!(raw.lines_until("reason_code")[0].contains("version_unsupported"));
        let mut socket = Ear::web_socket(&hub, None, false).await;
        socket.send(&newer).await;
        assert_eq!(socket.next().await["reason_code"], "version_unsupported");
        socket.send(&request(json!({}))).await;
        assert_eq!(socket.next().await["type"], "subscription.accepted");
    });
}
