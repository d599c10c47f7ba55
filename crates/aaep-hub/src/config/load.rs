//! Putting the layers together: flags over environment over file over defaults.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::check::{Wrong, check};
use super::environment::{CONFIG_VARIABLE, SetBy, overlay};
use super::source::Source;
use super::{Config, LogFormat, LogLevel, Surroundings, System};
use crate::Fault;

/// The name of the configuration file.
pub const FILE_NAME: &str = "aaep.toml";

/// What the command line said; what it did not say changes nothing.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config FILE`.
    pub config: Option<PathBuf>,
    /// `--listen ADDR`, any number of times.
    pub listen: Vec<SocketAddr>,
    /// `--grpc ADDR`, any number of times.
    pub grpc: Vec<SocketAddr>,
    /// `--data DIR`.
    pub data: Option<PathBuf>,
    /// `--ephemeral`.
    pub ephemeral: bool,
    /// `--policy FILE`.
    pub policy: Option<PathBuf>,
    /// Whether replies of `local` count (D4); `aaep demo` says so.
    pub local_replies: bool,
    /// Whether the published conformance suite is humoured.
    pub published_suite: bool,
    /// The least important log records that are written.
    pub log_level: Option<LogLevel>,
}

/// A configuration and where it came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// What is in force.
    pub config: Config,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// Sentences for the operator.
    pub warnings: Vec<String>,
}

/// Reads the configuration: `--config`, else `AAEP_CONFIG`, else `aaep.toml` in the user's
/// configuration directory if it is there. The current directory is not searched: a file that
/// happens to lie there must not decide who may come in.
pub fn load(flags: &Flags, surroundings: &Surroundings) -> Result<Loaded, Fault> {
    let variables = &surroundings.variables;
    let file = file_to_read(flags, surroundings);
    let source = file.as_deref().map(Source::read).transpose()?;
    let mut config = match &source {
        Some(source) => source.config()?,
        None => Config::default(),
    };
    let mut warnings = Vec::new();
    let mut set_by;
    (config, set_by) = overlay(config, variables, &mut warnings)?;
    apply(flags, &mut config, &mut set_by)?;
    if config.ephemeral {
        (config.data, config.state) = (None, None);
    } else {
        if config.data.is_none() {
            config.data = Some(System::HERE.data(variables).ok_or_else(no_home)?);
        }
        config.state = config.state.or_else(|| System::HERE.state(variables));
    }
    config.resolve(&surroundings.directory);
    if let Some(wrong) = check(&config)? {
        return Err(blame(wrong, source.as_ref(), &set_by));
    }
    Ok(Loaded { config, file, warnings })
}

/// The format of the log, from a configuration that cannot be read as a whole: what is wrong with it
/// has to reach the log's readers, too.
pub fn log_format(flags: &Flags, surroundings: &Surroundings) -> Option<LogFormat> {
    let named = |text: &str| match text {
        "json" => Some(LogFormat::Json),
        "text" => Some(LogFormat::Text),
        _ => None,
    };
    if let Some(text) = surroundings.variables.get("AAEP_LOG__FORMAT") {
        return named(text);
    }
    let text = std::fs::read_to_string(file_to_read(flags, surroundings)?).ok()?;
    let table: toml::Table = toml::from_str(&text).ok()?;
    named(table.get("log")?.get("format")?.as_str()?)
}

fn file_to_read(flags: &Flags, surroundings: &Surroundings) -> Option<PathBuf> {
    let named = || surroundings.variables.get(CONFIG_VARIABLE).filter(|path| !path.is_empty());
    let path = flags.config.clone().or_else(|| named().map(PathBuf::from));
    if let Some(path) = path {
        return Some(surroundings.directory.join(path));
    }
    let usual = System::HERE.configuration(&surroundings.variables)?.join(FILE_NAME);
    // A file that is there and cannot be read is a fault; one that is not there is none.
    usual.symlink_metadata().is_ok().then_some(usual)
}

fn apply(flags: &Flags, config: &mut Config, set_by: &mut SetBy) -> Result<(), Fault> {
    if !flags.listen.is_empty() {
        config.listen.clone_from(&flags.listen);
        set_by.insert("listen".into(), "The flag --listen".into());
    }
    if !flags.grpc.is_empty() {
        config.grpc.clone_from(&flags.grpc);
        set_by.insert("grpc".into(), "The flag --grpc".into());
    }
    if let Some(data) = &flags.data {
        readable("data", data)?;
        config.data = Some(data.clone());
    }
    if let Some(policy) = &flags.policy {
        readable("policy", policy)?;
        config.policy = Some(policy.clone());
    }
    config.ephemeral |= flags.ephemeral;
    config.development.local_replies |= flags.local_replies;
    config.compatibility.published_suite |= flags.published_suite;
    if let Some(level) = flags.log_level {
        config.log.level = level;
    }
    Ok(())
}

/// A path that cannot be written as text could not be shown by `--print-config`.
fn readable(key: &str, path: &Path) -> Result<(), Fault> {
    if path.to_str().is_some() {
        return Ok(());
    }
    Err(Fault::Config {
        place: format!("The flag --{key}"),
        key: key.into(),
        what: "The path is not UTF-8.".into(),
        remedy: "Choose another place.".into(),
    })
}

fn no_home() -> Fault {
    Fault::Config {
        place: "The environment".into(),
        key: "data".into(),
        what: "There is no home directory, so there is no default place for the hub's data.".into(),
        remedy: "Name a directory with --data, or use --ephemeral to keep nothing.".into(),
    }
}

/// Says where a key that is wrong was set: what was said last counts.
fn blame(wrong: Wrong, source: Option<&Source>, set_by: &SetBy) -> Fault {
    let Wrong { key, what, remedy } = wrong;
    let place = match (set_by.get(&key), source.and_then(|source| source.place_of(&key))) {
        (Some(place), _) => place.clone(),
        (None, Some(place)) => place,
        (None, None) => "The configuration".into(),
    };
    // The line says which principal; its number would not.
    let key = key.split('.').filter(|part| part.parse::<usize>().is_err());
    Fault::Config { place, key: key.collect::<Vec<_>>().join("."), what, remedy }
}
