//! A listener takes whatever a producer sends, line by line: nothing breaks, what is said is safe to
//! print, and every reply that it makes is valid.
#![no_main]

use aaep_subscriber::Notification;
use aaep_subscriber::inbox::{Answer, Bounds, Inbox, InboxInput, Settings};
use aaep_subscriber::words::{Manner, Words};
use aaep_types::is_valid;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut inbox = Inbox::new(Settings::default(), Bounds::default(), 1_779_632_531_000);
    let words = Words::new(&["en"]);
    let connection = inbox.add("hub", 0);
    assert!(is_valid(inbox.begin(connection, 0).as_bytes()));
    for (line, now) in bytes.split(|byte| *byte == b'\n').zip((0..).step_by(700)) {
        inbox.handle(InboxInput::Message { connection, bytes: line }, now);
        inbox.handle(InboxInput::Attached { connection }, now);
        while let Some(notification) = inbox.poll_notification(now) {
            for said in words.say(&notification, &Manner::default()) {
                let text = said.to_string();
                assert!(!text.chars().any(char::is_control), "{text:?}");
            }
            if let Notification::Asked(request) = notification {
                let _ = inbox.answer(request.id, Answer::Reject, now);
                let _ = inbox.answer(request.id, Answer::Text("yes".into()), now);
            }
        }
        while let Some(send) = inbox.poll_send() {
            assert!(is_valid(send.json.as_bytes()), "{}", send.json);
        }
    }
});
