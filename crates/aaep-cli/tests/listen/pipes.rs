//! Where standard input is no terminal: words, JSON Lines, files and signals.

use std::os::unix::fs::PermissionsExt;

use crate::stage::Stage;
use crate::support::*;
use crate::{Piped, around, demo, file_says, say};

// covers: C28, H26
#[test]
fn words_answer_and_a_pipe_that_ends_leaves_it_listening() {
    let hub = demo();
    let mut listener = Piped::start(&[], &around(&hub));
    listener.sees("Connected to");
    say(&hub, "transfer 5 euros to Bob");
    listener.sees("Type yes or no and press Enter.");
    listener.types("yes");
    listener.sees("type yes and press Enter");
    listener.types("yes");
    listener.sees("5 euros were sent to Bob.");
    listener.end_input();
    listener.sees("Listening goes on.");
    say(&hub, "three sentences");
    listener.sees("A person hears of it.");
    listener.signal("TERM");
    let (code, out, err) = listener.ended();
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with("Stopped.\n") && !out.contains('\u{7}'), "{out}");
}

#[test]
fn without_input_everything_is_said_once() {
    let hub = demo();
    let mut listener = Piped::start_silent(&[], &around(&hub));
    listener.sees("Connected to");
    say(&hub, "a long job");
    listener.sees("The backup is complete.");
    listener.signal("TERM");
    let (_, out, _) = listener.ended();
    assert_eq!(out.matches("Nothing more can be typed here.").count(), 1, "{out}");
    assert_eq!(out.matches("Connected to").count(), 1, "{out}");
    for step in 1..=5 {
        assert_eq!(out.matches(&format!("Step {step} of 5")).count(), 1, "{out}");
    }
    let mut lines: Vec<&str> = out.lines().filter(|line| !line.is_empty()).collect();
    let all = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!(lines.len(), all, "{out}");
}

#[test]
fn once_ends_with_the_first_request_and_says_how_it_went() {
    let hub = demo();
    let mut listener = Piped::start(&["--once"], &around(&hub));
    listener.sees("Connected to");
    say(&hub, "book a room");
    listener.sees("Type yes or no");
    listener.types("no");
    let (code, out, _) = listener.ended();
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("Request 1: rejected."), "{out}");
    let mut listener = Piped::start(&["--once"], &around(&hub));
    listener.sees("Connected to");
    say(&hub, "fail");
    assert_eq!(listener.ended().0, 1);
}

