//! `cargo xtask rules --mutate N`: whether the table of rules is true. For rules picked by a seed, what
//! their markers mark is taken away in a copy of the workspace, and a test that claims to cover the rule
//! must fail.

mod build;
mod site;
mod tests;

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use self::build::{Build, Switch};
use self::tests::{Target, package_of, targets};
use crate::requirements::{Place, Table};
use crate::workspace::root;

const USUAL_SEED: u64 = 1;

/// What is asked for.
#[derive(Default)]
struct Wanted {
    rules: usize,
    seed: u64,
    /// These rules only, if there are any.
    only: Vec<String>,
    /// What these packages enforce and cover, if there are any.
    packages: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut wanted = Wanted { seed: USUAL_SEED, ..Wanted::default() };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} needs a value"));
        match word.as_str() {
            "--mutate" => wanted.rules = value()?.parse().context("--mutate takes a number")?,
            "--seed" => wanted.seed = value()?.parse().context("--seed takes a number")?,
            "--rule" => wanted.only.push(value()?.clone()),
            "--package" => wanted.packages.push(value()?.clone()),
            _ => bail!(
                "unknown argument {word:?}; known are --mutate N, --seed S, --rule ID and --package NAME"
            ),
        }
    }
    if wanted.rules == 0 {
        bail!("say how many rules to try: --mutate N");
    }
    mutate(&wanted)
}

/// A few rules of the core, which is compiled in little time.
pub(crate) fn sample(rules: usize) -> Result<()> {
    let packages = ["aaep-types", "aaep-engine"].map(str::to_owned).to_vec();
    mutate(&Wanted { rules, seed: USUAL_SEED, only: Vec::new(), packages })
}

/// One place of a rule, how to take it away, and who should notice.
struct Trial {
    place: Place,
    switches: Vec<Switch>,
    targets: Vec<Target>,
}

fn mutate(wanted: &Wanted) -> Result<()> {
    let table = Table::read()?;
    let every = table.ids().flat_map(|id| table.enforced(id)).filter(|place| is_code(&place.path));
    let mut build =
        Build::prepare(&every.filter(|place| is_wanted(wanted, &place.path)).collect())?;
    let mut ids: Vec<&str> = table.ids().collect();
    ids.retain(|id| wanted.only.is_empty() || wanted.only.iter().any(|it| it == id));
    let is_here = |place: &Place| is_code(&place.path) && is_wanted(wanted, &place.path);
    ids.retain(|id| table.enforced(id).iter().any(is_here));
    shuffle(&mut ids, wanted.seed);
    let (mut tried, mut unable, mut unnoticed) = (0, Vec::new(), Vec::new());
    while tried < wanted.rules && !ids.is_empty() {
        // Compiled together: a way that does not compile may leave a rule without any.
        let some: Vec<&str> = ids.drain(..ids.len().min(wanted.rules - tried)).collect();
        let programs = some.iter().flat_map(|id| trials(wanted, &table, &build, id));
        let programs = programs.flat_map(|trial| trial.targets);
        build.compile(&programs.map(|target| target.key()).collect())?;
        for id in some {
            let trials = trials(wanted, &table, &build, id);
            if trials.is_empty() {
                unable.push(id);
                continue;
            }
            tried += 1;
            if !is_noticed(&build, id, &trials)? {
                unnoticed.push(id);
            }
        }
    }
    println!("{tried} rules tried, {} unnoticed.", unnoticed.len());
    if !unable.is_empty() {
        println!("{} cannot be taken away mechanically: {}.", unable.len(), unable.join(", "));
    }
    if !unnoticed.is_empty() {
        bail!("nothing that claims to cover them fails without {}", unnoticed.join(", "));
    }
    Ok(())
}

fn is_code(path: &str) -> bool {
    path.starts_with("crates/") && path.ends_with(".rs")
}

fn is_wanted(wanted: &Wanted, path: &str) -> bool {
    wanted.packages.is_empty()
        || package_of(path).is_some_and(|package| wanted.packages.iter().any(|it| it == package))
}

fn trials(wanted: &Wanted, table: &Table, build: &Build, id: &str) -> Vec<Trial> {
    let mut trials = Vec::new();
    for place in table.enforced(id).into_iter().filter(|place| is_code(&place.path)) {
        let mut switches = build.switches(&place);
        if switches.is_empty() && is_member(&place) {
            switches.push(format!("rule {id}"));
        }
        let mut targets = targets(&table.covered(id), &place.path);
        if !wanted.packages.is_empty() {
            targets.retain(|target| wanted.packages.contains(&target.package));
        }
        if is_wanted(wanted, &place.path) && !switches.is_empty() && !targets.is_empty() {
            trials.push(Trial { place, switches, targets });
        }
    }
    trials
}

/// Whether the place is a line of an `object!` table.
fn is_member(place: &Place) -> bool {
    let text = std::fs::read_to_string(root().join(&place.path)).unwrap_or_default();
    text.lines().nth(place.line - 1).is_some_and(site::is_member)
}

/// Whether any place of a rule is missed. That nobody misses another is said: it may be a second
/// defence, or the marker stands in the wrong place.
fn is_noticed(build: &Build, id: &str, trials: &[Trial]) -> Result<bool> {
    let (mut missed, mut known) = (false, BTreeSet::new());
    for Trial { place, switches, targets } in trials {
        // The lines of a table that name one rule are switched off together.
        if !known.insert(switches) {
            continue;
        }
        let mut noticed = None;
        'ways: for switch in switches {
            for target in targets {
                noticed = build.noticed(target, switch)?;
                if noticed.is_some() {
                    break 'ways;
                }
            }
        }
        match noticed {
            Some(test) => {
                println!("{id}: {}:{} is missed by {test}", place.path, place.line);
                missed = true;
            }
            None => println!("{id}: nobody misses {}:{}", place.path, place.line),
        }
    }
    Ok(missed)
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
mod unit {
    use super::*;

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
