//! `aaep acp`: an agent behind it, an editor before it, a real hub beside it.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout};

use super::*;

/// An agent that writes down every line that it gets, and does what its prompts say.
const AGENT: &str = r#"
import json, sys
if len(sys.argv) > 3 and sys.argv[3] == "dies": sys.exit(4)
seen = open(sys.argv[1], "ab", buffering=0)
ran = open(sys.argv[2], "a", buffering=1)
def say(m): sys.stdout.write(json.dumps({"jsonrpc": "2.0", **m}) + "\n"); sys.stdout.flush()
def update(u): say({"method": "session/update", "params": {"sessionId": "s1", "update": u}})
def content(t): return {"type": "text", "text": t}
MODES = sys.argv[3].split(",") if len(sys.argv) > 3 else ["default", "yolo"]
OPTIONS = [{"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Yes", "kind": "allow_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"}]
def ask(i, command, options=OPTIONS, title="a step", early=False):
    call = {"toolCallId": "c%s" % i, "title": title, "kind": "execute", "status": "pending", "rawInput": {"command": command}}
    update({"sessionUpdate": "tool_call", **call, **({"status": "in_progress"} if early else {})})
    say({"id": i, "method": "session/request_permission", "params": {"sessionId": "s1", "toolCall": call, "options": options}})
