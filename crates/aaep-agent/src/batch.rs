//! Tokens of a model, gathered into chunks that are worth sending. Pure: given its time.

use std::time::Duration;

use aaep_types::CoalesceBoundary;
use aaep_types::secret::{Kind, Redactor, open_secret};
use icu_segmenter::{GraphemeClusterSegmenter, GraphemeClusterSegmenterBorrowed};
use tokio::time::Instant;

/// How long text waits for more.
const PATIENT: Duration = Duration::from_millis(100);

/// So many bytes are sent without waiting for more.
const ENOUGH: usize = 512;

/// The longest piece, in bytes. What the protocol allows (16384 characters) is five times as much,
/// since what is put in the place of a short secret is longer.
const LONGEST: usize = 3 * 1024;

/// A word, or a grapheme cluster, that is longer than this is cut all the same.
const LONGEST_WORD: usize = 512;

/// A piece of an output, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) text: String,
    /// Where it begins, in Unicode scalar values (D19).
    pub(crate) position: u64,
    pub(crate) complete: bool,
    pub(crate) hint: CoalesceBoundary,
}

/// Text of one output that has not been sent yet.
pub(crate) struct Batch {
    text: String,
    position: u64,
    since: Option<Instant>,
    begun: bool,
    redactor: Redactor,
    graphemes: GraphemeClusterSegmenterBorrowed<'static>,
}

impl Batch {
    /// An output that goes on at this position; at 0 if it is new.
    pub(crate) fn at(position: u64) -> Self {
        let graphemes = GraphemeClusterSegmenter::new();
        Self {
            text: String::new(),
            position,
            since: None,
            begun: position > 0,
            redactor: Redactor::default(),
            graphemes,
        }
    }

    pub(crate) fn push(&mut self, text: &str, now: Instant) {
        if !text.is_empty() {
            self.text.push_str(text);
            self.since.get_or_insert(now);
        }
    }

    /// When what is here should go out, even if nothing more comes.
    pub(crate) fn due(&self) -> Option<Instant> {
        let since = self.since?;
        if self.text.len() >= ENOUGH { Some(since) } else { Some(since + PATIENT) }
    }

    /// The next chunk, if there is one that can go out now; the last one stays for the completion
    /// (D20).
    pub(crate) fn take(&mut self, now: Instant) -> Option<Chunk> {
        if self.due()? > now {
            return None;
        }
        let cut = self.cut();
        if cut == 0 {
            // Nothing can go before more comes; look again then.
            self.since = None;
            return None;
        }
        self.since = Some(now).filter(|_| cut < self.text.len());
        self.split_off(cut)
    }

    /// Everything that is here, in chunks, whatever may follow.
    pub(crate) fn take_all(&mut self) -> Vec<Chunk> {
        let mut chunks = self.take_long();
        chunks.extend(self.split_off(self.text.len()));
        self.since = None;
        chunks
    }

    /// Makes what is left short enough for one chunk.
    fn take_long(&mut self) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        while self.text.len() > LONGEST {
            chunks.extend(self.split_off(self.longest_cut()));
        }
        chunks
    }

    // enforces: T18, D20
    /// What is left, in chunks; the last one completes the output. Nothing if nothing was ever
    /// written.
    pub(crate) fn finish(mut self) -> Vec<Chunk> {
        let mut chunks = self.take_long();
        if self.begun || !self.text.is_empty() {
            let whole = self.text.len();
            chunks.push(self.split(whole, true));
        }
        chunks
    }

    /// The first piece, unless nothing is left of it.
    fn split_off(&mut self, cut: usize) -> Option<Chunk> {
        Some(self.split(cut, false)).filter(|chunk| !chunk.text.is_empty())
    }

    fn split(&mut self, cut: usize, complete: bool) -> Chunk {
        let rest = self.text.split_off(cut);
        let text = std::mem::replace(&mut self.text, rest);
        // Before the text is counted: positions are those of what is sent.
        let text = self.redactor.pass(&text).text;
        let position = self.position;
        // enforces: T17, D19
        self.position += text.chars().count() as u64;
        self.begun |= !text.is_empty();
        Chunk { hint: hint(&text), text, position, complete }
    }

    // enforces: D19
    /// Where to cut: the last grapheme cluster stays, since it may go on; and so does the end that
    /// could be the beginning of a secret, so that it is looked at as a whole (T14).
    fn cut(&self) -> usize {
        if self.text.len() > LONGEST {
            return self.longest_cut();
        }
        let certain = self.last_boundary(self.text.len());
        before_secret(&self.text[..certain])
    }

    fn longest_cut(&self) -> usize {
        let most = self.text.floor_char_boundary(LONGEST);
        let certain = self.last_boundary(most);
        match (before_secret(&self.text[..certain]), certain) {
            (0, 0) => most,
            (0, certain) => certain,
            (harmless, _) => harmless,
        }
    }

    /// The last place before `end` where a grapheme cluster surely ends; 0 if there is none.
    fn last_boundary(&self, end: usize) -> usize {
        // A cluster is short: the beginning need not be looked at again. Boundaries found from the
        // middle may be wrong at first, so the look begins well before.
        let from = self.text.floor_char_boundary(end.saturating_sub(4 * LONGEST_WORD));
        let text = &self.text[from..end];
        // enforces: L6
        let last = self.graphemes.segment_str(text).filter(|at| *at < text.len()).last();
        match last {
            Some(0) | None if end - from > LONGEST_WORD => end,
            Some(at) => from + at,
            None => 0,
        }
    }
}

