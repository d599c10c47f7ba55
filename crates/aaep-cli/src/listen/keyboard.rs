//! What is typed, from bytes to keys and lines.

use std::collections::VecDeque;

use super::source::Source;

/// The longest line, in bytes: the longest answer (§6.5.2) at four bytes a character.
const LINE_BYTES: usize = 64 * 1024;

/// Ctrl-D, as everywhere.
const END: u8 = 4;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Key(char),
    Line(String),
    /// A line that is longer than any answer may be.
    TooLong,
    /// Nothing more will come.
    End,
}

/// Bytes that were read and mean nothing yet.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    bytes: VecDeque<u8>,
    /// The line so far is too long; its end is awaited.
    skipping: bool,
    ended: bool,
}

impl Decoder {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    pub(super) fn end(&mut self) {
        self.ended = true;
    }

    /// The end was not the last word.
    pub(super) fn reopen(&mut self) {
        self.bytes.clear();
        self.ended = false;
    }

    /// Forgets what was typed and not used.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// The next line.
    pub(super) fn line(&mut self) -> Option<Typed> {
        // Ctrl-D that was pressed while keys still came one by one.
        if self.bytes.front() == Some(&END) {
            self.bytes.pop_front();
            return Some(Typed::End);
        }
        let end = self.bytes.iter().position(|byte| *byte == b'\n');
        match end {
            Some(end) => {
                let line: Vec<u8> = self.bytes.drain(..=end).collect();
                if std::mem::take(&mut self.skipping) || line.len() > LINE_BYTES {
                    return Some(Typed::TooLong);
                }
                let line = String::from_utf8_lossy(&line);
                Some(Typed::Line(line.trim_end_matches(['\n', '\r']).to_owned()))
            }
            None if self.bytes.len() > LINE_BYTES => {
                self.bytes.clear();
                self.skipping = true;
                None
            }
            None if self.ended && !self.bytes.is_empty() => {
                let line: Vec<u8> = self.bytes.drain(..).collect();
                Some(Typed::Line(String::from_utf8_lossy(&line).into_owned()))
            }
            None => self.ended.then_some(Typed::End),
        }
    }

    /// The next key. Arrows and the like come as escape sequences; they mean nothing here, and the
    /// letters in them are no answers.
    pub(super) fn key(&mut self) -> Option<Typed> {
        loop {
            let first = match self.bytes.front() {
                Some(first) => *first,
                None => return self.ended.then_some(Typed::End),
            };
            if first == 0x1b {
                self.skip_escape();
                continue;
            }
            let length = match first {
                0x00..=0x7f => 1,
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => {
                    self.bytes.pop_front();
                    continue;
                }
            };
            if self.bytes.len() < length && !self.ended {
                return None;
            }
            let bytes: Vec<u8> = self.bytes.drain(..length.min(self.bytes.len())).collect();
            match std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next()) {
                Some(key) if key == char::from(END) => return Some(Typed::End),
                Some(key) => return Some(Typed::Key(key)),
                None => {}
            }
        }
    }

    /// Leaves out an escape sequence, or Escape alone.
    fn skip_escape(&mut self) {
        self.bytes.pop_front();
        match self.bytes.front() {
            // CSI: parameters, then a final byte.
            Some(b'[') => {
                self.bytes.pop_front();
                while let Some(byte) = self.bytes.pop_front() {
                    if matches!(byte, 0x40..=0x7e) {
                        break;
                    }
                }
            }
            // SS3: one byte.
            Some(b'O') => drop(self.bytes.drain(..2.min(self.bytes.len()))),
            // Alt and a letter.
            Some(byte) if *byte != 0x1b => drop(self.bytes.pop_front()),
            _ => {}
        }
    }
}

/// What is typed, as it comes.
pub(super) struct Keyboard {
    source: Source,
    pub(super) decoder: Decoder,
}

impl Keyboard {
    pub(super) fn start() -> Self {
        Self { source: Source::start(), decoder: Decoder::default() }
    }

    /// Waits until there is something to read; never when nothing more will come.
    pub(super) async fn readable(&mut self) {
        if self.decoder.ended {
            return std::future::pending().await;
        }
        if !self.source.readable().await {
            self.decoder.end();
        }
    }

    /// Reads what is there now, without waiting.
    pub(super) fn read(&mut self) {
        while !self.decoder.ended && self.decoder.bytes.len() <= LINE_BYTES {
            match self.source.take() {
                None => return,
                Some(bytes) if bytes.is_empty() => self.decoder.end(),
                Some(bytes) => self.decoder.add(&bytes),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Vec<char> {
        let mut decoder = Decoder::default();
        decoder.add(bytes);
        let mut keys = Vec::new();
        while let Some(Typed::Key(key)) = decoder.key() {
            keys.push(key);
        }
        keys
    }

    #[test]
    fn letters_in_escape_sequences_are_no_keys() {
        assert_eq!(keys(b"a\x1b[A\x1b[1;5yb\x1bOyc\x1byd"), ['a', 'b', 'c', 'd']);
        assert_eq!(keys("ن是\u{7f}\t".as_bytes()), ['ن', '是', '\u{7f}', '\t']);
        assert_eq!(keys(b"\xff\x80y"), ['y']);
    }

    #[test]
    fn a_letter_in_two_pieces_is_one_key() {
        let mut decoder = Decoder::default();
        decoder.add(&[0xd9]);
        assert_eq!(decoder.key(), None);
        decoder.add(&[0x86]);
        assert_eq!(decoder.key(), Some(Typed::Key('ن')));
    }

    #[test]
    fn lines_are_whole_bounded_and_the_last_needs_no_end() {
        let mut decoder = Decoder::default();
        decoder.add(b"yes\r\nno");
        assert_eq!(decoder.line(), Some(Typed::Line("yes".into())));
        assert_eq!(decoder.line(), None);
        decoder.add(&vec![b'x'; LINE_BYTES]);
        assert_eq!(decoder.line(), None);
        decoder.add(b"yes\nlist");
        assert_eq!(decoder.line(), Some(Typed::TooLong));
        decoder.end();
        assert_eq!(decoder.line(), Some(Typed::Line("list".into())));
        assert_eq!(decoder.line(), Some(Typed::End));
    }
}
