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

/// Arguments that hold what is taken out, what is put in, all of a file, and a patch.
const OLD: [&str; 3] = ["old_string", "old_str", "oldString"];
const NEW: [&str; 4] = ["new_string", "new_str", "new_source", "newString"];
const CONTENTS: [&str; 3] = ["content", "file_text", "contents"];
const PATCHES: [&str; 4] = ["command", "input", "patch", "patchText"];

/// Lines that are told on request; the rest is counted.
const TOLD_LINES: usize = 20;

/// Arguments that name files.
const FILES: [&str; 8] = [
    "file_path",
    "path",
    "notebook_path",
    "absolute_path",
    "filePath",
    "dir_path",
    "paths",
    "file_paths",
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

/// What of a call has to be the same for it to be the same question: a command and where it runs, a
/// file whatever is written to it, or all arguments.
pub(crate) fn essence(tool: &str, arguments: &Value) -> Value {
    let only = |names: &[&str]| {
        let kept = names.iter().map(|name| arguments.get(name).cloned().unwrap_or_default());
        Value::Array(kept.collect())
    };
    if SHELLS.contains(&tool) {
        return only(&["command", "commands", "cmd", "workdir", "dir_path", "directory", "cwd"]);
    }
    if WRITERS.contains(&tool) {
        return only(&FILES);
    }
    arguments.clone()
}

/// Whether it is a tool that writes files.
pub(crate) fn is_writer(tool: &str) -> bool {
    WRITERS.contains(&tool)
}

/// The lines that a call would take out and put in, for people who want to hear them.
pub(crate) fn lines(tool: &str, arguments: &Value) -> Option<String> {
    let mut told = Vec::new();
    if tool == "apply_patch" {
        for line in text(arguments, &PATCHES)?.lines() {
            match line.split_at_checked(1) {
                Some(("-", gone)) => told.push(format!("Out: {}", shown(gone))),
                Some(("+", new)) => told.push(format!("In: {}", shown(new))),
                _ => {}
            }
        }
    } else if is_writer(tool) {
        for (old, new) in edits(arguments) {
            let (old, new) = changed(old, new);
            told.extend(old.iter().map(|line| format!("Out: {}", shown(line))));
            told.extend(new.iter().map(|line| format!("In: {}", shown(line))));
        }
    }
    let more = told.len().saturating_sub(TOLD_LINES);
    told.truncate(TOLD_LINES);
    if more > 0 {
        told.push(format!("And {more} more lines"));
    }
    (!told.is_empty()).then(|| format!("{}.", told.join(". ")))
}

/// What is taken out and put in, for each edit of a call.
fn edits(arguments: &Value) -> Vec<(&str, &str)> {
    let list = arguments.get("edits").and_then(Value::as_array);
    let each: Vec<&Value> = list.map_or_else(|| vec![arguments], |list| list.iter().collect());
    each.into_iter()
        .filter_map(|edit| {
            let new = text(edit, &NEW).or_else(|| text(edit, &CONTENTS))?;
            Some((text(edit, &OLD).unwrap_or_default(), new))
        })
        .collect()
}

/// The lines of both that differ, without those that begin and end both.
fn changed<'a>(old: &'a str, new: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut old, mut new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    old.drain(..same);
    new.drain(..same);
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    old.truncate(old.len() - same);
    new.truncate(new.len() - same);
    (old, new)
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
    let said = |verb: &str, lines: usize, to: &str| match lines {
        1 => format!("{verb} 1 line {to}"),
        many => format!("{verb} {many} lines {to}"),
    };
    let edits = edits(arguments);
    if edits.is_empty() {
        return match tool {
            "Write" | "write_file" | "create" => "Write".into(),
            _ => "Change".into(),
        };
    }
    let lines = edits.iter().map(|(old, new)| {
        let (old, new) = changed(old, new);
        old.len().max(new.len())
    });
    let lines = lines.sum();
    let whole = text(arguments, &CONTENTS).is_some();
    let inserts = !whole && text(arguments, &OLD).is_none() && arguments.get("edits").is_none();
    match (whole, inserts) {
        (true, _) => said("Write", lines, "to"),
        (_, true) => said("Put", lines, "into"),
        _ => said("Change", lines, "in"),
    }
}

/// A patch in the form that Codex uses.
fn patch(arguments: &Value, directory: &Path, scene: &Scene) -> Judgment {
    let Some(patch) = text(arguments, &PATCHES) else {
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
    let mut found = Vec::new();
    for name in FILES {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn told(tool: &str, arguments: Value) -> (String, Option<String>) {
        let scene = Scene::new("/nowhere/project", None);
        let here = Path::new("/nowhere/project");
        (judge(tool, &arguments, here, &scene).action(), lines(tool, &arguments))
    }

    #[test]
    fn a_change_is_told_by_its_lines_and_they_can_be_heard() {
        let edit = json!({ "file_path": "src/main.rs",
            "old_string": "fn a() {\n  1\n  2\n}", "new_string": "fn a() {\n  3\n  4\n  5\n}" });
        let (action, lines) = told("Edit", edit);
        assert_eq!(action, "Change 3 lines in src/main.rs.");
        assert_eq!(lines.unwrap(), "Out: 1. Out: 2. In: 3. In: 4. In: 5.");
        let many = json!({ "file_path": "a", "edits": [
            { "old_string": "x", "new_string": "y" }, { "old_string": "p\nq", "new_string": "p" } ] });
        assert_eq!(told("MultiEdit", many).0, "Change 2 lines in a.");
        let long = "z\n".repeat(214);
        let (action, lines) = told("Write", json!({ "file_path": "a", "content": long }));
        assert_eq!(action, "Write 214 lines to a.");
        assert!(lines.unwrap().ends_with("And 194 more lines."));
        let patch = json!({ "command": "*** Begin Patch\n*** Update File: b\n@@\n-old\n+new\n*** End Patch" });
        let (action, lines) = told("apply_patch", patch);
        assert_eq!(
            (action.as_str(), lines.unwrap().as_str()),
            ("Change 2 lines in b.", "Out: old. In: new.")
        );
        assert_eq!(told("Bash", json!({ "command": "ls" })).1, None);
    }
}
