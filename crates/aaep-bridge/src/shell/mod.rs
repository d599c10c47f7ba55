//! Commands of a shell: parsed with a real grammar, judged step by step. What does not parse, or says
//! only when it runs what it does, is asked.

mod commands;
mod git;
mod network;
mod tables;
mod word;

use std::path::{Path, PathBuf};

use tree_sitter::{Node, Parser};

use crate::act::{Act, Judgment, Kind, shown};
use crate::place::{Scene, Zone, lexical};
use word::{Reader, Value};

/// The longest command that is looked into, in bytes. Longer ones are asked.
pub const MAX_COMMAND_BYTES: usize = 64 * 1024;

/// How deep commands may stand in each other.
const DEPTH: usize = 64;

/// Steps of one command that are looked at.
const STEPS: usize = 256;

/// Directories in which a command may find itself after `cd`.
const PLACES: usize = 8;

/// What this command would do, run in this directory.
pub fn judge(command: &str, directory: &Path, scene: &Scene) -> Judgment {
    let mut judge = Judge::new(directory, scene);
    judge.text(command, 0);
    Judgment::of(judge.acts)
}

struct Judge<'a> {
    scene: &'a Scene,
    /// Where the command may be: the directory it starts in, and whatever `cd` led to.
    places: Vec<PathBuf>,
    /// Whether a `cd` went where nobody can tell.
    lost: bool,
    acts: Vec<Act>,
    full: bool,
}

impl<'a> Judge<'a> {
    fn new(directory: &Path, scene: &'a Scene) -> Self {
        let places = vec![lexical(&scene.project().join(directory))];
        Self { scene, places, lost: false, acts: Vec::new(), full: false }
    }

    fn act(&mut self, kind: Kind, text: impl Into<String>) {
        if self.acts.len() < STEPS {
            self.acts.push(Act::new(kind, text));
        } else if !self.full {
            self.full = true;
            self.acts.push(Act::new(Kind::Unclear, "Run a command with too many steps to follow."));
        }
    }

    fn unclear(&mut self, why: &str, command: &str) {
        self.act(Kind::Unclear, format!("Run “{}”: {why}.", shown(command)));
    }

    /// A whole command line.
    fn text(&mut self, command: &str, depth: usize) {
        if command.trim().is_empty() {
            return self.unclear("there is nothing in it", command);
        }
        if command.len() > MAX_COMMAND_BYTES || depth > DEPTH {
            return self.unclear("it is too long to be followed", command);
        }
        if !is_plain(command) {
            return self.unclear("it holds characters that shells read differently", command);
        }
        let mut parser = Parser::new();
        let tree = match parser.set_language(&tree_sitter_bash::LANGUAGE.into()) {
            Ok(()) => parser.parse(command, None),
            Err(_) => None,
        };
        let Some(tree) = tree.filter(|tree| !tree.root_node().has_error()) else {
            return self.unclear("it cannot be parsed", command);
        };
        let home = self.scene.home().and_then(Path::to_str);
        self.statement(tree.root_node(), &Reader { source: command, home }, depth);
    }

    fn statement(&mut self, node: Node<'_>, reader: &Reader<'_>, depth: usize) {
        if depth > DEPTH {
            return self.unclear("it is nested too deeply", reader.text(node));
        }
        match node.kind() {
            "comment" => {}
            "unset_command" => self.inside(node, reader, depth + 1),
            "program"
            | "list"
            | "compound_statement"
            | "do_group"
            | "if_statement"
            | "elif_clause"
            | "else_clause"
            | "while_statement"
            | "for_statement"
            | "negated_command"
            | "case_statement"
            | "case_item"
            | "variable_assignments"
            | "heredoc_body" => self.children(node, reader, depth),
            "subshell" => {
                let (places, lost) = (self.places.clone(), self.lost);
                self.children(node, reader, depth);
                (self.places, self.lost) = (places, lost);
            }
            "pipeline" => self.pipeline(node, reader, depth),
            "redirected_statement" => self.children(node, reader, depth),
            "command" => self.command(node, reader, depth),
            "declaration_command" => self.children(node, reader, depth),
            "variable_assignment" => self.assignment(node, reader, depth),
            "test_command" => {
                // Shells may run what stands in the index of a variable.
                if reader.text(node).contains("'") && reader.text(node).contains(['`', '(']) {
                    self.unclear("its test may run something", reader.text(node));
                }
                self.inside(node, reader, depth + 1);
            }
            "file_redirect" => self.redirect(node, reader, depth),
            "heredoc_redirect" => self.document(node, reader, depth),
            "herestring_redirect" => self.inside(node, reader, depth + 1),
            "function_definition" => {
                self.unclear("it defines a command of its own", reader.text(node));
            }
            kind if is_word(kind) => self.inside(node, reader, depth + 1),
            _ => self.unclear("it holds something that is not understood", reader.text(node)),
        }
    }

