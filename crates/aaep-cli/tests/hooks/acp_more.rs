//! `aaep acp`: what is answered in the editor, what counts for longer, modes, restarts, terminals.

use super::acp::{Editor, Terminal};
use super::*;

/// The next words of this kind that were said for sure.
async fn hears(ear: &mut Ear, words: &str) -> Value {
    loop {
        let told = ear.event("output.streaming").await;
        if told.to_string().contains(words) {
            return told;
        }
    }
}

#[test]
fn what_the_editor_allowed_is_heard_also_of_agents_that_begin_before_they_ask() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        for prompt in ["early", "ask", "early", "ask"] {
            editor.prompt(prompt);
            editor.is_asked();
            ear.event("awaiting.confirmation").await;
            editor.choose(0, "once");
            hears(&mut ear, "Allowed in the editor: Push").await;
            editor.turn_ends();
            ear.event("session.completed").await;
        }
        assert!(!ear.heard.join("\n").contains("without asking"), "it was asked");
        assert_eq!(editor.end(), 0);
        ear.is_lawful();
    });
}

#[test]
fn who_hears_slowly_still_hears_everything_that_the_editor_allowed() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut quick = Ear::unix(&hub).await;
        let slowly = json!({ "max_events_per_second": 1, "supports_confirmation_reply": false,
            "coalesce_boundaries": ["sentence"], "supported_conformance_levels": [1, 2, 3] });
        let mut slow = Ear::unix_for(&hub, slowly).await;
        let mut editor = Editor::open(hub.home(), &[]);
        editor.prompt("three");
        for _ in 0..3 {
            editor.is_asked();
            quick.event("awaiting.confirmation").await;
        }
        for id in 0..3 {
            editor.choose(id, "once");
        }
        editor.turn_ends();
        let mut told = String::new();
        loop {
            let message = slow.next().await;
            match message["type"].as_str().unwrap() {
                "aaep:agent.output.streaming" => told += message["chunk"].as_str().unwrap(),
                "aaep:agent.session.completed" => break,
                _ => {}
            }
        }
        assert_eq!(told.matches("Allowed in the editor").count(), 3, "{told}");
        assert_eq!(editor.end(), 0);
    });
}

// covers: I3
#[test]
fn a_question_survives_a_restart_of_the_hub_and_its_answer_reaches_the_agent() {
    run(async {
        for decision in ["accept", "reject"] {
            let hub = Hub::start(Setup::durable());
            let mut ear = Ear::unix(&hub).await;
            let mut editor = Editor::open(hub.home(), &[]);
            editor.prompt("ask");
            let asked = ear.event("awaiting.confirmation").await;
            hub.kill();
            let again = Hub::start_in(Setup::durable(), hub.shared_directory());
            let mut ear = Ear::unix(&again).await;
            let same = ear.event("awaiting.confirmation").await;
            assert_eq!(same["reply_token"], asked["reply_token"]);
            ear.decide(&same, decision).await;
            editor.turn_ends();
            let chosen = if decision == "accept" { "0 once\n" } else { "0 no\n" };
            assert_eq!(editor.ran(), chosen);
            assert_eq!(editor.end(), 0);
        }
    });
}

#[test]
fn a_hub_that_is_lost_for_good_leaves_the_question_to_the_editor_and_never_says_yes() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &["--timeout", "600"]);
        editor.prompt("ask");
        editor.is_asked();
        ear.event("awaiting.confirmation").await;
        hub.kill();
        editor.choose(0, "no");
        editor.turn_ends();
        assert_eq!(editor.ran(), "0 no\n");
        assert_eq!(editor.end(), 0);
    });
}