// covers: C28, C29
#[test]
fn programs_hear_and_answer_in_json_lines() {
    let hub = demo();
    let mut listener = Piped::start(&["--json"], &around(&hub));
    listener.sees("\"happening\":\"connected\"");
    say(&hub, "delete the record");
    let asked = listener.sees("\"happening\":\"asked\"");
    let asked: Value = serde_json::from_str(asked.lines().last().unwrap()).unwrap();
    assert_eq!((&asked["request"], &asked["asks"]), (&json!(1), &json!("consent")));
    assert!(asked["said"][0].as_str().unwrap().contains("Delete the record 12345."), "{asked}");
    listener.types(r#"{"request":1,"answer":"accept"}"#);
    listener.sees("needs a second step");
    listener.types(r#"{"request":1,"answer":"accept","certain":true}"#);
    listener.sees("\"happening\":\"sent\"");
    listener.sees("\"outcome\":\"accepted\"");
    say(&hub, "ask me something");
    listener.sees("\"asks\":\"answer\"");
    listener.types(r#"{"request":2,"answer":7}"#);
    listener.sees("does not fit request 2");
    listener.types(r#"{"request":2,"answer":"Lagos"}"#);
    listener.sees("In Lagos the sun shines.");
    listener.types(r#"{"command":"list"}"#);
    listener.sees("Nothing waits for you.");
    listener.types(r#"{"nonsense":1}"#);
    listener.sees("could not be understood");
    listener.types("quit");
    let (code, out, _) = listener.ended();
    assert_eq!(code, 0);
    for line in out.lines() {
        let line: Value = serde_json::from_str(line).expect(line);
        assert!(line["happening"].is_string(), "{line}");
        assert!(!line.to_string().contains("rpl_"), "{line}");
    }
}

#[test]
fn a_transcript_is_the_users_alone_and_holds_what_was_said_and_typed() {
    let hub = demo();
    let file = hub.home().join("transcript.txt");
    let mut listener = Piped::start(&["--transcript", file.to_str().unwrap()], &around(&hub));
    listener.sees("Connected to");
    listener.types("list");
    listener.sees("Nothing waits");
    listener.types("quit");
    assert_eq!(listener.ended().0, 0);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let told: Vec<&str> = text.lines().map(|line| line.split_once("Z ").unwrap().1).collect();
    assert!(told[0].starts_with("Connected to"), "{text}");
    assert_eq!(told[1], "Type help for help.", "{text}");
    assert_eq!(told[2..], ["> list", "Nothing waits for you.", "> quit", "Goodbye."], "{text}");
}

// covers: T21
#[test]
fn the_users_own_rules_answer_and_are_announced() {
    let hub = demo();
    let file = hub.home().join("rules.toml");
    let rules = "[[rule]]\nagent = \"demo-agent\"\ntool = \"rooms.book\"\nanswer = \"accept\"\nrisk_level = \"medium\"\nreversibility = \"reversible_with_effort\"\n\n[[rule]]\nagent = \"demo-agent\"\naction = \"Delete *\"\nanswer = \"reject\"\n";
    std::fs::write(&file, rules).unwrap();
    let mut listener = Piped::start(&["--policy", file.to_str().unwrap()], &around(&hub));
    listener.sees("Your own rules are in force");
    listener.sees("Connected to");
    say(&hub, "book a room");
    listener.sees("Your own rule in line 1 says yes.");
    listener.sees("The room is booked.");
    say(&hub, "delete the record");
    listener.sees("Your own rule in line 8 says no.");
    listener.sees("Nothing was done.");
    say(&hub, "transfer");
    listener.sees("Type yes or no");
    let grave = rules.replace("medium", "high").replace("reversible_with_effort", "irreversible");
    std::fs::write(&file, grave).unwrap();
    let refused = Piped::start(&["--policy", file.to_str().unwrap()], &around(&hub));
    let (code, out, err) = refused.ended();
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("rules.toml, line 1: What cannot be undone"), "{err}");
}

#[test]
fn the_users_own_command_makes_the_sounds() {
    let hub = demo();
    let heard = hub.home().join("heard.txt");
    let chime = hub.home().join("chime");
    let script = format!("#!/bin/sh\necho \"$#:$1\" >> {}\n", heard.display());
    std::fs::write(&chime, script).unwrap();
    std::fs::set_permissions(&chime, PermissionsExt::from_mode(0o700)).unwrap();
    let mut listener = Piped::start(&["--sound-command", chime.to_str().unwrap()], &around(&hub));
    listener.sees("Connected to");
    say(&hub, "book a room");
    listener.sees("Type yes or no");
    file_says(&heard, "1:blocked");
    listener.types("yes");
    file_says(&heard, "1:done");
    say(&hub, "fail");
    file_says(&heard, "1:error");
}

#[test]
fn tones_that_differ_by_meaning_are_played_by_what_there_is_and_that_is_said() {
    let hub = demo();
    let heard = hub.home().join("tones.txt");
    let player = hub.home().join("aplay");
    let script = format!("#!/bin/sh\necho \"$(cat | cksum) $*\" >> {}\n", heard.display());
    std::fs::write(&player, script).unwrap();
    std::fs::set_permissions(&player, PermissionsExt::from_mode(0o700)).unwrap();
    let mut variables = around(&hub);
    variables.push(("PATH".into(), format!("{}:/usr/bin:/bin", hub.home().display())));
    // A real one that comes first would play into nothing.
    let mut listener = Piped::start(&["--sounds"], &variables);
    listener.sees(&format!("Sounds are played by {}.", player.display()));
    listener.sees("Connected to");
    say(&hub, "book a room");
    listener.sees("Type yes or no");
    listener.types("yes");
    listener.sees("Done.");
    say(&hub, "fail");
    listener.sees("Failed");
    let until = std::time::Instant::now() + PATIENCE;
    let played = loop {
        let text = std::fs::read_to_string(&heard).unwrap_or_default();
        if text.lines().count() >= 3 {
            break text;
        }
        assert!(std::time::Instant::now() < until, "{text}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    let sums: std::collections::BTreeSet<_> =
        played.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(sums.len(), 3, "{played}");
    assert!(played.contains("-f S16_LE -r 22050"), "{played}");
}

#[test]
fn without_a_player_it_is_said_what_to_install() {
    let hub = demo();
    let (code, out, err) = Piped::start(&["--sounds"], &around(&hub)).ended();
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("install paplay"), "{err}");
}

// covers: T19
#[test]
fn an_answer_that_is_kept_is_read_when_somebody_asks() {
    let hub = demo();
    let mut listener = Piped::start(&["--output", "end"], &around(&hub));
    listener.sees("Connected to");
    say(&hub, "three sentences");
    listener.sees("done, 3 sentences. Type play to read.");
    listener.types("play");
    listener.sees("An agent acts.");
}

#[test]
fn whoever_cannot_listen_says_why_and_ends_with_2() {
    for (arguments, says) in [
        (&["nonsense"][..], "is no address of a hub"),
        (&["--policy", "/nowhere"][..], "Cannot read the rules in /nowhere"),
        (&["--transcript", "/nowhere/x"][..], "Cannot write the transcript"),
        (&["--token-file", "/nowhere"][..], "cannot read the token in /nowhere"),
        (&["--verbosity", "loud"][..], "loud"),
    ] {
        let (code, out, err) = Piped::start(arguments, &[]).ended();
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(says), "{arguments:?}: {err}");
    }
}

#[test]
fn a_hub_that_is_not_there_yet_is_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let around = [("HOME".to_owned(), home.path().to_str().unwrap().to_owned())];
    let mut listener = Piped::start(&["http://127.0.0.1:1"], &around);
    listener.sees("The connection to 127.0.0.1:1 is lost");
    listener.types("quit");
    assert_eq!(listener.ended().0, 0);
}

// covers: H26
#[test]
fn whoever_stops_it_the_hub_is_told_goodbye() {
    for name in ["INT", "TERM", "HUP"] {
        let stage = Stage::start();
        let around = [("HOME".to_owned(), "/nonexistent".to_owned())];
        let mut listener = Piped::start(&[&stage.base], &around);
        listener.sees("Connected to");
        stage.attached(1);
        listener.signal(name);
        assert_eq!(stage.receives("subscription.close")["subscription_id"], "sub_stage");
        let (code, out, err) = listener.ended();
        assert_eq!((code, err.as_str()), (0, ""), "{name}: {out}");
        assert!(out.ends_with("Stopped.\n"), "{name}: {out}");
    }
}
