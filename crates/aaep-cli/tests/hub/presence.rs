//! Whether it was really the person: an agent cannot answer for them, by a child of its own or
//! without their PIN.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use aaep_transport::client::{Options, SessionSecret};

use crate::support::*;

/// A hub that is as careful as it is without tests.
pub(crate) fn careful(setup: Setup) -> Setup {
    setup.set("AAEP_DEVELOPMENT__OWN_REPLIES", "false")
}

fn over_socket(hub: &Hub) -> HttpClient {
    let session_secret = Some(SessionSecret::generate().unwrap());
    let options = Options { session_secret, ..Options::default() };
    HttpClient::over_socket(hub.socket(), "/aaep/v1", options)
}

fn with_presence() -> Value {
    let mut asked = everything();
    let extensions = asked["supported_extensions"].as_array_mut().unwrap();
    extensions.push("urn:aaep-rs:presence:v1".into());
    asked
}

/// An agent that asks, and lets one of its own processes answer: itself, a child, or one that has
/// left everything that ties it to its parents.
const AGENT: &str = r#"
import json, os, socket, subprocess, sys, uuid

path, base, token, way = sys.argv[1:5]
secret = "aaeps_" + (uuid.uuid4().hex + uuid.uuid4().hex)[:42] + "A"
host = base.split("/")[2] if base else "localhost"

def connect():
    if base:
        address, port = host.rsplit(":", 1)
        return socket.create_connection((address, int(port)))
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    return s

def call(method, where, body=None, token=None, s=None):
    s = s or connect()
    text = json.dumps(body) if body is not None else ""
    lines = [f"{method} /aaep/v1/{where} HTTP/1.1", f"host: {host}", f"content-length: {len(text)}",
        "content-type: application/json", f"aaep-session-secret: {secret}"]
    if token:
        lines.append(f"authorization: Bearer {token}")
    s.sendall(("\r\n".join(lines) + "\r\n\r\n" + text).encode())
    return s

def answer(s):
    stream = s.makefile("rb")
    status = int(stream.readline().split()[1])
    length = 0
    while True:
        line = stream.readline().strip().lower()
        if not line:
            break
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return status, json.loads(stream.read(length) or b"null")

def own_reply(out):
    asked = {"type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "me",
        "capabilities": {"supports_confirmation_reply": True}}
    status, accepted = answer(call("POST", "subscriptions", asked, token))
    subscription = accepted["subscription_id"]
    stream = call("GET", f"events?subscription_id={subscription}", token=token).makefile("rb")
    for line in stream:
        if line.startswith(b"data:") and b"reply_token" in line:
            event = json.loads(line[5:])
            break
    yes = {"type": "confirmation.reply", "reply_token": event["reply_token"], "decision": "accept",
        "subscription_id": subscription, "timestamp": event["timestamp"]}
    status, _ = answer(call("POST", "replies", yes, token))
    out.write(f"answered {status}\n")
    out.flush()

def through_stdio(out, program):
    bridge = subprocess.Popen([program, "stdio", "unix:" + path], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, text=True)
    def send(method, params, **id):
        line = {"jsonrpc": "2.0", **id, "method": method, "params": params}
        bridge.stdin.write(json.dumps(line) + "\n")
        bridge.stdin.flush()
    def until(wanted):
        for line in bridge.stdout:
            said = json.loads(line)
            if wanted(said):
                return said
    terms = {"supports_confirmation_reply": True}
    asked = {"type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "me",
        "capabilities": terms}
    send("aaep.subscribe", asked, id=1)
    accepted = until(lambda said: said.get("id") == 1)["result"]
    event = until(lambda said: "reply_token" in said.get("params", {}))["params"]
    subscription = accepted["subscription_id"]
    send("aaep.reply", {"type": "confirmation.reply", "reply_token": event["reply_token"],
        "decision": "accept", "subscription_id": subscription, "timestamp": event["timestamp"]})
    # The hub reads one message after the other: the reply was judged before this is answered.
    send("aaep.renegotiate", {"type": "subscription.renegotiate", "subscription_id": subscription,
        "capabilities": {"languages": ["en"]}}, id=2)
    result = until(lambda said: said.get("id") == 2)["result"]
    out.write(f"answered {result['type']}\n")
    out.flush()

agent = token.replace("reader", "agent").ljust(48, "x")[:48] if token else None
status, opened = answer(call("POST", "agent/sessions",
    {"producer": {"agent_id": "sly"}, "summary_normal": "Tidying."}, agent))
session = opened["session_id"]
status, asked = answer(call("POST", f"agent/sessions/{session}/requests", json.loads(sys.argv[5]), agent))
request = asked["request_id"]
if way == "itself":
    own_reply(sys.stdout)
elif way == "stdio":
    through_stdio(sys.stdout, sys.argv[6])
else:
    read, write = os.pipe()
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        if way == "orphan":
            os.setsid()
            if os.fork():
                os._exit(0)
            os.chdir("/")
        own_reply(os.fdopen(write, "w"))
        # Whoever has gone could not be looked at.
        os.read(alive, 1)
        os._exit(0)
    if way == "orphan":
        os.waitpid(child, 0)
    os.close(write)
    print(os.fdopen(read).readline().strip(), flush=True)
