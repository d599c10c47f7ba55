//! The published programs, driven by a scripted model. "It ran" is a file on disk.
//!
//! They are installed by `cargo xtask agents`, which names their directory in `AAEP_AGENTS`; without it
//! these tests are skipped.

use std::time::Duration;

use aaep_bridge::guard::model::{Model, Script};

use super::*;

/// Where the programs are, if they are.
fn programs() -> Option<PathBuf> {
    let found = std::env::var_os("AAEP_AGENTS").map(PathBuf::from);
    if found.is_none() {
        skipped("`cargo xtask agents` installs the programs and runs this.");
    }
    found
}

/// A program, and how it is started.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Program {
    Claude,
    Codex,
    Gemini,
}

impl Program {
    const ALL: [Self; 3] = [Self::Claude, Self::Codex, Self::Gemini];

    fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    /// A call of its shell.
    fn shell(self, command: &str) -> (&'static str, Value) {
        match self {
            Self::Claude => ("Bash", json!({ "command": command, "description": "a step" })),
            Self::Codex => ("exec_command", json!({ "cmd": command })),
            Self::Gemini => {
                ("run_shell_command", json!({ "command": command, "description": "a step" }))
            }
        }
    }

    /// Sets it up as docs/bridges.md says, with this hook, and starts it.
    fn start(self, bin: &Path, home: &Path, hook: &str, model: &Model) -> Child {
        self.command(bin, home, hook, model).spawn().unwrap()
    }

    fn command(self, bin: &Path, home: &Path, hook: &str, model: &Model) -> Command {
        let project = project(home);
        let mut command = Command::new(bin.join("node_modules/.bin").join(self.id()));
        command
            .current_dir(&project)
            .env_clear()
            .env("HOME", home)
            .env("LANG", "C.UTF-8")
            .env("TERM", "dumb");
        command
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("XDG_RUNTIME_DIR", home.join("run"));
        let entry = |seconds: u64| json!({ "type": "command", "name": "aaep", "command": hook, "timeout": seconds });
        match self {
            Self::Claude => {
                let mut before = entry(600);
                before["onFailure"] = json!("block");
                before.as_object_mut().unwrap().remove("name");
                let settings =
                    json!({ "hooks": { "PreToolUse": [{ "matcher": "*", "hooks": [before] }] } });
                write(&home.join(".claude/settings.json"), &settings.to_string());
                command.args(["-p", "do it", "--dangerously-skip-permissions"]);
                command.env("ANTHROPIC_BASE_URL", &model.url).env("ANTHROPIC_API_KEY", CANARY);
                command.env("IS_SANDBOX", "1").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
                command.env("DISABLE_AUTOUPDATER", "1").env("DISABLE_TELEMETRY", "1");
            }
            Self::Codex => {
                let mut before = entry(600);
                before.as_object_mut().unwrap().remove("name");
                let hooks =
                    json!({ "hooks": { "PreToolUse": [{ "matcher": "*", "hooks": [before] }] } });
                write(&home.join(".codex/hooks.json"), &hooks.to_string());
                let config = format!(
                    "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
                     [analytics]\nenabled = false\n[model_providers.scripted]\nname = \"scripted\"\n\
                     base_url = \"{}/v1\"\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n\
                     request_max_retries = 0\nstream_max_retries = 0\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
                    model.url,
                    project.display()
                );
                write(&home.join(".codex/config.toml"), &config);
                command.args([
                    "exec",
                    "--skip-git-repo-check",
                    "--dangerously-bypass-approvals-and-sandbox",
                ]);
                command
                    .args(["--dangerously-bypass-hook-trust", "do it"])
                    .env("SCRIPTED_KEY", CANARY);
            }
            Self::Gemini => {
                let settings = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } },
                    "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
                    "general": { "enableAutoUpdate": false, "disableAutoUpdate": true },
                    "hooks": { "BeforeTool": [{ "matcher": "*", "hooks": [entry(300_000)] }] } });
                write(&home.join(".gemini/settings.json"), &settings.to_string());
                let trusted = json!({ project.to_str().unwrap(): "TRUST_FOLDER" });
                write(&home.join(".gemini/trustedFolders.json"), &trusted.to_string());
                command.args(["-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p", "do it"]);
                command.env("GEMINI_API_KEY", CANARY).env("GOOGLE_GEMINI_BASE_URL", &model.url);
                command.env("GEMINI_CLI_NO_RELAUNCH", "true");
            }
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn hook(program: Program, options: &str) -> String {
    format!("{} hook --host {} {options}", env!("CARGO_BIN_EXE_aaep"), program.id())
}

