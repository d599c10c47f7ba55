//! Files that are read and written whole, and what we remember of them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Cannot, Guard, Scope, forms};
use crate::memory::digest;

/// The longest settings file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// What is in a file; none if it is not there.
pub(super) fn read(path: &Path) -> Result<Option<String>, Cannot> {
    let fault = |error| Cannot::File(path.to_path_buf(), error);
    match fs::metadata(path) {
        Ok(found) if found.len() > MAX_BYTES => Err(Cannot::NotReadable(path.to_path_buf())),
        Ok(_) => match String::from_utf8(fs::read(path).map_err(fault)?) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Cannot::NotReadable(path.to_path_buf())),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(fault(error)),
    }
}

/// Writes a file as a whole or not at all. A link stays a link.
pub(super) fn write(path: &Path, text: &str) -> Result<(), Cannot> {
    let fault = |error| Cannot::File(path.to_path_buf(), error);
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let folder = real.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(fault)?;
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let new = folder.join(format!(".{name}.{}.new", std::process::id()));
    let written = (|| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = options.open(&new)?;
        if let Ok(found) = fs::metadata(&real) {
            file.set_permissions(found.permissions())?;
        }
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &real)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.map_err(fault)
}

/// As it was: with this in it, or not there at all.
pub(super) fn restore(path: &Path, text: Option<&str>) -> Result<(), Cannot> {
    match text {
        Some(text) => write(path, text),
        None => match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Cannot::File(path.to_path_buf(), error))
            }
            _ => Ok(()),
        },
    }
}

/// Whether a program can read this as what its name says.
pub(super) fn is_sound(path: &Path, text: &str) -> bool {
    match path.extension().and_then(|kind| kind.to_str()) {
        Some("json") => serde_json::from_str::<Value>(text).is_ok(),
        Some("toml") => toml::from_str::<toml::Table>(text).is_ok(),
        _ => true,
    }
}

/// Our commands before a tool in a TOML file: Kimi's `[[hooks]]`, or Codex's `[[hooks.PreToolUse]]`.
pub(super) fn toml_commands(text: &str) -> Vec<String> {
    let Ok(table) = toml::from_str::<toml::Table>(text) else { return Vec::new() };
    let Some(hooks) = table.get("hooks") else { return Vec::new() };
    let list = |value: Option<&toml::Value>| {
        value.and_then(toml::Value::as_array).cloned().unwrap_or_default()
    };
    let flat = list(Some(hooks)).into_iter().filter(|hook| {
        let text = |name: &str| hook.get(name).and_then(toml::Value::as_str);
        text("event") == Some("PreToolUse") && matches!(text("matcher"), None | Some("" | "*"))
    });
    let grouped = list(hooks.get("PreToolUse")).into_iter();
    let grouped = grouped.flat_map(|group| list(group.get("hooks")));
    flat.chain(grouped)
        .filter_map(|hook| hook.get("command")?.as_str().map(str::to_owned))
        .filter(|command| forms::is_ours(command))
        .collect()
}

/// What we did to a program's settings.
pub(super) struct Record {
    /// What we put in.
    pub(super) pieces: Vec<String>,
    /// What was there before, if anything was.
    pub(super) before: Option<String>,
    /// Another file that the program changed for us: where, and what was and is in it.
    pub(super) trust: Option<(PathBuf, Option<String>, String)>,
}

impl Record {
    fn stem(guard: &Guard) -> PathBuf {
        let name = match guard.scope {
            Scope::Project => {
                let place = digest(&[&guard.paths.project.to_string_lossy()]);
                format!("{}-project-{place}", guard.host.id())
            }
            scope => format!("{}-{}", guard.host.id(), scope.name()),
        };
        guard.paths.state.join(name)
    }

    /// Where a copy of what was there before is.
    pub(super) fn backup(guard: &Guard) -> PathBuf {
        Self::stem(guard).with_extension("before")
    }

    pub(super) fn load(guard: &Guard) -> Result<Option<Self>, Cannot> {
        let path = Self::stem(guard).with_extension("json");
        let Some(text) = read(&path)? else { return Ok(None) };
        let broken = || Cannot::NotReadable(path.clone());
        let value: Value = serde_json::from_str(&text).map_err(|_| broken())?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let pieces = value["pieces"].as_array().ok_or_else(broken)?;
        let trust = &value["trust"];
        Ok(Some(Self {
            pieces: pieces.iter().map(text).collect::<Option<_>>().ok_or_else(broken)?,
            before: text(&value["before"]),
            trust: text(&trust["path"])
                .zip(text(&trust["after"]))
                .map(|(path, after)| (PathBuf::from(path), text(&trust["before"]), after)),
        }))
    }

    pub(super) fn keep(&self, guard: &Guard) -> Result<(), Cannot> {
        let stem = Self::stem(guard);
        let trust = self.trust.as_ref().map(|(path, before, after)| {
            json!({ "path": path.to_string_lossy(), "before": before, "after": after })
        });
        let value = json!({ "pieces": self.pieces, "before": self.before, "trust": trust });
        if let Some(before) = &self.before {
            private(&stem.with_extension("before"), before)?;
        }
        private(&stem.with_extension("json"), &value.to_string())
    }

    pub(super) fn forget(guard: &Guard) {
        let stem = Self::stem(guard);
        let _ = fs::remove_file(stem.with_extension("json"));
        let _ = fs::remove_file(stem.with_extension("before"));
    }
}

/// Settings may hold keys: what we keep of them is for the person alone.
fn private(path: &Path, text: &str) -> Result<(), Cannot> {
    if let Some(folder) = path.parent() {
        crate::memory::make_private(folder)
            .map_err(|error| Cannot::File(folder.to_path_buf(), error))?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .map_err(|error| Cannot::File(path.to_path_buf(), error))
}