for line in sys.stdin:
    status, view = answer(call("GET", f"agent/requests/{request}?wait={line.strip()}", token=agent))
    print(view["status"], flush=True)
"#;

pub(crate) struct SlyAgent {
    child: Child,
    input: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
}

impl SlyAgent {
    pub(crate) fn start(hub: &Hub, token: &str, way: &str) -> Self {
        let base = if token.is_empty() { String::new() } else { hub.base() };
        let mut child = Command::new("python3")
            .args(["-c", AGENT, hub.socket().to_str().unwrap(), &base, token, way])
            .arg(deletion("old.txt").to_string())
            .arg(env!("CARGO_BIN_EXE_aaep"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, out) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, out }
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    pub(crate) fn status(&mut self, wait: u64) -> String {
        writeln!(self.input.as_mut().unwrap(), "{wait}").unwrap();
        self.line()
    }
}

impl Drop for SlyAgent {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// covers: I30, I6
#[cfg(target_os = "linux")]
#[test]
fn a_yes_from_the_agents_own_processes_does_not_count_and_the_persons_does() {
    run(async {
        let hub = Hub::start(careful(Setup::default()));
        for way in ["itself", "child", "orphan"] {
            let mut agent = SlyAgent::start(&hub, "", way);
            // It is answered like any other, and nothing comes of it.
            assert_eq!(agent.line(), "answered 204", "{way}");
            assert_eq!(agent.status(0), "pending", "{way}");
            // The person, who is not the agent's child.
            let mut ear = Ear::subscribe(over_socket(&hub)).await;
            let asked = ear.event("awaiting.confirmation").await;
            ear.decide(&asked, "accept").await;
            assert_eq!(agent.status(30), "accepted", "{way}");
        }
    });
}

// covers: I30
#[cfg(target_os = "linux")]
#[test]
fn over_loopback_the_kernel_tells_as_well_whose_connection_it_is() {
    run(async {
        let hub = Hub::start(careful(Setup::default()));
        let person = hub.person();
        for way in ["child", "orphan"] {
            let mut agent = SlyAgent::start(&hub, &person.token("reader"), way);
            assert_eq!(agent.line(), "answered 204", "{way}");
            assert_eq!(agent.status(0), "pending", "{way}");
            let mut ear = Ear::subscribe(person.client("phone")).await;
            let asked = ear.event("awaiting.confirmation").await;
            ear.decide(&asked, "accept").await;
            assert_eq!(agent.status(30), "accepted", "{way}");
        }
    });
}

/// A command of `aaep` in the hub's home, with this on its standard input.
fn aaep(hub: &Hub, arguments: &[&str], typed: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(arguments)
        .arg("--config")
        .arg(hub.directory().join("aaep.toml"))
        .env_clear()
        .env("HOME", hub.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(typed.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn unlock(subscription: &str, pin: &str) -> String {
    json!({ "type": "presence:unlock", "subscription_id": subscription, "timestamp": now(),
        "pin": pin })
    .to_string()
}

/// Types a PIN over HTTP, and says what came back.
async fn types(client: &HttpClient, ear: &Ear, pin: &str) -> Value {
    let answer = client.post("replies", unlock(&ear.subscription, pin)).await.unwrap();
    assert_eq!(answer.status.as_u16(), 200, "{answer:?}");
    body(&answer)
}

async fn asks(hub: &Arc<Hub>, name: &str) -> (Agent, Value) {
    let agent = Agent::new(over_socket(hub), "tidy");
    let session = agent.open().await;
    let request = agent.ask_for(&session, &deletion(name)).await;
    (agent, request)
}

// covers: I34, I6, I26
#[test]
fn a_yes_to_something_grave_needs_the_pin_where_it_was_typed() {
    run(async {
        let hub = Hub::start(Setup::durable());
        hub.logs(&["No PIN is set", "aaep presence set"]);
        let client = over_socket(&hub);
        let mut ear = Ear::subscribe(over_socket(&hub)).await;
        assert_eq!(types(&client, &ear, "1234").await["state"], "unset");
        let (agent, request) = asks(&hub, "first").await;
        let asked = ear.event("awaiting.confirmation").await;
        assert!(asked["extensions"].get("presence").is_none(), "there is no PIN yet");
        ear.decide(&asked, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");

        let (code, said, err) = aaep(&hub, &["presence", "set"], "cafe au lait\ncafe au lait\n");
        assert!(code == 0 && said.contains("The PIN of local is set"), "{said} {err}");
        assert!(aaep(&hub, &["presence", "status"], "").1.contains("has a PIN"));
        let (agent, request) = asks(&hub, "second").await;
        let asked = ear.event("awaiting.confirmation").await;
        assert_eq!(asked["extensions"]["presence"]["needs"], "pin");
        // Without it a yes looks as if it had counted, and does not.
        ear.decide(&asked, "accept").await;
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        // A wrong one is told to whoever else listens.
        let mut other = Ear::unix_for(&hub, with_presence()).await;
        assert_eq!(types(&client, &ear, "cafe").await["state"], "wrong");
        let told = other.message("presence:state").await;
        assert_eq!((&told["state"], &told["failures"]), (&"tried".into(), &1.into()));
        ear.decide(&asked, "accept").await;
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        let unlocked = types(&client, &ear, "cafe au lait").await;
        assert_eq!((&unlocked["state"], &unlocked["seconds"]), (&"unlocked".into(), &900.into()));
        ear.decide(&asked, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");

        // Another connection was not unlocked; a no needs no PIN.
        let (agent, request) = asks(&hub, "third").await;
        let asked = other.event("awaiting.confirmation").await;
        let mut third = Ear::subscribe(over_socket(&hub)).await;
        let asked_there = third.event("awaiting.confirmation").await;
        third.decide(&asked_there, "accept").await;
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        other.decide(&asked, "reject").await;
        assert_eq!(agent.outcome(&request).await, "rejected");

        // The same over a link, which is a connection of its own.
        let (agent, request) = asks(&hub, "fourth").await;
        let asked = other.event("awaiting.confirmation").await;
        let pin = unlock(&other.subscription, "cafe au lait");
        other.send(&pin).await;
        assert_eq!(other.message("presence:state").await["state"], "unlocked");
        other.decide(&asked, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");

        let (code, records, _) = aaep(&hub, &["audit", "export", "--kind", "resolved"], "");
        let records: Vec<Value> =
            records.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let shown: Vec<&Value> = records.iter().map(|record| &record["presence"]).collect();
        assert_eq!(code, 0);
        assert_eq!(shown, ["listener", "pin", "listener", "pin"], "{records:#?}");
        assert!(!hub.log().iter().any(|line| line.contains("cafe au lait")));
    });
}

// covers: I34
#[test]
fn a_pin_is_changed_only_with_the_old_one_and_a_change_is_heard() {
    run(async {
        let hub = Hub::start(Setup::durable());
        assert_eq!(aaep(&hub, &["presence", "set"], "1234\n1235\n").0, 2);
        assert_eq!(aaep(&hub, &["presence", "set"], "1234\n1234\n").0, 0);
        let mut ear = Ear::unix_for(&hub, with_presence()).await;
        ear.send(&unlock(&ear.subscription.clone(), "1234")).await;
        assert_eq!(ear.message("presence:state").await["state"], "unlocked");
        let (code, _, err) = aaep(&hub, &["presence", "set"], "9999\n5678\n5678\n");
        assert!(code == 2 && err.contains("not the PIN"), "{err}");
        assert_eq!(aaep(&hub, &["presence", "remove"], "9999\n").0, 2);
        assert_eq!(aaep(&hub, &["presence", "set"], "1234\n5678\n5678\n").0, 0);
        // Whoever was unlocked with the old one is no longer, and hears why.
        let (agent, request) = asks(&hub, "file").await;
        assert_eq!(ear.message("presence:state").await["state"], "changed");
        let asked = match ear.heard.iter().find(|text| text.contains("reply_token")) {
            Some(text) => serde_json::from_str(text).unwrap(),
            None => ear.event("awaiting.confirmation").await,
        };
        ear.decide(&asked, "accept").await;
        ear.send(&unlock(&ear.subscription.clone(), "1234")).await;
        assert_eq!(ear.message("presence:state").await["state"], "wrong");
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        ear.send(&unlock(&ear.subscription.clone(), "5678")).await;
        assert_eq!(ear.message("presence:state").await["state"], "unlocked");
        ear.decide(&asked, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        assert_eq!(aaep(&hub, &["presence", "remove"], "5678\n").0, 0);
        assert!(aaep(&hub, &["presence", "status"], "").1.contains("has no PIN"));
    });
}

// covers: I34
#[test]
fn a_policy_says_by_rule_and_by_risk_who_has_to_be_there() {
    run(async {
        let place = tempfile::tempdir().unwrap();
        let policy = place.path().join("policy.toml");
        let rules = r#"
            [presence]
            high = "listener"

            [[rule]]
            tool = "delete_file"
            where = { path = "grave" }
            presence = "pin"
            "#;
        std::fs::write(&policy, rules).unwrap();
        let arguments = ["--ephemeral", "--listen", "127.0.0.1:0", "--policy"];
        let arguments: Vec<&str> =
            arguments.into_iter().chain([policy.to_str().unwrap()]).collect();
        let hub = Hub::start(Setup::default().arguments(&arguments));
        let mut ear = Ear::subscribe(over_socket(&hub)).await;
        let (agent, request) = asks(&hub, "grave").await;
        let asked = ear.event("awaiting.confirmation").await;
        assert_eq!(asked["extensions"]["presence"]["needs"], "pin", "also where there is none");
        ear.decide(&asked, "accept").await;
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        let (agent, request) = asks(&hub, "mild").await;
        let asked = ear.event("awaiting.confirmation").await;
        assert_eq!(asked["extensions"]["presence"]["needs"], "listener");
        ear.decide(&asked, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
    });
}
