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
        "en": "language.json", "said.json", "terminal.json", "page.json";
        "ar": "language.json", "said.json", "terminal.json", "page.json";
        "zh": "language.json", "said.json", "terminal.json", "page.json";
    }
}
