//! `/openapi.json` as others read it: a published validator, and a client that a published generator
//! makes of it. They are installed by `cargo xtask test --only guests`.

mod grpc;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::*;

/// A program of the environment that holds them.
fn guest(program: &str) -> Command {
    let home = std::env::var_os("AAEP_GUESTS").expect("AAEP_GUESTS names their environment");
    let programs = Path::new(&home).join("bin");
    let mut command = Command::new(programs.join(program));
    // The generator looks for its formatter there.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{path}", programs.display())).stdin(Stdio::null());
    command
}

fn succeeds(mut command: Command) {
    let ended = command.output().unwrap();
    let said = [ended.stdout, ended.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(ended.status.success(), "{command:?}\n{}", said.join("\n"));
}

/// Writes the description of a hub to a file.
async fn description(hub: &Hub, folder: &Path) -> PathBuf {
    let answer = hub.outside(None).get("openapi.json").await.unwrap();
    let file = folder.join("openapi.json");
    std::fs::write(&file, &answer.body).unwrap();
    file
}

#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn a_published_validator_accepts_the_description_of_the_api() {
    run(async {
        let folder = tempfile::tempdir().unwrap();
        let file = description(&Hub::shared(), folder.path()).await;
        let mut validator = guest("openapi-spec-validator");
        validator.arg(&file);
        succeeds(validator);
    });
}

// covers: W8, C1, C4, C12, C13, C20
#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn a_generated_client_runs_the_whole_confirmation_protocol() {
    run(async {
        let person = Hub::shared().person();
        let folder = tempfile::tempdir().unwrap();
        let file = description(&person.hub, folder.path()).await;
        let mut generator = guest("openapi-python-client");
        generator.args(["generate", "--meta", "none", "--fail-on-warning", "--path"]).arg(&file);
        generator.arg("--output-path").arg(folder.path().join("hub_client"));
        succeeds(generator);

        let mut ear = person.reader().await;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hub/guests/chapter6.py");
        let mut agent = guest("python");
        let address = format!("http://{}", person.hub.address());
        agent.arg(script).args([&address, &person.token("agent")]);
        agent.args([&person.token("reader"), &person.name("agent")]);
        agent.env("PYTHONPATH", folder.path());
        let running = tokio::task::spawn_blocking(move || succeeds(agent));
        ear.event("session.completed").await;
        soon("the end of the agent", running).await.unwrap();
        ear.is_lawful();
        // One after a yes, one after a silence that means yes.
        let invoked = ear.heard.iter().filter(|event| event.contains("aaep:agent.tool.invoked"));
        assert_eq!(invoked.count(), 2, "{:#?}", ear.heard);
    });
}
