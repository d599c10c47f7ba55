//! Numbers in the digits of the listener's country.

use icu_decimal::DecimalFormatter;
use icu_decimal::input::Decimal;
use icu_decimal::options::DecimalFormatterOptions;
use icu_locale_core::Locale;

/// How numbers are written. Thousands are not set apart: synthesizers read them as two numbers in some
/// languages. So the ten digits are all there is to know.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    digits: [char; 10],
}

impl Numbers {
    /// As in the first of these tags that is of this language and says more than it, such as a country
    /// or a numbering system (`ar-EG`, `hi-u-nu-deva`); as the language itself has them without one.
    pub(super) fn new(language: &'static str, tags: &[&str]) -> Self {
        let locale = |tag: &str| Locale::try_from_str(tag).ok();
        let base = locale(language);
        let says_more = |found: &Locale| {
            base.as_ref().is_some_and(|base| base.id.language == found.id.language && base != found)
        };
        let chosen = tags.iter().filter_map(|tag| locale(tag)).find(says_more);
        let digits = chosen.or_else(|| base.clone()).and_then(digits);
        Self { digits: digits.unwrap_or(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) }
    }

    pub(super) fn write(&self, number: u64) -> String {
        let digit = |ascii: u8| self.digits.get(usize::from(ascii.wrapping_sub(b'0'))).copied();
        number.to_string().bytes().filter_map(digit).collect()
    }
}

/// The ten digits of a locale.
fn digits(locale: Locale) -> Option<[char; 10]> {
    let formatter =
        DecimalFormatter::try_new(locale.into(), DecimalFormatterOptions::default()).ok()?;
    let written = (0..10_u32).map(|digit| formatter.format(&Decimal::from(digit)).to_string());
    let digits: Vec<char> = written.filter_map(|one| one.chars().next()).collect();
    digits.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_of_the_country_and_no_signs_between_thousands() {
        for (language, tags, written) in [
            ("en", &["en-GB"][..], "12345"),
            ("ar", &["ar"], "12345"),
            ("ar", &["ar-EG"], "\u{661}\u{662}\u{663}\u{664}\u{665}"),
            ("ar", &["ar-SA"], "\u{661}\u{662}\u{663}\u{664}\u{665}"),
            ("ar", &["ar-MA"], "12345"),
            ("ar", &["fr-FR", "ar-EG"], "\u{661}\u{662}\u{663}\u{664}\u{665}"),
            ("ar", &["ar", "ar-EG"], "\u{661}\u{662}\u{663}\u{664}\u{665}"),
            ("ar", &["ar-EG-u-nu-latn"], "12345"),
            ("hi", &["hi-IN"], "12345"),
            ("hi", &["hi-IN-u-nu-deva"], "\u{967}\u{968}\u{969}\u{96a}\u{96b}"),
            ("fr", &["fr-FR"], "12345"),
            ("de", &["not a tag"], "12345"),
        ] {
            assert_eq!(Numbers::new(language, tags).write(12_345), written, "{language} {tags:?}");
        }
    }
}
