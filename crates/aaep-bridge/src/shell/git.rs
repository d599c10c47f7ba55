//! What `git` does.

use super::Judge;
use super::commands::operands;
use super::word::Value;
use crate::act::{Kind, shown};

/// Commands that only look.
const READS: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "rev-parse",
    "ls-files",
    "ls-tree",
    "blame",
    "describe",
    "shortlog",
    "cat-file",
    "rev-list",
    "merge-base",
    "name-rev",
    "grep",
    "version",
    "help",
    "whatchanged",
    "diff-tree",
    "for-each-ref",
    "show-ref",
    "count-objects",
    "check-ignore",
];

/// Options with which they write, or run other programs.
const SHARP: &[&str] = &[
    "--output",
    "--ext-diff",
    "--textconv",
    "-O",
    "--open-files-in-pager",
    "--exec",
    "--upload-pack",
    "--receive-pack",
    "-c",
    "--config-env",
];

pub(super) fn judge(judge: &mut Judge<'_>, words: &[Value], text: &str) {
    if words.iter().any(|word| word.literal().is_none()) && !is_message(words) {
        return judge.unclear("what it works on is known only when it runs", text);
    }
    let mut rest = words;
    while let Some(("--no-pager", more)) =
        rest.split_first().and_then(|(word, more)| Some((word.literal()?, more)))
    {
        rest = more;
    }
    let Some((verb, rest)) = rest.split_first() else {
        return judge.act(Kind::Reads, "Run “git”.");
    };
    let verb = verb.literal().unwrap_or_default();
    if verb.starts_with('-') && verb != "--version" {
        return judge.unclear("it has options that change what git does", text);
    }
    let has = |options: &[&str]| {
        rest.iter()
            .filter_map(Value::literal)
            .any(|word| options.iter().any(|option| word.starts_with(option)))
    };
    let named = || {
        let words: Vec<_> = operands(rest).map(|word| shown(word.written())).collect();
        words.join(" ")
    };
    match verb {
        "push" => {
            let force = has(&["-f", "--force", "--delete", "-d", "--mirror", "--prune", "+"]);
            let how = if force { "Push over what is there" } else { "Push" };
            let to = match named() {
                to if to.is_empty() => "the usual place".to_owned(),
                to => to,
            };
            judge.act(Kind::Publishes, format!("{how} to {}.", shown(&to)));
        }
        _ if READS.contains(&verb) && !has(SHARP) => {
            judge.act(Kind::Reads, format!("Run “{}”.", shown(text)))
        }
        "branch" | "tag" | "remote" | "stash" | "config" | "worktree" if only_lists(verb, rest) => {
            judge.act(Kind::Reads, format!("Run “{}”.", shown(text)));
        }
        "add" | "commit" if !has(SHARP) && !has(&["--amend"]) => {
            judge.act(Kind::Changes, format!("Run “{}”.", shown(text)));
        }
        "fetch" if !has(SHARP) => judge.act(Kind::Reads, format!("Run “{}”.", shown(text))),
        "switch" | "checkout"
            if matches!(rest.first().and_then(Value::literal), Some("-b" | "-c")) =>
        {
            judge.act(Kind::Changes, format!("Begin a branch: “{}”.", shown(text)));
        }
        "checkout" | "switch" | "restore" | "reset" => {
            judge.act(
                Kind::Deletes,
                format!(
                    "Put files back, and throw away changes that are not committed: “{}”.",
                    shown(text)
                ),
            );
        }
        "clean" | "rm" => judge.act(Kind::Deletes, format!("Delete files: “{}”.", shown(text))),
        "branch" | "tag" | "stash" | "reflog" | "gc" | "prune" | "filter-branch" | "update-ref" => {
            judge.act(Kind::Deletes, format!("Change what git remembers: “{}”.", shown(text)));
        }
        _ => judge.act(Kind::Unknown, format!("Run “{}”.", shown(text))),
    }
}

/// `git commit -m "$(…)"`: what is inside was judged, and the message decides nothing.
fn is_message(words: &[Value]) -> bool {
    let first = words.first().and_then(Value::literal);
    let unknown = |at: usize| words[at].literal().is_none();
    first == Some("commit")
        && (1..words.len()).all(|at| !unknown(at) || words[at - 1].literal() == Some("-m"))
}

fn only_lists(verb: &str, rest: &[Value]) -> bool {
    let first = rest.first().and_then(Value::literal);
    let alone = rest.len() <= 1;
    match verb {
        "branch" => rest.iter().all(|word| {
            matches!(
                word.literal(),
                Some("-a" | "-r" | "-v" | "-vv" | "--list" | "--all" | "--show-current")
            )
        }),
        "tag" => rest.is_empty() || (alone && matches!(first, Some("-l" | "--list"))),
        "remote" => rest.is_empty() || (alone && matches!(first, Some("-v"))),
        "stash" | "worktree" => alone && matches!(first, Some("list")),
        "config" => matches!(first, Some("--get" | "--list" | "-l")),
        _ => false,
    }
}
