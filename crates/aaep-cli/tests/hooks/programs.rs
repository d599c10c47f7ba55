//! The published programs: how each is set up and started with a scripted model.

#[path = "../../../../testing/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

pub use aaep_bridge::guard::model::{Model, Script};

use super::*;

/// Where the programs are, if they are.
pub fn programs() -> Option<PathBuf> {
    let found = std::env::var_os("AAEP_AGENTS").map(PathBuf::from);
    if found.is_none() {
        skipped("`cargo xtask agents` installs the programs and runs this.");
    }
    found
}

/// A program, and how it is started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Program {
    Claude,
    Codex,
    Gemini,
    Qwen,
    Kimi,
    Copilot,
    Opencode,
}

impl Program {
    pub const ALL: [Self; 7] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Qwen,
        Self::Kimi,
        Self::Copilot,
        Self::Opencode,
    ];

    /// Those that `aaep guard` itself tries.
    pub const FIRST: [Self; 3] = [Self::Claude, Self::Codex, Self::Gemini];

    pub fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Kimi => "kimi",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
        }
    }

    /// A call of its shell.
    pub fn shell(self, command: &str) -> (&'static str, Value) {
        let described = json!({ "command": command, "description": "a step" });
        match self {
            Self::Claude => ("Bash", described),
            Self::Codex => ("exec_command", json!({ "cmd": command })),
            Self::Gemini => ("run_shell_command", described),
            Self::Qwen => {
                let call =
                    json!({ "command": command, "description": "a step", "is_background": false });
                ("run_shell_command", call)
            }
            Self::Kimi => ("Bash", json!({ "command": command })),
            Self::Copilot | Self::Opencode => ("bash", described),
        }
    }

    /// Sets it up as docs/bridges.md says, with this hook, and starts it.
    pub fn start(self, bin: &Path, home: &Path, hook: &str, model: &Model) -> Child {
        self.command(bin, home, hook, model, None).spawn().unwrap()
    }

    /// The same, not started. `hook` is a script; without one there is no hook. The program waits for it
    /// for so many seconds, where it can be told.
    pub fn command(
        self,
        bin: &Path,
        home: &Path,
        hook: &str,
        model: &Model,
        waits: Option<u64>,
    ) -> Command {
        let project = project(home);
        let script = script(home, hook);
        let mut command = Command::new(bin.join("node_modules/.bin").join(self.id()));
        command.current_dir(&project).env_clear().env("HOME", home);
        command.env("LANG", "C.UTF-8").env("TERM", "dumb").env("DO_NOT_TRACK", "1");
        command.env("PATH", path(bin)).env("XDG_RUNTIME_DIR", home.join("run"));
        let has_hook = !hook.is_empty();
        match self {
            Self::Claude => claude(&mut command, home, has_hook.then_some(&script), waits),
            Self::Codex => {
                codex(&mut command, home, has_hook.then_some(&script), waits, &model.url)
            }
            Self::Gemini => gemini(&mut command, home, has_hook.then_some(&script), waits),
            Self::Qwen => qwen(&mut command, home, has_hook.then_some(&script), waits),
            Self::Kimi => kimi(&mut command, home, has_hook.then_some(&script), waits, &model.url),
            Self::Copilot => copilot(&mut command, home, has_hook.then_some(&script), waits),
            Self::Opencode => {
                opencode_packages(bin, home);
                opencode(&mut command, home, has_hook.then_some(&script), &model.url)
            }
        }
        match self {
            Self::Claude => command.env("ANTHROPIC_BASE_URL", &model.url),
            Self::Gemini => command.env("GOOGLE_GEMINI_BASE_URL", &model.url),
            Self::Qwen => command.env("OPENAI_BASE_URL", format!("{}/v1", model.url)),
            Self::Copilot => command.env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", model.url)),
            _ => &mut command,
        };
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The programs' own version of Node before the machine's: some need a newer one.
fn path(bin: &Path) -> std::ffi::OsString {
    let node = format!("node_modules/node-linux-{}/bin", node_arch());
    let path = std::env::var_os("PATH").unwrap();
    let all = std::iter::once(bin.join(node)).chain(std::env::split_paths(&path));
    std::env::join_paths(all).unwrap()
}

fn node_arch() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" }
}

