//! What must not happen does not compile. Each file in `misuse/` marks the lines on which the
//! compiler has to object, and with which error: `//~ E0382`.
//!
//! The compiler is called directly, with the library that the tests use: that takes a second, where a
//! build of its own would take minutes; and codes stay when the compiler's words change.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)]

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A line, and what is wrong there.
type Objections = BTreeSet<(u64, String)>;

fn marked(source: &str) -> Objections {
    let line = |(number, line): (u64, &str)| {
        let (_, codes) = line.split_once("//~ ")?;
        Some(
            codes.split_whitespace().map(move |code| (number, code.to_owned())).collect::<Vec<_>>(),
        )
    };
    (1..).zip(source.lines()).filter_map(line).flatten().collect()
}

fn objections(file: &Path, library: &Path, scratch: &Path) -> Objections {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--edition", "2024", "--emit", "metadata", "--error-format", "json"]);
    command.arg("--extern").arg(format!("aaep_agent={}", library.display()));
    // The library lies beside what it needs, or above.
    let folder = library.parent().unwrap();
    for folder in [folder.to_owned(), folder.join("deps")] {
        command.arg("-L").arg(format!("dependency={}", folder.display()));
    }
    let output = command.arg("--out-dir").arg(scratch).arg(file).output().unwrap();
    let mut found = Objections::new();
    for line in String::from_utf8(output.stderr).unwrap().lines() {
        let message: Value = serde_json::from_str(line).unwrap();
        let at =
            message["spans"].as_array().unwrap().iter().find(|span| span["is_primary"] == true);
        if let (true, Some(at)) = (message["level"] == "error", at) {
            let code = message["code"]["code"].as_str().unwrap_or("none");
            found.insert((at["line_start"].as_u64().unwrap(), code.to_owned()));
        }
    }
    found
}

// covers: T12, C1, C3, C15, T1, T34, I1
#[test]
fn misuse_does_not_compile() {
    let library = support::built_library();
    let scratch = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/misuse");
    let mut files: Vec<_> = folder.read_dir().unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 12, "where is the misuse?");
    let mut wrong = Vec::new();
    for file in files {
        let wanted = marked(&std::fs::read_to_string(&file).unwrap());
        let found = objections(&file, &library, scratch.path());
        // Only the right use, which shows that the rest fails for its own reasons, compiles.
        let right = found.is_empty() == file.ends_with("right_use.rs");
        if found != wanted || !right {
            wrong.push(format!("{}: {found:?} instead of {wanted:?}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
