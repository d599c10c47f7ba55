//! One subscriber that reads nothing, among a hundred that do: what do the others notice?

use std::net::TcpStream;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::audience::Audience;
use crate::events::{listen_request, subscribe};
use crate::numbers::{median, percentile, rate, ratio, rounds, time};
use crate::server::{Server, Side};
use crate::wire::{call, connect, open, request};

const EARS: usize = 100;
const AGENTS: usize = 16;
const AHEAD: u64 = 64;
const CYCLES: u64 = 40;
const PER_SECOND: u32 = 100;

struct Hall {
    server: Server,
    audience: Audience,
    rates: Vec<f64>,
    p99s: Vec<Duration>,
}

impl Hall {
    fn new() -> Self {
        let server = Server::start(Side::Hub);
        let audience = Audience::ready(&server, EARS, AGENTS, 0);
        Self { server, audience, rates: Vec::new(), p99s: Vec::new() }
    }

    fn round(&mut self) {
        let heard = self.audience.heard();
        let took = self.audience.rush(CYCLES, AHEAD);
        self.rates.push((self.audience.heard() - heard) as f64 / took.as_secs_f64());
        self.p99s.push(percentile(&mut self.audience.stroll(12, PER_SECOND), 0.99));
    }

    /// How many subscriptions the hub gave up.
    fn given_up(&self) -> String {
        let mut stream = connect(self.server.address);
        let text = call(&mut stream, &request("GET", "/metrics", "", "")).body;
        let line = text.lines().find_map(|l| l.strip_prefix("aaep_subscriptions_ended_total "));
        line.unwrap_or_default().to_owned()
    }
}

/// A stream that is opened and never read, with little room in its own socket.
fn stall(server: &Server) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a socket");
    socket.connect(&server.address.into()).expect("the server listens");
    let mut stream = TcpStream::from(socket);
    let id = subscribe(&mut stream, 0);
    open(&mut stream, &listen_request(&id));
    stream
}

pub fn run() -> String {
    let (mut without, mut with) = (Hall::new(), Hall::new());
    let mut stalled = Vec::new();
    without.audience.rush(2, AHEAD);
    with.audience.rush(2, AHEAD);
    for _ in 0..rounds() {
        without.round();
        stalled.push(stall(&with.server));
        with.round();
    }
    println!("{EARS} streams, without and with one more that reads nothing:");
    for (name, hall) in [("without", &without), ("with", &with)] {
        let rates: Vec<String> = hall.rates.iter().map(|one| rate(*one)).collect();
        let p99s: Vec<String> = hall.p99s.iter().map(|one| time(*one)).collect();
        println!("  {name}: {}", rates.join(", "));
        println!("    p99 at {PER_SECOND} events/s: {}", p99s.join(", "));
    }
    println!("  stalled: {}, given up by the hub: {}", stalled.len(), with.given_up());
    let middle = |hall: &Hall| {
        let seconds: Vec<f64> = hall.p99s.iter().map(Duration::as_secs_f64).collect();
        Duration::from_secs_f64(median(&seconds))
    };
    format!(
        "stalled: {} with it, {} without, ratio {:.2} (medians); p99 {} with it, {} without (wanted: the same)",
        rate(median(&with.rates)),
        rate(median(&without.rates)),
        ratio(&with.rates, &without.rates),
        time(middle(&with)),
        time(middle(&without)),
    )
}