waiting, turn, pages, terminal = {}, None, 0, None
PICTURE = {"type": "image", "mimeType": "image/png", "data": "A" * 4000, "uri": "file:///x/chart.png"}
for line in sys.stdin.buffer:
    seen.write(line)
    try: m = json.loads(line)
    except ValueError: continue
    method = m.get("method")
    if method == "initialize": say({"id": m["id"], "result": {"protocolVersion": 1, "agentInfo": {"name": "t", "title": "Tester"},
        "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"list": {}}}}})
    elif method == "session/list" and "cursor" not in m["params"]: say({"id": m["id"], "result": {"nextCursor": "2", "sessions": [{"sessionId": "s0", "cwd": "/"}]}})
    elif method == "session/list": say({"id": m["id"], "result": {"sessions": [{"sessionId": "s1", "title": "Tidy\u001b[2J up", "cwd": "/"}]}})
    elif method == "session/load": say({"id": m["id"], "result": {}})
    elif method == "session/new": say({"id": m["id"], "result": {"sessionId": "s1", "modes": {"currentModeId": "default", "availableModes": [{"id": i} for i in MODES]}}})
    elif method == "session/set_mode" and "aaep" in str(m["id"]) and MODES == ["stubborn"]: say({"id": m["id"], "error": {"code": -32602, "message": "no"}})
    elif method == "session/cancel": sys.exit(3)
    elif method == "session/prompt":
        turn, text = m["id"], m["params"]["prompt"][0]["text"]
        if text == "ask": waiting[0] = 1; ask(0, "git push")
        elif text == "large": waiting[0] = 1; ask(0, "echo " + "x" * (5 << 20))
        elif text == "odd": waiting[0] = 1; ask(0, "rm\u202e -rf x", title="a\u001b[2Jb\u0000")
        elif text == "always": waiting[0] = 1; ask(0, "git push", OPTIONS[:1])
        elif text.startswith("write ") or text.startswith("read "):
            verb, path = text.split(" ", 1)
            waiting["f"] = 1
            say({"id": "f", "method": "fs/%s_text_file" % verb, "params": {"sessionId": "s1", "path": path, "content": "new words\n"}})
        elif text.startswith("run "):
            waiting["t"] = 1
            say({"id": "t", "method": "terminal/create", "params": {"sessionId": "s1", **json.loads(text[4:])}})
        elif text.startswith("terminal "):
            waiting["f"] = 1
            say({"id": "f", "method": "terminal/" + text[9:], "params": {"sessionId": "s1", "terminalId": terminal or "x"}})
        elif text == "early": waiting[0] = 1; ask(0, "git push", early=True)
        elif text == "three":
            for i in range(3): waiting[i] = 1; ask(i, "git push origin b%d" % i)
        elif text.startswith("then "): waiting[0] = 1; ask(0, text[5:])
        elif text == "twenty":
            for i in range(20): waiting[i] = 1; ask(i, "git push origin b%d" % i)
        else:
            if text == "garbage":
                sys.stdout.write("garbage\n{\"jsonrpc\":\"2.0\",\n"); sys.stdout.flush()
            if text.startswith("mode "): update({"sessionUpdate": "current_mode_update", "currentModeId": text[5:]})
            if text == "picture":
                update({"sessionUpdate": "agent_message_chunk", "content": PICTURE})
                update({"sessionUpdate": "tool_call", "toolCallId": "p", "title": "Drawing", "kind": "read", "status": "in_progress", "locations": [{"path": "notes.txt"}]})
                update({"sessionUpdate": "tool_call_update", "toolCallId": "p", "status": "completed", "content": [{"type": "content", "content": PICTURE}]})
            if text == "sneaky":
                update({"sessionUpdate": "tool_call", "toolCallId": "n", "title": "x", "kind": "execute", "status": "in_progress", "rawInput": {"command": "git push"}})
            if text == "flood":
                for i in range(100000): update({"sessionUpdate": "agent_message_chunk", "content": content("Word %d. " % i)})
            if text == "talk":
                update({"sessionUpdate": "agent_thought_chunk", "content": content("Let me see.")})
                update({"sessionUpdate": "plan", "entries": [{"content": "Look", "status": "completed"}, {"content": "Leap", "status": "in_progress"}]})
                update({"sessionUpdate": "tool_call", "toolCallId": "r", "title": "Reading", "kind": "read", "status": "in_progress", "locations": [{"path": "notes.txt"}]})
                update({"sessionUpdate": "tool_call_update", "toolCallId": "r", "status": "completed"})
                for word in ["All ", "is ", "well."]: update({"sessionUpdate": "agent_message_chunk", "content": content(word)})
            say({"id": turn, "result": {"stopReason": "end_turn"}})
    elif method is None and m.get("id") in waiting:
        i = m["id"]; del waiting[i]
        outcome = m.get("result", {}).get("outcome", {}).get("optionId", "cancelled")
        if i == "t":
            waiting["f"] = 1
            if "result" in m: terminal = m["result"]["terminalId"]
        if i in ("f", "t"): outcome = json.dumps(m.get("result") if "result" in m else m["error"]["code"])
        ran.write("%s %s\n" % (i, outcome))
        if i == "t": del waiting["f"]
        update({"sessionUpdate": "tool_call_update", "toolCallId": "c%s" % i, "status": "completed" if outcome in ("once", "always") else "failed"})
        if not waiting: say({"id": turn, "result": {"stopReason": "end_turn"}})
    elif "id" in m and method: say({"id": m["id"], "result": {"echo": method}})
"#;

pub(super) struct Editor {
    child: Child,
    to: Option<ChildStdin>,
    from: Lines<BufReader<ChildStdout>>,
    home: PathBuf,
}

impl Editor {
    pub(super) fn start(home: &Path, options: &[&str]) -> Self {
        Self::start_with(home, options, &[])
    }

    pub(super) fn start_with(home: &Path, options: &[&str], more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.arg("acp").args(options).args(["--", "python3", "-c", AGENT]);
        command.arg(home.join("seen.jsonl")).arg(home.join("ran.txt")).args(more);
        command.env_clear().env("HOME", home).env("XDG_RUNTIME_DIR", home.join("run"));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        Self { child, to, from, home: home.to_owned() }
    }

    /// As far as a session.
    pub(super) fn open(home: &Path, options: &[&str]) -> Self {
        Self::start(home, options).opened(home)
    }

    pub(super) fn opened(self, home: &Path) -> Self {
        let mut editor = self;
        editor.say(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        );
        assert_eq!(editor.hear()["id"], 0);
        let place = json!({ "cwd": project(home), "mcpServers": [] });
        editor.say(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "session/new", "params": place })
                .to_string(),
        );
        assert_eq!(editor.hear()["result"]["sessionId"], "s1");
        editor
    }

    pub(super) fn say(&mut self, line: &str) {
        self.to.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub(super) fn prompt(&mut self, text: &str) {
        let params = json!({ "sessionId": "s1", "prompt": [{ "type": "text", "text": text }] });
        self.say(
            &json!({ "jsonrpc": "2.0", "id": "turn", "method": "session/prompt", "params": params })
                .to_string(),
        );
    }

    pub(super) fn choose(&mut self, id: i64, option: &str) -> String {
        let line = format!(
            r#"{{ "jsonrpc":"2.0", "id":{id}, "result":{{"outcome":{{"outcome":"selected","optionId":"{option}"}}}} }}"#
        );
        self.say(&line);
        line
    }

    pub(super) fn hear_line(&mut self) -> String {
        self.from.next().unwrap().unwrap()
    }

    pub(super) fn hear(&mut self) -> Value {
        serde_json::from_str(&self.hear_line()).unwrap()
    }

    /// Hears until a message that fits.
    pub(super) fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.hear();
            if fits(&message) {
                return message;
            }
        }
    }

    pub(super) fn turn_ends(&mut self) {
        let end = self.until(|message| message["id"] == "turn");
        assert_eq!(end["result"]["stopReason"], "end_turn");
    }

    pub(super) fn is_asked(&mut self) -> Value {
        self.until(|message| message["method"] == "session/request_permission")
    }

    pub(super) fn ran(&self) -> String {
        std::fs::read_to_string(self.home.join("ran.txt")).unwrap_or_default()
    }

    pub(super) fn seen(&self) -> String {
        std::fs::read_to_string(self.home.join("seen.jsonl")).unwrap_or_default()
    }

    pub(super) fn end(mut self) -> i32 {
        drop(self.to.take());
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn everything_passes_byte_for_byte_and_is_told() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        let odd = r#"{ "jsonrpc" : "2.0",  "id":"é", "method":"x/odd", "params":{"n":1.50,"big":2227777777727777777769} }"#;
        for line in [odd, "garbage", r#"{"jsonrpc":"2.0","#] {
            editor.say(line);
        }
        assert_eq!(editor.hear()["result"]["echo"], "x/odd");
        editor.prompt("garbage");
        assert_eq!(editor.hear_line(), "garbage");
        assert_eq!(editor.hear_line(), "{\"jsonrpc\":\"2.0\",");
        editor.turn_ends();
        assert!(editor.seen().contains(&format!("{odd}\ngarbage\n{{\"jsonrpc\":\"2.0\",\n")));
        ear.event("session.completed").await;

        editor.prompt("talk");
        editor.turn_ends();
        let begun = ear.event("session.started").await;
        assert_eq!(begun["summary_normal"], "Tester: talk");
        let thought = ear.event("state.changed").await;
        assert!(thought.to_string().contains("Let me see."), "{thought}");
        let plan = ear.event("progress.updated").await;
        assert!(plan.to_string().contains("Leap"), "{plan}");
        assert_eq!(ear.event("tool.invoked").await["summary_normal"], "Read notes.txt.");
        assert_eq!(ear.event("tool.completed").await["status"], "success");
        let text = ear.event("output.streaming").await;
        assert!(text.to_string().contains("All is well."), "{text}");
        let end = ear.event("session.completed").await;
        assert_eq!(end["summary_normal"], "Tester is done.");
        assert_eq!(editor.end(), 0);
        ear.is_lawful();
    });
}

