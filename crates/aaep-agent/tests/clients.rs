//! The clients in other languages, against the real program.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)]

mod support;

#[cfg(unix)]
#[path = "../../aaep-cli/tests/support/fake_hub.rs"]
mod fake_hub;

#[path = "../../../testing/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use support::{Hub, Person, Reaction};

fn examples(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder)
}

fn of_type(events: &[Value], name: &str) -> usize {
    let wanted = format!("aaep:agent.{name}");
    events.iter().filter(|event| event["type"] == wanted.as_str()).count()
}

async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap()
}

/// Runs a client twice: somebody says yes, then somebody says no.
async fn transfers(command: impl Fn(&str) -> Command) {
    let hub = Hub::program().await;
    let person: Person = hub.person(|_| Reaction::Accept).await;
    let output = run(command(&hub.url())).await;
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("Done.\n"), "{output:?}");
    let events = person.judges(1).await;
    assert_eq!((of_type(&events, "tool.invoked"), of_type(&events, "tool.completed")), (2, 2));
    assert_eq!(of_type(&events, "output.streaming"), 1);
    drop(person);
    let hub = Hub::program().await;
    let person = hub.person(|_| Reaction::Reject).await;
    let output = run(command(&hub.url())).await;
    assert!(
        String::from_utf8_lossy(&output.stdout).ends_with("Not done: rejected.\n"),
        "{output:?}"
    );
    assert_eq!(of_type(&person.judges(1).await, "tool.invoked"), 1);
}

/// The Python client, if it runs here.
fn python() -> Option<Command> {
    let python = ["python3", "python"].into_iter().find(|python| {
        let probe = "import sys; sys.exit(sys.version_info < (3, 11))";
        Command::new(python).args(["-c", probe]).status().is_ok_and(|status| status.success())
    });
    let Some(python) = python else {
        skipped("there is no Python 3.11 here.");
        return None;
    };
    let mut command = Command::new(python);
    command.arg("-B").arg(examples("python/bank_transfer.py"));
    Some(command)
}

// covers: W5, S5, W10
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_client_asks_and_obeys() {
    if python().is_none() {
        return;
    }
    transfers(|url| {
        let mut command = python().unwrap();
        command.arg(url);
        command
    })
    .await;
    #[cfg(unix)]
    over_the_socket(python().unwrap()).await;
    #[cfg(unix)]
    avoids_strangers(python().unwrap()).await;
}

/// By itself, a client finds the socket of its user.
#[cfg(unix)]
async fn over_the_socket(mut command: Command) {
    let runtime = tempfile::tempdir().unwrap();
    let hub = Hub::Program(support::Program::with_socket(runtime.path()).await);
    let person: Person = hub.person(|_| Reaction::Accept).await;
    command.env("XDG_RUNTIME_DIR", runtime.path()).env_remove("AAEP_URL");
    let output = run(command).await;
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("Done.\n"), "{output:?}");
    assert_eq!(of_type(&person.judges(1).await, "tool.invoked"), 2);
}

/// A program of another user is sent nothing: neither the token nor a question.
#[cfg(unix)]
async fn avoids_strangers(mut command: Command) {
    let Some(fake) = fake_hub::FakeHub::of_nobody("0") else { return };
    let output = run({
        command.arg(fake.url()).env("AAEP_TOKEN", "aaep_stolen");
        command
    })
    .await;
    assert!(!output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("belongs to another user"), "{output:?}");
    assert_eq!(fake.got(), "");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_commands_of_the_page_ask_and_obey() {
    let page = examples("../docs/agents.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, script) = page.split_once("```sh\n").unwrap();
    let (script, _) = script.split_once("```").unwrap();
    for (answer, runs) in [(Reaction::Accept, 1), (Reaction::Reject, 0)] {
        let hub = Hub::program().await;
        let person = hub.person(move |_| answer.clone()).await;
        let mut command = Command::new("sh");
        command.args(["-eu", "-c", script]).env("HUB", hub.url());
        let output = run(command).await;
        assert!(output.status.success(), "{output:?}");
        let events = person.judges(1).await;
        assert_eq!(of_type(&events, "tool.invoked"), runs);
        assert_eq!(of_type(&events, "tool.completed"), runs);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typescript_client_asks_and_obeys() {
    let made = tempfile::tempdir().unwrap();
    let Some(script) = runnable(made.path()) else {
        skipped("there is neither a Node that runs TypeScript nor a compiler here.");
        return;
    };
    let node = || {
        let mut command = Command::new("node");
        command.arg("--no-warnings").arg(&script);
        command
    };
    transfers(|url| {
        let mut command = node();
        command.arg(url);
        command
    })
    .await;
    #[cfg(unix)]
    over_the_socket(node()).await;
    #[cfg(unix)]
    avoids_strangers(node()).await;
}

/// The script as Node can run it: as it is, or made into JavaScript by the compiler.
fn runnable(made: &Path) -> Option<PathBuf> {
    let folder = examples("typescript");
    let node = Command::new("node").args(["-p", "process.features.typescript ?? false"]).output();
    if String::from_utf8_lossy(&node.ok()?.stdout).trim() == "strip" {
        return Some(folder.join("bank_transfer.ts"));
    }
    let mut compiler = compiler()?;
    let done = compiler.arg("--project").arg(&folder).arg("--outDir").arg(made).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
    std::fs::copy(folder.join("package.json"), made.join("package.json")).unwrap();
    Some(made.join("bank_transfer.js"))
}

/// The compiler, if it is here or can be fetched.
fn compiler() -> Option<Command> {
    let fetched = ["--yes", "--prefer-offline", "--package", "typescript@5.9", "tsc"];
    [("tsc", &[][..]), ("npx", &fetched)].into_iter().find_map(|(program, arguments)| {
        let command = || {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        };
        let version = command().arg("--version").output().ok()?;
        version.status.success().then(command)
    })
}
