//! Language tags (BCP 47) and how one is chosen (§11.1.3).

use oxilangtag::LanguageTag as Parsed;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

use crate::Malformed;
use crate::json::{Raw, Writer};
use crate::report::Report;
use crate::rule::{self, Rule};
use crate::wire::{Wire, read_string};

const EXPECTED: &str = "Write a BCP 47 language tag such as en-US.";

/// A well-formed BCP 47 language tag.
#[derive(Clone, Debug)]
pub struct LanguageTag<'a>(Cow<'a, str>);

impl<'a> LanguageTag<'a> {
    /// Takes a well-formed tag.
    pub fn parse(text: impl Into<Cow<'a, str>>) -> Result<Self, Malformed> {
        let text = text.into();
        if is_simple(&text) || Parsed::parse(text.as_ref()).is_ok() {
            Ok(Self(text))
        } else {
            Err(Malformed(EXPECTED))
        }
    }

    /// The tag as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same, no longer borrowing.
    pub fn into_owned(self) -> LanguageTag<'static> {
        LanguageTag(Cow::Owned(self.0.into_owned()))
    }

    /// The first subtag, which names the language itself.
    pub fn language(&self) -> &str {
        self.0.split('-').next().unwrap_or_default()
    }

    /// Language with script and region, or with less, from the most exact to the least (§11.1.3).
    fn forms(&self) -> [Option<String>; 3] {
        let lower = self.0.to_ascii_lowercase();
        let Ok(tag) = Parsed::parse(lower.as_str()) else { return [Some(lower), None, None] };
        let language = tag.primary_language();
        let with_script = tag.script().map(|script| format!("{language}-{script}"));
        let without_region = with_script.unwrap_or_else(|| language.to_owned());
        let bare = language.to_owned();
        [Some(lower.clone()), Some(without_region), Some(bare)]
    }
}

/// `xx` or `xx-XX`, which nearly all tags are.
fn is_simple(text: &str) -> bool {
    match text.as_bytes() {
        [a, b] | [a, b, b'-', _, _] if !(a.is_ascii_alphabetic() && b.is_ascii_alphabetic()) => {
            false
        }
        [_, _] => true,
        [_, _, b'-', c, d] => c.is_ascii_alphabetic() && d.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Tags are compared without regard to case, as BCP 47 says.
impl PartialEq for LanguageTag<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Eq for LanguageTag<'_> {}

/// Ordered as they are compared.
impl Ord for LanguageTag<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let mine = self.0.bytes().map(|byte| byte.to_ascii_lowercase());
        mine.cmp(other.0.bytes().map(|byte| byte.to_ascii_lowercase()))
    }
}

impl PartialOrd for LanguageTag<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for LanguageTag<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'a> Wire<'a> for LanguageTag<'a> {
    fn rule_for(_member: Rule) -> Rule {
        rule::L1
    }

    fn read(raw: Raw<'a>, member: Rule, report: &mut Report) -> Option<Self> {
        let rule = Self::rule_for(member);
        read_string(raw, rule, report, Self::parse)
    }

    fn write(&self, out: &mut Writer) {
        out.string(&self.0);
    }

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[a-zA-Z]{1,8}(-[a-zA-Z0-9]{1,8})*$" })
    }
}

/// Chooses among `offered` languages (§11.1.3): for each asked one in turn its exact form, then
/// without region, then without script; then the producer's fallback chain. `None` means that the
/// primary language has to do.
///
/// A shorter form also matches a longer offer: who asks for `en` is served with `en-US`.
pub fn choose<'o, 't>(
    asked: &[LanguageTag<'_>],
    offered: &'o [LanguageTag<'t>],
    fallback_chain: &[LanguageTag<'_>],
) -> Option<&'o LanguageTag<'t>> {
    // enforces: L2
    let offers: Vec<_> = offered.iter().map(LanguageTag::forms).collect();
    asked.iter().chain(fallback_chain).find_map(|wanted| {
        let forms = wanted.forms();
        forms.iter().flatten().find_map(|form| {
            let exact = offers.iter().position(|offer| offer[0].as_ref() == Some(form));
            // A shorter form matches what shortens to it.
            let wider =
                || offers.iter().position(|offer| offer.iter().flatten().any(|o| o == form));
            offered.get(exact.or_else(wider)?)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(list: &[&'static str]) -> Vec<LanguageTag<'static>> {
        list.iter().map(|tag| LanguageTag::parse(*tag).unwrap()).collect()
    }

    fn chosen(asked: &[&'static str], offered: &[&'static str]) -> Option<String> {
        choose(&tags(asked), &tags(offered), &[]).map(|tag| tag.to_string())
    }

    // covers: L1
    #[test]
    fn tags_are_well_formed_bcp_47() {
        for tag in
            ["en", "en-US", "es-419", "zh-Hant-TW", "sl-rozaj-biske", "x-private", "de-CH-1996"]
        {
            assert!(LanguageTag::parse(tag).is_ok(), "{tag}");
        }
        for tag in
            ["", "e", "en_US", "en-", "-en", "en--US", "englishlanguage", "1a", "en\n", "a-b"]
        {
            assert!(LanguageTag::parse(tag).is_err(), "{tag}");
        }
    }

    #[test]
    fn the_quick_check_agrees_with_the_parser() {
        for a in 0..128u8 {
            for b in [b'a', b'Z', b'1', b'-'] {
                for text in [
                    [a, b].to_vec(),
                    [a, b'e', b'-', b, b'S'].to_vec(),
                    [b'e', a, b'-', b'U', b].to_vec(),
                ] {
                    let text = String::from_utf8(text).unwrap();
                    if is_simple(&text) {
                        assert!(Parsed::parse(text.as_str()).is_ok(), "{text}");
                    }
                }
            }
        }
    }

    // covers: L2
    #[test]
    fn the_exact_tag_wins_then_without_region_then_without_script() {
        assert_eq!(chosen(&["pt-BR"], &["pt", "pt-BR"]).as_deref(), Some("pt-BR"));
        assert_eq!(chosen(&["pt-BR"], &["en", "pt"]).as_deref(), Some("pt"));
        assert_eq!(chosen(&["zh-Hant-TW"], &["zh", "zh-Hant"]).as_deref(), Some("zh-Hant"));
        assert_eq!(chosen(&["zh-Hant-TW"], &["en", "zh"]).as_deref(), Some("zh"));
    }

    // covers: L2
    #[test]
    fn a_bare_language_is_served_with_any_of_its_regions() {
        assert_eq!(chosen(&["en"], &["yo-NG", "en-US"]).as_deref(), Some("en-US"));
        assert_eq!(chosen(&["en-GB"], &["en-US"]).as_deref(), Some("en-US"));
    }

    // covers: L2
    #[test]
    fn the_next_language_is_tried_then_the_fallback_chain_then_nothing() {
        assert_eq!(chosen(&["yo-NG", "fr"], &["fr-FR", "en"]).as_deref(), Some("fr-FR"));
        assert_eq!(chosen(&["yo"], &["fr"]), None);
        let offered = tags(&["fr", "en-US"]);
        let fallen = choose(&tags(&["yo"]), &offered, &tags(&["sw", "en"]));
        assert_eq!(fallen.map(LanguageTag::as_str), Some("en-US"));
    }

    // covers: L2
    #[test]
    fn case_does_not_matter() {
        assert_eq!(chosen(&["EN-us"], &["fr", "en-US"]).as_deref(), Some("en-US"));
    }
}
