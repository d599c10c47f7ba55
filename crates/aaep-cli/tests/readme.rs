//! What the READMEs show is what the command prints.
#![cfg(unix)] // the shown commands are those of a Unix shell
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // tests run programs

mod support;

use std::path::Path;
use std::process::Command;

use support::{folder, root};

/// A shown command, and what is shown beneath it.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    command: String,
    output: String,
}

/// Every command in an indented block that mentions `aaep`, behind its `$ `.
fn shown(document: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    let mut in_block = false;
    for line in document.lines() {
        let text = line.strip_prefix("    ");
        match text {
            Some(text) if text.starts_with("$ ") => {
                let command = text[2..].to_owned();
                all.push(Shown { command, output: String::new() });
                in_block = true;
            }
            Some(text) if in_block => {
                if let Some(last) = all.last_mut() {
                    last.output += &format!("{text}\n");
                }
            }
            _ => in_block = false,
        }
    }
    all.retain(|shown| shown.command.contains("aaep "));
    all
}

/// Runs a command as a reader would, in a folder that has the vectors and nothing else.
fn run(command: &str, folder: &Path) -> String {
    let aaep = Path::new(env!("CARGO_BIN_EXE_aaep"));
    let path = format!("{}:/usr/bin:/bin", aaep.parent().expect("a folder").display());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).current_dir(folder).env("PATH", path);
    String::from_utf8(shell.output().expect("a shell").stdout).expect("plain text")
}

fn check(document: &str, at_least: usize, test: &str) {
    let text = std::fs::read_to_string(root().join(document)).expect(document);
    let folder = folder(test);
    std::os::unix::fs::symlink(root().join("vectors"), folder.join("vectors")).expect("a link");
    let all = shown(&text);
    assert!(all.len() >= at_least, "{document} shows {} commands", all.len());
    for Shown { command, output } in all {
        assert_eq!(run(&command, &folder), output, "{document}: {command}");
    }
}

#[test]
fn the_project_shows_what_the_command_prints() {
    check("README.md", 4, "readme_of_the_project");
}

#[test]
fn the_crate_shows_what_the_command_prints() {
    check("crates/aaep-cli/README.md", 1, "readme_of_the_crate");
}

/// The first command that a newcomer runs starts, and says that it is ready.
#[test]
fn the_first_command_of_the_project_starts() {
    use std::io::{BufRead, BufReader};
    let text = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    let first = text.lines().find_map(|line| line.strip_prefix("    ")).expect("a command");
    let arguments = first.strip_prefix("cargo run --release -- ").expect("it runs our command");
    let own = folder("first");
    std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .expect("own");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_aaep"))
        .args(arguments.split_whitespace())
        // Other tests may have the usual port.
        .args(["--listen", "127.0.0.1:0"])
        // What it keeps is apart from that of the developer who runs the tests.
        .env_remove("XDG_DATA_HOME")
        .env_remove("XDG_STATE_HOME")
        .env("HOME", &own)
        .env("XDG_RUNTIME_DIR", &own)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    let lines = BufReader::new(demo.stdout.take().expect("its output")).lines();
    let ready = lines.map_while(Result::ok).any(|line| line.starts_with("Ready."));
    let _ = demo.kill();
    let _ = demo.wait();
    assert!(ready, "{first}");
}
