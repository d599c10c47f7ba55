//! A copy of the workspace in which everything that is marked can be taken away while it runs: one build
//! for all rules, and a file that says what is gone.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::site::{self, Way};
use super::tests::Target;
use crate::requirements::Place;
use crate::workspace::{cargo, root, target_dir};

/// Where the types' problems are gathered. A line of an `object!` table is taken away there: the
/// problems that name its rule are not reported.
const REPORT: &str = "crates/aaep-types/src/report.rs";

/// A test that takes longer does not end.
const PATIENCE: Duration = Duration::from_secs(60);

/// What can be taken away: `path:line:number`, or a rule of a table.
pub(super) type Switch = String;

pub(super) struct Build {
    folder: PathBuf,
    /// The ways of each file that compile.
    ways: BTreeMap<String, Vec<(Switch, Way)>>,
    /// The files as they were when the ways were found: somebody may go on writing.
    texts: BTreeMap<String, String>,
    programs: BTreeMap<(String, String), PathBuf>,
}

impl Build {
    /// Copies the workspace, with every way to take away what these places mark.
    pub(super) fn prepare(places: &BTreeSet<Place>) -> Result<Self> {
        let folder = target_dir().join("rules");
        let (ways, texts, programs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut build = Self { folder, ways, texts, programs };
        std::fs::create_dir_all(&build.folder)?;
        build.take_away(None)?;
        let unfit = build.unfit();
        for place in places {
            let text = std::fs::read_to_string(root().join(&place.path))?;
            let mut found = build.ways_at(place, &text);
            found.retain(|(switch, _)| !unfit.contains(&fingerprint(switch, &text)));
            build.ways.entry(place.path.clone()).or_default().extend(found);
            build.texts.insert(place.path.clone(), text);
        }
        let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output()?;
        if !listed.status.success() {
            bail!("git cannot list the files of the workspace");
        }
        for path in String::from_utf8(listed.stdout)?.split('\0').filter(|path| !path.is_empty()) {
            build.copy(path)?;
        }
        Ok(build)
    }

    fn ways_at(&self, place: &Place, text: &str) -> Vec<(Switch, Way)> {
        let mut number = 0;
        let name = |number: usize| format!("{}:{}:{number}", place.path, place.line);
        let off = || {
            number += 1;
            format!("({} == {:?}.as_bytes())", self.gone(), name(number - 1))
        };
        let ways = site::ways(text, place.line - 1, off);
        // What tried to be a way and was none has a number too.
        let named = |way: Way| {
            let switch = (0..number).map(name).find(|it| way.iter().any(|at| at.text.contains(it)));
            switch.map(|switch| (switch, way))
        };
        ways.into_iter().filter_map(named).collect()
    }

    /// An expression for what is gone; read once, and not from the environment, which tests clear.
    fn gone(&self) -> String {
        let path = self.folder.join("gone");
        format!(
            "{{ static GONE: ::std::sync::OnceLock<Vec<u8>> = ::std::sync::OnceLock::new(); \
             GONE.get_or_init(|| ::std::fs::read({path:?}).unwrap_or_default()) }}.as_slice()"
        )
    }

    fn copy(&self, path: &str) -> Result<()> {
        let (from, to) = (root().join(path), self.folder.join("copy").join(path));
        if !from.is_file() {
            return Ok(());
        }
        let mut bytes = match (self.texts.get(path), self.ways.get(path)) {
            (Some(text), Some(ways)) => site::apply(text, ways.iter().map(|(_, way)| way)).into(),
            _ => std::fs::read(&from)?,
        };
        if path == REPORT {
            bytes = self.deaf_report(&String::from_utf8(bytes)?).into();
        }
        // What is the same need not be compiled again.
        if std::fs::read(&to).is_ok_and(|known| known == bytes) {
            return Ok(());
        }
        std::fs::create_dir_all(to.parent().unwrap_or(&self.folder))?;
        std::fs::write(&to, bytes).with_context(|| format!("could not write {}", to.display()))
    }

    /// The report of the types, with a way to leave out one rule.
    fn deaf_report(&self, text: &str) -> String {
        let deaf = format!(
            "rule: Rule, text: fmt::Arguments<'_>) {{ if {} == format!(\"rule {{}}\", rule.id).as_bytes() {{ return; }}",
            self.gone()
        );
        let text = text.replace("rule: Rule, text: fmt::Arguments<'_>) {", &deaf);
        let deaf = |args: &str| deaf.replace("rule: Rule, text: fmt::Arguments<'_>", args);
        let missing = "name: &str, rule: Rule";
        let wrong = "rule: Rule, wanted: &str, found: Raw<'_>";
        text.replace(&format!("{missing}) {{"), &deaf(missing))
            .replace(&format!("{wrong}) {{"), &deaf(wrong))
    }

    /// The ways to take away what this place marks.
    pub(super) fn switches(&self, place: &Place) -> Vec<Switch> {
        let prefix = format!("{}:{}:", place.path, place.line);
        let of_file = self.ways.get(&place.path).into_iter().flatten();
        of_file.map(|(switch, _)| switch).filter(|it| it.starts_with(&prefix)).cloned().collect()
    }

    pub(super) fn take_away(&self, switch: Option<&str>) -> Result<()> {
        Ok(std::fs::write(self.folder.join("gone"), switch.unwrap_or_default())?)
    }

    /// Compiles these targets. A way that does not compile is none: it is left out, and remembered.
    pub(super) fn compile(&mut self, targets: &BTreeSet<(String, String)>) -> Result<()> {
        let packages: BTreeSet<&str> = targets.iter().map(|(package, _)| &**package).collect();
        for package in packages {
            // Some tests need features that only other packages switch on.
            let mut arguments = vec!["test", "--no-run", "--message-format=json"];
            arguments.extend(["--all-features", "-p", package]);
            for (_, target) in targets.iter().filter(|(of, _)| of == package) {
                match target.as_str() {
                    "" if root().join("crates").join(package).join("src/lib.rs").is_file() => {
                        arguments.push("--lib");
                    }
                    "" => arguments.push("--bins"),
                    target => arguments.extend(["--test", target]),
                }
            }
            while !self.compiles(&arguments)? {}
        }
        Ok(())
    }

    fn compiles(&mut self, arguments: &[&str]) -> Result<bool> {
        let mut command = cargo(arguments.iter().copied());
        // Nothing is shared with the workspace: to cargo, a package of the copy is that of the workspace.
        let output = command
            .current_dir(self.folder.join("copy"))
            .env("CARGO_TARGET_DIR", self.folder.join("target"))
            .stdin(Stdio::null())
            .output()
            .context("cargo did not run")?;
        let (mut errors, mut unfit) = (Vec::new(), BTreeSet::new());
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
            if let Some(program) = message["executable"].as_str() {
                self.note_program(&message, program);
            }
            if message["message"]["level"] == "error" {
                errors.push(message["message"]["rendered"].as_str().unwrap_or("?").to_owned());
                self.blame(&message["message"], &mut unfit);
            }
        }
        if output.status.success() {
            return Ok(true);
        }
        if unfit.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("the copy does not compile, whatever is left out:\n{said}{}", errors.join("\n"));
        }
        self.leave_out(&unfit)?;
        Ok(false)
    }

    fn note_program(&mut self, message: &Value, program: &str) {
        let folder = message["manifest_path"].as_str().and_then(|path| Path::new(path).parent());
        let package = folder.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        if message["profile"]["test"] != true {
            return;
        }
        let is_test = message["target"]["kind"][0] == "test";
        let name = message["target"]["name"].as_str().filter(|_| is_test).unwrap_or_default();
        self.programs.insert((package.into_owned(), name.to_owned()), program.into());
    }

    /// Which ways an error speaks of: those on its lines; otherwise all around it; otherwise all of the file.
    fn blame(&self, error: &Value, unfit: &mut BTreeSet<Switch>) {
        for span in error["spans"].as_array().into_iter().flatten() {
            let Some(path) = span["file_name"].as_str() else { continue };
            let Some(ways) = self.ways.get(path).filter(|_| span["is_primary"] == true) else {
                continue;
            };
            let line = |name: &str| span[name].as_u64().unwrap_or_default() as usize;
            let lines = (line("line_start"), line("line_end"));
            let mut found = ways_near(ways, lines, None);
            for margin in [0, 40, usize::MAX / 2] {
                if found.is_empty() {
                    found = ways_near(ways, lines, Some(margin));
                }
            }
            unfit.extend(found);
        }
    }

    fn leave_out(&mut self, unfit: &BTreeSet<Switch>) -> Result<()> {
        let mut known = self.unfit();
        let mut changed = Vec::new();
        for (path, ways) in &mut self.ways {
            let before = ways.len();
            let text = self.texts.get(path).map_or("", String::as_str);
            ways.retain(|(switch, _)| {
                let fits = !unfit.contains(switch);
                if !fits {
                    known.insert(fingerprint(switch, text));
                }
                fits
            });
            if ways.len() != before {
                changed.push(path.clone());
            }
        }
        let known: Vec<String> = known.into_iter().collect();
        std::fs::write(self.folder.join("unfit"), known.join("\n"))?;
        changed.iter().try_for_each(|path| self.copy(path))
    }

    fn unfit(&self) -> BTreeSet<String> {
        let known = std::fs::read_to_string(self.folder.join("unfit")).unwrap_or_default();
        known.lines().map(str::to_owned).collect()
    }

    /// The first of these tests that fails while something is gone, and passes while nothing is.
    pub(super) fn noticed(&self, target: &Target, gone: &str) -> Result<Option<String>> {
        self.take_away(Some(gone))?;
        let failed = self.run(target, &target.tests);
        self.take_away(None)?;
        let Some(failed) = failed? else { return Ok(None) };
        let again = if failed.is_empty() { target.tests.clone() } else { vec![failed.clone()] };
        if self.run(target, &again)?.is_some() {
            println!("  {failed} of {} fails though nothing is taken away", target.package);
            return Ok(None);
        }
        let whole = || format!("{} {}", target.package, target.name);
        Ok(Some(if failed.is_empty() { whole() } else { failed }))
    }

    /// The first test that fails; no name if none is said.
    fn run(&self, target: &Target, tests: &[String]) -> Result<Option<String>> {
        let program = self.programs.get(&(target.package.clone(), target.name.clone()));
        let program = program
            .with_context(|| format!("there is no test {:?} in {}", target.name, target.package))?;
        let folder = self.folder.join("copy/crates").join(&target.package);
        let said = self.folder.join("said");
        let mut child = Command::new(program)
            .args(tests.iter().filter(|name| !name.is_empty()))
            .current_dir(&folder)
            .env("CARGO_MANIFEST_DIR", &folder)
            .env("AAEP_KILLS", "5")
            .env("AAEP_SOAK_SECONDS", "2")
            .stdin(Stdio::null())
            .stdout(File::create(&said)?)
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("could not start {}", program.display()))?;
        let began = Instant::now();
        let ended = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if began.elapsed() > PATIENCE {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        if ended.is_some_and(|status| status.success()) {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&std::fs::read(&said)?).into_owned();
        let failed = said.lines().find_map(|line| {
            line.strip_prefix("test ")?.strip_suffix(" ... FAILED").map(str::to_owned)
        });
        Ok(Some(failed.unwrap_or_default()))
    }
}

/// The ways with an insertion on one of these lines; or that reach as near as this.
fn ways_near(ways: &[(Switch, Way)], lines: (usize, usize), margin: Option<usize>) -> Vec<Switch> {
    let touches = |way: &Way| {
        let at = || way.iter().map(|insertion| insertion.line + 1);
        match margin {
            None => at().any(|line| (lines.0..=lines.1).contains(&line)),
            Some(margin) => {
                at().min().is_some_and(|first| first <= lines.1.saturating_add(margin))
                    && at().max().is_some_and(|last| last.saturating_add(margin) >= lines.0)
            }
        }
    };
    ways.iter().filter(|(_, way)| touches(way)).map(|(switch, _)| switch.clone()).collect()
}

/// A way in this very text.
fn fingerprint(switch: &str, text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{switch} {:x}", hasher.finish())
}
