//! Bytes of an entry: whole numbers are little-endian, and everything of no fixed length has its
//! length before it.

use crate::journal::Entry;
use crate::unit::{KeptCall, Note, Unit};

/// Writes.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn fixed(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.fixed(bytes);
    }

    fn count(&mut self, count: usize) {
        // Nothing in memory that long fits an entry; the bound is checked by its author.
        self.fixed(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
    }

    pub(super) fn units(&mut self, units: &[Unit]) {
        self.count(units.len());
        for unit in units {
            self.count(unit.entries.len());
            for entry in &unit.entries {
                self.fixed(&entry.number.to_le_bytes());
                self.bytes(&entry.bytes);
            }
            self.count(unit.notes.len());
            for note in &unit.notes {
                self.note(note);
            }
        }
    }

    fn note(&mut self, note: &Note) {
        match note {
            Note::Call(call) => {
                let KeptCall { agent, path, key, session, body, status, answer } = call;
                self.fixed(&[1]);
                self.texts(&[agent, path, key, session]);
                self.fixed(body);
                self.fixed(&status.to_le_bytes());
                self.bytes(answer.as_bytes());
            }
            Note::ForgetCall { agent, path, key } => {
                self.fixed(&[2]);
                self.texts(&[agent, path, key]);
            }
            Note::ForgetCalls { session } => {
                self.fixed(&[3]);
                self.texts(&[session]);
            }
            Note::ClockJumped => self.fixed(&[4]),
        }
    }

    fn texts(&mut self, texts: &[&String]) {
        for text in texts {
            self.bytes(text.as_bytes());
        }
    }
}

/// Reads; `None` once something is not there or not what it should be.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count()?;
        self.take(count)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn count(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    /// So many things, of which each takes at least one byte: what claims more is not believed, so
    /// that no length makes room for what is not there.
    fn list<T>(&mut self, mut one: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.count()?;
        if count > self.0.len() {
            return None;
        }
        (0..count).map(|_| one(self)).collect()
    }

    pub(super) fn units(&mut self) -> Option<Vec<Unit>> {
        self.list(|reader| {
            let entries = reader.list(|reader| {
                Some(Entry { number: reader.number()?, bytes: reader.bytes()?.to_vec() })
            })?;
            Some(Unit { entries, notes: reader.list(Self::note)? })
        })
    }

    fn note(&mut self) -> Option<Note> {
        Some(match self.byte()? {
            1 => Note::Call(KeptCall {
                agent: self.text()?,
                path: self.text()?,
                key: self.text()?,
                session: self.text()?,
                body: self.array()?,
                status: u16::from_le_bytes(self.array()?),
                answer: self.text()?,
            }),
            2 => Note::ForgetCall { agent: self.text()?, path: self.text()?, key: self.text()? },
            3 => Note::ForgetCalls { session: self.text()? },
            4 => Note::ClockJumped,
            _ => return None,
        })
    }
}
