//! `aaep token`: people and programs are let in and shut out, without editing files by hand.
//!
//! Who may come in stands in the configuration file, which its owner may have written: it is changed as
//! text, so that everything else in it stays as it was. The new text is read as a whole before it takes
//! the old one's place.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aaep_engine::Role;
use aaep_store::Lock;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use crate::access::{Token, TokenHash};
use crate::config::{Config, Flags, Label, Surroundings, load};
use crate::{Fault, files, start};

/// Where new tokens are put, beside the configuration file.
const DIRECTORY: &str = "tokens";

/// How long a run waits for another one.
const PATIENCE: Duration = Duration::from_secs(5);

/// Roles by the names that the configuration gives them.
pub const ROLES: [(&str, Role); 5] = [
    ("agent", Role::Agent),
    ("accessibility_consumer", Role::AccessibilityConsumer),
    ("auditor", Role::Auditor),
    ("admin", Role::Admin),
    ("metrics", Role::Metrics),
];

/// A token that was made.
#[derive(Debug)]
#[must_use]
pub struct NewToken {
    /// The file that holds it.
    pub file: PathBuf,
    /// Whether the principal had one before, which goes on counting.
    pub is_further: bool,
}

/// Somebody who may come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Names the program or device.
    pub name: String,
    /// What it may do, as the configuration says it.
    pub role: &'static str,
    /// On whose behalf.
    pub user: String,
    /// The first digits of the token's hash, to tell two tokens apart; or the file that holds it.
    pub token: String,
}

/// Makes a token for a principal, and lets it in. A principal that is there already has to agree in
/// role and user, and gets a further token.
pub fn create(file: &Path, name: &str, role: Role, user: &str) -> Result<NewToken, Fault> {
    let (name, user) = (label("NAME", name)?, label("--user", user)?);
    let directory = directory_of(file);
    let _lock = lock(&directory)?;
    let mut document = read(file)?;
    let token = Token::generate()?;
    let entries = principals(&mut document, file)?;
    let is_further = entries.iter().any(|entry| is_named(entry, &name));
    // At the end of what is there: an editor would put it before the remarks at the end.
    let written = fs::read_to_string(file).map_err(|error| files::cannot_read(file, &error))?;
    let entry = entry(&name, role, &user, &token.hash());
    let text = format!("{}\n\n[[principals]]\n{entry}", written.trim_end());
    let text = text.trim_start();
    check(file, text)?;
    let tokens = directory.join(DIRECTORY);
    files::create_private_directory(&tokens)?;
    let path = free_path(&tokens, name.as_str());
    files::write_private(&path, format!("{}\n", token.as_str()).as_bytes())?;
    if let Err(fault) = replace(file, text) {
        // Nobody is let in with it.
        let _ = fs::remove_file(&path);
        return Err(fault);
    }
    Ok(NewToken { file: path, is_further })
}

/// Everybody whom a configuration lets in with a token of the hub's own.
pub fn list(config: &Config) -> Vec<Holder> {
    let holder = |entry: &crate::config::PrincipalEntry| Holder {
        name: entry.name.to_string(),
        role: ROLES.iter().find(|(_, role)| *role == entry.role).map_or("", |(name, _)| name),
        user: entry.user.to_string(),
        token: match (&entry.token_sha256, &entry.token_file) {
            (Some(hash), _) => hash.to_hex().chars().take(8).collect(),
            (None, Some(path)) => path.display().to_string(),
            (None, None) => {
                let name = entry.certificate_name.clone();
                name.or_else(|| entry.certificate_sha256.clone()).unwrap_or_default()
            }
        },
    };
    config.principals.iter().map(holder).collect()
}