#[test]
fn what_counts_for_longer_is_offered_as_such_and_never_chosen_by_silence() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &["--offer-always", "--timeout", "3"]);
        for (decision, place, chosen) in [
            ("accept", Some("2"), "0 always\n"),
            ("accept", Some("1"), "0 once\n"),
            ("reject", Some("2"), "0 never\n"),
            ("accept", None, "0 once\n"),
            ("reject", None, "0 no\n"),
        ] {
            editor.prompt("ask");
            let asked = ear.event("awaiting.confirmation").await;
            ear.decide(&asked, decision).await;
            let how_long = ear.event("awaiting.clarification").await;
            let words = how_long.to_string();
            assert!(words.contains("Only this once") && words.contains("count?"), "{words}");
            if let Some(place) = place {
                ear.answer(&how_long, json!(place)).await;
            }
            editor.turn_ends();
            assert!(editor.ran().ends_with(chosen), "{decision} {place:?}: {}", editor.ran());
        }
        // Where nothing else is offered, that is said, and silence is a no.
        editor.prompt("always");
        let asked = ear.event("awaiting.confirmation").await;
        assert!(asked.to_string().contains("A yes here means: Always"), "{asked}");
        ear.decide(&asked, "accept").await;
        editor.turn_ends();
        assert!(editor.ran().ends_with("0 always\n"), "{}", editor.ran());
        editor.prompt("always");
        ear.event("awaiting.confirmation").await;
        editor.turn_ends();
        assert!(editor.ran().ends_with("0 cancelled\n"), "{}", editor.ran());
        assert_eq!(editor.end(), 0);
        ear.is_lawful();
    });
}

#[test]
fn a_mode_that_the_agent_sets_itself_is_told_and_set_back_if_it_has_to_go_on_asking() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        editor.prompt("mode yolo");
        hears(&mut ear, "the agent asks nothing").await;
        assert_eq!(editor.end(), 0);

        let mut editor = Editor::open(hub.home(), &["--keep-asking"]);
        editor.prompt("mode yolo");
        hears(&mut ear, "The mode yolo was refused").await;
        editor.say(r#"{"jsonrpc":"2.0","id":9,"method":"x/ping"}"#);
        // The answer to what we said ourselves is for nobody.
        let pong = editor.until(|message| message.get("id").is_some_and(|id| id != "turn"));
        assert_eq!(pong["result"]["echo"], "x/ping");
        let set = editor.seen();
        assert!(set.contains(r#""modeId":"default""#) && set.contains("aaep-mode-1"), "{set}");
        assert_eq!(editor.end(), 0);

        // An agent that does not leave its mode is stopped, and not asked for anything more.
        std::fs::remove_file(hub.home().join("seen.jsonl")).unwrap();
        let editor = Editor::start_with(hub.home(), &["--keep-asking"], &["stubborn"]);
        let mut editor = editor.opened(hub.home());
        editor.prompt("mode yolo");
        hears(&mut ear, "so it is stopped").await;
        while !editor.seen().contains("session/cancel") {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(editor.end(), 1, "this agent ends when it is stopped");
    });
}

#[test]
fn images_are_told_in_words() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        editor.prompt("picture");
        hears(&mut ear, "An image chart.png, PNG, 3 kilobytes").await;
        let done = ear.event("tool.completed").await;
        assert!(done.to_string().contains("Done: Drawing. An image chart.png"), "{done}");
        editor.turn_ends();
        assert_eq!(editor.end(), 0);
        ear.is_lawful();
    });
}

