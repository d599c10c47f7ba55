//! The embedded journal: one SQLite file with a write-ahead log.
//!
//! Records are kept exactly as the engine made them, beside columns that say the same for people,
//! and a hash that binds each to everything before it. The layout is in `schema.rs`.
#![allow(clippy::disallowed_methods)] // a store on disk has files, and says when it wrote

mod compact;
mod file;
pub(crate) mod gone;
mod migrate;
mod notes;
mod open;
mod reader;
mod replay;
mod room;
mod row;
mod schema;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use aaep_engine::{Corrupt, Record};
use rusqlite::{Connection, ErrorCode, TransactionBehavior, params_from_iter};

use crate::Lock;
use crate::chain::{self, Anchor, ChainHash, ChainKey};
use crate::head::Noted;
use crate::journal::{Entry, Journal, JournalFault};
use crate::unit::{Note, Unit};

pub use compact::Compaction;
pub use file::JournalFile;
pub use migrate::Migration;
pub use notes::{OLD_COPY, Start};
pub use open::CannotOpen;
pub(crate) use open::{private, sync_directory_of};
pub use reader::Reader;
pub use replay::Replayed;
pub use row::KINDS;
pub(crate) use row::{Columns, NAMES, kind_of, shown};
pub use schema::VERSION;

/// About how many pages of the write-ahead log are carried over at once.
const CHECKPOINT_PAGES: usize = 2000;

/// How a journal is kept.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How large the file may become. Then it is full, like a disk.
    pub max_bytes: u64,
    /// The size of a page, for a new file.
    pub page_bytes: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { max_bytes: 64 << 30, page_bytes: 4096 }
    }
}

/// A record that cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which; the first is 1. 0 if it is no record, but something beside them.
    pub number: u64,
    /// What is wrong.
    pub why: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { number, why } = self;
        if *number == 0 {
            return write!(f, "{why}. Nothing was changed, and nothing was started.");
        }
        let whole = number - 1;
        write!(
            f,
            "Record {number} cannot be believed: {why}. The {whole} records before it are whole; nothing was changed, and nothing was started.",
        )
    }
}

impl std::error::Error for Damage {}

impl From<rusqlite::Error> for Damage {
    fn from(error: rusqlite::Error) -> Self {
        Self { number: 0, why: format!("the journal cannot be read: {error}") }
    }
}

/// The journal in a file.
#[derive(Debug)]
pub struct Sqlite {
    connection: Connection,
    path: PathBuf,
    store: String,
    key: ChainKey,
    /// Where trust begins.
    anchor: Anchor,
    /// The number of the next record.
    next: u64,
    /// The hash of the last one.
    last: ChainHash,
    /// The number of the last start, and whether the clock jumped since.
    start: (u64, bool),
    options: Options,
    /// Pages of the log that were not carried over, by estimate.
    log_pages: usize,
    /// A write failed; the state on disk is unknown.
    failed: bool,
    /// Room for the log, for a journal that shall be quick.
    room: Option<room::Room>,
    _lock: Lock,
}

impl Sqlite {
    /// Opens the journal at this path with its key, making it if it is not there. While this lives, no
    /// other hub can open it; everybody who may read the file can still look into it.
    pub fn open(path: &Path, options: Options, key: &ChainKey) -> Result<Self, CannotOpen> {
        JournalFile::open(path, options)?.with_key(key.clone())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name of this store, and of every copy of it.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// The key of its chain.
    pub fn key(&self) -> &ChainKey {
        &self.key
    }

    /// The number and the hash of the last record; 0 and what stands before the first if there is none.
    pub fn head(&self) -> (u64, ChainHash) {
        (self.next - 1, self.last)
    }

    /// Changes how large the file may become.
    pub fn set_room(&mut self, max_bytes: u64) -> Result<(), JournalFault> {
        self.options.max_bytes = max_bytes;
        set_room(&self.connection, max_bytes).map_err(|error| fault_of(&error))
    }

    // enforces: I10, C13
    /// Makes units durable, all of them or nothing. Records must follow in order: a unit
    /// that was built on an older state is refused.
    pub fn keep(&mut self, units: &[Unit]) -> Result<(), JournalFault> {
        self.keep_at(units, wall_micros())
    }

    /// The same for units that were kept elsewhere at this time, in microseconds since 1970.
    pub fn keep_at(&mut self, units: &[Unit], at: i64) -> Result<(), JournalFault> {
        if self.failed {
            return Err(JournalFault::Failed);
        }
        self.check_turn(units)?;
        match self.write(units, at) {
            Ok(last) => {
                self.kept(units, last);
                Ok(())
            }
            Err(error) => {
                let fault = fault_of(&error);
                // The transaction is undone by now, or nothing of this can be trusted.
                self.failed = !fault.may_pass() || !self.connection.is_autocommit();
                Err(if self.failed { JournalFault::Failed } else { fault })
            }
        }
    }

    /// From now on nothing of this journal is synced: it is a copy of what is kept elsewhere.
    pub(crate) fn is_disposable(&mut self) -> Result<(), JournalFault> {
        let off = self.connection.execute_batch("PRAGMA synchronous = OFF");
        off.map_err(|error| fault_of(&error))
    }

    /// Begins a transaction for many calls of [`Sqlite::keep_in_group`].
    pub(crate) fn begin_group(&mut self) -> Result<(), JournalFault> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(|error| fault_of(&error))
    }

