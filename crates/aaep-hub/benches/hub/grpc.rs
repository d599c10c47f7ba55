//! gRPC beside HTTP, at the same hub: one event for a thousand streams, and a whole confirmation.
//!
//! The thousand are raw sockets that count, on both sides. The confirmation is done by our own clients:
//! the person hears over SSE and posts, or hears from `Listen` and calls `Reply`; the agent speaks HTTP.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use aaep_transport::client::{HttpClient, Options, Token};
use aaep_transport::grpc::{GrpcClient, Messages};

use crate::audience::Audience;
use crate::events;
use crate::numbers::{median, percentile, rate, ratio, rounds, time};
use crate::ours::{AGENT, LISTENER};
use crate::server::{Server, Side};
use crate::wire::{connect, member};

const EARS: usize = 1000;
const AGENTS: usize = 16;
const AHEAD: u64 = 64;
const CYCLES: u64 = 4;
const CONFIRMATIONS: usize = 300;

/// How an event begins; nothing inside of one does.
pub const BEGIN: &[u8; 3] = b"{\"@";

/// A PING of HTTP/2.
pub const PING: [u8; 17] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// A raw connection that hears a subscription of this kind of terms over gRPC, with windows that are
/// never full.
pub fn listen(server: &Server, terms: usize) -> TcpStream {
    let id = events::subscribe(&mut connect(server.address), terms);
    let url = server.grpc.as_deref().expect("gRPC");
    let address = url.trim_start_matches("grpc://").parse().expect("an address");
    let mut stream = connect(address);
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS: INITIAL_WINDOW_SIZE; then WINDOW_UPDATE for the connection.
    frame(&mut out, 4, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    frame(&mut out, 8, 0, 0, &0x7fff_0000_u32.to_be_bytes());
    let mut head = Vec::new();
    let bearer = format!("Bearer {LISTENER}");
    for (name, value) in [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/aaep.v1.AaepService/Listen"),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("authorization", &bearer),
    ] {
        // HPACK: a literal, not indexed, with a new name.
        head.push(0);
        for text in [name, value] {
            head.push(u8::try_from(text.len()).expect("short"));
            head.extend_from_slice(text.as_bytes());
        }
    }
    frame(&mut out, 1, 4, 1, &head);
    let length = u8::try_from(id.len()).expect("short");
    let mut call = vec![0, 0, 0, 0, length + 2, 0x0a, length];
    call.extend_from_slice(id.as_bytes());
    frame(&mut out, 0, 1, 1, &call);
    // Our answer to the server's SETTINGS.
    frame(&mut out, 4, 1, 0, &[]);
    stream.write_all(&out).expect("room for a call");
    stream
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

pub fn run() -> String {
    format!("{}\n{}", fan_out(), confirm())
}

fn fan_out() -> String {
    println!("gRPC beside SSE, {EARS} streams, {AGENTS} agents:");
    let servers = [Server::start(Side::Hub), Server::start(Side::Hub)];
    let mut ours = [
        Audience::ready_over_grpc(&servers[0], EARS, AGENTS),
        Audience::ready(&servers[1], EARS, AGENTS, 0),
    ];
    let (mut rates, mut costs) = ([vec![], vec![]], [vec![], vec![]]);
    for audience in &mut ours {
        audience.rush(1, AHEAD);
    }
    for _ in 0..rounds() {
        for (at, audience) in ours.iter_mut().enumerate() {
            let (used, heard) = (servers[at].processor_time(), audience.heard());
            let took = audience.rush(CYCLES, AHEAD);
            let messages = (audience.heard() - heard) as f64;
            let used = servers[at].processor_time() - used;
            rates[at].push(messages / took.as_secs_f64());
            costs[at].push(used.as_secs_f64() * 1e6 / messages);
        }
    }
    println!(
        "  processor time of the hub for a message: gRPC {:.2} µs, SSE {:.2} µs (medians)",
        median(&costs[0]),
        median(&costs[1])
    );
    format!(
        "gRPC fan-out: gRPC {}, SSE {}, ratio {:.2} (medians; wanted 0.7)",
        rate(median(&rates[0])),
        rate(median(&rates[1])),
        ratio(&rates[0], &rates[1]),
    )
}

/// How a person hears and answers.
enum Ear {
    Http(HttpClient, Box<aaep_transport::client::EventStream>),
    Grpc(Box<GrpcClient>, Messages),
}

impl Ear {
    /// The next event whose text has this in it.
    async fn hear(&mut self, wanted: &str) -> String {
        loop {
            let text = match self {
                Self::Http(_, stream) => {
                    stream.next().await.expect("a stream").expect("an event").data
                }
                Self::Grpc(_, heard) => {
                    let bytes = heard.next().await.expect("a call").expect("an event");
                    String::from_utf8(bytes.to_vec()).expect("text")
                }
            };
            if text.contains(wanted) {
                return text;
            }
        }
    }

    async fn reply(&mut self, reply: String) {
        match self {
            Self::Http(client, _) => drop(client.post("replies", reply).await.expect("an answer")),
            Self::Grpc(client, _) => drop(client.reply(reply).await.expect("an answer")),
        }
    }
}

struct Talk {
    agent: HttpClient,
    session: String,
    ear: Ear,
    subscription: String,
}

fn options(token: &str) -> Options {
    Options { token: Some(Token::parse(token).expect("a token")), ..Options::default() }
}

const REQUEST: &str = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"load","capabilities":{"supports_confirmation_reply":true}}"#;

impl Talk {
    async fn begin(server: &Server, over_grpc: bool) -> Self {
        let base = format!("http://{}/aaep/v1", server.address);
        let person = HttpClient::new(&base, options(LISTENER)).expect("a client");
        let (ear, subscription) = if over_grpc {
            let url = server.grpc.as_deref().expect("gRPC");
            let mut client = GrpcClient::connect(url, options(LISTENER)).await.expect("a hub");
            let answer = client.open(REQUEST).await.expect("an answer");
            let answer = String::from_utf8(answer.to_vec()).expect("text");
            let id = member(&answer, "subscription_id").to_owned();
            let heard = client.listen(Some(&id), None).await.expect("a stream");
            (Ear::Grpc(Box::new(client), heard), id)
        } else {
            let answer = person.post("subscriptions", REQUEST).await.expect("an answer");
            let answer = String::from_utf8(answer.body.to_vec()).expect("text");
            let id = member(&answer, "subscription_id").to_owned();
            let path = format!("events?subscription_id={id}");
            let stream = person.events(&path, None).await.expect("a stream");
            (Ear::Http(person, Box::new(stream)), id)
        };
        let session = events::open_session(&mut connect(server.address));
        let agent = HttpClient::new(&base, options(AGENT)).expect("a client");
        Self { agent, session, ear, subscription }
    }

    /// From the question to its answer at the agent.
    async fn confirm(&mut self, number: usize) -> Duration {
        let asked = format!(
            r#"{{"kind":"confirmation","tool":"send_mail","arguments":{{"letter":{number}}},"action":"Send the letter.","consequence":"It is gone at once.","timeout_seconds":300,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"Send the letter?"}}"#
        );
        let begun = Instant::now();
        let path = format!("agent/sessions/{}/requests", self.session);
        let answer = self.agent.post(&path, asked).await.expect("an answer");
        let answer = String::from_utf8(answer.body.to_vec()).expect("text");
        let id = member(&answer, "request_id").to_owned();
        let question = self.ear.hear("\"reply_token\"").await;
        let (token, stamp) = (member(&question, "reply_token"), member(&question, "timestamp"));
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{}","timestamp":"{stamp}"}}"#,
            self.subscription
        );
        self.ear.reply(reply).await;
        let path = format!("agent/requests/{id}?wait=60");
        let decided = self.agent.get(&path).await.expect("an answer");
        assert!(String::from_utf8_lossy(&decided.body).contains("accepted"), "{decided:?}");
        begun.elapsed()
    }
}

fn confirm() -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let servers = [Server::start(Side::Hub), Server::start(Side::Hub)];
        let mut talks =
            [Talk::begin(&servers[0], true).await, Talk::begin(&servers[1], false).await];
        let (mut middles, mut number) = ([vec![], vec![]], 0);
        for round in 0..=rounds() {
            for (at, talk) in talks.iter_mut().enumerate() {
                let mut took = Vec::new();
                for _ in 0..CONFIRMATIONS {
                    number += 1;
                    took.push(talk.confirm(number).await);
                }
                // The first round warms up.
                if round > 0 {
                    middles[at].push(percentile(&mut took, 0.5).as_secs_f64());
                }
            }
        }
        let [grpc, http] = &middles;
        format!(
            "gRPC confirmation: p50 gRPC {}, HTTP {}, ratio {:.2} (medians; wanted at most 1.3)",
            time(Duration::from_secs_f64(median(grpc))),
            time(Duration::from_secs_f64(median(http))),
            ratio(grpc, http),
        )
    })
}
