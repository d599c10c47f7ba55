//! Tools of coding agents, by their names and arguments.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::act::{Act, Judgment, Kind, shown};
use crate::place::{Scene, Zone};
use crate::shell;

/// Tools that run commands of a shell.
const SHELLS: &[&str] = &[
    "Bash",
    "bash",
    "run_shell_command",
    "run_commands",
    "execute_command",
    "shell",
    "local_shell",
    "exec_command",
    "Shell",
    "Monitor",
];

/// Tools that only look at files.
const READERS: &[&str] = &[
    "Read",
    "read_file",
    "read_many_files",
    "view",
    "view_image",
    "ReadFile",
    "read_files",
    "LS",
    "list_directory",
    "Glob",
    "glob",
    "Grep",
    "grep",
    "grep_search",
    "search_file_content",
    "list",
    "read",
    "search_files",
    "list_files",
    "NotebookRead",
    "LSP",
];

/// Tools that change files.
const WRITERS: &[&str] = &[
    "Write",
    "write_file",
    "create",
    "write",
    "Edit",
    "MultiEdit",
    "NotebookEdit",
    "edit",
    "replace",
    "str_replace",
    "write_to_file",
    "replace_in_file",
    "WriteFile",
    "StrReplaceFile",
    "editor",
];

/// Tools that change nothing but the agent's own notes, or look something up.
const HARMLESS: &[&str] = &[
    "TodoWrite",
    "todo_write",
    "update_plan",
    "update_topic",
    "TaskCreate",
    "TaskUpdate",
    "TaskList",
    "TaskGet",
    "ToolSearch",
    "todowrite",
    "todoread",
    "SetTodoList",
    "WebSearch",
    "google_web_search",
    "web_search",
    "EnterPlanMode",
    "ExitPlanMode",
    "AskUserQuestion",
    "BashOutput",
    "TaskOutput",
];

/// Tools that look something up on the network.
const FETCHERS: &[&str] = &["WebFetch", "web_fetch", "webfetch", "FetchURL", "fetch"];

/// Tools that set another agent to work; what that does is judged by itself.
const HELPERS: &[&str] = &["Agent", "Task", "invoke_agent", "task", "agent"];

/// What a call of this tool would do, in this directory.
pub fn judge(tool: &str, arguments: &Value, directory: &Path, scene: &Scene) -> Judgment {
    if SHELLS.contains(&tool) {
        return commands(arguments, directory, scene);
    }
    if tool == "apply_patch" {
        return patch(arguments, directory, scene);
    }
    let files = || files(arguments, directory);
    if READERS.contains(&tool) {
        let acts = files().iter().map(|path| reads(path, scene)).collect::<Vec<_>>();
        return Judgment::of(if acts.is_empty() { vec![looks(tool)] } else { acts });
    }
    if WRITERS.contains(&tool) {
        let change = change(tool, arguments);
        let acts = files().iter().map(|path| writes(path, &change, scene)).collect();
        return Judgment::of(acts);
    }
    if HARMLESS.contains(&tool) {
        return Judgment::of(vec![looks(tool)]);
    }
    if FETCHERS.contains(&tool) {
        let address = text(arguments, &["url", "prompt"]).unwrap_or("an address");
        return Judgment::of(vec![Act::new(Kind::Reads, format!("Look up {}.", shown(address)))]);
    }
    if HELPERS.contains(&tool) {
        let task = text(arguments, &["description", "prompt"]).unwrap_or("a task");
        let act = Act::new(Kind::Reads, format!("Set another agent to work: {}.", shown(task)));
        return Judgment::of(vec![act]);
    }
    if matches!(tool, "Skill" | "SlashCommand") {
        let name = text(arguments, &["skill", "command"]).unwrap_or("one");
        let words = format!(
            "Use the skill {}, which may run commands that nobody is asked about.",
            shown(name)
        );
        return Judgment::of(vec![Act::new(Kind::Unclear, words)]);
    }
    Judgment::of(vec![Act::new(Kind::Unknown, format!("Use the tool {}.", named(tool)))])
}

/// `mcp__server__tool` is said as the tool of its server.
fn named(tool: &str) -> String {
    let parts = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
    match parts {
        Some((server, tool)) => format!("{} of {}", shown(tool), shown(server)),
        None => shown(tool),
    }
}

fn looks(tool: &str) -> Act {
    Act::new(Kind::Reads, format!("Use {}.", named(tool)))
}

