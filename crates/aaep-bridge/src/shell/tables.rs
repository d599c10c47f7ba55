//! Lists of commands: which of them only look, build, install or publish, and with which words.

use super::commands::operands;
use super::word::Value;

/// Commands that only look, whatever their options; their operands are what they look at.
pub(super) const READERS: &[&str] = &[
    "cat",
    "head",
    "tail",
    "wc",
    "ls",
    "stat",
    "du",
    "df",
    "file",
    "md5sum",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "cksum",
    "b2sum",
    "cmp",
    "comm",
    "diff",
    "nl",
    "tac",
    "rev",
    "od",
    "strings",
    "readlink",
    "realpath",
    "cut",
    "paste",
    "join",
    "fold",
    "column",
    "expand",
    "hexdump",
    "zcat",
];

/// The same, where the first operand is a text to look for.
pub(super) const SEARCHERS: &[&str] = &["grep", "egrep", "fgrep", "rg", "jq"];

/// Commands that say something, and touch nothing that they name.
pub(super) const SAYERS: &[&str] = &[
    "echo", "printf", "pwd", "true", "false", "test", "[", "date", "whoami", "id", "uname",
    "which", "type", "basename", "dirname", "seq", "sleep", "expr", "nproc", "uptime", "tty",
    "locale", "arch", "groups", "tr", "wait", "read", "shift", "break", "continue", "return",
    "exit", ":", "ps", "free", "jobs", "man", "let",
];

/// Options with which a command of the lists above writes, or runs something else.
pub(super) const SHARP: &[(&str, &[&str])] = &[
    ("rg", &["--pre", "--hostname-bin"]),
    ("date", &["-s", "--set"]),
    ("file", &["-C", "--compile"]),
    ("diff", &["--output"]),
    ("printf", &["-v"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
];

/// Programs that run what the project says: its build, its tests.
pub(super) const PROJECT: &[(&str, &[&str])] = &[
    (
        "cargo",
        &["build", "check", "test", "clippy", "fmt", "doc", "bench", "tree", "metadata", "nextest"],
    ),
    ("npm", &["test", "run", "run-script", "ls", "list", "view", "outdated"]),
    ("pnpm", &["test", "run", "ls", "list"]),
    ("yarn", &["test", "run", "list"]),
    ("go", &["build", "test", "vet", "fmt", "list", "version", "env"]),
    ("make", &[""]),
    ("pytest", &[""]),
    ("ruff", &[""]),
    ("mypy", &[""]),
    ("tsc", &[""]),
    ("eslint", &[""]),
    ("rustfmt", &[""]),
];

/// Programs that bring in others, and the words with which they do.
pub(super) const INSTALLERS: &[(&str, &[&str])] = &[
    ("npm", &["install", "i", "add", "ci", "update", "exec", "link", "uninstall", "rebuild"]),
    ("pnpm", &["install", "i", "add", "update", "dlx", "exec"]),
    ("yarn", &["install", "add", "upgrade", "dlx"]),
    ("bun", &["install", "add", "x", "update"]),
    ("npx", &[""]),
    ("bunx", &[""]),
    ("uvx", &[""]),
    ("pip", &["install", "download"]),
    ("pip3", &["install", "download"]),
    ("pipx", &["install", "run"]),
    ("uv", &["add", "sync", "pip", "tool"]),
    ("poetry", &["add", "install", "update"]),
    ("cargo", &["install", "add", "update"]),
    ("gem", &["install", "update"]),
    ("bundle", &["install", "update"]),
    ("go", &["install", "get"]),
    ("composer", &["install", "require", "update"]),
    ("apt", &["install", "upgrade", "full-upgrade"]),
    ("apt-get", &["install", "upgrade", "dist-upgrade"]),
    ("dnf", &["install", "upgrade"]),
    ("yum", &["install", "update"]),
    ("apk", &["add", "upgrade"]),
    ("brew", &["install", "upgrade", "tap"]),
    ("snap", &["install"]),
    ("flatpak", &["install"]),
    ("rustup", &["install", "update", "component", "toolchain", "target"]),
];

/// Commands that send work elsewhere.
pub(super) const PUBLISHERS: &[(&str, &[&str])] = &[
    ("npm", &["publish", "unpublish", "deprecate"]),
    ("pnpm", &["publish"]),
    ("yarn", &["publish"]),
    ("cargo", &["publish", "yank"]),
    ("gem", &["push"]),
    ("twine", &["upload"]),
    ("docker", &["push"]),
    ("gh", &["pr", "release", "issue", "repo", "gist", "workflow"]),
];

pub(super) const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash"];

/// Programs that run a program which they are given.
pub(super) fn is_interpreter(name: &str) -> bool {
    SHELLS.contains(&name)
        || matches!(
            name,
            "python" | "python3" | "node" | "perl" | "ruby" | "php" | "deno" | "fish" | "lua"
        )
}

/// Whether a program of this list is called with one of its words; an empty one stands for any.
pub(super) fn listed(list: &[(&str, &[&str])], name: &str, rest: &[Value]) -> bool {
    let mut verbs = operands(rest).filter_map(Value::literal).filter(|word| !word.starts_with('+'));
    // Behind an option the first word may be its value: then any of the words may be meant.
    let hidden = rest.first().and_then(Value::literal).is_some_and(|word| word.starts_with('-'));
    let Some((_, words)) = list.iter().find(|(program, _)| *program == name) else { return false };
    words.contains(&"")
        || verbs
            .by_ref()
            .take(if hidden { usize::MAX } else { 1 })
            .any(|verb| words.contains(&verb))
}

/// Whether a build or a test stays with what the project says.
pub(super) fn stays(rest: &[Value]) -> bool {
    let leads = [
        "-C",
        "-f",
        "--file",
        "--config",
        "--manifest-path",
        "-exec",
        "-toolexec",
        "--prefix",
        "--eval",
        "-D",
        "-p",
    ];
    rest.iter().all(|word| {
        word.literal().is_some_and(|it| {
            !it.contains('=') && !it.contains("..") && !it.starts_with('/') && !leads.contains(&it)
        })
    })
}

pub(super) fn sharp(name: &str, rest: &[Value]) -> bool {
    let options =
        SHARP.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, options)| options);
    rest.iter()
        .filter_map(Value::literal)
        .any(|text| options.iter().any(|option| text.starts_with(option)))
}
