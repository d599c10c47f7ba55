//! The whole way of a confirmation: the agent asks, the subscriber sees it on its stream and
//! answers, the agent's waiting call returns, and everybody is told.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use memchr::memmem;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::events::{
    ask_request, listen_request, open_session, reply_request, subscribe, wait_request,
};
use crate::numbers::{median, percentile, rate, ratio, rounds, time};
use crate::server::{Server, Side};
use crate::wire::{connect, member, open, request, take_answer};

/// Confirmations at once, in the second half.
const AT_ONCE: usize = 64;
const ALONE: u64 = 1000;
const TOGETHER: u64 = 100;
const PATIENCE: Duration = Duration::from_secs(60);

/// A kept connection, and what has come on it.
struct Line {
    stream: TcpStream,
    incoming: Vec<u8>,
}

impl Line {
    fn new(poll: &Poll, stream: std::net::TcpStream, token: usize) -> Self {
        stream.set_nonblocking(true).expect("a socket");
        let mut stream = TcpStream::from_std(stream);
        let registry = poll.registry();
        registry.register(&mut stream, Token(token), Interest::READABLE).expect("epoll");
        Self { stream, incoming: Vec::new() }
    }

    fn send(&mut self, request: &[u8]) {
        self.stream.write_all(request).expect("a request fits into the socket");
    }

