//! Published agents of the Agent Client Protocol, and an editor made of its published library, with
//! `aaep acp` between them. Skipped like the tests in `real`.

use super::programs::{Program, mark, programs};
use super::*;

use aaep_bridge::guard::model::Model;

/// An editor: sets the agent to work, leaves its dialog open, and answers only the second question, once
/// a file is there.
const EDITOR: &str = r#"
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { Readable, Writable } from "node:stream";
const [library, cwd, answers, ...command] = process.argv.slice(1);
const acp = await import(library + "/dist/v1/stable/acp.js");
const child = spawn(command[0], command.slice(1), { cwd, stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
let asked = 0;
const editor = acp.client({ name: "editor" })
  .onNotification(acp.methods.client.session.update, () => {})
  .onRequest(acp.methods.client.session.requestPermission, async ({ params, signal }) => {
    const number = asked += 1;
    signal.addEventListener("abort", () => console.log("withdrawn " + number));
    while (!signal.aborted && !(number === 2 && existsSync(answers))) await pause();
    if (signal.aborted) return { outcome: { outcome: "cancelled" } };
    const { optionId } = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId } };
  });
await editor.connectWith(stream, async (agent) => {
  await agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await agent.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
  const prompt = [{ type: "text", text: "do it" }];
  const { stopReason } = await agent.request(acp.methods.agent.session.prompt, { sessionId, prompt });
  console.log("end " + stopReason);
});
process.exit(0);
"#;

/// An agent, and what it needs besides its program's settings.
fn agent(program: Program, bin: &Path) -> (&'static str, &'static str, PathBuf) {
    let own = bin.join("node_modules/.bin").join(program.id());
    match program {
        Program::Claude => ("claude-agent-acp", "CLAUDE_CODE_EXECUTABLE", own),
        _ => ("codex-acp", "CODEX_PATH", own),
    }
}

fn step(program: Program, command: &str) -> (&'static str, Value) {
    match program {
        // In the mode that asks, it leaves its sandbox only when it says so.
        Program::Codex => (
            "exec_command",
            json!({ "cmd": command, "sandbox_permissions": "require_escalated", "justification": "x" }),
        ),
        _ => program.shell(command),
    }
}

#[test]
fn a_published_agent_and_an_editor_of_the_published_library_talk_through_the_proxy() {
    let Some(bin) = programs() else { return };
    for program in [Program::Claude, Program::Codex] {
        run(async {
            let hub = Hub::start(Setup::default());
            let home = hub.home();
            let ((here, first), (there, second), (no, third)) =
                (mark(home, "HERE"), mark(home, "THERE"), mark(home, "NO"));
            let script = [first, second, third].map(|command| vec![step(program, &command)]);
            let model = Model::start(script.to_vec()).unwrap();
            let set_up = program.command(&bin, home, "", &model, None);
            let (name, variable, own) = agent(program, &bin);
            let adapters = bin.join("acp/node_modules");
            let answers = home.join("answers");
            let mut command = Command::new("node");
            command.env_clear();
            command.envs(set_up.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command.env(variable, own).args(["--input-type=module", "-e", EDITOR, "--"]);
            command.arg(adapters.join("@agentclientprotocol/sdk")).arg(project(home)).arg(&answers);
            command.arg(env!("CARGO_BIN_EXE_aaep")).args(["acp", "--keep-asking", "--"]);
            command.arg(adapters.join(".bin").join(name));
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut ear = Ear::unix(&hub).await;
            let editor = command.spawn().unwrap();
            let asked = ear.event("awaiting.confirmation").await;
            assert!(asked["action"].as_str().unwrap().contains("HERE"), "{program:?}: {asked}");
            assert!(!here.exists(), "{program:?} did not wait");
            ear.decide(&asked, "accept").await;
            // The editor is first.
            let asked = ear.event("awaiting.confirmation").await;
            assert!(asked["action"].as_str().unwrap().contains("THERE"), "{program:?}: {asked}");
            assert!(here.exists() && !there.exists(), "{program:?}");
            std::fs::write(&answers, "").unwrap();
            let asked = ear.event("awaiting.confirmation").await;
            assert!(asked["action"].as_str().unwrap().contains("NO"), "{program:?}: {asked}");
            assert!(there.exists(), "{program:?}");
            ear.decide(&asked, "reject").await;
            let ended = ended(editor).await;
            assert!(!no.exists(), "{program:?}: {ended:?}");
            for words in ["withdrawn 1", "withdrawn 3", "end "] {
                assert!(ended.out.contains(words), "{program:?}: {ended:?}");
            }
            assert!(!ended.out.contains("withdrawn 2"), "{program:?}: {ended:?}");
        });
    }
}
