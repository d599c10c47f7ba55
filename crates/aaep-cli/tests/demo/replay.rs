//! `aaep replay`: what was captured is heard again, on every transport.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::skipped::skipped;
use super::*;
use aaep_transport::client::EventStream;
use aaep_types::{Timestamp, captured};

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

impl Playing {
    /// Waits for its end: its exit status, and what it said to people.
    async fn ended(mut self) -> (Option<i32>, String) {
        let mut err = self.child.stderr.take().unwrap();
        let mut child = std::mem::replace(&mut self.child, Command::new("true").spawn().unwrap());
        let waiting = tokio::task::spawn_blocking(move || {
            let mut said = String::new();
            err.read_to_string(&mut said).unwrap();
            (child.wait().unwrap().code(), said)
        });
        soon("the end of a playback", waiting).await.unwrap()
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn replay(file: &Path, arguments: &[&str]) -> Playing {
    let mut command = aaep(&["replay", file.to_str().unwrap()]);
    let mut child = command.args(arguments).spawn().unwrap();
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

/// A capture of so many events, with this between them.
fn paced(file: &Path, events: u64, gap: Duration) {
    let mut out = std::fs::File::create(file).unwrap();
    for number in 0..events {
        let at = gap * u32::try_from(number).unwrap();
        let stamp = Timestamp::from_millis(1_700_000_000_000 + at.as_millis() as i64).unwrap();
        let event = json!({
            "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
            "type": "aaep:agent.progress.updated", "event_id": format!("evt_{}", number + 1),
            "session_id": "sess_1", "timestamp": stamp.to_string(),
            "producer": { "agent_id": "tidy" },
            "localization_hints": { "primary_language": "en" },
            "progress": { "percent": number }, "summary_normal": "Going on.",
        });
        let line = captured::write(stamp, at.as_micros() as u64, &event.to_string());
        writeln!(out, "{line}").unwrap();
    }
}

/// What comes of a stream, with the moments at which it came.
async fn arrivals(stream: &mut EventStream) -> Vec<(Instant, Value)> {
    let mut all = Vec::new();
    while let Some(frame) = soon("an event", stream.next()).await.unwrap() {
        all.push((Instant::now(), serde_json::from_str(&frame.data).unwrap()));
    }
    all
}

#[test]
fn it_keeps_the_recordings_pace_or_the_one_that_is_wanted() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paced.jsonl");
        // A pause is never shorter than it should be; that it is not much longer shows in that the
        // long recordings end at all. What a frame takes on its way may shorten the time between two.
        let on_the_way = Duration::from_millis(100);
        for (gap_ms, options, at_least_ms) in [
            (400, &[][..], 1200),
            (400_000, &["--speed", "1000"], 1200),
            (400_000, &["--max-pause", "1"], 3000),
            (400_000, &["--no-delay"], 0),
        ] {
            paced(&file, 4, Duration::from_millis(gap_ms));
            let playing = replay(&file, options);
            let mut stream = client(&playing.url, None).events("events", None).await.unwrap();
            let all = arrivals(&mut stream).await;
            let ids: Vec<&Value> = all.iter().map(|(_, event)| &event["event_id"]).collect();
            assert_eq!(ids, ["evt_1", "evt_2", "evt_3", "evt_4"], "{options:?}");
            let lasted = all[3].0 - all[0].0;
            let at_least = Duration::from_millis(at_least_ms).saturating_sub(on_the_way);
            assert!(lasted >= at_least, "{options:?}: {lasted:?}");
            assert_eq!(playing.ended().await.0, Some(0), "{options:?}");
        }
    });
}

#[test]
fn stamps_are_of_now_unless_those_of_the_recording_are_wanted() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stamps.jsonl");
        paced(&file, 2, Duration::from_secs(1));
        for (options, kept) in
            [(&["--no-delay"][..], false), (&["--no-delay", "--keep-stamps"], true)]
        {
            let playing = replay(&file, options);
            let mut stream = client(&playing.url, None).events("events", None).await.unwrap();
            let stamps: Vec<Value> = arrivals(&mut stream)
                .await
                .into_iter()
                .map(|(_, event)| event["timestamp"].clone())
                .collect();
            let recorded = ["2023-11-14T22:13:20.000Z", "2023-11-14T22:13:21.000Z"];
            assert_eq!(stamps == recorded, kept, "{options:?}: {stamps:?}");
        }
    });
}

