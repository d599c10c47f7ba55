//! A producer that says whatever a test wants it to: no rule holds it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use crate::support::{PATIENCE, Value, json, now};

#[derive(Default)]
struct State {
    streams: Vec<TcpStream>,
    attached: usize,
    received: Vec<Value>,
}

#[derive(Clone)]
pub struct Stage {
    state: Arc<(Mutex<State>, Condvar)>,
    pub base: String,
}

impl Stage {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/aaep/v1", listener.local_addr().unwrap());
        let stage = Self { state: Arc::default(), base };
        let serving = stage.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let stage = serving.clone();
                std::thread::spawn(move || stage.serve(stream));
            }
        });
        stage
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let mut length = 0;
            loop {
                let mut header = String::new();
                if reader.read_line(&mut header).unwrap_or(0) == 0 {
                    return;
                }
                if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                if header.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            if line.starts_with("GET") && line.contains("/events") {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                stream.write_all(head.as_bytes()).unwrap();
                let mut state = self.state.0.lock().unwrap();
                state.streams.push(stream);
                state.attached += 1;
                self.state.1.notify_all();
                return;
            }
            let answer = self.answer(&line, &body);
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, line: &str, body: &[u8]) -> String {
        if line.contains("/subscriptions") {
            let accepted = json!({
                "type": "subscription.accepted", "subscription_id": "sub_stage",
                "aaep_version": "1.0.0", "producer": { "agent_id": "stage" },
                "honored_capabilities": {
                    "supports_confirmation_reply": true, "supports_clarification_reply": true,
                },
            })
            .to_string();
            let location = "location: /aaep/v1/events?subscription_id=sub_stage";
            return format!(
                "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\n{location}\r\ncontent-length: {}\r\n\r\n{accepted}",
                accepted.len()
            );
        }
        if line.contains("/replies") {
            let mut state = self.state.0.lock().unwrap();
            state.received.push(serde_json::from_slice(body).unwrap_or_default());
            self.state.1.notify_all();
            return "HTTP/1.1 204 No Content\r\n\r\n".into();
        }
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".into()
    }

    fn wait<T>(&self, what: &str, mut ready: impl FnMut(&mut State) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        let mut state = self.state.0.lock().unwrap();
        loop {
            if let Some(found) = ready(&mut state) {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited in vain for {what}");
            state = self.state.1.wait_timeout(state, left).unwrap().0;
        }
    }

    /// Waits until so many streams were opened.
    pub fn attached(&self, count: usize) {
        self.wait("a listener", |state| (state.attached >= count).then_some(()));
    }

    /// Sends these bytes on every stream.
    pub fn raw(&self, bytes: &[u8]) {
        let mut state = self.state.0.lock().unwrap();
        state.streams.retain_mut(|stream| stream.write_all(bytes).is_ok());
    }

    /// Sends an event, whatever it is.
    pub fn send(&self, event: &Value) {
        self.raw(frame(event).as_bytes());
    }

    /// The reply to a request of this token.
    pub fn reply(&self, token: &str) -> Value {
        self.wait("a reply", |state| {
            state.received.iter().find(|reply| reply["reply_token"] == token).cloned()
        })
    }

    /// Waits until something of this type was sent to it.
    pub fn receives(&self, kind: &str) -> Value {
        self.wait(kind, |state| state.received.iter().find(|it| it["type"] == kind).cloned())
    }
}

pub fn frame(event: &Value) -> String {
    format!(
        "event: aaep.event\nid: {}\ndata: {event}\n\n",
        event["event_id"].as_str().unwrap_or("x")
    )
}

/// An event of this type, without `aaep:agent.`, with these members.
pub fn event(kind: &str, id: usize, session: &str, members: Value) -> Value {
    let mut event = json!({
        "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
        "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_{id}"),
        "session_id": session, "timestamp": now(),
        "producer": { "agent_id": "stage", "agent_name": "Stage" },
        "localization_hints": { "primary_language": "en" },
    });
    event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    event
}

/// A request for consent to something harmless.
pub fn request(id: usize, session: &str, action: &str) -> Value {
    event(
        "awaiting.confirmation",
        id,
        session,
        json!({
            "action": action, "consequence": "It can be taken back.", "urgency": "critical",
            "reply_token": format!("rpl_{id}"), "timeout_seconds": 300, "default_decision": "reject",
            "risk_level": "low", "reversibility": "reversible", "summary_normal": action,
        }),
    )
}
