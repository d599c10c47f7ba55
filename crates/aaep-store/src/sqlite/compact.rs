//! Compaction: the journal is written anew without what was erased, beside the old one, and takes its
//! place in one step. Whenever it is interrupted, either the old journal is there or the new one.
//!
//! A new file, and not deletions in the old one: SQLite leaves copies of rows behind when it moves them
//! between pages, so only a file in which they never were is sure not to hold them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params, params_from_iter};

use super::gone::{self, Act, Gap, Runs};
use super::{Columns, INSERT, JournalFault, Sqlite, fault_of, open, row, schema, set_room};
use crate::chain::{self, Anchor, ChainHash, ChainKey};
use aaep_engine::Record;

/// The new journal while it is made; belongs to the old one's name.
const UNFINISHED: &str = "-compact";

/// The new file is synced whenever so much was written, so that the disk is never busy with it for long.
const SYNC_BYTES: u64 = 1 << 20;

/// Removes what an interrupted compaction left. The caller holds the journal's lock.
pub(super) fn forget_unfinished(journal: &Path) {
    for end in ["", "-journal", "-wal", "-shm"] {
        let _ = fs::remove_file(open::beside(journal, &format!("{UNFINISHED}{end}")));
    }
}

/// A journal that is being written anew. Everything is verified on the way: a record that is not as it
/// was written ends it.
#[derive(Debug)]
pub struct Compaction {
    journal: PathBuf,
    unfinished: PathBuf,
    /// The old journal. Closed while somebody else needs it to be.
    from: Option<Connection>,
    to: Connection,
    /// The new file, to sync it. Closed before it becomes the journal: closing a file takes away the
    /// locks that this process has on it, SQLite's among them.
    file: Option<File>,
    key: ChainKey,
    store: String,
    anchor: Anchor,
    /// What is left out, as the table told at the beginning.
    told: Runs,
    /// What the chain says, as far as it was read.
    found: Runs,
    /// The last record that was read.
    last: Last,
    /// Records that are left out and for which no row stands yet: the first, and the link before it.
    run: Option<(u64, ChainHash)>,
    unsynced: u64,
    synced: bool,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    at: i64,
    hash: ChainHash,
}

impl Sqlite {
    /// Begins to write this journal anew. It can be written to meanwhile.
    pub fn compaction(&self) -> Result<Compaction, JournalFault> {
        Compaction::new(self).map_err(|error| fault_of(&error))
    }
}

impl Compaction {
    fn new(old: &Sqlite) -> rusqlite::Result<Self> {
        let unfinished = open::beside(&old.path, UNFINISHED);
        forget_unfinished(&old.path);
        let from = open::reading(&old.path).map_err(cannot_open)?;
        open::create(&unfinished).map_err(cannot_open)?;
        let mut to = open::writing(&unfinished).map_err(cannot_open)?;
        let page: i64 = from.pragma_query_value(None, "page_size", |row| row.get(0))?;
        to.pragma_update(None, "page_size", page)?;
        // Nothing of it counts before it is complete and synced.
        to.pragma_update_and_check(None, "journal_mode", "off", |_| Ok(()))?;
        to.pragma_update(None, "synchronous", "off")?;
        schema::lay_out(&mut to).map_err(cannot_open)?;
        let file = File::open(&unfinished).map_err(failed)?;
        Ok(Self {
            journal: old.path.clone(),
            unfinished,
            told: gone::told(&from)?,
            from: Some(from),
            to,
            file: Some(file),
            key: old.key.clone(),
            store: old.store.clone(),
            anchor: old.anchor,
            found: Runs::default(),
            last: Last { number: 0, at: 0, hash: chain::first(&old.store) },
            run: None,
            unsynced: 0,
            synced: false,
        })
    }

    /// Takes over up to so many rows; says how many there were. A record that cannot be believed is
    /// [`JournalFault::Damaged`]. After an error this is of no use any more.
    pub fn step(&mut self, rows: usize) -> Result<usize, JournalFault> {
        let from = match self.from.take() {
            Some(from) => from,
            None => open::reading(&self.journal).map_err(|_| JournalFault::Failed)?,
        };
        let copied = self.copy(&from, rows);
        self.from = Some(from);
        copied
    }

    /// Whether the last step ended with a sync.
    pub(crate) fn has_synced(&self) -> bool {
        self.synced
    }

    /// Closes the old journal, so that its writer can have it alone. The next step opens it again.
    pub fn let_go(&mut self) {
        self.from = None;
    }

