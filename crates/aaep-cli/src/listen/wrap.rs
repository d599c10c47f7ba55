//! Lines that are longer than the terminal is wide are broken between words, not in the middle of one.

use icu_segmenter::LineSegmenter;
use icu_segmenter::options::LineBreakOptions;
use unicode_width::UnicodeWidthStr;

/// In fewer columns than this the terminal breaks lines as it can.
const FEWEST_COLUMNS: usize = 10;

/// The lines that one becomes. A word that is longer than a line is left to the terminal.
pub(super) fn wrap(line: &str, columns: Option<usize>) -> Vec<&str> {
    let Some(columns) = columns.filter(|columns| *columns >= FEWEST_COLUMNS) else {
        return vec![line];
    };
    if line.width() <= columns {
        return vec![line];
    }
    let segmenter = LineSegmenter::new_for_non_complex_scripts(LineBreakOptions::default());
    let (mut lines, mut begins, mut ends) = (Vec::new(), 0, 0);
    for at in segmenter.segment_str(line).skip(1) {
        if ends > begins && line[begins..at].trim_end().width() > columns {
            lines.push(line[begins..ends].trim_end());
            begins = ends;
        }
        ends = at;
    }
    lines.push(line[begins..].trim_end());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        let line = "Press y for yes, n for no, d for details.";
        assert_eq!(wrap(line, Some(16)), ["Press y for yes,", "n for no, d for", "details."]);
        assert_eq!(wrap(line, Some(41)), [line]);
        assert_eq!(wrap(line, Some(3)), [line]);
        assert_eq!(wrap(line, None), [line]);
        assert_eq!(wrap("", Some(20)), [""]);
    }

    #[test]
    fn a_word_longer_than_a_line_stays_whole() {
        let long = "x".repeat(30);
        let line = format!("See {long} here");
        assert_eq!(wrap(&line, Some(10)), ["See", long.as_str(), "here"]);
    }

    #[test]
    fn wide_characters_have_two_columns_and_marks_none() {
        assert_eq!(wrap("请求正在等待您的回答", Some(10)), ["请求正在等", "待您的回答"]);
        let marks = "e\u{301}e\u{301}e\u{301}e\u{301} e\u{301}e\u{301}e\u{301}e\u{301}";
        assert_eq!(wrap(marks, Some(10)), [marks]);
    }

    #[test]
    fn no_character_is_lost() {
        let line = "“a\u{301}b” نعم، 你好 👩\u{200d}🚀 and so on, for ever, and ever. ".repeat(9);
        for columns in 10..60 {
            let words = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(words(&wrap(&line, Some(columns)).join(" ")), words(&line));
        }
    }
}
