//! `cargo xtask rules --mutate N`: whether the table of rules is true. For rules picked by a seed, what
//! their markers mark is disabled in a copy of the workspace, and a test that claims to cover the rule
//! must fail.

mod disable;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::requirements::{Place, Table};
use crate::workspace::{cargo, root, target_dir};

const USUAL_SEED: u64 = 1;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut wanted, mut seed, mut only) = (None, USUAL_SEED, Vec::new());
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--mutate" => wanted = Some(value()?.parse().context("--mutate takes a number")?),
            "--seed" => seed = value()?.parse().context("--seed takes a number")?,
            "--rule" => only.push(value()?.clone()),
            _ => bail!("unknown argument {word:?}; known are --mutate N, --seed S and --rule ID"),
        }
    }
    match wanted {
        Some(wanted) => mutate(wanted, seed, &only),
        None => bail!("say how many rules to try: --mutate N"),
    }
}

/// What became of one rule.
enum Verdict {
    /// This test fails without it.
    Noticed(String),
    /// Nothing that claims to cover it does.
    Unnoticed,
    /// Nobody knows how to take it away, or it does not compile then.
    Unknown,
}

/// Tries so many rules.
pub(crate) fn mutate(wanted: usize, seed: u64, only: &[String]) -> Result<()> {
    let table = Table::read()?;
    let copy = Copy::make()?;
    let mut ids: Vec<&str> =
        table.ids().filter(|id| only.is_empty() || only.iter().any(|it| it == id)).collect();
    shuffle(&mut ids, seed);
    let (mut tried, mut unknown, mut unnoticed) = (0, 0, Vec::new());
    for id in ids {
        if tried == wanted {
            break;
        }
        match judge(&table, &copy, id)? {
            Verdict::Noticed(test) => println!("{id}: noticed by {test}"),
            Verdict::Unnoticed => {
                println!("{id}: nobody notices");
                unnoticed.push(id.to_owned());
            }
            Verdict::Unknown => {
                unknown += 1;
                continue;
            }
        }
        tried += 1;
    }
    println!(
        "{tried} rules tried, {} unnoticed; {unknown} cannot be disabled mechanically.",
        unnoticed.len()
    );
    if !unnoticed.is_empty() {
        bail!("nothing that claims to cover them fails without {}", unnoticed.join(", "));
    }
    Ok(())
}

/// Takes the rule's code away in each place and each way that is known, until a test notices.
fn judge(table: &Table, copy: &Copy, id: &str) -> Result<Verdict> {
    let mut verdict = Verdict::Unknown;
    for place in table.enforced(id) {
        if !place.path.ends_with(".rs") {
            continue;
        }
        let text = std::fs::read_to_string(root().join(&place.path))?;
        let targets = targets(&table.covered(id), &place.path);
        if targets.is_empty() {
            continue;
        }
        let ways = disable::without_marked(&text, place.line - 1);
        // A test that fails anyway notices nothing.
        if !ways.is_empty() && !matches!(copy.notices(&targets)?, Some(None)) {
            bail!("{id}: the tests that cover it fail though nothing is disabled");
        }
        for disabled in ways {
            copy.write(&place.path, &disabled)?;
            let noticed = copy.notices(&targets);
            copy.write(&place.path, &text)?;
            match noticed? {
                Some(Some(test)) => return Ok(Verdict::Noticed(test)),
                Some(None) => verdict = Verdict::Unnoticed,
                None => {}
            }
        }
    }
    Ok(verdict)
}

/// What `cargo test` is asked for: a package, a target, and names of tests.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    /// Tests of another package are asked last.
    elsewhere: bool,
    package: String,
    target: Vec<String>,
    tests: Vec<String>,
}

fn targets(covered: &[(String, Place)], enforced: &str) -> Vec<Target> {
    let mut found: BTreeMap<(String, Vec<String>), Vec<String>> = BTreeMap::new();
    for (test, place) in covered {
        let Some((package, target)) = target_of(&place.path) else { continue };
        let name = if place.path.starts_with("vectors/") { String::new() } else { test.clone() };
        found.entry((package, target)).or_default().push(name);
    }
    let home = package_of(enforced);
    let mut all: Vec<Target> = found
        .into_iter()
        .map(|((package, target), tests)| Target {
            elsewhere: home.as_deref() != Some(&*package),
            package,
            target,
            tests,
        })
        .collect();
    all.sort();
    all
}

/// `crates/aaep-types/...` is of the package `aaep-types`.
fn package_of(path: &str) -> Option<String> {
    path.strip_prefix("crates/")?.split_once('/').map(|(package, _)| package.to_owned())
}

