//! The proof: a call that has to be refused, because nobody can be asked.
//!
//! A hook is called as the program would call it. Where the program can be run without its maker's
//! model, it runs too, with a scripted model on this machine that wants one file made: if that file is
//! there afterwards, the guard does not hold. So it is behind its door, where somebody is asked and says
//! no.

mod door;
mod others;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::child::{self, Installed};
use super::model::Model;
use super::{Guard, Scope, files};
use crate::host::Host;

pub use door::door;

/// How long a hook may take to refuse.
const HOOK_TAKES: Duration = Duration::from_secs(30);

/// How long a program may take to be refused.
const PROGRAM_TAKES: Duration = Duration::from_secs(90);

/// No hub: nobody can be asked.
const NO_HUB: &str = "none";

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CanaryOutcome {
    /// The call was refused.
    Held(String),
    /// The call went through, or would.
    Broken(String),
    /// Nobody can tell.
    Unproven(String),
}

/// Calls every hook of ours in the settings as the program would.
pub fn hook(guard: &Guard) -> CanaryOutcome {
    let name = guard.host.name();
    let text = match guard.path().and_then(|path| files::read(&path)) {
        Ok(Some(text)) => text,
        Ok(None) => {
            return CanaryOutcome::Broken(format!("{name} has no hook: its file is not there."));
        }
        Err(why) => return CanaryOutcome::Broken(why.to_string()),
    };
    let commands = guard.commands(&text);
    if commands.is_empty() {
        return CanaryOutcome::Broken(format!("{name} has no hook of aaep that sees every tool."));
    }
    let call = before(guard.host).to_string();
    for command in &commands {
        for input in [call.as_bytes(), b"garbage"] {
            if let Err(why) = refuses(guard.host, command, input) {
                return CanaryOutcome::Broken(format!(
                    "The hook does not refuse: {why}. It is: {command}"
                ));
            }
        }
    }
    CanaryOutcome::Held("The hook was called without anybody to ask, and refused.".into())
}

fn refuses(host: Host, command: &str, input: &[u8]) -> Result<(), String> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).env("AAEP_URL", NO_HUB);
    let ended = child::run(shell, input, HOOK_TAKES).map_err(|error| error.to_string())?;
    let answer: Value = serde_json::from_str(&ended.out).unwrap_or_default();
    let says = |pointer: &str| answer.pointer(pointer).and_then(Value::as_str) == Some("deny");
    let denied = match host {
        Host::Gemini | Host::Opencode => says("/decision"),
        Host::Copilot => says("/permissionDecision"),
        _ => says("/hookSpecificOutput/permissionDecision"),
    };
    match (ended.code, denied, ended.err.trim().is_empty()) {
        (Some(2), true, false) => Ok(()),
        (Some(2), _, _) => Err("it ended with 2, but not in the program's form".into()),
        (Some(code), _, _) => Err(format!("it ended with {code}")),
        (None, _, _) => Err("it did not end in time".into()),
    }
}

/// A call before a tool, as each program makes it.
fn before(host: Host) -> Value {
    let arguments = json!({ "command": "rm -rf /nonexistent/aaep-canary" });
    match host {
        Host::Copilot => {
            json!({ "sessionId": "canary", "cwd": "/", "toolName": "bash", "toolArgs": arguments })
        }
        Host::Opencode => json!({ "hook": "tool.execute.before", "directory": "/",
            "input": { "tool": "bash", "sessionID": "canary", "callID": "1" },
            "output": { "args": arguments } }),
        Host::Gemini => {
            json!({ "session_id": "canary", "cwd": "/", "hook_event_name": "BeforeTool",
            "tool_name": "run_shell_command", "tool_input": arguments })
        }
        Host::Kimi => json!({ "session_id": "canary", "cwd": "/", "hook_event_name": "PreToolUse",
            "client_type": "kimi_code_cli", "tool_name": "Bash", "tool_input": arguments }),
        _ => json!({ "session_id": "canary", "cwd": "/", "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": arguments }),
    }
}

/// Runs the program itself, in a home of its own with a copy of the settings.
pub fn program(guard: &Guard, installed: &Installed) -> CanaryOutcome {
    let name = guard.host.name();
    if guard.host == Host::Opencode && !others::has_packages(guard) {
        return CanaryOutcome::Unproven(format!(
            "Whether {name} loads its plugin was not tried: it would fetch packages first. Start {name} once, then run `aaep guard status`."
        ));
    }
    match tried(guard, installed) {
        Ok(outcome) => outcome,
        Err(error) => CanaryOutcome::Unproven(format!("{name} could not be tried: {error}.")),
    }
}

/// How a program is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// So that nothing but its hook stops it.
    Hook,
    /// Behind its door, without hooks: the door alone has to stop it.
    Door,
}

