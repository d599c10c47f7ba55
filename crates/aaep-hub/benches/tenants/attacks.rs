//! What the other tenant does. Whatever is refused or hung up on is tried again at once.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::server::{HOSTILE_AGENT, HOSTILE_READER};
use crate::wire::{WireResponse, member, request, take_answer};

pub struct Attack {
    pub name: &'static str,
    pub about: &'static str,
    connections: usize,
    run: fn(Attacker),
}

pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "junk",
        about: "junk bodies of 200 kB to agents' doors, 64 connections",
        connections: 64,
        run: junk,
    },
    Attack {
        name: "junk-local",
        about: "the same without a token",
        connections: 64,
        run: junk_local,
    },
    Attack {
        name: "replies",
        about: "replies with tokens that nobody gave out, 32 connections",
        connections: 32,
        run: replies,
    },
    Attack {
        name: "junk-replies",
        about: "junk bodies of 60 kB in the place of replies, 64 connections",
        connections: 64,
        run: junk_replies,
    },
    Attack {
        name: "links",
        about: "the same replies over WebSockets, without a pause, 16 connections",
        connections: 16,
        run: links,
    },
    Attack {
        name: "sessions",
        about: "sessions without end, 16 connections",
        connections: 16,
        run: sessions,
    },
    Attack {
        name: "sessions-local",
        about: "the same without a token, each with a producer of its own",
        connections: 16,
        run: sessions_local,
    },
    Attack {
        name: "subscriptions",
        about: "subscriptions that nobody attaches to, 16 connections",
        connections: 16,
        run: subscriptions,
    },
    Attack {
        name: "keys",
        about: "sessions with idempotency keys, opened and ended, 16 connections",
        connections: 16,
        run: keys,
    },
    Attack {
        name: "manifest",
        about: "the manifest, read slowly, 64 connections",
        connections: 64,
        run: manifest,
    },
    Attack {
        name: "unread",
        about: "32 streams that nobody reads, and an agent that talks",
        connections: 33,
        run: unread,
    },
    Attack {
        name: "handoffs",
        about: "handoffs without end, 8 connections",
        connections: 8,
        run: handoffs,
    },
    Attack {
        name: "errors",
        about: "sessions that fail without end, 8 connections",
        connections: 8,
        run: errors,
    },
    Attack {
        name: "questions",
        about: "questions with 60 kB of arguments, taken back at once, 8 connections",
        connections: 8,
        run: questions,
    },
    Attack {
        name: "connections",
        about: "connections on which nothing is sent, as many as there are, 8 threads",
        connections: 8,
        run: connections,
    },
    Attack {
        name: "codes",
        about: "wrong codes of the page, 64 connections",
        connections: 64,
        run: codes,
    },
    Attack {
        name: "outputs",
        about: "outputs of 16 kB each, 8 connections",
        connections: 8,
        run: outputs,
    },
];

/// One connection of an attack.
struct Attacker {
    address: SocketAddr,
    number: usize,
    until: Instant,
    stream: Option<TcpStream>,
    incoming: Vec<u8>,
}

/// What the child process does.
pub fn run(name: &str, address: &str, seconds: &str) {
    let address = address.parse().expect("an address");
    let until = Instant::now() + Duration::from_secs(seconds.parse().expect("seconds"));
    let attack = ATTACKS.iter().find(|attack| attack.name == name).expect("an attack");
    let attackers = (0..attack.connections).map(|number| {
        let attacker = Attacker { address, number, until, stream: None, incoming: Vec::new() };
        std::thread::spawn(move || (attack.run)(attacker))
    });
    attackers.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap_or_default());
}

impl Attacker {
    fn goes_on(&self) -> bool {
        Instant::now() < self.until
    }

    /// Sends a request and takes its answer; `None` if the hub hung up.
    fn call(&mut self, request: &[u8]) -> Option<WireResponse> {
        let answer = self.try_call(request);
        if answer.is_none() {
            (self.stream, self.incoming) = (None, Vec::new());
            std::thread::sleep(Duration::from_millis(5));
        }
        answer
    }

    fn try_call(&mut self, request: &[u8]) -> Option<WireResponse> {
        self.connect()?.write_all(request).ok()?;
        let mut chunk = [0; 4096];
        loop {
            if let Some(answer) = take_answer(&mut self.incoming) {
                return Some(answer);
            }
            let count = self.stream.as_mut()?.read(&mut chunk).ok().filter(|count| *count > 0)?;
            self.incoming.extend_from_slice(&chunk[..count]);
        }
    }