    fn children(&mut self, node: Node<'_>, reader: &Reader<'_>, depth: usize) {
        let mut cursor = node.walk();
        let children: Vec<_> = node.named_children(&mut cursor).collect();
        for child in children {
            self.statement(child, reader, depth + 1);
        }
    }

    /// Commands that stand inside a word, such as `$(…)`.
    fn inside(&mut self, node: Node<'_>, reader: &Reader<'_>, depth: usize) {
        if depth > DEPTH {
            return self.unclear("it is nested too deeply", reader.text(node));
        }
        let mut cursor = node.walk();
        let children: Vec<_> = node.named_children(&mut cursor).collect();
        match node.kind() {
            "command_substitution" | "process_substitution" => {
                let (places, lost) = (self.places.clone(), self.lost);
                self.children(node, reader, depth);
                (self.places, self.lost) = (places, lost);
            }
            "raw_string" | "ansi_c_string" => {}
            _ => {
                if hides_command(node, &children, reader) {
                    self.unclear("a command is hidden in it", reader.text(node));
                }
                for child in children {
                    self.inside(child, reader, depth + 1);
                }
            }
        }
    }

    /// A document in the command: shells look into it, unless its end is quoted.
    fn document(&mut self, node: Node<'_>, reader: &Reader<'_>, depth: usize) {
        let mut cursor = node.walk();
        let children: Vec<_> = node.named_children(&mut cursor).collect();
        let start = children.iter().find(|child| child.kind() == "heredoc_start");
        let quoted = start.is_some_and(|start| reader.text(*start).contains(['\'', '"', '\\']));
        for child in children {
            match child.kind() {
                "heredoc_start" | "heredoc_end" => {}
                "heredoc_body" if quoted => {}
                "heredoc_body" => self.inside(child, reader, depth + 1),
                _ => self.statement(child, reader, depth + 1),
            }
        }
    }

    /// `… | sh` runs what comes through the pipe.
    fn pipeline(&mut self, node: Node<'_>, reader: &Reader<'_>, depth: usize) {
        let mut cursor = node.walk();
        let parts: Vec<_> = node.named_children(&mut cursor).collect();
        let mut source = None;
        for (index, part) in parts.iter().enumerate() {
            if index > 0
                && let Some(program) = interpreter(*part, reader)
            {
                let text = match &source {
                    Some(place) => {
                        format!("Download a program from {place} and run it unseen with {program}.")
                    }
                    None => format!("Run with {program} what another command prints."),
                };
                let kind = if source.is_some() { Kind::Downloads } else { Kind::Unclear };
                self.act(kind, text);
                // Its own words are judged too, as far as there are any.
                self.inside(*part, reader, depth + 1);
            } else {
                self.statement(*part, reader, depth + 1);
            }
            source = source.or_else(|| network::source(*part, reader));
        }
    }

    fn command(&mut self, node: Node<'_>, reader: &Reader<'_>, depth: usize) {
        let mut cursor = node.walk();
        let mut words = Vec::new();
        let children: Vec<_> = node.named_children(&mut cursor).collect();
        for child in children {
            match child.kind() {
                "command_name" => {
                    let name = child.named_child(0).unwrap_or(child);
                    self.inside(name, reader, depth + 1);
                    words.push(reader.value(name));
                }
                kind if is_word(kind) => {
                    self.inside(child, reader, depth + 1);
                    words.push(reader.value(child));
                }
                _ => self.statement(child, reader, depth + 1),
            }
        }
        self.run(&words, reader.text(node), depth);
    }