    fn receive(&mut self, buffer: &mut [u8]) {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => panic!("the server hung up"),
                Ok(count) => self.incoming.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// One agent that asks again and again.
struct Asker {
    agent: Line,
    replier: Line,
    session: String,
    number: u64,
    asked_at: Instant,
    /// What is still to come: the answer to the reply, the decision, the notice to everybody.
    missing: u8,
    left: u64,
}

struct Dance {
    server: Server,
    poll: Poll,
    ear: Line,
    subscription: String,
    askers: Vec<Asker>,
    by_session: BTreeMap<String, usize>,
    buffer: Vec<u8>,
    took: Vec<Duration>,
}

impl Dance {
    fn new(side: Side) -> Self {
        let server = Server::start(side);
        let poll = Poll::new().expect("epoll");
        let mut stream = connect(server.address);
        let (subscription, listen) = match side {
            Side::Hub => {
                let id = subscribe(&mut stream, 0);
                (id.clone(), listen_request(&id))
            }
            Side::Bare => ("sub_1".to_owned(), request("GET", "/events", "", "")),
        };
        open(&mut stream, &listen);
        let ear = Line::new(&poll, stream, 0);
        let mut askers = Vec::new();
        // The hub looks whose process a new connection is, which takes a while where many run. So all
        // agents come first: a connection that says nothing for ten seconds is closed.
        let agents: Vec<_> = (0..AT_ONCE)
            .map(|number| {
                let mut agent = connect(server.address);
                let session = match side {
                    Side::Hub => open_session(&mut agent),
                    Side::Bare => format!("sess_{number}"),
                };
                (agent, session)
            })
            .collect();
        for (number, (agent, session)) in agents.into_iter().enumerate() {
            let agent = Line::new(&poll, agent, 1 + 2 * number);
            let replier = Line::new(&poll, connect(server.address), 2 + 2 * number);
            let asked_at = Instant::now();
            askers.push(Asker {
                agent,
                replier,
                session,
                number: 0,
                asked_at,
                missing: 0,
                left: 0,
            });
        }
        let sessions = askers.iter().map(|asker| asker.session.clone());
        let by_session = sessions.zip(0..).collect();
        let (buffer, took) = (vec![0; 65536], Vec::new());
        Self { server, poll, ear, subscription, askers, by_session, buffer, took }
    }

    /// Every one of so many askers asks so many times; how long it took, and how long each.
    fn round(&mut self, askers: usize, times: u64) -> (Duration, Vec<Duration>) {
        let start = Instant::now();
        self.took.clear();
        for number in 0..askers {
            self.askers[number].left = times;
            self.ask(number);
        }
        let mut ready = Events::with_capacity(256);
        while self.took.len() < askers * times as usize {
            self.poll.poll(&mut ready, Some(PATIENCE)).expect("epoll");
            assert!(!ready.is_empty(), "nothing has come for {PATIENCE:?}");
            for event in &ready {
                match event.token().0 {
                    0 => self.hear(),
                    odd if odd % 2 == 1 => self.hear_agent(odd / 2),
                    even => self.hear_replier(even / 2 - 1),
                }
            }
        }
        (start.elapsed(), std::mem::take(&mut self.took))
    }

    fn ask(&mut self, number: usize) {
        let asker = &mut self.askers[number];
        (asker.number, asker.left, asker.missing) = (asker.number + 1, asker.left - 1, 3);
        asker.asked_at = Instant::now();
        asker.agent.send(&ask_request(self.server.side, &asker.session, asker.number));
    }

    fn hear(&mut self) {
        self.ear.receive(&mut self.buffer);
        let incoming = std::mem::take(&mut self.ear.incoming);
        let mut rest = &incoming[..];
        while let Some(end) = memmem::find(rest, b"}\n\n") {
            let frame = String::from_utf8_lossy(&rest[..end]).into_owned();
            self.heard(&frame);
            rest = &rest[end + 3..];
        }
        self.ear.incoming = rest.to_vec();
    }

    fn heard(&mut self, frame: &str) {
        let side = self.server.side;
        if frame.contains("\"reply_token\":") {
            let number = self.by_session[member(frame, "session_id")];
            let reply = reply_request(side, &self.subscription, frame);
            self.askers[number].replier.send(&reply);
        } else if frame.contains("\"outcome\":\"") {
            let number = self.by_session[member(frame, "session_id")];
            assert_eq!(member(frame, "outcome"), "accepted");
            self.is_there(number);
        }
    }

    fn hear_agent(&mut self, number: usize) {
        let (side, asker) = (self.server.side, &mut self.askers[number]);
        asker.agent.receive(&mut self.buffer);
        while let Some(answer) = take_answer(&mut self.askers[number].agent.incoming) {
            match answer.status {
                201 => {
                    let wait = wait_request(side, member(&answer.body, "request_id"));
                    self.askers[number].agent.send(&wait);
                }
                200 => {
                    assert_eq!(member(&answer.body, "status"), "accepted");
                    self.is_there(number);
                }
                _ => panic!("{answer:?}"),
            }
        }
    }

    fn hear_replier(&mut self, number: usize) {
        let asker = &mut self.askers[number];
        asker.replier.receive(&mut self.buffer);
        while let Some(answer) = take_answer(&mut self.askers[number].replier.incoming) {
            assert_eq!(answer.status, 204, "{answer:?}");
            self.is_there(number);
        }
    }

    /// One of the three things that have to come has come.
    fn is_there(&mut self, number: usize) {
        let asker = &mut self.askers[number];
        asker.missing -= 1;
        if asker.missing == 0 {
            self.took.push(asker.asked_at.elapsed());
            if asker.left > 0 {
                self.ask(number);
            }
        }
    }
}

pub fn run() -> String {
    let mut dances = [Dance::new(Side::Hub), Dance::new(Side::Bare)];
    let mut alone = [Vec::new(), Vec::new()];
    let mut rates = [Vec::new(), Vec::new()];
    let mut costs = [Vec::new(), Vec::new()];
    for round in 0..=rounds() {
        for (at, dance) in dances.iter_mut().enumerate() {
            let (_, mut took) = dance.round(1, ALONE);
            let used = dance.server.processor_time();
            let (all, _) = dance.round(AT_ONCE, TOGETHER);
            let used = dance.server.processor_time() - used;
            if round > 0 {
                let count = (AT_ONCE as u64 * TOGETHER) as f64;
                alone[at].push(percentile(&mut took, 0.5));
                rates[at].push(count / all.as_secs_f64());
                costs[at].push(used.as_secs_f64() * 1e6 / count);
            }
        }
    }
    println!("confirmations, one at a time and {AT_ONCE} at once:");
    for (at, dance) in dances.iter().enumerate() {
        let p50s: Vec<String> = alone[at].iter().map(|one| time(*one)).collect();
        let all: Vec<String> = rates[at].iter().map(|one| rate(*one)).collect();
        println!("  {}: p50 alone {}", dance.server.side.name(), p50s.join(", "));
        println!("    {AT_ONCE} at once: {}", all.join(", "));
        println!("    processor time for each: {:.0} µs (median)", median(&costs[at]));
    }
    let seconds = |at: usize| -> Vec<f64> { alone[at].iter().map(Duration::as_secs_f64).collect() };
    let (p50, bare_p50) = (seconds(0), seconds(1));
    let middle = |values: &[f64]| time(Duration::from_secs_f64(median(values)));
    format!(
        "confirmation: p50 hub {}, bare axum {}, ratio {:.2} (medians; wanted: at most 1.1)\n\
         confirmations, {AT_ONCE} at once: hub {}, bare axum {}, ratio {:.2} (medians; wanted 0.85)\n\
         confirmations, {AT_ONCE} at once: processor time {:.2} times bare axum's (wanted: at most 1.3)",
        middle(&p50),
        middle(&bare_p50),
        ratio(&p50, &bare_p50),
        rate(median(&rates[0])),
        rate(median(&rates[1])),
        ratio(&rates[0], &rates[1]),
        ratio(&costs[0], &costs[1]),
    )
}