    fn connect(&mut self) -> Option<&mut TcpStream> {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).ok()?;
            stream.set_nodelay(true).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
            stream.set_write_timeout(Some(Duration::from_secs(2))).ok()?;
            self.stream = Some(stream);
        }
        self.stream.as_mut()
    }

    fn post(&mut self, path: &str, token: &str, body: &str) -> Option<WireResponse> {
        self.call(&request("POST", &format!("/aaep/v1/{path}"), token, body))
    }

    /// A session of the hostile agent.
    fn open(&mut self) -> Option<String> {
        let answer = self.post("agent/sessions", HOSTILE_AGENT, &opening("loud"))?;
        (answer.status == 201).then(|| member(&answer.body, "session_id").to_owned())
    }
}

fn opening(id: &str) -> String {
    format!(
        r#"{{"producer":{{"agent_id":"{id}"}},"summary_normal":"Making noise.","lease_seconds":86400}}"#
    )
}

fn junk_with(mut attacker: Attacker, path: &str, token: &str, count: usize) {
    let numbers: Vec<String> = (0..count).map(|n| format!("[{n}]")).collect();
    let body = format!(r#"{{"producer":[{}]}}"#, numbers.join(","));
    while attacker.goes_on() {
        attacker.post(path, token, &body);
    }
}

fn junk(attacker: Attacker) {
    junk_with(attacker, "agent/sessions", HOSTILE_AGENT, 30_000);
}

fn junk_local(attacker: Attacker) {
    junk_with(attacker, "agent/sessions", "", 30_000);
}

fn junk_replies(attacker: Attacker) {
    junk_with(attacker, "replies", HOSTILE_READER, 7_700);
}

/// A reply with a token that nobody gave out.
fn guess(number: u128) -> String {
    format!(
        r#"{{"type":"confirmation.reply","reply_token":"rpl_{number:032x}","decision":"accept","subscription_id":"sub_1","timestamp":"2026-03-09T08:15:30.250Z"}}"#
    )
}

fn replies(mut attacker: Attacker) {
    let mut number = attacker.number as u128;
    while attacker.goes_on() {
        number += 1000;
        attacker.post("replies", HOSTILE_READER, &guess(number));
    }
}

fn links(mut attacker: Attacker) {
    let ask = request("GET", "/aaep/v1/ws", HOSTILE_READER, "");
    let upgrade = "\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let ask = String::from_utf8(ask).expect("text").replacen("\r\n\r\n", upgrade, 1);
    let reply = guess(attacker.number as u128);
    // A text frame whose mask changes nothing.
    let mut frame = vec![0x81, 0x80 | 126, 0, reply.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(reply.as_bytes());
    let frames = frame.repeat(64);
    while attacker.goes_on() {
        attacker.stream = None;
        let until = attacker.until;
        let Some(stream) = attacker.connect() else { continue };
        let mut answer = [0; 1024];
        if stream.write_all(ask.as_bytes()).is_err() || stream.read(&mut answer).is_err() {
            continue;
        }
        assert!(answer.starts_with(b"HTTP/1.1 101"), "no WebSocket");
        while Instant::now() < until && stream.write_all(&frames).is_ok() {}
    }
}

fn sessions(mut attacker: Attacker) {
    while attacker.goes_on() {
        attacker.post("agent/sessions", HOSTILE_AGENT, &opening("loud"));
    }
}

fn sessions_local(mut attacker: Attacker) {
    let mut number = attacker.number;
    while attacker.goes_on() {
        number += 100;
        attacker.post("agent/sessions", "", &opening(&format!("squatter {number}")));
    }
}

fn subscriptions(mut attacker: Attacker) {
    let patterns: Vec<String> = (0..500).map(|n| format!("\"aaep:x{n}*\"")).collect();
    let body = format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"loud","capabilities":{{"event_filters":{{"exclude":[{}]}}}}}}"#,
        patterns.join(",")
    );
    while attacker.goes_on() {
        attacker.post("subscriptions", HOSTILE_READER, &body);
    }
}

fn keys(mut attacker: Attacker) {
    let mut number = attacker.number;
    while attacker.goes_on() {
        number += 100;
        let body = opening("loud");
        let head = format!("content-type: application/json\r\nidempotency-key: {number}");
        let bytes =
            String::from_utf8(request("POST", "/aaep/v1/agent/sessions", HOSTILE_AGENT, &body));
        let bytes = bytes.expect("text").replacen("content-type: application/json", &head, 1);
        if let Some(answer) = attacker.call(bytes.as_bytes())
            && answer.status == 201
        {
            end(&mut attacker, member(&answer.body, "session_id"));
        }
    }
}

