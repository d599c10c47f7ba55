//! `aaep replay`: what was captured is heard again, on every transport.

use std::io::{BufRead, BufReader};
use std::path::Path;

use super::*;
use aaep_types::captured;

/// A request in a session, as it might be captured.
const RECORDING: &str = concat!(
    r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.session.started","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"tidy"},"localization_hints":{"primary_language":"en"},"summary_normal":"Tidying the desk."}"#,
    "\n",
    r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.awaiting.confirmation","event_id":"evt_2","session_id":"sess_1","timestamp":"2026-05-24T14:22:12.342Z","producer":{"agent_id":"tidy"},"localization_hints":{"primary_language":"en"},"urgency":"critical","summary_normal":"May I?","action":"Throw the papers away","consequence":"They are gone.","reversibility":"irreversible","risk_level":"high","reply_token":"rpl_old","timeout_seconds":60,"default_if_timeout":"reject"}"#,
    "\n{\"cut short\":\n",
    r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.session.completed","event_id":"evt_3","session_id":"sess_1","timestamp":"2026-05-24T14:22:10.342Z","producer":{"agent_id":"tidy"},"localization_hints":{"primary_language":"en"},"summary_normal":"Done."}"#,
    "\n",
);

struct Playing {
    child: Child,
    url: String,
    /// Other addresses that it named.
    more: Vec<String>,
}

impl Drop for Playing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn replay(file: &Path, arguments: &[&str]) -> Playing {
    let mut command = aaep(&["replay", file.to_str().unwrap()]);
    let mut child = command.args(arguments).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap().strip_prefix("Playing: ").unwrap().to_owned();
    let more =
        lines.map_while(Result::ok).take_while(|line| !line.starts_with("Waiting")).collect();
    Playing { child, url, more }
}

fn messages(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines.map(|line| serde_json::from_slice(captured::message(line.as_bytes())).unwrap()).collect()
}

/// Without the two members that a playback makes anew.
fn same(mut messages: Vec<Value>) -> Vec<Value> {
    for message in &mut messages {
        let members = message.as_object_mut().unwrap();
        members.remove("timestamp");
        members.remove("reply_token");
    }
    messages
}

#[test]
fn what_is_captured_is_played_and_captured_the_same_on_every_transport() {
    run(async {
        let hub = demo(&[]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("first.jsonl");
        let base = hub.base();
        let mut command = aaep(&["capture", &base, "--count", "12", "--out"]);
        let end = tokio::spawn(ended(command.arg(&file).spawn().unwrap()));
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        while !end.is_finished() {
            say(&hub, "hello").await;
            ear.event("session.completed").await;
        }
        assert_eq!(end.await.unwrap().code, 0);
        let first = same(messages(&std::fs::read_to_string(&file).unwrap()));
        assert_eq!(first.len(), 12);
        let socket = folder.path().join("play").join("replay.sock");
        let unix = format!("unix:{}", socket.display());
        let mut options =
            vec!["--no-delay", "--no-wait", "--stay", "--socket", socket.to_str().unwrap()];
        options.extend(["--grpc", "127.0.0.1:0"]);
        let playing = replay(&file, &options);
        let ws = playing.url.replace("http://", "ws://");
        let grpc = playing.more.iter().find_map(|line| line.strip_prefix("gRPC: "));
        let grpc = grpc.unwrap().to_owned();
        let play = format!("'{}' replay '{}'", env!("CARGO_BIN_EXE_aaep"), file.display());
        let stdio = format!("stdio:{play} --stdio --no-delay --no-wait");
        for url in [&playing.url, &ws, &unix, &grpc, &stdio] {
            for raw in [&[][..], &["--raw"]] {
                if !raw.is_empty() && *url == stdio {
                    continue; // there a producer waits for the handshake
                }
                let arguments = [&["capture", url, "--count", "12"], raw].concat();
                let end = ended(aaep(&arguments).spawn().unwrap()).await;
                assert_eq!(end.code, 0, "{url}: {}", end.err);
                assert_eq!(same(messages(&end.out)), first, "{url} {raw:?}");
            }
        }
    });
}

// covers: W12
#[test]
fn over_stdio_a_recorded_request_is_answered_and_the_program_ends() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("asked.jsonl");
        std::fs::write(&file, RECORDING).unwrap();
        let program = env!("CARGO_BIN_EXE_aaep");
        let url = format!("stdio:'{program}' replay '{}' --stdio --no-delay", file.display());
        let mut listening = aaep(&["listen", &url, "--json"]);
        let home = tempfile::tempdir().unwrap();
        listening.env("HOME", home.path()).env("XDG_RUNTIME_DIR", home.path());
        let mut child = listening.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut input = child.stdin.take().unwrap();
        let heard = tokio::task::spawn_blocking(move || {
            let mut heard = Vec::new();
            for line in lines.by_ref().map_while(Result::ok) {
                let value: Value = serde_json::from_str(&line).unwrap();
                if value["happening"] == "asked" {
                    use std::io::Write;
                    let answer = json!({ "request": value["request"], "answer": "reject" });
                    writeln!(input, "{answer}").unwrap();
                }
                let is_over = line.contains("evt_3") || line.contains("session.completed");
                heard.push(line);
                if is_over {
                    break;
                }
            }
            heard
        });
        let heard = soon("the end of the recording", heard).await.unwrap();
        assert!(heard.iter().any(|line| line.contains("Throw the papers away")), "{heard:#?}");
        let _ = child.kill();
        let _ = child.wait();
    });
}

