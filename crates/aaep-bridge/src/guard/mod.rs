//! Sets a program up so that it asks, proves that it does, and takes it back.
//!
//! | module | what it holds |
//! |---|---|
//! | `forms` | what stands in each program's settings |
//! | `splice` | pieces put into a settings file and taken out again |
//! | [`checks`] | what switches a guard off |
//! | [`canary`] | the proof: a call that has to be refused |
//! | `codex` | trust, which Codex wants for each hook |
//! | [`model`] | a scripted model, for programs that do nothing without one |

pub mod canary;
pub mod checks;
mod child;
mod codex;
mod files;
mod forms;
pub mod model;
mod splice;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

pub use child::{Installed, find};

use crate::host::Host;
use files::Record;
use forms::Form;
use splice::NoPlace;

/// Programs that can be set up.
pub const PROGRAMS: [Host; 7] = [
    Host::Claude,
    Host::Codex,
    Host::Gemini,
    Host::Opencode,
    Host::Copilot,
    Host::Qwen,
    Host::Kimi,
];

/// Whose settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The person's own.
    User,
    /// The project's.
    Project,
    /// The machine's, which users cannot change.
    Managed,
}

impl Scope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Managed];

    /// Its name, as an option.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Managed => "managed",
        }
    }
}

/// Where things are.
#[derive(Clone, Debug)]
pub struct GuardPaths {
    /// The person's home directory.
    pub home: PathBuf,
    /// The project.
    pub project: PathBuf,
    /// Settings of the machine: `/etc`.
    pub etc: PathBuf,
    /// Settings that are not where they usually are, by the program's id: its environment says so.
    pub elsewhere: BTreeMap<&'static str, PathBuf>,
    /// Where we remember what we did.
    pub state: PathBuf,
}

impl GuardPaths {
    fn folder(&self, host: Host) -> Option<PathBuf> {
        self.elsewhere.get(host.id()).cloned()
    }
}

/// A program whose settings are ours to change.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The program.
    pub host: Host,
    /// Whose settings.
    pub scope: Scope,
    /// Where things are.
    pub paths: GuardPaths,
    /// `aaep` itself, as a whole path.
    pub program: PathBuf,
}

/// A change of a file, before it is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The file.
    pub path: PathBuf,
    /// What is in it, if it is there.
    pub before: Option<String>,
    /// What will be in it.
    pub after: String,
    /// What is new.
    pub pieces: Vec<String>,
    /// Somebody wrote our hook into it by hand; it is left as it is.
    pub by_hand: bool,
}

impl Plan {
    /// Whether everything is as it should be already.
    pub fn is_done(&self) -> bool {
        self.by_hand || self.before.as_deref() == Some(&self.after)
    }
}

/// What became of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// The file is as it was, to the byte.
    AsBefore,
    /// Our part is gone; what was changed since is kept.
    OursOnly,
    /// Nothing of ours was there.
    Nothing,
}

/// Why something cannot be done.
#[derive(Debug)]
#[non_exhaustive]
pub enum Cannot {
    /// The program has no such settings, or nobody has tried them.
    NoSuchScope(Host, Scope),
    /// The file cannot be read in one way only.
    NotReadable(PathBuf),
    /// Something else is in our place.
    Taken(PathBuf, String),
    /// Our part was changed, so it cannot be taken out.
    Edited(PathBuf, PathBuf),
    /// The system says no.
    File(PathBuf, io::Error),
    /// The program itself says no.
    Program(String),
}

