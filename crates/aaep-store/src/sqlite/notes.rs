//! What the hub notes beside the records: calls that may come twice, and its own starts.

use rusqlite::{Connection, params};

use super::{Damage, JournalFault, Sqlite, fault_of, wall_micros};
use crate::chain::{ChainHash, ChainKey, checksum};
use crate::head::Noted;
use crate::unit::{KeptCall, Note, Unit};

impl KeptCall {
    fn fields<T>(&self, of: impl FnOnce(&[&[u8]]) -> T) -> T {
        let Self { agent, path, key, session, body, status, answer } = self;
        of(&[
            agent.as_bytes(),
            path.as_bytes(),
            key.as_bytes(),
            session.as_bytes(),
            body,
            &status.to_le_bytes(),
            answer.as_bytes(),
        ])
    }

    pub(super) fn seal(&self, key: &ChainKey) -> ChainHash {
        self.fields(|fields| key.seal("call", fields))
    }

    /// What stood in the place of the seal before journals had keys.
    pub(super) fn checksum(&self) -> Vec<u8> {
        self.fields(checksum)
    }
}

impl Note {
    pub(super) fn write(&self, transaction: &Connection, seals: &ChainKey) -> rusqlite::Result<()> {
        match self {
            Note::Call(call) => {
                let KeptCall { agent, path, key, session, body, status, answer } = call;
                let insert = "INSERT OR REPLACE INTO calls VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let values =
                    params![agent, path, key, session, body, status, answer, call.seal(seals)];
                transaction.prepare_cached(insert)?.execute(values)?;
            }
            Note::ForgetCall { agent, path, key } => {
                let delete = "DELETE FROM calls WHERE agent = ?1 AND path = ?2 AND key = ?3";
                transaction.prepare_cached(delete)?.execute(params![agent, path, key])?;
            }
            Note::ForgetCalls { session } => {
                let delete = "DELETE FROM calls WHERE session = ?1";
                transaction.prepare_cached(delete)?.execute([session])?;
            }
            Note::ClockJumped => {
                if let Some((number, start)) = last_start(transaction, seals)? {
                    let start = Start { jumped: true, ..start };
                    let update = "UPDATE starts SET jumped = 1, seal = ?2 WHERE start = ?1";
                    let values = params![number as i64, start.seal(seals, number)];
                    transaction.execute(update, values)?;
                }
            }
        }
        Ok(())
    }
}

/// A start of a hub, and what it knew of its clocks (I8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// When it was, in microseconds since 1970.
    pub at: i64,
    /// The version of the hub.
    pub version: String,
    /// The boot id of the machine; empty if unknown.
    pub boot: String,
    /// The clock on the wall minus the boot clock, in microseconds.
    pub clock: i64,
    /// Whether the clock on the wall jumped while it ran.
    pub jumped: bool,
    /// What it concluded about what was there; begins with [`OLD_COPY`] if that was one.
    pub trust: String,
}

/// How the conclusion of a start begins that found an old copy of the journal, or one whose end was cut
/// off.
pub const OLD_COPY: &str = "old copy";

impl Start {
    pub(super) fn seal(&self, key: &ChainKey, number: u64) -> ChainHash {
        let Self { at, version, boot, clock, jumped, trust } = self;
        key.seal(
            "start",
            &[
                &number.to_le_bytes(),
                &at.to_le_bytes(),
                version.as_bytes(),
                boot.as_bytes(),
                &clock.to_le_bytes(),
                &[u8::from(*jumped)],
                trust.as_bytes(),
            ],
        )
    }

    /// What stood in the place of the seal before journals had keys.
    pub(super) fn checksum(&self) -> Vec<u8> {
        let Self { version, boot, clock, jumped, trust, .. } = self;
        checksum(&[
            version.as_bytes(),
            boot.as_bytes(),
            &clock.to_le_bytes(),
            &[u8::from(*jumped)],
            trust.as_bytes(),
        ])
    }
}

/// A start with its number and what stands for its seal.
type StartRow = (u64, Start, Vec<u8>);

/// Starts with their numbers and what stands for their seals, the last first.
pub(super) fn start_rows(
    connection: &Connection,
    seal: &str,
    at_most: u32,
) -> rusqlite::Result<Vec<StartRow>> {
    let last = format!(
        "SELECT start, version, boot, clock, jumped, trust, {seal}, at FROM starts
         ORDER BY start DESC LIMIT {at_most}"
    );
    let mut statement = connection.prepare(&last)?;
    let rows = statement.query_map([], |row| {
        let start = Start {
            at: row.get(7)?,
            version: row.get(1)?,
            boot: row.get(2)?,
            clock: row.get(3)?,
            jumped: row.get(4)?,
            trust: row.get(5)?,
        };
        Ok((row.get::<_, i64>(0)?.unsigned_abs(), start, row.get(6)?))
    })?;
    rows.collect()
}

// enforces: I33
/// The last start with its number; one that was not written with this key is an error.
pub(super) fn last_start(
    connection: &Connection,
    key: &ChainKey,
) -> rusqlite::Result<Option<(u64, Start)>> {
    match start_rows(connection, "seal", 1)?.pop() {
        Some((number, start, seal)) if start.seal(key, number)[..] == seal => {
            Ok(Some((number, start)))
        }
        Some(_) => Err(rusqlite::Error::IntegralValueOutOfRange(6, 0)),
        None => Ok(None),
    }
}

