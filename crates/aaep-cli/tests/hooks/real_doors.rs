//! The published programs behind their doors, driven by a scripted model. "It ran" is a file on disk.
//! Skipped like the tests in `real`.

use std::io::{BufRead, BufReader, Write};
use std::process::ChildStdin;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use aaep_bridge::guard::model::{Model, Script};

use super::programs::{Program, guard, mark, model, programs, write};
use super::*;

/// How long a program may take to do something.
const TAKES: Duration = Duration::from_secs(90);

/// A program, used in a terminal.
struct Used {
    child: Child,
    to: Option<ChildStdin>,
    lines: Receiver<String>,
    heard: Vec<String>,
}

impl Used {
    /// Starts `aaep acp --run --agent …`, with the environment that this command would have.
    fn start(agent: &str, program: &Path, set_up: &Command, home: &Path, options: &[&str]) -> Self {
        let words = ["acp", "--run", "--agent", agent];
        Self::begin(&[&words, options].concat(), program, set_up, home)
    }

    fn begin(words: &[&str], program: &Path, set_up: &Command, home: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.args(words).arg("--").arg(program);
        command.current_dir(project(home)).env_clear();
        command.envs(set_up.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            from.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        Self { child, to, lines, heard: Vec::new() }
    }

    fn types(&mut self, line: &str) {
        self.to.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn hears(&mut self, words: &str) -> String {
        let until = Instant::now() + TAKES;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.heard.push(line),
                Err(_) => panic!("never heard {words}: {:#?}", self.heard),
            }
            if self.heard.last().unwrap().contains(words) {
                return self.heard.last().unwrap().clone();
            }
        }
    }

    /// Says yes, and once more where that is wanted.
    fn says_yes(&mut self) {
        self.types("yes");
        while !self.hears("").contains("yes, sent") {
            if self.heard.last().unwrap().contains("To be sure") {
                self.types("yes");
            }
        }
    }