/// A step that is asked, because it is outside the project, and leaves its mark.
fn mark(home: &Path, name: &str) -> (PathBuf, String) {
    let path = home.join(name);
    let command = format!("touch {}", path.display());
    (path, command)
}

fn model(program: Program, steps: &[&[&str]]) -> Model {
    let script: Script = steps
        .iter()
        .map(|step| step.iter().map(|command| program.shell(command)).collect())
        .collect();
    Model::start(script).unwrap()
}

async fn asked(ear: &mut Ear, program: Program) -> Value {
    let asked = ear.event("awaiting.confirmation").await;
    let action = asked["action"].as_str().unwrap().to_owned();
    assert!(action.contains("outside the project"), "{program:?}: {action}");
    asked
}

#[test]
fn yes_runs_and_no_does_not_and_what_is_harmless_is_told() {
    let Some(bin) = programs() else { return };
    for program in Program::ALL {
        run(async {
            let hub = Hub::start(Setup::default());
            let home = hub.home();
            let (yes, first) = mark(home, "YES");
            let (no, second) = mark(home, "NO");
            let model = model(program, &[&["touch TOLD"], &[&first], &[&second]]);
            let mut ear = Ear::unix(&hub).await;
            let agent = program.start(&bin, home, &hook(program, ""), &model);
            let told = ear.event("tool.invoked").await;
            assert_eq!(told["summary_normal"], "Make or touch TOLD.", "{program:?}");
            let request = asked(&mut ear, program).await;
            assert!(!yes.exists(), "{program:?} did not wait");
            ear.decide(&request, "accept").await;
            let request = asked(&mut ear, program).await;
            ear.decide(&request, "reject").await;
            let ended = ended(agent).await;
            let ran = (home.join("project/TOLD").exists(), yes.exists(), no.exists());
            assert_eq!(ran, (true, true, false), "{program:?}: {ended:?}\n{}", model.told());
            assert!(model.told().contains("The person said no."), "{program:?}: {}", model.told());
            assert!(!hub.log().join("\n").contains(CANARY));
        });
    }
}

#[test]
fn without_an_answer_without_a_hub_and_with_a_dying_hub_nothing_runs() {
    let Some(bin) = programs() else { return };
    for program in Program::ALL {
        run(async {
            let hub = Hub::start(Setup::default());
            let home = hub.home();
            let (late, command) = mark(home, "LATE");
            let slow = model(program, &[&[&command]]);
            let agent = program.start(&bin, home, &hook(program, "--host-timeout 5"), &slow);
            let silent = ended(agent).await;
            assert!(!late.exists(), "{program:?}: {silent:?}");
            assert!(slow.told().contains("in time"), "{program:?}: {}", slow.told());

            let (absent, command) = mark(home, "ABSENT");
            let model_without = model(program, &[&[&command, "touch HARMLESS"]]);
            let agent =
                program.start(&bin, home, &hook(program, "--hub unix:/nowhere"), &model_without);
            let without = ended(agent).await;
            assert!(
                !absent.exists() && !home.join("project/HARMLESS").exists(),
                "{program:?}: {without:?}"
            );

            let (killed, command) = mark(home, "KILLED");
            let model = model(program, &[&[&command]]);
            let mut ear = Ear::unix(&hub).await;
            let agent = program.start(&bin, home, &hook(program, "--host-timeout 12"), &model);
            asked(&mut ear, program).await;
            hub.kill();
            let dying = ended(agent).await;
            assert!(!killed.exists(), "{program:?}: {dying:?}");
        });
    }
}

