//! The simulator itself, in small: what it runs for a minute elsewhere it runs for seconds here.

use aaep_engine::{Emitted, Rules, Sound};
use aaep_sim::mutants::MUTANTS;
use aaep_sim::{crash_points, run, run_many};

/// Far from the seeds of the long runs.
const SEED: u64 = 7_000_000_000;

// covers: I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13, I14, I15, I16, I17, I18, I19, I20, I21, I22, I23, I25, I27, I33
#[test]
fn whatever_happens_the_invariants_hold() {
    let totals = run_many::<Sound>(SEED..SEED + 2_000, false);
    assert_eq!(totals.violations, []);
    assert!(totals.steps >= 40 * totals.schedules);
}

// covers: I1, I2, I3, I4, I5, I6, I7, I8, I9, I10, I11, I12, I13, I14, I15, I16, I17, I18, I19, I20, I21, I22, I23, I25, I27, I33
#[test]
fn an_engine_that_lacks_a_check_is_found_out() {
    for mutant in MUTANTS {
        assert!(mutant.hunt(1, 3_000).is_some(), "an engine that {} lives", mutant.about);
    }
}

/// Invariants without a mutant here, and what breaks them on purpose instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("I24", "the broken nodes of tests/cluster.rs"),
    ("I26", "the damaged, cut and forged files of aaep-store/tests"),
    ("I28", "the panics that tests of aaep-hub cause"),
    ("I31", "the misleading agents of aaep-subscriber and aaep-cli"),
];

/// The invariants of the document, in its order.
fn invariants() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/invariants.md");
    let rows = std::fs::read_to_string(path).unwrap();
    rows.lines()
        .filter_map(|line| line.strip_prefix("| I")?.split_once(" |"))
        .map(|(number, _)| format!("I{number}"))
        .collect()
}

#[test]
fn every_invariant_has_a_mutant_or_a_reason_to_have_none() {
    let invariants = invariants();
    assert!(invariants.len() >= 34, "only {} were found", invariants.len());
    for id in &invariants {
        let mutated = MUTANTS.iter().any(|mutant| mutant.invariant == id);
        let elsewhere = ELSEWHERE.iter().any(|(it, _)| it == id);
        assert!(mutated != elsewhere, "{id}: a mutant {mutated}, a reason for none {elsewhere}");
    }
}

// covers: I1, I2, I3, I10, I11, I27
#[test]
fn at_every_crash_point_the_invariants_hold() {
    let found = crash_points::run_all::<Sound>();
    assert!(found.points > 5_000, "{} points", found.points);
    assert!(found.violations.is_empty(), "{:?}", found.violations.first());
}

// covers: I10
#[test]
fn the_crash_points_notice_an_engine_that_speaks_too_soon() {
    struct Hasty;
    impl Rules for Hasty {
        fn waits_for(_record: u64) -> u64 {
            0
        }
    }
    assert!(!crash_points::run_all::<Hasty>().violations.is_empty());
}

#[test]
fn the_same_seed_is_the_same_schedule() {
    struct Silent;
    impl Rules for Silent {
        fn is_said(event: &Emitted) -> bool {
            event.about.is_none()
        }
    }
    for seed in SEED..SEED + 50 {
        assert_eq!(run::<Silent>(seed, false).violation, run::<Silent>(seed, false).violation);
    }
}
