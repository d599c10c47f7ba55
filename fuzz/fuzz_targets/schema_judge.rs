//! The judge by the published schemas has a verdict on any document.
#![no_main]

use aaep_conformance::published;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = serde_json::from_slice(bytes) else { return };
    for violation in published::judge(&document) {
        assert!(!violation.to_string().is_empty());
    }
});