/// A hook as a program of its own.
fn script(home: &Path, hook: &str) -> String {
    let path = home.join("hook.sh");
    write(&path, &format!("#!/bin/sh\n{hook}\n"));
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn claude(command: &mut Command, home: &Path, hook: Option<&String>, waits: Option<u64>) {
    let hook = hook.map(|hook| {
        let hook = json!({ "type": "command", "command": hook, "timeout": waits.unwrap_or(600), "onFailure": "block" });
        json!({ "PreToolUse": [{ "matcher": "*", "hooks": [hook] }] })
    });
    write(
        &home.join(".claude/settings.json"),
        &json!({ "hooks": hook.unwrap_or(json!({})) }).to_string(),
    );
    command.args(["-p", "do it", "--dangerously-skip-permissions"]);
    command.env("ANTHROPIC_API_KEY", CANARY).env("IS_SANDBOX", "1");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command.env("DISABLE_AUTOUPDATER", "1").env("DISABLE_TELEMETRY", "1");
}

fn codex(command: &mut Command, home: &Path, hook: Option<&String>, waits: Option<u64>, url: &str) {
    if let Some(hook) = hook {
        let hook = json!({ "type": "command", "command": hook, "timeout": waits.unwrap_or(600) });
        let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "*", "hooks": [hook] }] } });
        write(&home.join(".codex/hooks.json"), &hooks.to_string());
    }
    let config = format!(
        "model = \"gpt-5.5\"\nmodel_provider = \"scripted\"\ncheck_for_update_on_startup = false\n\
         [analytics]\nenabled = false\n[model_providers.scripted]\nname = \"scripted\"\n\
         base_url = \"{url}/v1\"\nwire_api = \"responses\"\nenv_key = \"SCRIPTED_KEY\"\n\
         request_max_retries = 0\nstream_max_retries = 0\n[projects.\"{}\"]\ntrust_level = \"trusted\"\n",
        project(home).display()
    );
    write(&home.join(".codex/config.toml"), &config);
    command.args(["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]);
    command.args(["--dangerously-bypass-hook-trust", "do it"]).env("SCRIPTED_KEY", CANARY);
}

/// The settings that Gemini CLI and its descendant share.
fn quiet(auth: &str) -> Value {
    json!({ "security": { "auth": { "selectedType": auth }, "folderTrust": { "enabled": false } },
        "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
        "general": { "enableAutoUpdate": false, "disableAutoUpdate": true } })
}

fn gemini(command: &mut Command, home: &Path, hook: Option<&String>, waits: Option<u64>) {
    let mut settings = quiet("gemini-api-key");
    if let Some(hook) = hook {
        let milliseconds = waits.unwrap_or(300) * 1000;
        let hook =
            json!({ "type": "command", "name": "aaep", "command": hook, "timeout": milliseconds });
        settings["hooks"] = json!({ "BeforeTool": [{ "matcher": "*", "hooks": [hook] }] });
    }
    write(&home.join(".gemini/settings.json"), &settings.to_string());
    let trusted = json!({ project(home).to_str().unwrap(): "TRUST_FOLDER" });
    write(&home.join(".gemini/trustedFolders.json"), &trusted.to_string());
    command.args(["-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p", "do it"]);
    command.env("GEMINI_API_KEY", CANARY).env("GEMINI_CLI_NO_RELAUNCH", "true");
}

fn qwen(command: &mut Command, home: &Path, hook: Option<&String>, waits: Option<u64>) {
    let mut settings = quiet("openai");
    if let Some(hook) = hook {
        let mut hook = json!({ "type": "command", "name": "aaep", "command": hook });
        if let Some(waits) = waits {
            hook["timeout"] = json!(waits * 1000);
        }
        settings["hooks"] = json!({ "PreToolUse": [{ "matcher": "*", "hooks": [hook] }] });
    }
    write(&home.join(".qwen/settings.json"), &settings.to_string());
    command.args(["--approval-mode", "yolo", "-o", "json", "do it"]);
    command.env("OPENAI_API_KEY", CANARY).env("OPENAI_MODEL", "scripted");
}

fn kimi(command: &mut Command, home: &Path, hook: Option<&String>, waits: Option<u64>, url: &str) {
    let mut config = format!(
        "default_model = \"scripted\"\ntelemetry = false\n[providers.scripted]\ntype = \"openai\"\n\
         base_url = \"{url}/v1\"\napi_key = \"{CANARY}\"\n[models.scripted]\nprovider = \"scripted\"\n\
         model = \"scripted\"\nmax_context_size = 100000\n"
    );
    if let Some(hook) = hook {
        let waits = waits.unwrap_or(600);
        config += &format!(
            "[[hooks]]\nevent = \"PreToolUse\"\ncommand = \"{hook}\"\ntimeout = {waits}\n"
        );
    }
    write(&home.join(".kimi-code/config.toml"), &config);
    command.args(["--output-format", "stream-json", "-p", "do it"]);
    command.env("KIMI_DISABLE_TELEMETRY", "1");
}

fn copilot(command: &mut Command, home: &Path, hook: Option<&String>, waits: Option<u64>) {
    if let Some(hook) = hook {
        let hook = json!({ "type": "command", "bash": hook, "timeoutSec": waits.unwrap_or(3600) });
        let file = json!({ "version": 1, "hooks": { "preToolUse": [hook] } });
        write(&home.join(".copilot/hooks/aaep.json"), &file.to_string());
    }
    command.args(["--no-auto-update", "--allow-all-tools", "--allow-all-paths", "-p", "do it"]);
    command.env("COPILOT_PROVIDER_API_KEY", CANARY).env("COPILOT_MODEL", "gpt-4.1");
    command.env("COPILOT_OFFLINE", "true").env("COPILOT_AUTO_UPDATE", "false");
}

fn opencode(command: &mut Command, home: &Path, hook: Option<&String>, url: &str) {
    let config = json!({ "autoupdate": false, "share": "disabled", "model": "scripted/scripted",
        "small_model": "scripted/scripted", "enabled_providers": ["scripted"],
        "permission": { "*": "allow", "external_directory": "allow" },
        "provider": { "scripted": { "npm": "@ai-sdk/openai-compatible", "name": "scripted",
            "options": { "baseURL": format!("{url}/v1"), "apiKey": CANARY },
            "models": { "scripted": { "name": "scripted", "tool_call": true } } } } });
    write(&home.join(".config/opencode/opencode.json"), &config.to_string());
    if let Some(hook) = hook {
        let plugin = include_str!("../../../aaep-bridge/src/guard/opencode.js");
        let plugin = plugin.replace("PROGRAM", &format!("{hook:?}"));
        write(&home.join(".config/opencode/plugin/aaep.js"), &plugin);
    }
    command.args(["run", "--format", "json", "do it"]);
    for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        command.env(format!("OPENCODE_DISABLE_{name}"), "1");
    }
}