fn commands(arguments: &Value, directory: &Path, scene: &Scene) -> Judgment {
    // A directory of its own, where the tool has one.
    let directory = text(arguments, &["workdir", "dir_path", "directory", "cwd"])
        .map_or_else(|| directory.to_path_buf(), |own| directory.join(own));
    let one = |command: &str| shell::judge(command, &directory, scene);
    match arguments
        .get("command")
        .or_else(|| arguments.get("commands"))
        .or_else(|| arguments.get("cmd"))
    {
        Some(Value::String(command)) => one(command),
        // Either several commands, or one with its words.
        Some(Value::Array(list)) if arguments.get("commands").is_some() => {
            let acts = list.iter().flat_map(|command| match command.as_str() {
                Some(command) => one(command).acts().to_vec(),
                None => vec![Act::new(Kind::Unclear, "Run a command that cannot be read.")],
            });
            Judgment::of(acts.collect())
        }
        Some(Value::Array(words)) => {
            match words.iter().map(Value::as_str).collect::<Option<Vec<_>>>() {
                Some(words) => {
                    one(&words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
                }
                None => unreadable(),
            }
        }
        _ => unreadable(),
    }
}

fn unreadable() -> Judgment {
    Judgment::of(vec![Act::new(Kind::Unclear, "Run a command that cannot be read.")])
}

/// A word that a shell reads as it is.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn reads(path: &Path, scene: &Scene) -> Act {
    let named = scene.named(path);
    match scene.zone(path) {
        Zone::Keys => Act::new(Kind::Credentials, format!("Read keys or passwords in {named}.")),
        Zone::Guard => {
            Act::new(Kind::Guard, format!("Reach {named}, which belongs to what asks you."))
        }
        _ => Act::new(Kind::Reads, format!("Read {named}.")),
    }
}

fn writes(path: &Path, change: &str, scene: &Scene) -> Act {
    let zone = scene.zone(path);
    let (kind, text) = shell::written(zone, change, &scene.named(path));
    Act::new(kind, text)
}

/// How a file is changed, in the words before its name.
fn change(tool: &str, arguments: &Value) -> String {
    let lines = |value: Option<&str>| value.map(|text| text.lines().count());
    let new = lines(text(arguments, &["new_string", "new_str", "new_source", "newString"]));
    let old = lines(text(arguments, &["old_string", "old_str", "oldString"]));
    if let Some(edits) = arguments.get("edits").and_then(Value::as_array) {
        return format!("Make {} changes in", edits.len());
    }
    match (old, new) {
        (Some(old), Some(new)) => match old.max(new) {
            1 => "Change 1 line in".into(),
            many => format!("Change {many} lines in"),
        },
        (None, Some(new)) => format!("Put {new} lines into"),
        _ => match lines(text(arguments, &["content", "file_text", "contents"])) {
            Some(1) => "Write 1 line to".into(),
            Some(many) => format!("Write {many} lines to"),
            None if matches!(tool, "Write" | "write_file" | "create") => "Write".into(),
            None => "Change".into(),
        },
    }
}

/// A patch in the form that Codex uses.
fn patch(arguments: &Value, directory: &Path, scene: &Scene) -> Judgment {
    let Some(patch) = text(arguments, &["command", "input", "patch", "patchText"]) else {
        return Judgment::of(vec![Act::new(
            Kind::Unclear,
            "Change files with a patch that cannot be read.",
        )]);
    };
    let mut acts = Vec::new();
    let mut open: Option<(PathBuf, usize)> = None;
    let close = |open: Option<(PathBuf, usize)>, acts: &mut Vec<Act>| {
        if let Some((path, lines)) = open {
            let lines = if lines == 1 { "1 line".into() } else { format!("{lines} lines") };
            acts.push(writes(&path, &format!("Change {lines} in"), scene));
        }
    };
    for line in patch.lines() {
        let header =
            |name: &str| line.strip_prefix("*** ").and_then(|rest| rest.strip_prefix(name));
        if let Some(path) = header("Delete File: ") {
            close(open.take(), &mut acts);
            let path = directory.join(path.trim());
            acts.push(Act::new(Kind::Deletes, format!("Delete the file {}.", scene.named(&path))));
            let act = writes(&path, "Delete", scene);
            if act.kind.is_asked() {
                acts.push(act);
            }
        } else if let Some(path) =
            header("Add File: ").or_else(|| header("Update File: ")).or_else(|| header("Move to: "))
        {
            close(open.take(), &mut acts);
            open = Some((directory.join(path.trim()), 0));
        } else if let (Some((_, lines)), Some('+' | '-')) = (&mut open, line.chars().next()) {
            *lines += 1;
        }
    }
    close(open, &mut acts);
    Judgment::of(acts)
}

/// The files that the arguments name.
fn files(arguments: &Value, directory: &Path) -> Vec<PathBuf> {
    let names = [
        "file_path",
        "path",
        "notebook_path",
        "absolute_path",
        "filePath",
        "dir_path",
        "paths",
        "file_paths",
    ];
    let mut found = Vec::new();
    for name in names {
        match arguments.get(name) {
            Some(Value::String(path)) => found.push(directory.join(path)),
            Some(Value::Array(paths)) => {
                found.extend(
                    paths.iter().filter_map(Value::as_str).map(|path| directory.join(path)),
                );
            }
            _ => {}
        }
    }
    found
}

fn text<'a>(arguments: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| arguments.get(name).and_then(Value::as_str))
}
