//! Whatever a policy judges, other readers of JSON see the same value there.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // a test may run other programs

mod agree;
mod documents;

#[path = "../../../../testing/skipped.rs"]
mod skipped;

use aaep_policy::{Policy, Verdict};
use agree::{Leaf, agrees, leaves};
use documents::{Seed, document};
use skipped::skipped;

const CHEAP: &str = r#"
[[rule]]
tool = "pay"
where = { "/order/amount" = { at_most = 20 } }
risk_level = "low"
reversibility = "reversible"
verdict = "silent"
"#;

fn verdict(arguments: &str) -> Verdict {
    Policy::parse(CHEAP).unwrap().decide("pay", arguments).verdict
}

// covers: T27, E1
#[test]
fn a_second_amount_behind_a_hundred_odd_numbers_is_not_overlooked() {
    assert_eq!(verdict(r#"{"order":{"amount":5}}"#), Verdict::Silent);
    assert_eq!(verdict(r#"{"order":{"amount":5,"amount":9001}}"#), Verdict::Ask);
    let odd = "9007199254740993,".repeat(200);
    let hidden = format!(r#"{{"x":[{odd}0],"order":{{"amount":5,"amount":9001}}}}"#);
    // What Python, JavaScript and serde_json read.
    let read: serde_json::Value = serde_json::from_str(&hidden).unwrap();
    assert_eq!(read["order"]["amount"], 9001);
    assert_eq!(verdict(&hidden), Verdict::Ask);
    // The odd numbers alone change nothing.
    assert_eq!(verdict(&hidden.replace(",\"amount\":9001", "")), Verdict::Silent);
}

// covers: T27, E22
#[test]
fn a_number_that_readers_round_is_not_judged() {
    for amount in ["20.000000000000000001", "-9007199254740993", "-1e400", "1e-400"] {
        assert_eq!(
            verdict(&format!(r#"{{"order":{{"amount":{amount}}}}}"#)),
            Verdict::Ask,
            "{amount}"
        );
    }
    assert_eq!(verdict(r#"{"order":{"amount":20.0}}"#), Verdict::Silent);
}

/// How many documents are made, and how many of the fuzzer's are tried at most.
const DOCUMENTS: u64 = 4000;

/// Places of one document that are tried.
const MAX_LEAVES: usize = 64;

/// What the fuzz target `readers` has found, if it has run here.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/readers");

fn documents() -> impl Iterator<Item = String> {
    (0..DOCUMENTS).map(|seed| document(&mut Seed::new(seed))).chain(corpus(DOCUMENTS as usize))
}

/// Documents of the fuzzer, at most so many.
fn corpus(at_most: usize) -> impl Iterator<Item = String> {
    let files = std::fs::read_dir(CORPUS).into_iter().flatten().flatten();
    let mut files: Vec<_> = files.map(|file| file.path()).collect();
    files.sort();
    let texts = files.into_iter().filter_map(|file| std::fs::read_to_string(file).ok());
    texts.take(at_most)
}

/// Checks what a reader found in a document; how much of it the policy judged.
fn check(reader: &str, document: &str, leaves: &[(String, Leaf)]) -> usize {
    // The numbers that only fill the list of faults are all the same.
    let named = leaves.iter().filter(|(pointer, _)| !pointer.starts_with("/odd/")).take(MAX_LEAVES);
    let judged = named.filter(|leaf| {
        let agreed = agrees(document, leaf);
        assert_ne!(agreed, Some(false), "{reader} reads {leaf:?} in {document}");
        agreed.is_some()
    });
    judged.count()
}

// covers: T27, E1, E22
#[test]
fn serde_json_reads_what_the_policy_judges() {
    let mut judged = 0;
    for document in documents() {
        // What it refuses, no tool of ours runs with.
        let Ok(read) = serde_json::from_str(&document) else { continue };
        judged += check("serde_json", &document, &leaves(&read));
    }
    assert!(judged > 1000, "{judged} values were judged");
}

mod guests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// Both print, for every document of a line, what they read: `[[pointer, kind, text], …]`, or
    /// `null` for one that they refuse.
    const PYTHON: &str = r#"
import json, sys
def walk(value, pointer, out):
    if isinstance(value, bool): out.append([pointer, "flag", "true" if value else "false"])
    elif isinstance(value, (int, float)): out.append([pointer, "number", repr(value)])
    elif isinstance(value, str): out.append([pointer, "text", value])
    elif isinstance(value, list):
        for index, item in enumerate(value): walk(item, f"{pointer}/{index}", out)
    elif isinstance(value, dict):
        for name, item in value.items():
            walk(item, pointer + "/" + name.replace("~", "~0").replace("/", "~1"), out)
    return out
for line in sys.stdin:
    try: print(json.dumps(walk(json.loads(json.loads(line)), "", [])))
    except (ValueError, RecursionError): print("null")
"#;
    const NODE: &str = r#"
const walk = (value, pointer, out) => {
  if (typeof value === "boolean") out.push([pointer, "flag", String(value)]);
  else if (typeof value === "number") out.push([pointer, "number", String(value)]);
  else if (typeof value === "string") out.push([pointer, "text", value]);
  else if (Array.isArray(value)) value.forEach((item, index) => walk(item, `${pointer}/${index}`, out));
  else if (value !== null) for (const [name, item] of Object.entries(value))
    walk(item, `${pointer}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, out);
  return out;
};
const lines = require("fs").readFileSync(0, "utf8").split("\n").filter(Boolean);
for (const line of lines) {
  let read = null;
  try { read = walk(JSON.parse(JSON.parse(line)), "", []); } catch {}
  console.log(JSON.stringify(read));
}
"#;

    fn answers_of(program: &str, arguments: &[&str], documents: &[String]) -> Option<Vec<String>> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let mut input = child.stdin.take().unwrap();
        let lines: Vec<String> =
            documents.iter().map(|document| serde_json::to_string(document).unwrap()).collect();
        let writer =
            std::thread::spawn(move || input.write_all((lines.join("\n") + "\n").as_bytes()));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        assert!(output.status.success(), "{program} {:?}", output.status);
        Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
    }

    fn reads_the_same(program: &str, arguments: &[&str]) {
        let documents: Vec<String> = documents().collect();
        let Some(answers) = answers_of(program, arguments, &documents) else {
            skipped(&format!("{program} does not run here."));
            return;
        };
        assert_eq!(answers.len(), documents.len());
        let mut judged = 0;
        for (document, answer) in documents.iter().zip(&answers) {
            // A lone surrogate that a program prints again is nothing that a rule could name.
            let Ok(read) = serde_json::from_str::<serde_json::Value>(answer) else { continue };
            let leaves: Vec<(String, Leaf)> =
                read.as_array().into_iter().flatten().map(leaf).collect();
            judged += check(program, document, &leaves);
        }
        println!("{program} reads {judged} values as the policy judges them.");
        assert!(judged > 1000, "{judged} values were judged");
    }

    fn leaf(found: &serde_json::Value) -> (String, Leaf) {
        let text = |index: usize| found[index].as_str().unwrap().to_owned();
        let leaf = match &*text(1) {
            "flag" => Leaf::Flag(text(2) == "true"),
            "number" => Leaf::Number(text(2)),
            _ => Leaf::Text(text(2)),
        };
        (text(0), leaf)
    }

    // covers: T27, E1, E22
    #[test]
    #[ignore = "needs Python; `cargo xtask guests` runs it"]
    fn python_reads_what_the_policy_judges() {
        reads_the_same("python3", &["-c", PYTHON]);
    }

    // covers: T27, E1, E22
    #[test]
    #[ignore = "needs Node.js; `cargo xtask guests` runs it"]
    fn javascript_reads_what_the_policy_judges() {
        reads_the_same("node", &["-e", NODE]);
    }
}
