//! How far a journal is, noted outside its directory: so that an old copy of it is recognised.
//!
//! Every batch that became durable is followed by one small write here, which is not synced: after a
//! power cut the note may be older than the journal, never newer. Older is fine; newer means that the
//! journal lost something, or is an old copy. A clean stop of the hub leaves a synced note of the
//! exact end: then longer is wrong, too.
#![allow(clippy::disallowed_methods)] // this is a file

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::Lock;
use crate::chain::{ChainHash, checksum, from_hex, hex};
use crate::sqlite::{CannotOpen, private, sync_directory_of};

/// How long a note is at most.
const MAX_BYTES: u64 = 1024;

/// What was noted of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// The number of its last record.
    pub number: u64,
    /// The hash of that.
    pub hash: ChainHash,
    /// The number of the last start; 0 if none was noted.
    pub start: u64,
    /// Whether the clock on the wall jumped since then.
    pub jumped: bool,
    /// The seal of the calls that were kept, after a clean stop of the hub.
    pub stopped: Option<ChainHash>,
}

impl Noted {
    /// A journal that is at this record, and at work.
    pub fn at(number: u64, hash: ChainHash) -> Self {
        Self { number, hash, start: 0, jumped: false, stopped: None }
    }

    /// The whole note: always of the same length, so that it can be written over.
    fn to_text(self, store: &str) -> String {
        let Self { number, hash, start, jumped, stopped } = self;
        let clock = if jumped { "jumped" } else { "steady" };
        let hub = if stopped.is_some() { "stopped" } else { "running" };
        let (hash, calls) = (hex(&hash), hex(&stopped.unwrap_or_default()));
        finished(format!(
            "aaep head 2 {store} {number:020} {hash} {start:020} {clock} {hub} {calls}"
        ))
    }

    fn parse(text: &str, store: &str) -> Option<Self> {
        let words: Vec<&str> = text.split_ascii_whitespace().skip(4).collect();
        let noted = Self::at(words.first()?.parse().ok()?, from_hex(words.get(1)?)?);
        // As notes were written before journals had keys.
        let old = format!("aaep head 1 {store} {:020} {}", noted.number, hex(&noted.hash));
        if finished(old) == text {
            return Some(noted);
        }
        let noted = Self {
            start: words.get(2)?.parse().ok()?,
            jumped: *words.get(3)? == "jumped",
            stopped: if *words.get(4)? == "stopped" { from_hex(words.get(5)?) } else { None },
            ..noted
        };
        (noted.to_text(store) == text).then_some(noted)
    }
}

/// With its checksum, which tells a note that was torn by a power cut.
fn finished(text: String) -> String {
    format!("{text} {}\n", hex(&checksum(&[text.as_bytes()])))
}

/// The note of one store.
#[derive(Debug)]
pub struct Head {
    file: Lock,
    path: PathBuf,
    store: String,
    /// What was synced last: whether the clock had jumped, and whether the hub had stopped.
    synced: Option<(bool, bool)>,
}

impl Head {
    fn path_of(directory: &Path, store: &str) -> PathBuf {
        directory.join(format!("{store}.head"))
    }

    /// What was noted of a store; `None` if nothing was, or nothing that can be read.
    pub fn look(directory: &Path, store: &str) -> Option<Noted> {
        let file = File::open(Self::path_of(directory, store)).ok()?;
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        Noted::parse(&text, store)
    }

    /// Whether the note was written by a hub that had a key for this store.
    pub fn is_keyed(directory: &Path, store: &str) -> bool {
        let text = fs::read_to_string(Self::path_of(directory, store)).unwrap_or_default();
        Noted::parse(&text, store).is_some_and(|noted| noted.to_text(store) == text)
    }

