//! What switches a guard off, or makes it weaker.

use std::path::Path;

use serde_json::Value;

use super::child::{self, Installed};
use super::{Guard, Scope, codex, files, forms};
use crate::host::Host;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Good to know.
    Note,
    /// There is a way around it.
    Weak,
    /// It does not ask.
    Off,
}

/// Something that was noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub weight: Weight,
    /// What it is, and what to do.
    pub text: String,
}

/// The oldest version of each program whose hooks were tried.
fn tried(host: Host) -> [u32; 3] {
    match host {
        Host::Claude => [2, 1, 295],
        Host::Codex => [0, 166, 0],
        Host::Gemini => [0, 61, 0],
        Host::Opencode => [1, 18, 33],
        Host::Qwen => [0, 24, 4],
        Host::Kimi => [2, 1, 0],
        Host::Copilot => [1, 0, 102],
        _ => [0, 0, 0],
    }
}

/// Looks at everything that can be seen without running the program's tools. `variable` tells the
/// environment that the program would have.
pub fn look(
    guard: &Guard,
    installed: Option<&Installed>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let mut found = Findings(Vec::new());
    match installed {
        None => found.note(format!(
            "{} was not found in PATH, so nobody knows its version.",
            guard.host.name()
        )),
        Some(installed) => found.version(guard.host, installed),
    }
    match guard.path().and_then(|path| files::read(&path)) {
        Err(why) => found.off(why.to_string()),
        Ok(None) => found.off(format!("{} is not set up.", guard.host.name())),
        Ok(Some(text)) => {
            let commands = guard.commands(&text);
            if commands.is_empty() {
                found.off(format!("{} has no hook of aaep.", guard.host.name()));
            }
            for command in &commands {
                found.command(guard.host, command);
            }
            found.settings(guard, &text);
        }
    }
    match guard.host {
        Host::Claude => found.claude(guard, variable),
        Host::Codex => found.codex(guard, installed),
        Host::Gemini => found.gemini(guard),
        Host::Qwen => found.qwen(guard),
        Host::Opencode => found.opencode(variable),
        Host::Copilot => found.copilot(guard, variable),
        Host::Kimi => found.kimi(guard),
        _ => {}
    }
    found.0.sort_by_key(|finding| std::cmp::Reverse(finding.weight));
    found.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn off(&mut self, text: impl Into<String>) {
        self.0.push(Finding { weight: Weight::Off, text: text.into() });
    }

    fn weak(&mut self, text: impl Into<String>) {
        self.0.push(Finding { weight: Weight::Weak, text: text.into() });
    }

    fn note(&mut self, text: impl Into<String>) {
        self.0.push(Finding { weight: Weight::Note, text: text.into() });
    }

    fn version(&mut self, host: Host, installed: &Installed) {
        let [a, b, c] = tried(host);
        match installed.version {
            None => self.weak(format!("{} does not say its version.", host.name())),
            Some(version) if version >= [a, b, c] => {}
            Some(_) if host == Host::Claude => self.weak(format!(
                "Claude Code {} is too old: before {a}.{b}.{c} it runs the tool when its hook is killed. Update it.",
                installed.version_text()
            )),
            Some(_) => self.weak(format!(
                "{} {} is older than {a}.{b}.{c}, the first that was tried. Update it.",
                host.name(),
                installed.version_text()
            )),
        }
    }

    /// The program in a hook's command has to be there, and nobody else's to replace.
    fn command(&mut self, host: Host, command: &str) {
        let word = match command.strip_prefix('\'') {
            Some(rest) => rest.split('\'').next(),
            None => command.split(' ').next(),
        };
        let program = Path::new(word.unwrap_or_default());
        if !program.is_absolute() {
            self.weak(format!(
                "The hook is found by PATH, which an agent may change. Run `aaep guard {}` to name it whole.",
                host.id()
            ));
        } else if !child::is_program(program) {
            self.off(format!("{} is not there, so there is no hook.", program.display()));
        } else if is_writable(program) {
            self.weak(format!(
                "You can write {}, so an agent can replace it. Put aaep where only root writes, such as /usr/local/bin.",
                program.display()
            ));
        }
        let says = command.split_once("--host-timeout ").map(|(_, rest)| rest);
        let says = says.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
        if let (Some(says), Some(waits)) = (says, forms::waits(host))
            && says > waits
        {
            self.off(format!(
                "{} waits {waits} seconds at most, but the hook takes up to {says}: then the tool runs.",
                host.name()
            ));
        }
    }

    fn settings(&mut self, guard: &Guard, text: &str) {
        let Ok(path) = guard.path() else { return };
        if !files::is_sound(&path, text) {
            self.off(format!("{} cannot be read, so its hooks are not.", path.display()));
            return;
        }
        if guard.host == Host::Kimi {
            let table = toml::from_str::<toml::Table>(text).unwrap_or_default();
            let hooks = table.get("hooks").and_then(toml::Value::as_array);
            let long = |hook: &toml::Value| {
                hook.get("timeout").and_then(toml::Value::as_integer).is_some_and(|t| t > 600)
            };
            if hooks.is_some_and(|hooks| hooks.iter().any(long)) {
                self.off("A hook has a timeout over 600: Kimi Code then drops all hooks.");
            }
            return;
        }
        let settings: Value = serde_json::from_str(text).unwrap_or_default();
        for (hook, _) in forms::found(guard.host, &settings) {
            let timeout = hook.get("timeout").and_then(Value::as_u64);
            match guard.host {
                Host::Claude if hook.get("onFailure").and_then(Value::as_str) != Some("block") => {
                    self.weak(
                        "The hook has no onFailure \"block\": the tool runs when it is killed.",
                    );
                }
                Host::Gemini if timeout.is_some_and(|t| t >= 1 << 31) => {
                    self.off("The hook's timeout is over 2147483647: it is over at once.");
                }
                Host::Gemini if timeout.is_some_and(|t| t < 10_000) => {
                    self.off("The hook's timeout is in milliseconds, and under ten seconds.");
                }
                _ => {}
            }
        }
        if guard.host == Host::Codex
            && let Some(root) = settings.as_object()
            && let Some(other) = root.keys().find(|key| key.as_str() != "hooks")
        {
            self.off(format!(
                "The file has {other} beside \"hooks\": Codex then drops all hooks. Take it out."
            ));
        }
    }

    fn claude(&mut self, guard: &Guard, variable: &dyn Fn(&str) -> Option<String>) {
        let managed = guard.scope == Scope::Managed;
        for (path, settings) in claude_files(guard) {
            if settings.get("disableAllHooks").and_then(Value::as_bool) == Some(true) && !managed {
                self.off(format!("{} has disableAllHooks. Take it out.", path.display()));
            }
            let mode = settings.pointer("/permissions/defaultMode").and_then(Value::as_str);
            if mode == Some("bypassPermissions") {
                self.asks_nothing(guard.host, path.display());
            }
        }
        let simple = variable("CLAUDE_CODE_SIMPLE").is_some_and(|value| value != "0");
        if simple && !managed {
            self.off(
                "CLAUDE_CODE_SIMPLE is set: hooks are not run. Take it out of your environment.",
            );
        }
        if !managed {
            self.note("claude --bare and claude --safe-mode run no hooks. --managed closes that.");
        }
    }

    /// A yolo mode: what the hook lets pass runs, also where the program would have asked.
    fn asks_nothing(&mut self, host: Host, what: impl std::fmt::Display) {
        let name = host.name();
        self.note(format!("{what} lets {name} ask nothing by itself. The hook asks all the same."));
    }

    fn codex(&mut self, guard: &Guard, installed: Option<&Installed>) {
        if guard.scope == Scope::Managed {
            return;
        }
        let folder = guard.path().ok().and_then(|path| path.parent().map(Path::to_path_buf));
        let config = folder.map(|folder| folder.join("config.toml")).unwrap_or_default();
        let table = files::read(&config).ok().flatten().unwrap_or_default();
        let table = toml::from_str::<toml::Table>(&table).unwrap_or_default();
        let hooks = table.get("features").and_then(|features| features.get("hooks"));
        if hooks.and_then(toml::Value::as_bool) == Some(false) {
            self.off(format!("{} switches hooks off: [features] hooks = false.", config.display()));
        }
        if table.get("approval_policy").and_then(toml::Value::as_str) == Some("never") {
            self.asks_nothing(guard.host, config.display());
        }
        let Some(installed) = installed else { return };
        match codex::list(guard, &installed.path) {
            Err(why) => self.weak(why.to_string()),
            Ok(hooks) => {
                let before: Vec<_> =
                    hooks.iter().filter(|hook| hook.event == "preToolUse").collect();
                if before.is_empty() {
                    self.off("Codex does not see the hook in its file.");
                } else if before.iter().any(|hook| !hook.is_enabled) {
                    self.off(
                        "Codex has the hook switched off. Switch it on with `codex` and /hooks.",
                    );
                } else if before.iter().any(|hook| !hook.is_trusted) {
                    self.off("Codex does not trust the hook, so it skips it: its file was changed. Run `aaep guard codex`.");
                }
            }
        }
        self.note("codex --disable hooks runs no hooks. --managed closes that.");
    }

    fn gemini(&mut self, guard: &Guard) {
        for path in [
            guard.paths.home.join(".gemini/settings.json"),
            guard.paths.project.join(".gemini/settings.json"),
        ] {
            let Some(settings) = json(&path) else { continue };
            let hooks = settings.get("hooksConfig");
            let has = |name: &str| hooks.and_then(|hooks| hooks.get(name));
            if has("enabled").and_then(Value::as_bool) == Some(false) {
                self.off(format!("{} switches hooks off: hooksConfig.enabled.", path.display()));
            }
            let named = has("disabled").and_then(Value::as_array);
            if named.is_some_and(|names| names.iter().any(|name| name == "aaep")) {
                self.off(format!("{} switches the hook aaep off.", path.display()));
            }
            let mode = settings.pointer("/general/defaultApprovalMode");
            if mode.and_then(Value::as_str) == Some("yolo") {
                self.asks_nothing(guard.host, path.display());
            }
        }
        self.weak("gemini --acp runs no hooks. Start it with `aaep acp -- gemini --acp` there.");
    }

    fn qwen(&mut self, guard: &Guard) {
        for path in [
            guard.paths.home.join(".qwen/settings.json"),
            guard.paths.project.join(".qwen/settings.json"),
        ] {
            let Some(settings) = json(&path) else { continue };
            if settings.get("disableAllHooks").and_then(Value::as_bool) == Some(true) {
                self.off(format!("{} has disableAllHooks. Take it out.", path.display()));
            }
            let mode = settings.pointer("/tools/approvalMode").and_then(Value::as_str);
            if mode == Some("yolo") {
                self.asks_nothing(guard.host, path.display());
            }
        }
    }

    fn copilot(&mut self, guard: &Guard, variable: &dyn Fn(&str) -> Option<String>) {
        let project = guard.paths.project.join(".github/copilot");
        for path in [
            guard.paths.home.join(".copilot/settings.json"),
            project.join("settings.json"),
            project.join("settings.local.json"),
        ] {
            let settings = json(&path).unwrap_or_default();
            // The version that was tried runs the hook all the same.
            if settings.get("disableAllHooks").and_then(Value::as_bool) == Some(true) {
                self.weak(format!("{} has disableAllHooks. Take it out.", path.display()));
            }
        }
        let all = variable("COPILOT_ALLOW_ALL").unwrap_or_default().trim().to_lowercase();
        if !matches!(all.as_str(), "" | "0" | "false" | "no" | "off" | "n") {
            self.asks_nothing(guard.host, "COPILOT_ALLOW_ALL in your environment");
        }
    }

    fn kimi(&mut self, guard: &Guard) {
        let Ok(path) = guard.path() else { return };
        let text = files::read(&path).ok().flatten().unwrap_or_default();
        let table = toml::from_str::<toml::Table>(&text).unwrap_or_default();
        let mode = table.get("default_permission_mode").and_then(toml::Value::as_str);
        let yolo = table.get("yolo").and_then(toml::Value::as_bool);
        if matches!(mode, Some("yolo" | "auto")) || yolo == Some(true) {
            self.asks_nothing(guard.host, path.display());
        }
    }

    fn opencode(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        if variable("OPENCODE_PURE").is_some_and(|value| !matches!(value.as_str(), "" | "0")) {
            self.off(
                "OPENCODE_PURE is set: plugins are not loaded. Take it out of your environment.",
            );
        }
        self.note("opencode --pure loads no plugins, so nothing asks.");
    }
}

fn claude_files(guard: &Guard) -> Vec<(std::path::PathBuf, Value)> {
    let user = guard.paths.folder(Host::Claude);
    let user = user.unwrap_or_else(|| guard.paths.home.join(".claude"));
    let project = guard.paths.project.join(".claude");
    [user.join("settings.json"), project.join("settings.json"), project.join("settings.local.json")]
        .into_iter()
        .filter_map(|path| json(&path).map(|settings| (path, settings)))
        .collect()
}

fn json(path: &Path) -> Option<Value> {
    serde_json::from_str(&files::read(path).ok()??).ok()
}

/// Whether this user, if it is not root, could put something else there.
#[cfg(unix)]
fn is_writable(program: &Path) -> bool {
    let Ok(real) = program.canonicalize() else { return true };
    let folder = real.parent().unwrap_or(Path::new("/"));
    let others = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        path.metadata().is_ok_and(|found| found.uid() != 0 || found.mode() & 0o022 != 0)
    };
    others(&real) || others(folder)
}

#[cfg(not(unix))]
fn is_writable(_: &Path) -> bool {
    false
}
