//! What a tool call of an agent would do, in words.

use std::path::Path;

use serde_json::{Value, json};

use crate::act::{Act, Judgment, Kind, shown};
use crate::place::Scene;
use crate::tools;

/// What is known of a call: by its arguments, by the differences it shows, and only then by what the
/// agent says of it.
pub(super) fn judge(call: &Value, directory: &Path, scene: &Scene) -> Judgment {
    let text = |name: &str| call.get(name).and_then(Value::as_str);
    let title = text("title").unwrap_or("something that it does not name");
    let raw = call.get("rawInput").filter(|raw| raw.as_object().is_some_and(|raw| !raw.is_empty()));
    let changes = differences(call, directory, scene);
    match (text("kind"), raw) {
        (_, _) if !changes.is_empty() => Judgment::of(changes),
        (Some("execute"), Some(raw)) => tools::judge("Bash", raw, directory, scene),
        // Some agents show the command as the title, and nothing else.
        (Some("execute"), None) => {
            let mut acts = vec![Act::new(
                Kind::Unclear,
                format!("Run what the agent calls: {}.", shown(title)),
            )];
            let shell = crate::shell::judge(title, directory, scene);
            acts.extend(shell.acts().iter().filter(|act| act.kind > Kind::Unclear).cloned());
            Judgment::of(acts)
        }
        (_, Some(raw)) => match name(call) {
            Some(name) => tools::judge(&name, raw, directory, scene),
            None => by_kind(text("kind"), title, call, directory, scene),
        },
        (kind, None) => by_kind(kind, title, call, directory, scene),
    }
}

/// The tool, as the agent names it.
pub(super) fn name(call: &Value) -> Option<String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    text(call.get("name")).or_else(|| text(call.pointer("/_meta/claudeCode/toolName")))
}

/// Tool and arguments of a call that has only begun, where the agent shows them in its content: Kimi Code
/// does, as JSON, with the tool as the title.
pub(super) fn in_content(update: &Value) -> Option<(Value, Value)> {
    let title = update.get("title")?.as_str()?;
    let is_name = !title.is_empty() && title.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let begins = update["sessionUpdate"] == "tool_call" && update["status"] == "pending";
    if !begins || !is_name || update.get("rawInput").is_some() {
        return None;
    }
    let [only] = update.get("content")?.as_array()?.as_slice() else { return None };
    let text = only.pointer("/content/text")?.as_str()?;
    let arguments = serde_json::from_str::<Value>(text).ok().filter(Value::is_object)?;
    Some((title.into(), arguments))
}

/// Tool and arguments as the program's own hook is told of them, by what the person would be shown.
pub(super) fn as_in_hook(call: &Value) -> Option<(String, Value)> {
    let raw = call.get("rawInput")?;
    match name(call) {
        Some(name) => Some((name, raw.clone())),
        // Codex names no tool here.
        None => {
            let script = script(raw.get("command")?.as_str()?)?;
            Some(("Bash".to_owned(), json!({ "command": script })))
        }
    }
}

/// What a shell is given to run: `/bin/bash -lc 'touch x'`. None if it is written in another way.
fn script(command: &str) -> Option<&str> {
    let (shell, script) = command.split_once(" -lc '")?;
    let script = script.strip_suffix('\'')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_');
    (shell.chars().all(plain) && !script.contains('\'')).then_some(script)
}

/// The tool, as the protocol and policies know it.
pub(super) fn wire_name(call: &Value) -> String {
    let kind = call.get("kind").and_then(Value::as_str).unwrap_or("tool");
    let name = name(call).unwrap_or_else(|| kind.to_owned());
    let sound = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let mut name: String = name.chars().map(|c| if sound(c) { c } else { '_' }).take(256).collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.insert(0, '_');
    }
    name
}

fn differences(call: &Value, directory: &Path, scene: &Scene) -> Vec<Act> {
    let content = call.get("content").and_then(Value::as_array).into_iter().flatten();
    let differences = content.filter(|part| part.get("type").is_some_and(|kind| kind == "diff"));
    differences
        .filter_map(|part| {
            let path = part.get("path")?.as_str()?;
            let new = part.get("newText")?.as_str()?;
            let old = part.get("oldText").and_then(Value::as_str).filter(|old| !old.is_empty());
            let arguments = match old {
                Some(old) => {
                    let (old, new) = changed(old, new);
                    json!({ "file_path": path, "old_string": old, "new_string": new })
                }
                None => json!({ "file_path": path, "content": new }),
            };
            Some(tools::judge("Edit", &arguments, directory, scene).acts().to_vec())
        })
        .flatten()
        .collect()
}