    fn copy(&mut self, from: &Connection, rows: usize) -> Result<usize, JournalFault> {
        let (copied, bytes) = self.copy_rows(from, rows)?;
        self.unsynced += bytes;
        self.synced = false;
        if self.unsynced >= SYNC_BYTES
            && let Some(file) = &self.file
        {
            file.sync_data().map_err(|_| JournalFault::Failed)?;
            self.unsynced = 0;
            self.synced = true;
        }
        Ok(copied)
    }

    fn copy_rows(&mut self, from: &Connection, rows: usize) -> Result<(usize, u64), JournalFault> {
        let broken = |error: rusqlite::Error| fault_of(&error);
        let some = "SELECT number, at, bytes, hash, kind = 'gap' FROM records WHERE number > ?1
                    ORDER BY number LIMIT ?2";
        let mut statement = from.prepare_cached(some).map_err(broken)?;
        let after = params![self.last.number as i64, rows as i64];
        let mut rows = statement.query(after).map_err(broken)?;
        let (mut copied, mut bytes_copied) = (0, 0);
        self.to.execute_batch("BEGIN").map_err(broken)?;
        while let Some(row) = rows.next().map_err(broken)? {
            let number = row.get::<_, i64>(0).map_err(broken)?.unsigned_abs();
            let bytes = row.get_ref(2).ok().and_then(|bytes| bytes.as_blob().ok());
            let (at, hash, is_gap) = (row.get(1), row.get(3), row.get(4));
            let (Some(bytes), Ok(at), Ok(hash), Ok(is_gap)) = (bytes, at, hash, is_gap) else {
                return Err(self.damaged());
            };
            let last = Last { number, at, hash };
            if is_gap {
                self.take_gap(last, bytes)?;
            } else {
                self.take_record(last, bytes)?;
            }
            self.last = last;
            copied += 1;
            bytes_copied += bytes.len() as u64;
        }
        self.to.execute_batch("COMMIT").map_err(broken)?;
        Ok((copied, bytes_copied))
    }

    fn damaged(&self) -> JournalFault {
        JournalFault::Damaged { index: usize::try_from(self.last.number).unwrap_or(usize::MAX) }
    }

    // enforces: I33
    fn take_gap(
        &mut self,
        Last { number, at, hash }: Last,
        bytes: &[u8],
    ) -> Result<(), JournalFault> {
        let next = (self.last.number + 1, &self.last.hash);
        let gap = Gap::read((number, at, bytes, hash), next, Some(&self.key), &self.store);
        let gap = gap.map_err(|_| self.damaged())?;
        if !self.told.contains_all(gap.first, gap.last) {
            return Err(self.damaged());
        }
        // It becomes part of the run that it is in.
        self.run.get_or_insert((gap.first, self.last.hash));
        Ok(())
    }

    // enforces: I26, I33
    fn take_record(
        &mut self,
        Last { number, at, hash }: Last,
        bytes: &[u8],
    ) -> Result<(), JournalFault> {
        let (before, record) = (self.last.hash, (at, bytes));
        let follows = self.anchor.follows(Some(&self.key), number, &before, record, &hash);
        if number != self.last.number + 1 || !follows {
            return Err(self.damaged());
        }
        if self.told.contains(number) {
            self.run.get_or_insert((number, before));
            return Ok(());
        }
        if let Some(act) = Act::of(number, bytes) {
            self.found.add(&act.runs);
        }
        self.close_run().map_err(|error| fault_of(&error))?;
        let columns = match Record::decode(bytes) {
            Ok((inside, record, _)) if inside == number => Columns::of(&record),
            _ => return Err(self.damaged()),
        };
        insert(&self.to, (number, at, bytes, &hash), &columns).map_err(|error| fault_of(&error))
    }

    /// Puts one row in the place of what was left out.
    fn close_run(&mut self) -> rusqlite::Result<()> {
        let Some((first, before)) = self.run.take() else { return Ok(()) };
        let Last { number: last, at, hash } = self.last;
        let gap = Gap { first, last, at, hash };
        let bytes = gap.bytes(&self.key, &self.store, &before);
        let columns = Columns { kind: gone::KIND.into(), ..Columns::default() };
        insert(&self.to, (last, at, &bytes, &hash), &columns)
    }

