//! The published programs, driven by a scripted model. "It ran" is a file on disk.
//!
//! They are installed by `cargo xtask agents`, which names their directory in `AAEP_AGENTS`; without it
//! these tests are skipped.

use super::programs::*;
use super::*;

#[test]
fn yes_runs_and_no_does_not_and_what_is_harmless_is_told() {
    let Some(bin) = programs() else { return };
    for program in Program::FIRST {
        run(async {
            let hub = Hub::start(Setup::default());
            let home = hub.home();
            let (yes, first) = mark(home, "YES");
            let (no, second) = mark(home, "NO");
            let model = model(program, &[&["touch TOLD"], &[&first], &[&second]]);
            let mut ear = Ear::unix(&hub).await;
            let agent = program.start(&bin, home, &hook(program, ""), &model);
            let told = ear.event("tool.invoked").await;
            assert_eq!(told["summary_normal"], "Make or touch TOLD.", "{program:?}");
            let request = asked(&mut ear, program).await;
            assert!(!yes.exists(), "{program:?} did not wait");
            ear.decide(&request, "accept").await;
            let request = asked(&mut ear, program).await;
            ear.decide(&request, "reject").await;
            let ended = ended(agent).await;
            let ran = (home.join("project/TOLD").exists(), yes.exists(), no.exists());
            assert_eq!(ran, (true, true, false), "{program:?}: {ended:?}\n{}", model.told());
            assert!(model.told().contains("The person said no."), "{program:?}: {}", model.told());
            assert!(!hub.log().join("\n").contains(CANARY));
        });
    }
}

#[test]
fn a_published_server_behind_the_proxy_waits_for_the_person() {
    let Some(bin) = programs() else { return };
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let call = |text: &str| vec![("mcp__ev__echo", json!({ "message": text }))];
        let model = Model::start(vec![call("first words"), call("second words")]).unwrap();
        let server = bin.join("node_modules/.bin/mcp-server-everything");
        let config = json!({ "mcpServers": { "ev": { "command": env!("CARGO_BIN_EXE_aaep"),
            "args": ["mcp", "--name", "ev", "--", server, "stdio"] } } });
        write(&home.join("mcp.json"), &config.to_string());
        let mut ear = Ear::unix(&hub).await;
        // A hook that lets everything pass: the proxy is what asks.
        let mut command = Program::Claude.command(&bin, home, "exit 0", &model, None);
        command.arg("--strict-mcp-config").arg("--mcp-config").arg(home.join("mcp.json"));
        let agent = command.spawn().unwrap();
        for decision in ["accept", "reject"] {
            let asked = ear.event("awaiting.confirmation").await;
            assert_eq!(asked["action"], "Use echo of ev.");
            ear.decide(&asked, decision).await;
        }
        let ended = ended(agent).await;
        let told = model.told();
        assert!(told.contains("Echo: first words"), "{ended:?}\n{told}");
        assert!(
            !told.contains("Echo: second words") && told.contains("The person said no."),
            "{told}"
        );
    });
}

