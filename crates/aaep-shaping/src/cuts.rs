//! Where streamed text can be cut, found once for all subscriptions.

use std::cell::OnceCell;

use aaep_types::CoalesceBoundary;
use icu_segmenter::options::{SentenceBreakInvariantOptions, WordBreakInvariantOptions};
use icu_segmenter::{
    GraphemeClusterSegmenter, GraphemeClusterSegmenterBorrowed, SentenceSegmenter,
    SentenceSegmenterBorrowed, WordSegmenter, WordSegmenterBorrowed,
};

/// How many bytes without the end of a sentence are looked at again and again.
const MAX_TAIL_BYTES: usize = 4096;

/// The latest place, in scalar values from the output's start, where each kind of boundary is
/// certain. The end of a paragraph also ends a sentence, and the end of a sentence a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cuts {
    word: u64,
    sentence: u64,
    paragraph: u64,
}

impl Cuts {
    /// The latest certain place to cut at this boundary or a coarser one.
    pub fn latest(&self, boundary: CoalesceBoundary) -> u64 {
        match boundary {
            CoalesceBoundary::None | CoalesceBoundary::Word => self.word,
            CoalesceBoundary::Sentence => self.sentence,
            CoalesceBoundary::Paragraph => self.paragraph,
            CoalesceBoundary::Completion => 0,
        }
    }

    /// Which boundary this place is.
    pub fn boundary_at(&self, at: u64) -> CoalesceBoundary {
        if at == 0 {
            CoalesceBoundary::None
        } else if at == self.paragraph {
            CoalesceBoundary::Paragraph
        } else if at == self.sentence {
            CoalesceBoundary::Sentence
        } else if at == self.word {
            CoalesceBoundary::Word
        } else {
            CoalesceBoundary::None
        }
    }

    pub(crate) fn note(&mut self, boundary: CoalesceBoundary, at: u64) {
        if boundary >= CoalesceBoundary::Word {
            self.word = self.word.max(at);
        }
        if boundary >= CoalesceBoundary::Sentence {
            self.sentence = self.sentence.max(at);
        }
        if boundary >= CoalesceBoundary::Paragraph {
            self.paragraph = self.paragraph.max(at);
        }
    }
}

/// The three ways to divide text (UAX #29). They only point into data that is compiled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segmenters {
    graphemes: GraphemeClusterSegmenterBorrowed<'static>,
    words: WordSegmenterBorrowed<'static>,
    sentences: SentenceSegmenterBorrowed<'static>,
}

impl Segmenters {
    pub fn new() -> Self {
        Self {
            graphemes: GraphemeClusterSegmenter::new(),
            words: WordSegmenter::new_dictionary(WordBreakInvariantOptions::default()),
            sentences: SentenceSegmenter::new(SentenceBreakInvariantOptions::default()),
        }
    }
}

/// The end of one output's text, as far as it is still needed to find boundaries.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    text: String,
    /// Where `text` begins, in scalar values.
    from: u64,
    /// Where the output ends so far.
    end: u64,
    after_newline: bool,
    cuts: Cuts,
}

