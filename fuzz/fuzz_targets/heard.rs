//! A subscriber hears whatever a strict reader accepts, and never stumbles over the rest.
#![no_main]

use aaep_types::{Event, LenientEvent};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let strict = Event::parse(bytes);
    let heard = match LenientEvent::parse(bytes) {
        Ok(heard) => heard,
        Err(unheard) => {
            assert!(strict.is_err(), "{unheard}");
            return;
        }
    };
    if let Ok(event) = &strict {
        assert_eq!(heard.kind(), event.kind());
        assert_eq!(heard.event_id(), event.envelope().event_id.as_str());
        assert_eq!(heard.timestamp(), Some(event.envelope().timestamp));
        assert!(heard.deviations().is_empty() && heard.strict().is_some());
    }
    let _ = (heard.urgency(), heard.sequence_number(), heard.reply_token());
    let _ = (heard.object("progress"), heard.flag("complete"), heard.number("position"));
});