/// The target that a test of this file belongs to; vectors have runners of their own.
fn target_of(path: &str) -> Option<(String, Vec<String>)> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    if let Some(vector) = path.strip_prefix("vectors/") {
        let streams = vector.starts_with("streams/");
        let (package, target) =
            if streams { ("aaep-conformance", "streams") } else { ("aaep-types", "vectors") };
        return Some((package.to_owned(), words(&["--test", target])));
    }
    let package = package_of(path)?;
    let inside = path.split_once(&format!("{package}/"))?.1;
    let Some(test) = inside.strip_prefix("tests/") else {
        return Some((package, words(&["--lib"])));
    };
    let name = test.split('/').next()?;
    Some((package, words(&["--test", name.strip_suffix(".rs").unwrap_or(name)])))
}

/// A copy of the workspace, with a target folder of its own, so that what is disabled there is disabled
/// nowhere else.
struct Copy {
    folder: PathBuf,
}

impl Copy {
    fn make() -> Result<Self> {
        let copy = Self { folder: target_dir().join("rules/copy") };
        let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output()?;
        if !listed.status.success() {
            bail!("git cannot list the files of the workspace");
        }
        for path in String::from_utf8(listed.stdout)?.split('\0').filter(|path| !path.is_empty()) {
            let from = root().join(path);
            if from.is_file() {
                copy.write(path, std::fs::read(&from)?)?;
            }
        }
        Ok(copy)
    }

    /// Writes a file if it differs: what is the same need not be compiled again.
    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> Result<()> {
        let to = self.folder.join(path);
        if std::fs::read(&to).is_ok_and(|known| known == bytes.as_ref()) {
            return Ok(());
        }
        std::fs::create_dir_all(to.parent().unwrap_or(&self.folder))?;
        std::fs::write(&to, bytes).with_context(|| format!("could not write {}", to.display()))
    }

    /// Which test fails, if any; none at all if it does not compile.
    fn notices(&self, targets: &[Target]) -> Result<Option<Option<String>>> {
        for target in targets {
            if !self.cargo(target, &["--no-run"])?.status.success() {
                return Ok(None);
            }
            let mut names = vec!["--"];
            names.extend(target.tests.iter().filter(|name| !name.is_empty()).map(String::as_str));
            let output = self.cargo(target, &names)?;
            if !output.status.success() {
                let text = String::from_utf8_lossy(&output.stdout);
                let failed = text.lines().find_map(|line| {
                    line.strip_prefix("test ")?.strip_suffix(" ... FAILED").map(str::to_owned)
                });
                let whole = || format!("{} {}", target.package, target.target.join(" "));
                return Ok(Some(Some(failed.unwrap_or_else(whole))));
            }
        }
        Ok(Some(None))
    }

    fn cargo(&self, target: &Target, more: &[&str]) -> Result<std::process::Output> {
        let mut command = cargo(["test", "--quiet", "--package", &target.package]);
        command.args(&target.target).args(more).current_dir(&self.folder).stdin(Stdio::null());
        command
            .env("CARGO_TARGET_DIR", target_folder(&self.folder))
            .output()
            .context("cargo did not run")
    }
}

fn target_folder(copy: &Path) -> PathBuf {
    copy.with_file_name("target")
}

/// The same seed is the same order.
fn shuffle(ids: &mut [&str], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for at in (1..ids.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ids.swap(at, (state % (at as u64 + 1)) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_asked_for_where_it_stands() {
        let of = |path: &str| {
            target_of(path).map(|(package, target)| format!("{package} {}", target.join(" ")))
        };
        assert_eq!(of("crates/aaep-types/src/id.rs").as_deref(), Some("aaep-types --lib"));
        assert_eq!(
            of("crates/aaep-engine/tests/consent.rs").as_deref(),
            Some("aaep-engine --test consent")
        );
        assert_eq!(
            of("crates/aaep-cli/tests/hub/agents.rs").as_deref(),
            Some("aaep-cli --test hub")
        );
        assert_eq!(of("vectors/invalid/E7.x.json").as_deref(), Some("aaep-types --test vectors"));
        assert_eq!(
            of("vectors/streams/bad/T1.x.jsonl").as_deref(),
            Some("aaep-conformance --test streams")
        );
        assert_eq!(of("web/tests/unit/a.test.js"), None);
    }

    #[test]
    fn the_tests_of_the_same_package_come_first() {
        let place = |path: &str| Place { path: path.into(), line: 1 };
        let covered = [
            ("far".to_owned(), place("crates/aaep-cli/tests/hub/a.rs")),
            ("near".to_owned(), place("crates/aaep-types/src/id.rs")),
            ("nearer".to_owned(), place("crates/aaep-types/src/text.rs")),
        ];
        let targets = targets(&covered, "crates/aaep-types/src/id.rs");
        assert_eq!(targets[0].tests, ["near", "nearer"]);
        assert_eq!(targets[1].package, "aaep-cli");
    }

    #[test]
    fn a_seed_is_an_order() {
        let order = |seed| {
            let mut ids = ["A1", "A2", "A3", "A4", "A5"];
            shuffle(&mut ids, seed);
            ids
        };
        assert_eq!(order(7), order(7));
        assert!((0..20).any(|seed| order(seed) != order(7)));
    }
}
