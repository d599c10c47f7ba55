//! `aaep inspect`: the real command, on real captures and on hostile ones.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use super::*;

async fn inspect(file: &Path, arguments: &[&str]) -> Ended {
    let mut command = aaep(&["inspect"]);
    ended(command.arg(file).args(arguments).spawn().unwrap()).await
}

fn event(number: u64, kind: &str, stamp: &str, more: &Value) -> String {
    let mut event = json!({
        "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
        "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_{number}"),
        "session_id": "sess_1", "timestamp": stamp, "producer": { "agent_id": "tidy" },
        "localization_hints": { "primary_language": "en" }, "summary_normal": "As usual.",
    });
    let members = event.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    format!("{event}\n")
}

#[test]
fn a_real_capture_is_told_with_the_request_and_how_long_was_thought() {
    run(async {
        let hub = demo(&[]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("captured.jsonl");
        let mut command = aaep(&["capture", &hub.base(), "--count", "7", "--out"]);
        let end = tokio::spawn(ended(command.arg(&file).spawn().unwrap()));
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        while !end.is_finished() {
            say(&hub, "transfer 20 euros to Ann").await;
            let request = ear.event("awaiting.confirmation").await;
            ear.decide(&request, "accept").await;
            ear.event("session.completed").await;
        }
        assert_eq!(end.await.unwrap().code, 0);
        let told = inspect(&file, &[]).await;
        assert_eq!(told.code, 0, "{}", told.err);
        for words in [
            "Request: Transfer 20 euros to Ann.",
            ": accepted. By whom is not in the recording.",
            "Tool: bank.transfer.",
            ": success.",
            "Agent: demo-agent",
        ] {
            assert!(told.out.contains(words), "{words}: {}", told.out);
        }
        let page = folder.path().join("page.html");
        let name = page.to_str().unwrap();
        let told = inspect(&file, &["--format", "html", "--output", name]).await;
        assert_eq!(told.code, 0, "{}", told.err);
        let html = std::fs::read_to_string(&page).unwrap();
        assert!(html.contains("<svg") && html.contains("default-src 'none'"), "{html}");
        assert_eq!(page.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let told = inspect(&file, &["--format", "html", "--output", name]).await;
        assert_eq!(told.code, 2, "a file that is there stays: {}", told.err);
    });
}

#[test]
fn replies_clocks_gaps_and_findings_are_told_in_place() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("theirs.jsonl");
        let piece = |text: &str, at: u64, whole: bool| json!({ "output_id": "out_1", "chunk": text, "position": at, "complete": whole });
        let ask = json!({ "urgency": "critical", "action": "Throw it away",
            "consequence": "It is gone.", "irreversible": true, "risk_level": "high",
            "reply_token": "rpl_1", "timeout_seconds": 60, "default_decision": "reject" });
        let reply = json!({ "type": "confirmation.reply", "reply_token": "rpl_1",
            "decision": "reject", "subscription_id": "sub_1", "decided_by": "Ann",
            "timestamp": "2026-05-24T14:22:13.000Z" });
        let text = [
            event(1, "session.started", "2026-05-24T14:22:11.000Z", &json!({})),
            event(2, "output.streaming", "2026-05-24T14:22:11.500Z", &piece("One ", 0, false)),
            event(3, "output.streaming", "2026-05-24T14:22:12.000Z", &piece("four", 10, true)),
            event(4, "awaiting.confirmation", "2026-05-24T14:22:13.000Z", &ask),
            format!("{{\"captured_at\":\"2026-05-24T14:22:13.000Z\",\"offset_ms\":0,\"message\":{reply}}}\n"),
            event(5, "state.changed", "2026-05-24T13:22:13.000Z",
                &json!({ "from_state": "awaiting_input", "to_state": "thinking" })),
            "{\"cut in the mid".into(),
        ]
        .concat();
        std::fs::write(&file, text).unwrap();
        let told = inspect(&file, &[]).await;
        assert_eq!(told.code, 0, "{}", told.err);
        for words in [
            "reject, by Ann.",
            "This cannot be undone.",
            "One \n  [6 characters are missing here]\n  four",
            "The clock went back by 1 h 0 min.",
            "its end is not in the recording",
            "Line 7: This is no event",
        ] {
            assert!(told.out.contains(words), "{words}: {}", told.out);
        }
        // What `aaep check` finds stands below the event where it was found.
        let lines: Vec<&str> = told.out.lines().collect();
        let found = lines.iter().position(|line| line.starts_with("    error: "));
        assert!(found.is_some_and(|at| lines[at - 1].starts_with("  ")), "{}", told.out);
    });
}

