//! Patterns: `*` stands for any characters or none, `?` for exactly one; everything else for itself.

/// A pattern: `*` stands for any characters or none, `?` for exactly one, everything else for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    text: String,
    signs: Vec<char>,
}

impl Glob {
    /// Any text is a pattern.
    pub fn new(text: &str) -> Self {
        let mut signs: Vec<char> = text.chars().collect();
        signs.dedup_by(|next, before| *next == '*' && *before == '*');
        Self { text: text.to_owned(), signs }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether nothing in it stands for itself: it fits everything, or everything of a length.
    pub(crate) fn fits_anything(&self) -> bool {
        self.signs.iter().all(|sign| matches!(sign, '*' | '?'))
    }

    /// Whether the whole text fits.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        fits(&self.signs, &text, |sign, letter| sign == '?' || sign == letter)
    }

    /// Whether whatever fits the other fits this one. It may say no where the answer is yes.
    pub(crate) fn covers(&self, other: &Glob) -> bool {
        fits(&self.signs, &other.signs, |sign, letter| {
            sign == '?' && letter != '*' || sign == letter
        })
    }
}

/// The usual way: on a mismatch, the latest `*` takes one more. At most the product of both lengths.
fn fits(pattern: &[char], text: &[char], same: impl Fn(char, char) -> bool) -> bool {
    let (mut at, mut letter) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while letter < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, letter));
                at += 1;
            }
            Some(&sign) if same(sign, text[letter]) => {
                at += 1;
                letter += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, letter) = (place + 1, taken + 1);
            }
        }
    }
    pattern[at..].iter().all(|sign| *sign == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_others() {
        for (pattern, text, fits) in [
            ("bank.transfer", "bank.transfer", true),
            ("bank.transfer", "bank.transfers", false),
            ("bank.*", "bank.", true),
            ("bank.*", "bank", false),
            ("files/*", "files/read", true),
            ("*delete*", "file_delete_all", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("a?c", "aéc", true),
            ("*", "", true),
            ("**a**b**", "xaxb", true),
            ("a*b*c", "abcbc", true),
            ("a*b*c", "abcb", false),
            ("", "", true),
            ("", "a", false),
            ("Bank.*", "bank.x", false),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_covers_another_when_nothing_slips_through() {
        for (wide, narrow, covers) in [
            ("bank.*", "bank.transfer", true),
            ("bank.*", "bank.t*", true),
            ("bank.t*", "bank.*", false),
            ("*", "*", true),
            ("a?", "a*", false),
            ("a?", "a?", true),
            ("a*", "a?", true),
            ("a", "a", true),
        ] {
            assert_eq!(Glob::new(wide).covers(&Glob::new(narrow)), covers, "{wide} {narrow}");
        }
    }

    #[test]
    fn a_hostile_pattern_takes_no_longer_than_the_product_of_the_lengths() {
        let pattern = Glob::new(&"*a".repeat(64));
        assert!(!pattern.matches(&("a".repeat(63) + &"b".repeat(4000))));
    }
}