// enforces: T14
/// How much of a text can go, since nothing that follows can make a secret of its end. What is held
/// back for that is bounded.
fn before_secret(text: &str) -> usize {
    let harmless = match text.len() - harmless_end(text) {
        held if held > LONGEST_WORD => text.len(),
        held => text.len() - held,
    };
    match open_secret(text) {
        // A private key is long, and goes as a whole if it can.
        Some((start, Kind::PrivateKey)) => start.min(harmless),
        Some((start, _)) if text.len() - start <= LONGEST_WORD => start.min(harmless),
        _ => harmless,
    }
}

/// What is left of a text without an end that may go on as a secret: a word in the making, a number
/// in groups, a name with a colon or an equals sign.
fn harmless_end(text: &str) -> usize {
    let mut end = text.trim_end_matches(is_word).len();
    loop {
        let before = text[..end].trim_end_matches([' ', '"', '\'']);
        let goes_on =
            before.ends_with(|last: char| last.is_ascii_digit() || matches!(last, ':' | '='));
        if !goes_on || text.len() - end > LONGEST_WORD {
            return end;
        }
        let before = before.trim_end_matches([' ', ':', '=']);
        end = before.trim_end_matches(is_word).len();
    }
}

/// Characters of words that are looked at as a whole: keys, numbers with their separators.
fn is_word(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=' | '_' | '-' | '.')
}

