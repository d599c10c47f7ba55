//! Programs that work with any model of OpenAI's form.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::super::Guard;
use super::super::model::Model;
use super::{Way, copy, hooks, write};

const NAME: &str = "aaep-canary";

pub(super) fn qwen(
    guard: &Guard,
    command: &mut Command,
    model: &Model,
    home: &Path,
    way: Way,
) -> io::Result<()> {
    copy(&settings(guard)?, &home.join(".qwen/settings.json"), |settings| {
        hooks(settings, way);
        if let Some(settings) = settings.as_object_mut() {
            settings.remove("mcpServers");
            settings.insert("privacy".into(), json!({ "usageStatisticsEnabled": false }));
            settings.insert("telemetry".into(), json!({ "enabled": false }));
            let auth = json!({ "auth": { "selectedType": "openai" }, "folderTrust": { "enabled": false } });
            settings.insert("security".into(), auth);
        }
    })?;
    if way == Way::Hook {
        command.args(["--approval-mode", "yolo", "-o", "json", "do it"]);
    }
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
    way: Way,
) -> io::Result<()> {
    let text = fs::read_to_string(settings(guard)?).unwrap_or_default();
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
            if way == Way::Door {
                table.remove("hooks");
            }
            table.to_string()
        }
        Err(_) => text,
    };
    write(&home.join(".kimi-code/config.toml"), &text)?;
    if way == Way::Hook {
        command.args(["--output-format", "stream-json", "-p", "do it"]);
    }
    command.env("KIMI_DISABLE_TELEMETRY", "1").env("DO_NOT_TRACK", "1");
    Ok(())
}

pub(super) fn copilot(
    guard: &Guard,
    command: &mut Command,
    model: &Model,
    home: &Path,
    way: Way,
) -> io::Result<()> {
    command.arg("--no-auto-update");
    if way == Way::Hook {
        copy(&settings(guard)?, &home.join(".copilot/hooks/aaep.json"), |_| {})?;
        let (from, to) = (&guard.paths.home, home.join(".copilot/settings.json"));
        // Nothing else of it matters to hooks.
        copy(&from.join(".copilot/settings.json"), &to, |settings| {
            if let Some(settings) = settings.as_object_mut() {
                settings.retain(|name, _| name == "disableAllHooks");
            }
        })?;
        command.args(["--allow-all-tools", "--allow-all-paths", "-p", "do it"]);
    }
    command.env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", model.url));
    command.env("COPILOT_PROVIDER_API_KEY", "canary").env("COPILOT_MODEL", "gpt-4.1");
    command.env("COPILOT_OFFLINE", "true").env("COPILOT_AUTO_UPDATE", "false");
    Ok(())
}

/// The folder of opencode's settings.
fn opencode_folder(guard: &Guard) -> std::path::PathBuf {
    let plugin = guard.path().unwrap_or_default();
    plugin.ancestors().nth(2).map(Path::to_path_buf).unwrap_or_default()
}

/// Whether opencode has fetched what it needs to load plugins.
pub(super) fn has_packages(guard: &Guard) -> bool {
    opencode_folder(guard).join("node_modules").is_dir()
}

pub(super) fn opencode(
    guard: &Guard,
    command: &mut Command,
    model: &Model,
    home: &Path,
    way: Way,
) -> io::Result<()> {
    let (from, to) = (opencode_folder(guard), home.join(".config/opencode"));
    let text = fs::read_to_string(from.join("opencode.json")).unwrap_or_default();
    let mut config: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    if !config.is_object() {
        config = json!({});
    }
    // What would reach others, or fetch something.
    for name in ["mcp", "plugin", "agent", "instructions", "lsp", "formatter"] {
        config.as_object_mut().map(|config| config.remove(name));
    }
    config["autoupdate"] = json!(false);
    config["share"] = json!("disabled");
    config["enabled_providers"] = json!([NAME]);
    for name in ["model", "small_model"] {
        config[name] = json!(format!("{NAME}/{NAME}"));
    }
    config["provider"] = json!({ NAME: { "npm": "@ai-sdk/openai-compatible", "name": NAME,
        "options": { "baseURL": format!("{}/v1", model.url), "apiKey": "canary" },
        "models": { NAME: { "name": NAME, "tool_call": true } } } });
    if way == Way::Hook {
        config["permission"] = json!({ "*": "allow", "external_directory": "allow" });
    }
    write(&to.join("opencode.json"), &config.to_string())?;
    // What it fetched earlier need not be fetched again.
    #[cfg(unix)]
    if has_packages(guard) {
        for name in ["package.json", "package-lock.json"] {
            let _ = fs::copy(from.join(name), to.join(name));
        }
        std::os::unix::fs::symlink(from.join("node_modules"), to.join("node_modules"))?;
    }
    if way == Way::Hook {
        fs::create_dir_all(to.join("plugin"))?;
        fs::copy(settings(guard)?, to.join("plugin/aaep.js"))?;
        command.args(["run", "--format", "json", "do it"]);
    }
    for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"] {
        command.env(format!("OPENCODE_DISABLE_{name}"), "1");
    }
    Ok(())
}

fn settings(guard: &Guard) -> io::Result<std::path::PathBuf> {
    guard.path().map_err(io::Error::other)
}
