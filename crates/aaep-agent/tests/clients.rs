//! The clients in other languages, against the real program.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)]

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use support::{Answer, Hub, Person};

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
    let person: Person = hub.person(|_| Answer::Accept).await;
    let output = run(command(&hub.url())).await;
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("Done.\n"), "{output:?}");
    let events = person.judges(1).await;
    assert_eq!((of_type(&events, "tool.invoked"), of_type(&events, "tool.completed")), (2, 2));
    assert_eq!(of_type(&events, "output.streaming"), 1);
    drop(person);
    let hub = Hub::program().await;
    let person = hub.person(|_| Answer::Reject).await;
    let output = run(command(&hub.url())).await;
    assert!(
        String::from_utf8_lossy(&output.stdout).ends_with("Not done: rejected.\n"),
        "{output:?}"
    );
    assert_eq!(of_type(&person.judges(1).await, "tool.invoked"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_client_asks_and_obeys() {
    let python = ["python3", "python"].into_iter().find(|python| {
        let probe = "import sys; sys.exit(sys.version_info < (3, 11))";
        Command::new(python).args(["-c", probe]).status().is_ok_and(|status| status.success())
    });
    let Some(python) = python else {
        eprintln!("Skipped: there is no Python 3.11 here.");
        return;
    };
    transfers(|url| {
        let mut command = Command::new(python);
        command.arg("-B").arg(examples("python/bank_transfer.py")).arg(url);
        command
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_typescript_client_asks_and_obeys() {
    let made = tempfile::tempdir().unwrap();
    let Some(script) = runnable(made.path()) else {
        eprintln!("Skipped: there is neither a Node that runs TypeScript nor a compiler here.");
        return;
    };
    transfers(|url| {
        let mut command = Command::new("node");
        command.arg("--no-warnings").arg(&script).arg(url);
        command
    })
    .await;
}

/// The script as Node can run it: as it is, or made into JavaScript by `tsc`.
fn runnable(made: &Path) -> Option<PathBuf> {
    let source = examples("typescript/bank_transfer.ts");
    let node = |arguments: &[&str]| Command::new("node").args(arguments).output().ok();
    let strips = node(&["-p", "process.features.typescript ?? false"])?;
    if String::from_utf8_lossy(&strips.stdout).trim() == "strip" {
        return Some(source);
    }
    std::fs::write(made.join("package.json"), r#"{"type":"module"}"#).ok()?;
    let options = [
        "--target",
        "es2022",
        "--module",
        "nodenext",
        "--strict",
        "--skipLibCheck",
        "--rewriteRelativeImportExtensions",
        "--lib",
        "es2022,dom",
        "--types",
        "",
    ];
    let compile = |program: &str, before: &[&str]| {
        let mut command = Command::new(program);
        command.args(before).args(options).arg("--outDir").arg(made).current_dir(made);
        let globals = made.join("globals.d.ts");
        std::fs::write(&globals, GLOBALS).ok()?;
        let done = command.arg(&source).arg(globals).output().ok()?;
        let script = made.join("bank_transfer.js");
        if !done.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&done.stdout));
        }
        (done.status.success() && script.exists()).then_some(script)
    };
    compile("tsc", &[]).or_else(|| {
        compile("npx", &["--yes", "--prefer-offline", "--package", "typescript@5.9", "tsc"])
    })
}

/// What the script uses of Node, so that its packages of types need not be there.
const GLOBALS: &str =
    "declare const process: { argv: string[]; env: Record<string, string | undefined> };";
