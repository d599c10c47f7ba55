//! The pass that only decides and the pass that explains agree on any bytes.
#![no_main]

use aaep_types::{MAX_PROBLEMS, Message, Severity, is_valid, validate};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let problems = validate(bytes);
    let valid = !problems.iter().any(|problem| problem.severity == Severity::Error);
    assert_eq!(is_valid(bytes), valid);
    assert_eq!(Message::parse(bytes).is_ok(), valid);
    assert!(problems.len() <= 2 * MAX_PROBLEMS);
    for problem in problems {
        assert!(problem.pointer.is_empty() || problem.pointer.starts_with('/'));
        assert!(!problem.text.is_empty());
    }
});