/// What opencode fetches at its first start to load plugins, fetched before.
pub fn opencode_packages(bin: &Path, home: &Path) {
    let (from, to) = (bin.join("opencode"), home.join(".config/opencode"));
    std::fs::create_dir_all(&to).unwrap();
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    let _ = std::os::unix::fs::symlink(from.join("node_modules"), to.join("node_modules"));
}

pub fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Our hook for a program, as a script.
pub fn hook(program: Program, options: &str) -> String {
    format!("exec {} {options}", ours(program))
}

/// `aaep hook` for a program.
pub fn ours(program: Program) -> String {
    format!("{} hook --host {}", env!("CARGO_BIN_EXE_aaep"), program.id())
}

/// A step that is asked, because it is outside the project, and leaves its mark.
pub fn mark(home: &Path, name: &str) -> (PathBuf, String) {
    let path = home.join(name);
    let command = format!("touch {}", path.display());
    (path, command)
}

pub fn model(program: Program, steps: &[&[&str]]) -> Model {
    let script: Script = steps
        .iter()
        .map(|step| step.iter().map(|command| program.shell(command)).collect())
        .collect();
    Model::start(script).unwrap()
}

pub async fn asked(ear: &mut Ear, program: Program) -> Value {
    let asked = ear.event("awaiting.confirmation").await;
    let action = asked["action"].as_str().unwrap().to_owned();
    assert!(action.contains("outside the project"), "{program:?}: {action}");
    asked
}

/// Ends the hook that runs in this home.
pub fn kill_hook(home: &Path) {
    let ours = format!("HOME={}\0", home.display());
    for _ in 0..100 {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let name = entry.file_name();
            let Some(process) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let read =
                |name: &str| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            if read("cmdline").contains("\0hook\0") && read("environ").contains(&ours) {
                let killed = Command::new("kill").arg("-KILL").arg(process.to_string()).status();
                assert!(killed.unwrap().success());
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no hook runs");
}

/// `aaep guard` in this home, with the programs in its way.
pub fn guard(bin: &Path, home: &Path, words: &[&str]) -> Ended {
    let path = path(bin);
    let path = format!("{}:{}", bin.join("node_modules/.bin").display(), path.display());
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.arg("guard").args(words).current_dir(project(home)).stdin(Stdio::null());
    let output = command.env_clear().env("HOME", home).env("PATH", path).output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
