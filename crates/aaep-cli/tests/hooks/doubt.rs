//! On any doubt the answer is no, in a form that holds.

use std::time::{Duration, Instant};

use super::*;

#[test]
fn what_cannot_be_understood_is_refused_in_every_form_at_once() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        let good = bash(home.path(), "ls");
        let inputs: Vec<Vec<u8>> = vec![
            b"".to_vec(),
            b"garbage".to_vec(),
            good[..good.len() / 2].into(),
            b"[]".to_vec(),
            b"null".to_vec(),
            b"{}".to_vec(),
            b"\xff\xfe".to_vec(),
            "[".repeat(100_000).into(),
            good.replace("PreToolUse", "PreToolUseV2").into(),
            good.replace("tool_input", "tool_arguments").into(),
            good.replace("\"cwd\"", "\"pwd\"").into(),
            br#"{"session_id":"x","hook_event_name":"PreToolUse","cwd":"/","tool_name":"Bash","tool_input":{}}"#.to_vec(),
        ];
        for input in inputs {
            // No hub is needed for a no.
            let no = ended(call(home.path(), &input, &["--hub", "unix:/nowhere"])).await;
            no.is_no();
            let form = no.json();
            assert_eq!(
                form.pointer("/hookSpecificOutput/permissionDecision"),
                Some(&json!("deny")),
                "{no:?}"
            );
            assert_eq!(
                (&form["decision"], &form["permissionDecision"], &form["cancel"]),
                (&json!("deny"), &json!("deny"), &json!(true))
            );
        }
        let other = ended(call(home.path(), bash(home.path(), "ls"), &["--host", "gemini"])).await;
        other.is_no();
        assert_eq!(other.json()["decision"], "deny");
    });
}

#[test]
fn without_a_hub_nothing_runs() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        for command in ["ls", "rm -rf build"] {
            let no =
                ended(call(home.path(), bash(home.path(), command), &["--hub", "unix:/nowhere"]))
                    .await;
            no.is_no();
            assert!(no.err.contains("Nobody could be asked"), "{no:?}");
        }
        // What is only told holds nobody up.
        let stop =
            event(home.path(), "Stop", json!({ "last_assistant_message": "done" })).to_string();
        let stop = ended(call(home.path(), stop, &["--hub", "unix:/nowhere"])).await;
        assert_eq!((stop.code, stop.out.as_str(), stop.err.as_str()), (0, "", ""));
    });
}

#[test]
fn a_hub_that_dies_in_mid_question_means_no() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let child = call(hub.home(), bash(hub.home(), "rm -rf build"), &["--host-timeout", "10"]);
        ear.event("awaiting.confirmation").await;
        hub.kill();
        ended(child).await.is_no();
    });
}

#[test]
fn an_agent_that_dies_in_mid_question_takes_the_question_along() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut child = call(hub.home(), bash(hub.home(), "rm -rf build"), &[]);
        ear.event("awaiting.confirmation").await;
        drop(child.stdout.take());
        let settled = ear.event("state.changed").await;
        assert!(settled.to_string().contains("cancelled"), "{settled}");
        ear.event("session.cancelled").await;
        assert_ne!(ended(child).await.code, 0);
        ear.is_lawful();
    });
}

#[test]
fn our_time_is_over_before_the_programs() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let begun = Instant::now();
        let child = call(hub.home(), bash(hub.home(), "rm -rf build"), &["--host-timeout", "5"]);
        ear.event("awaiting.confirmation").await;
        let no = ended(child).await;
        no.is_no();
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(no.err.contains("in time"), "{no:?}");
    });
}

#[test]
fn a_call_that_is_too_large_to_be_asked_about_is_refused_and_a_harmless_one_is_told() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let large = "x".repeat(5 << 20);
        let outside = json!({ "file_path": "/etc/motd", "content": large });
        let no =
            ended(call(hub.home(), claude(hub.home(), "Write", outside).to_string(), &[])).await;
        no.is_no();
        assert!(no.err.contains("too many to be asked about"), "{}", no.err);
        let inside =
            json!({ "file_path": project(hub.home()).join("large.txt"), "content": large });
        let told =
            ended(call(hub.home(), claude(hub.home(), "Write", inside).to_string(), &[])).await;
        assert_eq!((told.code, told.out.as_str()), (0, ""), "{}", told.err);
        ear.event("tool.invoked").await;
        let beyond = json!({ "file_path": "/etc/motd", "content": "x".repeat(17 << 20) });
        ended(call(hub.home(), claude(hub.home(), "Write", beyond).to_string(), &[])).await.is_no();
    });
}

#[test]
fn a_tool_with_a_name_that_hides_something_is_never_let_through_unasked() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        for name in ["Bash\n", "Re\u{202e}ad", "Read\u{0}", "\u{1b}]0;x\u{7}Read", ""] {
            let child = call(
                hub.home(),
                claude(hub.home(), name, json!({})).to_string(),
                &["--host-timeout", "6"],
            );
            let mut waiting = tokio::spawn(ended(child));
            let no = tokio::select! {
                asked = ear.event("awaiting.confirmation") => {
                    let action = asked["action"].as_str().unwrap();
                    assert!(!action.contains(['\u{1b}', '\u{202e}', '\n', '\u{0}']), "{action}");
                    ear.decide(&asked, "reject").await;
                    waiting.await
                }
                no = &mut waiting => no,
            };
            no.unwrap().is_no();
        }
    });
}
