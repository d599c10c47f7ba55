//! Long texts are cut between characters as people see them.

use icu_segmenter::GraphemeClusterSegmenter;

// enforces: L6
/// At most so many code points of a text, cut between characters as people see them. A character
/// that goes on past the limit is left out whole; one as long as everything is cut.
pub fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let Some((limit, _)) = text.char_indices().nth(max) else { return text };
    let near = text.ceil_char_boundary(limit.saturating_add(1));
    let segmenter = GraphemeClusterSegmenter::new();
    let end = segmenter.segment_str(&text[..near]).take_while(|&end| end <= limit).last();
    &text[..end.filter(|&end| end > 0).unwrap_or(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: L6
    #[test]
    fn text_is_cut_between_characters_as_people_see_them() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc");
        assert_eq!(cut("äöüß", 4), "äöüß");
        assert_eq!(cut("ab👩‍💻d", 3), "ab");
        assert_eq!(cut("e\u{301}e\u{301}", 3), "e\u{301}");
        assert_eq!(cut(&"\u{301}".repeat(9), 3).chars().count(), 3);
    }
}
