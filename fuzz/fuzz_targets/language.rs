//! Tags are read and chosen without a stumble, and the choice is one of the offers.
#![no_main]

use aaep_types::{LanguageTag, choose_language};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut lists = text.split('|').map(|list| {
        list.split(',').filter_map(|tag| LanguageTag::parse(tag).ok()).collect::<Vec<_>>()
    });
    let mut next = || lists.next().unwrap_or_default();
    let (asked, offered, fallback) = (next(), next(), next());
    for tag in asked.iter().chain(&offered) {
        assert_eq!(LanguageTag::parse(tag.as_str()).as_ref(), Ok(tag));
        assert!(!tag.language().is_empty() && tag.as_str().is_ascii());
    }
    let chosen = choose_language(&asked, &offered, &fallback);
    assert!(chosen.is_none_or(|tag| offered.contains(tag)));
    // If the first choice is offered, it is what one gets.
    if let Some(first) = asked.first().filter(|first| offered.contains(first)) {
        assert_eq!(chosen, Some(first));
    }
});
