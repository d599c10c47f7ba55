//! The quiet tenant: one confirmation after the other, at a steady pace.

use std::io::Read;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use memchr::memmem;

use crate::server::{QUIET_AGENT, QUIET_READER};
use crate::wire::{call, connect, member, open, request};

/// How long after one confirmation the next one begins at the earliest.
const PACE: Duration = Duration::from_millis(6);

pub struct Victim {
    agent: TcpStream,
    replier: TcpStream,
    stream: TcpStream,
    heard: Vec<u8>,
    subscription: String,
    session: String,
    number: u64,
}

impl Victim {
    pub fn new(address: SocketAddr) -> Self {
        let (mut agent, mut stream) = (connect(address), connect(address));
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).expect("a socket");
        agent.set_read_timeout(patience).expect("a socket");
        let asked = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"quiet","capabilities":{"supports_confirmation_reply":true}}"#;
        let answer =
            call(&mut stream, &request("POST", "/aaep/v1/subscriptions", QUIET_READER, asked));
        assert_eq!(answer.status, 201, "{answer:?}");
        let subscription = member(&answer.body, "subscription_id").to_owned();
        let path = format!("/aaep/v1/events?subscription_id={subscription}");
        let heard = open(&mut stream, &request("GET", &path, QUIET_READER, ""));
        let asked = r#"{"producer":{"agent_id":"quiet-worker"},"summary_normal":"Tidying the folder.","lease_seconds":3600}"#;
        let answer =
            call(&mut agent, &request("POST", "/aaep/v1/agent/sessions", QUIET_AGENT, asked));
        assert_eq!(answer.status, 201, "{answer:?}");
        let session = member(&answer.body, "session_id").to_owned();
        let replier = connect(address);
        Self { agent, replier, stream, heard, subscription, session, number: 0 }
    }

    /// Confirmations for so long; how long each took.
    pub fn confirm_for(&mut self, length: Duration) -> Vec<Duration> {
        let begin = Instant::now();
        let mut took = Vec::new();
        while begin.elapsed() < length {
            let each = Instant::now();
            self.confirm();
            took.push(each.elapsed());
            std::thread::sleep(PACE.saturating_sub(each.elapsed()));
        }
        took
    }

    fn confirm(&mut self) {
        self.number += 1;
        let asked = format!(
            r#"{{"kind":"confirmation","tool":"send_mail","arguments":{{"letter":{}}},"action":"Send the letter.","consequence":"It is gone at once.","timeout_seconds":300,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"Send the letter?"}}"#,
            self.number
        );
        let path = format!("/aaep/v1/agent/sessions/{}/requests", self.session);
        let asked = call(&mut self.agent, &request("POST", &path, QUIET_AGENT, &asked));
        assert_eq!(asked.status, 201, "{asked:?}");
        let question = self.question();
        let (token, stamp) = (member(&question, "reply_token"), member(&question, "timestamp"));
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{}","timestamp":"{stamp}"}}"#,
            self.subscription
        );
        let reply = request("POST", "/aaep/v1/replies", QUIET_READER, &reply);
        let replied = call(&mut self.replier, &reply);
        assert_eq!(replied.status, 204, "{replied:?}");
        let path = format!("/aaep/v1/agent/requests/{}?wait=60", member(&asked.body, "request_id"));
        let decided = call(&mut self.agent, &request("GET", &path, QUIET_AGENT, ""));
        assert_eq!(member(&decided.body, "status"), "accepted");
    }

    /// The next event that asks.
    fn question(&mut self) -> String {
        let mut chunk = [0; 16384];
        loop {
            while let Some(end) = memmem::find(&self.heard, b"}\n\n") {
                let frame: Vec<u8> = self.heard.drain(..end + 3).collect();
                if memmem::find(&frame, b"\"reply_token\":").is_some() {
                    return String::from_utf8_lossy(&frame).into_owned();
                }
            }
            let count = self.stream.read(&mut chunk).expect("the stream lives");
            assert!(count > 0, "the hub hung up");
            self.heard.extend_from_slice(&chunk[..count]);
        }
    }
}
