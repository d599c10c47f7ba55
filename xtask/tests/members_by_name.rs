//! Only `aaep-types` knows the wire: nobody else looks members of our own messages up by name. This
//! reads the sources and finds lookups by a name that stands in them.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // reads the sources

use std::fs;
use std::path::{Path, PathBuf};

/// Places that read JSON which is not ours, or which is not valid yet, and why. A place is a file, or
/// a folder with everything in it.
const EXEMPT: &[(&str, &str)] = &[
    ("aaep-agent/src/confirmation.rs", "arguments of a tool: any one JSON value, of the agent's"),
    ("aaep-bridge/src", "coding agents' hooks and settings, ACP and MCP: formats of others"),
    ("aaep-cli/src/admin.rs", "lists of the hub's administration, no messages"),
    ("aaep-cli/src/acp", "ACP: a format of others"),
    ("aaep-cli/src/audit/running.rs", "answers of the hub's administration, no messages"),
    ("aaep-cli/src/demo/talk.rs", "shows newcomers the bare wire, without our libraries"),
    ("aaep-cli/src/inspect", "reads recordings of any producer, leniently"),
    ("aaep-cli/src/judge.rs", "names the type of what may be no message at all"),
    ("aaep-cli/src/listen/json.rs", "the command's own lines of input and output, no messages"),
    ("aaep-cli/src/listen/talk/saying.rs", "reads events of any producer, leniently"),
    ("aaep-cli/src/manifest.rs", "JSON Web Keys, and the command's own lines of output"),
    ("aaep-conformance/src", "a judge does not share our reading of what it judges"),
    ("aaep-hub/src/agent/policy.rs", "weighs what an agent wrote before it is a valid event"),
    ("aaep-hub/src/config", "the configuration file: TOML"),
    ("aaep-hub/src/redaction.rs", "takes secrets out of what an agent wrote before it is an event"),
    ("aaep-hub/src/http/messages.rs", "tells apart messages of clients that know no handshake"),
    ("aaep-hub/src/http/page.rs", "the page's code for a token, no message"),
    ("aaep-hub/src/http/rejection.rs", "says why a message cannot be read: it may be anything"),
    ("aaep-hub/src/tokens.rs", "the configuration file: TOML"),
    ("aaep-hub/src/manifest.rs", "puts the manifest together; aaep-types reads it back in a test"),
    ("aaep-hub/src/openapi", "the OpenAPI document: JSON Schema"),
    (
        "aaep-signature/src/verify.rs",
        "reads what is signed before it is believed, as JSON of anybody",
    ),
    ("aaep-subscriber/src/client/http.rs", "the text of a refusal, which may be a proxy's"),
    ("aaep-subscriber/src/client/trust.rs", "who any producer says it is, before it is believed"),
    ("aaep-subscriber/src/inbox", "reads messages of any producer, leniently"),
    ("aaep-subscriber/src/words", "reads events of any producer, leniently; message files"),
    (
        "aaep-transport/src/stdio/envelope.rs",
        "JSON-RPC: a format of others; of a message only its type, which chooses the method",
    ),
];

/// Calls that look something up by a name in quotes.
const LOOKUPS: [&str; 5] = [".find(\"", ".text(\"", ".get(\"", ".member(\"", ".pointer(\""];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            sources(&path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// Whether a line looks a member up by a name that stands in it.
fn looks_up(line: &str) -> bool {
    if line.trim_start().starts_with("//") {
        return false;
    }
    // Headers and paths of HTTP are no members.
    let of_http = |before: &str| {
        ["headers", "headers()", "headers.as_ref()?", "client"]
            .iter()
            .any(|end| before.ends_with(end))
    };
    let calls = LOOKUPS.iter().any(|call| match line.split_once(call) {
        // With a second argument it writes one.
        Some((before, rest)) => {
            let reads = rest.split_once('"').is_some_and(|(_, after)| after.starts_with(')'));
            reads && !of_http(before)
        }
        None => false,
    });
    let indexes = line.match_indices("[\"").any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_some_and(|last| last.is_alphanumeric() || matches!(last, '_' | ')' | ']'))
    });
    calls || indexes
}

/// The lines of a file, without its tests, that look members up by name.
fn lookups(text: &str) -> Vec<(usize, &str)> {
    let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
    let lines = code.lines().enumerate().filter(|(_, line)| looks_up(line));
    lines.map(|(at, line)| (at + 1, line.trim())).collect()
}

#[test]
fn nobody_outside_aaep_types_looks_members_up_by_name() {
    let crates = crates();
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let folder = entry.unwrap().path();
        if folder.file_name().unwrap() != "aaep-types" && folder.join("src").is_dir() {
            sources(&folder.join("src"), &mut files);
        }
    }
    assert!(files.len() > 200, "the sources are not where they were");
    let (mut wrong, mut needed) = (Vec::new(), Vec::new());
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let name = path.strip_prefix(&crates).unwrap().to_str().unwrap().replace('\\', "/");
        let exempt = EXEMPT.iter().find(|(place, _)| {
            name.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let found = lookups(&text);
        match exempt {
            Some((place, _)) if !found.is_empty() => needed.push(*place),
            Some(_) => {}
            None => wrong.extend(found.iter().map(|(at, line)| format!("{name}:{at}: {line}"))),
        }
    }
    assert!(
        wrong.is_empty(),
        "let aaep-types read these, or say in this test why not:\n{}",
        wrong.join("\n")
    );
    for (place, _) in EXEMPT {
        assert!(needed.contains(place), "{place} looks nothing up any more; take it off the list");
    }
}

#[test]
fn lookups_are_told_from_what_only_looks_like_one() {
    for line in ["x.find(\"type\")", "event[\"type\"]", "a()[\"b\"]", "v.pointer(\"/a/b\")"] {
        assert!(looks_up(line), "{line}");
    }
    let others = [
        "// x.find(\"a\")",
        "[\"a\", \"b\"]",
        "headers.get(\"a\")",
        "x.find(a)",
        "x.text(\"a\", b)",
    ];
    for line in others {
        assert!(!looks_up(line), "{line}");
    }
    let text = "x[\"a\"]\n#[cfg(test)]\nmod tests {\n    x[\"b\"]\n}";
    assert_eq!(lookups(text), [(1, "x[\"a\"]")]);
}