impl Tail {
    pub fn starting_at(position: u64) -> Self {
        Self {
            text: String::new(),
            from: position,
            end: position,
            after_newline: false,
            cuts: Cuts::default(),
        }
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// Adds a chunk, with what its producer says about its end, and returns the latest cuts.
    pub fn push(
        &mut self,
        chunk: &str,
        hint: Option<CoalesceBoundary>,
        segmenters: &Segmenters,
    ) -> Cuts {
        self.text.push_str(chunk);
        self.end += scalars(chunk);
        let found = find(&self.text, self.after_newline, segmenters);
        for (boundary, at) in &found.latest {
            self.cuts.note(*boundary, self.from + scalars(&self.text[..*at]));
        }
        if let Some(hint) = hint {
            // The producer knows best where its own chunk ends.
            self.cuts.note(hint, self.end);
        }
        self.trim(found.sentence_end());
        if self.text.len() > MAX_TAIL_BYTES {
            // No sentence ends here; go on from the last word, or from anywhere.
            self.trim(found.word_end().unwrap_or(self.text.len()));
        }
        self.cuts
    }

    fn trim(&mut self, at: impl Into<Option<usize>>) {
        let Some(at) = at.into().filter(|at| *at > 0) else { return };
        let gone = self.text.get(..at).unwrap_or_default();
        self.after_newline = gone.ends_with('\n');
        self.from += scalars(gone);
        self.text.drain(..at);
    }
}

/// How many Unicode scalar values a text has, the unit of `position` (decision D19).
pub(crate) fn scalars(text: &str) -> u64 {
    text.chars().count() as u64
}

/// Byte offsets of the last certain end of each kind.
struct Boundaries {
    latest: Vec<(CoalesceBoundary, usize)>,
}

impl Boundaries {
    fn end_of(&self, boundary: CoalesceBoundary) -> Option<usize> {
        self.latest.iter().filter(|(found, _)| *found >= boundary).map(|(_, at)| *at).max()
    }

    fn sentence_end(&self) -> Option<usize> {
        self.end_of(CoalesceBoundary::Sentence)
    }

    fn word_end(&self) -> Option<usize> {
        self.end_of(CoalesceBoundary::Word)
    }
}

fn find(text: &str, after_newline: bool, segmenters: &Segmenters) -> Boundaries {
    let mut latest = Vec::with_capacity(3);
    let graphemes = Graphemes::of(text, segmenters);
    if let Some(at) = last_paragraph(text, after_newline) {
        latest.push((CoalesceBoundary::Paragraph, at));
    }
    let sentences: Vec<usize> = segmenters.sentences.segment_str(text).collect();
    let certain = certain_sentences(text);
    let sentence = sentences.iter().rev().find(|&&at| certain(at) && graphemes.end_at(at));
    latest.extend(sentence.map(|at| (CoalesceBoundary::Sentence, *at)));
    let words: Vec<usize> = segmenters.words.segment_str(text).collect();
    let word = (words.iter().enumerate().rev())
        .find(|&(index, &at)| {
            word_is_certain(text, at, index + 2 < words.len()) && graphemes.end_at(at)
        })
        .map(|(_, at)| *at);
    latest.extend(word.map(|at| (CoalesceBoundary::Word, at)));
    Boundaries { latest }
}

/// A sentence ends before what can no longer be its continuation: UAX #29 looks ahead to the next
/// letter (SB8), so until there is one the end is only a guess. A newline always ends it (SB4).
fn certain_sentences(text: &str) -> impl Fn(usize) -> bool {
    let decides = |c: char| c.is_alphabetic() || matches!(c, '\n' | '.' | '!' | '?' | '。');
    let last = text.rfind(decides);
    move |at| at > 0 && (text[..at].ends_with('\n') || last.is_some_and(|last| at <= last))
}

/// A word ends where the next begins, spaces included, so that pieces read well one by one. Where
/// a script has no spaces, the last segment may still change and does not count.
fn word_is_certain(text: &str, at: usize, more_follows: bool) -> bool {
    let (before, after) = text.split_at(at);
    let (Some(last), Some(next)) = (before.chars().next_back(), after.chars().next()) else {
        return false;
    };
    !next.is_whitespace()
        && (last.is_whitespace() || (more_follows && !last.is_ascii() && next.is_alphanumeric()))
}

/// After a blank line, or after U+2029. A single newline ends a sentence, not a paragraph.
fn last_paragraph(text: &str, after_newline: bool) -> Option<usize> {
    let separator = text.rfind('\u{2029}').map(|at| at + '\u{2029}'.len_utf8());
    let (mut line_start, mut in_text, mut found) = (0, after_newline, None);
    for (at, _) in text.match_indices('\n') {
        let blank = text[line_start..at].chars().all(char::is_whitespace);
        if blank && in_text {
            found = Some(at + 1);
        }
        (line_start, in_text) = (at + 1, true);
    }
    found.max(separator)
}

/// Where grapheme clusters end; computed on demand.
struct Graphemes<'t> {
    text: &'t str,
    segmenter: GraphemeClusterSegmenterBorrowed<'static>,
    ends: OnceCell<Vec<usize>>,
}

