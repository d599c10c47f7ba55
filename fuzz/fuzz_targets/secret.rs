//! In a text without its secrets there are none, however the text came: at once or in pieces.
#![no_main]

use aaep_types::secret::{MAX_WATCHED_BYTES, Watch, find, redact};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let clean = redact(text);
    assert_eq!(find(&clean), []);
    assert_eq!(redact(&clean), clean);
    let found = find(text);
    assert!(found.windows(2).all(|pair| pair[0].range.end <= pair[1].range.start));
    assert!(found.iter().all(|found| text.get(found.range.clone()).is_some_and(|it| !it.is_empty())));
    let mut watch = Watch::default();
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let piece = rest.floor_char_boundary(sign.len_utf8() + MAX_WATCHED_BYTES / 50);
        watch.next(&rest[..piece]);
        rest = &rest[piece..];
    }
    watch.end();
});