    /// A variable that changes which programs run, or what they do.
    fn assignment(&mut self, node: Node<'_>, reader: &Reader<'_>, depth: usize) {
        let name =
            node.child_by_field_name("name").map(|name| reader.text(name)).unwrap_or_default();
        let own = !name.is_empty()
            && name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit());
        let harmless = [
            "RUST_BACKTRACE",
            "RUST_LOG",
            "NO_COLOR",
            "FORCE_COLOR",
            "CI",
            "TERM",
            "LANG",
            "TZ",
            "NODE_ENV",
            "DEBUG",
            "CARGO_TERM_COLOR",
            "COLUMNS",
        ];
        if !own && !harmless.contains(&name) && !name.starts_with("LC_") {
            let text = format!("Set {}, which can change what programs do.", shown(name));
            self.act(Kind::Unclear, text);
        }
        self.inside(node, reader, depth + 1);
    }

    fn redirect(&mut self, node: Node<'_>, reader: &Reader<'_>, depth: usize) {
        let Some(target) = node.child_by_field_name("destination") else { return };
        self.inside(target, reader, depth + 1);
        let mut cursor = node.walk();
        let operator = node.children(&mut cursor).find(|child| !child.is_named());
        let operator = operator.map(|operator| reader.text(operator)).unwrap_or_default();
        let value = reader.value(target);
        // `2>&1` names an open file.
        let duplicates = matches!(operator, ">&" | "<&");
        if duplicates
            && value.literal().is_some_and(|it| it.bytes().all(|b| b.is_ascii_digit() || b == b'-'))
        {
            return;
        }
        if value.written().starts_with("/dev/tcp") || value.written().starts_with("/dev/udp") {
            let text = format!("Talk to another machine through {}.", shown(value.written()));
            return self.act(Kind::Network, text);
        }
        match operator {
            "<" | "<&" => self.reads(&value),
            ">" | ">>" | "&>" | "&>>" | ">&" | ">|" => self.writes("Write", &value),
            _ => self.unclear("it redirects in a way that is not understood", reader.text(node)),
        }
    }

    /// The paths that a word may name, wherever the command may be.
    fn paths(&self, text: &str) -> Option<Vec<PathBuf>> {
        let path = Path::new(text);
        if path.is_absolute() {
            return Some(vec![lexical(path)]);
        }
        match self.lost {
            true => None,
            false => Some(self.places.iter().map(|place| lexical(&place.join(path))).collect()),
        }
    }

    /// The worst place that a word may name, and that path.
    fn worst(&self, value: &Value) -> Option<(Zone, PathBuf)> {
        let (text, example) = match value {
            Value::Literal(text) => (text.as_str(), text.clone()),
            // Where it begins, and one name that it stands for. It must not begin a hidden name.
            Value::Pattern(text) => {
                let fixed = text.find(['*', '?', '[']).unwrap_or(text.len());
                let start = text[..fixed].rsplit_once('/').map_or("", |(start, _)| start);
                let hidden = text[start.len()..].split('/').any(|part| part.starts_with('.'));
                if hidden || text.contains('[') {
                    return None;
                }
                let start = match (start, text.starts_with('/')) {
                    ("", true) => "/",
                    ("", false) => ".",
                    (start, _) => start,
                };
                (start, text.replace(['*', '?'], "x"))
            }
            Value::Dynamic(_) => return None,
        };
        let (paths, examples) = (self.paths(text)?, self.paths(&example)?);
        // The path is the one that is named; what it stands for only counts if it is worse.
        let named = paths.into_iter().map(|path| (self.scene.zone(&path), path)).max()?;
        let stands = examples.into_iter().map(|path| (self.scene.zone(&path), path)).max()?;
        Some(if stands.0 > named.0 { stands } else { named })
    }

    /// Whether a word names a directory with everything of the person in it.
    fn is_whole_home(&self, word: &Value) -> bool {
        let within = |path: PathBuf| self.scene.home().is_some_and(|home| home.starts_with(path));
        self.worst(word).is_some_and(|(_, path)| within(path))
    }

    /// Something is looked at.
    fn reads(&mut self, value: &Value) {
        let named = shown(value.written());
        match self.worst(value) {
            None => self
                .act(Kind::Unclear, format!("Read {named}, which nobody can name before it runs.")),
            Some((Zone::Keys, path)) => {
                let text = format!("Read keys or passwords in {}.", self.scene.named(&path));
                self.act(Kind::Credentials, text);
            }
            Some((Zone::Guard, path)) => {
                let text =
                    format!("Reach {}, which belongs to what asks you.", self.scene.named(&path));
                self.act(Kind::Guard, text);
            }
            Some((_, path)) => self.act(Kind::Reads, format!("Read {}.", self.scene.named(&path))),
        }
    }

    /// Something is changed: `verb` says how.
    fn writes(&mut self, verb: &str, value: &Value) {
        let named = shown(value.written());
        let Some((zone, path)) = self.worst(value) else {
            return self.act(
                Kind::Unclear,
                format!("{verb} {named}, which nobody can name before it runs."),
            );
        };
        let named = self.scene.named(&path);
        let (kind, text) = written(zone, verb, &named);
        if zone != Zone::Nothing {
            self.act(kind, text);
        }
    }

    /// A word that is no option may be a path of something that is not to be reached.
    fn mentions(&mut self, words: &[Value]) {
        for word in words {
            let Value::Literal(text) = word else { continue };
            // `--file=PATH`, `-fPATH`, `if=PATH`.
            let parts = [text.as_str(), text.split_once('=').map_or("", |(_, path)| path)];
            for part in parts.into_iter().filter(|part| !part.is_empty()) {
                let part = part.trim_start_matches('@');
                let part = Value::Literal(part.to_owned());
                if let Some((Zone::Keys | Zone::Guard, _)) = self.worst(&part) {
                    self.reads(&part);
                }
            }
        }
    }
}

