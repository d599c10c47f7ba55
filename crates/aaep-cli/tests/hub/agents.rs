//! The agent API, as its contract has it.

use http::{HeaderMap, HeaderValue, Method};

use crate::support::*;

/// A refusal is an object of four or five texts; gives its rule.
fn refusal(answer: &FullResponse, status: u16, error: &str) -> String {
    assert_eq!(answer.status.as_u16(), status, "{answer:?}");
    assert_eq!(answer.headers["content-type"], "application/json");
    let told = body(answer);
    let names: Vec<&str> = told.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names[..4], ["error", "rule", "section", "text"], "{told}");
    assert!(names[4..].iter().all(|name| *name == "request_id"), "{told}");
    assert_eq!(told["error"], error, "{told}");
    assert!(text(&told, "text").contains('.'), "{told}");
    text(&told, "rule").to_owned()
}

// covers: E1, E21, W8, S5, S6, T1, T12
#[test]
fn every_refusal_names_its_rule_and_says_what_to_do() {
    run(async {
        let person = Hub::shared().person();
        let (agent, client) = (person.agent(), person.client("agent"));
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let request = text(&request, "request_id");
        let (events, requests) = (
            format!("agent/sessions/{session}/events"),
            format!("agent/sessions/{session}/requests"),
        );
        let ask = |name: &str, value: Value| {
            let mut asked = deletion("another");
            asked[name] = value;
            asked.to_string()
        };
        let open = |name: &str, value: Value| {
            let mut opening = agent.opening();
            opening[name] = value;
            opening.to_string()
        };
        let huge = format!("\"{}\"", "x".repeat(300_000));
        let posts: Vec<(&str, String, u16, &str, &str)> = vec![
            ("agent/sessions", "{".into(), 400, "malformed", "E1"),
            ("agent/sessions", "".into(), 400, "malformed", "E1"),
            ("agent/sessions", "[]".into(), 400, "malformed", "E1"),
            ("agent/sessions", "null".into(), 400, "malformed", "E1"),
            ("agent/sessions", "{}".into(), 400, "malformed", "E1"),
            ("agent/sessions", open("colour", json!("red")), 400, "malformed", "E19"),
            ("agent/sessions", open("producer", json!("me")), 400, "malformed", "E1"),
            ("agent/sessions", open("producer", json!({})), 400, "malformed", "E11"),
            ("agent/sessions", open("producer", json!({ "agent_id": "" })), 400, "malformed", "E11"),
            ("agent/sessions", open("language", json!("no such")), 400, "malformed", "E1"),
            ("agent/sessions", open("lease_seconds", json!(0)), 400, "malformed", "E1"),
            ("agent/sessions", open("lease_seconds", json!("60")), 400, "malformed", "E1"),
            ("agent/sessions", open("lease_seconds", json!(1e9)), 400, "malformed", "E1"),
            ("agent/sessions/sess_0/events", r#"{"type":"x:y"}"#.into(), 404, "not_found", "E8"),
            ("agent/sessions/x/events", "{}".into(), 404, "not_found", "W8"),
            ("agent/requests/req_1/invoke", "{}".into(), 404, "not_found", "W8"),
            (&events, r#"{"summary_normal":"x"}"#.into(), 400, "malformed", "E1"),
            (&events, r#"{"type":"aaep:agent.session.started"}"#.into(), 409, "conflict", "T1"),
            (&events, r#"{"type":"aaep:agent.awaiting.confirmation"}"#.into(), 409, "conflict", "C1"),
            (&events, r#"{"type":"aaep:agent.tool.invoked","tool":"rm","irreversible":true,"summary_normal":"x"}"#.into(), 409, "conflict", "T12"),
            (&events, r#"{"type":"aaep:agent.tool.completed","tool":"rm","status":"success","summary_normal":"x"}"#.into(), 409, "conflict", "T15"),
            (&requests, ask("kind", json!("permission")), 400, "malformed", "E1"),
            (&requests, ask("tool", json!("")), 400, "malformed", "T11"),
            (&requests, ask("default_decision", json!("accept")), 400, "malformed", "C15"),
            (&requests, ask("arguments", serde_json::from_str(&huge).unwrap()), 413, "too_large", "E21"),
        ];
        for (path, sent, status, error, rule) in posts {
            let answer = client.post(path, sent.clone()).await.unwrap();
            assert_eq!(refusal(&answer, status, error), rule, "{path} {sent:.200}");
        }
        let invoke = format!("agent/requests/{request}/invoke");
        let too_early = client.post(&invoke, "{}").await.unwrap();
        assert_eq!(refusal(&too_early, 409, "conflict"), "T12");
        assert_eq!(body(&too_early)["request_id"], request);
        let odd = client.post(&invoke, r#"{"argument":1}"#).await.unwrap();
        assert_eq!(refusal(&odd, 400, "malformed"), "E1");
        for wait in ["61", "-1", "x", "", "1.5", "99999999999999999999"] {
            let path = format!("agent/requests/{request}?wait={wait}");
            assert_eq!(
                refusal(&client.get(&path).await.unwrap(), 400, "malformed"),
                "W8",
                "{wait}"
            );
        }
        assert_eq!(
            refusal(&client.get("agent/inputs?wait=61").await.unwrap(), 400, "malformed"),
            "W8"
        );
        assert_eq!(refusal(&client.get("agent/sessions").await.unwrap(), 405, "method"), "W8");
        assert_eq!(refusal(&client.get("agent/nowhere").await.unwrap(), 404, "not_found"), "W8");
        let reader = person.client("reader");
        let denied = reader.post("agent/sessions", agent.opening().to_string()).await.unwrap();
        assert_eq!(refusal(&denied, 403, "forbidden"), "S6");
        let nobody = client_of_nobody(&person);
        let denied = nobody.post("agent/sessions", agent.opening().to_string()).await.unwrap();
        assert_eq!(refusal(&denied, 401, "unauthorized"), "S5");
        assert_eq!(denied.headers["www-authenticate"], "Bearer");
        // And after all that everything is as it was.
        assert_eq!(client.get(&format!("agent/requests/{request}")).await.unwrap().status, 200);
    });
}

fn client_of_nobody(person: &Person) -> HttpClient {
    client(&person.hub.base(), Some(&token("nobody")))
}

// covers: I11
#[test]
fn a_call_with_an_idempotency_key_is_done_once() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let first = agent.post_once("agent/sessions", "one", &agent.opening()).await;
        let again = agent.post_once("agent/sessions", "one", &agent.opening()).await;
        assert_eq!((first.status, &first.body), (again.status, &again.body));
        let mut other = agent.opening();
        other["summary_normal"] = json!("Something else.");
        assert_eq!(
            refusal(&agent.post_once("agent/sessions", "one", &other).await, 422, "key_reused"),
            "W8"
        );
        let session = text(&body(&first), "session_id").to_owned();

        // The same key on another path is another call.
        let events = format!("agent/sessions/{session}/events");
        let event = json!({ "type": "aaep:agent.progress.updated", "progress": { "percent": 1 },
            "summary_normal": "One." });
        let first = agent.post_once(&events, "one", &event).await;
        let again = agent.post_once(&events, "one", &event).await;
        assert_eq!((first.status.as_u16(), &first.body), (201, &again.body));
        ear.event("progress.updated").await;

        let requests = format!("agent/sessions/{session}/requests");
        let first = agent.post_once(&requests, "ask", &deletion("x")).await;
        let request = body(&first);
        let question = ear.event("awaiting.confirmation").await;
        assert!(!ear.heard.iter().any(|text| text.matches("percent\":1").count() > 1));
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        // The answer of then, though the request is decided now.
        let again = agent.post_once(&requests, "ask", &deletion("x")).await;
        assert_eq!((again.status.as_u16(), &again.body), (201, &first.body));

        let invoke = format!("agent/requests/{}/invoke", text(&request, "request_id"));
        let first = agent.post_once(&invoke, "run", &json!({})).await;
        let again = agent.post_once(&invoke, "run", &json!({})).await;
        assert_eq!((first.status.as_u16(), &first.body), (200, &again.body));
        let other = agent.post_once(&invoke, "run", &json!({ "arguments": { "path": "x" } })).await;
        assert_eq!(refusal(&other, 422, "key_reused"), "W8");
        let other = agent.post_once(&invoke, "run again", &json!({})).await;
        assert_eq!(refusal(&other, 409, "conflict"), "T12");
        agent.complete(&session).await;
        ear.event("session.completed").await;
        assert_eq!(ear.heard.iter().filter(|text| text.contains("tool.invoked")).count(), 1);
        assert_eq!(ear.heard.iter().filter(|text| text.contains("progress.updated")).count(), 1);

        // A key belongs to its principal, and is neither empty nor endless.
        let helper = person.helper();
        assert_eq!(helper.post_once("agent/sessions", "one", &helper.opening()).await.status, 201);
        for key in ["", &"k".repeat(201)] {
            let answer = agent.post_once("agent/sessions", key, &agent.opening()).await;
            assert_eq!(refusal(&answer, 400, "malformed"), "W8");
        }
    });
}

// covers: C4, I12
#[test]
fn asking_the_same_again_gives_the_request_that_waits() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let first = agent.ask(&session).await;
        let mut again = deletion("old.txt");
        again["action"] = json!("Please!");
        let answer = agent.try_ask(&session, &again).await;
        assert_eq!((answer.status.as_u16(), body(&answer)), (200, first.clone()));
        let other = agent.ask_for(&session, &deletion("other.txt")).await;
        assert_ne!(other["digest"], first["digest"]);
        for _ in 0..2 {
            let question = ear.event("awaiting.confirmation").await;
            ear.decide(&question, "reject").await;
        }
        assert_eq!(agent.outcome(&other).await, "rejected");
        // Once it is decided, asking is asking anew.
        let anew = agent.ask(&session).await;
        assert_eq!(anew["digest"], first["digest"]);
        assert_ne!(anew["request_id"], first["request_id"]);
    });
}

// covers: D36, I12, I1
#[test]
fn a_space_or_another_order_makes_no_second_question_and_the_agents_bytes_come_back() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let requests = format!("agent/sessions/{session}/requests");
        let ask = |arguments: &str| {
            let mut asked = deletion("x");
            asked["arguments"] = json!("HERE");
            let sent = asked.to_string().replace("\"HERE\"", arguments);
            let (client, requests) = (&agent.client, &requests);
            async move { client.post(requests, sent).await.unwrap() }
        };
        let written = r#"{ "x":"1", "n":1.0 }"#;
        let first = ask(written).await;
        assert_eq!(first.status.as_u16(), 201);
        for same in [r#"{"x":"1","n":1}"#, r#"{"n":1,"x":"\u0031"}"#] {
            let again = ask(same).await;
            assert_eq!((again.status.as_u16(), &again.body), (200, &first.body), "{same}");
        }
        let refused = ask(r#"{"n":0.1000000000000000000001}"#).await;
        assert_eq!(refusal(&refused, 400, "malformed"), "D36");
        let question = ear.event("awaiting.confirmation").await;
        assert_eq!(question["extensions"]["action"]["digest"], body(&first)["digest"]);
        ear.decide(&question, "accept").await;
        let request = body(&first);
        assert_eq!(agent.outcome(&request).await, "accepted");
        let other = agent.invoke(&request, r#"{"arguments":{"x":"1","n":2}}"#).await;
        assert_eq!(refusal(&other, 409, "conflict"), "T12");
        let given = agent.invoke(&request, r#"{"arguments":{"n":1,"x":"1"}}"#).await;
        assert_eq!(given.status.as_u16(), 200, "{given:?}");
        let given = String::from_utf8(given.body.to_vec()).unwrap();
        assert!(given.contains(&format!("\"arguments\":{written}")), "{given}");
        agent.complete(&session).await;
        ear.event("session.completed").await;
        assert_eq!(ear.heard.iter().filter(|text| text.contains("tool.invoked")).count(), 1);
    });
}

// covers: D37, T27
#[test]
fn what_waits_or_was_refused_cannot_be_announced_as_running() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let announce = |arguments: Option<Value>| {
            let mut said = json!({ "tool": "delete_file", "summary_normal": "Deleting." });
            if let Some(arguments) = arguments {
                said["arguments"] = arguments;
            }
            agent.try_emit(&session, "tool.invoked", said)
        };
        let (asked, other) = (json!({ "path": "old.txt" }), json!({ "path": "another" }));
        for decision in ["reject", "accept"] {
            let request = agent.ask(&session).await;
            for arguments in [Some(asked.clone()), None] {
                assert_eq!(refusal(&announce(arguments).await, 409, "conflict"), "D37");
            }
            let question = ear.event("awaiting.confirmation").await;
            ear.decide(&question, decision).await;
            agent.outcome(&request).await;
            let again = announce(Some(asked.clone())).await;
            if decision == "reject" {
                assert_eq!(refusal(&again, 409, "conflict"), "D37");
                assert_eq!(announce(Some(other.clone())).await.status.as_u16(), 201);
            } else {
                // It cannot be undone: it is announced by the request that was accepted.
                assert_eq!(refusal(&again, 409, "conflict"), "T27");
                assert_eq!(agent.invoke(&request, "{}").await.status.as_u16(), 200);
            }
        }
        agent.complete(&session).await;
        ear.event("session.completed").await;
        let heard = ear.heard.iter().filter(|text| text.contains("tool.invoked"));
        let heard: Vec<_> = heard.collect();
        // What an agent says of its arguments to the hub is not announced; what was confirmed is.
        let [announced, confirmed] = heard[..] else { panic!("{heard:?}") };
        assert!(!announced.contains("another"), "{announced}");
        assert!(confirmed.contains(r#""args_summary":"path: old.txt""#), "{confirmed}");
    });
}