#[test]
fn two_calls_at_once_are_two_questions_with_two_answers() {
    let Some(bin) = programs() else { return };
    run(async {
        let program = Program::Claude;
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let ((first, one), (second, two)) = (mark(home, "FIRST"), mark(home, "SECOND"));
        let model = model(program, &[&[&one, &two]]);
        let mut ear = Ear::unix(&hub).await;
        let agent = program.start(&bin, home, &hook(program, ""), &model);
        for _ in 0..2 {
            let request = asked(&mut ear, program).await;
            let yes = request["action"].as_str().unwrap().contains("FIRST");
            ear.decide(&request, if yes { "accept" } else { "reject" }).await;
        }
        let ended = ended(agent).await;
        assert_eq!((first.exists(), second.exists()), (true, false), "{ended:?}");
    });
}

#[test]
fn a_hook_that_is_killed_lets_nothing_through_where_the_program_can_be_told_so() {
    let Some(bin) = programs() else { return };
    run(async {
        let program = Program::Claude;
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let (ran, command) = mark(home, "RAN");
        let model = model(program, &[&[&command]]);
        let mut ear = Ear::unix(&hub).await;
        let hook = format!("exec {}", hook(program, ""));
        let agent = program.start(&bin, home, &hook, &model);
        asked(&mut ear, program).await;
        kill_hook(home);
        let ended = ended(agent).await;
        assert!(!ran.exists(), "{ended:?}");
    });
}

#[test]
fn a_published_server_behind_the_proxy_waits_for_the_person() {
    let Some(bin) = programs() else { return };
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let call = |text: &str| vec![("mcp__ev__echo", json!({ "message": text }))];
        let model = Model::start(vec![call("first words"), call("second words")]).unwrap();
        let server = bin.join("node_modules/.bin/mcp-server-everything");
        let config = json!({ "mcpServers": { "ev": { "command": env!("CARGO_BIN_EXE_aaep"),
            "args": ["mcp", "--name", "ev", "--", server, "stdio"] } } });
        write(&home.join("mcp.json"), &config.to_string());
        let mut ear = Ear::unix(&hub).await;
        // A hook that lets everything pass: the proxy is what asks.
        let mut command = Program::Claude.command(&bin, home, "true", &model);
        command.arg("--strict-mcp-config").arg("--mcp-config").arg(home.join("mcp.json"));
        let agent = command.spawn().unwrap();
        for decision in ["accept", "reject"] {
            let asked = ear.event("awaiting.confirmation").await;
            assert_eq!(asked["action"], "Use echo of ev.");
            ear.decide(&asked, decision).await;
        }
        let ended = ended(agent).await;
        let told = model.told();
        assert!(told.contains("Echo: first words"), "{ended:?}\n{told}");
        assert!(
            !told.contains("Echo: second words") && told.contains("The person said no."),
            "{told}"
        );
    });
}

