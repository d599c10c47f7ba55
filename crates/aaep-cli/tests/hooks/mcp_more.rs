//! `aaep mcp`: questions of servers, several servers, streamable HTTP on both sides.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout};

use aaep_transport::client::{HttpClient, Options, WholeOrStream};
use http::{HeaderMap, Method};

use super::*;

/// A server that asks: in the old way in the middle of a call, in the new way as its result.
const ASKS: &str = r#"
import json, sys
seen = open(sys.argv[1], "ab", buffering=0)
def say(m): print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
FORM = {"message": "A few things", "requestedSchema": {"type": "object", "required": ["sure", "n", "colour"], "properties": {
    "sure": {"type": "boolean", "title": "Sure"}, "n": {"type": "integer", "minimum": 1, "maximum": 9},
    "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}, "note": {"type": "string"}}}}
waiting = None
for line in sys.stdin.buffer:
    seen.write(line)
    m = json.loads(line)
    method, params = m.get("method"), m.get("params") or {}
    if method == "initialize": say({"id": m["id"], "result": {"protocolVersion": "2025-11-25", "serverInfo": {"name": sys.argv[2]}, "capabilities": {"tools": {}}, "instructions": "Be kind."}})
    elif method == "tools/list" and not params.get("cursor"): say({"id": m["id"], "result": {"tools": [{"name": "ask", "annotations": {"destructiveHint": False}}], "nextCursor": "more"}})
    elif method == "tools/list": say({"id": m["id"], "result": {"tools": [{"name": "wants"}]}})
    elif method == "tools/call" and params["name"] == "ask":
        waiting = m["id"]
        say({"id": 0, "method": "elicitation/create", "params": FORM})
    elif method == "tools/call" and params["name"] == "wants" and "inputResponses" not in params:
        say({"id": m["id"], "result": {"resultType": "input_required", "requestState": "s-1", "inputRequests": {"form": {"method": "elicitation/create", "params": FORM}}}})
    elif method == "tools/call" and params["name"] == "samples" and "inputResponses" not in params:
        say({"id": m["id"], "result": {"resultType": "input_required", "requestState": "s-2", "inputRequests": {"x": {"method": "sampling/createMessage", "params": {}}}}})
    elif method == "tools/call" and params["name"] == "wants":
        say({"id": m["id"], "result": {"content": [{"type": "text", "text": json.dumps([params["requestState"], params["inputResponses"]["form"]])}]}})
    elif method is None and m.get("id") == 0:
        say({"id": waiting, "result": {"content": [{"type": "text", "text": json.dumps(m["result"])}]}})
    elif method == "exit": sys.exit(0)
    elif "id" in m: say({"id": m["id"], "result": {"content": [{"type": "text", "text": "%s did %s" % (sys.argv[2], params.get("name"))}]}})
"#;

pub(super) struct Client {
    child: Child,
    to: Option<ChildStdin>,
    from: Lines<BufReader<ChildStdout>>,
}

pub(super) fn aaep(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.arg("mcp").args(words).env_clear().env("HOME", home);
    command.env("XDG_RUNTIME_DIR", home.join("run")).env("PATH", std::env::var_os("PATH").unwrap());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Client {
    pub(super) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        Self { child, to, from }
    }

    /// Before one server that asks.
    fn asking(home: &Path, options: &[&str]) -> Self {
        let seen = home.join("seen.jsonl");
        let mut words = vec!["--name", "asker"];
        words.extend(options);
        words.extend(["--", "python3", "-c", ASKS, seen.to_str().unwrap(), "asker"]);
        Self::start(aaep(home, &words))
    }

    pub(super) fn say(&mut self, message: Value) {
        self.to.as_mut().unwrap().write_all(format!("{message}\n").as_bytes()).unwrap();
    }

    pub(super) fn call(&mut self, id: i64, tool: &str) {
        let params = json!({ "name": tool, "arguments": { "a": 1 } });
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
    }

    pub(super) fn hear(&mut self) -> Value {
        serde_json::from_str(&self.from.next().expect("it goes on").unwrap()).unwrap()
    }

    fn end(mut self) -> i32 {
        drop(self.to.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

fn text_of(answer: &Value) -> Value {
    let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
    serde_json::from_str(text.unwrap_or_else(|| panic!("{answer}"))).unwrap()
}

pub(super) async fn allow(ear: &mut Ear, action: &str) {
    let asked = ear.event("awaiting.confirmation").await;
    assert_eq!(asked["action"], action);
    ear.decide(&asked, "accept").await;
}

/// Answers the form of the server: the place of a choice, or a text.
async fn fill(ear: &mut Ear, answers: &[&str]) {
    for answer in answers {
        let question = ear.event("awaiting.clarification").await;
        assert!(question["question"].as_str().unwrap().contains("asker"), "{question}");
        ear.answer(&question, json!(answer)).await;
    }
}

#[test]
fn a_question_of_a_server_is_put_to_the_person_field_by_field() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut client = Client::asking(hub.home(), &[]);
        // A client that cannot ask: the server is told that somebody can.
        let begin =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
        client.say(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin }));
        assert_eq!(client.hear()["id"], 0);
        let seen = std::fs::read_to_string(hub.home().join("seen.jsonl")).unwrap();
        assert!(seen.contains(r#""elicitation":{"form""#), "{seen}");
        let filled =
            json!({ "action": "accept", "content": { "sure": true, "n": 5, "colour": "g" } });
        for tool in ["ask", "wants"] {
            client.call(1, tool);
            allow(&mut ear, &format!("Use {tool} of asker.")).await;
            // Answer; yes; no number, too many, then right; green; nothing.
            fill(&mut ear, &["1", "1", "many", "50", "5", "2", "-"]).await;
            let answer = client.hear();
            let told = text_of(&answer);
            let expected = if tool == "ask" { filled.clone() } else { json!(["s-1", filled]) };
            assert_eq!((&answer["id"], &told), (&json!(1), &expected));
        }
        client.call(2, "ask");
        allow(&mut ear, "Use ask of asker.").await;
        fill(&mut ear, &["2"]).await;
        assert_eq!(text_of(&client.hear()), json!({ "action": "decline" }));
        assert_eq!(client.end(), 0);
        ear.is_lawful();
    });
}

#[test]
fn silence_answers_nothing_and_without_a_hub_a_client_that_can_ask_does() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut client = Client::asking(hub.home(), &["--timeout", "5"]);
        client.call(1, "ask");
        allow(&mut ear, "Use ask of asker.").await;
        ear.event("awaiting.clarification").await;
        assert_eq!(text_of(&client.hear()), json!({ "action": "cancel" }));
        assert_eq!(client.end(), 0);

        let policy = hub.home().join("policy.toml");
        std::fs::write(&policy, "[[rule]]\ntool = \"asker.ask\"\nrisk_level = \"low\"\nreversibility = \"reversible\"\nverdict = \"silent\"\naction = \"Ask\"\n").unwrap();
        let policy = policy.to_str().unwrap();
        let mut client =
            Client::asking(hub.home(), &["--hub", "unix:/nowhere", "--policy", policy]);
        client.call(1, "ask");
        assert_eq!(text_of(&client.hear()), json!({ "action": "cancel" }));
        let begin =
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} } });
        client.say(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin }));
        client.hear();
        client.call(2, "ask");
        let asked = client.hear();
        assert_eq!(asked["method"], "elicitation/create");
        client
            .say(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "decline" } }));
        assert_eq!(text_of(&client.hear()), json!({ "action": "decline" }));
        assert_eq!(client.end(), 0);
    });
}