// covers: C1, T27
#[test]
fn a_yes_elsewhere_counts_once_and_takes_the_question_from_the_editor() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        editor.prompt("ask");
        editor.is_asked();
        let asked = ear.event("awaiting.confirmation").await;
        // What it does, not what the agent calls it.
        assert!(
            asked["action"].as_str().unwrap().contains("git push")
                || asked["action"].as_str().unwrap().contains("Push"),
            "{asked}"
        );
        assert!(!asked.to_string().contains("a step\""), "{asked}");
        assert_eq!(editor.ran(), "");
        ear.decide(&asked, "accept").await;
        let gone = editor.until(|message| message["method"] == "$/cancel_request");
        assert_eq!(gone["params"]["requestId"], 0);
        editor.turn_ends();
        assert_eq!(editor.ran(), "0 once\n");
        ear.event("tool.invoked").await;
        assert_eq!(ear.event("tool.completed").await["status"], "success");
        // Too late: the agent does not hear it.
        let late = editor.choose(0, "always");
        editor.say(r#"{"jsonrpc":"2.0","id":9,"method":"x/ping"}"#);
        editor.until(|message| message["id"] == 9);
        assert!(!editor.seen().contains(&late), "{}", editor.seen());
        assert_eq!(editor.end(), 0);
        ear.is_lawful();
    });
}

