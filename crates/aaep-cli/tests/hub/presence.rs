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

/// What agents and people in a process of their own have in common.
const CALLS: &str = r#"
import json, os, pty, socket, subprocess, sys, uuid

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

def call(method, where, body=None, token=None, host=host, more=()):
    s = connect()
    text = json.dumps(body) if body is not None else ""
    lines = [f"{method} /aaep/v1/{where} HTTP/1.1", f"host: {host}", f"content-length: {len(text)}",
        "content-type: application/json", f"aaep-session-secret: {secret}", *more]
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

def subscribe():
    asked = {"type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "me",
        "capabilities": {"supports_confirmation_reply": True}}
    return answer(call("POST", "subscriptions", asked, token))[1]["subscription_id"]

def reply(subscription, out):
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

def begin_passkey(out):
    at = "localhost:" + host.split(":")[1]
    body, more = {"subscription_id": subscribe()}, [f"origin: http://{at}"]
    status, said = answer(call("POST", "presence/passkeys/options", body, token, at, more))
    out.write(f"passkey {status} {said.get('error', '')}".strip() + "\n")
    out.flush()
"#;

/// An agent that asks, and lets one of its own processes answer: itself, a child, one that has left
/// everything that ties it to its parents, or one that never asked.
const AGENT: &str = r#"
agent = token.replace("reader", "agent").ljust(48, "x")[:48] if token else None

def open_session():
    return answer(call("POST", "agent/sessions",
        {"producer": {"agent_id": "sly"}, "summary_normal": "Tidying."}, agent))[1]["session_id"]

def ask(session):
    where = f"agent/sessions/{session}/requests"
    return answer(call("POST", where, json.loads(sys.argv[5]), agent))[1]["request_id"]

