//! What `curl` and `wget` do: look something up, send something, write something down.

use tree_sitter::Node;

use super::commands::operands;
use super::word::{Reader, Value};
use super::{Judge, is_word};
use crate::act::{Kind, shown};

/// Options with which something is only looked up. Others may send, write or read files.
const PLAIN: &[&str] = &[
    "-s",
    "-S",
    "-f",
    "-L",
    "-i",
    "-I",
    "-v",
    "-sS",
    "-fsSL",
    "-sSL",
    "-sL",
    "-fsS",
    "-sSf",
    "-sSfL",
    "-fL",
    "-sf",
    "-LsSf",
    "-q",
    "-O-",
    "-qO-",
    "-sI",
    "-sSI",
    "-k",
    "--silent",
    "--show-error",
    "--fail",
    "--location",
    "--head",
    "--include",
    "--compressed",
    "--quiet",
    "--spider",
    "--proto",
    "--tlsv1.2",
    "=https",
];

/// Beginnings of options that send something.
const SENDS: &[&str] = &[
    "-d",
    "--data",
    "-F",
    "--form",
    "-T",
    "--upload",
    "--json",
    "--post",
    "--method",
    "--body",
    "-X",
    "--request",
];

pub(super) fn judge(judge: &mut Judge<'_>, name: &str, words: &[Value], text: &str) {
    let place = place(words);
    let uses = |list: &[&str]| {
        words
            .iter()
            .filter_map(Value::literal)
            .any(|word| list.iter().any(|option| word.starts_with(option)))
    };
    let get = words.windows(2).any(|pair| {
        matches!(pair[0].literal(), Some("-X" | "--request"))
            && matches!(pair[1].literal(), Some("GET" | "HEAD"))
    });
    if uses(SENDS) && !get {
        return judge.act(Kind::Network, format!("Send something to {place}: “{}”.", shown(text)));
    }
    let known = words.iter().all(|word| match word.literal() {
        Some(word) if word.starts_with('-') || word == "=https" => PLAIN.contains(&word),
        Some(word) => is_address(word),
        None => false,
    });
    // `wget` writes a file unless it is told otherwise.
    let writes = name == "wget" && !uses(&["-O-", "-qO-", "--spider"]);
    if known && !writes {
        return judge.act(Kind::Reads, format!("Look up {place}."));
    }
    judge.act(Kind::Network, format!("Talk to {place}: “{}”.", shown(text)));
}

/// The machine that is talked to.
fn place(words: &[Value]) -> String {
    let mut addresses = operands(words).filter(|word| word.literal().is_none_or(is_address));
    match addresses.next() {
        Some(Value::Literal(address)) => {
            let rest = address.split_once("://").map_or(address.as_str(), |(_, rest)| rest);
            let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
            // What stands before an @ is a name and a password.
            shown(host.rsplit('@').next().unwrap_or(host))
        }
        Some(word) => shown(word.written()),
        None => "another machine".into(),
    }
}

fn is_address(word: &str) -> bool {
    let web = word.starts_with("https://") || word.starts_with("http://");
    let bare = !word.contains("://") && word.contains('.') && !word.starts_with(['.', '/', '@']);
    web || bare
}

/// The machine from which a part of a pipeline loads something.
pub(super) fn source(node: Node<'_>, reader: &Reader<'_>) -> Option<String> {
    if node.kind() != "command" {
        let mut cursor = node.walk();
        let children: Vec<_> = node.named_children(&mut cursor).collect();
        return match node.kind() {
            "redirected_statement" | "list" | "subshell" | "compound_statement" => {
                children.into_iter().find_map(|child| source(child, reader))
            }
            _ => None,
        };
    }
    let mut cursor = node.walk();
    let words: Vec<_> = node
        .named_children(&mut cursor)
        .filter(|child| child.kind() == "command_name" || is_word(child.kind()))
        .map(|child| match child.kind() {
            "command_name" => reader.value(child.named_child(0).unwrap_or(child)),
            _ => reader.value(child),
        })
        .collect();
    let (name, rest) = words.split_first()?;
    let name = name.literal()?;
    matches!(name.rsplit('/').next(), Some("curl" | "wget")).then(|| place(rest))
}
