//! Programs that work with any model of OpenAI's form.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::super::Guard;
use super::super::model::Model;
use super::{copy, write};

const NAME: &str = "aaep-canary";

pub(super) fn qwen(
    guard: &Guard,
    command: &mut Command,
    model: &Model,
    home: &Path,
) -> io::Result<()> {
    copy(&settings(guard)?, &home.join(".qwen/settings.json"), |settings| {
        if let Some(settings) = settings.as_object_mut() {
            settings.remove("mcpServers");
            settings.insert("privacy".into(), json!({ "usageStatisticsEnabled": false }));
            settings.insert("telemetry".into(), json!({ "enabled": false }));
            let auth = json!({ "auth": { "selectedType": "openai" }, "folderTrust": { "enabled": false } });
            settings.insert("security".into(), auth);
        }
    })?;
    command.args(["--approval-mode", "yolo", "-o", "json", "do it"]);
    command.env("OPENAI_API_KEY", "canary").env("OPENAI_MODEL", NAME);
    command.env("OPENAI_BASE_URL", format!("{}/v1", model.url));
    Ok(())
}

/// Its models are in the file that has its hooks.
pub(super) fn kimi(
    guard: &Guard,
    command: &mut Command,
    model: &Model,
    home: &Path,
) -> io::Result<()> {
    let text = fs::read_to_string(settings(guard)?)?;
    // What cannot be read is tried as it is.
    let text = match toml::from_str::<toml::Table>(&text) {
        Ok(mut table) => {
            let ours = format!(
                "default_model = \"{NAME}\"\ntelemetry = false\n[providers.{NAME}]\ntype = \"openai\"\n\
                 base_url = \"{}/v1\"\napi_key = \"canary\"\n[models.{NAME}]\nprovider = \"{NAME}\"\n\
                 model = \"{NAME}\"\nmax_context_size = 100000\n",
                model.url
            );
            table.extend(toml::from_str::<toml::Table>(&ours).unwrap_or_default());
            table.to_string()
        }
        Err(_) => text,
    };
    write(&home.join(".kimi-code/config.toml"), &text)?;
    command.args(["--output-format", "stream-json", "-p", "do it"]);
    command.env("KIMI_DISABLE_TELEMETRY", "1").env("DO_NOT_TRACK", "1");
    Ok(())
}

pub(super) fn copilot(
    guard: &Guard,
    command: &mut Command,
    model: &Model,
    home: &Path,
) -> io::Result<()> {
    copy(&settings(guard)?, &home.join(".copilot/hooks/aaep.json"), |_| {})?;
    command.args(["--no-auto-update", "--allow-all-tools", "--allow-all-paths", "-p", "do it"]);
    command.env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", model.url));
    command.env("COPILOT_PROVIDER_API_KEY", "canary").env("COPILOT_MODEL", "gpt-4.1");
    command.env("COPILOT_OFFLINE", "true").env("COPILOT_AUTO_UPDATE", "false");
    Ok(())
}

fn settings(guard: &Guard) -> io::Result<std::path::PathBuf> {
    guard.path().map_err(io::Error::other)
}