/// Shuts a principal out: takes all its tokens out of the configuration, or the one whose hash begins
/// like this. Gives how many.
pub fn revoke(file: &Path, name: &str, token: Option<&str>) -> Result<usize, Fault> {
    let name = label("NAME", name)?;
    let _lock = lock(&directory_of(file))?;
    let mut document = read(file)?;
    let entries = principals(&mut document, file)?;
    let before = entries.len();
    entries.retain(|entry| {
        let hash = entry.get("token_sha256").and_then(Item::as_str).unwrap_or_default();
        let is_meant = token.is_none_or(|token| !token.is_empty() && hash.starts_with(token));
        !(is_named(entry, &name) && is_meant)
    });
    let revoked = before - entries.len();
    if revoked == 0 {
        let what = format!("There is no such token of `{name}`.");
        return Err(Fault::file(file, what, "`aaep token list` shows all there are."));
    }
    let text = document.to_string();
    check(file, &text)?;
    replace(file, &text)?;
    Ok(revoked)
}

/// Shuts a principal out, whatever it shows.
pub fn deny(file: &Path, name: &str) -> Result<(), Fault> {
    change_denied(file, name, |denied, name| {
        if !denied.iter().any(|denied| denied.as_str() == Some(name)) {
            denied.push(name);
        }
        true
    })
}

/// Lets a principal in again that was denied.
pub fn allow(file: &Path, name: &str) -> Result<(), Fault> {
    change_denied(file, name, |denied, name| {
        let before = denied.len();
        denied.retain(|denied| denied.as_str() != Some(name));
        denied.len() < before
    })
}

fn change_denied(
    file: &Path,
    name: &str,
    change: impl FnOnce(&mut Array, &str) -> bool,
) -> Result<(), Fault> {
    let name = label("NAME", name)?;
    let _lock = lock(&directory_of(file))?;
    let mut document = read(file)?;
    let denied = document.entry("denied").or_insert_with(|| value(Array::new()));
    let denied = denied.as_array_mut().ok_or_else(|| {
        let remedy = "Write it as a list of names: denied = [\"login/ann\"].";
        Fault::file(file, "Who is denied is written in another form.", remedy)
    })?;
    if !change(denied, name.as_str()) {
        let what = format!("`{name}` is not denied.");
        return Err(Fault::file(file, what, "Nothing was changed."));
    }
    let text = document.to_string();
    check(file, &text)?;
    replace(file, &text)
}

/// Tells the hub that works under this configuration to read it again; gives its process. Without a
/// hub there is nothing to tell.
#[cfg(unix)]
pub fn tell_hub(config: &Config) -> Result<Option<u32>, Fault> {
    let Some(directory) = config.data.as_deref().filter(|_| !config.ephemeral) else {
        return Ok(None);
    };
    let Some(process) = start::hub_at_work(directory) else { return Ok(None) };
    let number = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    let told =
        number.map(|number| rustix::process::kill_process(number, rustix::process::Signal::HUP));
    match told {
        Some(Ok(())) => Ok(Some(process)),
        _ => Err(Fault::System {
            what: format!(
                "The hub (process {process}) cannot be told. Send it SIGHUP, or start it again: until then nothing changes for it."
            ),
        }),
    }
}

/// Nobody can be told here.
#[cfg(not(unix))]
pub fn tell_hub(_: &Config) -> Result<Option<u32>, Fault> {
    Ok(None)
}

fn label(what: &str, text: &str) -> Result<Label, Fault> {
    Label::parse(text).map_err(|why| Fault::Config {
        place: format!("The argument {what}"),
        key: String::new(),
        what: format!("{text:?} cannot be used: {why}."),
        remedy: "Choose another.".into(),
    })
}

fn directory_of(file: &Path) -> PathBuf {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).to_owned()
}

/// Keeps a second run out while this one is at work.
#[cfg(unix)]
fn lock(directory: &Path) -> Result<Lock, Fault> {
    let file = File::open(directory).map_err(|error| files::cannot_read(directory, &error))?;
    let begun = Instant::now();
    let mut tried = Lock::take(file);
    while let Err((file, _)) = tried {
        if begun.elapsed() > PATIENCE {
            let what = "Another `aaep` changes who may come in.";
            return Err(Fault::file(directory, what, "Try again in a moment."));
        }
        std::thread::sleep(Duration::from_millis(20));
        tried = Lock::take(file);
    }
    tried.map_err(|(_, error)| {
        Fault::file(directory, format!("It cannot be locked: {error}."), "Try again.")
    })
}

