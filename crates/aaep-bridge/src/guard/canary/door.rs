//! The proof of a door: the program is asked for something behind it, asks itself, and gets a no.

use std::io;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use super::super::Guard;
use super::super::child::{Installed, Lines};
use super::{CanaryOutcome, PROGRAM_TAKES, Stage, Way};
use crate::doors::Door;

/// Runs the program behind its door, with `aaep` as an editor would start it, and says no. None if it
/// has no door.
pub fn door(guard: &Guard, installed: &Installed) -> Option<CanaryOutcome> {
    let door = Door::of(guard.host)?;
    Some(tried(guard, door, installed).unwrap_or_else(|error| {
        CanaryOutcome::Unproven(format!(
            "{} could not be tried behind its door: {error}.",
            guard.host.name()
        ))
    }))
}

fn tried(guard: &Guard, door: Door, installed: &Installed) -> io::Result<CanaryOutcome> {
    let (name, version) = (guard.host.name(), installed.version_text());
    let stage = Stage::new(guard, installed, Way::Door)?;
    let mut command = Command::new(&guard.program);
    command.args(["acp", "--keep-asking", "--agent", door.host().id(), "--"]);
    command.arg(&installed.path).args(stage.command.get_args());
    command.current_dir(&stage.project).env_clear();
    command.envs(stage.command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let talked = talk(Lines::start(command)?, &stage);
    Ok(match talked {
        _ if stage.ran.exists() => CanaryOutcome::Broken(format!(
            "{name} does not ask behind its door: a scripted model wanted a file made outside the project, and it was made."
        )),
        Ok(true) => CanaryOutcome::Held(format!(
            "{name} {version} ran behind its door with a scripted model that wanted a file made outside the project: it asked, was told no, and the file was not made."
        )),
        Ok(false) => {
            CanaryOutcome::Unproven(format!("{name} ran behind its door, but asked nothing."))
        }
        Err(why) => CanaryOutcome::Unproven(format!(
            "{name} did not come to a tool behind its door: {}",
            crate::act::shown(&why)
        )),
    })
}

/// Has it work, as an editor would. Whether it asked.
fn talk(mut lines: Lines, stage: &Stage) -> Result<bool, String> {
    let until = Instant::now() + PROGRAM_TAKES;
    let request = |id: u64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let begin = json!({ "protocolVersion": 1, "clientCapabilities": {},
        "clientInfo": { "name": "aaep", "title": "aaep", "version": env!("CARGO_PKG_VERSION") } });
    let gone = |error: io::Error| error.to_string();
    lines.say(&request(1, "initialize", begin)).map_err(gone)?;
    let mut asked = false;
    loop {
        let said = lines.hear(until).ok_or("it ended, or said nothing in time")?;
        let id = said.get("id").cloned().unwrap_or_default();
        let next = match (said.get("method").and_then(Value::as_str), id.as_u64()) {
            (Some("session/request_permission"), _) => {
                asked = true;
                json!({ "jsonrpc": "2.0", "id": id, "result": { "outcome": no(&said) } })
            }
            (Some(_), _) if id.is_null() => continue,
            (Some(_), _) => {
                let error = json!({ "code": -32601, "message": "This is not offered." });
                json!({ "jsonrpc": "2.0", "id": id, "error": error })
            }
            (None, Some(number @ 1..=3)) => {
                let Some(result) = said.get("result") else {
                    return Err(said["error"]["message"].to_string());
                };
                match number {
                    1 => {
                        request(2, "session/new", json!({ "cwd": stage.project, "mcpServers": [] }))
                    }
                    2 => {
                        let wish = json!([{ "type": "text", "text": "do it" }]);
                        let params = json!({ "sessionId": result["sessionId"], "prompt": wish });
                        request(3, "session/prompt", params)
                    }
                    _ => return Ok(asked),
                }
            }
            _ => continue,
        };
        lines.say(&next).map_err(gone)?;
    }
}

/// A no, as the agent offers it.
fn no(said: &Value) -> Value {
    let options = said.pointer("/params/options").and_then(Value::as_array);
    let no = options.into_iter().flatten().find(|option| option["kind"] == "reject_once");
    match no {
        Some(no) => json!({ "outcome": "selected", "optionId": no["optionId"] }),
        None => json!({ "outcome": "cancelled" }),
    }
}
