//! What the usual commands do. Whatever is not named here is asked.

use super::tables::{
    INSTALLERS, PROJECT, PUBLISHERS, READERS, SAYERS, SEARCHERS, SHELLS, is_interpreter, listed,
    sharp, stays,
};
use super::word::Value;
use super::{Judge, git, network};
use crate::act::{Kind, shown};
use crate::place::{Zone, count_files};

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
            "touch" | "mkdir" | "cp" | "mv" | "tee" | "ln" | "chmod" => {
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
            "jq" if rest.iter().any(|word| word.written().to_lowercase().contains("env")) => {
                self.act(Kind::Credentials, "Read environment variables, which may hold keys.");
            }
            _ if SAYERS.contains(&name) && rest.iter().any(names_key) => {
                self.act(Kind::Credentials, format!("Say what may be a key: “{}”.", shown(text)));
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
            if self.is_whole_home(&word) {
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
            "cp" => "Copy",
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
        if rest.iter().any(|word| short(word, &['t']) || long(word, &["--t", "--ref"])) {
            return self.unclear("it has options that name other places", text);
        }
        let last = named.len() - 1;
        for (index, word) in named.iter().enumerate() {
            match (name, index == last) {
                ("cp", false) if self.is_whole_home(word) => {
                    self.act(Kind::Credentials, "Copy all your files, keys and passwords too.");
                }
                ("cp", false) => self.reads(word),
                _ => self.writes(verb, word),
            }
        }
    }

    /// `sed` looks, changes files with `-i`, and can write and run things in its script.
    fn edits_stream(&mut self, rest: &[Value], text: &str) {
        if rest.iter().any(|word| short(word, &['e', 'f', 's']) || long(word, &["--"])) {
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
        let reverses = if name == "xxd" { 'r' } else { 'o' };
        let sharp = rest
            .iter()
            .any(|word| short(word, &['o', reverses]) || long(word, &["--o", "--compress"]));
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

/// A word with short options, one of them one of these.
fn short(word: &Value, options: &[char]) -> bool {
    word.literal()
        .is_some_and(|it| it.starts_with('-') && !it.starts_with("--") && it.contains(options))
}

/// A long option that begins so.
fn long(word: &Value, options: &[&str]) -> bool {
    word.literal().is_some_and(|it| options.iter().any(|option| it.starts_with(option)))
}

/// A variable with a name that keys have.
fn names_key(word: &Value) -> bool {
    let text = word.written().to_uppercase();
    let secret = ["KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH"];
    matches!(word, Value::Dynamic(_)) && secret.iter().any(|name| text.contains(name))
}

/// Substitutions and lines to print or leave out: nothing that writes or runs.
fn is_simple_script(script: &str) -> bool {
    if script.contains(['\n', ';', '{', '}', '\\']) {
        return false;
    }
    let rest = after_addresses(script);
    if matches!(rest, "p" | "d" | "q" | "=") {
        return true;
    }
    let Some(rest) = rest.strip_prefix('s') else { return false };
    let mark = rest.chars().next().filter(|c| c.is_ascii_punctuation());
    let Some(mark) = mark else { return false };
    let parts: Vec<_> = rest.split(mark).collect();
    let harmless = |flags: &str| flags.chars().all(|c| c.is_ascii_digit() || "gIip".contains(c));
    matches!(parts.as_slice(), ["", _, _, flags] if harmless(flags))
}

/// What follows the lines for which a script is meant: `1,5p`, `$d`, `/a/,/b/p`.
fn after_addresses(script: &str) -> &str {
    let mut rest = script.trim();
    loop {
        let next =
            rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '$' | ' '));
        let next = match next.strip_prefix('/').and_then(|text| text.split_once('/')) {
            Some((_, after)) => after,
            None => next,
        };
        if next.len() == rest.len() {
            return rest;
        }
        rest = next;
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_sed_is_simple_only_if_it_cannot_write_or_run() {
        for good in ["1,5p", "$d", "s/a/b/g", "s|a|b|", "10q", "/fn a/,/^$/p", "/x/p", "2s/a/b/"] {
            assert!(is_simple_script(good), "{good}");
        }
        for bad in [
            "",
            "w x",
            "s/a/b/w x",
            "s/a/b/e",
            "e rm x",
            "s/a/b/;w x",
            "1e",
            "s/a\\/b/c/w x",
            "/a/w x",
            "/a/e",
            "1,2w x",
        ] {
            assert!(!is_simple_script(bad), "{bad}");
        }
    }
}
