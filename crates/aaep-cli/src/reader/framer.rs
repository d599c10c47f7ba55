//! Finds where a value ends, without understanding it.
//!
//! Each way of ending can be interrupted anywhere and goes on with the next bytes; nothing is ever
//! looked at twice on behalf of one value.

use memchr::{memchr, memchr3};

/// How deep a value may nest before a line that looks like a new message is taken for one. It
/// bounds how often a byte is looked at again after broken values; no judge reads deeper.
const MAX_DEPTH: usize = 128;

/// What a look at more bytes has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// The value goes on.
    More,
    /// It ends before this offset.
    End(usize),
    /// It will never be sound, and another begins at this offset or later.
    Broken(usize),
}

/// How a value ends.
#[derive(Debug)]
pub(super) enum Ending {
    /// An object or array: where its brackets close.
    Brackets(Brackets),
    /// Something else, among values: with its line.
    Line,
    /// Something else, in an array: with its line, or at the comma or bracket that follows.
    Element(Quotes),
}

impl Ending {
    /// Goes on at `from`; `bytes` begin with the value, or with what is left of it.
    pub(super) fn scan(&mut self, bytes: &[u8], from: usize) -> Frame {
        match self {
            Ending::Brackets(brackets) => brackets.scan(bytes, from),
            Ending::Line => match memchr(b'\n', &bytes[from..]) {
                Some(length) => Frame::End(from + length),
                None => Frame::More,
            },
            Ending::Element(quotes) => quotes.scan_element(bytes, from),
        }
    }

    /// The bytes so far are gone; offsets begin anew, and nothing can be taken back.
    pub(super) fn forget(&mut self) {
        if let Ending::Brackets(brackets) = self {
            brackets.may_go_back = false;
            brackets.next_message = None;
        }
    }

    /// Where an unfinished value ends: before the first line in it that looks like a new message.
    pub(super) fn next_message(&self) -> Option<usize> {
        match self {
            Ending::Brackets(brackets) => brackets.next_message,
            _ => None,
        }
    }
}

/// Whether we are in a string.
#[derive(Debug, Default)]
pub(super) struct Quotes {
    open: bool,
    /// The byte before was a backslash that escapes this one.
    escaping: bool,
}

impl Quotes {
    /// Goes on in a string; returns where to go on after its quote, or the offset of a newline,
    /// which no string may contain.
    fn skip_string(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while at < bytes.len() {
            if std::mem::take(&mut self.escaping) && bytes[at] != b'\n' {
                at += 1;
                continue;
            }
            match memchr3(b'"', b'\\', b'\n', &bytes[at..]) {
                None => return bytes.len(),
                Some(length) => at += length,
            }
            match bytes[at] {
                b'\\' => self.escaping = true,
                b'"' => {
                    self.open = false;
                    return at + 1;
                }
                _ => return at,
            }
            at += 1;
        }
        at
    }

    fn scan_element(&mut self, bytes: &[u8], mut at: usize) -> Frame {
        while at < bytes.len() {
            if self.open {
                at = self.skip_string(bytes, at);
                if bytes.get(at) == Some(&b'\n') {
                    return Frame::End(at);
                }
                continue;
            }
            match bytes[at] {
                b'\n' | b',' | b']' => return Frame::End(at),
                b'"' => self.open = true,
                _ => {}
            }
            at += 1;
        }
        Frame::More
    }
}

/// Counts the brackets of an object or array.
///
/// Only what would swallow the messages behind a broken one is noticed here: a string that runs
/// past its line, and a line that begins with `{` where no value can stand, which is what follows a
/// line that was cut short. Everything else is left to the judge.
#[derive(Debug)]
pub(super) struct Brackets {
    depth: usize,
    quotes: Quotes,
    /// A value has just ended, so that another cannot begin.
    after_value: bool,
    /// The next byte is the first of its line.
    line_begins: bool,
    on_first_line: bool,
    may_go_back: bool,
    next_message: Option<usize>,
}

impl Brackets {
    pub(super) fn new() -> Self {
        Self {
            depth: 0,
            quotes: Quotes::default(),
            after_value: false,
            line_begins: false,
            on_first_line: true,
            may_go_back: true,
            next_message: None,
        }
    }

    fn scan(&mut self, bytes: &[u8], mut at: usize) -> Frame {
        while at < bytes.len() {
            if self.quotes.open {
                at = self.quotes.skip_string(bytes, at);
                self.after_value = true;
                if self.quotes.open && at < bytes.len() {
                    // A newline in a string. A message of one line is over; one of many lines
                    // may close its brackets yet.
                    if self.on_first_line {
                        return Frame::Broken(at);
                    }
                    self.quotes.open = false;
                }
                continue;
            }
            let begins = std::mem::take(&mut self.line_begins);
            match bytes[at] {
                b'{' if begins && self.is_another(at) => {
                    return Frame::Broken(self.next_message.unwrap_or(at));
                }
                b'{' | b'[' => {
                    self.depth += 1;
                    self.after_value = false;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.after_value = true;
                    if self.depth == 0 {
                        return Frame::End(at + 1);
                    }
                }
                b'"' => self.quotes.open = true,
                b',' | b':' => self.after_value = false,
                b'\n' => {
                    self.line_begins = true;
                    self.on_first_line = false;
                }
                b' ' | b'\t' | b'\r' => {}
                _ => self.after_value = true,
            }
            at += 1;
        }
        Frame::More
    }

    /// Whether the brace at the beginning of this line is surely another message's.
    fn is_another(&mut self, at: usize) -> bool {
        if self.may_go_back {
            self.next_message.get_or_insert(at);
        }
        self.after_value || (self.may_go_back && self.depth >= MAX_DEPTH)
    }
}
