//! A whole session as its user hears it, with three published programs: docs/heard-agents.md.
//!
//! `cargo xtask agents --write` keeps what was heard; otherwise a change is a failed test.

use std::io::{BufRead, BufReader};
use std::process::ChildStdin;

use super::programs::*;
use super::*;

const HEAD: &str = "\
# A session with each of three agents, as it is heard

Made by `cargo xtask agents --write`: `aaep guard` set the program up, a scripted model wants four steps of it, and `aaep listen` is in another terminal. Lines that begin with `>` are typed. What is said in another way than here is a failed test.
";

/// `aaep listen`, and everything that was heard and typed.
struct Listener {
    child: Child,
    to: ChildStdin,
    from: std::io::Lines<BufReader<std::process::ChildStdout>>,
    heard: String,
}

impl Listener {
    fn start(home: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.arg("listen").env_clear().env("HOME", home).env("LANG", "en_US.UTF-8");
        command.env("XDG_RUNTIME_DIR", home.join("run"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, to, from, heard: String::new() }
    }

    /// Hears until something is said.
    fn hears(&mut self, words: &str) {
        loop {
            let line = self.from.next().unwrap_or_else(|| panic!("never {words}: {}", self.heard));
            let line = line.unwrap();
            self.heard += &format!("{line}\n");
            if line.contains(words) {
                return;
            }
        }
    }

    fn types(&mut self, line: &str) {
        self.heard += &format!("> {line}\n");
        self.to.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn session(bin: &Path, program: Program) -> String {
    let hub = Hub::start(Setup::default());
    let home = hub.home();
    let (no, outside) = mark(home, "NO");
    let steps: &[&[&str]] = &[&["cat notes.txt"], &["rm -r build"], &[&outside], &["git status"]];
    let model = model(program, steps);
    let mut command = program.command(bin, home, "", &model, None);
    let set_up = guard(bin, home, &[program.id(), "--yes"]);
    assert_eq!(set_up.code, 0, "{set_up:?}");
    let mut listener = Listener::start(home);
    listener.hears("Type help for help");
    let log = std::fs::File::create(home.join("log")).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log);
    let mut agent = command.spawn().unwrap();
    listener.hears("Allow this?");
    listener.hears("Type yes or no");
    listener.types("yes");
    listener.hears("To be sure");
    listener.types("yes");
    listener.hears("Allow this?");
    listener.hears("Type yes or no");
    listener.types("no");
    listener.hears("Done. “");
    assert!(agent.wait().unwrap().success());
    assert!(!home.join("project/build").exists() && !no.exists());
    // Only paths and times differ from one run to the next.
    let told = |line: &str| match line.split_once(" waits for you, for ") {
        Some((request, _)) => {
            format!("{request} waits for you, for as long as the program waits.\n")
        }
        None => format!("{line}\n"),
    };
    let heard: String = listener.heard.lines().map(told).collect();
    heard.replace(home.to_str().unwrap(), "/home/you")
}

#[test]
fn a_session_with_each_program_sounds_as_the_docs_say() {
    let Some(bin) = programs() else { return };
    let mut document = HEAD.to_owned();
    for program in Program::FIRST {
        let name = match program {
            Program::Claude => "Claude Code",
            Program::Codex => "Codex",
            _ => "Gemini CLI",
        };
        document += &format!("\n## {name}\n\n```text\n{}```\n", session(&bin, program));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/heard-agents.md");
    if std::env::var_os("AAEP_HEARD_WRITE").is_some() {
        return std::fs::write(file, document).unwrap();
    }
    let kept = std::fs::read_to_string(file).unwrap();
    assert_eq!(kept, document, "say it with `cargo xtask agents --write`");
}
