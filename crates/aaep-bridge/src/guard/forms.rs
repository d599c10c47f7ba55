//! What stands in each program's settings.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Cannot, GuardPaths, Scope};
use crate::host::Host;

/// What is written, and how it gets into a file that is there already.
pub(super) enum Form {
    /// Lists of hooks by event, in a JSON file that may hold other things.
    Hooks(Vec<(&'static str, Value)>),
    /// Something at the end of a TOML file that may hold other things.
    Toml(String),
    /// A file of our own.
    Own(String),
}

/// The file of a program.
pub(super) fn path(host: Host, scope: Scope, paths: &GuardPaths) -> Result<PathBuf, Cannot> {
    let at_home = |folder: &str| paths.folder(host).unwrap_or_else(|| paths.home.join(folder));
    Ok(match (host, scope) {
        (Host::Claude, Scope::User) => at_home(".claude").join("settings.json"),
        (Host::Claude, Scope::Project) => paths.project.join(".claude/settings.local.json"),
        (Host::Claude, Scope::Managed) => paths.etc.join("claude-code/managed-settings.json"),
        (Host::Codex, Scope::User) => at_home(".codex").join("hooks.json"),
        (Host::Codex, Scope::Managed) => paths.etc.join("codex/requirements.toml"),
        (Host::Gemini, Scope::User) => at_home(".gemini").join("settings.json"),
        (Host::Gemini, Scope::Project) => paths.project.join(".gemini/settings.json"),
        (Host::Qwen, Scope::User) => at_home(".qwen").join("settings.json"),
        (Host::Kimi, Scope::User) => at_home(".kimi-code").join("config.toml"),
        (Host::Copilot, Scope::User) => at_home(".copilot").join("hooks/aaep.json"),
        (Host::Opencode, Scope::User) => at_home(".config/opencode").join("plugin/aaep.js"),
        _ => return Err(Cannot::NoSuchScope(host, scope)),
    })
}

/// Seconds that a program is told to wait, where it can be told.
pub(super) fn waits(host: Host) -> Option<u64> {
    match host {
        Host::Claude | Host::Codex => Some(86_400),
        Host::Gemini | Host::Copilot => Some(3600),
        Host::Kimi => Some(600),
        // It cuts every hook at 60 seconds.
        Host::Qwen => Some(60),
        _ => None,
    }
}

/// The event before a tool.
pub(super) fn before(host: Host) -> &'static str {
    match host {
        Host::Gemini => "BeforeTool",
        Host::Copilot => "preToolUse",
        _ => "PreToolUse",
    }
}

/// The command that asks.
pub(super) fn asking(host: Host, program: &Path) -> String {
    let telling = telling(host, program);
    match waits(host) {
        Some(seconds) => format!("{telling} --host-timeout {seconds}"),
        None => telling,
    }
}

fn telling(host: Host, program: &Path) -> String {
    format!("{} hook --host {}", quoted(&program.to_string_lossy()), host.id())
}

/// A word that a shell reads as it is.
fn quoted(word: &str) -> String {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | ':');
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Whether a hook's command is `aaep hook`.
pub(super) fn is_ours(command: &str) -> bool {
    let rest = match command.strip_prefix('\'') {
        Some(rest) => rest.split_once('\'').map(|(word, rest)| (word, rest.trim_start())),
        None => command.split_once(' '),
    };
    rest.is_some_and(|(word, rest)| {
        Path::new(word).file_name().is_some_and(|name| name == "aaep")
            && rest.split(' ').next() == Some("hook")
    })
}

pub(super) fn form(host: Host, scope: Scope, program: &Path) -> Form {
    let asking = asking(host, program);
    let telling = telling(host, program);
    match (host, scope) {
        (Host::Codex, Scope::Managed) => Form::Toml(format!(
            "[features]\nhooks = true\n\n[hooks]\nmanaged_dir = {}\n\n[[hooks.PreToolUse]]\nmatcher = \"*\"\n\
             [[hooks.PreToolUse.hooks]]\ntype = \"command\"\ncommand = {}\ntimeout = 86400\n",
            Value::from(program.parent().unwrap_or(Path::new("/")).to_string_lossy()),
            Value::from(asking),
        )),
        (Host::Kimi, _) => {
            let (asking, telling) = (Value::from(asking), Value::from(telling));
            let mut text =
                format!("\n[[hooks]]\nevent = \"PreToolUse\"\ncommand = {asking}\ntimeout = 600\n");
            for event in TOLD {
                text += &format!("\n[[hooks]]\nevent = \"{event}\"\ncommand = {telling}\n");
            }
            Form::Toml(text)
        }
        (Host::Copilot, _) => {
            let ask = json!({ "type": "command", "bash": asking, "timeoutSec": 3600 });
            let tell = json!({ "type": "command", "bash": telling });
            let mut hooks = json!({ "preToolUse": [ask] });
            for event in TOLD_BY_COPILOT {
                hooks[event] = json!([tell]);
            }
            let file = json!({ "version": 1, "hooks": hooks });
            Form::Own(format!("{}\n", serde_json::to_string_pretty(&file).unwrap_or_default()))
        }
        (Host::Opencode, _) => {
            let program = Value::from(program.to_string_lossy()).to_string();
            Form::Own(include_str!("opencode.js").replace("PROGRAM", &program))
        }
        _ => Form::Hooks(groups(host, &asking, &telling)),
    }
}

/// What most programs tell besides calls: how they ended, what the person wants, and what becomes of it.
const TOLD: [&str; 9] = [
    "PostToolUse",
    // Otherwise nobody hears that a tool failed.
    "PostToolUseFailure",
    "UserPromptSubmit",
    "Notification",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "SessionStart",
    "SessionEnd",
];

const TOLD_BY_COPILOT: [&str; 7] = [
    "postToolUse",
    "userPromptSubmitted",
    "notification",
    "subagentStop",
    "agentStop",
    "sessionStart",
    "sessionEnd",
];

fn groups(host: Host, asking: &str, telling: &str) -> Vec<(&'static str, Value)> {
    let mut ask = json!({ "type": "command", "command": asking });
    let mut tell = json!({ "type": "command", "command": telling });
    match host {
        Host::Claude => {
            ask["timeout"] = json!(86_400);
            ask["onFailure"] = json!("block");
        }
        Host::Codex => ask["timeout"] = json!(86_400),
        Host::Gemini => {
            // Its time is in milliseconds.
            ask["timeout"] = json!(3_600_000);
            ask["name"] = json!("aaep");
            tell["name"] = json!("aaep");
        }
        _ => {}
    }
    let around = |hook: &Value| json!({ "matcher": "*", "hooks": [hook] });
    let plain = |hook: &Value| json!({ "hooks": [hook] });
    // What Codex does not know drops the whole file.
    let unknown_to_codex = ["PostToolUseFailure", "Notification"];
    let told: Vec<&str> = match host {
        Host::Gemini => vec![
            "AfterTool",
            "BeforeAgent",
            "AfterAgent",
            "Notification",
            "SessionStart",
            "SessionEnd",
        ],
        Host::Codex => TOLD.into_iter().filter(|it| !unknown_to_codex.contains(it)).collect(),
        // What servers want to know, and what became of it.
        Host::Claude => TOLD.into_iter().chain(["Elicitation", "ElicitationResult"]).collect(),
        _ => TOLD.to_vec(),
    };
    let group = |event: &'static str| match event.ends_with("Tool") || event.contains("ToolUse") {
        true => (event, around(&tell)),
        false => (event, plain(&tell)),
    };
    std::iter::once((before(host), around(&ask))).chain(told.into_iter().map(group)).collect()
}

