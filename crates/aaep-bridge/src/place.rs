//! Where something is: inside the project, outside, among keys, or among what asks the person.

use std::path::{Component, Path, PathBuf};

/// Files that are counted before we say "more than".
const COUNTED: usize = 10_000;

/// Directories and files with keys and passwords, under the home directory.
const KEYS_AT_HOME: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".kube",
    ".netrc",
    ".pgpass",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".docker/config.json",
    ".config/gh",
    ".config/gcloud",
    ".config/op",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".password-store",
    ".mozilla",
    ".local/share/keyrings",
];

/// Parts of a path that belong to an agent's settings, or to us.
const GUARDS: &[&str] = &[
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".qwen",
    ".kimi",
    ".kimi-code",
    ".copilot",
    ".cline",
    ".clinerules",
    ".opencode",
    "opencode",
    "opencode.json",
    "opencode.jsonc",
    "claude-code",
    ".mcp.json",
    "aaep",
    "aaep.toml",
];

/// What the judge has to know of the surroundings.
#[derive(Clone, Debug)]
pub struct Scene {
    project: PathBuf,
    home: Option<PathBuf>,
}

/// What is at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Zone {
    /// Nowhere that lasts, such as `/dev/null`.
    Nothing,
    Project,
    /// Inside the project, but run by others at once, such as hooks of git.
    Machinery,
    Outside,
    Keys,
    Guard,
}

impl Scene {
    /// A project at this directory, of a user with this home.
    pub fn new(project: impl Into<PathBuf>, home: Option<PathBuf>) -> Self {
        let project = project.into();
        Self { project: real(&project), home }
    }

    pub(crate) fn project(&self) -> &Path {
        &self.project
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// What is at this path.
    pub(crate) fn zone(&self, path: &Path) -> Zone {
        let plain = lexical(path);
        // Where it stands, and where links lead to: the worse of both.
        self.zone_of(&plain).max(self.zone_of(&real(&plain)))
    }

    fn zone_of(&self, path: &Path) -> Zone {
        if path.starts_with("/dev") {
            let harmless = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty"];
            let harmless = harmless.iter().any(|name| path == Path::new(name));
            return if harmless || path.starts_with("/dev/fd") {
                Zone::Nothing
            } else {
                Zone::Outside
            };
        }
        let inside = path.strip_prefix(&self.project).ok();
        // The project may itself lie below a directory with such a name.
        let parts = inside.unwrap_or(path);
        if parts.components().any(|part| is(part, GUARDS)) {
            return Zone::Guard;
        }
        if self.holds_keys(path) {
            return Zone::Keys;
        }
        match inside {
            Some(inside) if inside.components().any(|part| is(part, &[".git", ".husky"])) => {
                Zone::Machinery
            }
            Some(_) => Zone::Project,
            None => Zone::Outside,
        }
    }

    fn holds_keys(&self, path: &Path) -> bool {
        if let Some(home) = &self.home
            && let Ok(inside) = path.strip_prefix(home)
            && KEYS_AT_HOME.iter().any(|keys| inside.starts_with(keys))
        {
            return true;
        }
        if ["/etc/shadow", "/etc/gshadow", "/etc/sudoers"]
            .iter()
            .any(|file| path == Path::new(file))
            || is_environment_of_process(path)
        {
            return true;
        }
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
        let name = name.to_ascii_lowercase();
        let example =
            [".example", ".sample", ".template", ".pub"].iter().any(|end| name.ends_with(end));
        let named = name == ".env"
            || name.starts_with(".env.")
            || name.starts_with("id_")
            || matches!(
                name.as_str(),
                "credentials" | "credentials.json" | ".netrc" | ".npmrc" | ".htpasswd"
            )
            || [".pem", ".key", ".p12", ".pfx", ".kdbx", ".jks"]
                .iter()
                .any(|end| name.ends_with(end));
        named && !example
    }

    /// A path as the person knows it: within the project, or from home on.
    pub(crate) fn named(&self, path: &Path) -> String {
        let path = lexical(path);
        let short = match (path.strip_prefix(&self.project), &self.home) {
            (Ok(inside), _) if inside.as_os_str().is_empty() => "the whole project".into(),
            (Ok(inside), _) => inside.to_string_lossy().into_owned(),
            (Err(_), Some(home)) => match path.strip_prefix(home) {
                Ok(inside) if inside.as_os_str().is_empty() => "your home directory".into(),
                Ok(inside) => format!("~/{}", inside.display()),
                Err(_) => path.to_string_lossy().into_owned(),
            },
            _ => path.to_string_lossy().into_owned(),
        };
        crate::act::shown(&short)
    }
}

fn is(part: Component<'_>, names: &[&str]) -> bool {
    let Component::Normal(part) = part else { return false };
    names.iter().any(|name| part == *name)
}

/// The kernel shows a process's environment, with everything that is in it.
fn is_environment_of_process(path: &Path) -> bool {
    path.starts_with("/proc") && path.file_name().is_some_and(|name| name == "environ")
}

/// The path without `.` and `..`, as far as words go.
pub(crate) fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    out.push("..");
                }
            }
            other => out.push(other),
        }
    }
    out
}

/// Where links lead to: of the longest part that exists.
fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut known = path.to_path_buf();
    loop {
        if let Ok(found) = known.canonicalize() {
            return rest.iter().rev().fold(found, |path, part| path.join(part));
        }
        let (Some(parent), Some(name)) = (known.parent(), known.file_name()) else {
            return path.to_path_buf();
        };
        rest.push(name.to_owned());
        known = parent.to_path_buf();
    }
}

/// How many files a directory holds, as it is said: `214 files`, `more than 10,000 files`.
pub(crate) fn count_files(directory: &Path) -> String {
    let (mut files, mut looked) = (0, 0);
    let mut open = vec![directory.to_path_buf()];
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            looked += 1;
            if looked > COUNTED {
                return "more than 10,000 files".into();
            }
            // A link counts as a file: it is not followed when it is deleted.
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                _ => files += 1,
            }
        }
    }
    match files {
        0 => "no files".into(),
        1 => "1 file".into(),
        many => format!("{many} files"),
    }
}