    /// Locks the note of a store and leaves it as it is: the consequences of an old copy must be
    /// durable before the note changes. While this lives, no other process can open it, not even a
    /// hub that works with a copy of the store.
    pub fn open(directory: &Path, store: &str) -> Result<Self, CannotOpen> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)?;
        let path = Self::path_of(directory, store);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        private(&mut options);
        let file = options.open(&path)?;
        Ok(Self { file: Lock::take(file)?, path, store: store.to_owned(), synced: None })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Notes that everything up to here is durable.
    pub fn note(&mut self, now: Noted) -> io::Result<()> {
        let text = now.to_text(&self.store);
        let file = self.file.file();
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())?;
        let state = Some((now.jumped, now.stopped.is_some()));
        if self.synced != state {
            file.set_len(text.len() as u64)?;
            file.sync_all()?;
            if self.synced.is_none() {
                sync_directory_of(&self.path)?;
            }
            self.synced = state;
        }
        Ok(())
    }
}

/// How a journal stands to what was noted of it outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadCheck {
    /// There is nothing in it yet.
    New,
    /// It is the one that was noted, or went on from there.
    Same,
    /// It ends before what was noted: an old copy, or its end was cut off.
    Behind {
        /// The last record that was noted.
        noted: u64,
    },
    /// What was noted is not what it says: another history of the same store.
    Different {
        /// The record that differs.
        noted: u64,
    },
    /// It goes on after the record of a clean stop: it was written to by someone else, or the note is
    /// from an old copy of the state directory.
    Longer {
        /// The record with which the hub stopped.
        noted: u64,
    },
    /// Nothing is known of it outside.
    Unknown,
}

impl HeadCheck {
    // enforces: I2, I25, I33
    /// How a journal with so many records stands to what was noted; `found` is the hash that it has
    /// for the record that was noted.
    pub(crate) fn of(records: u64, noted: Option<Noted>, found: Option<ChainHash>) -> Self {
        let Some(Noted { number, hash, stopped, .. }) = noted else {
            return if records == 0 { Self::New } else { Self::Unknown };
        };
        match found {
            None => Self::Behind { noted: number },
            Some(found) if found != hash => Self::Different { noted: number },
            Some(_) if stopped.is_some() && records > number => Self::Longer { noted: number },
            Some(_) => Self::Same,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_back_and_a_broken_one_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("heads");
        let store = "0123456789abcdef0123456789abcdef";
        assert_eq!(Head::look(&place, store), None);
        let mut head = Head::open(&place, store).unwrap();
        assert_eq!(Head::look(&place, store), None);
        let stopped = Noted { stopped: Some([3; 32]), ..Noted::at(7, [7; 32]) };
        let jumped = Noted { start: 9, jumped: true, ..Noted::at(12_345, [1; 32]) };
        for noted in [Noted::at(7, [7; 32]), stopped, jumped] {
            head.note(noted).unwrap();
            assert_eq!(Head::look(&place, store), Some(noted));
        }
        assert_eq!(Head::look(&place, "another"), None);
        let path = Head::path_of(&place, store);
        let text = fs::read(&path).unwrap();
        for at in 0..text.len() {
            let mut changed = text.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert_eq!(Head::look(&place, store), None, "byte {at}");
            fs::write(&path, &text[..at]).unwrap();
            assert_eq!(Head::look(&place, store), None, "prefix {at}");
        }
    }

    #[test]
    fn a_note_from_before_journals_had_keys_is_read() {
        let place = tempfile::tempdir().unwrap();
        let store = "0123456789abcdef0123456789abcdef";
        let old = finished(format!("aaep head 1 {store} {:020} {}", 7, hex(&[5; 32])));
        fs::write(Head::path_of(place.path(), store), &old).unwrap();
        assert_eq!(Head::look(place.path(), store), Some(Noted::at(7, [5; 32])));
        assert!(!Head::is_keyed(place.path(), store));
        Head::open(place.path(), store).unwrap().note(Noted::at(7, [5; 32])).unwrap();
        assert!(Head::is_keyed(place.path(), store));
    }

    #[test]
    fn two_hubs_cannot_note_the_same_store() {
        let directory = tempfile::tempdir().unwrap();
        let _first = Head::open(directory.path(), "s").unwrap();
        assert_eq!(Head::open(directory.path(), "s").unwrap_err(), CannotOpen::InUse);
        Head::open(directory.path(), "t").unwrap();
    }
}