def in_child(act):
    """What a child that has ended by then gave back."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, act().encode())
        os._exit(0)
    os.close(write)
    said = os.fdopen(read).read()
    os.wait()
    return said

def child_answers(leaves):
    read, write = os.pipe()
    alive, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        if leaves:
            os.setsid()
            if os.fork():
                os._exit(0)
            os.chdir("/")
        reply(subscribe(), os.fdopen(write, "w"))
        # A process that is gone could not be looked at.
        os.read(alive, 1)
        os._exit(0)
    if leaves:
        os.waitpid(child, 0)
    os.close(write)
    print(os.fdopen(read).readline().strip(), flush=True)

def ask_and_withdraw(session):
    request = ask(session)
    answer(call("DELETE", f"agent/requests/{request}", token=agent))
    return request

if way == "asked_by_child":
    session, request = in_child(lambda: (lambda s: s + " " + ask(s))(open_session())).split()
elif way == "siblings":
    session = in_child(open_session)
    request = in_child(lambda: ask(session))
else:
    session = open_session()
    if way == "many":
        for _ in range(20):
            in_child(lambda: ask_and_withdraw(session))
        request = in_child(lambda: ask(session))
    else:
        request = ask(session)
if way in ("itself", "asked_by_child", "many"):
    reply(subscribe(), sys.stdout)
elif way == "stdio":
    through_stdio(sys.stdout, sys.argv[6])
elif way in ("child", "siblings", "orphan"):
    child_answers(way == "orphan")
else:
    print("asked", flush=True)
for line in sys.stdin:
    if line.strip() == "answer":
        reply(subscribe(), sys.stdout)
    elif line.strip() == "passkey":
        begin_passkey(sys.stdout)
    else:
        status, view = answer(call("GET", f"agent/requests/{request}?wait={line.strip()}", token=agent))
        print(view["status"], flush=True)
"#;

/// A person before a terminal of their own, who does what they are told.
const SITTING: &str = r#"
told, out = os.dup(0), os.dup(1)
child, terminal = pty.fork()
if child:
    os.close(told)
    os.close(out)
    try:
        while os.read(terminal, 100):
            pass
    except OSError:
        pass
    os.waitpid(child, 0)
else:
    out = os.fdopen(out, "w")
    for line in os.fdopen(told):
        if line.strip() == "passkey":
            begin_passkey(out)
        else:
            reply(subscribe(), out)
"#;

/// A program of somebody, which is told what to do, and says what came of it.
pub(crate) struct Program {
    child: Child,
    input: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn agent(hub: &Hub, token: &str, way: &str) -> Self {
        Self::start(hub, AGENT, token, way)
    }

    fn sitting(hub: &Hub, token: &str) -> Self {
        Self::start(hub, SITTING, token, "")
    }

    fn start(hub: &Hub, script: &str, token: &str, way: &str) -> Self {
        let base = if token.is_empty() { String::new() } else { hub.base() };
        let mut child = Command::new("python3")
            .args(["-c", &[CALLS, script].concat()])
            .args([hub.socket().to_str().unwrap(), &base, token, way])
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

    fn told(&mut self, what: &str) -> String {
        writeln!(self.input.as_mut().unwrap(), "{what}").unwrap();
        self.line()
    }

    pub(crate) fn status(&mut self, wait: u64) -> String {
        self.told(&wait.to_string())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The agent's own yes comes to nothing, and the person's counts.
fn only_the_person_answers(hub: &Hub, token: &str, way: &str) {
    let mut person = Program::sitting(hub, token);
    let mut agent = Program::agent(hub, token, way);
    // It is answered like any other, and nothing comes of it.
    assert_eq!(agent.line(), "answered 204", "{way}");
    assert_eq!(agent.status(0), "pending", "{way}");
    assert_eq!(person.told("accept"), "answered 204", "{way}");
    assert_eq!(agent.status(30), "accepted", "{way}");
    // And somebody who sat down only after the agent had begun.
    drop(person);
    let mut agent = Program::agent(hub, token, "waits");
    assert_eq!(agent.line(), "asked");
    assert_eq!(Program::sitting(hub, token).told("accept"), "answered 204", "{way}");
    assert_eq!(agent.status(30), "accepted", "{way}");
}

// covers: I30, I6
#[cfg(target_os = "linux")]
#[test]
fn a_yes_from_the_agents_own_processes_does_not_count_and_the_persons_does() {
    let hub = Hub::start(careful(Setup::default()));
    for way in ["itself", "child", "orphan"] {
        only_the_person_answers(&hub, "", way);
    }
}

// covers: I30
/// What asks need not be what answers: commands that an agent runs are over when they have asked.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_asks_from_other_processes_than_it_answers_from_does_not_count() {
    let hub = Hub::start(careful(Setup::default()));
    for way in ["many", "asked_by_child", "siblings"] {
        only_the_person_answers(&hub, "", way);
    }
}

// covers: I30
#[cfg(target_os = "linux")]
#[test]
fn over_loopback_the_kernel_tells_as_well_whose_connection_it_is() {
    let hub = Hub::start(careful(Setup::default()));
    let person = hub.person();
    for way in ["child", "orphan", "siblings"] {
        only_the_person_answers(&hub, &person.token("reader"), way);
    }
}

// covers: I30, I3
/// An agent of the same user could have the hub start again.
#[cfg(target_os = "linux")]
#[test]
fn an_agent_that_has_the_hub_start_again_is_still_known() {
    let hub = Hub::start(careful(Setup::durable()));
    let mut agent = Program::agent(&hub, "", "waits");
    assert_eq!(agent.line(), "asked");
    let mut person = Program::sitting(&hub, "");
    hub.kill();
    let hub = Hub::start_in(careful(Setup::durable()), hub.shared_directory());
    hub.socket();
    assert_eq!(agent.told("answer"), "answered 204");
    assert_eq!(agent.status(0), "pending");
    assert_eq!(person.told("accept"), "answered 204");
    assert_eq!(agent.status(30), "accepted");
}

// covers: I30, I34
#[cfg(target_os = "linux")]
#[test]
fn an_agents_process_registers_no_passkey_with_its_persons_token() {
    let hub = Hub::start(careful(Setup::default()));
    let token = hub.person().token("reader");
    let mut agent = Program::agent(&hub, &token, "waits");
    assert_eq!(agent.line(), "asked");
    assert_eq!(agent.told("passkey"), "passkey 403 own_process");
    assert_eq!(Program::sitting(&hub, &token).told("passkey"), "passkey 200");
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
        // The other listeners hear of a wrong one.
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
        let mut ear = Ear::unix_for(&hub, with_presence()).await;
        assert_eq!(aaep(&hub, &["presence", "set"], "1234\n1235\n").0, 2);
        assert_eq!(aaep(&hub, &["presence", "set"], "1234\n1234\n").0, 0);
        // An agent could have set a first one: it is heard, and nobody had to ask first.
        assert_eq!(ear.message("presence:state").await["state"], "changed");
        ear.send(&unlock(&ear.subscription.clone(), "1234")).await;
        assert_eq!(ear.message("presence:state").await["state"], "unlocked");
        let (code, _, err) = aaep(&hub, &["presence", "set"], "9999\n5678\n5678\n");
        assert!(code == 2 && err.contains("not the PIN"), "{err}");
        assert_eq!(aaep(&hub, &["presence", "remove"], "9999\n").0, 2);
        assert_eq!(aaep(&hub, &["presence", "set"], "1234\n5678\n5678\n").0, 0);
        // Subscriptions unlocked with the old one are locked again, and hear why.
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

// covers: I34, I26
#[test]
fn what_happens_to_a_pin_is_in_the_audit() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let mut ear = Ear::unix_for(&hub, with_presence()).await;
        assert_eq!(aaep(&hub, &["presence", "set"], "1234\n1234\n").0, 0);
        assert_eq!(ear.message("presence:state").await["state"], "changed");
        let other = Ear::subscribe(over_socket(&hub)).await;
        assert_eq!(types(&over_socket(&hub), &other, "9999").await["state"], "wrong");
        assert_eq!(ear.message("presence:state").await["state"], "tried");
        assert_eq!(aaep(&hub, &["presence", "remove"], "1234\n").0, 0);
        assert_eq!(ear.message("presence:state").await["state"], "changed");
        let (code, said, err) = aaep(&hub, &["audit", "export", "--kind", "administered"], "");
        let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let acts: Vec<String> = lines
            .map(|line| [text(&line, "by"), text(&line, "act"), text(&line, "what")].join(" "))
            .collect();
        let changed = "configuration pin_changed local";
        assert_eq!(
            (code, acts),
            (0, [changed, "socket pin_tried local", changed].map(String::from).to_vec()),
            "{err}"
        );
    });
}

// covers: I34
#[test]
fn somebody_far_from_the_hubs_files_sets_and_removes_their_pin_over_http() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let person = hub.person();
        let mut phone = Ear::web_socket_for(&hub, &person.token("phone"), with_presence()).await;
        let base = hub.base();
        let at_hub = |device: &str, what: &str, typed: &str| {
            let file = hub.directory().join(format!("{device}.token"));
            std::fs::write(&file, person.token(device)).unwrap();
            let file = file.to_str().unwrap();
            let mut child = Command::new(env!("CARGO_BIN_EXE_aaep"))
                .args(["presence", what, "--hub", &base, "--token-file", file])
                .env_clear()
                .env("HOME", hub.home())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(typed.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            (output.status.success(), String::from_utf8(said).unwrap())
        };
        let (good, why) = at_hub("agent", "set", "1234\n1234\n\n");
        assert!(!good, "{why}");
        let (good, why) = at_hub("reader", "set", "123\n123\n");
        assert!(!good && why.contains("too short"), "{why}");
        let (good, said) = at_hub("reader", "set", "cafe au lait\ncafe au lait\n");
        assert!(good && said.contains("Your PIN is set"), "{said}");
        assert_eq!(phone.message("presence:state").await["state"], "changed");
        let (good, why) = at_hub("reader", "set", "5678\n5678\nwrong\n");
        assert!(!good && why.contains("That is not the PIN"), "{why}");
        assert_eq!(phone.message("presence:state").await["state"], "tried");
        let (good, said) = at_hub("reader", "set", "5678\n5678\ncafe au lait\n");
        assert!(good, "{said}");
        assert_eq!(phone.message("presence:state").await["state"], "changed");
        assert!(at_hub("reader", "remove", "5678\n").0);
        assert_eq!(phone.message("presence:state").await["state"], "changed");
        assert!(!at_hub("reader", "remove", "5678\n").0, "there is none");
        let log = hub.log().join("\n");
        assert!(!log.contains("cafe au lait") && !log.contains("5678"), "{log}");
    });
}

// covers: I34, S9
#[test]
fn a_lost_pin_and_passkey_are_taken_away_by_an_administrator_and_that_is_heard() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let person = hub.person();
        let (user, ear) = (person.name("user"), person.reader().await);
        let mut phone = Ear::web_socket_for(&hub, &person.token("phone"), with_presence()).await;
        let key = Authenticator::new(&hub, person.token("reader"));
        assert_eq!(key.register(&hub, &ear.subscription, "Blue key").0, 201);
        assert_eq!(phone.message("presence:state").await["state"], "passkey_added");
        let set = ["presence", "set", "--user", &user];
        assert_eq!(aaep(&hub, &set, "1234\n1234\n").0, 0);
        assert_eq!(phone.message("presence:state").await["state"], "changed");
        let status = || aaep(&hub, &["presence", "status", "--user", &user], "").1;
        assert_eq!(status(), format!("{user} has a PIN.\nA passkey for localhost: Blue key.\n"));
        let reset = async |token: &str| {
            let body = json!({ "user": user }).to_string();
            let client = client(&hub.base(), Some(token));
            client.post("admin/presence/reset", body).await.unwrap().status.as_u16()
        };
        for token in [person.token("reader"), person.token("agent"), token("auditor")] {
            assert_eq!(reset(&token).await, 403);
        }
        assert_eq!(reset(&token("admin")).await, 204);
        assert_eq!(phone.message("presence:state").await["state"], "changed");
        assert_eq!(phone.message("presence:state").await["state"], "passkey_removed");
        assert!(status().starts_with(&format!("{user} has no PIN.")) && !status().contains("Blue"));
        assert_eq!(reset(&token("admin")).await, 404);
        let (_, said, _) = aaep(&hub, &["audit", "export", "--kind", "administered"], "");
        let lines = said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let acts: Vec<String> = lines
            .map(|line| [text(&line, "by"), text(&line, "act"), text(&line, "what")].join(" "))
            .collect();
        let by = [
            format!("{} passkey_added", person.name("reader")),
            "configuration pin_changed".into(),
            "admin presence_reset".into(),
            "configuration pin_changed".into(),
            "admin passkey_removed".into(),
        ];
        assert_eq!(acts, by.map(|act| format!("{act} {user}")));
    });
}

// covers: I34
#[test]
fn a_thousand_guesses_are_hardly_looked_at_and_keep_the_person_not_out() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let client = over_socket(&hub);
        let person = Ear::subscribe(over_socket(&hub)).await;
        let pin = "cafe au lait";
        let typed = format!("{pin}\n{pin}\n");
        assert_eq!(aaep(&hub, &["presence", "set"], &typed).0, 0);
        let guesser = Ear::subscribe(over_socket(&hub)).await;
        let (mut wrong, mut waits) = (0, 0);
        for number in 0..1000 {
            let said = types(&client, &guesser, &format!("guess-{number}")).await;
            match text(&said, "state") {
                "wrong" => wrong += 1,
                "wait" => waits += 1,
                other => panic!("{other}: {said}"),
            }
            assert!(!said.to_string().contains("guess"), "{said}");
        }
        assert!((3..20).contains(&wrong) && wrong + waits == 1000, "{wrong} wrong, {waits} wait");
        let unlocked = types(&client, &person, pin).await;
        assert_eq!(unlocked["state"], "unlocked", "{unlocked}");
        let log = hub.log().join("\n");
        assert!(!log.contains("guess-") && !log.contains(pin), "{log}");
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