#[test]
fn a_guard_is_proved_with_the_program_itself_and_so_is_its_failure() {
    let Some(bin) = programs() else { return };
    for program in Program::FIRST {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let id = program.id();
        let made = guard(&bin, home, &[id, "--yes"]);
        assert_eq!(made.code, 0, "{program:?}: {made:?}");
        assert!(made.out.contains("the hook refused, and the file was not made"), "{made:?}");
        let held = guard(&bin, home, &["status"]);
        assert!(held.code == 0 && held.out.contains("the hook refused"), "{held:?}");
        for proved in [&made, &held] {
            assert!(proved.out.contains("it asked, was told no"), "{program:?}: {proved:?}");
        }

        // Each program drops its hooks without a word for another reason.
        let file = home.join(match program {
            Program::Claude => ".claude/settings.json",
            Program::Codex => ".codex/hooks.json",
            _ => ".gemini/settings.json",
        });
        let with = std::fs::read_to_string(&file).unwrap();
        let (broken, words) = match program {
            Program::Claude => (with.replacen('{', "{ \"permissions\": { \"allow\": 5 },", 1), ""),
            Program::Codex => {
                (with.replace("86400,", "86399,").replace("86400\n", "86399\n"), "does not trust")
            }
            _ => (
                with.replacen('{', "{ \"hooksConfig\": { \"enabled\": false },", 1),
                "switches hooks off",
            ),
        };
        assert_ne!(broken, with);
        write(&file, &broken);
        let off = guard(&bin, home, &["status"]);
        assert!(off.code == 1 && off.out.contains(words), "{program:?}: {off:?}");
        assert!(off.out.contains("does not ask") && off.out.contains("it was made"), "{off:?}");

        write(&file, &with);
        let again = guard(&bin, home, &["status"]);
        assert_eq!(again.code, 0, "{program:?}: {again:?}");
        let gone = guard(&bin, home, &["remove", id]);
        assert!(gone.code == 0 && !file.exists(), "{gone:?}");
        assert!(!home.join(".codex/config.toml").exists(), "trust is taken back too");
    }
}

#[test]
fn the_other_programs_are_tried_too() {
    let Some(bin) = programs() else { return };
    let others = |it: &Program| !Program::FIRST.contains(it);
    for program in Program::ALL.into_iter().filter(others) {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        if program == Program::Opencode {
            opencode_packages(&bin, home);
        }
        let made = guard(&bin, home, &[program.id(), "--yes"]);
        assert_eq!(made.code, 0, "{program:?}: {made:?}");
        assert!(made.out.contains("the hook refused, and the file was not made"), "{made:?}");
        assert!(made.out.contains("it asked, was told no"), "{program:?}: {made:?}");
        // The same hook, which the program no longer sees.
        if program == Program::Qwen {
            let file = home.join(".qwen/settings.json");
            let with = std::fs::read_to_string(&file).unwrap();
            write(&file, &with.replacen('{', "{ \"disableAllHooks\": true,", 1));
            let off = guard(&bin, home, &["status"]);
            assert!(off.code == 1 && off.out.contains("it was made"), "{off:?}");
        }
    }
}

#[test]
fn a_published_agent_is_used_in_a_terminal_without_an_editor() {
    use std::io::{BufRead, BufReader};
    let Some(bin) = programs() else { return };
    let hub = Hub::start(Setup::default());
    let home = hub.home();
    let ((yes, first), (no, second)) = (mark(home, "YES"), mark(home, "NO"));
    let model = model(Program::Gemini, &[&[&first], &[&second]]);
    // Its settings and its environment; hooks do not run here.
    let set_up = Program::Gemini.command(&bin, home, "exit 0", &model, None);
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(["acp", "--run", "--"]).arg(bin.join("node_modules/.bin/gemini"));
    command.args(["--acp", "-m", "gemini-2.5-pro"]).current_dir(project(home)).env_clear();
    command.envs(set_up.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut to = child.stdin.take().unwrap();
    let mut heard = Vec::new();
    let mut from = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut hears = |words: &str| {
        loop {
            let line = from.next().unwrap_or_else(|| panic!("never heard {words}: {heard:#?}"));
            heard.push(line.unwrap());
            if heard.last().unwrap().contains(words) {
                return heard.last().unwrap().clone();
            }
        }
    };
    let mut types = |line: &str| to.write_all(format!("{line}\n").as_bytes()).unwrap();
    hears("Type what the agent should do");
    types("do it");
    assert!(hears("Allow this?").contains("touch"), "what would run is said");
    hears("waits for you");
    assert!(!yes.exists());
    types("yes");
    hears("To be sure");
    types("yes");
    hears("Allow this?");
    hears("waits for you");
    assert!(yes.exists() && !no.exists());
    types("no");
    hears("is done");
    types("/quit");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!no.exists(), "{heard:#?}");
}