// covers: C9, T11, T24
#[test]
fn what_the_person_said_arrives_and_what_was_approved_is_explained() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide_saying(
            &question,
            "accept",
            json!({ "decided_by": "Ann, at the window",
            "decision_rationale": "It is old.", "correlation_id": "trace-7" }),
        )
        .await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        let view = agent.look(&request, 0).await;
        assert_eq!(view["decided_by"], person.name("reader"), "the principal, not what it says");
        assert_eq!(
            view["reply"],
            json!({ "decided_by": "Ann, at the window",
            "decision_rationale": "It is old.", "correlation_id": "trace-7" })
        );
        let given = agent.invoke(&request, "{}").await;
        assert_eq!(given.status.as_u16(), 200, "{given:?}");
        let invoked = ear.event("tool.invoked").await;
        assert_eq!(
            (&invoked["risk_level"], &invoked["irreversible"], &invoked["args_summary"]),
            (&"high".into(), &true.into(), &"path: old.txt".into())
        );
        // Another one is approved, and never run.
        let other = agent.ask_for(&session, &deletion("b.txt")).await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&other).await, "accepted");
        agent.complete(&session).await;
        ear.event("session.completed").await;
        let told =
            ear.heard.iter().any(|text| text.contains("though you approved it: Delete b.txt"));
        assert!(told, "{:?}", ear.heard);
        assert_eq!(agent.outcome(&other).await, "expired");
    });
}

