//! Strings, numbers and words.

use super::{Scan, Scanner};
use crate::json::fault::{JsonFault, JsonFaultKind};
use crate::json::marks;
use crate::json::string::{JsonString, code_unit, join};

impl<'a> Scanner<'a, '_> {
    pub(super) fn word(&mut self, word: &str) -> Scan<()> {
        for &byte in word.as_bytes() {
            self.expect(byte)?;
        }
        Ok(())
    }

    #[inline(always)]
    pub(super) fn string(&mut self) -> Scan<JsonString<'a>> {
        let start = self.at + 1;
        let end = marks::next(self.marks, start);
        // Nearly every string goes on to its closing quote without an escape.
        if self.bytes.get(end) != Some(&b'"') {
            return self.escaped_string(start);
        }
        self.at = end + 1;
        self.longest = self.longest.max(end - start);
        let raw = &self.text[start..end];
        Ok(JsonString { raw, escaped: false, ascii: self.ascii || raw.is_ascii() })
    }

    fn escaped_string(&mut self, start: usize) -> Scan<JsonString<'a>> {
        self.at = start;
        loop {
            self.at = marks::next(self.marks, self.at).min(self.bytes.len());
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(_) => return Err(self.fatal(JsonFaultKind::Control)),
                None => return Err(self.fatal(JsonFaultKind::Unfinished)),
            }
        }
        let raw = &self.text[start..self.at];
        self.longest = self.longest.max(raw.len());
        self.at += 1;
        Ok(JsonString { raw, escaped: true, ascii: self.ascii || raw.is_ascii() })
    }

    fn escape(&mut self) -> Scan<()> {
        let rest = &self.bytes[self.at..];
        match rest.get(1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let Some(first) = code_unit(rest) else {
                    return Err(self.fatal(if rest.len() < 6 {
                        JsonFaultKind::Unfinished
                    } else {
                        JsonFaultKind::Escape
                    }));
                };
                let second = rest.get(6..).and_then(code_unit);
                if !(0xD800..0xE000).contains(&first) {
                    self.at += 6;
                } else if second.and_then(|second| join(first, second)).is_some() {
                    self.at += 12;
                } else {
                    self.note(self.at, JsonFaultKind::LoneSurrogate);
                    self.at += 6;
                }
            }
            Some(_) => return Err(self.fatal(JsonFaultKind::Escape)),
            None => {
                self.at += 1;
                return Err(self.fatal(JsonFaultKind::Unfinished));
            }
        }
        Ok(())
    }

    fn digits(&mut self) -> Scan<usize> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        match self.at - start {
            0 if self.at >= self.text.len() => Err(self.fatal(JsonFaultKind::Unfinished)),
            0 => Err(self.fatal(JsonFaultKind::Number)),
            count => Ok(count),
        }
    }

    pub(super) fn number(&mut self) -> Scan<&'a str> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let first = self.peek();
        if self.digits()? > 1 && first == Some(b'0') {
            return Err(Box::new(JsonFault { offset: start, kind: JsonFaultKind::Number }));
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        let number = &self.text[start..self.at];
        if !survives(number, whole) {
            self.note(start, JsonFaultKind::UnsafeNumber);
        }
        Ok(number)
    }
}

// enforces: E22
/// §3.8: whole numbers outside ±2^53 travel as strings, since many readers know only doubles.
fn survives(number: &str, whole: bool) -> bool {
    const LARGEST: u64 = 1 << 53;
    if whole {
        let digits = number.trim_start_matches('-');
        digits.len() < 16 || digits.parse::<u64>().is_ok_and(|value| value <= LARGEST)
    } else {
        number.parse::<f64>().is_ok_and(f64::is_finite)
    }
}