/// Where a chunk ends, as far as its own text says.
fn hint(text: &str) -> CoalesceBoundary {
    let ended = text.trim_end();
    let space = &text[ended.len()..];
    if space.contains("\n\n") {
        return CoalesceBoundary::Paragraph;
    }
    let closes = ended.trim_end_matches(['"', '\'', ')', ']', '”', '’', '»']);
    let wide = closes.ends_with(['。', '！', '？', '؟', '।']);
    if wide || !space.is_empty() && closes.ends_with(['.', '!', '?', '…']) {
        CoalesceBoundary::Sentence
    } else if space.is_empty() {
        CoalesceBoundary::None
    } else {
        CoalesceBoundary::Word
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn later(now: Instant) -> Instant {
        now + PATIENT
    }

    fn whole(tokens: &[&str]) -> Vec<Chunk> {
        let mut now = Instant::now();
        let mut batch = Batch::at(0);
        let mut chunks = Vec::new();
        for token in tokens {
            batch.push(token, now);
            now = later(now);
            chunks.extend(batch.take(now));
        }
        chunks.extend(batch.finish());
        chunks
    }

    // covers: T17, D19
    #[test]
    fn positions_count_scalar_values_and_the_last_chunk_completes() {
        let chunks = whole(&["Grüße, ", "Welt! ", "👨‍👩‍👧 ", "Ende"]);
        let texts: String = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
        assert_eq!(texts, "Grüße, Welt! 👨‍👩‍👧 Ende");
        let mut position = 0;
        for chunk in &chunks {
            assert_eq!(chunk.position, position);
            position += chunk.text.chars().count() as u64;
        }
        assert_eq!(chunks.iter().filter(|chunk| chunk.complete).count(), 1);
        assert!(chunks.last().unwrap().complete && !chunks.last().unwrap().text.is_empty());
        assert!(chunks.len() > 2, "{chunks:?}");
    }

    // covers: L6
    #[test]
    fn a_family_that_comes_in_parts_is_not_torn_apart() {
        let chunks = whole(&["a ", "👨", "\u{200d}", "👩", "\u{200d}👧", " b", "e\u{301} ", "c"]);
        assert!(chunks.iter().all(|chunk| !chunk.text.starts_with('\u{200d}')), "{chunks:?}");
        assert!(chunks.iter().all(|chunk| !chunk.text.starts_with('\u{301}')), "{chunks:?}");
    }

    // covers: T14
    #[test]
    fn a_word_in_the_making_waits_for_its_end() {
        let chunks = whole(&["My key is sk", "-abc", "def and", " more"]);
        let word = chunks.iter().find(|chunk| chunk.text.contains("sk")).unwrap();
        assert!(word.text.contains("sk-abcdef"), "{chunks:?}");
        let key = ["My key is sk", "-abcd1234", "efgh5678", "ijkl and", " more"];
        let said: String = whole(&key).iter().map(|chunk| chunk.text.as_str()).collect();
        assert_eq!(said, "My key is [key removed] and more");
        let chunks = whole(&[
            "Pay with 4111 ",
            "1111 1111",
            " 1111 ",
            "now. The password: ",
            "hunter2",
            " is mine.",
        ]);
        let said: String = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
        assert_eq!(
            said,
            "Pay with [card number removed] now. The password: [password removed] is mine."
        );
        assert!(chunks.len() > 2, "{chunks:?}");
    }

    #[test]
    fn text_without_spaces_flows_and_endless_words_do_not_stay() {
        assert!(whole(&["你好", "世界", "再见", "了"]).len() > 2);
        // However much was taken out of it, a chunk stays below what the protocol allows.
        let secrets = "pw=a ".repeat(LONGEST);
        let chunks = whole(&[&secrets]);
        assert!(chunks.iter().all(|chunk| chunk.text.chars().count() <= 16_384), "too long");
        let long = "x".repeat(3 * LONGEST);
        let chunks = whole(&[&long, &long]);
        assert!(chunks.iter().all(|chunk| chunk.text.len() <= LONGEST), "too long");
        let marks = "\u{301}".repeat(LONGEST);
        assert!(whole(&["a", &marks]).iter().all(|chunk| chunk.text.len() <= LONGEST));
    }

    #[test]
    fn nothing_written_is_no_output_and_a_resumed_one_is_completed() {
        assert!(Batch::at(0).finish().is_empty());
        let chunks = Batch::at(7).finish();
        assert_eq!((chunks[0].position, chunks[0].complete), (7, true));
    }

    #[test]
    fn hints_say_where_a_chunk_ends() {
        use CoalesceBoundary::*;
        for (text, wanted) in [
            ("One. ", Sentence),
            ("He said \"no!\" ", Sentence),
            ("One, ", Word),
            ("On", None),
            ("One.\n\n", Paragraph),
            ("你好。", Sentence),
        ] {
            assert_eq!(hint(text), wanted, "{text:?}");
        }
    }

    const SECRETS: [&str; 5] = [
        "4111 1111 1111 1111",
        "sk-abcd1234efgh5678ijkl",
        "password=hunter2",
        "password=\"a long one\"",
        "ghp_abcdefghij0123456789abcdefghij012345",
    ];

    proptest! {
        // covers: T17, T18
        #[test]
        fn no_text_is_lost_or_changed_however_it_comes(
            tokens in prop::collection::vec("\\PC{0,12}|[a-z .]{0,600}|(e\u{301}){1,9}", 0..30),
            waits in prop::collection::vec(any::<bool>(), 30),
        ) {
            let mut now = Instant::now();
            let mut batch = Batch::at(0);
            let mut chunks = Vec::new();
            for (token, wait) in tokens.iter().zip(waits) {
                batch.push(token, now);
                if wait { now = later(now); }
                while let Some(chunk) = batch.take(now) { chunks.push(chunk); }
            }
            chunks.extend(batch.finish());
            let text = tokens.concat();
            prop_assume!(aaep_types::secret::find(&text).is_empty());
            let mut position = 0;
            for (index, chunk) in chunks.iter().enumerate() {
                prop_assert_eq!(chunk.position, position);
                prop_assert_eq!(chunk.complete, index + 1 == chunks.len());
                prop_assert!(chunk.text.len() <= LONGEST);
                position += chunk.text.chars().count() as u64;
            }
            let sent: String = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
            prop_assert_eq!(sent, text);
        }

        // covers: T14
        #[test]
        fn no_secret_gets_out_however_it_is_torn(
            before in "[a-z ]{0,30} ",
            secret in prop::sample::select(SECRETS.to_vec()),
            after in " [a-z ]{0,30}",
            cuts in prop::collection::vec(1usize..9, 1..40),
        ) {
            let text: Vec<char> = format!("{before}{secret}{after}").chars().collect();
            let (mut tokens, mut at) = (Vec::new(), 0);
            for size in cuts.iter().cycle() {
                if at >= text.len() { break; }
                let end = (at + size).min(text.len());
                tokens.push(text[at..end].iter().collect::<String>());
                at = end;
            }
            let tokens: Vec<&str> = tokens.iter().map(String::as_str).collect();
            let said: String = whole(&tokens).iter().map(|chunk| chunk.text.as_str()).collect();
            let secret = secret.rsplit(['=', '"']).find(|part| !part.is_empty()).unwrap();
            prop_assert!(!said.contains(secret), "{}", said);
            prop_assert!(said.contains(" removed]"), "{}", said);
        }
    }
}