// covers: C1, C14, D11, D17, I9, I11
#[test]
fn a_request_shows_every_status_to_its_agent() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let short = |request: &Value, members: Value| {
            let mut request = request.clone();
            request["timeout_seconds"] = json!(1);
            request.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            request
        };
        let question = json!({ "kind": "clarification", "question": "Where?",
            "timeout_seconds": 1, "summary_normal": "Where?" });
        // These run out by themselves meanwhile.
        let timed_out = agent.ask_for(&session, &short(&deletion("a"), json!({}))).await;
        let harmless = json!({ "irreversible": false, "reversibility": "reversible",
            "risk_level": "low", "default_decision": "accept", "tool": "look" });
        let silent_yes = agent.ask_for(&session, &short(&deletion("b"), harmless)).await;
        let unanswered = agent.ask_for(&session, &question).await;
        let mut with_default = question.clone();
        with_default["default_response"] = json!("home");
        with_default["question"] = json!("Where to?");
        let defaulted = agent.ask_for(&session, &with_default).await;

        let cancelled = agent.ask_for(&session, &deletion("c")).await;
        assert_eq!(agent.withdraw(&cancelled).await.status, 204);
        assert_eq!(refusal(&agent.withdraw(&cancelled).await, 409, "conflict"), "C24");
        assert_eq!(agent.look(&cancelled, 60).await["status"], "cancelled");
        let run = agent.ask_for(&session, &deletion("d")).await;
        assert_eq!(agent.look(&run, 0).await["status"], "pending");
        loop {
            let question = ear.event("awaiting.confirmation").await;
            if question["event_id"] == run["event_id"] {
                ear.decide(&question, "accept").await;
                break;
            }
        }
        assert_eq!(agent.outcome(&run).await, "accepted");
        assert_eq!(agent.look(&run, 0).await["decided_by"], person.name("reader"));

        assert_eq!(agent.outcome(&timed_out).await, "timed_out");
        assert_eq!(refusal(&agent.invoke(&timed_out, "{}").await, 409, "conflict"), "T12");
        // D11: silence that means yes is a yes to the agent.
        assert_eq!(agent.outcome(&silent_yes).await, "accepted");
        assert_eq!(agent.invoke(&silent_yes, "{}").await.status, 200);
        assert_eq!(agent.look(&silent_yes, 0).await["status"], "invoked");
        assert_eq!(agent.outcome(&unanswered).await, "unanswered");
        let view = agent.look(&defaulted, 30).await;
        assert_eq!((&view["status"], &view["response"]), (&json!("timed_out"), &json!("home")));

        let granted = body(&agent.invoke(&run, "{}").await);
        let done = json!({ "tool": "delete_file", "tool_call_id": granted["tool_call_id"],
            "status": "success", "summary_normal": "Deleted." });
        agent.emit(&session, "tool.completed", done).await;
        assert_eq!(agent.look(&run, 0).await["status"], "completed");
        agent.complete(&session).await;
        // The other call was never completed, and the session is over.
        assert_eq!(agent.look(&silent_yes, 0).await["status"], "unknown");
        assert_eq!(agent.look(&run, 60).await["status"], "completed");
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: E4, D23, I5, T1
#[test]
fn an_agent_that_lies_about_order_is_refused_and_open_questions_stay_right() {
    run(async {
        let person = Hub::shared().person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let path = format!("agent/sessions/{session}/events");
        let try_emit = |kind: &str, members: Value| {
            let mut event = members;
            event["type"] = json!(kind);
            agent.client.post(&path, event.to_string())
        };
        let address = "https://aaep-protocol.org/types/agent.";
        for (kind, members, rule) in [
            ("awaiting.confirmation", deletion("x"), "C1"),
            ("session.started", json!({ "summary_normal": "Again." }), "T1"),
            ("state.changed", json!({ "from_state": "idle", "to_state": "thinking" }), "T7"),
            (
                "state.changed",
                json!({ "from_state": "awaiting_input", "to_state": "thinking" }),
                "D30",
            ),
            (
                "tool.completed",
                json!({ "tool": "x", "status": "success", "summary_normal": "x" }),
                "T15",
            ),
            ("progress.updated", json!({ "sequence_number": 99 }), "E19"),
            ("progress.updated", json!({ "session_id": "sess_1" }), "E19"),
        ] {
            for name in [format!("aaep:agent.{kind}"), format!("{address}{kind}")] {
                let answer = try_emit(&name, members.clone()).await.unwrap();
                assert_eq!(body(&answer)["rule"], rule, "{name} {}", body(&answer));
            }
        }
        let question = ear.event("awaiting.confirmation").await;
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        // However its type is written, an end is an end: nothing waits any more.
        let ended =
            try_emit(&format!("{address}session.completed"), json!({ "summary_normal": "x" }));
        assert_eq!(ended.await.unwrap().status, 201);
        assert_eq!(agent.look(&request, 0).await["status"], "cancelled");
        ear.decide(&question, "accept").await;
        let after = try_emit("aaep:agent.progress.updated", json!({})).await.unwrap();
        assert_eq!(refusal(&after, 404, "not_found"), "E8");
        assert_eq!(ear.event("session.completed").await["session_id"], session);
        ear.is_lawful();
    });
}

