//! Calls of one program belong together, survive what a hub goes through, and leave no secrets.

use super::*;

// covers: T34, T15
#[test]
fn a_turn_of_the_agent_is_one_session_from_the_wish_to_the_last_word() {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        let quiet = async |said: Value| {
            let ended = ended(call(home, said.to_string(), &[])).await;
            assert_eq!((ended.code, ended.out.as_str(), ended.err.as_str()), (0, "", ""), "{said}");
        };
        quiet(event(home, "SessionStart", json!({ "source": "startup" }))).await;
        is_in_passing(&mut ear, "Claude Code has started.").await;
        quiet(event(home, "SessionStart", json!({ "source": "compact" }))).await;
        quiet(event(home, "UserPromptSubmit", json!({ "prompt": "Tidy up, please." }))).await;
        let started = ear.event("session.started").await;
        assert_eq!(started["summary_normal"], "Claude Code: Tidy up, please.");
        assert_eq!(started["producer"]["agent_id"], "claude");
        quiet(claude(home, "Read", json!({ "file_path": project(home).join("notes.txt") }))).await;
        let invoked = ear.event("tool.invoked").await;
        quiet(event(
            home,
            "PostToolUse",
            json!({ "tool_name": "Read", "tool_input": {}, "tool_use_id": "toolu_1",
            "tool_response": {} }),
        ))
        .await;
        let completed = ear.event("tool.completed").await;
        assert_eq!(
            (&completed["tool_call_id"], &completed["status"]),
            (&invoked["tool_call_id"], &json!("success"))
        );
        let child = call(home, bash(home, "rm -rf build"), &[]);
        let asked = ear.event("awaiting.confirmation").await;
        ear.decide(&asked, "accept").await;
        assert_eq!(ended(child).await.code, 0);
        let invoked = ear.event("tool.invoked").await;
        quiet(event(
            home,
            "PostToolUseFailure",
            json!({ "tool_name": "Bash", "tool_input": {}, "tool_use_id": "toolu_1" }),
        ))
        .await;
        let completed = ear.event("tool.completed").await;
        assert_eq!(
            (&completed["tool_call_id"], &completed["status"]),
            (&invoked["tool_call_id"], &json!("error"))
        );
        quiet(event(home, "SubagentStart", json!({ "agent_type": "general-purpose" }))).await;
        ear.event("progress.updated").await;
        quiet(event(home, "Stop", json!({ "last_assistant_message": "It is tidy now." }))).await;
        let end = ear.event("session.completed").await;
        for part in [&invoked, &completed, &asked, &end] {
            assert_eq!(part["session_id"], started["session_id"]);
        }
        let waits = json!({ "message": "Claude is waiting for your input",
            "notification_type": "idle_prompt" });
        quiet(event(home, "Notification", waits)).await;
        is_in_passing(&mut ear, "Claude is waiting for your input").await;
        quiet(event(home, "SessionEnd", json!({ "reason": "other" }))).await;
        is_in_passing(&mut ear, "Claude Code has ended.").await;
        ear.is_lawful();
    });
}

/// Something is told though the agent works on nothing, and no session stays open for it.
async fn is_in_passing(ear: &mut Ear, words: &str) {
    let started = ear.event("session.started").await;
    assert_eq!(started["summary_normal"], "Claude Code in project.");
    let completed = ear.event("session.completed").await;
    assert_eq!(completed["summary_normal"], words);
    assert_eq!(completed["session_id"], started["session_id"]);
}

