//! "For this session": offered, agreed to, bounded, shown, taken back; and the program's own dialog.

use super::*;

/// One call that is asked about, with an id of its own.
fn push(home: &Path, number: u32) -> String {
    event(
        home,
        "PreToolUse",
        json!({ "tool_name": "Bash", "tool_input": { "command": "git push", "description": format!("step {number}") },
            "tool_use_id": format!("toolu_{number}") }),
    )
    .to_string()
}

/// Says yes to the push, and hears the offer.
async fn said_yes_twice(hub: &Hub, ear: &mut Ear) -> Value {
    for number in 0..2 {
        let child = call(hub.home(), push(hub.home(), number), &[]);
        let asked = ear.event("awaiting.confirmation").await;
        assert_eq!(asked["action"], "Push to the usual place.");
        ear.decide(&asked, "accept").await;
        assert_eq!(ended(child).await.code, 0);
    }
    let offer = ear.event("awaiting.confirmation").await;
    let action = offer["action"].as_str().unwrap();
    assert!(action.starts_with("For this session, no longer ask before this: Push"), "{action}");
    assert!(offer["consequence"].as_str().unwrap().contains("20 times within 60 minutes"));
    assert_eq!(offer["default_decision"], "reject");
    offer
}

/// A push that nobody is asked about.
async fn runs_unasked(hub: &Hub, ear: &mut Ear, number: u32, used: u32) {
    let ran = ended(call(hub.home(), push(hub.home(), number), &[])).await;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json().pointer("/hookSpecificOutput/permissionDecision"), Some(&json!("allow")));
    let words = format!("Push to the usual place. You allowed it for this session: {used} of 20.");
    loop {
        let told = ear.next().await;
        assert_ne!(told["type"], "aaep:agent.awaiting.confirmation", "{told}");
        if told["summary_normal"] == words.as_str() {
            assert_eq!(told["type"], "aaep:agent.tool.invoked");
            return;
        }
    }
}

/// A push that is asked about, and refused.
async fn is_asked(hub: &Hub, ear: &mut Ear, input: String) {
    let child = call(hub.home(), input, &[]);
    let asked = ear.event("awaiting.confirmation").await;
    assert_ne!(asked["tool"], "aaep.for_this_session");
    ear.decide(&asked, "reject").await;
    ended(child).await.is_no();
}

fn guard(hub: &Hub, words: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.arg("guard").args(words).env_clear().env("HOME", hub.home());
    command.env("XDG_RUNTIME_DIR", hub.home().join("run"));
    let output = command.output().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn what_was_allowed_for_this_session_is_told_and_not_asked_until_the_session_ends() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let mut ear = Ear::unix(&hub).await;
        let offer = said_yes_twice(&hub, &mut ear).await;
        ear.decide(&offer, "accept").await;
        runs_unasked(&hub, &mut ear, 2, 1).await;
        runs_unasked(&hub, &mut ear, 3, 2).await;
        let listed = guard(&hub, &["allowed"]);
        assert!(
            listed.out.contains("1. Claude Code: Push to the usual place. Used 2 of 20 times"),
            "{listed:?}"
        );
        // Another command, another directory, the same with something beside it: all are asked.
        let other = |members: Value| event(hub.home(), "PreToolUse", members).to_string();
        for command in ["git push --force", "git push; rm -rf build", "rm -rf build"] {
            let members = json!({ "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": command });
            is_asked(&hub, &mut ear, other(members)).await;
        }
        let elsewhere: Value = serde_json::from_str(&push(hub.home(), 9)).unwrap();
        let mut elsewhere = elsewhere;
        elsewhere["cwd"] = json!(hub.home());
        is_asked(&hub, &mut ear, elsewhere.to_string()).await;
        // A new wish is a new session.
        let wish = event(hub.home(), "UserPromptSubmit", json!({ "prompt": "Something else." }));
        assert_eq!(ended(call(hub.home(), wish.to_string(), &[])).await.code, 0);
        is_asked(&hub, &mut ear, push(hub.home(), 4)).await;
        assert!(guard(&hub, &["allowed"]).out.contains("Nothing is allowed"));
        ear.is_lawful();
    });
}

#[test]
fn silence_and_no_are_no_allowance_and_it_is_not_offered_again() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let offer = said_yes_twice(&hub, &mut ear).await;
        // Nobody has answered the offer: it is asked as ever.
        is_asked(&hub, &mut ear, push(hub.home(), 2)).await;
        ear.decide(&offer, "reject").await;
        is_asked(&hub, &mut ear, push(hub.home(), 3)).await;
        for number in 4..6 {
            let child = call(hub.home(), push(hub.home(), number), &[]);
            let asked = ear.event("awaiting.confirmation").await;
            assert_eq!(asked["action"], "Push to the usual place.");
            ear.decide(&asked, "accept").await;
            assert_eq!(ended(child).await.code, 0);
        }
        ear.is_lawful();
    });
}

#[test]
fn what_was_allowed_can_be_taken_back() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let offer = said_yes_twice(&hub, &mut ear).await;
        ear.decide(&offer, "accept").await;
        runs_unasked(&hub, &mut ear, 2, 1).await;
        let back = guard(&hub, &["allowed", "--take-back", "1"]);
        assert!(back.code == 0 && !back.out.contains("could not be told"), "{back:?}");
        let told = ear.event("tool.completed").await;
        assert_eq!(told["summary_normal"], "Taken back: you are asked again.");
        is_asked(&hub, &mut ear, push(hub.home(), 3)).await;
        assert_eq!(guard(&hub, &["allowed", "--take-back", "all"]).code, 1);
        ear.is_lawful();
    });
}