    /// Keeps units in a transaction that was begun. After an error the journal is to be thrown away.
    pub(crate) fn keep_in_group(&mut self, units: &[Unit], at: i64) -> Result<(), JournalFault> {
        self.check_turn(units)?;
        let last = write_all(&self.connection, units, &self.key, self.last, at);
        let last = last.map_err(|error| {
            self.failed = true;
            fault_of(&error)
        })?;
        self.kept(units, last);
        Ok(())
    }

    /// Ends the transaction, and carries the log over where it has grown long.
    pub(crate) fn end_group(&mut self) -> Result<(), JournalFault> {
        self.connection.execute_batch("COMMIT").map_err(|error| fault_of(&error))?;
        self.tidy()
    }

    fn check_turn(&self, units: &[Unit]) -> Result<(), JournalFault> {
        let entries = units.iter().flat_map(|unit| &unit.entries);
        for (expected, entry) in (self.next..).zip(entries) {
            if entry.number != expected {
                return Err(JournalFault::OutOfTurn { expected });
            }
        }
        Ok(())
    }

    fn kept(&mut self, units: &[Unit], last: ChainHash) {
        let entries = || units.iter().flat_map(|unit| &unit.entries);
        self.next += entries().count() as u64;
        self.last = last;
        let bytes: usize = entries().map(|entry| entry.bytes.len()).sum();
        let notes = || units.iter().flat_map(|unit| &unit.notes);
        // A note lies anywhere in its table and in an index, not beside the one before.
        self.log_pages += 1 + bytes / 2000 + 2 * notes().count();
        self.start.1 |= notes().any(|note| matches!(note, Note::ClockJumped));
    }

    fn write(&mut self, units: &[Unit], at: i64) -> rusqlite::Result<ChainHash> {
        let connection = &self.connection;
        // Both are kept ready: reading them anew takes as long as the rest of a small commit.
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let written = write_all(connection, units, &self.key, self.last, at).and_then(|last| {
            connection.prepare_cached("COMMIT")?.execute([])?;
            Ok(last)
        });
        if written.is_err() && !connection.is_autocommit() {
            // Whether that went well is looked at afterwards.
            let _ = connection.execute_batch("ROLLBACK");
        }
        written
    }

    /// Lays out room for the write-ahead log ahead of time, from now on: a commit is then about twice
    /// as quick, for some megabytes of disk.
    pub fn lay_out_log(&mut self) {
        // Without it everything works as well.
        self.room = room::Room::open(&self.path).ok();
        self.lay_out_more();
    }

    fn lay_out_more(&mut self) {
        let Some(room) = self.room.as_mut().filter(|room| room.is_used_up()) else { return };
        // Other writers have to wait, so that zeros never overwrite their data.
        if let Ok(_alone) =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)
        {
            room.lay_out();
        }
    }

    /// Whether [`Sqlite::tidy`] has nothing to do.
    pub fn is_tidy(&self) -> bool {
        self.log_pages < CHECKPOINT_PAGES && !self.room.as_ref().is_some_and(room::Room::is_used_up)
    }

    /// Checkpoints the write-ahead log if it has grown long. Call it while no caller waits.
    pub fn tidy(&mut self) -> Result<(), JournalFault> {
        self.lay_out_more();
        if self.log_pages < CHECKPOINT_PAGES {
            return Ok(());
        }
        self.carry_over().inspect_err(|_| self.failed = true)
    }

    fn carry_over(&mut self) -> Result<(), JournalFault> {
        self.log_pages = 0;
        let done = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        match done.map_err(|error| fault_of(&error)) {
            // On a full disk, or with an open reader, the log stays as it is and nothing is lost.
            Err(fault) if fault.may_pass() => Ok(()),
            done => done,
        }
    }

    // enforces: I3, I33
    /// Hands every record to `each` with its number and the time of its writing, in order, once its place
    /// in the chain was verified; numbers of erased records are left out. A gap, an end too early or a record without the key is damage.
    pub fn replay(
        &mut self,
        noted: Option<Noted>,
        mut each: impl FnMut(u64, i64, &[u8]) -> Result<(), Corrupt>,
    ) -> Result<Replayed, Damage> {
        let copied = |bytes: &[u8]| Ok(bytes.to_vec());
        self.replay_decoded(noted, copied, |number, at, bytes| each(number, at, &bytes))
    }

    /// The same with records that `decode` has read, on a thread beside.
    pub fn replay_decoded<T: Send>(
        &mut self,
        noted: Option<Noted>,
        decode: impl Fn(&[u8]) -> Result<T, Corrupt> + Send,
        each: impl FnMut(u64, i64, T) -> Result<(), Corrupt>,
    ) -> Result<Replayed, Damage> {
        let (key, store, anchor, last) = (&self.key, &self.store, self.anchor, self.head());
        let chain = replay::Chain { key, store, anchor, first: chain::first(&self.store), last };
        replay::replay(&mut self.connection, chain, noted, decode, each)
    }

    /// Sessions, but for erased ones, whose end was written before this time, in microseconds since 1970. This is what the
    /// table says, and not verified: compare it with the records.
    pub fn ended_before(&self, at: i64) -> Result<Vec<String>, Damage> {
        let erased = gone::told(&self.connection)?;
        let old = "SELECT session, number FROM records WHERE kind = 'ended' AND at < ?1";
        let mut statement = self.connection.prepare(old)?;
        let sessions = statement.query_map([at], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
        let there = |number: i64| !erased.contains(number.unsigned_abs());
        let sessions = sessions.filter_map(|row| {
            row.map(|(session, number)| there(number).then_some(session)).transpose()
        });
        Ok(sessions.collect::<rusqlite::Result<_>>()?)
    }
}