#[test]
fn what_only_the_client_can_answer_it_answers_and_the_call_is_not_asked_twice() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut client = Client::asking(hub.home(), &[]);
        client.call(1, "samples");
        allow(&mut ear, "Use samples of asker.").await;
        let wants = client.hear();
        assert_eq!(wants["result"]["resultType"], "input_required");
        let again = |state: &str, argument: i64| {
            let params = json!({ "name": "samples", "arguments": { "a": argument },
                "requestState": state, "inputResponses": { "x": {} } });
            json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })
        };
        client.say(again("s-2", 1));
        assert!(client.hear().to_string().contains("asker did samples"));
        // Another call with the same state, and the same call again, are asked.
        for message in [again("s-2", 2), again("s-2", 1), again("s-9", 1)] {
            client.say(message);
            let asked = ear.event("awaiting.confirmation").await;
            ear.decide(&asked, "reject").await;
            assert_eq!(client.hear().pointer("/result/isError"), Some(&json!(true)));
        }
        assert_eq!(client.end(), 0);
    });
}

// covers: I3
#[test]
fn a_call_that_waits_survives_a_restart_of_the_hub() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let mut ear = Ear::unix(&hub).await;
        let mut client = Client::asking(hub.home(), &[]);
        client.call(1, "other");
        ear.event("awaiting.confirmation").await;
        hub.kill();
        let again = Hub::start_in(Setup::durable(), hub.shared_directory());
        let mut ear = Ear::unix(&again).await;
        allow(&mut ear, "Use other of asker.").await;
        assert!(client.hear().to_string().contains("asker did other"));
        assert_eq!(client.end(), 0);
    });
}

