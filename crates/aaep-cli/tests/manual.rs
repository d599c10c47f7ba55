//! `aaep completions` and `aaep man`.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // runs the command

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

#[path = "../../../testing/skipped.rs"]
mod skipped;

use skipped::skipped;

fn aaep(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_aaep")).args(arguments).output().unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = aaep(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that `aaep --help` lists.
fn commands() -> Vec<String> {
    let help = printed(&["--help"]);
    let (_, after) = help.split_once("Commands:\n").unwrap();
    let (list, _) = after.split_once("\n\n").unwrap();
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

#[test]
fn every_shell_learns_every_command() {
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(&["completions", shell]);
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell} does not know {command}");
        }
    }
}

#[test]
fn bash_completes_a_command_and_its_options() {
    let bash = Command::new("bash").arg("--version").stdout(Stdio::null()).status();
    if bash.is_err() {
        skipped("there is no bash");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("aaep.bash");
    fs::write(&script, printed(&["completions", "bash"])).unwrap();
    let complete = |words: &[&str]| {
        let line = format!(
            "source '{}'; COMP_WORDS=({}); COMP_CWORD={}; _aaep aaep '{}' '{}'; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display(),
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let output = Command::new("bash").args(["--norc", "-c", &line]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(complete(&["aaep", "hu"]).trim(), "hub");
    assert!(complete(&["aaep", "hub", "--eph"]).contains("--ephemeral"));
}

#[test]
fn a_shell_that_is_not_known_is_an_error_that_names_those_that_are() {
    let output = aaep(&["completions", "csh"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("bash") && said.contains("powershell"), "{said}");
}

#[test]
fn every_command_has_its_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    printed(&["man", "--out", pages.to_str().unwrap()]);
    let page = |name: &str| fs::read_to_string(pages.join(name)).unwrap_or_default();
    for command in commands().iter().filter(|command| *command != "help") {
        let text = page(&format!("aaep-{command}.1"));
        assert!(text.contains(".TH"), "there is no page of aaep {command}");
    }
    assert!(page("aaep-hub.1").contains("SIGHUP"));
    assert!(page("aaep-hub-init.1").contains("host"));
    assert!(printed(&["man"]).contains(".TH aaep 1"));
}

#[test]
fn a_directory_that_cannot_be_made_is_said() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let inside: &Path = &file.path().join("man1");
    let output = aaep(&["man", "--out", inside.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("cannot write to"), "{said}");
}