/// Ends the hook that runs in this home.
fn kill_hook(home: &Path) {
    let ours = format!("HOME={}\0", home.display());
    for _ in 0..100 {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(process) =
                entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
            else {
                continue;
            };
            let read =
                |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            if read("cmdline").contains("\0hook\0") && read("environ").contains(&ours) {
                assert!(
                    Command::new("kill")
                        .arg("-KILL")
                        .arg(process.to_string())
                        .status()
                        .unwrap()
                        .success()
                );
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no hook runs");
}

/// `aaep guard` in this home, with the programs in its way.
fn guard(bin: &Path, home: &Path, words: &[&str]) -> Ended {
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", bin.join("node_modules/.bin").display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.arg("guard").args(words).current_dir(project(home)).stdin(Stdio::null());
    let output = command.env_clear().env("HOME", home).env("PATH", path).output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn a_guard_is_proved_with_the_program_itself_and_so_is_its_failure() {
    let Some(bin) = programs() else { return };
    for program in Program::ALL {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let id = program.id();
        let made = guard(&bin, home, &[id, "--yes"]);
        assert_eq!(made.code, 0, "{program:?}: {made:?}");
        assert!(made.out.contains("the hook refused, and the file was not made"), "{made:?}");
        let held = guard(&bin, home, &["status"]);
        assert!(held.code == 0 && held.out.contains("the hook refused"), "{held:?}");

        // Each program drops its hooks without a word for another reason.
        let file = home.join(match program {
            Program::Claude => ".claude/settings.json",
            Program::Codex => ".codex/hooks.json",
            Program::Gemini => ".gemini/settings.json",
        });
        let with = std::fs::read_to_string(&file).unwrap();
        let (broken, words) = match program {
            Program::Claude => (with.replacen('{', "{ \"permissions\": { \"allow\": 5 },", 1), ""),
            Program::Codex => {
                (with.replace("86400,", "86399,").replace("86400\n", "86399\n"), "does not trust")
            }
            Program::Gemini => (
                with.replacen('{', "{ \"hooksConfig\": { \"enabled\": false },", 1),
                "switches hooks off",
            ),
        };
        assert_ne!(broken, with);
        write(&file, &broken);
        let off = guard(&bin, home, &["status"]);
        assert!(off.code == 1 && off.out.contains(words), "{program:?}: {off:?}");
        assert!(off.out.contains("does not ask") && off.out.contains("it was made"), "{off:?}");

        write(&file, &with);
        let again = guard(&bin, home, &["status"]);
        assert_eq!(again.code, 0, "{program:?}: {again:?}");
        let gone = guard(&bin, home, &["remove", id]);
        assert!(gone.code == 0 && !file.exists(), "{gone:?}");
        assert!(!home.join(".codex/config.toml").exists(), "trust is taken back too");
    }
}

#[test]
fn a_published_agent_is_used_in_a_terminal_without_an_editor() {
    use std::io::{BufRead, BufReader};
    let Some(bin) = programs() else { return };
    let hub = Hub::start(Setup::default());
    let home = hub.home();
    let ((yes, first), (no, second)) = (mark(home, "YES"), mark(home, "NO"));
    let model = model(Program::Gemini, &[&[&first], &[&second]]);
    // Its settings and its environment; hooks do not run here.
    let set_up = Program::Gemini.command(&bin, home, "true", &model);
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(["acp", "--run", "--"]).arg(bin.join("node_modules/.bin/gemini"));
    command.args(["--acp", "-m", "gemini-2.5-pro"]).current_dir(project(home)).env_clear();
    command.envs(set_up.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut heard = Vec::new();
    let mut from = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut hears = |words: &str| {
        loop {
            let line = from.next().unwrap_or_else(|| panic!("never heard {words}: {heard:#?}"));
            heard.push(line.unwrap());
            if heard.last().unwrap().contains(words) {
                return heard.last().unwrap().clone();
            }
        }
    };
    let mut types = |line: &str| to.write_all(format!("{line}\n").as_bytes()).unwrap();
    hears("Type what the agent should do");
    types("do it");
    assert!(hears("Allow this?").contains("touch"), "what would run is said");
    hears("waits for you");
    assert!(!yes.exists());
    types("yes");
    hears("To be sure");
    types("yes");
    hears("Allow this?");
    hears("waits for you");
    assert!(yes.exists() && !no.exists());
    types("no");
    hears("is done");
    types("/quit");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!no.exists(), "{heard:#?}");
}

/// Says it past the harness, which swallows what passing tests print.
fn skipped(why: &str) {
    use std::io::Write;
    let thread = std::thread::current();
    let _ = writeln!(std::io::stderr(), "skipped {}: {why}", thread.name().unwrap_or("a test"));
}
