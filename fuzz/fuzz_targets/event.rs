//! What is read as an event is written again, and is the same event from then on.
#![no_main]

use aaep_types::Event;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let event = match Event::parse(bytes) {
        Ok(event) => event,
        Err(invalid) => {
            assert!(invalid.problems.iter().any(|p| p.severity == aaep_types::Severity::Error));
            return;
        }
    };
    assert_eq!(event.as_json().as_bytes(), bytes);
    let written = event.to_json();
    let again = Event::parse(written.as_bytes()).expect("what we write is valid");
    assert_eq!(again.to_json(), written);
    assert_eq!(again.kind(), event.kind());
    assert!(again.extensions().iter().eq(event.extensions().iter()));
});