impl<'t> Graphemes<'t> {
    fn of(text: &'t str, segmenters: &Segmenters) -> Self {
        Self { text, segmenter: segmenters.graphemes, ends: OnceCell::new() }
    }

    // enforces: L6, D19
    fn end_at(&self, at: usize) -> bool {
        let (before, after) = self.text.split_at(at);
        if before.ends_with(|c: char| c.is_ascii()) && after.starts_with(|c: char| c.is_ascii()) {
            return !(before.ends_with('\r') && after.starts_with('\n'));
        }
        let ends = self.ends.get_or_init(|| self.segmenter.segment_str(self.text).collect());
        ends.binary_search(&at).is_ok()
    }
}

/// Which boundary a text seems to end at, if nothing more follows.
pub(crate) fn apparent_end(text: &str) -> CoalesceBoundary {
    let trimmed = text.trim_end();
    let bare = trimmed.trim_end_matches(['"', '\'', ')', ']', '}', '”', '’', '»', '」', '』']);
    if bare.ends_with(['.', '!', '?', '…', '。', '！', '？', '؟', '।']) || text.ends_with('\n')
    {
        CoalesceBoundary::Sentence
    } else if trimmed.len() < text.len() {
        CoalesceBoundary::Word
    } else {
        CoalesceBoundary::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CoalesceBoundary::*;

    fn cuts(chunks: &[&str]) -> [u64; 3] {
        let (mut tail, segmenters) = (Tail::starting_at(0), Segmenters::new());
        let mut cuts = Cuts::default();
        for chunk in chunks {
            cuts = tail.push(chunk, Option::None, &segmenters);
        }
        [cuts.latest(Word), cuts.latest(Sentence), cuts.latest(Paragraph)]
    }

    // covers: H7, L6
    #[test]
    fn a_sentence_is_certain_once_the_next_begins() {
        assert_eq!(cuts(&["Well done. "]), [5, 0, 0]);
        assert_eq!(cuts(&["Well done. ", "Next"]), [11, 11, 0]);
        assert_eq!(cuts(&["It costs 3. ", "(", "and"]), [12, 0, 0], "a small letter goes on");
        assert_eq!(cuts(&["One line\n"]), [9, 9, 0]);
    }

    // covers: H7
    #[test]
    fn a_paragraph_ends_after_a_blank_line_and_not_after_one_newline() {
        assert_eq!(cuts(&["a\nb"])[2], 0);
        assert_eq!(cuts(&["a\n", " \t\n", "b"])[2], 5);
        assert_eq!(cuts(&["a\r\n\r\n"])[2], 5);
        assert_eq!(cuts(&["\nb"])[2], 0, "nothing stood before it");
        assert_eq!(cuts(&["a\u{2029}b"])[2], 2);
    }

    // covers: H7, D19
    #[test]
    fn positions_count_scalar_values_and_words_end_where_the_next_begins() {
        assert_eq!(cuts(&["élan 😀 "])[0], 5);
        assert_eq!(cuts(&["élan 😀 ", "x"])[0], 7);
        assert_eq!(cuts(&["hello wor"])[0], 6);
        assert!(
            cuts(&["สวัสดีครับ", "ผมชื่อ", "สมชาย"])[0] > 0,
            "a script without spaces has words too"
        );
    }

    #[test]
    fn what_a_text_seems_to_end_at_is_a_guess() {
        assert_eq!(apparent_end("Done.\" "), Sentence);
        assert_eq!(apparent_end("and "), Word);
        assert_eq!(apparent_end("an"), None);
    }
}
