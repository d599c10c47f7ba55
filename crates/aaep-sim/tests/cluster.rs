//! Three nodes that own one shard in turn, over many schedules.

use aaep_sim::cluster::{BROKEN, hunt, run};

/// Far from the seeds of the long runs.
const SEED: u64 = 9_000_000_000;

// covers: I2, I3, I7, I8, I10, I24, I25
#[test]
fn whatever_happens_to_three_nodes_the_log_is_the_history_of_one_owner() {
    let (mut takeovers, mut told) = (0, 0);
    for seed in SEED..SEED + 100 {
        let report = run(seed, None);
        assert_eq!(report.found, None, "seed {seed}");
        takeovers += report.takeovers;
        told += report.told;
    }
    println!("{takeovers} takeovers, {told} times people were told");
    assert!(takeovers > 100 && told > 1_000, "{takeovers} takeovers, {told} told");
}

// covers: I24
#[test]
fn every_rule_of_the_cluster_that_is_broken_is_found_out() {
    for broken in BROKEN {
        let found = hunt(broken, 1, 1_000);
        let Some((schedules, what)) = found else { panic!("{broken:?} lives") };
        println!("{broken:?}: after {schedules} schedules: {}", what.0);
    }
}