#[test]
fn a_no_elsewhere_and_silence_reject_once() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &["--timeout", "2"]);
        editor.prompt("ask");
        let asked = ear.event("awaiting.confirmation").await;
        ear.decide(&asked, "reject").await;
        editor.turn_ends();
        assert_eq!(editor.ran(), "0 no\n");
        editor.prompt("ask");
        ear.event("awaiting.confirmation").await;
        editor.turn_ends();
        assert_eq!(editor.ran(), "0 no\n0 no\n");
        assert_eq!(editor.end(), 0);
        ear.is_lawful();
    });
}

#[test]
fn the_editor_may_be_first_and_its_answer_passes_as_it_is() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        for option in ["always", "no"] {
            editor.prompt("ask");
            editor.is_asked();
            let asked = ear.event("awaiting.confirmation").await;
            let chosen = editor.choose(0, option);
            let settled = ear.event("state.changed").await;
            assert!(settled.to_string().contains("cancelled"), "{settled}");
            // A yes that comes now is for nobody.
            ear.decide(&asked, "accept").await;
            editor.turn_ends();
            assert!(editor.seen().contains(&format!("{chosen}\n")));
            assert!(editor.ran().ends_with(&format!("0 {option}\n")), "{}", editor.ran());
            ear.event("session.completed").await;
        }
        assert_eq!(editor.ran().lines().count(), 2);
        assert_eq!(editor.end(), 0);
        ear.is_lawful();
    });
}

#[test]
fn without_a_hub_the_editor_asks_alone() {
    run(async {
        let home = tempfile::tempdir().unwrap();
        let mut editor = Editor::open(home.path(), &["--hub", "none"]);
        editor.prompt("ask");
        editor.is_asked();
        editor.choose(0, "no");
        editor.turn_ends();
        assert_eq!(editor.ran(), "0 no\n");
        assert_eq!(editor.end(), 0);
    });
}

#[test]
fn modes_in_which_the_agent_asks_less_are_told_and_refused_if_the_person_says_so() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let yolo = r#"{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"yolo"}}"#;
        let option = r#"{"jsonrpc":"2.0","id":6,"method":"session/set_config_option","params":{"sessionId":"s1","configId":"mode","value":"bypassPermissions"}}"#;
        let plan = r#"{"jsonrpc":"2.0","id":7,"method":"session/set_mode","params":{"sessionId":"s1","modeId":"plan"}}"#;
        let mut editor = Editor::open(hub.home(), &[]);
        editor.say(yolo);
        assert_eq!(editor.hear()["result"]["echo"], "session/set_mode");
        let told = ear.event("output.streaming").await;
        assert!(told.to_string().contains("the agent asks nothing"), "{told}");
        assert_eq!(editor.end(), 0);
        ear.event("session.completed").await;

        std::fs::remove_file(hub.home().join("seen.jsonl")).unwrap();
        let mut editor = Editor::open(hub.home(), &["--keep-asking"]);
        for line in [yolo, option] {
            editor.say(line);
            let refused = editor.hear();
            assert_eq!(refused["error"]["code"], -32600, "{refused}");
            let told = ear.event("output.streaming").await;
            assert!(told.to_string().contains("was refused"), "{told}");
        }
        editor.say(plan);
        assert_eq!(editor.hear()["result"]["echo"], "session/set_mode");
        assert!(!editor.seen().contains("yolo") && !editor.seen().contains("bypass"));
        assert_eq!(editor.end(), 0);
    });
}

