//! The agent's text, collected until it can be said (T19).

use aaep_types::CoalesceBoundary;
use icu_segmenter::options::SentenceBreakInvariantOptions;
use icu_segmenter::{GraphemeClusterSegmenter, SentenceSegmenter};

use super::bounds::Bounds;
use super::settings::TextBy;

/// How much text without the end of a sentence is looked at again and again.
const LOOKED_AT: usize = 4096;

/// A piece of an output as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'t> {
    pub(super) chunk: &'t str,
    /// Where it begins, in Unicode scalar values (D19).
    pub(super) position: Option<u64>,
    pub(super) complete: bool,
    pub(super) hint: Option<CoalesceBoundary>,
}

/// Text that can be said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sayable {
    pub(super) text: String,
    pub(super) ends: bool,
    pub(super) after_gap: bool,
}

/// One output on its way.
#[derive(Debug, Default)]
pub(super) struct Collector {
    waiting: String,
    /// Where the next piece should begin.
    next: Option<u64>,
    gap: bool,
    done: bool,
    /// When it was last written to, in the order of all.
    pub(super) touched: u64,
}

impl Collector {
    pub(super) fn bytes(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Some of what was to be said is not: the next text comes after a gap.
    pub(super) fn lose(&mut self) {
        self.gap = true;
    }

    // enforces: T19
    /// Adds a piece; gives what can be said now, in order.
    pub(super) fn add(&mut self, piece: Piece<'_>, by: TextBy, bounds: &Bounds) -> Vec<Sayable> {
        let mut said = Vec::new();
        if self.done {
            return said;
        }
        let fresh = self.unheard(&piece, &mut said);
        self.waiting.push_str(fresh);
        if piece.complete {
            self.done = true;
            said.push(self.say_up_to(self.waiting.len(), true));
            return said;
        }
        let end = if is_real(piece.hint, by) { self.waiting.len() } else { self.boundary(by) };
        let end = if end == 0 { self.too_long(bounds) } else { end };
        if end > 0 {
            said.push(self.say_up_to(end, false));
        }
        said
    }

    /// Everything that waits, because nothing more will come.
    pub(super) fn finish(&mut self) -> Option<Sayable> {
        if self.done {
            return None;
        }
        self.done = true;
        (!self.waiting.is_empty()).then(|| self.say_up_to(self.waiting.len(), true))
    }

    /// Everything that waits, because there is no room for it.
    pub(super) fn give_up(&mut self) -> Option<Sayable> {
        (!self.waiting.is_empty()).then(|| self.say_up_to(self.waiting.len(), false))
    }

    /// The part of a piece that was not heard before. A piece that begins too late comes after a
    /// gap, and what waits can only be said as it is.
    fn unheard<'t>(&mut self, piece: &Piece<'t>, said: &mut Vec<Sayable>) -> &'t str {
        let Some(position) = piece.position else { return piece.chunk };
        let next = self.next.unwrap_or(0);
        let length = piece.chunk.chars().count() as u64;
        if position > next {
            said.extend(self.give_up());
            self.gap = true;
        }
        self.next = Some(position.saturating_add(length).max(next));
        let known = usize::try_from(next.saturating_sub(position)).unwrap_or(usize::MAX);
        piece.chunk.char_indices().nth(known).map_or("", |(at, _)| &piece.chunk[at..])
    }

    fn say_up_to(&mut self, end: usize, ends: bool) -> Sayable {
        let rest = self.waiting.split_off(end.min(self.waiting.len()));
        let text = std::mem::replace(&mut self.waiting, rest);
        Sayable { text, ends, after_gap: std::mem::take(&mut self.gap) }
    }

    /// The last certain boundary in what waits; 0 if there is none.
    fn boundary(&self, by: TextBy) -> usize {
        match by {
            TextBy::End => 0,
            TextBy::Paragraph => end_of_paragraph(&self.waiting),
            TextBy::Sentence => end_of_sentence(&self.waiting).max(end_of_paragraph(&self.waiting)),
        }
    }

    /// Where to cut what has no boundary for too long: at a space, or at least not inside a letter
    /// (L6).
    fn too_long(&self, bounds: &Bounds) -> usize {
        if self.waiting.len() <= bounds.output_bytes {
            return 0;
        }
        let space = self.waiting.rfind(char::is_whitespace).map(|at| at + 1);
        let space = space.filter(|at| self.waiting.is_char_boundary(*at));
        space.filter(|at| *at > self.waiting.len() / 2).unwrap_or_else(|| {
            // The last letter may still grow.
            let tail = floor(&self.waiting, self.waiting.len().saturating_sub(256));
            let breaks = GraphemeClusterSegmenter::new().segment_str(&self.waiting[tail..]);
            let breaks: Vec<usize> = breaks.collect();
            breaks.iter().rev().nth(1).map_or(self.waiting.len(), |at| tail + at).max(1)
        })
    }
}

