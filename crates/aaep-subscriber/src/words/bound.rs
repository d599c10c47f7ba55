//! How much of an agent's text is said. A request is never shortened (S10).

/// The longest text of an event that is said in full, in code points: as long as the protocol
/// lets a summary be. What is left out is counted aloud.
pub const MAX_TEXT: usize = 16_384;

/// The longest name that is said in full, in code points.
pub const MAX_NAME: usize = 256;

/// The beginning of a text, cut between characters as people see them (L6), and how many code
/// points are left out.
pub(crate) fn cut(text: &str, max: usize) -> (&str, usize) {
    // enforces: L6
    let said = aaep_types::cut(text, max);
    (said, text[said.len()..].chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: L6
    #[test]
    fn text_is_cut_between_characters_as_people_see_them() {
        assert_eq!(cut("abc", 3), ("abc", 0));
        assert_eq!(cut("abcd", 3), ("abc", 1));
        assert_eq!(cut("ab👩‍💻d", 3), ("ab", 4));
        assert_eq!(cut("e\u{301}e\u{301}", 3), ("e\u{301}", 2));
        assert_eq!(cut(&"\u{301}".repeat(9), 3).1, 6);
    }
}
