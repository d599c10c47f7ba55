//! The demo's words, and how it begins and ends.

use std::collections::BTreeSet;
use std::io::Write;

use crate::support::*;
use crate::{aaep, demo, ended, say};

/// Hears until so many sessions have ended, and answers every question. Gives the types that it heard.
async fn follow(ear: &mut Ear, sessions: usize, decision: &str) -> Vec<String> {
    let (mut over, mut types) = (BTreeSet::new(), Vec::new());
    while over.len() < sessions {
        let event = ear.next().await;
        let kind = text(&event, "type").trim_start_matches("aaep:agent.").to_owned();
        match kind.as_str() {
            "awaiting.confirmation" => ear.decide(&event, decision).await,
            "awaiting.clarification" => ear.answer(&event, json!("Lagos")).await,
            "session.completed" | "session.errored" | "session.cancelled" => {
                over.insert(text(&event, "session_id").to_owned());
            }
            _ => {}
        }
        types.push(kind);
    }
    types
}

// covers: T1, T12, T27
#[test]
fn its_words_show_every_event_type_and_every_stream_is_lawful() {
    run(async {
        let hub = demo(&[]);
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        let mut all = BTreeSet::new();
        let words: [(&str, usize, &str); 12] = [
            ("balance", 1, "tool.completed"),
            ("transfer 20 euros to Ann", 1, "awaiting.confirmation"),
            ("send an email", 1, "awaiting.confirmation"),
            ("delete the record", 1, "awaiting.confirmation"),
            ("book a room", 1, "awaiting.confirmation"),
            ("three sentences", 1, "output.streaming"),
            ("ask me something", 1, "awaiting.clarification"),
            ("fail", 1, "session.errored"),
            ("give up", 1, "session.cancelled"),
            ("hand off", 1, "handoff.requested"),
            ("a long job", 1, "progress.updated"),
            ("several at once", 3, "awaiting.confirmation"),
        ];
        for (words, sessions, shows) in words {
            say(&hub, words).await;
            let types = follow(&mut ear, sessions, "accept").await;
            assert!(types.iter().any(|kind| kind == shows), "{words}: {types:?}");
            all.extend(types);
        }
        all.retain(|kind| !kind.contains(':'));
        assert_eq!(all.len(), 12, "{all:?}");
        ear.is_lawful();
        nothing_is_found(&ear.heard, "accept");
    });
}

/// `aaep check --complete` finds neither an error nor a warning in what was heard, and nothing in it is
/// worth a warning by itself.
fn nothing_is_found(heard: &[String], what: &str) {
    for message in heard {
        let problems = aaep_types::validate(message.as_bytes());
        assert!(problems.is_empty(), "{problems:?}\n{message}");
    }
    let directory = tempfile::tempdir().unwrap();
    let stream = directory.path().join("heard.jsonl");
    std::fs::write(&stream, heard.join("\n")).unwrap();
    let judged = aaep(&["check", "--complete", stream.to_str().unwrap()]).output().unwrap();
    let said = String::from_utf8(judged.stdout).unwrap();
    let clean = format!("1 stream, {} messages: 0 errors, 0 warnings, 0 notes\n", heard.len());
    assert_eq!((judged.status.code(), said.as_str()), (Some(0), clean.as_str()), "{what}");
}

// covers: T12, T27, C2
#[test]
fn whatever_is_answered_the_check_of_whole_streams_finds_nothing() {
    run(async {
        let hub = demo(&["--strict"]);
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        let words = [
            ("transfer 20 euros to Ann", 1),
            ("delete the record", 1),
            ("several at once", 3),
            ("ask me something", 1),
        ];
        for (words, sessions) in words {
            say(&hub, words).await;
            follow(&mut ear, sessions, "reject").await;
        }
        nothing_is_found(&ear.heard, "reject");
    });
}

// covers: T12, C12
#[test]
fn without_a_yes_nothing_is_done() {
    run(async {
        let hub = demo(&[]);
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        for words in ["transfer", "email", "delete", "book"] {
            say(&hub, words).await;
            let types = follow(&mut ear, 1, "reject").await;
            assert!(!types.iter().any(|kind| kind.starts_with("tool.")), "{words}: {types:?}");
        }
        ear.is_lawful();
    });
}