#[test]
fn whoever_goes_away_takes_the_question_along() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        editor.prompt("ask");
        ear.event("awaiting.confirmation").await;
        editor.say(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}"#);
        let settled = ear.event("state.changed").await;
        assert!(settled.to_string().contains("cancelled"), "{settled}");
        ear.event("session.completed").await;
        assert_eq!(editor.end(), 1, "the agent died");

        let mut editor = Editor::open(hub.home(), &[]);
        editor.prompt("ask");
        ear.event("awaiting.confirmation").await;
        assert_eq!(editor.end(), 0, "the editor went away");
        ear.event("session.completed").await;
        ear.is_lawful();
        assert_eq!(std::fs::read_to_string(hub.home().join("ran.txt")).unwrap(), "");
    });
}

#[test]
fn what_cannot_be_asked_here_is_left_to_the_editor() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        for prompt in ["large", "always"] {
            editor.prompt(prompt);
            editor.is_asked();
            let told = ear.event("output.streaming").await;
            assert!(told.to_string().contains("only its editor can answer"), "{told}");
            assert!(!editor.ran().contains("always"));
            editor.choose(0, "no");
            editor.turn_ends();
        }
        editor.prompt("odd");
        let asked = ear.event("awaiting.confirmation").await;
        let action = asked["action"].as_str().unwrap();
        assert!(!action.contains(['\u{1b}', '\u{202e}', '\u{0}']), "{action}");
        ear.decide(&asked, "reject").await;
        editor.turn_ends();
        assert_eq!(editor.end(), 0);
        ear.is_lawful();
    });
}

#[test]
fn twenty_questions_at_once_have_twenty_answers() {
    run(async {
        let hub = Hub::start(Setup::default());
        let mut ear = Ear::unix(&hub).await;
        let mut editor = Editor::open(hub.home(), &[]);
        editor.prompt("twenty");
        let mut yes = Vec::new();
        for count in 0..20 {
            let asked = ear.event("awaiting.confirmation").await;
            let action = asked["action"].as_str().unwrap();
            let branch = (0..20).rev().find(|i| action.contains(&format!("b{i}"))).unwrap();
            ear.decide(&asked, if count % 2 == 0 { "accept" } else { "reject" }).await;
            yes.push((branch, count % 2 == 0));
        }
        editor.turn_ends();
        let ran = editor.ran();
        assert_eq!(ran.lines().count(), 20, "{ran}");
        for (branch, yes) in yes {
            let line = format!("{branch} {}\n", if yes { "once" } else { "no" });
            assert!(ran.contains(&line), "{line} in {ran}");
        }
        assert_eq!(editor.end(), 0);
    });
}

/// What a process has in memory, in kilobytes.
#[cfg(target_os = "linux")]
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_hundred_thousand_updates_all_pass_and_leave_nothing_behind() {
    let hub = Hub::start(Setup::default());
    let mut editor = Editor::open(hub.home(), &[]);
    let process = editor.child.id();
    editor.prompt("flood");
    for _ in 0..20_000 {
        editor.hear_line();
    }
    let early = memory(process);
    for _ in 20_000..100_000 {
        editor.hear_line();
    }
    let late = memory(process);
    editor.turn_ends();
    println!("memory after 20,000 updates: {early} kB, after 100,000: {late} kB");
    assert!(late < early + 8 * 1024, "{early} kB, then {late} kB");
    assert_eq!(editor.end(), 0);
}

/// `aaep acp --run`, as somebody who types lines uses it.
pub(super) struct Terminal {
    child: Child,
    to: Option<ChildStdin>,
    from: Lines<BufReader<ChildStdout>>,
    heard: Vec<String>,
    home: PathBuf,
}