/// Whether the producer says that a piece ends where it may be said.
fn is_real(hint: Option<CoalesceBoundary>, by: TextBy) -> bool {
    match by {
        TextBy::Sentence => hint >= Some(CoalesceBoundary::Sentence),
        TextBy::Paragraph => hint >= Some(CoalesceBoundary::Paragraph),
        TextBy::End => false,
    }
}

/// After the last blank line.
fn end_of_paragraph(text: &str) -> usize {
    let blank = text.rfind("\n\n").map(|at| at + 2);
    blank.max(text.rfind("\r\n\r\n").map(|at| at + 4)).unwrap_or(0)
}

/// After the last sentence that is followed by something else: "3." may still become "3.5".
fn end_of_sentence(text: &str) -> usize {
    let from = floor(text, text.len().saturating_sub(LOOKED_AT));
    let segmenter = SentenceSegmenter::new(SentenceBreakInvariantOptions::default());
    let certain = segmenter.segment_str(&text[from..]).filter(|at| from + at < text.len());
    certain.last().filter(|at| *at > 0).map_or(0, |at| from + at)
}

/// The last place for a cut that is not after `at`.
fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(chunk: &str, position: u64) -> Piece<'_> {
        Piece { chunk, position: Some(position), complete: false, hint: None }
    }

    fn all(pieces: &[Piece<'_>], by: TextBy) -> Vec<(String, bool, bool)> {
        let mut collector = Collector::default();
        let bounds = Bounds { output_bytes: 64, ..Bounds::default() };
        pieces
            .iter()
            .flat_map(|piece| collector.add(*piece, by, &bounds))
            .map(|said| (said.text, said.ends, said.after_gap))
            .collect()
    }

    fn said(text: &str) -> (String, bool, bool) {
        (text.into(), false, false)
    }

    // covers: T19
    #[test]
    fn a_piece_without_a_boundary_is_never_said_alone() {
        let none = |chunk, position| Piece {
            hint: Some(CoalesceBoundary::None),
            ..piece(chunk, position)
        };
        let pieces = [
            none("Hel", 0),
            none("lo. The", 3),
            none(" end", 10),
            Piece { complete: true, ..none("", 14) },
        ];
        assert_eq!(
            all(&pieces, TextBy::Sentence),
            [said("Hello. "), ("The end".into(), true, false)]
        );
        assert_eq!(all(&pieces, TextBy::End), [("Hello. The end".into(), true, false)]);
    }

    // covers: T19
    #[test]
    fn a_number_is_not_cut_at_its_point() {
        let pieces = [piece("It costs 3.", 0), piece("50 euros.", 11), piece(" Fine", 20)];
        assert_eq!(all(&pieces, TextBy::Sentence), [said("It costs 3.50 euros. ")]);
    }

    // covers: T19
    #[test]
    fn a_producer_may_say_where_a_sentence_ends() {
        let hinted = Piece { hint: Some(CoalesceBoundary::Sentence), ..piece("Done.", 0) };
        assert_eq!(all(&[hinted], TextBy::Sentence), [said("Done.")]);
        assert!(all(&[hinted], TextBy::Paragraph).is_empty());
        let paragraphs = [piece("One. Two.\n\nThr", 0)];
        assert_eq!(all(&paragraphs, TextBy::Paragraph), [said("One. Two.\n\n")]);
    }

    // covers: D15, D19
    #[test]
    fn missing_text_shows_and_repeated_text_is_not_said_again() {
        let pieces = [piece("Aé b", 0), piece("é b. C", 1), piece("Far. X", 20)];
        assert_eq!(
            all(&pieces, TextBy::Sentence),
            [said("Aé b. "), said("C"), ("Far. ".into(), false, true)]
        );
    }

    #[test]
    fn text_without_any_boundary_is_bounded() {
        let long = "x".repeat(40);
        let pieces = [piece(&long, 0), piece(&long, 40), piece(&long, 80)];
        let told = all(&pieces, TextBy::End);
        assert!(!told.is_empty());
        let words = format!("{} {}", "y".repeat(50), "z".repeat(30));
        assert_eq!(all(&[piece(&words, 0)], TextBy::End)[0].0, format!("{} ", "y".repeat(50)));
    }
}
