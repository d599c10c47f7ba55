//! One question for one call, where the hook and a proxy stand before it.

use std::fs;

use super::acp::Editor;
use super::mcp::Client;
use super::*;

/// A call in the hook, with an id of its own.
fn hooked(home: &Path, name: &str, id: &str, tool: &str, arguments: Value) -> String {
    let members = json!({ "tool_name": tool, "tool_input": arguments, "tool_use_id": id });
    event(home, name, members).to_string()
}

fn pushed(home: &Path, name: &str) -> String {
    hooked(home, name, "c0", "Bash", json!({ "command": "git push" }))
}

/// The same call, as Codex has it asked.
const PUSH: &str = "then /bin/bash -lc 'git push'";

/// The next question about a tool; nobody wants to be asked no more.
async fn asked(ear: &mut Ear) -> Value {
    loop {
        let asked = ear.event("awaiting.confirmation").await;
        let action = asked["action"].as_str().unwrap();
        if !action.starts_with("For this session") {
            return asked;
        }
    }
}

/// Says yes in the hook.
async fn yes_in_the_hook(hub: &Hub, ear: &mut Ear, input: String) {
    let child = call(hub.home(), input, &[]);
    let asked = asked(ear).await;
    ear.decide(&asked, "accept").await;
    assert_eq!(ended(child).await.code, 0);
}

/// What the hook leaves for proxies.
fn notes(hub: &Hub) -> Vec<PathBuf> {
    let folder = hub.home().join(".local/state/aaep/bridge");
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|kind| kind == "yes")).collect()
}

/// The agent asks, and the person is asked, and says no.
async fn is_asked(ear: &mut Ear, editor: &mut Editor, prompt: &str) {
    editor.prompt(prompt);
    let asked = asked(ear).await;
    ear.decide(&asked, "reject").await;
    editor.turn_ends();
    assert!(editor.ran().ends_with("0 no\n"), "{}", editor.ran());
}

/// Nobody is asked, and it runs.
fn runs(ear: &Ear, editor: &mut Editor, prompt: &str) {
    let before = editor.ran();
    editor.prompt(prompt);
    editor.turn_ends();
    assert_eq!(editor.ran(), format!("{before}0 once\n"), "{:#?}", ear.heard);
}

// covers: T27
#[test]
fn a_yes_in_the_hook_counts_for_the_same_call_in_the_protocol_once() {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(home, &[]);
        yes_in_the_hook(&hub, &mut ear, pushed(home, "PreToolUse")).await;
        let kept = notes(&hub);
        let text = fs::read_to_string(&kept[0]).unwrap();
        runs(&ear, &mut editor, PUSH);
        assert!(notes(&hub).is_empty());
        // Each yes counts once, also if somebody writes it down again.
        is_asked(&mut ear, &mut editor, PUSH).await;
        fs::write(&kept[0], &text).unwrap();
        is_asked(&mut ear, &mut editor, PUSH).await;

        // Once the call is over, it counts for nobody.
        ended(call(home, pushed(home, "PostToolUse"), &[])).await;
        fs::write(&kept[0], &text).unwrap();
        let mut other = Editor::open(home, &[]);
        is_asked(&mut ear, &mut other, PUSH).await;
        assert_eq!((editor.end(), other.end()), (0, 0));
        ear.is_lawful();
    });
}

// covers: T27
#[test]
fn a_yes_in_the_hook_counts_for_no_other_call() {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(home, &[]);
        yes_in_the_hook(&hub, &mut ear, pushed(home, "PreToolUse")).await;
        let kept = notes(&hub).remove(0);
        let text = fs::read_to_string(&kept).unwrap();
        // Other arguments; and the hub is not told that they are the same.
        is_asked(&mut ear, &mut editor, "then /bin/bash -lc 'git push -f'").await;
        let force = hooked(home, "PreToolUse", "c0", "Bash", json!({ "command": "git push -f" }));
        yes_in_the_hook(&hub, &mut ear, force).await;
        let forged = notes(&hub).into_iter().find(|path| *path != kept).unwrap();
        fs::write(&forged, &text).unwrap();
        is_asked(&mut ear, &mut editor, "then /bin/bash -lc 'git push -f'").await;
        // Another call of the same.
        let other = hooked(home, "PreToolUse", "c7", "Bash", json!({ "command": "git push x" }));
        yes_in_the_hook(&hub, &mut ear, other).await;
        is_asked(&mut ear, &mut editor, "then /bin/bash -lc 'git push x'").await;
        // What nobody can read.
        for odd in ["", "{}", "garbage", r#"{"ticket":"a/b/c","tool":"Bash"}"#] {
            fs::write(&kept, odd).unwrap();
            is_asked(&mut ear, &mut editor, PUSH).await;
        }
        assert_eq!(editor.end(), 0);
    });
}

// covers: T27
#[test]
fn a_yes_in_the_hook_counts_for_the_same_call_of_a_server_once() {
    run(async {
        let hub = Hub::start(Setup::default());
        let home = hub.home();
        let mut ear = Ear::unix(&hub).await;
        let mut client = Client::start(home, &[]);
        let arguments = json!({ "path": "a.txt" });
        let line = |id: u32, tool: &str, call: &str| {
            let meta = json!({ "claudecode/toolUseId": call });
            let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
                .to_string()
        };
        let wipe = |id| hooked(home, "PreToolUse", id, "mcp__files__wipe", arguments.clone());
        yes_in_the_hook(&hub, &mut ear, wipe("toolu_1")).await;
        client.say(&line(1, "wipe", "toolu_1"));
        let answer = client.hear();
        assert!(answer["result"].get("isError").is_none(), "{answer}");
        yes_in_the_hook(&hub, &mut ear, wipe("toolu_2")).await;
        // The same once more, another tool, another call, a call that says nothing of itself.
        for (tool, id) in
            [("wipe", "toolu_1"), ("look", "toolu_2"), ("wipe", "toolu_3"), ("wipe", "")]
        {
            client.say(&line(2, tool, id));
            let asked = asked(&mut ear).await;
            assert_eq!(asked["action"], format!("Use {tool} of files."));
            ear.decide(&asked, "reject").await;
            assert_eq!(client.hear()["result"]["isError"], true);
        }
        assert_eq!(client.seen().matches("tools/call").count(), 1, "{}", client.seen());
        assert_eq!(client.end(), 0);
    });
}