    fn quits(mut self) -> i32 {
        self.types("/quit");
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until the model was told this.
fn is_told(model: &Model, words: &str) {
    let until = Instant::now() + TAKES;
    while !model.told().contains(words) {
        assert!(Instant::now() < until, "the model never heard {words}: {}", model.told());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// What each program tells its model when somebody said no. Copilot ends its turn, and tells nothing.
fn no(program: Program) -> &'static str {
    match program {
        Program::Claude => "The person said no.",
        Program::Copilot => "",
        Program::Qwen => "cancel",
        _ => "reject",
    }
}

/// Programs whose questions come with an id that their hooks have too, or nearly.
const DOORS: [Program; 3] = [Program::Claude, Program::Codex, Program::Kimi];

fn start(program: Program, bin: &Path, home: &Path, model: &Model, options: &[&str]) -> Used {
    // Its settings and its environment. No hook of ours: the door asks.
    let set_up = program.command(bin, home, "true", model, None);
    let path = bin.join("node_modules/.bin").join(program.id());
    let mut used = Used::start(program.id(), &path, &set_up, home, options);
    used.hears("Type what the agent should do");
    used.types("do it");
    used
}

#[test]
fn behind_a_door_yes_runs_and_no_does_not() {
    let Some(bin) = programs() else { return };
    // opencode and Gemini CLI have tests of their own.
    for program in DOORS.into_iter().chain([Program::Qwen, Program::Copilot]) {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let ((yes, first), (refused, second)) = (mark(home, "YES"), mark(home, "NO"));
        let model = model(program, &[&[&first], &[&second]]);
        let mut used = start(program, &bin, home, &model, &[]);
        let asked = used.hears("Allow this?");
        assert!(asked.contains("outside the project"), "{program:?}: {asked}");
        used.hears("waits for you");
        assert!(!yes.exists(), "{program:?} did not wait");
        used.says_yes();
        used.hears("Allow this?");
        used.hears("waits for you");
        assert!(yes.exists() && !refused.exists(), "{program:?}");
        used.types("no");
        used.hears("is done");
        assert!(!refused.exists(), "{program:?}: {:#?}", used.heard);
        assert!(model.told().contains(no(program)), "{program:?}: {}", model.told());
        assert_eq!(used.quits(), 0, "{program:?}");
        assert!(!hub.log().join("\n").contains(CANARY));
    }
}

#[test]
fn what_guard_sets_up_and_its_door_together_ask_once() {
    let Some(bin) = programs() else { return };
    for program in DOORS {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let ((yes, first), (refused, second)) = (mark(home, "YES"), mark(home, "NO"));
        let model = model(program, &[&[&first], &[&second]]);
        let set_up = program.command(&bin, home, "", &model, None);
        let made = guard(&bin, home, &[program.id(), "--yes"]);
        assert_eq!(made.code, 0, "{program:?}: {made:?}");
        let path = bin.join("node_modules/.bin").join(program.id());
        let mut used = Used::begin(&["guard", "run", program.id()], &path, &set_up, home);
        used.hears("Type what the agent should do");
        used.types("do it");
        used.hears("waits for you");
        assert!(!yes.exists(), "{program:?} did not wait");
        used.says_yes();
        used.hears("waits for you");
        assert!(yes.exists() && !refused.exists(), "{program:?}: {:#?}", used.heard);
        used.types("no");
        is_told(&model, "The person said no.");
        used.types("/list");
        used.hears("is done");
        assert!(!refused.exists(), "{program:?}: {:#?}", used.heard);
        let asked = used.heard.iter().filter(|line| line.contains("Allow this?")).count();
        assert_eq!(asked, 2, "{program:?}: {:#?}", used.heard);
        assert_eq!(used.quits(), 0, "{program:?}");
    }
}

#[test]
fn behind_a_door_settings_that_allow_everything_do_not_keep_it_from_asking() {
    let Some(bin) = programs() else { return };
    let hub = Hub::start(Setup::default());
    let home = hub.home();
    let (ran, command) = mark(home, "RAN");
    let model = model(Program::Claude, &[&[&command]]);
    let set_up = Program::Claude.command(&bin, home, "true", &model, None);
    let settings = json!({ "permissions": { "allow": ["Bash"], "defaultMode": "acceptEdits" } });
    write(&home.join(".claude/settings.json"), &settings.to_string());
    let path = bin.join("node_modules/.bin/claude");
    let mut used = Used::start("claude", &path, &set_up, home, &[]);
    used.hears("Type what the agent should do");
    used.types("do it");
    used.hears("waits for you");
    assert!(!ran.exists());
    used.types("no");
    used.hears("is done");
    assert!(!ran.exists(), "{:#?}", used.heard);
    assert_eq!(used.quits(), 0);
}

#[test]
fn behind_a_door_silence_no_hub_and_a_dying_hub_let_nothing_run() {
    let Some(bin) = programs() else { return };
    for program in DOORS {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let (late, command) = mark(home, "LATE");
        let slow = model(program, &[&[&command]]);
        let mut used = start(program, &bin, home, &slow, &["--timeout", "4"]);
        used.hears("waits for you");
        used.hears("is done");
        is_told(&slow, no(program));
        assert!(!late.exists(), "{program:?}: {:#?}", used.heard);
        assert_eq!(used.quits(), 0);

        // Without a hub nobody can be asked.
        let (absent, command) = mark(home, "ABSENT");
        let without = model(program, &[&[&command]]);
        let set_up = program.command(&bin, home, "true", &without, None);
        let path = bin.join("node_modules/.bin").join(program.id());
        let mut used = Used::start(program.id(), &path, &set_up, home, &["--hub", "unix:/nowhere"]);
        used.hears("Trying again");
        used.types("do it");
        is_told(&without, no(program));
        assert!(!absent.exists(), "{program:?}: {:#?}", used.heard);

        let (killed, command) = mark(home, "KILLED");
        let model = model(program, &[&[&command]]);
        let mut used = start(program, &bin, home, &model, &["--timeout", "8"]);
        used.hears("waits for you");
        hub.kill();
        is_told(&model, no(program));
        assert!(!killed.exists(), "{program:?}: {:#?}", used.heard);
    }
}

#[test]
fn opencode_asks_over_its_door_though_it_asks_nothing_by_default() {
    let Some(bin) = programs() else { return };
    let hub = Hub::start(Setup::default());
    let home = hub.home();
    // Inside the project: outside, it asks about the directory too.
    let inside = project(home);
    let (yes, no) = (inside.join("YES"), inside.join("NO"));
    let step =
        |command: &str| vec![("bash", json!({ "command": command, "description": "a step" }))];
    let script: Script = vec![step("touch YES"), step("touch NO")];
    let model = Model::start(script).unwrap();
    let provider = json!({ "npm": "@ai-sdk/anthropic", "name": "scripted",
        "options": { "baseURL": format!("{}/v1", model.url), "apiKey": CANARY },
        "models": { "m": { "name": "m", "tool_call": true } } });
    let config = json!({ "autoupdate": false, "share": "disabled", "model": "scripted/m",
        "small_model": "scripted/m", "enabled_providers": ["scripted"],
        "provider": { "scripted": provider }, "permission": { "bash": "allow" } });
    write(&home.join(".config/opencode/opencode.json"), &config.to_string());
    let mut set_up = Command::new("true");
    set_up.env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap()).env("LANG", "C.UTF-8");
    set_up.env("XDG_RUNTIME_DIR", home.join("run")).env("DO_NOT_TRACK", "1");
    for off in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        set_up.env(format!("OPENCODE_DISABLE_{off}"), "1");
    }
    let path = bin.join("node_modules/.bin/opencode");
    let mut used = Used::begin(&["guard", "run", "opencode"], &path, &set_up, home);
    used.hears("Type what the agent should do");
    used.types("do it");
    used.hears("Allow this?");
    used.hears("waits for you");
    assert!(!yes.exists());
    used.says_yes();
    used.hears("Allow this?");
    used.hears("waits for you");
    assert!(yes.exists() && !no.exists());
    used.types("no");
    used.hears("is done");
    assert!(!no.exists(), "{:#?}", used.heard);
    assert_eq!(used.quits(), 0);
}