#[test]
fn commands_run_inside_only_after_a_yes_and_end_with_the_agent() {
    let hub = Hub::start(Setup::default());
    let home = hub.home();
    let inside = project(home);
    let mut terminal = Terminal::start(home, &["--timeout", "30"], &[]);
    terminal.hears("Type what the agent should do");
    let run = |command: Value| format!("run {command}");
    for (wish, code) in [
        (json!({ "command": "touch", "args": ["x"], "cwd": "/" }), "t -32602"),
        (json!({ "command": "touch", "args": ["x"], "cwd": ".." }), "t -32602"),
        (json!({ "command": "touch", "args": "x" }), "t -32602"),
        (json!({ "args": ["x"] }), "t -32602"),
    ] {
        terminal.types(&run(wish));
        terminal.hears("Tester is done.");
        assert!(terminal.ran().ends_with(&format!("{code}\n")), "{}", terminal.ran());
    }
    let touch = || run(json!({ "command": "sh", "args": ["-c", "echo out; touch RAN; exit 3"] }));
    terminal.types(&touch());
    terminal.hears("waits for you");
    assert!(!inside.join("RAN").exists());
    terminal.types("no");
    terminal.hears("Tester is done.");
    assert!(terminal.ran().ends_with("t -32603\n") && !inside.join("RAN").exists());

    terminal.types(&touch());
    terminal.hears("waits for you");
    terminal.says_yes();
    terminal.hears("Tester is done.");
    terminal.types("terminal wait_for_exit");
    terminal.hears("Tester is done.");
    assert!(inside.join("RAN").exists());
    assert!(
        terminal.ran().ends_with("f {\"exitCode\": 3, \"signal\": null}\n"),
        "{}",
        terminal.ran()
    );
    terminal.types("terminal output");
    terminal.hears("Tester is done.");
    let output = terminal.ran();
    assert!(output.contains(r#""output": "out\n", "truncated": false"#), "{output}");
    for (wish, answer) in [("terminal release", "f {}\n"), ("terminal output", "f -32602\n")] {
        terminal.types(wish);
        terminal.hears("Tester is done.");
        assert!(terminal.ran().ends_with(answer), "{wish}: {}", terminal.ran());
    }

    // One that runs on, with a child of its own, ends with the agent.
    let child = inside.join("child.pid");
    terminal.types(&run(
        json!({ "command": "sh", "args": ["-c", "sleep 600 & echo $! > child.pid; wait"] }),
    ));
    terminal.hears("waits for you");
    terminal.says_yes();
    terminal.hears("Tester is done.");
    let pid = loop {
        match std::fs::read_to_string(&child) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    assert_eq!(terminal.quits(), 0);
    let gone = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while is_running(&pid) {
        assert!(std::time::Instant::now() < gone, "{pid} still runs");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}

#[test]
fn what_was_allowed_when_the_agent_asked_is_not_asked_again_and_only_once() {
    let hub = Hub::start(Setup::default());
    let home = hub.home();
    let inside = project(home);
    let mut terminal = Terminal::start(home, &["--timeout", "8"], &[]);
    terminal.hears("Type what the agent should do");
    terminal.types("then touch SAME");
    terminal.hears("waits for you");
    terminal.says_yes();
    terminal.hears("Tester is done.");
    let same = json!({ "command": "bash", "args": ["-lc", "touch SAME"] });
    terminal.types(&format!("run {same}"));
    terminal.hears("Tester is done.");
    assert!(terminal.ran().ends_with("}\n") && terminal.ran().contains("t {\"terminalId\""));
    terminal.types("terminal wait_for_exit");
    terminal.hears("Tester is done.");
    std::fs::remove_file(inside.join("SAME")).unwrap();
    // The second time it is asked, and nobody answers. So with anything added.
    for again in [
        same.clone(),
        json!({ "command": "bash", "args": ["-lc", "touch SAME"], "env": [{ "name": "LD_PRELOAD", "value": "x" }] }),
    ] {
        terminal.types(&format!("run {again}"));
        terminal.hears("waits for you");
        terminal.hears("Tester is done.");
        assert!(terminal.ran().ends_with("t -32603\n"), "{}", terminal.ran());
    }
    assert!(!inside.join("SAME").exists());
    assert_eq!(terminal.quits(), 0);
}

#[test]
fn in_a_terminal_a_question_survives_a_restart_of_the_hub_and_garbage_is_passed_over() {
    let hub = Hub::start(Setup::durable());
    let mut terminal = Terminal::start(hub.home(), &[], &[]);
    terminal.hears("Type what the agent should do");
    terminal.types("garbage");
    terminal.hears("Tester is done.");
    terminal.types("ask");
    terminal.hears("waits for you");
    hub.kill();
    let again = Hub::start_in(Setup::durable(), hub.shared_directory());
    terminal.hears("again");
    terminal.says_yes();
    terminal.hears("Tester is done.");
    assert_eq!(terminal.ran(), "0 once\n");
    assert_eq!(terminal.quits(), 0);
    drop(again);
}

#[test]
fn a_call_that_runs_unasked_is_told_also_when_its_turn_ends_at_once() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        editor.prompt("sneaky");
        editor.turn_ends();
        ear.event("session.completed").await;
        let heard = ear.heard.join("\n");
        assert!(heard.contains("git push") || heard.contains("Push to the usual place"), "{heard}");
        assert_eq!(editor.end(), 0);
        ear.is_lawful();
    });
}