impl Terminal {
    pub(super) fn start(home: &Path, options: &[&str], more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.args(["acp", "--run"]).args(options).args(["--", "python3", "-c", AGENT]);
        command.arg(home.join("seen.jsonl")).arg(home.join("ran.txt")).args(more);
        command.env_clear().env("HOME", home).env("XDG_RUNTIME_DIR", home.join("run"));
        command.env("PATH", std::env::var_os("PATH").unwrap()).current_dir(project(home));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()).lines());
        Self { child, to, from, heard: Vec::new(), home: home.to_owned() }
    }

    pub(super) fn types(&mut self, line: &str) {
        self.to.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Hears until a line with these words.
    pub(super) fn hears(&mut self, words: &str) -> String {
        loop {
            let line = self.from.next();
            let line =
                line.unwrap_or_else(|| panic!("never heard {words}: {:#?}", self.heard)).unwrap();
            self.heard.push(line.clone());
            if line.contains(words) {
                return line;
            }
        }
    }

    /// Says yes, and once more where that is wanted.
    pub(super) fn says_yes(&mut self) {
        self.types("yes");
        while !self.hears("").contains("yes, sent") {
            if self.heard.last().unwrap().contains("To be sure") {
                self.types("yes");
            }
        }
    }

    pub(super) fn ran(&self) -> String {
        std::fs::read_to_string(self.home.join("ran.txt")).unwrap_or_default()
    }

    pub(super) fn quits(mut self) -> i32 {
        self.types("/quit");
        self.child.wait().unwrap().code().unwrap()
    }
}

#[test]
fn an_agent_is_used_in_a_terminal_without_an_editor() {
    let hub = Hub::start(Setup::default());
    let mut terminal = Terminal::start(hub.home(), &[], &[]);
    terminal.hears("Type what the agent should do");
    terminal.types("talk");
    terminal.hears("Tester: talk");
    terminal.hears("Leap");
    terminal.hears("Read notes.txt.");
    terminal.hears("All is well.");
    terminal.hears("Tester is done.");

    terminal.types("ask");
    terminal.hears("waits for you");
    assert_eq!(terminal.ran(), "");
    terminal.types("yes");
    terminal.hears("To be sure");
    assert_eq!(terminal.ran(), "");
    terminal.types("yes");
    terminal.hears("Tester is done.");
    assert_eq!(terminal.ran(), "0 once\n");

    terminal.types("ask");
    terminal.hears("waits for you");
    terminal.types("no");
    terminal.hears("Tester is done.");
    assert_eq!(terminal.ran(), "0 once\n0 no\n");
    // A yes that comes too late is no wish.
    terminal.types("yes");
    terminal.types("talk");
    terminal.hears("Tester: talk");
    assert!(!std::fs::read_to_string(hub.home().join("seen.jsonl")).unwrap().contains("\"yes\""));
    assert_eq!(terminal.quits(), 0);
}

// covers: I30
/// The terminal asks for the agent that it started, so its own yes is the person's. It is this very
/// program that the hub recognises, with these words.
#[cfg(target_os = "linux")]
#[test]
fn a_yes_in_the_terminal_counts_also_where_an_agents_own_does_not() {
    let hub = Hub::start(Setup::default().set("AAEP_DEVELOPMENT__OWN_REPLIES", "false"));
    let mut terminal = Terminal::start(hub.home(), &["--timeout", "60"], &[]);
    terminal.hears("Type what the agent should do");
    terminal.types("ask");
    terminal.hears("waits for you");
    terminal.says_yes();
    terminal.hears("Tester is done.");
    assert_eq!(terminal.ran(), "0 once\n");
    assert_eq!(terminal.quits(), 0);
}

