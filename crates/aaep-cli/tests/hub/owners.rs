//! Agents without a token: each owns what it opened, and nothing else.

use http::{HeaderMap, HeaderValue, Method, StatusCode};

use crate::support::*;

const LOCAL_REPLIES: &str = "[development]\nlocal_replies = true";

/// A session opened as by `curl`, without a secret of one's own: what the hub answered.
async fn opened(hub: &Hub) -> (HttpClient, Value) {
    let bare = HttpClient::new(&hub.base(), Default::default()).unwrap();
    let opening = json!({ "producer": { "agent_id": "local" }, "summary_normal": "Tidying." });
    let answer = bare.post("agent/sessions", opening.to_string()).await.unwrap();
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    (bare, body(&answer))
}

async fn with(
    client: &HttpClient,
    method: Method,
    path: &str,
    secret: &str,
    sent: &str,
) -> FullResponse {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("aaep-session-secret", HeaderValue::from_str(secret).unwrap());
    client.request(method, path, headers, sent.to_owned()).await.unwrap()
}

// covers: S4, S5, S8
#[test]
fn ids_alone_open_nothing_of_another_agent_without_a_token() {
    run(async {
        let hub = Hub::start(Setup::default().toml(LOCAL_REPLIES));
        let (owner, mut ear) = (hub.local_agent(), Ear::listen(hub.anonymous()).await);
        let session = owner.open().await;
        let secret = json!({ "kind": "confirmation", "tool": "pay", "arguments": { "pin": "1234" },
            "action": "Pay", "consequence": "Gone.", "risk_level": "high", "irreversible": true,
            "timeout_seconds": 300, "default_decision": "reject", "summary_normal": "Pay?" });
        let request = owner.ask_for(&session, &secret).await;
        // A thief reads ids on the open stream, which anybody on the machine may hear.
        let asked = ear.event("awaiting.confirmation").await;
        ear.decide(&asked, "accept").await;
        assert_eq!(owner.outcome(&request).await, "accepted");
        let id = text(&request, "request_id");
        let bare = HttpClient::new(&hub.base(), Default::default()).unwrap();
        for thief in [&hub.anonymous(), &bare] {
            let unknown = thief.get(&format!("agent/requests/req_{:032x}", 7)).await.unwrap();
            let seen = thief.get(&format!("agent/requests/{id}")).await.unwrap();
            assert_eq!((seen.status, &seen.body), (StatusCode::NOT_FOUND, &unknown.body));
            let path = format!("agent/requests/{id}/invoke");
            let stolen = thief.post(&path, "{}").await.unwrap();
            assert_eq!(stolen.status, StatusCode::NOT_FOUND);
            assert!(!String::from_utf8_lossy(&stolen.body).contains("1234"));
            let gone = thief.request(Method::DELETE, &path[..path.len() - 7], HeaderMap::new(), "");
            assert_eq!(gone.await.unwrap().status, StatusCode::NOT_FOUND);
            let standing = thief.get(&format!("agent/sessions/{session}")).await.unwrap();
            assert_eq!(standing.status, StatusCode::NOT_FOUND);
            let ends = json!({ "type": "aaep:agent.session.completed", "summary_normal": "x" });
            let path = format!("agent/sessions/{session}/events");
            assert_eq!(thief.post(&path, ends.to_string()).await.unwrap().status, 404);
        }
        let granted = owner.invoke(&request, "{}").await;
        assert_eq!(granted.status, StatusCode::OK);
        assert_eq!(body(&granted)["arguments"]["pin"], "1234");
    });
}

// covers: S4, S8, I11
#[test]
fn a_secret_is_told_once_and_an_idempotency_key_does_not_repeat_it() {
    run(async {
        let hub = Hub::start(Setup::default());
        let (bare, session) = opened(&hub).await;
        let secret = text(&session, "session_secret").to_owned();
        let path = format!("agent/sessions/{}", text(&session, "session_id"));
        assert_eq!(bare.get(&path).await.unwrap().status, 404);
        assert_eq!(with(&bare, Method::GET, &path, &secret, "").await.status, 200);
        // A key without a secret of one's own would tell it to anyone who repeats the key.
        let agent = Agent::new(bare, "local");
        let refused = agent.post_once("agent/sessions", "k", &agent.opening()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST);
        assert!(text(&body(&refused), "text").contains("AAEP-Session-Secret"));
        // With secrets, the same key of two agents is two keys, and nothing is told.
        let (one, other) = (hub.local_agent(), hub.local_agent());
        let first = one.post_once("agent/sessions", "k", &one.opening()).await;
        let again = one.post_once("agent/sessions", "k", &one.opening()).await;
        let theirs = other.post_once("agent/sessions", "k", &other.opening()).await;
        assert_eq!(first.body, again.body);
        assert_ne!(first.body, theirs.body);
        assert!(!String::from_utf8_lossy(&theirs.body).contains("secret"));
        // What has another form is refused, rather than taken for nothing.
        for wrong in ["x", "aaeps_short", "aaep_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            let answer = with(&agent.client, Method::GET, &path, wrong, "").await;
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{wrong}");
        }
    });
}