/// Whether the last start is the one that was noted, or a later one.
fn check_start((number, jumped): (u64, bool), noted: Option<Noted>) -> Result<(), Damage> {
    let Some(noted) = noted else { return Ok(()) };
    let put_back = number == noted.start && noted.jumped && !jumped;
    let added = noted.stopped.is_some() && number > noted.start;
    if number < noted.start || put_back || added {
        return Err(changed("the note of the last start was taken away or put back"));
    }
    Ok(())
}

/// The calls, unless one was changed, or any since a clean stop of the hub.
fn check_calls(
    connection: &Connection,
    key: &ChainKey,
    noted: Option<Noted>,
) -> Result<Vec<KeptCall>, Damage> {
    let calls = call_rows(connection, "seal")?;
    if calls.iter().any(|(call, seal)| call.seal(key)[..] != **seal) {
        return Err(changed("what was kept of a call was changed"));
    }
    let stopped = noted.and_then(|noted| noted.stopped);
    if stopped.is_some_and(|seal| seal != seal_calls(key, &calls)) {
        return Err(changed("what was kept of calls was changed after the hub stopped"));
    }
    Ok(calls.into_iter().map(|(call, _)| call).collect())
}

// enforces: I26, I33
/// Looks at every start and every call. Gives the starts, the last first.
pub(super) fn check_rows(
    connection: &Connection,
    key: &ChainKey,
    noted: Option<Noted>,
) -> Result<Vec<(u64, Start)>, Damage> {
    let starts = start_rows(connection, "seal", u32::MAX)?;
    let last = starts.first().map_or((0, false), |(number, start, _)| (*number, start.jumped));
    for (expected, (number, start, seal)) in (1..=last.0).rev().zip(&starts) {
        if *number != expected || start.seal(key, *number)[..] != **seal {
            return Err(changed(&format!(
                "the note of start {expected} was changed or taken away"
            )));
        }
    }
    if starts.len() as u64 != last.0 {
        return Err(changed("notes of starts were taken away"));
    }
    check_start(last, noted)?;
    check_calls(connection, key, noted)?;
    Ok(starts.into_iter().map(|(number, start, _)| (number, start)).collect())
}

/// Every call with what stands for its seal, in the order of their keys.
pub(super) fn call_rows(
    connection: &Connection,
    seal: &str,
) -> rusqlite::Result<Vec<(KeptCall, Vec<u8>)>> {
    let all = format!(
        "SELECT agent, path, key, session, body, status, answer, {seal} FROM calls
         ORDER BY agent, path, key"
    );
    let mut statement = connection.prepare(&all)?;
    let rows = statement.query_map([], |row| {
        let call = KeptCall {
            agent: row.get(0)?,
            path: row.get(1)?,
            key: row.get(2)?,
            session: row.get(3)?,
            body: row.get(4)?,
            status: row.get(5)?,
            answer: row.get(6)?,
        };
        Ok((call, row.get::<_, Vec<u8>>(7)?))
    })?;
    rows.collect()
}

/// Seals all calls together, by their seals, in the order of their keys.
fn seal_calls(key: &ChainKey, calls: &[(KeptCall, Vec<u8>)]) -> ChainHash {
    let seals: Vec<&[u8]> = calls.iter().map(|(_, seal)| &**seal).collect();
    key.seal("calls", &seals)
}

fn changed(what: &str) -> Damage {
    Damage { number: 0, why: what.into() }
}

impl Sqlite {
    /// The start before this one, if there was one.
    pub fn last_start(&self) -> Result<Option<Start>, Damage> {
        let found = last_start(&self.connection, &self.key);
        let found = found.map_err(|_| changed("the note of the last start was changed"))?;
        Ok(found.map(|(_, start)| start))
    }

    /// Notes that a hub starts now.
    pub fn note_start(&mut self, start: &Start) -> Result<(), JournalFault> {
        self.note_start_at(&Start { at: wall_micros(), ..start.clone() })
    }

    /// The same for a hub that started when this says.
    pub fn note_start_at(&mut self, start: &Start) -> Result<(), JournalFault> {
        let (number, start) = (self.start.0 + 1, start.clone());
        let seal = start.seal(&self.key, number);
        let Start { at, version, boot, clock, jumped, trust } = start;
        let insert = "INSERT INTO starts (start, at, version, boot, clock, jumped, trust, seal)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
        let values = params![number as i64, at, version, boot, clock, jumped, trust, seal];
        self.connection.execute(insert, values).map_err(|error| fault_of(&error))?;
        self.start = (number, jumped);
        Ok(())
    }

    // enforces: I33
    /// Every call that is remembered. One that was not written with this journal's key is damage; so is
    /// any change since a clean stop of the hub.
    pub fn calls(&self, noted: Option<Noted>) -> Result<Vec<KeptCall>, Damage> {
        check_calls(&self.connection, &self.key, noted)
    }

    // enforces: I33
    /// Whether the last start is the one that was noted, or a later one.
    pub fn check_start(&self, noted: Option<Noted>) -> Result<(), Damage> {
        check_start(self.start, noted)
    }

    /// What is to be noted outside of this journal while a hub works with it.
    pub fn position(&self) -> Noted {
        let ((number, hash), (start, jumped)) = (self.head(), self.start);
        Noted { number, hash, start, jumped, stopped: None }
    }

    /// The same at the end.
    pub fn final_position(&self) -> Result<Noted, JournalFault> {
        let calls = call_rows(&self.connection, "seal").map_err(|error| fault_of(&error))?;
        Ok(Noted { stopped: Some(seal_calls(&self.key, &calls)), ..self.position() })
    }

    /// Notes something by itself.
    pub fn note(&mut self, note: Note) -> Result<(), JournalFault> {
        self.keep(&[Unit { entries: Vec::new(), notes: vec![note] }])
    }
}
