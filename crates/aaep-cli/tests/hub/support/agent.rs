//! An agent, as any program with HTTP can be one.

use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::{FullResponse, HttpClient, Value, body, json, text};

pub struct Agent {
    pub client: HttpClient,
    pub id: String,
}

impl Agent {
    pub fn new(client: HttpClient, id: &str) -> Self {
        Self { client, id: id.into() }
    }

    /// Whatever it may be.
    pub async fn post(&self, path: &str, value: &Value) -> FullResponse {
        self.client.post(path, value.to_string()).await.unwrap()
    }

    /// The same with an idempotency key.
    pub async fn post_once(&self, path: &str, key: &str, value: &Value) -> FullResponse {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("idempotency-key", HeaderValue::from_str(key).unwrap());
        self.client.request(Method::POST, path, headers, value.to_string()).await.unwrap()
    }

    /// Begins a session.
    pub async fn open(&self) -> String {
        let answer = self.post("agent/sessions", &self.opening()).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        text(&body(&answer), "session_id").to_owned()
    }

    pub fn opening(&self) -> Value {
        json!({ "producer": { "agent_id": self.id }, "summary_normal": "Tidying the desk." })
    }

    /// Emits an event of this type (without `aaep:agent.`) and these members.
    pub async fn try_emit(&self, session: &str, kind: &str, members: Value) -> FullResponse {
        let mut event = json!({ "type": format!("aaep:agent.{kind}") });
        event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.post(&format!("agent/sessions/{session}/events"), &event).await
    }

    pub async fn emit(&self, session: &str, kind: &str, members: Value) -> Value {
        let answer = self.try_emit(session, kind, members).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        body(&answer)
    }

    /// Says how far it is.
    pub async fn progress(&self, session: &str, percent: u64) -> Value {
        let members = json!({ "progress": { "percent": percent }, "summary_normal": "Going on." });
        self.emit(session, "progress.updated", members).await
    }

    pub async fn complete(&self, session: &str) {
        self.emit(session, "session.completed", json!({ "summary_normal": "Done." })).await;
    }

    pub async fn try_ask(&self, session: &str, request: &Value) -> FullResponse {
        self.post(&format!("agent/sessions/{session}/requests"), request).await
    }

    /// Asks for consent to delete something.
    pub async fn ask(&self, session: &str) -> Value {
        self.ask_for(session, &deletion("old.txt")).await
    }

    pub async fn ask_for(&self, session: &str, request: &Value) -> Value {
        let answer = self.try_ask(session, request).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        body(&answer)
    }

    /// A request as it stands after at most so many seconds.
    pub async fn look(&self, request: &Value, wait: u64) -> Value {
        let path = format!("agent/requests/{}?wait={wait}", text(request, "request_id"));
        let answer = self.client.get(&path).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        body(&answer)
    }

    /// What became of a request.
    pub async fn outcome(&self, request: &Value) -> String {
        loop {
            let view = self.look(request, 30).await;
            if view["status"] != "pending" {
                return text(&view, "status").to_owned();
            }
        }
    }

    pub async fn invoke(&self, request: &Value, sent: &str) -> FullResponse {
        let path = format!("agent/requests/{}/invoke", text(request, "request_id"));
        self.client.post(&path, sent.to_owned()).await.unwrap()
    }

    pub async fn withdraw(&self, request: &Value) -> FullResponse {
        let path = format!("agent/requests/{}", text(request, "request_id"));
        self.client.request(Method::DELETE, &path, HeaderMap::new(), "").await.unwrap()
    }

    /// What people said to it, within so many seconds.
    pub async fn inputs(&self, wait: u64) -> Vec<Value> {
        let answer = self.client.get(&format!("agent/inputs?wait={wait}")).await.unwrap();
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        body(&answer)["inputs"].as_array().unwrap().clone()
    }
}

/// A request for consent that cannot be taken back.
pub fn deletion(name: &str) -> Value {
    json!({ "kind": "confirmation", "tool": "delete_file", "arguments": { "path": name },
        "action": format!("Delete {name}"), "consequence": "It is gone.",
        "risk_level": "high", "irreversible": true, "timeout_seconds": 300,
        "default_decision": "reject", "summary_normal": format!("May I delete {name}?") })
}
