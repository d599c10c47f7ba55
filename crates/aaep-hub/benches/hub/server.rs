//! A server as a process of its own: started, watched, ended.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::{bare, ours};

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Hub,
    Bare,
}

impl Side {
    pub fn named(name: &str) -> Self {
        if name == "hub" { Self::Hub } else { Self::Bare }
    }

    pub fn name(self) -> &'static str {
        if self == Self::Hub { "hub" } else { "bare axum" }
    }
}

/// What the child process does: serve until its input ends, so that it never outlives the load.
pub fn serve(side: Side) {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_line(&mut String::new());
        std::process::exit(0);
    });
    // As `aaep hub` does, and as axum's own examples do.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        match side {
            Side::Hub => ours::serve().await,
            Side::Bare => bare::serve().await,
        }
    });
}

/// A running server; it ends when this is dropped.
pub struct Server {
    child: Child,
    pub side: Side,
    pub address: SocketAddr,
    /// Where it speaks gRPC, if it does.
    pub grpc: Option<String>,
}

impl Server {
    pub fn start(side: Side) -> Self {
        let program = std::env::current_exe().expect("a program");
        // A profiler, say.
        let with = std::env::var("AAEP_BENCH_WITH").unwrap_or_default();
        let mut words = with.split_whitespace();
        let mut command = match words.next() {
            Some(first) => Command::new(first),
            None => Command::new(&program),
        };
        if !with.is_empty() {
            command.args(words).arg(&program);
        }
        command.args(["serve", if side == Side::Hub { "hub" } else { "bare" }]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let mut line = String::new();
        let out = child.stdout.take().expect("its words");
        BufReader::new(out).read_line(&mut line).expect("its address");
        let mut words = line.split_whitespace();
        let address = words.next().and_then(|word| word.parse().ok()).expect("an address");
        Self { child, side, address, grpc: words.next().map(str::to_owned) }
    }

    /// Processor time so far, of all threads.
    pub fn processor_time(&self) -> Duration {
        let stat = self.read("stat");
        // After the name in brackets: user and system time are the 12th and 13th, in ticks.
        let after = stat.rsplit_once(')').expect("a name").1;
        let ticks: u64 = after
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(|t| t.parse::<u64>().expect("ticks"))
            .sum();
        Duration::from_millis(ticks * 10)
    }

    /// Bytes in memory.
    pub fn resident(&self) -> u64 {
        let status = self.read("status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).expect("/proc")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