/// What writing to a place means.
pub(crate) fn written(zone: Zone, verb: &str, named: &str) -> (Kind, String) {
    match zone {
        Zone::Nothing | Zone::Project => (Kind::Changes, format!("{verb} {named}.")),
        Zone::Machinery => {
            (Kind::Unclear, format!("{verb} {named}, which other programs run or rely on."))
        }
        Zone::Outside => (Kind::Outside, format!("{verb} {named}, outside the project.")),
        Zone::Keys => {
            (Kind::Credentials, format!("{verb} {named}, where keys or passwords are kept."))
        }
        Zone::Guard => (Kind::Guard, format!("{verb} {named}, which belongs to what asks you.")),
    }
}

/// Whether the grammar passed over something that a shell would run, between the parts that it named.
fn hides_command(node: Node<'_>, children: &[Node<'_>], reader: &Reader<'_>) -> bool {
    let mut end = node.start_byte();
    let ends = children.iter().map(|child| (child.start_byte(), child.end_byte()));
    for (start, next) in ends.chain([(node.end_byte(), node.end_byte())]) {
        let gap = reader.source.get(end..start).unwrap_or_default();
        // Arithmetic begins with two parentheses.
        let gap = gap.strip_prefix("$((").unwrap_or(gap);
        if gap.contains('`') || gap.contains("$(") {
            return true;
        }
        end = next;
    }
    false
}

/// Whether all shells, and our grammar, split the text alike.
fn is_plain(command: &str) -> bool {
    let odd = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || (c.is_whitespace() && !c.is_ascii())
    };
    // A line that goes on within a word is another word to the grammar than to the shell.
    let torn = command.match_indices("\\\n").any(|(at, _)| !command[..at].ends_with([' ', '\t']));
    !command.chars().any(odd) && !torn
}

fn is_word(kind: &str) -> bool {
    matches!(
        kind,
        "word"
            | "string"
            | "raw_string"
            | "ansi_c_string"
            | "translated_string"
            | "concatenation"
            | "simple_expansion"
            | "expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "brace_expression"
            | "number"
            | "variable_name"
            | "special_variable_name"
            | "extglob_pattern"
            | "regex"
            | "string_content"
            | "binary_expression"
            | "unary_expression"
            | "postfix_expression"
            | "parenthesized_expression"
            | "array"
            | "subscript"
    )
}

/// A program that runs what it is given on its standard input, in this part of a pipeline.
fn interpreter(node: Node<'_>, reader: &Reader<'_>) -> Option<String> {
    let node = match node.kind() {
        "redirected_statement" => node.child_by_field_name("body")?,
        _ => node,
    };
    if node.kind() != "command" {
        return None;
    }
    let mut cursor = node.walk();
    let words: Vec<_> = node
        .named_children(&mut cursor)
        .filter(|child| child.kind() == "command_name" || is_word(child.kind()))
        .map(|child| {
            reader.value(
                child.named_child(0).filter(|_| child.kind() == "command_name").unwrap_or(child),
            )
        })
        .collect();
    let mut words = words.iter().skip_while(|word| {
        word.literal().is_some_and(|it| {
            matches!(it, "sudo" | "doas" | "env" | "nohup" | "time" | "command" | "exec")
                || it.starts_with('-')
        })
    });
    let name = words.next()?.literal()?;
    let name = name.rsplit('/').next().unwrap_or(name);
    let rest: Vec<_> = words.collect();
    let reads_input = |word: &&Value| word.literal() == Some("-s");
    let reads_program = tables::is_interpreter(name)
        && (rest.iter().any(reads_input)
            || rest.iter().all(|word| {
                word.literal().is_some_and(|it| {
                    it == "-"
                        || it == "/dev/stdin"
                        || (it.starts_with('-') && !it.contains('c') && !it.contains('e'))
                })
            }));
    reads_program.then(|| name.to_owned())
}