#[test]
fn it_goes_on_after_the_event_that_was_heard_and_says_when_that_is_not_there() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("paced.jsonl");
        paced(&file, 4, Duration::ZERO);
        let heard = async |playing: &Playing, last: Option<&str>| -> Vec<Value> {
            let mut stream = client(&playing.url, None).events("events", last).await.unwrap();
            arrivals(&mut stream)
                .await
                .into_iter()
                .map(|(_, event)| event["event_id"].clone())
                .collect()
        };
        let playing = replay(&file, &["--no-delay"]);
        assert_eq!(heard(&playing, Some("evt_2")).await, ["evt_3", "evt_4"]);
        assert_eq!(playing.ended().await.0, Some(0));
        // Nothing follows the last one, and that is no fault.
        let playing = replay(&file, &["--no-delay"]);
        assert!(heard(&playing, Some("evt_4")).await.is_empty());
        assert_eq!(playing.ended().await.0, Some(0));

        let playing = replay(&file, &["--no-delay"]);
        assert!(heard(&playing, Some("evt_nowhere")).await.is_empty());
        let (code, said) = playing.ended().await;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("Nothing is played: event evt_nowhere is not in"), "{said}");
        // One lost listener does not end it for the others where it stays.
        let playing = replay(&file, &["--no-delay", "--stay"]);
        assert!(heard(&playing, Some("evt_nowhere")).await.is_empty());
        assert_eq!(heard(&playing, Some("evt_3")).await, ["evt_4"]);

        for from in ["evt_nowhere", "5"] {
            for more in [&[][..], &["--stay"], &["--loop"]] {
                let options = [&["--no-delay", "--from", from], more].concat();
                let playing = replay(&file, &options);
                assert!(heard(&playing, None).await.is_empty(), "{options:?}");
                let (code, said) = playing.ended().await;
                assert_eq!(code, Some(2), "{options:?}: {said}");
                assert!(said.contains(&format!("{from} is not in")), "{options:?}: {said}");
            }
        }
    });
}

// covers: W5
#[cfg(target_os = "linux")]
#[test]
fn programs_of_other_users_hear_nothing_of_a_private_recording() {
    let own = Command::new("id").arg("-u").output().unwrap();
    if own.stdout != b"0\n" {
        skipped("only root can run a program as another user.");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("paced.jsonl");
    paced(&file, 2, Duration::ZERO);
    let playing = replay(&file, &["--no-delay", "--stay", "--grpc", "127.0.0.1:0"]);
    let grpc = playing.more.iter().find_map(|line| line.strip_prefix("gRPC: grpc://")).unwrap();
    let curl = |user: &str, arguments: &[&str]| {
        let mut curl = Command::new("setpriv");
        curl.args(["--reuid", user, "--regid", user, "--clear-groups", "--", "curl", "-sS", "-i"]);
        curl.args(["--max-time", "20"]).args(arguments);
        let output = curl.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let events = format!("{}/events", playing.url);
    let heard = curl("0", &[&events]);
    assert!(heard.contains("evt_1") && heard.contains("evt_2"), "{heard}");
    let refused = curl("65534", &[&events]);
    assert!(refused.starts_with("HTTP/1.1 403") && !refused.contains("evt_"), "{refused}");
    assert!(refused.contains("for programs of the user who plays it"), "{refused}");
    let frame = folder.path().join("frame");
    std::fs::write(&frame, [0; 5]).unwrap();
    let frame = format!("@{}", frame.display());
    let listen = format!("http://{grpc}/aaep.v1.AaepService/Listen");
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let call = [
        "--http2-prior-knowledge",
        "-H",
        "content-type: application/grpc",
        "-H",
        "te: trailers",
        "--data-binary",
        &frame,
        &listen,
    ];
    let refused = curl("65534", &call);
    assert!(refused.contains("grpc-status: 7") && !refused.contains("evt_"), "{refused}");
    let heard = curl("0", &call);
    assert!(heard.contains("evt_2"), "{heard}");
}
