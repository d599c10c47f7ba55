//! For every document that a policy judges, serde_json reads the same value at every place that a rule
//! can name. `cargo xtask guests` asks Python and JavaScript the same of generated documents.
#![no_main]

#[path = "../../crates/aaep-policy/tests/readers/agree.rs"]
mod agree;

/// Places of one document that are tried.
const MAX_LEAVES: usize = 64;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(read) = serde_json::from_str(text) else { return };
    for leaf in agree::leaves(&read).iter().take(MAX_LEAVES) {
        assert_ne!(agree::agrees(text, leaf), Some(false), "{leaf:?}");
    }
});