/// A file with two servers.
fn two(home: &Path) -> String {
    let server = |name: &str| json!({ "command": "python3", "args": ["-c", ASKS, home.join(format!("{name}.jsonl")), name] });
    let config = json!({ "mcpServers": { "one": server("one"), "two": server("two") } });
    let path = home.join("servers.json");
    std::fs::write(&path, config.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn several_servers_are_one_and_each_tool_is_named_with_its_server() {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        let config = two(home);
        let mut client = Client::start(aaep(home, &["--config", &config]));
        let begin = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        client.say(json!({ "jsonrpc": "2.0", "id": "b", "method": "initialize", "params": begin }));
        let begun = client.hear();
        assert_eq!(begun["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(begun["result"]["instructions"], "one: Be kind.\ntwo: Be kind.");
        client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
        let listed = client.hear();
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["one__ask", "one__wants", "two__ask", "two__wants"]);
        assert_eq!(listed["result"].get("nextCursor"), None);

        client.call(7, "two__other");
        let asked = ear.event("awaiting.confirmation").await;
        assert_eq!(asked["action"], "Use other of two.");
        ear.decide(&asked, "accept").await;
        let answer = client.hear();
        assert_eq!(answer["id"], 7);
        assert!(answer.to_string().contains("two did other"), "{answer}");
        assert!(!std::fs::read_to_string(home.join("one.jsonl")).unwrap().contains("other"));

        // Who asks is said.
        client.call(8, "one__ask");
        allow(&mut ear, "Use ask of one.").await;
        let question = ear.event("awaiting.clarification").await;
        assert!(
            question["question"].as_str().unwrap().starts_with("The server one asks"),
            "{question}"
        );
        ear.answer(&question, json!("2")).await;
        assert_eq!(text_of(&client.hear()), json!({ "action": "decline" }));

        client.call(9, "nobody");
        allow(&mut ear, "Use nobody of one and two.").await;
        assert_eq!(client.hear()["error"]["code"], -32602);
        assert_eq!(client.end(), 0);
    });
}

#[test]
fn a_file_with_servers_that_cannot_be_used_is_said() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("servers.json");
    for (text, words) in [
        ("{", "no mcpServers that can be read"),
        ("{\"mcpServers\": {}}", "names no server"),
        ("{\"mcpServers\": {\"a b\": {\"command\": \"x\"}}}", "cannot be a server's name"),
        ("{\"mcpServers\": {\"a\": {}}}", "needs a command or a url"),
        ("{\"mcpServers\": {\"a\": {\"command\": \"/nowhere/x\"}}}", "cannot start"),
        ("{\"mcpServers\": {\"a\": {\"url\": \"nothing\"}}}", "is no address"),
    ] {
        std::fs::write(&path, text).unwrap();
        let output = aaep(home.path(), &["--config", path.to_str().unwrap()])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(words), "{text}: {said}");
    }
    for words in
        [&["--listen", "0.0.0.0:0", "--", "true"][..], &["--url", "http://x", "--", "true"], &[]]
    {
        let output = aaep(home.path(), words).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
}

