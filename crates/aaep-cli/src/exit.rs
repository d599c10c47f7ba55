//! How the command ends, and what it says on the way out.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use aaep_types::Timestamp;

/// The worst that happened decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything is as it should be.
    Good = 0,
    /// Something wrong was found.
    Wrong = 1,
    /// Something could not be done.
    Unable = 2,
    /// Nobody answered.
    Nobody = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// How important a line on standard error is, where a program reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    Error,
    Warn,
    Info,
}

/// Whether standard error is read by a program: then everything there is JSON, one object on a line.
static IS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on everything on standard error is JSON, in the shape of the log; what panics too.
pub(crate) fn speak_json() {
    if IS_JSON.swap(true, Ordering::Relaxed) {
        return;
    }
    std::panic::set_hook(Box::new(|panic| say_as(Weight::Error, &panic.to_string())));
}

/// A line on standard error.
pub(crate) fn say(text: &str) {
    say_as(Weight::Warn, text);
}

/// The same, with how important it is for a program that reads it.
pub(crate) fn say_as(weight: Weight, text: &str) {
    // If nobody listens there either, the exit status has to say it.
    let _ = if IS_JSON.load(Ordering::Relaxed) {
        writeln!(io::stderr(), "{}", as_json(weight, text, SystemTime::now()))
    } else {
        writeln!(io::stderr(), "aaep: {text}")
    };
}

fn as_json(weight: Weight, text: &str, now: SystemTime) -> serde_json::Value {
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    serde_json::json!({
        "timestamp": Timestamp::from_millis(millis).map(|now| now.to_string()),
        "level": format!("{weight:?}").to_uppercase(),
        "fields": { "message": text },
        "target": "aaep",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_for_programs_has_the_shape_of_the_log() {
        let at = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_770_111_000_123);
        let line = as_json(Weight::Error, "No \"room\"\n", at).to_string();
        assert_eq!(
            line,
            r#"{"timestamp":"2026-02-03T09:30:00.123Z","level":"ERROR","fields":{"message":"No \"room\"\n"},"target":"aaep"}"#
        );
    }

    /// What [`a_panic_is_a_line_for_programs_too`] runs in a process of its own.
    #[test]
    #[ignore = "it panics, and is run by the test below"]
    fn panics_for_programs() {
        speak_json();
        panic!("broken \"invariant\"");
    }

    #[test]
    #[allow(clippy::disallowed_methods)] // starts itself
    fn a_panic_is_a_line_for_programs_too() {
        let own = std::env::current_exe().unwrap();
        let name = "exit::tests::panics_for_programs";
        let ended = std::process::Command::new(own)
            .args(["--ignored", "--exact", "--nocapture", name])
            .output()
            .unwrap();
        assert!(!ended.status.success());
        let said = String::from_utf8(ended.stderr).unwrap();
        let line: serde_json::Value = serde_json::from_str(said.trim()).expect(&said);
        assert_eq!((&line["level"], &line["target"]), (&"ERROR".into(), &"aaep".into()));
        let message = line["fields"]["message"].as_str().unwrap();
        assert!(message.contains("exit.rs") && message.contains("broken \"invariant\""), "{said}");
    }
}