/// The commands of ours before a tool that a JSON settings file holds, with their hooks.
pub(super) fn found<'a>(host: Host, settings: &'a Value) -> Vec<(&'a Value, &'a str)> {
    let hooks = settings.get("hooks").and_then(|hooks| hooks.get(before(host)));
    let groups = hooks.and_then(Value::as_array).into_iter().flatten();
    let hooks: Vec<&Value> = match host {
        Host::Copilot => groups.collect(),
        _ => groups
            .filter(|group| {
                let matcher = group.get("matcher").and_then(Value::as_str).unwrap_or_default();
                matches!(matcher, "" | "*" | ".*")
            })
            .flat_map(|group| group.get("hooks").and_then(Value::as_array).into_iter().flatten())
            .collect(),
    };
    let command = |hook: &'a Value| {
        let command = hook.get("command").or_else(|| hook.get("bash"))?.as_str()?;
        is_ours(command).then_some((hook, command))
    };
    hooks.into_iter().filter_map(command).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_set_up_to_tell_more_than_calls() {
        let usual = [
            "UserPromptSubmit",
            "PostToolUse",
            "SubagentStop",
            "Stop",
            "SessionStart",
            "SessionEnd",
        ];
        let gemini = [
            "BeforeAgent",
            "AfterTool",
            "Notification",
            "AfterAgent",
            "SessionStart",
            "SessionEnd",
        ];
        let copilot = [
            "userPromptSubmitted",
            "postToolUse",
            "notification",
            "agentStop",
            "sessionStart",
            "sessionEnd",
        ];
        let cases: [(Host, &[&str]); 7] = [
            (Host::Claude, &usual),
            (Host::Codex, &usual),
            (Host::Qwen, &usual),
            (Host::Kimi, &usual),
            (Host::Gemini, &gemini),
            (Host::Copilot, &copilot),
            (Host::Opencode, &["chat.message", "tool.execute.after", "session.idle"]),
        ];
        for (host, events) in cases {
            let text = match form(host, Scope::User, Path::new("/usr/local/bin/aaep")) {
                Form::Hooks(groups) => format!("{groups:?}"),
                Form::Toml(text) | Form::Own(text) => text,
            };
            for event in events {
                assert!(text.contains(&format!("\"{event}\"")), "{host:?}: {event}");
            }
        }
        // One that Codex does not know would drop its whole file.
        let Form::Hooks(groups) = form(Host::Codex, Scope::User, Path::new("/x/aaep")) else {
            panic!()
        };
        assert!(groups.iter().all(|(event, _)| *event != "Notification"));
    }

    #[test]
    fn our_command_is_known_by_its_program() {
        let odd = asking(Host::Claude, Path::new("/opt/my tools/aaep"));
        assert_eq!(odd, "'/opt/my tools/aaep' hook --host claude --host-timeout 86400");
        for command in [odd.as_str(), "aaep hook", "/usr/local/bin/aaep hook --host codex"] {
            assert!(is_ours(command), "{command}");
        }
        for command in ["aaep", "echo aaep hook", "/x/notaaep hook", "aaep hub", "aaep hooks", ""] {
            assert!(!is_ours(command), "{command}");
        }
    }
}