/// A home, a project in it, and a scripted model that wants one file made outside the project.
struct Stage {
    home: Temporary,
    project: PathBuf,
    ran: PathBuf,
    model: Model,
    /// The program, with its settings and its environment, and what makes it use the model.
    command: Command,
}

impl Stage {
    fn new(guard: &Guard, installed: &Installed, way: Way) -> io::Result<Self> {
        let home = Temporary::new()?;
        let project = home.path.join("project");
        fs::create_dir(&project)?;
        let ran = home.path.join("ran");
        let step = format!("touch {}", ran.display());
        let described = json!({ "command": step, "description": "a step" });
        let call = match guard.host {
            Host::Codex => ("exec_command", json!({ "cmd": step })),
            Host::Gemini => ("run_shell_command", described),
            Host::Qwen => {
                let call =
                    json!({ "command": step, "description": "a step", "is_background": false });
                ("run_shell_command", call)
            }
            Host::Kimi => ("Bash", json!({ "command": step })),
            Host::Copilot | Host::Opencode => ("bash", described),
            _ => ("Bash", described),
        };
        let model = Model::start(vec![vec![call]])?;
        let mut command = Command::new(&installed.path);
        command.current_dir(&project).env_clear().env("HOME", &home.path).env("AAEP_URL", NO_HUB);
        // What switches hooks off in the person's environment does so here as well.
        for kept in ["PATH", "LANG", "CLAUDE_CODE_SIMPLE", "OPENCODE_PURE"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command.env("TERM", "dumb");
        match guard.host {
            Host::Codex => codex(guard, &mut command, &model, &home.path, way)?,
            Host::Gemini => gemini(guard, &mut command, &model, &home.path, way)?,
            Host::Qwen => others::qwen(guard, &mut command, &model, &home.path, way)?,
            Host::Kimi => others::kimi(guard, &mut command, &model, &home.path, way)?,
            Host::Copilot => others::copilot(guard, &mut command, &model, &home.path, way)?,
            Host::Opencode => others::opencode(guard, &mut command, &model, &home.path, way)?,
            _ => claude(guard, &mut command, &model, &home.path, way)?,
        }
        Ok(Self { home, project, ran, model, command })
    }
}

fn tried(guard: &Guard, installed: &Installed) -> io::Result<CanaryOutcome> {
    let name = guard.host.name();
    let Stage { home, ran, model, command, .. } = Stage::new(guard, installed, Way::Hook)?;
    let ended = child::run(command, b"", PROGRAM_TAKES)?;
    let told = model.told();
    let outcome = if ran.exists() {
        CanaryOutcome::Broken(format!(
            "{name} does not ask: a scripted model wanted a file made outside the project, and it was made."
        ))
    } else if told.contains("so it is not done") {
        CanaryOutcome::Held(format!(
            "{name} {} ran with a scripted model that wanted a file made outside the project: the hook refused, and the file was not made.",
            installed.version_text()
        ))
    } else {
        let last = ended.err.lines().chain(ended.out.lines()).next_back().unwrap_or_default();
        CanaryOutcome::Unproven(format!(
            "{name} ran, but did not come to a tool: {}",
            crate::act::shown(last)
        ))
    };
    drop(home);
    Ok(outcome)
}

/// Leaves hooks out where the door alone has to stop it.
fn hooks(settings: &mut Value, way: Way) {
    if let (Some(settings), Way::Door) = (settings.as_object_mut(), way) {
        settings.remove("hooks");
    }
}

fn claude(
    guard: &Guard,
    command: &mut Command,
    model: &Model,
    home: &Path,
    way: Way,
) -> io::Result<()> {
    let user = guard.paths.folder(Host::Claude);
    let user = user.unwrap_or_else(|| guard.paths.home.join(".claude")).join("settings.json");
    copy(&user, &home.join(".claude/settings.json"), |settings| {
        // A gateway that the settings name would be asked instead of the scripted model.
        if let Some(environment) = settings.get_mut("env").and_then(Value::as_object_mut) {
            environment.retain(|name, _| {
                !name.starts_with("ANTHROPIC_") && !name.starts_with("CLAUDE_CODE_USE_")
            });
        }
        if let Some(settings) = settings.as_object_mut() {
            settings.remove("apiKeyHelper");
        }
        hooks(settings, way);
    })?;
    for name in ["settings.json", "settings.local.json"] {
        let from = guard.paths.project.join(".claude").join(name);
        if guard.scope == Scope::Project {
            let to = home.join("project/.claude").join(name);
            copy(&from, &to, |settings| hooks(settings, way))?;
        }
    }
    if way == Way::Hook {
        command.args(["-p", "do it", "--allowedTools", "Bash"]);
    }
    command.env("ANTHROPIC_BASE_URL", &model.url).env("ANTHROPIC_API_KEY", "canary");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    command.env("DISABLE_AUTOUPDATER", "1").env("DISABLE_TELEMETRY", "1");
    Ok(())
}

/// Trust in hooks hangs on where they are, so with them Codex runs with its own folder, and keeps
/// nothing.
fn codex(
    guard: &Guard,
    command: &mut Command,
    model: &Model,
    home: &Path,
    way: Way,
) -> io::Result<()> {
    let folder = guard.paths.folder(Host::Codex);
    let folder = folder.unwrap_or_else(|| guard.paths.home.join(".codex"));
    match way {
        Way::Hook => command.env("CODEX_HOME", folder),
        Way::Door => {
            let text = files::read(&folder.join("config.toml")).ok().flatten().unwrap_or_default();
            let mut table = toml::from_str::<toml::Table>(&text).unwrap_or_default();
            for name in ["mcp_servers", "notify", "hooks"] {
                table.remove(name);
            }
            write(&home.join(".codex/config.toml"), &table.to_string())?;
            command.env("CODEX_HOME", home.join(".codex"))
        }
    };
    command.env("AAEP_CANARY_KEY", "canary");
    for setting in [
        "model=\"gpt-5.5\"".to_owned(),
        "model_provider=\"aaep-canary\"".to_owned(),
        format!(
            "model_providers.aaep-canary={{name=\"aaep-canary\",base_url=\"{}/v1\",wire_api=\"responses\",env_key=\"AAEP_CANARY_KEY\",request_max_retries=0,stream_max_retries=0}}",
            model.url
        ),
        "analytics.enabled=false".to_owned(),
        "check_for_update_on_startup=false".to_owned(),
    ] {
        command.args(["-c", &setting]);
    }
    if way == Way::Hook {
        command.args(["exec", "--ephemeral", "--skip-git-repo-check"]);
        command.args(["--dangerously-bypass-approvals-and-sandbox", "do it"]);
    }
    Ok(())
}

fn gemini(
    guard: &Guard,
    command: &mut Command,
    model: &Model,
    home: &Path,
    way: Way,
) -> io::Result<()> {
    let user = guard.paths.home.join(".gemini/settings.json");
    let copied = copy(&user, &home.join(".gemini/settings.json"), |settings| {
        if let Some(settings) = settings.as_object_mut() {
            settings.remove("mcpServers");
            settings.insert("privacy".into(), json!({ "usageStatisticsEnabled": false }));
            settings.insert("telemetry".into(), json!({ "enabled": false }));
            let auth = json!({ "auth": { "selectedType": "gemini-api-key" } });
            settings.insert("security".into(), auth);
        }
        hooks(settings, way);
    })?;
    if !copied {
        let auth = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
        fs::create_dir_all(home.join(".gemini"))?;
        fs::write(home.join(".gemini/settings.json"), auth.to_string())?;
    }
    if guard.scope == Scope::Project {
        let from = guard.paths.project.join(".gemini/settings.json");
        copy(&from, &home.join("project/.gemini/settings.json"), |settings| {
            settings.as_object_mut().map(|settings| settings.remove("mcpServers"));
            hooks(settings, way);
        })?;
    }
    let trusted = json!({ home.join("project").to_string_lossy(): "TRUST_FOLDER" });
    fs::write(home.join(".gemini/trustedFolders.json"), trusted.to_string())?;
    command.args(["-m", "gemini-2.5-pro"]);
    if way == Way::Hook {
        command.args(["--approval-mode", "yolo", "-p", "do it"]);
    }
    command.env("GEMINI_API_KEY", "canary").env("GOOGLE_GEMINI_BASE_URL", &model.url);
    command.env("GEMINI_CLI_NO_RELAUNCH", "true");
    Ok(())
}

/// Copies settings, changed where they would reach others. What is no JSON is copied as it is.
fn copy(from: &Path, to: &Path, change: impl FnOnce(&mut Value)) -> io::Result<bool> {
    let Ok(text) = fs::read_to_string(from) else { return Ok(false) };
    let text = match serde_json::from_str::<Value>(&text) {
        Ok(mut value) => {
            change(&mut value);
            value.to_string()
        }
        Err(_) => text,
    };
    write(to, &text)?;
    Ok(true)
}

fn write(to: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(to, text)
}

/// A directory that is gone at the end.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn new() -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("aaep-canary-{}-{number}", std::process::id());
        let path = fs::canonicalize(std::env::temp_dir())?.join(name);
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // Somebody else's is not used.
        builder.create(&path)?;
        Ok(Self { path })
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}
