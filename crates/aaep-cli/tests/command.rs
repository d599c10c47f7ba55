//! What holds for the whole command: help, pipes, memory.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // tests run programs

mod support;

use std::io::{Read, Write};
use std::process::Stdio;

use support::{REPLY, STARTED, aaep, ended, file, folder, run};

#[test]
fn the_version_is_that_of_the_package() {
    let ended = run(&["--version"]);
    assert_eq!((ended.code, ended.out), (0, format!("aaep {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn every_help_is_plain_text_with_examples() {
    for command in [&["--help"][..], &["validate", "--help"], &["check", "-h"], &["schema", "-h"]] {
        let ended = run(command);
        assert_eq!(ended.code, 0);
        assert!(ended.out.contains("\nExamples:\n  aaep "), "{}", ended.out);
        assert!(ended.out.is_ascii() && !ended.out.contains('\u{1b}'), "{}", ended.out);
    }
}

#[test]
fn what_cannot_be_understood_ends_with_two() {
    for arguments in
        [&[][..], &["valid"], &["validate", "--jsno"], &["validate", "--max-bytes", "x"]]
    {
        let ended = run(arguments);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{arguments:?}");
        assert!(!ended.err.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_listener_who_leaves_ends_the_command_silently() {
    let folder = folder("broken_pipe");
    let wrong = |number| STARTED.replace("evt_1", &format!("event {number}")) + "\n";
    let name = file(&folder, "many.jsonl", (0..10_000).map(wrong).collect::<String>());
    for arguments in [["validate", name.as_str()], ["check", name.as_str()]] {
        let mut child = aaep(&arguments).spawn().unwrap();
        let mut first = [0; 10];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let ended = ended(child);
        assert_eq!((ended.code, ended.err.as_str()), (2, ""), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = ended(aaep(&["schema"]).stdout(full).spawn().unwrap());
    assert_eq!(ended.code, 2);
    assert!(ended.err.starts_with("aaep: cannot write: "), "{}", ended.err);
}

/// How much memory the process has used at most, in KiB.
#[cfg(target_os = "linux")]
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

// covers: E21
#[cfg(target_os = "linux")]
#[test]
fn memory_stays_small_however_much_is_read() {
    const MEGABYTES: usize = 100;
    let mut child = aaep(&["validate"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Small messages, then one that is larger than any buffer, then small ones again.
    let small = format!("{STARTED}\n{REPLY}").repeat(1000);
    let large = [b'x'; 1 << 16];
    let rounds = MEGABYTES * (1 << 20) / 10 / small.len();
    for _ in 0..rounds {
        stdin.write_all(small.as_bytes()).unwrap();
    }
    stdin.write_all(b"{\"a\":\"").unwrap();
    for _ in 0..MEGABYTES * (1 << 20) * 9 / 10 / large.len() {
        stdin.write_all(&large).unwrap();
    }
    stdin.write_all(format!("\"}}\n{REPLY}\n").as_bytes()).unwrap();
    let memory = peak_memory(child.id());
    drop(stdin);
    let ended = ended(child);
    let (messages, valid) = (rounds * 2000 + 2, rounds * 2000 + 1);
    let summary = format!("{messages} messages: {valid} valid, 1 invalid, 0 with warnings\n");
    assert!(ended.out.ends_with(&summary), "{}", ended.out);
    // Most of it is the program itself, which is large without optimisation, and what the allocator
    // keeps ready.
    assert!(memory < 40 * 1024, "{memory} KiB");
}
