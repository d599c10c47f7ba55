//! Reads the messages of a file of any size, one after the other.
//!
//! The input is values one after the other, on one line or many, or one array of them. One buffer
//! holds what is read; it grows to the limit of one message and no further, and messages are handed
//! out where they lie.
//!
//! # Where a broken value ends
//!
//! With its line. A value that was cut short must not swallow what follows, so a line that begins
//! with `{` where no value can stand is the next message; a value of many lines that goes wrong
//! otherwise ends where its brackets close.

mod framer;
#[cfg(test)]
mod tests;

use std::io::{self, Read};

use memchr::{memchr, memchr_iter};

use framer::{Brackets, Ending, Frame, Quotes};

/// How much is read at a time.
const CHUNK: usize = 256 * 1024;

/// One value of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    /// The line on which it begins, from 1.
    pub(crate) line: u64,
    /// What stands there.
    pub(crate) text: Text<'a>,
    /// What is wrong around it.
    pub(crate) stray: Option<Stray>,
}

/// What stands at a place of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text<'a> {
    /// A value, or what was meant to be one.
    Message(&'a [u8]),
    /// A value beyond the limit; it was skipped.
    TooLarge,
    /// Nothing: the input ends after what is wrong.
    Nothing,
}

/// Something that does not belong between messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stray {
    /// The input begins with U+FEFF.
    ByteOrderMark,
    /// A comma that separates nothing.
    ExtraComma,
    /// No comma between two elements of the array.
    NoComma,
    /// The array is over, but the input is not.
    AfterArray,
    /// The input is over, but the array is not.
    Unclosed,
}

/// Where in the input we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Begin,
    Values,
    Array(Expected),
    AfterArray,
    Over,
}

/// What may come next in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    ElementOrEnd,
    Element,
    CommaOrEnd,
    /// After a broken element, whose comma may be lost.
    Anything,
}

/// Reads values from `input`.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    input: R,
    max_bytes: usize,
    chunk: usize,
    buffer: Vec<u8>,
    /// What was read and not yet handed out.
    start: usize,
    end: usize,
    /// There is no newline between `start` and here.
    clear: usize,
    input_ended: bool,
    line: u64,
    /// The last line that was tried as a whole.
    tried: u64,
    place: Position,
    stray: Option<Stray>,
}

impl<R: Read> Reader<R> {
    pub(crate) fn new(input: R, max_bytes: usize) -> Self {
        Self::with_chunk(input, max_bytes, CHUNK)
    }

    /// The same in the middle of an input of values one after the other, from this line on.
    pub(crate) fn among_values(input: R, max_bytes: usize, line: u64) -> Self {
        Self { place: Position::Values, line, ..Self::new(input, max_bytes) }
    }

    fn with_chunk(input: R, max_bytes: usize, chunk: usize) -> Self {
        Self {
            input,
            max_bytes,
            chunk,
            buffer: vec![0; chunk],
            start: 0,
            end: 0,
            clear: 0,
            input_ended: false,
            line: 1,
            tried: 0,
            place: Position::Begin,
            stray: None,
        }
    }

    /// Whether the next value has yet to be waited for.
    pub(crate) fn is_drained(&self) -> bool {
        self.start == self.end
    }

