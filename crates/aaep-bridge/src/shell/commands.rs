//! What the usual commands do. Whatever is not named here is asked.

use super::word::Value;
use super::{Judge, git, network};
use crate::act::{Kind, shown};
use crate::place::{Zone, count_files};

/// Commands that only look, whatever their options; their operands are what they look at.
const READERS: &[&str] = &[
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
const SEARCHERS: &[&str] = &["grep", "egrep", "fgrep", "rg", "jq"];

/// Commands that say something, and touch nothing that they name.
const SAYERS: &[&str] = &[
    "echo", "printf", "pwd", "true", "false", "test", "[", "date", "whoami", "id", "uname",
    "which", "type", "basename", "dirname", "seq", "sleep", "expr", "hostname", "nproc", "uptime",
    "tty", "locale", "arch", "groups", "tr", "wait", "read", "shift", "break", "continue",
    "return", "exit", ":", "ps", "free", "jobs", "man", "let",
];

/// Options with which a command of the lists above writes, or runs something else.
const SHARP: &[(&str, &[&str])] = &[
    ("rg", &["--pre", "--hostname-bin"]),
    ("date", &["-s", "--set"]),
    ("hostname", &["-F", "--file", "-b"]),
    ("file", &["-C", "--compile"]),
    ("diff", &["--output"]),
    ("printf", &["-v"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
];

/// Programs that run what the project says: its build, its tests.
const PROJECT: &[(&str, &[&str])] = &[
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
const INSTALLERS: &[(&str, &[&str])] = &[
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
const PUBLISHERS: &[(&str, &[&str])] = &[
    ("npm", &["publish", "unpublish", "deprecate"]),
    ("pnpm", &["publish"]),
    ("yarn", &["publish"]),
    ("cargo", &["publish", "yank"]),
    ("gem", &["push"]),
    ("twine", &["upload"]),
    ("docker", &["push"]),
    ("gh", &["pr", "release", "issue", "repo", "gist", "workflow"]),
];

const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash"];

/// Programs that run a program which they are given.
pub(super) fn is_interpreter(name: &str) -> bool {
    SHELLS.contains(&name)
        || matches!(
            name,
            "python" | "python3" | "node" | "perl" | "ruby" | "php" | "deno" | "fish" | "lua"
        )
}

impl Judge<'_> {
    /// A command with its words; `text` is how it was written.
    pub(super) fn run(&mut self, words: &[Value], text: &str, depth: usize) {
        let Some((first, rest)) = words.split_first() else { return };
        let Some(name) = first.literal() else {
            return self.unclear("which program runs is known only then", text);
        };
        self.mentions(words);
        // A program of the same name elsewhere is another program.
        let name = match name.rsplit_once('/') {
            Some(("/bin" | "/usr/bin" | "/usr/local/bin" | "/sbin" | "/usr/sbin", name)) => name,
            Some(_) => return self.act(Kind::Unknown, format!("Run the program {}.", shown(name))),
            None => name,
        };
        if listed(PUBLISHERS, name, rest) {
            return self.act(Kind::Publishes, format!("Publish with “{}”.", shown(text)));
        }
        if listed(INSTALLERS, name, rest) {
            return self.installs(name, rest);
        }
        match name {
            "rm" | "rmdir" | "unlink" | "shred" => self.deletes(rest),
            "git" => git::judge(self, rest, text),
            "curl" | "wget" => network::judge(self, name, rest, text),
            "cd" => self.moves_to(rest),
            "aaep" => self.act(
                Kind::Guard,
                format!("Use “{}”, which belongs to what asks you.", shown(text)),
            ),
            "kill" | "pkill" | "killall" => {
                self.act(Kind::System, format!("Stop other programs: “{}”.", shown(text)));
            }
            "sudo" | "doas" | "su" | "pkexec" => {
                self.act(Kind::System, format!("Act with other rights: “{}”.", shown(text)));
                self.wrapped(rest, text, depth);
            }
            "env" | "printenv" | "set" | "export" | "declare" if rest.is_empty() => {
                self.act(Kind::Credentials, "Read all environment variables, which may hold keys.");
            }
            "printenv" => {
                self.act(Kind::Credentials, "Read environment variables, which may hold keys.")
            }
            "command" | "builtin" | "time" | "nohup" | "nice" | "env" | "timeout" | "stdbuf" => {
                self.wrapped(rest, text, depth);
            }
            "ssh" | "scp" | "sftp" | "rsync" | "nc" | "ncat" | "netcat" | "socat" | "telnet"
            | "ftp" => {
                self.act(Kind::Network, format!("Talk to another machine: “{}”.", shown(text)));
            }
            "touch" | "mkdir" | "cp" | "mv" | "tee" | "ln" | "chmod" | "truncate" | "install" => {
                self.changes(name, rest, text);
            }
            "sed" => self.edits_stream(rest, text),
            "sort" | "uniq" | "tree" | "xxd" => self.may_write(name, rest, text),
            "find" => self.finds(rest, text),
            "ps" if operands(rest).any(|word| word.written().contains('e')) => {
                self.act(
                    Kind::Credentials,
                    "Read the environment of programs, which may hold keys.",
                );
            }
            // Some of these look into their words for commands.
            _ if name != "echo"
                && SAYERS.contains(&name)
                && rest.iter().any(|word| word.written().contains(['`', '['])) =>
            {
                self.unclear("shells may run what is in its words", text);
            }
            _ if sharp(name, rest) => self.unclear("it can do more than look", text),
            _ if SAYERS.contains(&name) => self.act(Kind::Reads, format!("Run “{}”.", shown(text))),
            _ if READERS.contains(&name) => self.looks(rest, text),
            _ if SEARCHERS.contains(&name) => self.searches(rest, text),
            _ if is_interpreter(name) => self.interprets(name, rest, text, depth),
            _ if listed(PROJECT, name, rest) && stays(rest) => {
                self.act(Kind::Runs, format!("Run the project's “{}”.", shown(text)));
            }
            _ => self.act(Kind::Unknown, format!("Run “{}”.", shown(text))),
        }
    }

    /// A command that runs another: the rest is judged by itself.
    fn wrapped(&mut self, words: &[Value], text: &str, depth: usize) {
        let is_option = |word: &&Value| word.literal().is_some_and(|it| it.starts_with('-'));
        if words.iter().any(|word| word.literal().is_none()) && words.iter().any(|w| is_option(&w))
        {
            return self.unclear("which program runs is known only then", text);
        }
        // Options with values, durations and variables come before the command.
        let rest: Vec<Value> = words
            .iter()
            .skip_while(|word| {
                is_option(word)
                    || word.literal().is_some_and(|it| {
                        it.contains('=') || it.starts_with(|c: char| c.is_ascii_digit())
                    })
            })
            .cloned()
            .collect();
        if words.iter().any(|word| word.literal().is_some_and(|it| it.contains('='))) {
            return self.unclear("it sets variables for another program", text);
        }
        if words.len() != rest.len()
            && words
                .iter()
                .take(words.len() - rest.len())
                .any(|w| matches!(w.literal(), Some("-u" | "-n" | "-k" | "-s" | "-S")))
        {
            return self.unclear("it has options that take a value", text);
        }
        if rest.is_empty() {
            return self.unclear("no program is named", text);
        }
        self.run(&rest, text, depth + 1);
    }

    fn installs(&mut self, name: &str, rest: &[Value]) {
        let packages: Vec<_> = operands(rest)
            .skip(usize::from(!matches!(name, "npx" | "bunx" | "uvx")))
            .map(|word| shown(word.written()))
            .collect();
        let what = match packages.is_empty() {
            true => "everything that the project names".to_owned(),
            false => packages.join(", "),
        };
        self.act(Kind::Installs, format!("Install with {name}: {}.", shown(&what)));
    }

    fn deletes(&mut self, rest: &[Value]) {
        let mut any = false;
        for word in operands(rest) {
            any = true;
            let text = self.deletion(word);
            self.act(Kind::Deletes, text);
            if let Some((zone @ (Zone::Keys | Zone::Guard | Zone::Outside), path)) =
                self.worst(word)
            {
                let (kind, text) = super::written(zone, "Delete", &self.scene.named(&path));
                self.act(kind, text);
            }
        }
        if !any {
            self.act(Kind::Deletes, "Delete something.");
        }
    }

    fn deletion(&self, word: &Value) -> String {
        let named = shown(word.written());
        match word {
            Value::Dynamic(_) => format!("Delete {named}, which nobody can name before it runs."),
            Value::Pattern(_) => format!("Delete everything that matches {named}."),
            Value::Literal(text) => {
                // Where it finds itself last is where it most likely is.
                let path = self.paths(text).and_then(|paths| paths.last().cloned());
                let Some(path) = path else { return format!("Delete {named}, wherever that is.") };
                let named = self.scene.named(&path);
                match std::fs::symlink_metadata(&path) {
                    Ok(found) if found.is_dir() => {
                        format!("Delete {} in {named}.", count_files(&path))
                    }
                    Ok(_) => format!("Delete the file {named}."),
                    Err(_) => format!("Delete {named}, which is not there now."),
                }
            }
        }
    }

    fn moves_to(&mut self, rest: &[Value]) {
        let target = operands(rest).next().cloned();
        let found = match &target {
            Some(Value::Literal(text)) if text != "-" => self.paths(text),
            None => self.scene.home().map(|home| vec![home.to_path_buf()]),
            _ => None,
        };
        match found {
            Some(found) if self.places.len() + found.len() <= super::PLACES => {
                self.places.extend(found);
                self.act(
                    Kind::Reads,
                    format!("Go to {}.", shown(target.as_ref().map_or("home", Value::written))),
                );
            }
            _ => {
                self.lost = true;
                self.act(Kind::Reads, "Go to another directory.");
            }
        }
    }

    fn looks(&mut self, rest: &[Value], text: &str) {
        let named: Vec<_> = operands(rest).cloned().collect();
        if named.is_empty() {
            return self.act(Kind::Reads, format!("Run “{}”.", shown(text)));
        }
        for word in named {
            self.reads(&word);
        }
    }

    fn searches(&mut self, rest: &[Value], text: &str) {
        self.act(Kind::Reads, format!("Search with “{}”.", shown(text)));
        let files: Vec<_> = operands(rest).skip(1).cloned().collect();
        for word in files {
            let whole = self.worst(&word).is_some_and(|(_, path)| {
                self.scene.home().is_some_and(|home| home.starts_with(path))
            });
            if whole {
                self.act(Kind::Credentials, "Search all your files, keys and passwords too.");
            }
            self.reads(&word);
        }
        // Files with patterns to look for.
        for pair in rest.windows(2) {
            if matches!(pair[0].literal(), Some("-f" | "--file" | "-e" | "--regexp")) {
                self.reads(&pair[1]);
            }
        }
    }

    fn changes(&mut self, name: &str, rest: &[Value], text: &str) {
        let verb = match name {
            "touch" => "Make or touch",
            "mkdir" => "Make the directory",
            "cp" | "install" => "Copy",
            "mv" => "Move",
            "ln" => "Link",
            "chmod" => "Change the rights of",
            _ => "Write",
        };
        let skip = usize::from(name == "chmod");
        let named: Vec<_> = operands(rest).skip(skip).cloned().collect();
        if named.is_empty() {
            // `tee` alone only passes on; everything else without a name is odd.
            return match name {
                "tee" => self.act(Kind::Reads, "Pass text on."),
                _ => self.unclear("nothing is named that it changes", text),
            };
        }
        // `-t DIRECTORY`, `--reference=FILE`: written where options lead.
        if rest.iter().any(|word| {
            word.literal().is_some_and(|it| {
                it.starts_with("-t") || it.starts_with("--t") || it.starts_with("--ref")
            })
        }) {
            return self.unclear("it has options that name other places", text);
        }
        let last = named.len() - 1;
        for (index, word) in named.iter().enumerate() {
            match (name, index == last) {
                ("cp" | "install", false) => self.reads(word),
                _ => self.writes(verb, word),
            }
        }
    }

    /// `sed` looks, changes files with `-i`, and can write and run things in its script.
    fn edits_stream(&mut self, rest: &[Value], text: &str) {
        let is = |word: &Value, options: &[&str]| {
            word.literal().is_some_and(|it| options.iter().any(|option| it.starts_with(option)))
        };
        if rest.iter().any(|word| is(word, &["-f", "--file", "-e", "--expression", "-s", "--"])) {
            return self.unclear("its script is not followed", text);
        }
        let Some(script) = operands(rest).next().and_then(Value::literal) else {
            return self.unclear("its script is known only when it runs", text);
        };
        if !is_simple_script(script) {
            return self.unclear("its script can write files and run commands", text);
        }
        let in_place = rest
            .iter()
            .any(|word| word.literal().is_some_and(|it| it.starts_with('-') && it.contains('i')));
        let files: Vec<_> = operands(rest).skip(1).cloned().collect();
        self.act(Kind::Reads, format!("Run “{}”.", shown(text)));
        for word in files {
            if in_place { self.writes("Change", &word) } else { self.reads(&word) }
        }
    }

    /// Commands that only look, but for an output that they can be given.
    fn may_write(&mut self, name: &str, rest: &[Value], text: &str) {
        let sharp = rest.iter().any(|word| {
            word.literal().is_some_and(|it| {
                it.starts_with("-o")
                    || it.starts_with("--o")
                    || it.starts_with("--compress")
                    || it.starts_with("-r")
            }) && !(name == "sort" && word.literal() == Some("-r"))
        });
        let two = operands(rest).count() > 1 && matches!(name, "uniq" | "xxd");
        if sharp || two {
            return self.unclear("it can write to a file", text);
        }
        self.looks(rest, text);
    }

    fn finds(&mut self, rest: &[Value], text: &str) {
        let acts =
            ["-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"];
        if rest.iter().any(|word| word.literal() == Some("-delete")) {
            return self
                .act(Kind::Deletes, format!("Delete everything that “{}” finds.", shown(text)));
        }
        if rest.iter().any(|word| word.literal().is_none_or(|it| acts.contains(&it))) {
            return self.unclear("it does something with what it finds", text);
        }
        let starts: Vec<_> = rest
            .iter()
            .take_while(|word| word.literal().is_some_and(|it| !it.starts_with(['-', '(', '!'])))
            .cloned()
            .collect();
        self.act(Kind::Reads, format!("Search with “{}”.", shown(text)));
        for word in starts {
            self.reads(&word);
        }
    }

    fn interprets(&mut self, name: &str, rest: &[Value], text: &str, depth: usize) {
        let flags: Vec<_> = rest.iter().map(Value::literal).collect();
        match flags.as_slice() {
            [Some("--version" | "-V" | "-v" | "--help")] => {
                self.act(Kind::Reads, format!("Run “{}”.", shown(text)))
            }
            // A command in a command is judged as one, where it is in reach.
            [Some("-c" | "-lc" | "-ec" | "-euc"), Some(inner)] if SHELLS.contains(&name) => {
                let inner = (*inner).to_owned();
                let (places, lost) = (self.places.clone(), self.lost);
                self.text(&inner, depth + 1);
                (self.places, self.lost) = (places, lost);
            }
            [Some(script), ..] if !script.starts_with('-') => {
                self.act(Kind::Unknown, format!("Run the program {} with {name}.", shown(script)));
            }
            _ => self.unclear("it runs a program that nobody looks into", text),
        }
    }
}

/// Substitutions and lines to print or leave out: nothing that writes or runs.
fn is_simple_script(script: &str) -> bool {
    let line = |c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | 'p' | 'd' | 'q');
    if !script.is_empty() && script.chars().all(line) {
        return true;
    }
    let Some(rest) = script.strip_prefix('s') else { return false };
    let Some(delimiter) =
        rest.chars().next().filter(|c| !c.is_alphanumeric() && *c != '\\' && *c != '\n')
    else {
        return false;
    };
    let parts: Vec<_> = rest.split(delimiter).collect();
    // An escaped delimiter would make more parts than these; then it is asked.
    matches!(parts.as_slice(), ["", _, _, flags] if flags.chars().all(|c| c.is_ascii_digit() || matches!(c, 'g' | 'I' | 'i' | 'p')))
        && !script.contains(['\n', ';'])
}

/// Words that are no options. After `--` all are.
pub(super) fn operands(words: &[Value]) -> impl Iterator<Item = &Value> {
    let mut ended = false;
    words.iter().filter(move |word| match word.literal() {
        Some("--") if !ended => {
            ended = true;
            false
        }
        Some(text) => ended || !text.starts_with('-') || text == "-",
        None => true,
    })
}

/// Whether a program of this list is called with one of its words; an empty one stands for any.
fn listed(list: &[(&str, &[&str])], name: &str, rest: &[Value]) -> bool {
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
fn stays(rest: &[Value]) -> bool {
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
            !it.contains('=')
                && !it.contains("..")
                && !it.starts_with('/')
                && !leads.iter().any(|option| it == *option)
        })
    })
}

fn sharp(name: &str, rest: &[Value]) -> bool {
    let options =
        SHARP.iter().find(|(program, _)| *program == name).map_or(&[][..], |(_, options)| options);
    rest.iter()
        .filter_map(Value::literal)
        .any(|text| options.iter().any(|option| text.starts_with(option)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_sed_is_simple_only_if_it_cannot_write_or_run() {
        for good in ["1,5p", "$d", "s/a/b/g", "s|a|b|", "10q"] {
            assert!(is_simple_script(good), "{good}");
        }
        for bad in
            ["", "w x", "s/a/b/w x", "s/a/b/e", "e rm x", "s/a/b/;w x", "1e", "s/a\\/b/c/w x"]
        {
            assert!(!is_simple_script(bad), "{bad}");
        }
    }
}
