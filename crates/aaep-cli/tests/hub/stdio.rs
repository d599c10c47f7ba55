//! `aaep stdio`: speaks for a hub over standard input and output, and is nobody of its own.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::presence::{self, careful};
use crate::support::*;

/// A command of `aaep`, spoken with by line.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(arguments: &[&str], home: &std::path::Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_aaep"))
            .args(arguments)
            .env_clear()
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, out) = (child.stdin.take(), child.stdout.take().unwrap());
        Self { child, input, lines: BufReader::new(out).lines() }
    }

    fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// The next line like this.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.next().expect("it says more").unwrap();
            let said: Value = serde_json::from_str(&line).expect(&line);
            if wanted(&said) {
                return said;
            }
        }
    }

    /// Says nothing more, and waits for its end.
    fn ended(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// covers: W12, I30
#[cfg(target_os = "linux")]
#[test]
fn a_question_is_heard_through_it_and_the_persons_yes_counts_and_the_agents_does_not() {
    // The control: the same reply counts where a hub is told that it may.
    let hub = Hub::start(Setup::default());
    let mut agent = presence::Program::agent(&hub, "", "stdio");
    assert_eq!(agent.line(), "answered subscription.accepted");
    assert_eq!(agent.status(0), "accepted");

    let hub = Hub::start(careful(Setup::default()));
    // Of two programs that one other has started, the later one could answer for the earlier one.
    let stdio =
        format!("stdio:'{}' stdio 'unix:{}'", env!("CARGO_BIN_EXE_aaep"), hub.socket().display());
    let mut person = Program::start(&["listen", &stdio, "--json"], hub.home());
    person.until(|said| said["happening"] == "connected");
    let mut agent = presence::Program::agent(&hub, "", "stdio");
    assert_eq!(agent.line(), "answered subscription.accepted");
    assert_eq!(agent.status(0), "pending");
    let asked = person.until(|said| said["happening"] == "asked");
    assert_eq!(asked["action"], "Delete old.txt", "{asked}");
    person.send(
        &json!({ "request": asked["request"], "answer": "accept", "certain": true }).to_string(),
    );
    assert_eq!(agent.status(30), "accepted");
    let settled = person.until(|said| said["happening"] == "settled");
    assert_eq!(settled["outcome"], "accepted", "{settled}");
    person.send("quit");
    assert_eq!(person.ended(), Some(0));
}

// covers: W12, D5
#[test]
fn a_line_that_is_wrong_is_answered_with_an_error_and_the_link_goes_on() {
    let hub = Hub::start(Setup::default());
    let address = format!("unix:{}", hub.socket().display());
    let mut program = Program::start(&["stdio", &address], hub.home());
    for (line, code) in [
        ("no JSON", -32700),
        ("[]", -32600),
        (r#"{"jsonrpc":"1.0","method":"aaep.ping","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","method":"aaep.nothing","id":2}"#, -32601),
        (r#"{"jsonrpc":"2.0","method":"aaep.subscribe","id":3,"params":[]}"#, -32602),
    ] {
        program.send(line);
        let answer = program.until(|_| true);
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    let asks = json!({ "jsonrpc": "2.0", "id": "four", "method": "aaep.subscribe",
        "params": serde_json::from_str::<Value>(&request(everything())).unwrap() });
    program.send(&asks.to_string());
    let answer = program.until(|said| said["id"] == "four");
    assert_eq!(answer["result"]["type"], "subscription.accepted", "{answer}");
    run(async {
        hub.local_agent().open().await;
    });
    let started = |said: &Value| said["params"]["type"] == "aaep:agent.session.started";
    assert_eq!(program.until(started)["method"], "aaep.event");
    assert_eq!(program.ended(), Some(0), "it ends when its user does");
}

// covers: W12
#[test]
fn without_a_hub_it_says_so_and_ends_with_2() {
    let home = tempfile::tempdir().unwrap();
    let nowhere = format!("unix:{}", home.path().join("nobody.sock").display());
    for (arguments, said) in [
        (&["stdio", nowhere.as_str()][..], "The hub cannot be reached"),
        (&["stdio", nowhere.as_str(), "http://127.0.0.1:1"], "Name one hub"),
        (&["stdio", "nonsense"], "no address of a hub"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.args(arguments).env_clear().env("HOME", home.path()).stdin(Stdio::null());
        let output = command.output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
