//! One event for a thousand subscriptions of eight shapes.

use std::time::Duration;

use crate::audience::Audience;
use crate::numbers::{median, percentile, rate, ratio, rounds, time};
use crate::server::{Server, Side};

const EARS: usize = 1000;
/// Agents that talk at once, each an event at a time.
const AGENTS: usize = 16;
/// Events that may be on their way.
const AHEAD: u64 = 64;
const CYCLES: u64 = 8;
const PER_SECOND: u32 = 20;

struct Contender {
    server: Server,
    audience: Audience,
    rates: Vec<f64>,
    /// Processor time of the server for each message, in microseconds.
    costs: Vec<f64>,
    /// Messages that came at once.
    batches: Vec<f64>,
    delays: Vec<Duration>,
}

impl Contender {
    fn new(side: Side, bare_bytes: usize) -> Self {
        let server = Server::start(side);
        let audience = Audience::ready(&server, EARS, AGENTS, bare_bytes);
        let (rates, costs, batches, delays) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { server, audience, rates, costs, batches, delays }
    }

    fn round(&mut self) {
        let (used, heard) = (self.server.processor_time(), self.audience.heard());
        let reads = self.audience.reads();
        let took = self.audience.rush(CYCLES, AHEAD);
        let messages = (self.audience.heard() - heard) as f64;
        let used = self.server.processor_time() - used;
        self.batches.push(messages / (self.audience.reads() - reads) as f64);
        self.rates.push(messages / took.as_secs_f64());
        self.costs.push(used.as_secs_f64() * 1e6 / messages);
    }
}

pub fn run() -> String {
    let mut hub = Contender::new(Side::Hub, 0);
    let bytes = hub.audience.mean_bytes() as usize;
    let mut bare = Contender::new(Side::Bare, bytes - 8); // the rest is the frame of a chunk
    println!("fan-out to {EARS} streams, {AGENTS} agents, at most {AHEAD} events on their way:");
    let sizes = [&hub, &bare].map(|one| one.audience.mean_bytes());
    println!("  bytes of a message on the wire: hub {}, bare axum {}", sizes[0], sizes[1]);
    hub.audience.rush(1, AHEAD);
    bare.audience.rush(1, AHEAD);
    for _ in 0..rounds() {
        hub.round();
        bare.round();
    }
    for _ in 0..3 {
        for one in [&mut hub, &mut bare] {
            one.delays.extend(one.audience.stroll(4, PER_SECOND));
        }
    }
    for one in [&mut hub, &mut bare] {
        let all: Vec<String> = one.rates.iter().map(|one| rate(*one)).collect();
        println!("  {}: {}", one.server.side.name(), all.join(", "));
        println!(
            "    medians: processor time for a message {:.2} µs, messages in a read {:.1}; at {PER_SECOND} events/s: p50 {}, p99 {}",
            median(&one.costs),
            median(&one.batches),
            time(percentile(&mut one.delays, 0.5)),
            time(percentile(&mut one.delays, 0.99)),
        );
    }
    format!(
        "fan-out: hub {}, bare axum {}, ratio {:.2} (medians; wanted 0.85); processor time {:.2} times (wanted: at most 1.15)",
        rate(median(&hub.rates)),
        rate(median(&bare.rates)),
        ratio(&hub.rates, &bare.rates),
        ratio(&hub.costs, &bare.costs),
    )
}
