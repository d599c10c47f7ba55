//! `aaep guard`: settings in a home of the test's own, and programs that are scripts.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A home, a project in it, and a directory with programs.
pub struct Desk {
    home: TempDir,
}

impl Desk {
    pub fn new() -> Self {
        let desk = Self { home: tempfile::tempdir().unwrap() };
        project(desk.home.path());
        std::fs::create_dir(desk.at("bin")).unwrap();
        desk
    }

    fn at(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        std::fs::write(self.at(path), text).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.at(path)).ok()
    }

    fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.read(path).unwrap()).unwrap()
    }

    /// A program that says its version, and does nothing else.
    fn program(&self, name: &str, version: &str) {
        self.script(name, &format!("#!/bin/sh\necho {version}\n"));
    }

    pub fn script(&self, name: &str, text: &str) {
        let path = format!("bin/{name}");
        self.write(&path, text);
        std::fs::set_permissions(self.at(&path), PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.arg("guard").args(words).current_dir(self.at("project"));
        let path = format!("{}:/usr/bin:/bin", self.at("bin").display());
        command.env_clear().env("HOME", self.home.path()).env("PATH", path);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn guard(&self, words: &[&str]) -> Ended {
        self.guard_saying(words, "")
    }

    fn guard_saying(&self, words: &[&str], input: &str) -> Ended {
        said(self.command(words), input)
    }
}

fn said(mut command: Command, input: &str) -> Ended {
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

const FILES: [(&str, &str); 7] = [
    ("claude", ".claude/settings.json"),
    ("codex", ".codex/hooks.json"),
    ("gemini", ".gemini/settings.json"),
    ("opencode", ".config/opencode/plugin/aaep.js"),
    ("copilot", ".copilot/hooks/aaep.json"),
    ("qwen", ".qwen/settings.json"),
    ("kimi", ".kimi-code/config.toml"),
];

#[test]
fn every_program_is_set_up_proved_and_taken_back_without_a_trace() {
    for (program, file) in FILES {
        let desk = Desk::new();
        let done = desk.guard(&[program, "--yes"]);
        assert_eq!(done.code, 0, "{program}: {done:?}");
        assert!(done.out.contains("Proved: The hook was called"), "{program}: {done:?}");
        let made = desk.read(file).unwrap_or_else(|| panic!("{program}: {done:?}"));
        assert!(made.contains(env!("CARGO_BIN_EXE_aaep")), "{made}");
        // Once more changes nothing.
        let again = desk.guard(&[program, "--yes"]);
        assert!(again.code == 0 && again.out.contains("is set up already"), "{again:?}");
        assert_eq!(desk.read(file).unwrap(), made);
        let status = desk.guard(&["status"]);
        assert!(status.code == 0 && status.out.contains("Proved:"), "{program}: {status:?}");
        let gone = desk.guard(&["remove", program]);
        assert!(gone.code == 0 && gone.out.contains("to the byte"), "{program}: {gone:?}");
        assert_eq!(desk.read(file), None, "{program}");
        assert_eq!(desk.guard(&["status", program]).code, 1, "{program}");
    }
}

#[test]
fn nothing_is_changed_before_the_person_agrees() {
    let desk = Desk::new();
    let text = "{ \"theme\":\"dark\"}\n";
    desk.write(".claude/settings.json", text);
    for (words, input, code) in [
        (&["claude", "--dry-run"][..], "", 0),
        (&["claude"], "no\n", 2),
        (&["claude"], "", 2),
        (&["claude"], "perhaps\n", 2),
    ] {
        let asked = desk.guard_saying(words, input);
        assert_eq!(asked.code, code, "{asked:?}");
        assert!(asked.out.contains("PreToolUse") && asked.out.contains("Nothing was changed."));
        assert_eq!(desk.read(".claude/settings.json").unwrap(), text);
    }
    let asked = desk.guard_saying(&["claude"], "yes\n");
    assert_eq!(asked.code, 0, "{asked:?}");
    assert_eq!(desk.json(".claude/settings.json")["theme"], "dark");
}

#[test]
fn what_was_there_comes_back_to_the_byte_and_what_came_since_is_kept() {
    let desk = Desk::new();
    let odd = "{\r\n\t\"model\" : \"x\" ,\n \"hooks\":{\"PreToolUse\": [ ],\"Stop\":[{\"hooks\":[]}]},\"n\":1.50}";
    desk.write(".claude/settings.json", odd);
    assert_eq!(desk.guard(&["claude", "--yes"]).code, 0);
    let with = desk.json(".claude/settings.json");
    assert_eq!(with["hooks"]["PreToolUse"][0]["hooks"][0]["onFailure"], "block");
    assert_eq!(with["hooks"]["Stop"].as_array().unwrap().len(), 2);
    let gone = desk.guard(&["remove", "claude"]);
    assert!(gone.out.contains("to the byte"), "{gone:?}");
    assert_eq!(desk.read(".claude/settings.json").unwrap(), odd);

    assert_eq!(desk.guard(&["claude", "--yes"]).code, 0);
    let later = desk.read(".claude/settings.json").unwrap().replace("1.50", "2.50");
    desk.write(".claude/settings.json", &later);
    let gone = desk.guard(&["remove", "claude"]);
    assert!(gone.out.contains("what was changed since is kept"), "{gone:?}");
    assert_eq!(desk.read(".claude/settings.json").unwrap(), odd.replace("1.50", "2.50"));

    // Our own part was changed: nothing is guessed.
    assert_eq!(desk.guard(&["claude", "--yes"]).code, 0);
    let edited = desk.read(".claude/settings.json").unwrap().replace("86400", "5");
    desk.write(".claude/settings.json", &edited);
    let stays = desk.guard(&["remove", "claude"]);
    assert!(stays.code == 2 && stays.err.contains("by hand"), "{stays:?}");
    assert_eq!(desk.read(".claude/settings.json").unwrap(), edited);
}

#[test]
fn a_file_that_can_be_read_in_two_ways_is_left_alone() {
    for (program, file, text) in [
        ("claude", ".claude/settings.json", "{ // a comment\n}"),
        ("claude", ".claude/settings.json", "{\"a\":1,\"a\":2}"),
        ("gemini", ".gemini/settings.json", "{\"hooks\":[]}"),
        ("codex", ".codex/hooks.json", "\u{feff}{}"),
        ("kimi", ".kimi-code/config.toml", "hooks = 5\n"),
        ("kimi", ".kimi-code/config.toml", "a = = 5\n"),
        ("opencode", ".config/opencode/plugin/aaep.js", "export const X = 1\n"),
    ] {
        let desk = Desk::new();
        desk.write(file, text);
        let refused = desk.guard(&[program, "--yes"]);
        assert!(refused.code == 2 && refused.err.contains("Nothing was changed"), "{refused:?}");
        assert_eq!(desk.read(file).unwrap(), text);
    }
}

#[test]
fn status_notices_what_switches_it_off() {
    let change = |file: &'static str, change: fn(&mut Value)| {
        move |desk: &Desk| {
            let mut value = desk.json(file);
            change(&mut value);
            desk.write(file, &value.to_string());
        }
    };
    type Case = (&'static str, Box<dyn Fn(&Desk)>, &'static str);
    let cases: Vec<Case> = vec![
        (
            "claude",
            Box::new(change(".claude/settings.json", |it| it["disableAllHooks"] = json!(true))),
            "disableAllHooks",
        ),
        (
            "claude",
            Box::new(|desk: &Desk| {
                desk.write("project/.claude/settings.json", "{\"disableAllHooks\":true}")
            }),
            "disableAllHooks",
        ),
        (
            "claude",
            Box::new(|desk: &Desk| desk.write(".claude/settings.json", "{")),
            "cannot be read",
        ),
        (
            "claude",
            Box::new(|desk: &Desk| desk.write(".claude/settings.json", "{}")),
            "no hook of aaep",
        ),
        (
            "claude",
            Box::new(change(".claude/settings.json", |it| {
                it["hooks"]["PreToolUse"][0]["matcher"] = json!("Bash");
            })),
            "no hook of aaep",
        ),
        (
            "claude",
            Box::new(change(".claude/settings.json", |it| {
                it["hooks"]["PreToolUse"][0]["hooks"][0]["command"] = json!("/nowhere/aaep hook");
            })),
            "is not there",
        ),
        (
            "gemini",
            Box::new(change(".gemini/settings.json", |it| {
                it["hooksConfig"] = json!({ "enabled": false });
            })),
            "hooksConfig.enabled",
        ),
        (
            "gemini",
            Box::new(change(".gemini/settings.json", |it| {
                it["hooksConfig"] = json!({ "disabled": ["aaep"] });
            })),
            "switches the hook aaep off",
        ),
        (
            "gemini",
            Box::new(change(".gemini/settings.json", |it| {
                it["hooks"]["BeforeTool"][0]["hooks"][0]["timeout"] = json!(3_000_000_000_u64);
            })),
            "over at once",
        ),
        (
            "codex",
            Box::new(change(".codex/hooks.json", |it| it["$schema"] = json!("x"))),
            "drops all hooks",
        ),
        (
            "codex",
            Box::new(|desk: &Desk| desk.write(".codex/config.toml", "[features]\nhooks = false\n")),
            "hooks = false",
        ),
        (
            "kimi",
            Box::new(|desk: &Desk| {
                let text = desk.read(".kimi-code/config.toml").unwrap();
                desk.write(".kimi-code/config.toml", &text.replace("= 600", "= 900"));
            }),
            "over 600",
        ),
        (
            "qwen",
            Box::new(change(".qwen/settings.json", |it| it["disableAllHooks"] = json!(true))),
            "disableAllHooks",
        ),
        (
            "gemini",
            Box::new(change(".gemini/settings.json", |it| {
                it["hooks"]["BeforeTool"][0]["hooks"][0]["timeout"] = json!(60);
            })),
            "under ten seconds",
        ),
        (
            "qwen",
            Box::new(change(".qwen/settings.json", |it| {
                let hook = &mut it["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
                *hook = json!(
                    hook.as_str().unwrap().replace("--host-timeout 60", "--host-timeout 300")
                );
            })),
            "waits 60 seconds at most",
        ),
        (
            "opencode",
            Box::new(|desk: &Desk| {
                let file = ".config/opencode/plugin/aaep.js";
                desk.write(file, &desk.read(file).unwrap().replace("reject(", "resolve("));
            }),
            "no hook of aaep",
        ),
    ];
    for (program, switch_off, words) in cases {
        let desk = Desk::new();
        assert_eq!(desk.guard(&[program, "--yes"]).code, 0);
        assert_eq!(desk.guard(&["status"]).code, 0, "{program}");
        switch_off(&desk);
        let status = desk.guard(&["status"]);
        assert_eq!(status.code, 1, "{program}, {words}: {status:?}");
        let line = status.out.lines().find(|line| line.contains(words));
        assert!(
            line.is_some_and(|line| line.starts_with("Does not hold: ")),
            "{words}: {status:?}"
        );
    }
    // What the environment switches off.
    for (program, variable) in [("claude", "CLAUDE_CODE_SIMPLE"), ("opencode", "OPENCODE_PURE")] {
        let desk = Desk::new();
        assert_eq!(desk.guard(&[program, "--yes"]).code, 0);
        let mut command = desk.command(&["status"]);
        let off = said_with(command.env(variable, "1"));
        assert!(off.code == 1 && off.out.contains(variable), "{off:?}");
    }
}

#[test]
fn status_notices_modes_in_which_the_program_asks_nothing_by_itself() {
    let cases = [
        (
            "claude",
            ".claude/settings.json",
            "{\"permissions\":{\"defaultMode\":\"bypassPermissions\"}}",
        ),
        ("codex", ".codex/config.toml", "approval_policy = \"never\"\n"),
        ("gemini", ".gemini/settings.json", "{\"general\":{\"defaultApprovalMode\":\"yolo\"}}"),
        ("qwen", ".qwen/settings.json", "{\"tools\":{\"approvalMode\":\"yolo\"}}"),
        ("kimi", ".kimi-code/config.toml", "default_permission_mode = \"yolo\"\n"),
    ];
    for (program, file, text) in cases {
        let desk = Desk::new();
        desk.write(file, text);
        assert_eq!(desk.guard(&[program, "--yes"]).code, 0, "{program}");
        let status = desk.guard(&["status"]);
        assert!(status.out.contains("ask nothing by itself"), "{program}: {status:?}");
        // The hook asks all the same.
        assert_eq!(status.code, 0, "{program}: {status:?}");
    }
    let desk = Desk::new();
    assert_eq!(desk.guard(&["copilot", "--yes"]).code, 0);
    let status = said_with(desk.command(&["status"]).env("COPILOT_ALLOW_ALL", "yes"));
    assert!(status.code == 0 && status.out.contains("ask nothing by itself"), "{status:?}");
    // It says that this switches hooks off, but the version that was tried runs them.
    desk.write(".copilot/settings.json", "{\"disableAllHooks\":true}");
    let weak = desk.guard(&["status"]);
    assert!(weak.code == 0 && weak.out.contains("Weak: "), "{weak:?}");
    assert!(weak.out.contains("has disableAllHooks"), "{weak:?}");
}

fn said_with(command: &mut Command) -> Ended {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn an_old_version_is_said_to_be_old() {
    let desk = Desk::new();
    desk.program("claude", "\"2.1.294 (Claude Code)\"");
    let old = desk.guard(&["claude", "--yes"]);
    assert!(old.out.contains("Weak: Claude Code 2.1.294 is too old"), "{old:?}");
    // It did not come to a tool, and nobody claims that it did.
    assert!(old.out.contains("Not proved: Claude Code ran"), "{old:?}");
    desk.program("claude", "\"2.1.295 (Claude Code)\"");
    let new = desk.guard(&["status"]);
    assert!(!new.out.contains("too old"), "{new:?}");
}

#[test]
fn a_hook_that_does_not_refuse_is_found_out() {
    let desk = Desk::new();
    assert_eq!(desk.guard(&["claude", "--yes"]).code, 0);
    // A file of our name that lets everything pass.
    desk.write("elsewhere/aaep", "#!/bin/sh\nexit 0\n");
    std::fs::set_permissions(desk.at("elsewhere/aaep"), PermissionsExt::from_mode(0o755)).unwrap();
    let text = desk.read(".claude/settings.json").unwrap();
    let theirs = desk.at("elsewhere/aaep");
    desk.write(
        ".claude/settings.json",
        &text.replace(env!("CARGO_BIN_EXE_aaep"), theirs.to_str().unwrap()),
    );
    let status = desk.guard(&["status"]);
    assert!(status.code == 1 && status.out.contains("The hook does not refuse"), "{status:?}");
}

#[test]
fn a_hook_written_by_hand_stays_as_it_is_and_is_proved() {
    let desk = Desk::new();
    let hook = format!("{} hook --host claude", env!("CARGO_BIN_EXE_aaep"));
    let text = json!({ "hooks": { "PreToolUse": [{ "matcher": "*", "hooks": [
        { "type": "command", "command": hook, "onFailure": "block" }] }] } })
    .to_string();
    desk.write(".claude/settings.json", &text);
    let found = desk.guard(&["claude"]);
    assert!(found.code == 0 && found.out.contains("Somebody wrote it"), "{found:?}");
    assert_eq!(desk.read(".claude/settings.json").unwrap(), text);
    assert!(desk.guard(&["remove", "claude"]).out.contains("nothing of ours"));
    assert_eq!(desk.read(".claude/settings.json").unwrap(), text);
}

#[test]
fn a_project_has_settings_of_its_own_where_that_was_tried() {
    let desk = Desk::new();
    for (program, file) in [
        ("claude", "project/.claude/settings.local.json"),
        ("gemini", "project/.gemini/settings.json"),
    ] {
        assert_eq!(desk.guard(&[program, "--project", "--yes"]).code, 0);
        assert!(desk.read(file).is_some());
        assert_eq!(desk.guard(&["remove", program, "--project"]).code, 0);
        assert_eq!(desk.read(file), None);
    }
    let none = desk.guard(&["kimi", "--project", "--yes"]);
    assert!(none.code == 2 && none.err.contains("Use --user"), "{none:?}");
}

#[test]
fn a_link_to_settings_stays_a_link() {
    let desk = Desk::new();
    desk.write("dotfiles/claude.json", "{}");
    std::fs::create_dir(desk.at(".claude")).unwrap();
    std::os::unix::fs::symlink(desk.at("dotfiles/claude.json"), desk.at(".claude/settings.json"))
        .unwrap();
    assert_eq!(desk.guard(&["claude", "--yes"]).code, 0);
    assert!(desk.at(".claude/settings.json").is_symlink());
    assert!(desk.read("dotfiles/claude.json").unwrap().contains("onFailure"));
    assert_eq!(desk.guard(&["remove", "claude"]).code, 0);
    assert_eq!(desk.read("dotfiles/claude.json").unwrap(), "{}");
}

#[test]
fn the_plugin_in_the_docs_is_the_one_that_is_written() {
    let docs = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bridges.md"),
    )
    .unwrap();
    let desk = Desk::new();
    desk.guard(&["opencode", "--yes"]);
    let written = desk.read(".config/opencode/plugin/aaep.js").unwrap();
    let written = written.replace(env!("CARGO_BIN_EXE_aaep"), "/usr/local/bin/aaep");
    let (_, written) = written.split_once('\n').unwrap();
    assert!(docs.contains(written), "{written}");
}