// covers: W8
#[test]
fn the_api_describes_itself_and_every_path_in_it_is_there() {
    run(async {
        let hub = Hub::shared();
        let outside = hub.outside(None);
        let answer = outside.get("openapi.json").await.unwrap();
        let document = body(&answer);
        let mut count = 0;
        for (path, operations) in document["paths"].as_object().unwrap() {
            let path = path.replace("{session_id}", &format!("sess_{}", "0".repeat(32)));
            let path = path.replace("{request_id}", &format!("req_{}", "0".repeat(32)));
            let path = path.replace("{file}", "aaep-subscriber.js");
            for method in
                operations.as_object().unwrap().keys().filter(|name| *name != "parameters")
            {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let mut headers = HeaderMap::new();
                headers.insert("content-type", HeaderValue::from_static("application/json"));
                if path.ends_with("/events") && method == Method::GET {
                    continue; // it would not end
                }
                let answer = outside.request(method.clone(), &path, headers, "{}").await.unwrap();
                assert_ne!(answer.status, 405, "{method} {path}");
                let nothing = body_or_null(&answer)["text"] == "There is nothing here.";
                assert!(!nothing, "{method} {path}");
                count += 1;
            }
        }
        assert!(count > 15, "{count}");
    });
}

fn body_or_null(answer: &FullResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap_or(Value::Null)
}
