//! How soon `aaep listen` says the first words of an event, and what it costs to listen for long:
//! `cargo xtask bench listen`. The real hub and the real command, on loopback. Beside it, a bare
//! client that only takes the bytes of the same events.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a benchmark
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // it runs programs and clocks

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aaep_transport::client::{HttpClient, Options, SessionSecret};
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Events whose way is timed, and requests.
const TIMED: usize = 300;

/// Events that a listener hears for the measure of memory.
const EVENTS: usize = 100_000;

/// A process that ends with the benchmark, and its lines with the moment at which they came.
struct Process {
    child: Child,
    lines: UnboundedReceiver<(Instant, String)>,
}

impl Process {
    fn start(arguments: &[&str], home: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.args(arguments).env_clear().env("HOME", home);
        command.env("AAEP_DEVELOPMENT__LOCAL_REPLIES", "true").env("AAEP_LOG__LEVEL", "error");
        command.env("AAEP_UNIX_SOCKET__ENABLED", "false");
        command.env("AAEP_LIMITS__PROMPTS_PER_WINDOW", "1000000");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (say, lines) = unbounded_channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = say.send((Instant::now(), line));
            }
        });
        Self { child, lines }
    }

    async fn line(&mut self, wanted: &str) -> (Instant, String) {
        loop {
            let line = tokio::time::timeout(Duration::from_secs(60), self.lines.recv()).await;
            let (at, line) = line.expect(wanted).expect(wanted);
            if line.contains(wanted) {
                return (at, line);
            }
        }
    }

    /// Kilobytes of memory that are its own.
    fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The middle and the slowest hundredth, in milliseconds.
fn summary(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    format!("p50 {:.2} ms, p99 {:.2} ms", at(0.5), at(0.99))
}

struct Agent {
    client: HttpClient,
    session: String,
}

impl Agent {
    async fn open(base: &str) -> Self {
        let session_secret = Some(SessionSecret::generate().unwrap());
        let options = Options { session_secret, ..Options::default() };
        let client = HttpClient::new(base, options).unwrap();
        let opening = json!({ "producer": { "agent_id": "bench" }, "summary_normal": "Begins." });
        let answer = client.post("agent/sessions", opening.to_string()).await.unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        Self { client, session: body["session_id"].as_str().unwrap().to_owned() }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let path = format!("agent/sessions/{}/{path}", self.session);
        let answer = self.client.post(&path, body.to_string()).await.unwrap();
        assert!(answer.status.is_success(), "{answer:?}");
        serde_json::from_slice(&answer.body).unwrap()
    }

    async fn event(&self, words: &str) {
        let progress = json!({ "description": words });
        let body = json!({ "type": "aaep:agent.progress.updated", "progress": progress,
            "summary_normal": words });
        self.post("events", body).await;
    }

    async fn text(&self, chunk: &str, position: usize, complete: bool) {
        let body = json!({ "type": "aaep:agent.output.streaming", "output_id": "out_1",
            "chunk": chunk, "position": position, "complete": complete, "coalesce_hint": "sentence" });
        self.post("events", body).await;
    }
}

/// From an event to its first words, and beside it to its bytes at a client that does nothing.
async fn events(base: &str, listener: &mut Process) {
    let agent = Agent::open(base).await;
    let client = HttpClient::new(base, Options::default()).unwrap();
    let mut bare = client.events("events", None).await.unwrap();
    let (mut words, mut bytes) = (Vec::new(), Vec::new());
    for number in 0..TIMED {
        let mark = format!("Mark {number} ends.");
        let begun = Instant::now();
        let heard = async {
            loop {
                let frame = bare.next().await.unwrap().unwrap();
                if frame.data.contains(&mark) {
                    return begun.elapsed();
                }
            }
        };
        let ((), took, (at, _)) = tokio::join!(agent.event(&mark), heard, listener.line(&mark));
        bytes.push(took);
        words.push(at - begun);
        tokio::time::sleep(Duration::from_millis(15)).await;
    }
    println!("From an event to its words: {} (wanted: 100 ms).", summary(words));
    println!("From an event to its bytes at a bare client: {}.", summary(bytes));
}

/// From a request to its first words.
async fn requests(base: &str, listener: &mut Process) {
    let mut words = Vec::new();
    for number in 0..TIMED / 10 {
        let agent = Agent::open(base).await;
        let mark = format!("Open door {number}.");
        let body = json!({ "kind": "confirmation", "tool": "door.open",
            "arguments": { "door": number }, "action": mark, "consequence": "It is open.",
            "risk_level": "low", "reversibility": "reversible", "timeout_seconds": 300,
            "default_decision": "reject", "summary_normal": mark });
        let begun = Instant::now();
        let (_, (at, _)) = tokio::join!(agent.post("requests", body), listener.line(&mark));
        words.push(at - begun);
    }
    println!("From a request to its words: {} (wanted: 100 ms).", summary(words));
}

/// Memory after so many events, half of them streamed text.
async fn memory(base: &str, home: &str) {
    let mut listener = Process::start(&["listen", base, "--output", "end"], home);
    listener.line("Connected").await;
    let mut agent = Agent::open(base).await;
    let mut measured = Vec::new();
    let mut position = 0;
    for number in 1..=EVENTS {
        let words = format!("Number {number} has some words. ");
        if number % 1000 == 0 {
            agent.text(&words, position, true).await;
            let done = json!({ "type": "aaep:agent.session.completed", "summary_normal": "Ends." });
            agent.post("events", done).await;
            (agent, position) = (Agent::open(base).await, 0);
        } else if number % 2 == 0 {
            agent.text(&words, position, false).await;
            position += words.chars().count();
        } else {
            agent.event(&words).await;
        }
        if number % (EVENTS / 10) == 0 {
            measured.push(listener.memory());
        }
    }
    let shown: Vec<String> = measured.iter().map(|kilobytes| kilobytes.to_string()).collect();
    println!("Memory after each tenth of {EVENTS} events, in kB: {}.", shown.join(", "));
    let (early, late) = (measured[1], measured[measured.len() - 1]);
    println!(
        "From the second tenth to the last: {:+.1} percent (wanted: flat).",
        (late as f64 / early as f64 - 1.0) * 100.0
    );
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().to_str().unwrap();
        let mut hub = Process::start(&["hub", "--ephemeral", "--listen", "127.0.0.1:0"], home);
        let (_, line) = hub.line("Listening: ").await;
        let base = line.trim_start_matches("Listening: ").to_owned();
        hub.line("Ready.").await;
        let mut listener = Process::start(&["listen", &base], home);
        listener.line("Connected").await;
        events(&base, &mut listener).await;
        requests(&base, &mut listener).await;
        drop(listener);
        memory(&base, home).await;
    });
}