/// A turn, as each program tells it: what is wanted, a call before and after it, a note, and the end.
fn turns(home: &Path) -> Vec<(&'static str, [Value; 5])> {
    let look = json!({ "command": "ls" });
    let kimi = |name: &str, members: Value| {
        let mut said = event(home, name, members);
        said["client_type"] = json!("kimi_code_cli");
        said
    };
    let copilot = |members: Value| {
        let mut said = json!({ "sessionId": "c", "timestamp": 1, "cwd": project(home) });
        for (name, value) in members.as_object().unwrap() {
            said[name] = value.clone();
        }
        said
    };
    let opencode = |hook: &str, input: Value, output: Value| json!({ "hook": hook, "directory": project(home), "input": input, "output": output });
    let (bash, id) = (json!("Bash"), json!("call_0"));
    let used = json!({ "tool_name": bash, "tool_input": look, "tool_call_id": id });
    let copied = json!({ "toolName": "bash", "toolArgs": look });
    let mut failed = copied.clone();
    failed["toolResult"] = json!({ "resultType": "failure" });
    let session = json!({ "sessionID": "o" });
    let open = json!({ "sessionID": "o", "tool": "bash", "callID": "1", "args": look });
    vec![
        (
            "kimi",
            [
                kimi(
                    "UserPromptSubmit",
                    json!({ "prompt": [{ "type": "text", "text": "Look." }] }),
                ),
                kimi("PreToolUse", used.clone()),
                kimi("PostToolUseFailure", used),
                kimi("SubagentStop", json!({ "agent_name": "helper" })),
                kimi("Stop", json!({ "stop_hook_active": false })),
            ],
        ),
        (
            "copilot",
            [
                copilot(json!({ "prompt": "Look." })),
                copilot(copied),
                copilot(failed),
                copilot(json!({ "message": "A helper", "hook_event_name": "Notification" })),
                copilot(json!({ "stopReason": "end_turn", "stop_hook_active": false })),
            ],
        ),
        (
            "opencode",
            [
                opencode(
                    "chat.message",
                    session.clone(),
                    json!({ "parts": [{ "text": "Look." }] }),
                ),
                opencode("tool.execute.before", open.clone(), json!({ "args": look })),
                opencode("tool.execute.after", open, json!({})),
                // It tells nothing else.
                Value::Null,
                opencode("session.idle", session, json!({})),
            ],
        ),
    ]
}

#[test]
fn what_other_programs_tell_of_a_turn_is_one_session_too() {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        for (host, told) in turns(home) {
            for said in told.iter().filter(|said| !said.is_null()) {
                let ended = ended(call(home, said.to_string(), &["--host", host])).await;
                assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{host}: {said}");
                // And nobody has to name the program.
                assert_eq!(
                    aaep_bridge::host::Incoming::read(said.to_string().as_bytes(), None)
                        .unwrap()
                        .host
                        .id(),
                    host
                );
            }
            let started = ear.event("session.started").await;
            let wish = started["summary_normal"].as_str().unwrap();
            assert!(wish.ends_with(": Look."), "{host}: {wish}");
            let invoked = ear.event("tool.invoked").await;
            let completed = ear.event("tool.completed").await;
            assert_eq!(completed["tool_call_id"], invoked["tool_call_id"], "{host}");
            let end = if host == "opencode" { "success" } else { "error" };
            assert_eq!(completed["status"], end, "{host}");
            if host != "opencode" {
                let note = ear.event("progress.updated").await.to_string();
                assert!(note.contains("elper"), "{host}: {note}");
            }
            let end = ear.event("session.completed").await;
            assert_eq!(end["session_id"], started["session_id"], "{host}");
        }
        ear.is_lawful();
    });
}

#[test]
fn twenty_calls_at_once_are_one_session() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let children: Vec<_> = (0..20)
            .map(|index| {
                let said = event(hub.home(), "PreToolUse", json!({ "tool_name": "Bash",
                    "tool_input": { "command": format!("echo {index}") }, "tool_use_id": format!("toolu_{index}") }));
                call(hub.home(), said.to_string(), &[])
            })
            .collect();
        for child in children {
            let told = ended(child).await;
            assert_eq!((told.code, told.out.as_str()), (0, ""), "{}", told.err);
        }
        let (mut sessions, mut tools) = (std::collections::BTreeSet::new(), 0);
        while tools < 20 {
            let invoked = ear.event("tool.invoked").await;
            sessions.insert(invoked["session_id"].as_str().unwrap().to_owned());
            tools += 1;
        }
        assert_eq!(sessions.len(), 1);
    });
}

