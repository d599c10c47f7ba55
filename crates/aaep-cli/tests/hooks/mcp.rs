//! `aaep mcp`: a server behind it, a client before it, a real hub beside it.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout};

use super::*;

/// A server that writes down every line that it gets, and answers what has an id.
const SERVER: &str = r#"
import json, sys
seen = open(sys.argv[1], "ab", buffering=0)
for line in sys.stdin.buffer:
    seen.write(line)
    message = json.loads(line)
    if message.get("method") == "exit": sys.exit(3)
    if "id" not in message: continue
    result = {"content": [{"type": "text", "text": "done"}]}
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "look", "annotations": {"readOnlyHint": True}}, {"name": "wipe"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

pub(super) struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: Lines<BufReader<ChildStdout>>,
    seen: PathBuf,
}

impl Client {
    pub(super) fn start(home: &Path, options: &[&str]) -> Self {
        let seen = home.join("seen.jsonl");
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command
            .args(["mcp", "--name", "files"])
            .args(options)
            .args(["--", "python3", "-c", SERVER])
            .arg(&seen);
        command.env_clear().env("HOME", home).env("XDG_RUNTIME_DIR", home.join("run"));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        Self { child, to, from, seen }
    }

    pub(super) fn say(&mut self, line: &str) {
        self.to.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn call(&mut self, id: Value, tool: &str) -> String {
        let line = format!(
            r#"{{"jsonrpc":"2.0", "id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"path": "a.txt"}}}}}}"#
        );
        self.say(&line);
        line
    }

    pub(super) fn hear(&mut self) -> Value {
        serde_json::from_str(&self.from.next().unwrap().unwrap()).unwrap()
    }

    /// Says something harmless, and hears nothing before its answer.
    fn ping(&mut self) {
        self.say(r#"{"jsonrpc":"2.0","id":"ping","method":"ping"}"#);
        assert_eq!(self.hear()["id"], "ping");
    }

    pub(super) fn seen(&self) -> String {
        std::fs::read_to_string(&self.seen).unwrap_or_default()
    }

    pub(super) fn end(mut self) -> i32 {
        drop(self.to.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

// covers: T27, C1
#[test]
fn calls_of_tools_wait_and_everything_else_passes_byte_for_byte() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut client = Client::start(hub.home(), &[]);
        let odd = r#"{ "jsonrpc" : "2.0",  "id":0, "method":"x/odd", "params":{"n":1.50,"big":2227777777727777777769} }"#;
        client.say(odd);
        assert_eq!(client.hear()["id"], 0);
        client.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        client.hear();
        let before = client.seen();
        assert!(before.starts_with(&format!("{odd}\n")), "{before}");

        let yes = client.call(json!("a"), "wipe");
        let asked = ear.event("awaiting.confirmation").await;
        assert_eq!(
            (&asked["action"], &asked["risk_level"]),
            (&json!("Use wipe of files."), &json!("high"))
        );
        client.ping();
        assert!(!client.seen().contains("tools/call"), "{}", client.seen());
        ear.decide(&asked, "accept").await;
        let answer = client.hear();
        assert_eq!((&answer["id"], answer.pointer("/result/isError")), (&json!("a"), None));
        assert!(client.seen().ends_with(&format!("{yes}\n")), "{}", client.seen());
        ear.event("tool.invoked").await;
        assert_eq!(ear.event("tool.completed").await["status"], "success");

        client.call(json!(7), "look");
        let asked = ear.event("awaiting.confirmation").await;
        // What the server says of it changes the words, not whether it is asked.
        assert_eq!(asked["risk_level"], "medium");
        ear.decide(&asked, "reject").await;
        let answer = client.hear();
        assert_eq!(
            (&answer["id"], answer.pointer("/result/isError")),
            (&json!(7), Some(&json!(true)))
        );
        assert!(answer.to_string().contains("The person said no."), "{answer}");
        client.ping();
        assert!(!client.seen().contains("look"), "{}", client.seen());
        assert_eq!(client.end(), 0);
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

#[test]
fn a_call_that_the_client_gives_up_is_withdrawn_and_never_reaches_the_server() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut client = Client::start(hub.home(), &[]);
        client.call(json!(1), "wipe");
        ear.event("awaiting.confirmation").await;
        client.say(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        );
        let settled = ear.event("state.changed").await;
        assert!(settled.to_string().contains("cancelled"), "{settled}");
        client.ping();
        assert!(!client.seen().contains("wipe") && !client.seen().contains("cancelled"));
        // The same id may come again.
        client.call(json!(1), "wipe");
        let asked = ear.event("awaiting.confirmation").await;
        ear.decide(&asked, "accept").await;
        assert_eq!(client.hear()["id"], 1);
        assert_eq!(client.end(), 0);
    });
}

#[test]
fn what_can_be_read_in_two_ways_is_not_passed_on() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut client = Client::start(hub.home(), &[]);
        for (line, id) in [
            ("garbage", Value::Null),
            (r#"{"jsonrpc":"2.0","#, Value::Null),
            (
                r#"[{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wipe"}}]"#,
                json!(5),
            ),
            (
                r#"{"id":6,"method":"ping","method":"tools/call","params":{"name":"wipe"}}"#,
                Value::Null,
            ),
            (r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{}}"#, json!(8)),
        ] {
            client.say(line);
            let answer = client.hear();
            assert_eq!(
                (&answer["id"], answer["error"]["code"].as_i64()),
                (&id, Some(-32600)),
                "{line}"
            );
        }
        client.ping();
        assert_eq!(client.seen().lines().count(), 1, "{}", client.seen());
        assert_eq!(client.end(), 0);
    });
}

