//! A time that is read is written as the same time, to the millisecond.
#![no_main]

use aaep_types::Timestamp;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let loose = Timestamp::parse_loose(text);
    if let Ok(time) = Timestamp::parse(text) {
        assert_eq!(loose, Ok(time), "what is strict is loose");
    }
    let Ok(time) = loose else { return };
    let written = time.to_string();
    let again = Timestamp::parse(&written).expect("what we write is a time");
    // At the edges of the calendar an offset leads outside the years that can be written.
    if Timestamp::from_millis(time.as_millis()).is_some() {
        assert_eq!(again.as_millis(), time.as_millis());
    }
    assert_eq!(again.to_string(), written);
});
