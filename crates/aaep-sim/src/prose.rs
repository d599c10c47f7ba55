//! What agents write. The text at any place of any output is known beforehand, so a listener that hears a
//! piece of it can tell whether it is the right one.

use crate::oracle::{number, text};

/// What an agent may send at once, over and over again. Each ends where a letter ends.
const PHRASES: [&str; 10] = [
    "All is well.",
    " The train",
    " leaves at noon",
    "! ",
    "N\u{e4}her kommt",
    " ein Caf\u{e9} \u{1f469}\u{200d}\u{1f469}\u{200d}\u{1f467}",
    " am Platz.\\n\\n",
    "Then: s",
    "even words",
    " follow here. ",
];

/// The characters of a phrase as it is spoken, not as it is written in JSON.
fn characters(phrase: &str) -> impl Iterator<Item = char> {
    let mut rest = phrase.chars();
    std::iter::from_fn(move || match rest.next()? {
        // Nothing else is escaped in what agents of ours write.
        '\\' => rest.next().map(|_| '\n'),
        other => Some(other),
    })
}

/// An output of a session while it is written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Writing {
    /// Which of the session's outputs; the first has no name.
    pub(crate) output: u32,
    phrases: usize,
    position: u64,
}

impl Writing {
    /// The next so many phrases as a payload, and where the output is after them.
    pub(crate) fn next(mut self, phrases: usize, complete: bool, hint: &str) -> (String, Self) {
        let (mut chunk, position) = (String::new(), self.position);
        for _ in 0..phrases {
            let phrase = PHRASES[self.phrases % PHRASES.len()];
            chunk.push_str(phrase);
            self.position += characters(phrase).count() as u64;
            self.phrases += 1;
        }
        let name = match self.output {
            0 => String::new(),
            output => format!(r#","output_id":"out_{output}""#),
        };
        let payload = format!(
            r#"{{"chunk":"{chunk}","position":{position},"complete":{complete}{name}{hint}}}"#
        );
        let after =
            if complete { Self { output: self.output + 1, phrases: 0, position: 0 } } else { self };
        (payload, after)
    }
}

/// A piece of an output, as somebody heard it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'e> {
    pub(crate) output: u32,
    pub(crate) position: u64,
    chunk: &'e str,
}

impl<'e> Piece<'e> {
    /// Reads it from an event of ours.
    pub(crate) fn read(json: &'e str) -> Option<Self> {
        let chunk = text(json, "\"chunk\":\"")?;
        let position = number(json, "\"position\":")?;
        Some(Self { output: number(json, "\"out_").unwrap_or(0) as u32, position, chunk })
    }

    pub(crate) fn length(&self) -> u64 {
        characters(self.chunk).count() as u64
    }

    /// Whether it is what the agent wrote at that place.
    pub(crate) fn is_what_was_written(&self) -> bool {
        let whole: u64 = PHRASES.iter().map(|phrase| characters(phrase).count() as u64).sum();
        let from = (self.position % whole) as usize;
        let written = PHRASES.iter().cycle().flat_map(|phrase| characters(phrase)).skip(from);
        characters(self.chunk).eq(written.take(self.length() as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_from_another_place_or_with_a_letter_missing_is_noticed() {
        let (first, after) = Writing::default().next(7, false, "");
        let (second, _) = after.next(9, false, "");
        assert!(Piece::read(&first).unwrap().is_what_was_written());
        assert!(Piece::read(&second).unwrap().is_what_was_written());
        let moved = second.replace("\"position\":", "\"position\":1");
        assert!(!Piece::read(&moved).unwrap().is_what_was_written());
        let shorter = first.replace("noon", "non");
        assert!(!Piece::read(&shorter).unwrap().is_what_was_written());
    }
}