#[test]
fn without_a_hub_no_tool_runs_and_the_rest_works() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        let mut client = Client::start(home.path(), &["--hub", "unix:/nowhere"]);
        client.ping();
        client.call(json!(1), "wipe");
        let answer = client.hear();
        assert_eq!(answer.pointer("/result/isError"), Some(&json!(true)), "{answer}");
        assert!(answer.to_string().contains("Nobody could be asked"), "{answer}");
        assert!(!client.seen().contains("wipe"));
        assert_eq!(client.end(), 0);
    });
}

#[test]
fn a_policy_says_what_is_only_told() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let policy = hub.home().join("policy.toml");
        std::fs::write(&policy, "[[rule]]\ntool = \"files.look\"\nrisk_level = \"low\"\nreversibility = \"reversible\"\nverdict = \"announce\"\naction = \"Look at {path}\"\n").unwrap();
        let mut client = Client::start(hub.home(), &["--policy", policy.to_str().unwrap()]);
        client.call(json!(1), "look");
        assert_eq!(client.hear()["id"], 1);
        let told = ear.event("tool.invoked").await;
        assert!(
            told["summary_normal"].as_str().unwrap().starts_with("Look at \"a.txt\""),
            "{told}"
        );
        client.call(json!(2), "wipe");
        let asked = ear.event("awaiting.confirmation").await;
        ear.decide(&asked, "reject").await;
        assert_eq!(client.hear().pointer("/result/isError"), Some(&json!(true)));
        assert_eq!(client.end(), 0);
    });
}

#[test]
fn a_client_that_waits_hears_that_it_does() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut client = Client::start(hub.home(), &[]);
        client.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wipe","_meta":{"progressToken":"p1"}}}"#);
        let asked = ear.event("awaiting.confirmation").await;
        let progress = client.hear();
        assert_eq!(
            (&progress["method"], &progress["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!("p1"))
        );
        ear.decide(&asked, "accept").await;
        while client.hear()["id"] != 1 {}
        assert_eq!(client.end(), 0);
    });
}

#[test]
fn whoever_goes_away_takes_the_other_along_and_the_question_too() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut client = Client::start(hub.home(), &[]);
        client.call(json!(1), "wipe");
        ear.event("awaiting.confirmation").await;
        client.say(r#"{"jsonrpc":"2.0","method":"exit"}"#);
        assert!(client.from.next().is_none(), "the server is gone");
        assert_eq!(client.end(), 1);
        ear.event("session.completed").await;
        assert!(
            !hub.home().join("seen.jsonl").exists()
                || !std::fs::read_to_string(hub.home().join("seen.jsonl"))
                    .unwrap()
                    .contains("wipe")
        );

        let mut client = Client::start(hub.home(), &[]);
        client.call(json!(1), "wipe");
        ear.event("awaiting.confirmation").await;
        assert_eq!(client.end(), 0);
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

#[test]
fn a_server_that_cannot_be_started_is_said() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    let ended = command.args(["mcp", "--", "/nowhere/server"]).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("Check the command behind --"));
}
