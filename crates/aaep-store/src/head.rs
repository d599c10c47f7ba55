//! How far a journal is, noted outside its directory: so that an old copy of it is recognised.
//!
//! Every batch that became durable is followed by one small write here, which is not synced: after a
//! power cut the note may be older than the journal, never newer. Older is fine; newer means that the
//! journal lost something, or is an old copy.
#![allow(clippy::disallowed_methods)] // this is a file

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::Lock;
use crate::chain::{Hash, checksum, from_hex, hex};
use crate::sqlite::{CannotOpen, Damage, Sqlite, private, sync_directory_of};

/// How long a note is at most.
const MAX_BYTES: u64 = 1024;

/// The last record that was noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Noted {
    /// Its number.
    pub number: u64,
    /// Its hash.
    pub hash: Hash,
}

impl Noted {
    /// The whole note: always of the same length, so that it can be written over.
    fn to_text(self, store: &str) -> String {
        let text = format!("aaep head 1 {store} {:020} {}", self.number, hex(&self.hash));
        format!("{text} {}\n", hex(&checksum(&[text.as_bytes()])))
    }

    fn parse(text: &str, store: &str) -> Option<Self> {
        let mut words = text.split_ascii_whitespace().skip(4);
        let noted = Self { number: words.next()?.parse().ok()?, hash: from_hex(words.next()?)? };
        (noted.to_text(store) == text).then_some(noted)
    }
}

/// The note of one store.
#[derive(Debug)]
pub struct Head {
    file: Lock,
    path: PathBuf,
    store: String,
    /// Whether the file has its length for good and is only written over.
    settled: bool,
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

    /// Takes the note of a store over, and leaves it as it is: what an old copy means must be durable
    /// before the note says something else. While this lives, nobody else can do so, not even a hub
    /// that works with a copy of the store.
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
        Ok(Self { file: Lock::take(file)?, path, store: store.to_owned(), settled: false })
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
        if !self.settled {
            file.set_len(text.len() as u64)?;
            file.sync_all()?;
            sync_directory_of(&self.path)?;
            self.settled = true;
        }
        Ok(())
    }
}

/// How a journal stands to what was noted of it outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
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
    /// Nothing is known of it outside.
    Unknown,
}

impl Sqlite {
    // enforces: I2, I25
    /// How this journal stands to what was noted of it.
    pub fn standing(&self, noted: Option<Noted>) -> Result<Standing, Damage> {
        let (last, _) = self.head();
        let Some(Noted { number, hash }) = noted else {
            return Ok(if last == 0 { Standing::New } else { Standing::Unknown });
        };
        Ok(match self.hash_of(number)? {
            None => Standing::Behind { noted: number },
            Some(found) if found == hash => Standing::Same,
            Some(_) => Standing::Different { noted: number },
        })
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
        head.note(Noted { number: 7, hash: [7; 32] }).unwrap();
        assert_eq!(Head::look(&place, store), Some(Noted { number: 7, hash: [7; 32] }));
        head.note(Noted { number: 12_345, hash: [1; 32] }).unwrap();
        assert_eq!(Head::look(&place, store), Some(Noted { number: 12_345, hash: [1; 32] }));
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
    fn two_hubs_cannot_note_the_same_store() {
        let directory = tempfile::tempdir().unwrap();
        let _first = Head::open(directory.path(), "s").unwrap();
        assert_eq!(Head::open(directory.path(), "s").unwrap_err(), CannotOpen::InUse);
        Head::open(directory.path(), "t").unwrap();
    }
}
