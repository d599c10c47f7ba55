//! What must not be seen: tokens and texts in logs and figures, fake lines, fake events.

use http::{HeaderMap, HeaderValue, Method};

use crate::support::*;

/// Says something secret everywhere something can be said.
async fn say_everything(hub: &std::sync::Arc<Hub>) -> Vec<String> {
    let person = hub.person();
    let agent = person.agent();
    let mut ear = Ear::web_socket(hub, Some(&person.token("reader")), true).await;
    let mut opening = agent.opening();
    opening["producer"]["agent_name"] = json!("CANARY-name");
    opening["summary_normal"] = json!("CANARY-summary");
    let answer = agent.post_once("agent/sessions", "CANARY-key", &opening).await;
    let session = text(&body(&answer), "session_id").to_owned();
    let mut asked = deletion("CANARY-action");
    asked["arguments"] = json!({ "CANARY-argument": "CANARY-value" });
    let request = agent.ask_for(&session, &asked).await;
    let confirmation = ear.event("awaiting.confirmation").await;
    ear.decide(&confirmation, "accept").await;
    assert_eq!(agent.outcome(&request).await, "accepted");
    assert_eq!(agent.invoke(&request, "{\"arguments\":\"CANARY-other\"}").await.status, 409);
    let asked = json!({ "kind": "clarification", "question": "CANARY-question",
        "timeout_seconds": 60, "summary_normal": "CANARY-asked" });
    let request = agent.ask_for(&session, &asked).await;
    let clarification = ear.event("awaiting.clarification").await;
    ear.answer(&clarification, json!("CANARY-answer")).await;
    assert_eq!(agent.outcome(&request).await, "accepted");
    agent.inputs(0).await;
    let said = json!({ "kind": "user_input", "text": "CANARY-input" }).to_string();
    person.client("reader").post("messages", said).await.unwrap();
    // What is refused is no reason to repeat it.
    for path in ["replies", "subscriptions", "messages", "agent/sessions", "CANARY-path"] {
        let client = person.client(if path.starts_with("agent") { "agent" } else { "reader" });
        client.post(path, "{\"CANARY-broken\":\"CANARY-broken\"").await.unwrap();
        client.post(path, "{\"CANARY-broken\":\"CANARY-broken\"}").await.unwrap();
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("authorization", HeaderValue::from_static("Bearer CANARY-bearer"));
        headers.insert("x-other", HeaderValue::from_static("CANARY-header"));
        client.request(Method::POST, path, headers, "{}").await.unwrap();
    }
    let mut raw = Raw::connect(hub);
    raw.send("GET /CANARY-target HTTP/1.1\r\nhost: CANARY-host\r\n\r\n");
    raw.reply();
    agent.complete(&session).await;
    ear.event("session.completed").await;
    [&confirmation, &clarification].map(|event| text(event, "reply_token").to_owned()).to_vec()
}

// covers: S8
#[test]
fn neither_logs_nor_figures_tell_what_was_said_or_with_which_token() {
    run(async {
        for (format, level) in [("text", "debug"), ("json", "trace")] {
            let setup = Setup::default().set("AAEP_LOG", level).set("AAEP_LOG__FORMAT", format);
            let hub = Hub::start(setup);
            let tokens = say_everything(&hub).await;
            let figures = hub.outside(None).get("metrics").await.unwrap();
            let figures = String::from_utf8(figures.body.to_vec()).unwrap();
            hub.signal("TERM");
            assert!(hub.ended().success());
            let log = hub.log();
            assert!(log.iter().any(|line| line.contains("a session ended")), "{log:#?}");
            for line in log.iter().map(String::as_str).chain(figures.lines()) {
                assert!(!line.contains("CANARY"), "{line}");
                assert!(!line.contains("xxxxxxxx"), "a bearer token: {line}");
                assert!(!tokens.iter().any(|token| line.contains(&token[4..])), "{line}");
            }
            for line in log.iter().filter(|line| format == "json" && !line.starts_with("aaep: ")) {
                assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
            }
        }
    });
}

/// Lines that want to be taken for others.
const FAKE: &str = "x\n\nevent: aaep.event\nid: evt_0\ndata: {\"type\":\"fake\"}\n\n\r\r2026-01-01T00:00:00Z  INFO fake: line\u{2028}\u{85}";

// covers: W1, S8, D27
#[test]
fn a_text_that_looks_like_events_or_log_lines_stays_one_text() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let agent = person.agent();
        let mut raw = Raw::connect(&hub);
        raw.send(raw.head("GET", "events", Some(&person.token("reader")), &[]) + "\r\n");
        assert_eq!(raw.reply().status, 200);
        let mut opening = agent.opening();
        opening["producer"]["agent_name"] = json!(FAKE);
        let session = agent.post("agent/sessions", &opening).await;
        // A name of several lines may be refused; then nothing of it is anywhere.
        let session = match session.status.as_u16() {
            201 => text(&body(&session), "session_id").to_owned(),
            _ => agent.open().await,
        };
        let mut asked = deletion("x");
        for name in ["action", "consequence", "summary_normal"] {
            asked[name] = json!("Delete it.\n\ndata: {\"type\":\"fake\"}\n\nevent: x\nid: y");
        }
        asked["arguments"] = json!({ "a": FAKE });
        agent.try_ask(&session, &asked).await;
        let path = format!("agent/sessions/{session}/events");
        let pretty = "{\n  \"type\": \"aaep:agent.progress.updated\",\r\n\r\n \"progress\": {\n\n\"percent\":\n 5,\r\"description\":\"a\"},\n\"summary_normal\": \"x\"\n}";
        let answer = agent.client.post(&path, pretty).await.unwrap();
        assert_eq!(answer.status, 201, "{answer:?}");
        agent.complete(&session).await;
        let heard = raw.lines_until("session.completed");
        let mut events = 0;
        for line in &heard {
            match line.split_once(": ") {
                Some(("data", data)) => {
                    let message: Value = serde_json::from_str(data).unwrap();
                    assert!(text(&message, "type").starts_with("aaep:agent."), "{line}");
                    events += 1;
                }
                Some(("id", id)) => assert!(id.len() == 36 && id.starts_with("evt_"), "{line}"),
                _ => panic!("{line:?}"),
            }
        }
        assert!(events >= 3, "{heard:#?}");
        for line in hub.log() {
            assert!(!line.starts_with("2026-01-01") && !line.contains("fake: line"), "{line}");
        }
    });
}
