//! The session in docs/listening.md is what is heard.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::PATIENCE;
use crate::tty::Tty;
use crate::{Piped, around, demo, say};

fn document() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join("docs/listening.md")).unwrap()
}

/// The indented lines from the first that begins so.
fn indented(begins: &str) -> Vec<String> {
    let document = document();
    let lines = document.lines().skip_while(|line| !line.starts_with(&format!("    {begins}")));
    let block = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    block.map(|line| line.trim().to_owned()).collect()
}

/// The lines of the block ```` ```session ````.
fn shown() -> Vec<String> {
    let document = document();
    let block = document.split("```session\n").nth(1).expect("a session");
    block.split("```").next().unwrap().lines().map(String::from).collect()
}

/// What was said and typed so far, without the times.
fn told(transcript: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(transcript).unwrap_or_default();
    text.lines().filter_map(|line| Some(line.split_once("Z ")?.1.to_owned())).collect()
}

#[test]
fn the_session_in_the_document_is_what_is_heard() {
    let hub = demo();
    let transcript = hub.home().join("transcript.txt");
    let file = transcript.to_str().unwrap();
    let mut tty = Tty::start(&["--pause", "0", "--transcript", file], &around(&hub));
    let shown = shown();
    let mut expected: Vec<&str> = Vec::new();
    for line in &shown {
        if let Some(words) = line.strip_prefix('(') {
            say(&hub, words.trim_end_matches(')'));
            continue;
        }
        expected.push(line);
        if let Some(keys) = line.strip_prefix("> ") {
            let enter = if keys.chars().count() > 1 { "\n" } else { "" };
            tty.types(&format!("{keys}{enter}"));
            continue;
        }
        // Requests come first, so on a busy machine a line may come later than it stands here.
        let wanted = expected.iter().filter(|other| *other == line).count();
        let until = Instant::now() + PATIENCE;
        while told(&transcript).iter().filter(|other| *other == line).count() < wanted {
            assert!(
                Instant::now() < until,
                "{line:?} is not heard:\n{}",
                told(&transcript).join("\n")
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    assert_eq!(tty.ended(), 0);
    let mut heard = told(&transcript);
    heard.sort();
    expected.sort_unstable();
    assert_eq!(heard, expected);
}

#[test]
fn the_rules_and_the_lines_for_programs_in_the_document_are_understood() {
    let hub = demo();
    let file = hub.home().join("rules.toml");
    std::fs::write(&file, indented("[[rule]]").join("\n")).unwrap();
    let arguments = ["--json", "--policy", file.to_str().unwrap()];
    let mut listener = Piped::start(&arguments, &around(&hub));
    listener.sees("Your own rules are in force");
    listener.sees("connected");
    say(&hub, "delete the record");
    listener.sees("\"request\":1,");
    say(&hub, "ask me something");
    listener.sees("\"request\":2,");
    let lines = indented("{\"request\"");
    assert_eq!(lines.iter().filter(|line| !line.is_empty()).count(), 3, "{lines:?}");
    for (line, says) in lines.iter().zip(["accepted", "In Lagos the sun shines.", "\"said\""]) {
        listener.types(line);
        listener.sees(says);
    }
}