impl fmt::Display for Cannot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchScope(host, scope) => {
                write!(f, "{} cannot be set up with --{}. Use --user.", host.name(), scope.name())
            }
            Self::NotReadable(path) => write!(
                f,
                "{} cannot be read in one way only: it is no plain JSON or TOML, or says something twice. Nothing was changed. Correct it, then try again.",
                path.display()
            ),
            Self::Taken(path, place) => write!(
                f,
                "{} has something else at {place}. Nothing was changed. Correct it, then try again.",
                path.display()
            ),
            Self::Edited(path, backup) => write!(
                f,
                "{} was changed where our part is. Nothing was changed. Take it out by hand; what was there before is in {}.",
                path.display(),
                backup.display()
            ),
            Self::File(path, error) => write!(f, "{}: {error}.", path.display()),
            Self::Program(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Cannot {}

impl Guard {
    /// The settings file.
    pub fn path(&self) -> Result<PathBuf, Cannot> {
        forms::path(self.host, self.scope, &self.paths)
    }

    /// What would be changed.
    pub fn plan(&self) -> Result<Plan, Cannot> {
        let path = self.path()?;
        let before = files::read(&path)?;
        let record = Record::load(self)?;
        // Ours, from an earlier time, is taken out first.
        let without = match (&before, &record) {
            (Some(text), Some(record)) => splice::cut(text, &record.pieces),
            _ => None,
        };
        let ours_was_there = without.is_some();
        let base = without.or_else(|| before.clone()).unwrap_or_default();
        let as_it_is = |by_hand| Plan {
            path: path.clone(),
            before: before.clone(),
            after: before.clone().unwrap_or_default(),
            pieces: Vec::new(),
            by_hand,
        };
        if !ours_was_there && self.is_there(&base) {
            return Ok(as_it_is(true));
        }
        let (after, pieces) = self.with_ours(&path, &base)?;
        Ok(Plan { path, before, after, pieces, by_hand: false })
    }

    fn with_ours(&self, path: &Path, base: &str) -> Result<(String, Vec<String>), Cannot> {
        let whole = |text: String| (format!("{text}{base}"), vec![text]);
        match forms::form(self.host, self.scope, &self.program) {
            Form::Hooks(groups) if base.trim().is_empty() => {
                let hooks: serde_json::Map<String, Value> = groups
                    .into_iter()
                    .map(|(event, group)| (event.to_owned(), Value::Array(vec![group])))
                    .collect();
                let file = serde_json::json!({ "hooks": hooks });
                Ok(whole(format!("{}\n", serde_json::to_string_pretty(&file).unwrap_or_default())))
            }
            Form::Hooks(groups) => splice::insert(base, &groups).map_err(|why| match why {
                NoPlace::NotReadable => Cannot::NotReadable(path.to_path_buf()),
                NoPlace::Taken(place) => Cannot::Taken(path.to_path_buf(), place),
            }),
            Form::Toml(piece) => {
                let gap = if base.is_empty() || base.ends_with('\n') { "" } else { "\n" };
                let piece = format!("{gap}{piece}");
                let after = format!("{base}{piece}");
                if toml::from_str::<toml::Table>(base).is_err() {
                    return Err(Cannot::NotReadable(path.to_path_buf()));
                }
                match toml::from_str::<toml::Table>(&after) {
                    Ok(_) => Ok((after, vec![piece])),
                    Err(_) => Err(Cannot::Taken(path.to_path_buf(), "hooks or features".into())),
                }
            }
            Form::Own(text) if base.trim().is_empty() => Ok(whole(text)),
            Form::Own(_) => Err(Cannot::Taken(path.to_path_buf(), "its beginning".into())),
        }
    }

    /// Whether our hook is in this text.
    fn is_there(&self, text: &str) -> bool {
        !self.commands(text).is_empty()
    }

    /// Our commands before a tool, in this text.
    pub(crate) fn commands(&self, text: &str) -> Vec<String> {
        let path = self.path().unwrap_or_default();
        let kind = path.extension().and_then(|kind| kind.to_str());
        let settings = match kind {
            Some("js") => {
                let ours = match forms::form(self.host, self.scope, &self.program) {
                    Form::Own(own) => text == own,
                    _ => false,
                };
                return ours.then(|| forms::asking(self.host, &self.program)).into_iter().collect();
            }
            Some("toml") => return files::toml_commands(text),
            _ => serde_json::from_str::<Value>(text).unwrap_or_default(),
        };
        forms::found(self.host, &settings)
            .into_iter()
            .map(|(_, command)| command.to_owned())
            .collect()
    }

    /// Makes the change. What was there is kept.
    pub fn make(&self, plan: &Plan) -> Result<(), Cannot> {
        if plan.is_done() {
            return Ok(());
        }
        let earlier = Record::load(self)?;
        // The first backup is the one that counts.
        let record = Record {
            pieces: plan.pieces.clone(),
            before: match earlier {
                Some(earlier) => earlier.before,
                None => plan.before.clone(),
            },
            trust: None,
        };
        // Remembered first: whatever happens in between can be taken back.
        record.keep(self)?;
        files::write(&plan.path, &plan.after)
    }

    /// Takes our part out again.
    pub fn remove(&self) -> Result<Removed, Cannot> {
        let path = self.path()?;
        let Some(record) = Record::load(self)? else { return Ok(Removed::Nothing) };
        if let Some((config, before, after)) = &record.trust
            && files::read(config)?.as_ref() == Some(after)
        {
            files::restore(config, before.as_deref())?;
        }
        let Some(text) = files::read(&path)? else {
            Record::forget(self);
            return Ok(Removed::Nothing);
        };
        let left = splice::cut(&text, &record.pieces);
        let left = left.filter(|left| left.is_empty() || files::is_sound(&path, left));
        let Some(left) = left else {
            return Err(Cannot::Edited(path, Record::backup(self)));
        };
        let was_there = record.before.is_some();
        files::restore(&path, (was_there || !left.trim().is_empty()).then_some(left.as_str()))?;
        Record::forget(self);
        let same = record.before.as_deref().unwrap_or_default() == left;
        Ok(if same { Removed::AsBefore } else { Removed::OursOnly })
    }

    /// Whether it was ever set up, by us or by hand.
    pub fn is_set_up(&self) -> bool {
        let text = || self.path().and_then(|path| files::read(&path));
        !matches!(Record::load(self), Ok(None))
            || text().ok().flatten().is_some_and(|text| self.is_there(&text))
    }

    /// Does what the program wants besides its file, and says what: Codex skips hooks that nobody
    /// trusts.
    pub fn trust(&self, program: &Path) -> Result<Option<String>, Cannot> {
        match (self.host, self.scope) {
            (Host::Codex, Scope::User) => codex::trust(self, program).map(Some),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_the_machine_are_written_and_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let paths = GuardPaths {
            home: at("home"),
            project: at("project"),
            etc: at("etc"),
            elsewhere: BTreeMap::new(),
            state: at("state"),
        };
        for (host, file, before) in [
            (Host::Claude, "claude-code/managed-settings.json", Some("{\"model\": \"x\"}")),
            (Host::Codex, "codex/requirements.toml", None),
            (
                Host::Codex,
                "codex/requirements.toml",
                Some("allowed_sandbox_modes = [\"read-only\"]"),
            ),
        ] {
            let guard = Guard {
                host,
                scope: Scope::Managed,
                paths: paths.clone(),
                program: "/usr/local/bin/aaep".into(),
            };
            let path = at("etc").join(file);
            files::restore(&path, before).unwrap();
            let plan = guard.plan().unwrap();
            assert!(!plan.is_done() && plan.path == path);
            guard.make(&plan).unwrap();
            let text = files::read(&path).unwrap().unwrap();
            assert_eq!(guard.commands(&text).len(), 1, "{text}");
            assert!(guard.plan().unwrap().is_done());
            // An update of aaep that lies elsewhere takes its place.
            let moved = Guard { program: "/opt/aaep".into(), ..guard.clone() };
            moved.make(&moved.plan().unwrap()).unwrap();
            let text = files::read(&path).unwrap().unwrap();
            assert!(text.contains("/opt/aaep hook") && !text.contains("/usr/local"), "{text}");
            assert_eq!(guard.remove().unwrap(), Removed::AsBefore);
            assert_eq!(files::read(&path).unwrap().as_deref(), before);
        }
        let taken = Guard {
            host: Host::Codex,
            scope: Scope::Managed,
            paths,
            program: "/usr/local/bin/aaep".into(),
        };
        files::write(&at("etc/codex/requirements.toml"), "[features]\nx = 1\n").unwrap();
        assert!(matches!(taken.plan(), Err(Cannot::Taken(..))));
    }
}