#[test]
fn a_forged_or_stretched_allowance_is_none() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let offer = said_yes_twice(&hub, &mut ear).await;
        ear.decide(&offer, "accept").await;
        runs_unasked(&hub, &mut ear, 2, 1).await;
        let directory = hub.home().join(".local/state/aaep/bridge");
        let kept = |words: &str| {
            let entries = std::fs::read_dir(&directory).unwrap().flatten().map(|it| it.path());
            let mut found = entries.filter(|path| path.extension().is_some_and(|it| it == "allow"));
            found.find(|path| std::fs::read_to_string(path).unwrap().contains(words)).unwrap()
        };
        let push_file = kept("Push");
        let good = std::fs::read_to_string(&push_file).unwrap();
        let changed = |change: fn(&mut Value)| {
            let mut record: Value = serde_json::from_str(&good).unwrap();
            change(&mut record["offer"]);
            record.to_string()
        };
        // One for something else, made of this one: the hub compares.
        let child = call(hub.home(), bash(hub.home(), "rm -rf build"), &[]);
        let asked = ear.event("awaiting.confirmation").await;
        ear.decide(&asked, "accept").await;
        assert_eq!(ended(child).await.code, 0);
        std::fs::write(kept("Delete"), &good).unwrap();
        is_asked(&hub, &mut ear, bash(hub.home(), "rm -rf build")).await;
        // This one, stretched in time.
        let longer = changed(|offer| offer["until"] = json!(offer["until"].as_i64().unwrap() + 60));
        std::fs::write(&push_file, longer).unwrap();
        is_asked(&hub, &mut ear, push(hub.home(), 3)).await;
        // It is used up, or its time is over.
        for over in
            [changed(|offer| offer["used"] = json!(20)), changed(|offer| offer["until"] = json!(1))]
        {
            std::fs::write(&push_file, over).unwrap();
            is_asked(&hub, &mut ear, push(hub.home(), 4)).await;
        }
    });
}

#[test]
fn a_person_can_say_for_this_session_at_once_and_keys_are_asked_every_time() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let child = call(hub.home(), push(hub.home(), 0), &[]);
        let asked = ear.event("awaiting.confirmation").await;
        let why = json!({ "decision_rationale": "for this session" });
        ear.decide_saying(&asked, "accept", why.clone()).await;
        assert_eq!(ended(child).await.code, 0);
        let offer = ear.event("awaiting.confirmation").await;
        ear.decide(&offer, "accept").await;
        runs_unasked(&hub, &mut ear, 1, 1).await;
        for _ in 0..3 {
            let child = call(hub.home(), bash(hub.home(), "cat ~/.ssh/id_ed25519"), &[]);
            let asked = ear.event("awaiting.confirmation").await;
            assert!(asked["action"].as_str().unwrap().contains("keys"), "{asked}");
            ear.decide_saying(&asked, "accept", why.clone()).await;
            assert_eq!(ended(child).await.code, 0);
        }
    });
}

#[test]
fn a_no_can_say_why_or_have_the_program_ask_in_its_own_dialog() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut answered = async |options: &[&str], input: String, why: &str| {
            let child = call(hub.home(), input, options);
            let asked = ear.event("awaiting.confirmation").await;
            ear.decide_saying(&asked, "reject", json!({ "decision_rationale": why })).await;
            ended(child).await
        };
        let no = answered(&[], push(hub.home(), 0), "use the branch").await;
        no.is_no();
        assert!(no.err.contains("They say: use the branch."), "{no:?}");
        let there = answered(&[], push(hub.home(), 1), "ask there").await;
        assert_eq!((there.code, there.err.as_str()), (0, ""), "{there:?}");
        let decision = there.json();
        let decision = decision.pointer("/hookSpecificOutput/permissionDecision");
        assert_eq!(decision, Some(&json!("ask")));
        // Codex would run the tool.
        let codex = answered(&["--host", "codex"], push(hub.home(), 2), "ask there").await;
        codex.is_no();
    });
}

#[test]
fn a_policy_file_adds_rules_and_a_broken_one_is_a_no() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let file = hub.home().join("tools.toml");
        let rules = "[[rule]]\ntool = \"mcp__files__*\"\nverdict = \"announce\"\nrisk_level = \"low\"\n\
             reversibility = \"reversible\"\naction = \"Read {path} through the server\"\n\
             [[rule]]\ntool = \"Read\"\naction = \"Look into {file_path}\"\n\
             [[rule]]\ntool = \"Bash\"\nverdict = \"announce\"\nrisk_level = \"low\"\nreversibility = \"reversible\"\n";
        std::fs::write(&file, rules).unwrap();
        let options = ["--policy", file.to_str().unwrap()];
        let input = claude(hub.home(), "mcp__files__read", json!({ "path": "a.txt" }));
        let told = ended(call(hub.home(), input.to_string(), &options)).await;
        assert_eq!((told.code, told.out.as_str()), (0, ""), "{told:?}");
        assert!(ear.event("tool.invoked").await["summary_normal"].to_string().contains("a.txt"));
        for (tool, arguments, words) in [
            ("Read", json!({ "file_path": "notes.txt" }), "Look into"),
            // Patterns do not judge commands.
            ("Bash", json!({ "command": "rm -rf build" }), "Delete"),
        ] {
            let input = claude(hub.home(), tool, arguments).to_string();
            let child = call(hub.home(), input, &options);
            let asked = ear.event("awaiting.confirmation").await;
            assert!(asked["action"].as_str().unwrap().contains(words), "{asked}");
            ear.decide(&asked, "reject").await;
            ended(child).await.is_no();
        }
        std::fs::write(&file, "[[rule]]\ntoool = 1\n").unwrap();
        let no = ended(call(hub.home(), bash(hub.home(), "ls"), &options)).await;
        no.is_no();
        assert!(no.err.contains("aaep policy check"), "{no:?}");
    });
}