// covers: S4, S8, I3
#[test]
fn a_secret_still_works_after_a_kill_and_is_nowhere_on_disk() {
    run(async {
        let hub = Hub::start(Setup::durable().toml(LOCAL_REPLIES));
        let (bare, session) = opened(&hub).await;
        let (id, secret) = (text(&session, "session_id"), text(&session, "session_secret"));
        let path = format!("agent/sessions/{id}/requests");
        let asked = with(&bare, Method::POST, &path, secret, &deletion("a").to_string()).await;
        assert_eq!(asked.status, StatusCode::CREATED);
        let request = text(&body(&asked), "request_id").to_owned();
        hub.kill();
        hub.ended();
        assert!(!everything_in(hub.directory()).contains(secret));
        let hub = Hub::start_in(Setup::durable(), hub.shared_directory());
        let bare = HttpClient::new(&hub.base(), Default::default()).unwrap();
        let path = format!("agent/requests/{request}");
        assert_eq!(bare.get(&path).await.unwrap().status, 404);
        assert_eq!(hub.anonymous().get(&path).await.unwrap().status, 404);
        assert_eq!(with(&bare, Method::GET, &path, secret, "").await.status, 200);
    });
}

/// The user stops a session.
fn stop(ear: &Ear, session: &str) -> String {
    json!({ "type": "control:cancel", "session_id": session, "subscription_id": ear.subscription,
        "timestamp": now() })
    .to_string()
}

/// Every byte below a directory, as far as it is text.
fn everything_in(directory: &std::path::Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all += &everything_in(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            all += &String::from_utf8_lossy(&bytes);
        }
    }
    all
}

// covers: S4, S6
#[test]
fn input_goes_to_those_who_show_a_secret_and_each_has_its_own() {
    run(async {
        let hub = Hub::start(Setup::default().toml(LOCAL_REPLIES));
        let bare = HttpClient::new(&hub.base(), Default::default()).unwrap();
        assert_eq!(bare.get("agent/inputs").await.unwrap().status, StatusCode::UNAUTHORIZED);
        let (one, other) = (hub.local_agent(), hub.local_agent());
        assert!(one.inputs(0).await.is_empty() && other.inputs(0).await.is_empty());
        let said = json!({ "kind": "user_input", "text": "hello" }).to_string();
        assert_eq!(hub.anonymous().post("messages", said).await.unwrap().status, 202);
        // What one takes the other still gets.
        assert_eq!(one.inputs(5).await.len(), 1);
        assert_eq!(other.inputs(5).await.len(), 1);
        // An end is told to its owner alone.
        let session = one.open().await;
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        ear.send(&stop(&ear, &session)).await;
        assert_eq!(one.inputs(5).await[0]["session_id"], session.as_str());
        assert!(other.inputs(0).await.is_empty());
    });
}

// covers: S1, S6, D4, D5
#[test]
fn only_who_may_answer_speaks_as_the_user() {
    run(async {
        let hub = Hub::start(Setup::default());
        let said = |text: &str| json!({ "kind": "user_input", "text": text }).to_string();
        // Anybody on this machine, without the development option.
        let local = hub.local_agent();
        assert!(local.inputs(0).await.is_empty());
        assert_eq!(hub.anonymous().post("messages", said("delete all")).await.unwrap().status, 202);
        assert!(local.inputs(0).await.is_empty());
        // Auditors and other agents of the same user; the user's own reader.
        let person = hub.person();
        let agent = person.agent();
        assert!(agent.inputs(0).await.is_empty());
        for (client, heard) in [
            (client(&hub.base(), Some(&token("auditor"))), false),
            (person.client("helper"), false),
            (person.client("agent"), false),
            (person.client("reader"), true),
        ] {
            let status = client.post("messages", said("delete all")).await.unwrap().status;
            if heard {
                assert_eq!(status, StatusCode::ACCEPTED);
            }
            assert_eq!(!agent.inputs(0).await.is_empty(), heard);
        }
    });
}

// covers: S1, S6, S8
#[test]
fn an_agent_that_listens_hears_its_own_sessions_and_no_reply_token() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let (agent, helper) = (person.agent(), person.helper());
        let mut own = Ear::listen(person.client("agent")).await;
        let mut others = Ear::listen(person.client("helper")).await;
        let mut reader = person.reader().await;
        let session = agent.open().await;
        agent.ask(&session).await;
        let theirs = helper.open().await;
        let real = text(&reader.event("awaiting.confirmation").await, "reply_token").to_owned();
        let asked = own.event("awaiting.confirmation").await;
        assert_ne!(text(&asked, "reply_token"), real);
        let mut heard = Vec::new();
        while heard.last().is_none_or(|event: &Value| event["session_id"] != theirs.as_str()) {
            heard.push(others.next().await);
        }
        assert!(heard.iter().all(|event| event["session_id"] == theirs.as_str()), "{heard:?}");
        // The token that it was sent answers nothing.
        own.decide(&asked, "accept").await;
        let request = agent.try_ask(&session, &deletion("old.txt")).await;
        assert_eq!(body(&request)["status"], "pending");
    });
}
