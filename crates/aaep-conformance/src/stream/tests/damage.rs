//! Lines of the vectors in any order, damaged on their way: nothing breaks and nothing grows.

use proptest::prelude::*;

use crate::stream::{Checker, Options};

/// All lines of all vectors.
#[allow(clippy::disallowed_methods)] // A test reads files; the library never does.
fn pool() -> Vec<Vec<u8>> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/streams");
    let mut lines = Vec::new();
    for folder in ["good", "bad"] {
        let mut paths: Vec<_> = std::fs::read_dir(format!("{root}/{folder}"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        for path in paths {
            let text = std::fs::read_to_string(path).unwrap();
            lines.extend(text.lines().map(|line| line.as_bytes().to_vec()));
        }
    }
    lines
}

/// What may happen to a line on its way.
#[derive(Clone, Debug)]
enum Damage {
    None,
    Byte(usize, u8),
    Digits(u8),
    Cut(usize),
    Noise(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => Just(Damage::None),
        1 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        3 => (b'0'..=b'9').prop_map(Damage::Digits),
        1 => any::<usize>().prop_map(Damage::Cut),
        1 => proptest::collection::vec(any::<u8>(), 0..64).prop_map(Damage::Noise),
    ]
}

fn damaged(line: &[u8], damage: &Damage) -> Vec<u8> {
    let mut line = line.to_vec();
    let length = line.len().max(1);
    match damage {
        Damage::None => {}
        Damage::Byte(at, byte) => line[at % length] = *byte,
        // Other ids, numbers and times, still valid for the most part.
        Damage::Digits(digit) => {
            line.iter_mut().filter(|byte| **byte == b'1').for_each(|byte| *byte = *digit);
        }
        Damage::Cut(at) => line.truncate(at % length),
        Damage::Noise(noise) => line.clone_from(noise),
    }
    line
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    // covers: E21, E27
    #[test]
    fn whatever_comes_nothing_breaks_and_nothing_grows(
        picks in proptest::collection::vec((any::<prop::sample::Index>(), damage()), 1..200),
        complete: bool,
        max_sessions in 0..4_usize,
        max_remembered in 0..16_usize,
    ) {
        let pool = pool();
        let mut checker = Checker::new(Options { complete, max_sessions, max_remembered });
        let mut found = Vec::new();
        for (number, (index, damage)) in (1..).zip(&picks) {
            let line = damaged(&pool[index.index(pool.len())], damage);
            checker.message(number, &line, &mut found);
            prop_assert!(checker.is_bounded());
        }
        checker.finish(&mut found);
        for finding in &found {
            prop_assert!(!finding.text.contains("rpl_desk"), "{}", finding);
        }
    }
}