#[test]
fn it_says_where_it_is_that_anyone_can_answer_and_what_it_does_for_the_suite() {
    run(async {
        for (options, start, says) in
            [(&[][..], 2, "--strict turns that off"), (&["--strict"][..], 1, "strictly")]
        {
            let hub = demo(options);
            let said = hub.said().join("\n");
            assert!(said.contains("Anyone on this machine can listen, speak and answer"), "{said}");
            assert!(said.contains(says) && said.contains("/aaep/v1/events"), "{said}");
            let mut ear = Ear::listen(hub.anonymous()).await;
            say(&hub, "hello").await;
            let types = follow(&mut ear, 1, "accept").await;
            let starts = types.iter().filter(|kind| *kind == "session.started").count();
            assert_eq!(starts, start, "{types:?}");
            ear.is_lawful();
        }
    });
}

#[test]
fn it_keeps_what_was_answered_in_a_directory_of_its_own_unless_told_otherwise() {
    run(async {
        let hub = demo(&[]);
        let said = hub.said().join("\n");
        assert!(said.contains("What is asked and answered is kept in"), "{said}");
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        say(&hub, "transfer").await;
        follow(&mut ear, 1, "accept").await;
        hub.signal("TERM");
        assert_eq!(hub.ended().code(), Some(0));
        let data = hub.home().join(".local/share/aaep-demo");
        let audit =
            aaep(&["audit", "export", "--kind", "resolved", "--data", data.to_str().unwrap()]);
        let audit = ended({ audit }.spawn().unwrap()).await;
        assert_eq!(audit.code, 0, "{}", audit.err);
        assert_eq!(audit.out.lines().count(), 1, "{}", audit.out);
        // What the demo noted outside is found, so an end that is cut off would be noticed.
        let mut audit = aaep(&["audit", "verify", "--json", "--data", data.to_str().unwrap()]);
        audit.env("HOME", hub.home());
        let audit = ended({ audit }.spawn().unwrap()).await;
        for known in [r#""end_is_known":true"#, r#""key_is_known":true"#] {
            assert!(audit.out.contains(known), "{}{}", audit.out, audit.err);
        }
        assert_eq!(audit.code, 0, "{}", audit.err);

        let hub = demo(&["--ephemeral"]);
        assert!(hub.said().join("\n").contains("Nothing is kept"));
        assert!(!hub.home().join(".local/share/aaep-demo").exists());
    });
}

// covers: T1, I23
#[test]
fn when_it_is_stopped_everything_that_runs_is_heard_to_end() {
    run(async {
        let hub = demo(&[]);
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        say(&hub, "delete the record").await;
        ear.event("awaiting.confirmation").await;
        say(&hub, "a long job").await;
        ear.event("progress.updated").await;
        hub.signal("INT");
        let rest = ear.until_end().await;
        let ends = rest.iter().filter(|event| event["type"] == "aaep:agent.session.cancelled");
        assert_eq!(ends.count(), 2, "{rest:#?}");
        ear.is_lawful();
        assert_eq!(hub.ended().code(), Some(0));
    });
}

#[test]
fn somebody_can_talk_with_it_from_a_terminal() {
    run(async {
        let hub = demo(&[]);
        let base = hub.base();
        let talk = |words: &str, types: &str| {
            let mut child = aaep(&["demo", "--hub", &base, "--say", words]).spawn().unwrap();
            child.stdin.take().unwrap().write_all(types.as_bytes()).unwrap();
            ended(child)
        };
        let yes = talk("transfer 5 euros to Bob", "perhaps\nyes\n").await;
        assert_eq!(yes.code, 0, "{}", yes.err);
        assert!(
            yes.out.contains("Question: Transfer 5 euros to Bob. This cannot be undone."),
            "{}",
            yes.out
        );
        assert!(yes.out.contains("5 euros were sent to Bob."), "{}", yes.out);
        assert_eq!(yes.out.matches("Type yes or no").count(), 2, "{}", yes.out);
        let no = talk("delete the record", "no\n").await;
        assert!(
            no.out.contains("Nothing was done.") && !no.out.contains("was deleted"),
            "{}",
            no.out
        );
        let answer = talk("ask me something", "Lagos\n").await;
        assert!(answer.out.contains("In Lagos the sun shines."), "{}", answer.out);
        let several = talk("several at once", "yes\nyes\n").await;
        assert_eq!(several.code, 0, "{}", several.err);
        assert!(several.out.contains("The backup is complete."), "{}", several.out);
        let nobody = ended(
            aaep(&["demo", "--hub", "http://127.0.0.1:1/aaep/v1", "--say", "hi"]).spawn().unwrap(),
        )
        .await;
        assert_eq!((nobody.code, nobody.out.as_str()), (2, ""));
        assert!(nobody.err.contains("`aaep demo` starts it"), "{}", nobody.err);
    });
}