/// The lines between what is the same at both ends.
fn changed(old: &str, new: &str) -> (String, String) {
    let (old, new): (Vec<_>, Vec<_>) = (old.lines().collect(), new.lines().collect());
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    (old[..old.len() - tail].join("\n"), new[..new.len() - tail].join("\n"))
}

fn by_kind(
    kind: Option<&str>,
    title: &str,
    call: &Value,
    directory: &Path,
    scene: &Scene,
) -> Judgment {
    let places = call.get("locations").and_then(Value::as_array).into_iter().flatten();
    let places: Vec<_> =
        places.filter_map(|place| place.get("path")?.as_str().map(str::to_owned)).collect();
    let tool = match kind {
        Some("read" | "search") => "Read",
        Some("edit") => "Edit",
        Some("think" | "switch_mode") => {
            return Judgment::of(vec![Act::new(Kind::Reads, format!("{}.", shown(title)))]);
        }
        Some("fetch") => {
            return Judgment::of(vec![Act::new(
                Kind::Reads,
                format!("Look up: {}.", shown(title)),
            )]);
        }
        Some("delete") => {
            return Judgment::of(vec![Act::new(
                Kind::Deletes,
                format!("Delete: {}.", shown(title)),
            )]);
        }
        _ => {
            let words = format!("Do what the agent calls: {}.", shown(title));
            return Judgment::of(vec![Act::new(Kind::Unknown, words)]);
        }
    };
    if places.is_empty() {
        let words = format!("Do what the agent calls: {}.", shown(title));
        let kind = if tool == "Read" { Kind::Reads } else { Kind::Unknown };
        return Judgment::of(vec![Act::new(kind, words)]);
    }
    tools::judge(tool, &json!({ "paths": places }), directory, scene)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(call: &Value) -> String {
        let here = Path::new("/home/ada/project");
        judge(call, here, &Scene::new(here, Some("/home/ada".into()))).action()
    }

    #[test]
    fn a_command_is_known_by_what_its_shell_is_given() {
        assert_eq!(script("/bin/bash -lc 'touch x && ls'"), Some("touch x && ls"));
        for odd in [
            "touch x",
            "/bin/bash -lc ls",
            "/bin/bash -lc 'a'; rm -r 'b'",
            "a b -lc 'x'",
            "$X -lc 'x'",
        ] {
            assert_eq!(script(odd), None, "{odd}");
        }
    }

    #[test]
    fn arguments_in_the_content_are_read_only_where_they_can_be_nothing_else() {
        let shown = |update: Value| in_content(&update);
        let text = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
        let kimi = json!({ "sessionUpdate": "tool_call", "status": "pending", "kind": "execute",
            "title": "Bash", "content": text(r#"{"command": "git push"}"#) });
        assert_eq!(shown(kimi.clone()), Some((json!("Bash"), json!({ "command": "git push" }))));
        for (name, value) in [
            ("title", json!("rm -r build")),
            ("status", json!("completed")),
            ("sessionUpdate", json!("tool_call_update")),
            ("rawInput", json!({ "command": "ls" })),
            ("content", text("no arguments")),
        ] {
            let mut other = kimi.clone();
            other[name] = value;
            assert_eq!(shown(other.clone()), None, "{other}");
        }
    }

    #[test]
    fn calls_are_told_by_what_they_do() {
        let shell = json!({ "kind": "execute", "title": "Look around",
            "rawInput": { "command": "git push" } });
        assert_eq!(
            said(&shell),
            said(&json!({ "kind": "execute", "title": "x",
            "rawInput": { "command": "git push" } }))
        );
        assert!(!said(&shell).contains("Look around"), "{}", said(&shell));
        let edit = json!({ "kind": "edit", "title": "Tidy up", "content": [{ "type": "diff",
            "path": "/home/ada/project/a.rs", "oldText": "a\nb\nc\n", "newText": "a\nx\nc\n" }] });
        assert_eq!(said(&edit), "Change 1 line in a.rs.");
        let outside = json!({ "kind": "edit", "title": "Tidy up", "content": [{ "type": "diff",
            "path": "/etc/motd", "oldText": null, "newText": "x\n" }] });
        assert!(said(&outside).contains("outside the project"), "{}", said(&outside));
        // Gemini shows the command as the title.
        let title = json!({ "kind": "execute", "title": "touch /home/ada/project/x" });
        assert_eq!(said(&title), "Run what the agent calls: touch /home/ada/project/x.");
        let odd = json!({ "title": "a\u{1b}[2J\u{202e}b", "kind": "frobnicate" });
        assert!(!said(&odd).contains(['\u{1b}', '\u{202e}']));
    }
}