// A directory cannot be locked here; two runs at once are left to the one who starts them.
#[cfg(not(unix))]
fn lock(_: &Path) -> Result<Option<Lock>, Fault> {
    Ok(None)
}

fn read(file: &Path) -> Result<DocumentMut, Fault> {
    let bytes = files::read_trusted(file, 1 << 20)?;
    let text = String::from_utf8(bytes).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(|| {
        let remedy = "Correct it first: `aaep hub --print-config` says what is wrong.";
        Fault::file(file, "It cannot be read as TOML.", remedy)
    })
}

fn principals<'d>(
    document: &'d mut DocumentMut,
    file: &Path,
) -> Result<&'d mut ArrayOfTables, Fault> {
    let empty = || Item::ArrayOfTables(ArrayOfTables::new());
    document.entry("principals").or_insert_with(empty).as_array_of_tables_mut().ok_or_else(|| {
        let remedy = "Write each as a block that begins with [[principals]].";
        Fault::file(file, "Its principals are written in another form.", remedy)
    })
}

fn is_named(entry: &Table, name: &Label) -> bool {
    entry.get("name").and_then(Item::as_str) == Some(name.as_str())
}

fn entry(name: &Label, role: Role, user: &Label, hash: &TokenHash) -> Table {
    let role = ROLES.iter().find(|(_, known)| *known == role).map_or("agent", |(name, _)| name);
    let hash = hash.to_hex();
    let members = [("name", name.as_str()), ("role", role), ("user", user.as_str())];
    members
        .into_iter()
        .chain([("token_sha256", &*hash)])
        .map(|(key, text)| (key, value(text)))
        .collect()
}

/// Whether a hub could work with this text in the file's place.
fn check(file: &Path, text: &str) -> Result<(), Fault> {
    let mut name = file.as_os_str().to_owned();
    name.push(".checked");
    let aside = PathBuf::from(name);
    let _ = fs::remove_file(&aside);
    files::write_private(&aside, text.as_bytes())?;
    let flags = Flags { config: Some(aside.clone()), ..Flags::default() };
    let checked = Surroundings::of_process().and_then(|here| load(&flags, &here));
    let checked = checked.and_then(|loaded| start::check(&loaded.config).map(drop));
    let _ = fs::remove_file(&aside);
    checked.map_err(|fault| match fault {
        Fault::Config { place, key, what, remedy } => {
            let place = place.replace(&*aside.to_string_lossy(), &file.to_string_lossy());
            Fault::Config { place, key, what, remedy }
        }
        other => other,
    })
}

/// Puts a text in a file's place, as a whole, with the file's own mode.
fn replace(file: &Path, text: &str) -> Result<(), Fault> {
    // A link stays a link: what it leads to is replaced.
    let file = &file.canonicalize().map_err(|error| files::cannot_read(file, &error))?;
    let failed = |error: std::io::Error| files::cannot_write(file, &error);
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let aside = PathBuf::from(name);
    let _ = fs::remove_file(&aside);
    let mut new = files::open_private(&aside, true).map_err(failed)?;
    let mode = fs::metadata(file).map_err(failed)?.permissions();
    new.write_all(text.as_bytes()).and_then(|()| new.set_permissions(mode)).map_err(failed)?;
    new.sync_all().and_then(|()| fs::rename(&aside, file)).map_err(failed)?;
    files::sync_directory_of(file)
}

/// A file for a token of this name that is not there yet.
fn free_path(directory: &Path, name: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    let numbered = (2_u32..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbered);
    let is_free = |name: &String| directory.join(name).symlink_metadata().is_err();
    directory.join(names.find(is_free).unwrap_or(name))
}