    /// The next value, if there is one.
    ///
    /// Most inputs are one message to a line. `is_whole` says whether a line surely is one sound
    /// value, and spares the search for its end; it may always say no.
    pub(crate) fn next(
        &mut self,
        is_whole: impl FnOnce(&[u8]) -> bool,
    ) -> io::Result<Option<Value<'_>>> {
        let Some(first) = self.reach_value()? else { return Ok(self.last_words()) };
        let (line, stray) = (self.line, self.stray.take());
        if first == b'{'
            && self.place == Position::Values
            && let Some(end) = self.whole_line(is_whole)
        {
            let text = Text::Message(&self.buffer[self.start..end]);
            self.start = end;
            return Ok(Some(Value { line, text, stray }));
        }
        let ending = match first {
            b'{' | b'[' => Ending::Brackets(Brackets::new()),
            _ if self.place == Position::Values => Ending::Line,
            _ => Ending::Element(Quotes::default()),
        };
        let text = match self.frame(ending)? {
            Some((start, end)) => Text::Message(trim_end(&self.buffer[start..end])),
            None => Text::TooLarge,
        };
        Ok(Some(Value { line, text, stray }))
    }

    /// Goes to the first byte of the next value, past everything that may stand between two.
    fn reach_value(&mut self) -> io::Result<Option<u8>> {
        loop {
            if self.place == Position::Begin {
                self.skip_byte_order_mark()?;
            }
            let Some(byte) = self.skip_space()? else { return Ok(None) };
            match (self.place, byte) {
                (Position::Begin, b'[') => self.step(Expected::ElementOrEnd),
                (Position::Begin, _) => self.place = Position::Values,
                (Position::AfterArray, _) => {
                    self.stray = Some(Stray::AfterArray);
                    self.place = Position::Values;
                }
                (Position::Array(expected), b']') => {
                    if expected == Expected::Element {
                        self.stray = Some(Stray::ExtraComma);
                    }
                    self.start += 1;
                    self.place = Position::AfterArray;
                    if self.stray.is_some() {
                        return Ok(None);
                    }
                }
                (Position::Array(expected), b',') => {
                    if matches!(expected, Expected::Element | Expected::ElementOrEnd) {
                        self.stray = Some(Stray::ExtraComma);
                    }
                    self.step(Expected::Element);
                }
                (Position::Array(Expected::CommaOrEnd), _) => {
                    self.stray = Some(Stray::NoComma);
                    return Ok(Some(byte));
                }
                (Position::Array(_) | Position::Values | Position::Over, _) => {
                    return Ok(Some(byte));
                }
            }
        }
    }

    /// Past a bracket or comma of the array.
    fn step(&mut self, expected: Expected) {
        self.start += 1;
        self.place = Position::Array(expected);
    }

    /// There is no further value here; what is wrong with that is still to be said.
    fn last_words(&mut self) -> Option<Value<'static>> {
        if let Position::Array(_) = self.place {
            self.stray = Some(Stray::Unclosed);
            self.place = Position::Over;
        }
        let stray = self.stray.take()?;
        Some(Value { line: self.line, text: Text::Nothing, stray: Some(stray) })
    }

    fn skip_byte_order_mark(&mut self) -> io::Result<()> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        while self.end - self.start < MARK.len() && self.fill()? {}
        if self.buffer[self.start..self.end].starts_with(MARK) {
            self.start += MARK.len();
            self.stray = Some(Stray::ByteOrderMark);
        }
        Ok(())
    }

    fn skip_space(&mut self) -> io::Result<Option<u8>> {
        loop {
            while let Some(&byte) = self.buffer[..self.end].get(self.start) {
                match byte {
                    b'\n' => self.line += 1,
                    b' ' | b'\t' | b'\r' => {}
                    _ => return Ok(Some(byte)),
                }
                self.start += 1;
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// The end of the line at hand, if all of it is here and is one value. Each line is tried once:
    /// whatever follows a first value on its line is framed.
    fn whole_line(&mut self, is_whole: impl FnOnce(&[u8]) -> bool) -> Option<usize> {
        if self.tried == self.line {
            return None;
        }
        self.tried = self.line;
        let newline = self.find_newline()?;
        let text = trim_end(&self.buffer[self.start..newline]);
        let is_value = text.len() <= self.max_bytes && text.ends_with(b"}") && is_whole(text);
        is_value.then_some(self.start + text.len())
    }

    /// Among the bytes that are here; none is searched twice.
    fn find_newline(&mut self) -> Option<usize> {
        self.clear = self.clear.max(self.start);
        let found = memchr(b'\n', &self.buffer[self.clear..self.end]);
        self.clear = found.map_or(self.end, |length| self.clear + length);
        found.map(|_| self.clear)
    }

    /// Where the value at hand lies, and goes past it; none if it is too large.
    fn frame(&mut self, mut ending: Ending) -> io::Result<Option<(usize, usize)>> {
        let mut seen = 0;
        loop {
            // One byte more than is allowed, which tells a value that ends there from a longer one.
            let most = self.max_bytes.saturating_add(1);
            let here = (self.end - self.start).min(most);
            let frame = ending.scan(&self.buffer[self.start..self.start + here], seen);
            seen = here;
            let length = match frame {
                Frame::End(length) | Frame::Broken(length) => length,
                Frame::More if here == most => {
                    self.skip_rest(ending, seen)?;
                    return Ok(None);
                }
                Frame::More if self.fill()? => continue,
                Frame::More => ending.next_message().unwrap_or(seen),
            };
            let start = self.start;
            self.consume(length);
            self.after_value(matches!(frame, Frame::End(_)));
            return Ok((length <= self.max_bytes).then_some((start, start + length)));
        }
    }

    /// Past a value that is too large, of which `seen` bytes were looked at, keeping none of it.
    fn skip_rest(&mut self, mut ending: Ending, seen: usize) -> io::Result<()> {
        self.consume(seen);
        ending.forget();
        loop {
            match ending.scan(&self.buffer[self.start..self.end], 0) {
                Frame::More => {
                    self.consume(self.end - self.start);
                    if !self.fill()? {
                        return Ok(());
                    }
                }
                frame @ (Frame::End(length) | Frame::Broken(length)) => {
                    self.consume(length);
                    self.after_value(matches!(frame, Frame::End(_)));
                    return Ok(());
                }
            }
        }
    }

    fn after_value(&mut self, sound: bool) {
        if let Position::Array(_) = self.place {
            let expected = if sound { Expected::CommaOrEnd } else { Expected::Anything };
            self.place = Position::Array(expected);
        }
    }

    fn consume(&mut self, length: usize) {
        let bytes = &self.buffer[self.start..self.start + length];
        self.line += memchr_iter(b'\n', bytes).count() as u64;
        self.start += length;
    }

    /// Reads more; false at the end of the input.
    fn fill(&mut self) -> io::Result<bool> {
        if self.input_ended {
            return Ok(false);
        }
        self.make_room();
        loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(count) => {
                    self.end += count;
                    self.input_ended = count == 0;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Moves what is left to the front only when the buffer is full, so that small reads cost no
    /// copies, and grows only for a value that takes more than half of it.
    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end, self.clear) = (0, 0, 0);
        }
        if self.end < self.buffer.len() {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.clear = self.clear.saturating_sub(self.start);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end > self.buffer.len() / 2 {
            let most = self.max_bytes.saturating_add(self.chunk);
            let length = (self.buffer.len() * 2).min(most).max(self.end + 1);
            self.buffer.resize(length, 0);
        }
    }
}

/// Without the blanks that JSON allows around a value.
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    trim_end(&bytes[start..])
}

fn trim_end(bytes: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let length = bytes.iter().rposition(|byte| !blank(byte)).map_or(0, |last| last + 1);
    &bytes[..length]
}
