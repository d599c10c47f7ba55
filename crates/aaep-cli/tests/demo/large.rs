//! A recording that is larger than what may be held of it. `AAEP_LARGE_MEGABYTES=10000` makes it larger
//! than most machines' memory; then the release build is the one to try.

use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;

/// The text of each event, and how large the file is: enough to show whether it is held as a whole.
const CHUNK: usize = 16_000;
const MEGABYTES: u64 = 24;

/// The most that a command may hold that holds nothing of the file, in megabytes. The program alone,
/// unoptimized, takes 31.
const MOST: u64 = 46;
/// Events of one session.
const SESSION: u64 = 100;

fn megabytes() -> u64 {
    let wanted = std::env::var("AAEP_LARGE_MEGABYTES");
    wanted.map_or(MEGABYTES, |wanted| wanted.parse().unwrap())
}

/// Writes the file; gives the number of its events.
fn generate(file: &Path) -> u64 {
    let sessions = megabytes() * 1_000_000 / (CHUNK as u64 * SESSION) + 1;
    let events = sessions * SESSION;
    let mut out = BufWriter::new(std::fs::File::create(file).unwrap());
    let chunk = "A few words more. ".repeat(CHUNK / 18);
    for number in 1..=events {
        let session = (number - 1) / SESSION;
        let (kind, more) = match (number - 1) % SESSION {
            0 => ("session.started", json!({ "summary_normal": "It begins." })),
            at if at == SESSION - 1 => ("session.completed", json!({ "summary_normal": "Done." })),
            _ => (
                "output.streaming",
                json!({ "output_id": format!("out_{number}"), "chunk": chunk, "position": 0,
                    "complete": true }),
            ),
        };
        let mut event = json!({
            "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
            "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_{number}"),
            "session_id": format!("sess_{session}"), "timestamp": "2026-05-24T14:22:11.000Z",
            "producer": { "agent_id": "tidy" },
            "localization_hints": { "primary_language": "en" },
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::to_writer(&mut out, &event).unwrap();
        out.write_all(b"\n").unwrap();
    }
    out.flush().unwrap();
    events
}

/// The most memory that a process has held, in megabytes, looked at while something is done.
fn most_memory(process: u32, during: impl FnOnce()) -> u64 {
    let (most, over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let status = std::fs::read_to_string(format!("/proc/{process}/status"));
                let status = status.unwrap_or_default();
                let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
                most.fetch_max(kilobytes.unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        during();
        over.store(true, Ordering::Relaxed);
    });
    let megabytes = most.into_inner() / 1024;
    assert!(megabytes > 0, "it was looked at");
    megabytes
}

#[cfg(target_os = "linux")]
#[test]
fn a_large_recording_is_judged_played_and_told_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.jsonl");
    let events = generate(&file);
    let name = file.to_str().unwrap();
    let bytes = file.metadata().unwrap().len();
    assert!(bytes > megabytes() * 1_000_000);

    let begin = |arguments: &[&str]| {
        let mut command = aaep(arguments);
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).spawn().unwrap()
    };
    let mut end = None;
    let child = begin(&["check", name]);
    let most = most_memory(child.id(), || end = Some(child.wait_with_output().unwrap()));
    let (output, text) =
        (end.as_ref().unwrap(), String::from_utf8_lossy(&end.as_ref().unwrap().stdout));
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains(&format!("{events} messages: 0 errors")), "{text}");
    assert!(most < MOST, "check held {most} MB");

    let page = folder.path().join("page.html");
    let child = begin(&["inspect", name, "--format", "html", "--output", page.to_str().unwrap()]);
    let most = most_memory(child.id(), || end = Some(child.wait_with_output().unwrap()));
    assert_eq!(end.as_ref().unwrap().status.code(), Some(0));
    // 64 MiB of text, and the program itself.
    assert!(most < 120, "inspect held {most} MB");
    let told = std::fs::read_to_string(&page).unwrap();
    assert!(told.contains(&format!(", {events} messages: ")), "every message is judged");
    let is_cut = told.contains("Not shown, because there is too much: ");
    assert_eq!(is_cut, megabytes() > 70, "what is left out is counted");

    let mut child = begin(&["replay", name, "--no-delay"]);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    let url = lines.next().unwrap().unwrap();
    let stream = format!("{}/events", url.strip_prefix("Playing: ").unwrap());
    let mut heard = String::new();
    let most = most_memory(child.id(), || {
        let curl = "curl -sS --max-time 2000 \"$0\" | wc -c";
        let output = Command::new("sh").args(["-c", curl, &stream]).output().unwrap();
        heard = String::from_utf8(output.stdout).unwrap();
        assert!(child.wait().unwrap().success());
    });
    assert!(heard.trim().parse::<u64>().unwrap() > bytes, "{heard}");
    // It serves as well; the whole file would be another 24 MB.
    assert!(most < MOST + 12, "replay held {most} MB");
}
