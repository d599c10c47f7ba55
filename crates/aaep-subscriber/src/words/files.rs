//! The message files as they are in the source: `messages/README.md` describes them. Other clients
//! of the same words, such as the page, serve these.

macro_rules! files {
    ($($language:literal: $($name:literal),*;)*) => {
        &[$($(
            ($language, $name, include_str!(concat!("../../messages/", $language, "/", $name))),
        )*)*]
    };
}

/// Every file: its language, its name and its text. English is first.
pub fn files() -> &'static [(&'static str, &'static str, &'static str)] {
    files! {
        "en": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "ar": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "zh": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "fr": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "de": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "es": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "pt": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "hi": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "yo": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "ha": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "ig": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
    }
}