/// `aaep mcp --listen`, and where it listens.
struct Door {
    child: Child,
    url: String,
}

impl Door {
    fn open(home: &Path, words: &[&str]) -> Self {
        let mut all = vec!["--listen", "127.0.0.1:0"];
        all.extend(words);
        let mut child = aaep(home, &all).stdin(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().trim_end_matches('.').rsplit(' ').next().unwrap().to_owned();
        Self { child, url }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client over HTTP.
struct Web {
    client: HttpClient,
    headers: HeaderMap,
}

impl Web {
    fn at(url: &str) -> Self {
        let base = url.strip_suffix("/mcp").unwrap();
        let options = Options { trust_loopback: true, ..Options::default() };
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/json".parse().unwrap());
        headers.insert("accept", "application/json, text/event-stream".parse().unwrap());
        Self { client: HttpClient::new(base, options).unwrap(), headers }
    }

    async fn post(&self, message: &Value) -> WholeOrStream {
        let headers = self.headers.clone();
        self.client
            .exchange_or_stream(Method::POST, "mcp", headers, message.to_string())
            .await
            .unwrap()
    }

    /// Says something, and waits for the answer: all messages up to it.
    async fn ask(&mut self, message: Value) -> Vec<Value> {
        self.ask_and_tell(message, |_| {}).await
    }

    /// The same, and tells of each message when it comes.
    async fn ask_and_tell(&mut self, message: Value, mut tell: impl FnMut(&Value)) -> Vec<Value> {
        match self.post(&message).await {
            WholeOrStream::Whole(answer) => panic!("{answer:?}"),
            WholeOrStream::Stream(head, mut stream) => {
                if let Some(session) = head.get("mcp-session-id") {
                    self.headers.insert("mcp-session-id", session.clone());
                }
                let mut all = Vec::new();
                while let Some(frame) = soon("a message", stream.next()).await.unwrap() {
                    let message = serde_json::from_str::<Value>(&frame.data).unwrap();
                    tell(&message);
                    all.push(message);
                }
                all
            }
        }
    }

    async fn status(&self, message: &str) -> u16 {
        let answer =
            self.client.request(Method::POST, "mcp", self.headers.clone(), message.to_owned());
        answer.await.unwrap().status.as_u16()
    }
}

#[test]
fn clients_come_over_http_with_sessions_of_their_own_or_without() {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        let seen = home.join("seen.jsonl");
        let server =
            ["--name", "asker", "--", "python3", "-c", ASKS, seen.to_str().unwrap(), "asker"];
        let door = Door::open(home, &server);
        let mut web = Web::at(&door.url);
        let begin = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        let begun = web
            .ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin }))
            .await;
        assert_eq!(begun[0]["result"]["serverInfo"]["name"], "asker");
        assert!(web.headers.contains_key("mcp-session-id"));
        assert_eq!(
            web.status(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await,
            202
        );

        let call = |id: Value, tool: &str| {
            let meta = json!({ "progressToken": 5 });
            let params = json!({ "name": tool, "arguments": { "big": 1 }, "_meta": meta });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
        };
        // Two clients without sessions use the same id and the same token at once.
        let (mut one, mut two) = (Web::at(&door.url), Web::at(&door.url));
        // The second one is answered once its client has heard that it waits.
        let is_waiting = tokio::sync::Notify::new();
        let answering = async {
            for _ in 0..3 {
                let asked = ear.event("awaiting.confirmation").await;
                let no = asked["action"] == "Use second of asker.";
                if no {
                    soon("word that it waits", is_waiting.notified()).await;
                }
                ear.decide(&asked, if no { "reject" } else { "accept" }).await;
            }
        };
        let (third, first, second, ()) = tokio::join!(
            web.ask(call(json!("x"), "third")),
            one.ask(call(json!(9), "first")),
            two.ask_and_tell(call(json!(9), "second"), |_| is_waiting.notify_one()),
            answering
        );
        let last = |all: &[Value]| all.last().unwrap().clone();
        assert_eq!(last(&third)["id"], "x");
        assert_eq!(last(&first)["id"], 9);
        assert!(last(&first).to_string().contains("asker did first"), "{first:?}");
        assert_eq!(last(&second)["id"], 9);
        assert!(last(&second).to_string().contains("The person said no."), "{second:?}");
        let waits = &second[0];
        assert_eq!(
            (&waits["method"], &waits["params"]["progressToken"]),
            (&json!("notifications/progress"), &json!(5))
        );
        assert!(!std::fs::read_to_string(&seen).unwrap().contains("second"));

        for (message, status) in [
            ("garbage", 400),
            ("[]", 400),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, 400),
        ] {
            assert_eq!(web.status(message).await, status, "{message}");
        }
        let mut stranger = Web::at(&door.url);
        stranger.headers.insert("mcp-session-id", "guessed".parse().unwrap());
        assert_eq!(stranger.status(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await, 404);
        let mut page = Web::at(&door.url);
        page.headers.insert("origin", "https://example.org".parse().unwrap());
        assert_eq!(page.status(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await, 403);
        let mut rebound = Web::at(&door.url);
        rebound.headers.insert("host", "example.org".parse().unwrap());
        assert_eq!(rebound.status(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await, 403);

        // Who goes away in the middle takes the question along.
        let stream = Web::at(&door.url).post(&call(json!(3), "fourth")).await;
        let asked = ear.event("awaiting.confirmation").await;
        drop(stream);
        let settled = ear.event("state.changed").await;
        assert!(settled.to_string().contains("cancelled"), "{settled}");
        ear.decide(&asked, "accept").await;
        assert_eq!(
            last(&one.ask(json!({ "jsonrpc": "2.0", "id": 4, "method": "ping" })).await)["id"],
            4
        );
        assert!(!std::fs::read_to_string(&seen).unwrap().contains("fourth"));
    });
}

#[test]
fn a_server_over_http_is_used_as_if_it_were_a_command() {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        // The one behind lets everything pass: what is tried is the one before it.
        let policy = home.join("policy.toml");
        std::fs::write(&policy, "[[rule]]\ntool = \"far.*\"\nrisk_level = \"low\"\nreversibility = \"reversible\"\nverdict = \"silent\"\naction = \"Do it\"\n").unwrap();
        let seen = home.join("seen.jsonl");
        let far = [
            "--name",
            "far",
            "--policy",
            policy.to_str().unwrap(),
            "--",
            "python3",
            "-c",
            ASKS,
            seen.to_str().unwrap(),
            "far",
        ];
        let door = Door::open(home, &far);
        let mut client = Client::start(aaep(home, &["--name", "web", "--url", &door.url]));
        let begin = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        client.say(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": begin }));
        assert_eq!(client.hear()["result"]["serverInfo"]["name"], "far");
        client.say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client.say(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
        assert_eq!(client.hear()["result"]["tools"][0]["name"], "ask");
        for (decision, runs) in [("accept", true), ("reject", false)] {
            client.call(2, decision);
            let asked = ear.event("awaiting.confirmation").await;
            assert_eq!(asked["action"], format!("Use {decision} of web."));
            ear.decide(&asked, decision).await;
            let answer = client.hear();
            assert_eq!(answer.to_string().contains("far did"), runs, "{answer}");
            assert_eq!(std::fs::read_to_string(&seen).unwrap().contains(decision), runs);
        }
        // A server that goes away is told, and nothing hangs.
        drop(door);
        client.call(3, "late");
        allow(&mut ear, "Use late of web.").await;
        let answer = client.hear();
        assert_eq!(
            (&answer["id"], answer["error"]["code"].as_i64()),
            (&json!(3), Some(-32001)),
            "{answer}"
        );
        assert_eq!(client.end(), 0);
    });
}
