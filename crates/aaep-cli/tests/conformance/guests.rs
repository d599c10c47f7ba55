//! The published producers and subscribers before our suite. They are installed by `cargo xtask test
//! --only guests`, which also says where: `AAEP_GUESTS`. With `AAEP_REPORTS=write` their reports are kept
//! in `docs/conformance`, beside ours.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{conformance, keep, kept, lasting, writes};

fn guest(program: &str) -> PathBuf {
    let home = std::env::var_os("AAEP_GUESTS").expect("AAEP_GUESTS names their environment");
    Path::new(&home).join("bin").join(program)
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Keeps a report, or finds that one is kept. They are not compared: the producer plays a model that says
/// what comes to its mind.
fn look(name: &str, text: &str) {
    if writes() {
        return keep(name, text);
    }
    let path = kept().join(format!("{name}.txt"));
    assert!(
        path.is_file(),
        "no report is kept in {}. Keep it with AAEP_REPORTS=write",
        path.display()
    );
}

#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn the_published_producer_is_not_granted_level_2() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(guest("aaep-minimal-producer"));
    command.args(["--log-level", "ERROR", "--port", &port.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _producer = Running(command.spawn().unwrap());
    let until = Instant::now() + Duration::from_secs(30);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "the published producer does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let url = format!("http://127.0.0.1:{port}");
    let output = conformance(
        "producer",
        &[
            &url,
            "--level",
            "3",
            "--start",
            "sessions",
            "--patience",
            "3",
            "--text",
            "confirm=transfer 50 to Ann",
            "--text",
            "short=transfer 50 to Ann",
            "--text",
            "withdraw=transfer 50 to Ann",
        ],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    // Its pretended model asks for consent once at most, so most of level 2 is not exercised.
    assert!(text.contains("failed: malformed:") && text.contains("failed: handshake:"), "{text}");
    assert_ne!(output.status.code(), Some(0), "{text}");
    look("published-minimal-producer", &lasting(&text, &url, "aaep-minimal-producer 1.0.0"));
}

#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn the_published_listener_is_not_granted_level_3() {
    let program = guest("aaep-listen");
    let program = program.to_str().unwrap();
    let command = ["--", "env", "PYTHONUNBUFFERED=1", program, "--no-color", "--endpoint", "{url}"];
    let shown = command[1..].join(" ");
    let mut all = vec!["http://127.0.0.1:0", "--level", "3", "--patience", "3"];
    all.extend(["--key", "accept=y", "--key", "reject=n", "--key", "answer={text}"]);
    all.extend(command);
    let output = conformance("subscriber", &all);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_ne!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("failed: handshake:"), "{text}");
    look("published-listen", &lasting(&text, &shown, "aaep-listen 1.0.0 (PyPI)"));
}
