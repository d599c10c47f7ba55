//! Resident memory under all attacks at once: after everything is filled that can be, it is flat.

use std::time::{Duration, Instant};

use crate::server::{Attackers, Server};
use crate::victim::Victim;

/// What fills memory, if anything does.
const FILLING: [&str; 7] =
    ["sessions", "sessions-local", "subscriptions", "keys", "outputs", "unread", "questions"];

pub fn run(length: Duration) {
    let server = Server::start();
    let mut victim = Victim::new(server.address);
    let seconds = length.as_secs() + 5;
    let _attackers = FILLING.map(|name| Attackers::start(name, server.address, seconds));
    let begin = Instant::now();
    let mut samples = Vec::new();
    while begin.elapsed() < length {
        victim.confirm_for(Duration::from_secs(1));
        samples.push((
            begin.elapsed().as_secs_f64() / 60.0,
            server.resident() as f64 / (1 << 20) as f64,
        ));
    }
    let half = &samples[samples.len() / 2..];
    let most = samples.iter().map(|(_, mebibytes)| *mebibytes).fold(0.0, f64::max);
    println!(
        "Memory of the hub under {} attacks at once, over {:.1} minutes: {:.0} MiB at the half, {:.0} at the end, {most:.0} at most; slope of the second half {:+.2} MiB a minute",
        FILLING.len(),
        length.as_secs_f64() / 60.0,
        half[0].1,
        half[half.len() - 1].1,
        slope(half)
    );
}

/// The slope of the line that fits best.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let up: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let across: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    up / across
}