fn end(attacker: &mut Attacker, session: &str) {
    let over = r#"{"type":"aaep:agent.session.completed","summary_normal":"Done."}"#;
    attacker.post(&format!("agent/sessions/{session}/events"), HOSTILE_AGENT, over);
}

fn manifest(mut attacker: Attacker) {
    let ask = request("GET", "/.well-known/aaep-manifest.json", "", "").repeat(64);
    while attacker.goes_on() {
        let Some(stream) = attacker.connect() else { continue };
        let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
        let mut little = [0; 16];
        if stream.write_all(&ask).is_err() {
            attacker.stream = None;
            continue;
        }
        for _ in 0..50 {
            let _ = stream.read(&mut little);
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn unread(mut attacker: Attacker) {
    if attacker.number > 0 {
        while attacker.goes_on() {
            attacker.stream = None;
            let ask = request("GET", "/aaep/v1/events", HOSTILE_READER, "");
            let asked = attacker.connect().map(|stream| stream.write_all(&ask));
            drop(asked);
            std::thread::sleep(Duration::from_millis(500));
        }
        return;
    }
    talk(attacker, 4000);
}

/// Streams text of so many bytes at once, again and again.
fn talk(mut attacker: Attacker, bytes: usize) {
    let text = "All work and no play makes a long text. ".repeat(bytes / 40);
    'sessions: while attacker.goes_on() {
        let Some(session) = attacker.open() else { continue };
        for number in 0..2000 {
            let position = number * text.len();
            let body = format!(
                r#"{{"type":"aaep:agent.output.streaming","chunk":"{text}","position":{position},"complete":false}}"#
            );
            let sent =
                attacker.post(&format!("agent/sessions/{session}/events"), HOSTILE_AGENT, &body);
            if !attacker.goes_on() || sent.is_none_or(|answer| answer.status != 201) {
                continue 'sessions;
            }
        }
        end(&mut attacker, &session);
    }
}

fn errors(mut attacker: Attacker) {
    let body = r#"{"type":"aaep:agent.session.errored","error_category":"permanent","summary_normal":"It fell over."}"#;
    while attacker.goes_on() {
        let Some(session) = attacker.open() else { continue };
        attacker.post(&format!("agent/sessions/{session}/events"), HOSTILE_AGENT, body);
    }
}

fn questions(mut attacker: Attacker) {
    let text = "All work and no play makes a long argument. ".repeat(1400);
    let mut number = attacker.number;
    while attacker.goes_on() {
        let Some(session) = attacker.open() else { continue };
        for _ in 0..20 {
            number += 100;
            let body = format!(
                r#"{{"kind":"confirmation","tool":"write","arguments":{{"number":{number},"text":"{text}"}},"action":"Write it.","consequence":"It is written.","summary_normal":"Write it?","timeout_seconds":600,"default_decision":"reject","risk_level":"low","irreversible":false}}"#
            );
            let path = format!("agent/sessions/{session}/requests");
            let asked = attacker.post(&path, HOSTILE_AGENT, &body);
            let Some(asked) = asked.filter(|asked| asked.status == 201) else { break };
            let id = member(&asked.body, "request_id");
            let path = format!("/aaep/v1/agent/requests/{id}");
            attacker.call(&request("DELETE", &path, HOSTILE_AGENT, ""));
        }
        end(&mut attacker, &session);
    }
}

fn connections(attacker: Attacker) {
    let mut held = std::collections::VecDeque::new();
    while attacker.goes_on() {
        match TcpStream::connect(attacker.address) {
            Ok(stream) => held.push_back(stream),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
        // The hub closes the oldest by itself; here they only use up descriptors.
        if held.len() > 100 {
            held.pop_front();
        }
    }
}

fn codes(mut attacker: Attacker) {
    let body = format!(r#"{{"code":"{}"}}"#, "x".repeat(43));
    while attacker.goes_on() {
        attacker.call(&request("POST", "/aaep/v1/page/token", "", &body));
    }
}

fn outputs(attacker: Attacker) {
    talk(attacker, 16_000);
}

fn handoffs(mut attacker: Attacker) {
    let body = r#"{"type":"aaep:agent.handoff.requested","reason":"Too much.","target_kind":"human","summary_normal":"Somebody else, please."}"#;
    while attacker.goes_on() {
        let Some(session) = attacker.open() else { continue };
        for _ in 0..1000 {
            let path = format!("agent/sessions/{session}/events");
            if !attacker.goes_on() || attacker.post(&path, HOSTILE_AGENT, body).is_none() {
                break;
            }
        }
        end(&mut attacker, &session);
    }
}
