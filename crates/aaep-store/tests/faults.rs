//! Real system calls that fail: no room, a broken disk, a sync that fails. `strace` lets them fail in
//! a child process, one after the other; where it is not there, these tests say so and pass.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // tests of files and processes
#![cfg(target_os = "linux")]

mod support;

#[path = "../../../testing/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::path::Path;
use std::process::{Command, Stdio};

use aaep_store::contract::{batch, faulty_journal_contract};
use aaep_store::{CannotOpen, Journal, Options, Sqlite};
use support::{Place, records};

/// How many batches of three records the child appends.
const BATCHES: u64 = 6;

/// The child's name among the tests, and where it finds its journal.
const CHILD: &str = "child_that_appends";
const VARIABLE: &str = "AAEP_STORE_TEST_JOURNAL";

/// The contract under faults. Says what it was promised, line by line.
#[test]
#[ignore = "run by the tests of this file, in a process of its own"]
fn child_that_appends() {
    let Some(path) = std::env::var_os(VARIABLE) else { return };
    let path = Path::new(&path);
    faulty_journal_contract(
        || open(path),
        BATCHES,
        |last, taken| match taken {
            Ok(()) => println!("promised {last}"),
            Err(fault) => println!("fault {fault:?}"),
        },
    );
    println!("done");
}

fn open(path: &Path) -> Sqlite {
    for _ in 0..100 {
        match Sqlite::open(path, Options::default(), &support::key()) {
            Ok(mut journal) => {
                journal.lay_out_log();
                return journal;
            }
            Err(CannotOpen::System { what }) => println!("not opened: {what}"),
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the fault passes, and so must this")
}

/// Runs the child with a fault in its `nth` such call; gives its words, or nothing if there were
/// fewer calls.
fn child_with(place: &Place, calls: &str, error: &str, nth: u32) -> Option<String> {
    let (inject, trace) = (format!("inject={calls}:error={error}:when={nth}"), place.path("trace"));
    let output = Command::new("strace")
        .args(["-f", "-q", "-e", &format!("trace={calls}"), "-e", &inject, "-o"])
        .arg(&trace)
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", CHILD, "--nocapture", "--test-threads=1"])
        .env(VARIABLE, place.journal())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && words.contains("done"),
        "{calls} {error} {nth}: {words}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let happened = std::fs::read_to_string(trace).unwrap().contains("(INJECTED)");
    happened.then_some(words)
}

fn strace_works() -> bool {
    let tried = Command::new("strace").args(["-q", "-o", "/dev/null", "true"]).output();
    let works = tried.is_ok_and(|output| output.status.success());
    if !works {
        skipped("strace is not here, or may not be used");
    }
    works
}

/// Lets the first, second, third ... call fail until there are no more; returns the faults that were
/// seen. Some calls fail without a word, such as those when the file is closed: the log stays.
fn every_call(calls: &str, error: &str) -> Vec<String> {
    let mut seen = Vec::new();
    for nth in 1.. {
        let place = Place::in_memory();
        let Some(words) = child_with(&place, calls, error, nth) else { break };
        let mut journal =
            Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
        assert_eq!(journal.read().unwrap(), records(&batch(1..=BATCHES * 3)), "{calls} {nth}");
        let is_fault = |line: &&str| line.contains("fault") || line.contains("not opened");
        seen.extend(words.lines().filter(is_fault).map(str::to_owned));
        assert!(nth < 1000, "there is an end to it");
    }
    seen
}

// covers: I10, I3
#[test]
fn without_room_nothing_is_kept_and_the_same_records_are_taken_later() {
    if !strace_works() {
        return;
    }
    let seen = every_call("pwrite64", "ENOSPC");
    assert!(seen.iter().any(|line| line.contains("fault Full")), "{seen:?}");
    assert!(!seen.iter().any(|line| line.contains("fault Failed")), "{seen:?}");
}

// covers: I10, I3
#[test]
fn after_a_write_that_failed_everything_promised_is_there() {
    if !strace_works() {
        return;
    }
    let seen = every_call("pwrite64", "EIO");
    assert!(seen.iter().any(|line| line.contains("fault Failed")), "{seen:?}");
    assert!(!seen.iter().any(|line| line.contains("fault Full")), "{seen:?}");
}

// covers: I10, I3
#[test]
fn after_a_sync_that_failed_everything_promised_is_there() {
    if !strace_works() {
        return;
    }
    let seen = every_call("fsync,fdatasync", "EIO");
    assert!(seen.iter().any(|line| line.contains("fault Failed")), "{seen:?}");
}