#[test]
fn files_are_answered_inside_only_and_written_after_a_yes() {
    let hub = Hub::start(Setup::default());
    let home = hub.home();
    let inside = project(home);
    std::os::unix::fs::symlink("/etc/hostname", inside.join("link")).unwrap();
    std::os::unix::fs::symlink(home.join("nowhere"), inside.join("dangling")).unwrap();
    let mut terminal = Terminal::start(home, &[], &[]);
    terminal.hears("Type what the agent should do");
    let mut expected = String::new();
    for (wish, answer) in [
        ("read notes.txt", r#"f {"content": "a\nb\n"}"#),
        ("read ../ran.txt", "f -32602"),
        ("read /etc/hostname", "f -32602"),
        ("read link", "f -32602"),
        ("read dangling", "f -32602"),
        ("write ../outside.txt", "f -32602"),
        ("write dangling", "f -32602"),
        ("terminal output", "f -32602"),
        ("terminal frobnicate", "f -32601"),
    ] {
        terminal.types(wish);
        terminal.hears("Tester is done.");
        expected += &format!("{answer}\n");
        assert_eq!(terminal.ran(), expected, "{wish}");
    }
    for (answer, said) in [("no", "f -32603\n"), ("yes", "f {}\n")] {
        terminal.types("write notes.txt");
        terminal.hears("notes.txt");
        terminal.hears("waits for you");
        assert_eq!(std::fs::read_to_string(inside.join("notes.txt")).unwrap(), "a\nb\n");
        terminal.types(answer);
        terminal.hears("Tester is done.");
        assert!(terminal.ran().ends_with(said), "{}", terminal.ran());
    }
    assert_eq!(std::fs::read_to_string(inside.join("notes.txt")).unwrap(), "new words\n");
    assert!(!home.join("outside.txt").exists() && !home.join("nowhere").exists());
    assert_eq!(terminal.quits(), 0);
}

#[test]
fn in_a_terminal_what_cannot_be_asked_is_a_no_and_a_lost_agent_is_told() {
    let hub = Hub::start(Setup::default());
    let mut terminal = Terminal::start(hub.home(), &["--timeout", "2"], &[]);
    terminal.hears("Type what the agent should do");
    for (wish, answer) in [("large", "0 no\n"), ("always", "0 cancelled\n"), ("ask", "0 no\n")] {
        terminal.types(wish);
        terminal.hears("Tester is done.");
        assert!(terminal.ran().ends_with(answer), "{wish}: {}", terminal.ran());
    }
    assert_eq!(terminal.quits(), 0);

    let mut terminal = Terminal::start(hub.home(), &[], &[]);
    terminal.hears("Type what the agent should do");
    terminal.types("ask");
    terminal.hears("waits for you");
    terminal.types("/stop");
    terminal.hears("Type stop again");
    terminal.types("/stop");
    terminal.hears("The agent has ended.");
    assert_eq!(terminal.child.wait().unwrap().code(), Some(1));
    assert_eq!(terminal.ran().lines().filter(|line| line.contains("once")).count(), 0);

    // What was typed before the end is done, and then it is over.
    let mut piped = Terminal::start(hub.home(), &[], &[]);
    piped.types("talk");
    drop(piped.to.take());
    piped.hears("All is well.");
    piped.hears("Tester is done.");
    assert_eq!(piped.child.wait().unwrap().code(), Some(0));

    let mut dead = Terminal::start(hub.home(), &[], &["dies"]);
    assert_eq!(dead.child.wait().unwrap().code(), Some(2));
    let mut absent = Terminal::start(hub.home(), &["--hub", "none"], &[]);
    assert_ne!(absent.child.wait().unwrap().code(), Some(0));
}

#[test]
fn sessions_are_listed_and_taken_up_again() {
    let hub = Hub::start(Setup::default());
    let mut list = Terminal::start(hub.home(), &["--sessions"], &[]);
    list.hears("s0: without a name");
    let line = list.hears("s1: Tidy");
    assert!(!line.contains('\u{1b}'), "{line}");
    assert_eq!(list.child.wait().unwrap().code(), Some(0));
    let mut again = Terminal::start(hub.home(), &["--resume", "s1"], &[]);
    again.hears("Type what the agent should do");
    let seen = std::fs::read_to_string(hub.home().join("seen.jsonl")).unwrap();
    assert!(seen.contains("session/load") && !seen.contains("session/new"), "{seen}");
    assert_eq!(again.quits(), 0);
}
