//! Each program gets its answer in its own form.

use super::*;

/// A call of a shell by each program, in the form that it has.
fn calls(home: &Path, command: &str) -> Vec<(&'static str, Value)> {
    let cwd = project(home);
    let arguments = json!({ "command": command });
    let usual = |extra: Value| {
        let mut said = json!({ "session_id": "s1", "cwd": cwd, "tool_input": arguments });
        for (name, value) in extra.as_object().unwrap() {
            said[name] = value.clone();
        }
        said
    };
    vec![
        (
            "claude",
            usual(
                json!({ "transcript_path": "/home/a/.claude/projects/p/s.jsonl", "prompt_id": "p",
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "toolu_1" }),
            ),
        ),
        (
            "codex",
            usual(
                json!({ "transcript_path": "/home/a/.codex/sessions/s.jsonl", "turn_id": "t", "model": "m",
            "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "call_1" }),
            ),
        ),
        (
            "gemini",
            usual(
                json!({ "transcript_path": "/home/a/.gemini/tmp/s.jsonl", "timestamp": "2026-01-01T00:00:00Z",
            "hook_event_name": "BeforeTool", "tool_name": "run_shell_command" }),
            ),
        ),
        (
            "qwen",
            usual(json!({ "transcript_path": "/home/a/.qwen/projects/s.jsonl", "prompt_id": "p",
            "hook_event_name": "PreToolUse", "tool_name": "run_shell_command", "tool_call_id": "call_1" })),
        ),
        (
            "kimi",
            usual(json!({ "client_type": "kimi_code_cli", "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_call_id": "call_1" })),
        ),
        (
            "copilot",
            json!({ "sessionId": "s1", "timestamp": 1, "cwd": cwd, "toolName": "bash", "toolArgs": arguments }),
        ),
        (
            "cline",
            json!({ "clineVersion": "", "taskId": "s1", "workspaceRoots": [cwd], "hookName": "tool_call",
            "tool_call": { "id": "call_1", "name": "run_commands", "input": { "commands": [command] } },
            "preToolUse": { "toolName": "run_commands" } }),
        ),
        (
            "opencode",
            json!({ "hook": "tool.execute.before", "directory": cwd,
            "input": { "tool": "bash", "sessionID": "s1", "callID": "call_1" }, "output": { "args": arguments } }),
        ),
    ]
}

/// The member that says yes or no.
fn word(host: &str) -> &'static str {
    match host {
        "gemini" | "opencode" => "/decision",
        "copilot" => "/permissionDecision",
        "cline" => "/cancel",
        _ => "/hookSpecificOutput/permissionDecision",
    }
}

// covers: T27, C1
#[test]
fn every_program_hears_yes_and_no_in_its_own_form() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        for (host, input) in calls(hub.home(), "rm -rf build") {
            let no = call(hub.home(), input.to_string(), &[]);
            let asked = ear.event("awaiting.confirmation").await;
            assert_eq!(asked["action"], "Delete 1 file in build.", "{host}");
            assert_eq!(asked["consequence"], "Cannot be undone.", "{host}");
            assert_eq!(asked["irreversible"], true, "{host}");
            ear.decide(&asked, "reject").await;
            let no = ended(no).await;
            no.is_no();
            let expected = if host == "cline" { json!(true) } else { json!("deny") };
            assert_eq!(no.json().pointer(word(host)), Some(&expected), "{host}: {no:?}");
            assert!(no.err.contains("The person said no."), "{host}: {no:?}");

            let yes = call(hub.home(), input.to_string(), &["--host", host]);
            let asked = ear.event("awaiting.confirmation").await;
            ear.decide(&asked, "accept").await;
            let yes = ended(yes).await;
            let expected = if host == "cline" { json!(false) } else { json!("allow") };
            assert_eq!((yes.code, yes.err.as_str()), (0, ""), "{host}");
            assert_eq!(yes.json().pointer(word(host)), Some(&expected), "{host}: {yes:?}");
            ear.event("tool.invoked").await;
        }
        ear.is_lawful();
    });
}

#[test]
fn what_only_looks_is_told_and_the_program_decides_as_it_would_alone() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        for (host, input) in calls(hub.home(), "cat notes.txt") {
            let told = ended(call(hub.home(), input.to_string(), &[])).await;
            let silent = if host == "opencode" { "{\"decision\":\"pass\"}\n" } else { "" };
            assert_eq!(
                (told.code, told.out.as_str(), told.err.as_str()),
                (0, silent, ""),
                "{host}"
            );
            let invoked = ear.event("tool.invoked").await;
            assert_eq!(invoked["summary_normal"], "Read notes.txt.", "{host}");
        }
        ear.is_lawful();
    });
}

#[test]
fn a_program_that_wants_permission_itself_is_answered_as_it_asked() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let input = event(
            hub.home(),
            "PermissionRequest",
            json!({ "tool_name": "Write",
            "tool_input": { "file_path": project(hub.home()).join("new.txt"), "content": "hello\n" } }),
        );
        for (decision, code, behavior) in [("accept", 0, "allow"), ("reject", 2, "deny")] {
            let child = call(hub.home(), input.to_string(), &[]);
            let asked = ear.event("awaiting.confirmation").await;
            assert_eq!(asked["action"], "Write 1 line to new.txt.");
            ear.decide(&asked, decision).await;
            let answered = ended(child).await;
            let said = answered.json();
            assert_eq!(answered.code, code, "{answered:?}");
            assert_eq!(
                said.pointer("/hookSpecificOutput/decision/behavior"),
                Some(&json!(behavior))
            );
            assert_eq!(
                said.pointer("/hookSpecificOutput/hookEventName"),
                Some(&json!("PermissionRequest"))
            );
        }
    });
}

#[test]
fn a_change_is_told_with_its_lines_and_what_is_outside_is_asked() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let edit = json!({ "file_path": project(hub.home()).join("notes.txt"), "old_string": "a\nb\nc", "new_string": "d" });
        let told = ended(call(hub.home(), claude(hub.home(), "Edit", edit).to_string(), &[])).await;
        assert_eq!((told.code, told.out.as_str()), (0, ""));
        let invoked = ear.event("tool.invoked").await;
        assert_eq!(invoked["summary_normal"], "Change 3 lines in notes.txt.");
        for (tool, arguments, words) in [
            (
                "Write",
                json!({ "file_path": "/etc/motd", "content": "x" }),
                "Write 1 line to /etc/motd, outside the project.",
            ),
            (
                "Read",
                json!({ "file_path": hub.home().join(".ssh/id_rsa") }),
                "Read keys or passwords in ~/.ssh/id_rsa.",
            ),
            ("mcp__bank__transfer", json!({ "amount": 5 }), "Use the tool transfer of bank."),
            (
                "apply_patch",
                json!({ "command": "*** Begin Patch\n*** Delete File: notes.txt\n*** End Patch" }),
                "Delete the file notes.txt.",
            ),
        ] {
            let child = call(hub.home(), claude(hub.home(), tool, arguments).to_string(), &[]);
            let asked = ear.event("awaiting.confirmation").await;
            assert_eq!(asked["action"], words);
            ear.decide(&asked, "reject").await;
            ended(child).await.is_no();
        }
    });
}