#[test]
fn nothing_of_a_hostile_recording_becomes_markup_or_moves_a_cursor() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("hostile.jsonl");
        let bad = "</pre><script>alert(1)</script>\"'&\u{202e}\u{1b}[2J\n\u{0}";
        let more = json!({ "summary_normal": bad, "session_id": bad, "event_id": bad,
            "producer": { "agent_id": bad } });
        let said = json!({ "chunk": bad, "position": 0, "complete": true, "output_id": bad,
            "session_id": bad });
        let tool =
            json!({ "tool": bad, "tool_call_id": bad, "args_summary": bad, "session_id": bad });
        let state = json!({ "from_state": bad, "to_state": bad, "session_id": bad });
        let stamp = "2026-05-24T14:22:11.000Z";
        let mut text = event(1, "session.started", stamp, &more);
        text += &event(2, "output.streaming", stamp, &said);
        text += &event(3, "tool.invoked", stamp, &tool);
        text += &event(4, "state.changed", stamp, &state);
        text += "\u{feff}[[[]}\n\"\\ud800\"\nnull\n";
        std::fs::write(&file, text).unwrap();
        for format in ["text", "html"] {
            let told = inspect(&file, &["--format", format]).await;
            assert_eq!(told.code, 0, "{}", told.err);
            assert!(!told.out.contains(['\u{202e}', '\u{1b}', '\0']), "{format}: {:?}", told.out);
            assert!(told.out.contains("\\u{202e}"), "{format}");
            if format == "html" {
                assert!(!told.out.contains("<script"), "{}", told.out);
                assert!(told.out.contains("&lt;script&gt;"), "{}", told.out);
            }
        }
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        for wrong in [empty.as_path(), folder.path(), Path::new("/nowhere")] {
            let told = inspect(wrong, &[]).await;
            assert!(told.code == 2 && !told.err.is_empty(), "{wrong:?}: {}", told.err);
        }
    });
}

#[test]
fn a_producer_is_told_as_it_speaks() {
    run(async {
        let hub = demo(&[]);
        let child = aaep(&["inspect", &hub.base()]).spawn().unwrap();
        let pid = child.id().to_string();
        let mut child = child;
        let out = child.stdout.take().unwrap();
        let lines = tokio::task::spawn_blocking(move || {
            use std::io::BufRead;
            let mut lines = std::io::BufReader::new(out).lines().map_while(Result::ok);
            let heard = lines.by_ref().find(|line| line.contains("session.completed"));
            Command::new("kill").args(["-INT", &pid]).status().unwrap();
            (heard, lines.collect::<Vec<_>>())
        });
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        while !lines.is_finished() {
            say(&hub, "hello").await;
            ear.event("session.completed").await;
        }
        let (heard, rest) = lines.await.unwrap();
        assert!(heard.is_some());
        assert!(rest.iter().any(|line| line.starts_with("Ended: completed")), "{rest:?}");
        let status = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(0));
    });
}

/// Waits until a process has read a file that it holds open to its end.
fn has_read(pid: &str, file: &Path) {
    let file = file.canonicalize().unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let length = file.metadata().unwrap().len();
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        let mut numbers =
            open.filter(|one| std::fs::read_link(one.path()).is_ok_and(|to| to == file));
        if let Some(number) = numbers.next() {
            let info = format!("/proc/{pid}/fdinfo/{}", number.file_name().to_str().unwrap());
            let info = std::fs::read_to_string(info).unwrap();
            let at = info.lines().find_map(|line| line.strip_prefix("pos:")).unwrap().trim();
            if at.parse() == Ok(length) {
                return;
            }
        }
        assert!(Instant::now() < until, "the file is not read");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_file_that_grows_is_followed_and_a_line_in_two_parts_is_one() {
    run(async {
        use std::io::{BufRead, BufReader, Write};
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("grows.jsonl");
        let stamp = "2026-05-24T14:22:11.000Z";
        let first = event(1, "session.started", stamp, &json!({}));
        let second = event(2, "session.completed", stamp, &json!({}));
        std::fs::write(&file, first).unwrap();
        let mut child = aaep(&["inspect", file.to_str().unwrap(), "--follow"]).spawn().unwrap();
        let pid = child.id().to_string();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let waiting = tokio::task::spawn_blocking(move || {
            assert!(lines.next().unwrap().contains("session.started"));
            let mut more = std::fs::OpenOptions::new().append(true).open(&file).unwrap();
            let (one, two) = second.split_at(second.len() / 2);
            more.write_all(one.as_bytes()).unwrap();
            has_read(&pid, &file);
            more.write_all(two.as_bytes()).unwrap();
            assert!(lines.next().unwrap().contains("line 2: session.completed"));
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
            (lines.collect::<Vec<_>>(), child.wait().unwrap().code())
        });
        let (rest, code) = soon("the end of the file", waiting).await.unwrap();
        assert!(rest.contains(&"Ended: completed".to_owned()), "{rest:?}");
        assert_eq!(code, Some(0));
    });
}