    /// Takes over what is kept beside the records.
    fn copy_notes(&self, from: &Connection) -> rusqlite::Result<()> {
        self.to
            .execute_batch("BEGIN; DELETE FROM store; DELETE FROM calls; DELETE FROM starts;")?;
        for (table, columns) in [("store", 6), ("calls", 8), ("starts", 8)] {
            let names = match table {
                "store" => "one, id, opened, anchor_number, anchor_hash, seal",
                "calls" => "agent, path, key, session, body, status, answer, seal",
                _ => "start, at, version, boot, clock, jumped, trust, seal",
            };
            let places: Vec<String> = (1..=columns).map(|place| format!("?{place}")).collect();
            let mut insert = self.to.prepare(&format!(
                "INSERT INTO {table} ({names}) VALUES ({})",
                places.join(", ")
            ))?;
            let mut all = from.prepare(&format!("SELECT {names} FROM {table}"))?;
            let mut rows = all.query([])?;
            while let Some(row) = rows.next()? {
                let values: rusqlite::Result<Vec<rusqlite::types::Value>> =
                    (0..columns).map(|at| row.get(at)).collect();
                insert.execute(params_from_iter(values?))?;
            }
        }
        self.to.execute_batch("COMMIT")
    }
}

impl Sqlite {
    /// Puts the new journal in the place of this one; false if somebody else has this one open, and
    /// nothing was done: then try again later. What was written since the last step is taken over first,
    /// so let there be little of it. On [`JournalFault::Full`] and [`JournalFault::Damaged`] this journal stays as it
    /// is; on [`JournalFault::Failed`] nobody knows which one is there, and either is whole.
    pub fn replace_with(&mut self, new: &mut Compaction) -> Result<bool, JournalFault> {
        if self.failed {
            return Err(JournalFault::Failed);
        }
        new.let_go();
        let had_room = self.room.take().is_some();
        let replaced = self.try_replace(new);
        if had_room && !self.failed {
            self.lay_out_log();
        }
        replaced
    }

    fn try_replace(&mut self, new: &mut Compaction) -> Result<bool, JournalFault> {
        if !self.leave_log()? {
            return Ok(false);
        }
        // From here on this file is complete without its log, and nobody but us writes to it.
        match self.complete(new) {
            Ok(()) => {}
            Err(fault) => {
                let back = open::make_durable(&self.connection);
                self.failed = back.is_err() || fault == JournalFault::Failed;
                return Err(if self.failed { JournalFault::Failed } else { fault });
            }
        }
        // Whatever fails now, the next start finds one of the two.
        self.failed = true;
        self.exchange(new).map_err(|_| JournalFault::Failed)?;
        self.failed = false;
        self.log_pages = 0;
        Ok(true)
    }

    /// Carries the whole log over and removes it. Only possible while nobody else has the file open.
    fn leave_log(&mut self) -> Result<bool, JournalFault> {
        self.connection.flush_prepared_statement_cache();
        let left = || -> rusqlite::Result<String> {
            self.connection.busy_timeout(std::time::Duration::ZERO)?;
            let mode =
                self.connection
                    .pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0));
            self.connection.busy_timeout(open::BUSY)?;
            mode
        };
        let left = match left() {
            Ok(mode) => Ok(mode == "delete"),
            Err(error) => match fault_of(&error) {
                fault if fault.may_pass() => Ok(false),
                fault => Err(fault),
            },
        };
        self.failed = left.is_err();
        left
    }

    /// Everything that this journal has is in the new one, on the disk.
    fn complete(&self, new: &mut Compaction) -> Result<(), JournalFault> {
        while new.copy(&self.connection, 1000)? > 0 {}
        let same = (new.last.number, new.last.hash) == self.head() && new.run.is_none();
        if !same || !new.found.contains_runs(&new.told) {
            return Err(JournalFault::Damaged { index: 0 });
        }
        new.copy_notes(&self.connection).map_err(|error| fault_of(&error))?;
        new.file.take().map_or(Ok(()), |file| file.sync_all()).map_err(|_| JournalFault::Failed)
    }

    fn exchange(&mut self, new: &mut Compaction) -> Result<(), open::CannotOpen> {
        // Both are closed: what is renamed is in nobody's hands.
        let nothing = Connection::open_in_memory()?;
        drop(std::mem::replace(&mut self.connection, nothing));
        let nothing = Connection::open_in_memory()?;
        drop(std::mem::replace(&mut new.to, nothing));
        fs::rename(&new.unfinished, &self.path)?;
        open::sync_directory_of(&self.path)?;
        self.connection = open::writing(&self.path)?;
        open::make_durable(&self.connection)?;
        set_room(&self.connection, self.options.max_bytes)?;
        Ok(())
    }
}

impl Drop for Compaction {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn insert(
    to: &Connection,
    (number, at, bytes, hash): (u64, i64, &[u8], &ChainHash),
    columns: &row::Columns,
) -> rusqlite::Result<()> {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    let head: [&dyn rusqlite::ToSql; 4] = [&number, &at, &bytes, hash];
    let values = params_from_iter(head.into_iter().chain(columns.values()));
    to.prepare_cached(INSERT)?.execute(values).map(drop)
}

fn failed(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

fn cannot_open(error: open::CannotOpen) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
