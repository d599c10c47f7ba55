//! Codex runs only hooks that somebody trusts. Its own server lists them, and takes trust.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::child::Lines;
use super::files::{self, Record};
use super::{Cannot, Guard, forms};

/// How long one answer may take.
const ANSWERS: Duration = Duration::from_secs(20);

/// A hook of ours, as Codex sees it.
pub(super) struct Listed {
    pub(super) event: String,
    pub(super) key: String,
    pub(super) hash: String,
    pub(super) is_trusted: bool,
    pub(super) is_enabled: bool,
}

/// `codex app-server`.
struct Server {
    lines: Lines,
    last: u64,
}

fn failed(what: impl std::fmt::Display) -> Cannot {
    Cannot::Program(format!("Codex did not answer about its hooks: {what}."))
}

impl Server {
    fn start(guard: &Guard, program: &Path) -> Result<Self, Cannot> {
        let mut command = Command::new(program);
        command.arg("app-server").env("HOME", &guard.paths.home);
        if guard.paths.project.is_dir() {
            command.current_dir(&guard.paths.project);
        }
        let lines = Lines::start(command).map_err(failed)?;
        let mut server = Self { lines, last: 0 };
        let client =
            json!({ "name": "aaep", "title": "aaep", "version": env!("CARGO_PKG_VERSION") });
        server.call("initialize", &json!({ "clientInfo": client }))?;
        server.say(&json!({ "method": "initialized" }))?;
        Ok(server)
    }

    fn say(&mut self, message: &Value) -> Result<(), Cannot> {
        self.lines.say(message).map_err(failed)
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value, Cannot> {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "id": id, "method": method, "params": params }))?;
        let deadline = Instant::now() + ANSWERS;
        loop {
            let said = self.lines.hear(deadline).ok_or_else(|| failed("no answer in time"))?;
            if said.get("id") != Some(&json!(id)) || said.get("method").is_some() {
                continue;
            }
            return match said.get("result") {
                Some(result) => Ok(result.clone()),
                None => Err(failed(crate::act::shown(&said["error"]["message"].to_string()))),
            };
        }
    }

    fn hooks(&mut self, guard: &Guard) -> Result<Vec<Listed>, Cannot> {
        let folder = guard.paths.project.to_string_lossy();
        let listed = self.call("hooks/list", &json!({ "cwds": [folder] }))?;
        let groups = listed["data"].as_array().ok_or_else(|| failed("it lists no hooks"))?;
        let path = guard.path()?;
        let hooks = groups.iter().flat_map(|group| group["hooks"].as_array().into_iter().flatten());
        let ours = hooks.filter(|hook| {
            let text = |name: &str| hook[name].as_str().unwrap_or_default();
            // A hook of another file is not what the person was shown.
            forms::is_ours(text("command")) && Path::new(text("sourcePath")) == path
        });
        let read = |hook: &Value| {
            let text = |name: &str| hook[name].as_str().map(str::to_owned);
            Some(Listed {
                event: text("eventName")?,
                key: text("key")?,
                hash: text("currentHash")?,
                is_trusted: hook["trustStatus"] == "trusted" || hook["isManaged"] == true,
                is_enabled: hook["enabled"] == true,
            })
        };
        Ok(ours.filter_map(read).collect())
    }
}

/// Our hooks, as Codex sees them.
pub(super) fn list(guard: &Guard, program: &Path) -> Result<Vec<Listed>, Cannot> {
    Server::start(guard, program)?.hooks(guard)
}

/// Trusts our hooks, and no others. What Codex writes for that is remembered.
pub(super) fn trust(guard: &Guard, program: &Path) -> Result<String, Cannot> {
    let folder = guard.path()?.parent().map(Path::to_path_buf).unwrap_or_default();
    let config = folder.join("config.toml");
    let before = files::read(&config)?;
    let mut server = Server::start(guard, program)?;
    let hooks = server.hooks(guard)?;
    if hooks.is_empty() {
        return Err(Cannot::Program(
            "Codex does not see the hooks in its file. Look at it with `codex` and /hooks.".into(),
        ));
    }
    let new: Vec<_> = hooks.iter().filter(|hook| !hook.is_trusted).collect();
    for hook in &new {
        let value = json!({ hook.key.as_str(): { "trusted_hash": hook.hash } });
        let edit = json!({ "keyPath": "hooks.state", "value": value, "mergeStrategy": "upsert" });
        server.call("config/batchWrite", &json!({ "edits": [edit] }))?;
    }
    let lapsed = server.hooks(guard)?.iter().filter(|hook| !hook.is_trusted).count();
    drop(server);
    if lapsed > 0 {
        return Err(Cannot::Program(
            "Codex does not trust the hooks. Start `codex`, and trust them when it asks.".into(),
        ));
    }
    if let (Some(mut record), Some(after)) = (Record::load(guard)?, files::read(&config)?)
        && before.as_ref() != Some(&after)
    {
        let first = record.trust.take().map_or(before, |(_, first, _)| first);
        record.trust = Some((config, first, after));
        record.keep(guard)?;
    }
    Ok(format!("Codex trusts {} hooks of aaep.", hooks.len()))
}