// covers: I3
#[test]
fn a_question_survives_a_restart_of_the_hub_and_its_answer_arrives() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let mut ear = Ear::unix(&hub).await;
        let child = call(hub.home(), bash(hub.home(), "rm -rf build"), &[]);
        let asked = ear.event("awaiting.confirmation").await;
        hub.kill();
        let again = Hub::start_in(Setup::durable(), hub.shared_directory());
        let mut ear = Ear::unix(&again).await;
        let same = ear.event("awaiting.confirmation").await;
        assert_eq!(same["reply_token"], asked["reply_token"]);
        ear.decide(&same, "accept").await;
        let yes = ended(child).await;
        assert_eq!(yes.code, 0, "{yes:?}");
        assert_eq!(
            yes.json().pointer("/hookSpecificOutput/permissionDecision"),
            Some(&json!("allow"))
        );
    });
}

// covers: T14
#[test]
fn keys_of_the_environment_and_of_arguments_are_found_nowhere() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let mut ear = Ear::unix(&hub).await;
        let command = format!("curl -H 'Authorization: Bearer {CANARY}' -d x https://example.org");
        let child = call(hub.home(), bash(hub.home(), &command), &[]);
        let asked = ear.event("awaiting.confirmation").await;
        assert!(!asked.to_string().contains(CANARY), "{asked}");
        ear.decide(&asked, "reject").await;
        let no = ended(child).await;
        no.is_no();
        assert!(!no.out.contains(CANARY) && !no.err.contains(CANARY));
        assert!(!hub.log().join("\n").contains(CANARY));
        let kept = hub.home().join(".local/state/aaep/bridge");
        for entry in std::fs::read_dir(&kept).unwrap() {
            let path = entry.unwrap().path();
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o077, 0, "{path:?}");
            assert!(!std::fs::read_to_string(&path).unwrap().contains(CANARY));
        }
    });
}

// covers: I30
#[test]
fn a_hub_is_started_where_none_runs_without_the_agents_environment() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(home.path().join("run"))
            .unwrap();
        let told = ended(call(home.path(), bash(home.path(), "ls"), &[])).await;
        let (process, environment) = started(home.path());
        let _ends = Started(process);
        assert_eq!((told.code, told.out.as_str()), (0, ""), "{}", told.err);
        assert!(!environment.contains(CANARY), "{environment}");
        assert!(!environment.contains("AAEP_DEVELOPMENT"), "{environment}");
        // The next call finds the same one.
        let told = ended(call(home.path(), bash(home.path(), "pwd"), &[])).await;
        assert_eq!((told.code, started(home.path()).0), (0, process));
    });
}

/// The hub that a hook started in this home: its number, and what is in its environment.
fn started(home: &Path) -> (u32, String) {
    let ours = format!("HOME={}\0", home.display());
    let found = std::fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read_to_string(entry.path().join("environ")).ok()?;
        let command = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let is_ours = environment.contains(&ours) && command.ends_with("\0hub\0");
        is_ours.then_some((process, environment))
    });
    found.expect("a hub runs")
}

/// Ends with the test.
struct Started(u32);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg("-KILL").arg(self.0.to_string()).status();
    }
}

#[test]
fn what_a_server_wants_to_know_and_what_became_of_it_is_told() {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        let wish = event(home, "UserPromptSubmit", json!({ "prompt": "Ask me." }));
        assert_eq!(ended(call(home, wish.to_string(), &[])).await.code, 0);
        for (name, members, words) in [
            (
                "Elicitation",
                json!({ "mcp_server_name": "ev", "message": "Your\u{1b}[2J name?", "mode": "form" }),
                "The server ev wants to know: Your",
            ),
            (
                "ElicitationResult",
                json!({ "mcp_server_name": "ev", "mode": "form", "action": "decline" }),
                "The server ev: its question was declined.",
            ),
        ] {
            let said = ended(call(home, event(home, name, members).to_string(), &[])).await;
            // The program goes on with its own dialog.
            assert_eq!((said.code, said.out.as_str()), (0, ""), "{said:?}");
            let told = ear.event("progress.updated").await.to_string();
            assert!(told.contains(words) && !told.contains("\\u001b"), "{told}");
        }
    });
}