fn write_all(
    connection: &Connection,
    units: &[Unit],
    key: &ChainKey,
    mut last: ChainHash,
    at: i64,
) -> rusqlite::Result<ChainHash> {
    let mut insert = connection.prepare_cached(INSERT)?;
    for entry in units.iter().flat_map(|unit| &unit.entries) {
        // What the engine made can be read; if not, the columns say so and the bytes count.
        let columns = match Record::decode(&entry.bytes) {
            Ok((_, record, _)) => Columns::of(&record),
            Err(_) => Columns { kind: "other".into(), ..Columns::default() },
        };
        last = key.link(&last, at, &entry.bytes);
        let number = i64::try_from(entry.number).unwrap_or(i64::MAX);
        let head: [&dyn rusqlite::ToSql; 4] = [&number, &at, &entry.bytes, &last];
        let inserted =
            insert.execute(params_from_iter(head.into_iter().chain(columns.values())))?;
        // In a layout that somebody changed, an insertion may succeed and write nothing.
        if inserted != 1 {
            return Err(rusqlite::Error::StatementChangedRows(inserted));
        }
    }
    for note in units.iter().flat_map(|unit| &unit.notes) {
        note.write(connection, key)?;
    }
    Ok(last)
}

const INSERT: &str =
    "INSERT INTO records (number, at, bytes, hash, kind, session, request, agent, user,
    tool, call, text, irreversible, deadline, outcome, runs, decided_by, reason)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)";

impl Journal for Sqlite {
    fn append(&mut self, batch: &[Entry]) -> Result<(), JournalFault> {
        self.keep(&[Unit { entries: batch.to_vec(), notes: Vec::new() }])?;
        self.tidy()
    }

    fn read(&mut self) -> Result<Vec<Vec<u8>>, JournalFault> {
        let mut records = Vec::new();
        let each = |number, _, bytes: &[u8]| {
            let (inside, _, length) = Record::decode(bytes)?;
            if inside != number || length != bytes.len() {
                return Err(Corrupt::Unknown);
            }
            records.push(bytes.to_vec());
            Ok(())
        };
        match self.replay(None, each) {
            Ok(_) => Ok(records),
            Err(damage) => {
                Err(JournalFault::Damaged { index: damage.number.saturating_sub(1) as usize })
            }
        }
    }
}

fn set_room(connection: &Connection, max_bytes: u64) -> rusqlite::Result<()> {
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    // SQLite's own bound.
    let pages = (max_bytes / page.unsigned_abs().max(1)).clamp(1, 4_294_967_294);
    let set = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    connection.pragma_update_and_check(None, "max_page_count", pages as i64, set).map(drop)
}

/// What an error of SQLite means for a writer.
fn fault_of(error: &rusqlite::Error) -> JournalFault {
    /// The memory that connections share could not grow: there is no room.
    const NO_ROOM_TO_SHARE: i32 = 4874;
    match error.sqlite_error() {
        Some(error) if error.code == ErrorCode::DiskFull => JournalFault::Full,
        Some(error) if error.extended_code == NO_ROOM_TO_SHARE => JournalFault::Full,
        Some(error) => match error.code {
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => JournalFault::Busy,
            _ => JournalFault::Failed,
        },
        None => JournalFault::Failed,
    }
}

fn wall_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}
