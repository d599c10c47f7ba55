//! The real program, `aaep hub`.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A running `aaep hub`; it is killed when this is dropped.
pub struct Program {
    pub url: String,
    child: Child,
}

impl Program {
    /// Starts it on a port of its own choice. Without further arguments nothing is kept.
    pub async fn start(arguments: &[&str]) -> Self {
        let arguments = if arguments.is_empty() {
            &["--ephemeral", "--listen", "127.0.0.1:0"]
        } else {
            arguments
        };
        Self::start_by(Command::new(built()).arg("hub").args(arguments)).await
    }

    /// Starts one with a socket in this runtime directory.
    pub async fn with_socket(runtime: &Path) -> Self {
        let mut command = Command::new(built());
        command.args(["hub", "--ephemeral", "--listen", "127.0.0.1:0"]);
        command.env("XDG_RUNTIME_DIR", runtime).env("AAEP_UNIX_SOCKET__ENABLED", "true");
        Self::start_by(&mut command).await
    }

    /// Starts one that keeps everything below this directory.
    pub async fn durable(home: &Path, listen: &str) -> Self {
        let mut command = Command::new(built());
        command.args(["hub", "--listen", listen, "--data"]).arg(home.join("data"));
        Self::start_by(command.env("AAEP_STATE", home.join("state"))).await
    }

    async fn start_by(command: &mut Command) -> Self {
        let socket = |(name, _): &(&std::ffi::OsStr, _)| *name == "AAEP_UNIX_SOCKET__ENABLED";
        if !command.as_std().get_envs().any(|known| socket(&known)) {
            command.env("AAEP_UNIX_SOCKET__ENABLED", "false");
        }
        let mut child = command
            .env("AAEP_DEVELOPMENT__LOCAL_REPLIES", "true")
            .env("AAEP_LOG", "warn")
            .env_remove("AAEP_CONFIG")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut url = None;
        while let Some(line) = lines.next_line().await.unwrap() {
            if let Some(found) = line.strip_prefix("Listening: ") {
                url = Some(found.to_owned());
            }
            if line.starts_with("Ready.") {
                break;
            }
        }
        // Writing to a closed pipe would end the program, so a thread keeps reading.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { url: url.expect("the hub says where it listens"), child }
    }

    /// Ends it as a crash would.
    pub async fn kill(&mut self) {
        self.child.kill().await.unwrap();
    }

    pub fn port(&self) -> u16 {
        let rest = self.url.strip_prefix("http://127.0.0.1:").unwrap();
        rest.split('/').next().unwrap().parse().unwrap()
    }
}

/// The program, built once if it is not there or not new; `AAEP_BIN` names another one.
pub fn built() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let find = || match std::env::var_os("AAEP_BIN") {
        Some(path) => path.into(),
        None => build(&["--package", "aaep-cli", "--bin", "aaep"]).join(named("aaep")),
    };
    BUILT.get_or_init(find).clone()
}

/// An example of this crate, as a program.
pub fn built_example(name: &str) -> PathBuf {
    build(&["--package", "aaep-agent", "--example", name]).join("examples").join(named(name))
}

/// The library of this crate, as the tests use it: the examples are built with the same one.
pub fn built_library() -> PathBuf {
    let (mut cargo, _) = cargo(&["--package", "aaep-agent", "--example", "bank_transfer"]);
    let output = cargo.args(["--message-format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let library = messages.lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let ours = message["target"]["name"] == "aaep_agent"
            && message["target"]["kind"].as_array()?.iter().any(|kind| kind == "lib");
        let files = message["filenames"].as_array().filter(|_| ours)?;
        files
            .iter()
            .filter_map(|file| file.as_str())
            .find(|file| file.ends_with(".rlib"))
            .map(PathBuf::from)
    });
    library.expect("the examples use this library")
}

fn named(program: &str) -> String {
    format!("{program}{}", std::env::consts::EXE_SUFFIX)
}

/// Builds something beside this test, which lies in TARGET/PROFILE/deps, and says where it then is.
fn build(what: &[&str]) -> PathBuf {
    let (mut cargo, profile) = cargo(what);
    assert!(cargo.status().unwrap().success(), "it cannot be built: {what:?}");
    profile
}

fn cargo(what: &[&str]) -> (std::process::Command, PathBuf) {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).unwrap();
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet"]).args(what);
    cargo.arg("--target-dir").arg(profile.parent().unwrap());
    if profile.ends_with("release") {
        cargo.arg("--release");
    }
    (cargo, profile.to_owned())
}
