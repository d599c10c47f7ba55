//! Many connections that are silent most of the time: what each of them costs in memory.

use crate::audience::Audience;
use crate::server::{Server, Side};

const CONNECTIONS: usize = 10_000;

/// Bytes for each connection: silent, and after everybody has heard something.
fn measure(side: Side) -> (f64, f64) {
    let server = Server::start(side);
    // What the first connections bring about once, allocator and runtime, is not theirs.
    drop(Audience::ready(&server, 100, 1, 600));
    let before = server.resident();
    let each = |now: u64| now.saturating_sub(before) as f64 / CONNECTIONS as f64;
    let mut audience = Audience::new(&server, CONNECTIONS, 1, 600);
    let silent = each(server.resident());
    audience.calibrate();
    audience.rush(2, 8);
    (silent, each(server.resident()))
}

pub fn run() -> String {
    println!("{CONNECTIONS} connections, each with a subscription and its stream:");
    let (bare_silent, bare_used) = measure(Side::Bare);
    let (silent, used) = measure(Side::Hub);
    let kib = |bytes: f64| format!("{:.1} KiB", bytes / 1024.0);
    println!("  silent so far: hub {}, bare axum {}", kib(silent), kib(bare_silent));
    println!("  after some events: hub {}, bare axum {}", kib(used), kib(bare_used));
    format!(
        "held: {CONNECTIONS} connections, hub {} each silent and {} after events, bare axum {} and {} (wanted: at most 4 and 8 KiB)",
        kib(silent),
        kib(used),
        kib(bare_silent),
        kib(bare_used)
    )
}