#[test]
fn a_recorded_request_waits_for_a_real_answer_with_a_fresh_token() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("asked.jsonl");
        std::fs::write(&file, RECORDING).unwrap();
        let mut playing = replay(&file, &["--no-delay"]);
        let client = client(&playing.url, None);
        let mut stream = client.events("events", None).await.unwrap();
        let heard = async |stream: &mut aaep_transport::client::EventStream| -> Value {
            let frame = soon("an event", stream.next()).await.unwrap().unwrap();
            serde_json::from_str(&frame.data).unwrap()
        };
        assert_eq!(heard(&mut stream).await["event_id"], "evt_1");
        let asked = heard(&mut stream).await;
        let token = asked["reply_token"].as_str().unwrap();
        assert!(token.starts_with("rpl_") && token != "rpl_old", "{token}");
        assert_ne!(asked["timestamp"], "2026-05-24T14:22:12.342Z");
        let reply = |token: &str| {
            json!({ "type": "confirmation.reply", "reply_token": token, "decision": "reject",
                "subscription_id": "sub_1", "timestamp": "2026-05-24T14:22:11.342Z" })
            .to_string()
        };
        // The old token is nobody's, and the answer does not tell.
        for (token, goes_on) in [("rpl_old", false), (token, true)] {
            assert_eq!(client.post("replies", reply(token)).await.unwrap().status.as_u16(), 204);
            let wait = std::time::Duration::from_millis(400);
            if !goes_on {
                assert!(tokio::time::timeout(wait, stream.next()).await.is_err());
            }
        }
        assert_eq!(heard(&mut stream).await["event_id"], "evt_3");
        assert!(soon("the end", stream.next()).await.unwrap().is_none());
        let status = tokio::task::spawn_blocking(move || playing.child.wait()).await.unwrap();
        assert_eq!(status.unwrap().code(), Some(0));
    });
}

#[test]
fn only_a_reply_of_its_kind_and_for_its_subscription_lets_the_recording_go_on() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("asked.jsonl");
        std::fs::write(&file, RECORDING).unwrap();
        let playing = replay(&file, &["--no-delay"]);
        let mut ear = Ear::subscribe(client(&playing.url, None)).await;
        let token = ear.event("awaiting.confirmation").await["reply_token"].clone();
        let subscription = ear.subscription.clone();
        let reply = |kind: &str, subscription: &str| {
            let mut reply = json!({ "type": kind, "reply_token": token,
                "subscription_id": subscription, "timestamp": "2026-05-24T14:22:11.342Z" });
            match kind {
                "confirmation.reply" => reply["decision"] = "accept".into(),
                _ => reply["response"] = "yes".into(),
            }
            reply.to_string()
        };
        let other = client(&playing.url, None);
        for wrong in
            [reply("clarification.reply", &subscription), reply("confirmation.reply", "sub_other")]
        {
            assert_eq!(other.post("replies", wrong).await.unwrap().status.as_u16(), 204);
            let wait = std::time::Duration::from_millis(400);
            assert!(tokio::time::timeout(wait, ear.next()).await.is_err());
        }
        let right = reply("confirmation.reply", &subscription);
        assert_eq!(other.post("replies", right).await.unwrap().status.as_u16(), 204);
        assert_eq!(ear.event("session.completed").await["event_id"], "evt_3");
    });
}

#[test]
fn it_begins_where_it_is_told_loops_with_new_ids_and_says_what_it_cannot_play() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("asked.jsonl");
        std::fs::write(&file, RECORDING).unwrap();
        let playing = replay(&file, &["--no-delay", "--no-wait", "--loop", "--from", "evt_3"]);
        let end =
            ended(aaep(&["capture", &playing.url, "--raw", "--count", "4"]).spawn().unwrap()).await;
        let ids: Vec<Value> =
            messages(&end.out).into_iter().map(|message| message["event_id"].clone()).collect();
        assert_eq!(ids, ["evt_3", "evt_1_2", "evt_2_2", "evt_3_2"], "{}", end.err);
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        for wrong in [empty.as_path(), folder.path(), Path::new("/nowhere")] {
            let end = ended(aaep(&["replay", wrong.to_str().unwrap()]).spawn().unwrap()).await;
            assert!(end.code == 2 && !end.err.is_empty(), "{wrong:?}: {}", end.err);
        }
    });
}
