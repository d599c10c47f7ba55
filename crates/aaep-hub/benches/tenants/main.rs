//! A quiet tenant's confirmations while another tenant does its worst: `cargo xtask bench tenants`.
//!
//! Hub and attackers are processes of their own, over loopback, with a journal on disk. Each attack is
//! measured three ways in one run: alone, with the attack on *another* hub of the same machine, and
//! with the attack on this one. The second shows what the attackers' own work costs two cores; what
//! the hub lets through is the difference to the third. Attackers run at the lowest priority, since
//! they would run elsewhere.
//!
//! One attack alone: `cargo bench -p aaep-hub --bench tenants -- sessions`. `memory` is the resident
//! memory under all of them at once, `--minutes 60` for an hour of it. `AAEP_BENCH_SECONDS` says how
//! long each of the others lasts.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, missing_docs)] // a benchmark
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // it stops at the first surprise
#![allow(dead_code)] // parts of what it shares with the other benchmark

/// As in the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod attacks;
mod memory;
#[path = "../hub/numbers.rs"]
mod numbers;
mod server;
mod victim;
#[path = "../hub/wire.rs"]
mod wire;

use std::time::Duration;

use attacks::{ATTACKS, Attack};
use numbers::{percentile, time};
use server::{Attackers, Server};
use victim::Victim;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve"] => server::serve(),
        ["attack", name, address, seconds] => attacks::run(name, address, seconds),
        ["memory"] => memory::run(Duration::from_secs(40)),
        ["memory", "--minutes", minutes] | ["--minutes", minutes] => {
            memory::run(Duration::from_secs(60 * minutes.parse::<u64>().expect("minutes")));
        }
        ref names => {
            let wanted = |attack: &&Attack| names.is_empty() || names.contains(&attack.name);
            measure(ATTACKS.iter().filter(wanted));
            if names.is_empty() {
                memory::run(Duration::from_secs(40));
            }
        }
    }
}

fn seconds() -> u64 {
    std::env::var("AAEP_BENCH_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

fn measure<'a>(attacks: impl Iterator<Item = &'a Attack>) {
    println!("A quiet tenant's confirmation, p50 and p99; wanted: p99 at most 3 times as long");
    for attack in attacks {
        // Hubs of its own for each, so that nothing is left of the one before.
        let (ours, other) = (Server::start(), Server::start());
        let mut victim = Victim::new(ours.address);
        victim.confirm_for(Duration::from_millis(500));
        let length = Duration::from_secs(seconds());
        let mut alone = victim.confirm_for(length);
        let mut beside = {
            let _attackers = Attackers::start(attack.name, other.address, seconds() + 1);
            victim.confirm_for(length)
        };
        let mut attacked = {
            let _attackers = Attackers::start(attack.name, ours.address, seconds() + 1);
            victim.confirm_for(length)
        };
        let tell = |took: &mut Vec<Duration>| {
            format!("{} {}", time(percentile(took, 0.5)), time(percentile(took, 0.99)))
        };
        let p99 = |took: &mut Vec<Duration>| percentile(took, 0.99).as_secs_f64();
        println!("{} ({}):", attack.name, attack.about);
        println!(
            "  alone {}; attack on another hub {}; on this one {} ({} confirmations)",
            tell(&mut alone),
            tell(&mut beside),
            tell(&mut attacked),
            attacked.len()
        );
        println!(
            "  p99 ratio {:.1} to alone, {:.1} to the attack on another hub",
            p99(&mut attacked) / p99(&mut alone),
            p99(&mut attacked) / p99(&mut beside)
        );
    }
}
