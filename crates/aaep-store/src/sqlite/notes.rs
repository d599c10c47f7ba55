//! What the hub notes beside the records: calls that may come twice, and its own starts.

use rusqlite::{Connection, OptionalExtension, params};

use super::{Damage, Fault, Sqlite, Unit, fault_of, wall_micros};
use crate::chain::checksum;

/// A call of an agent with an idempotency key, and what it led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCall {
    /// The name of the agent.
    pub agent: String,
    /// What was called.
    pub path: String,
    /// The key.
    pub key: String,
    /// The session that it concerns.
    pub session: String,
    /// SHA-256 of what was sent.
    pub body: [u8; 32],
    /// The status of the answer.
    pub status: u16,
    /// The answer.
    pub answer: String,
}

impl KeptCall {
    fn checksum(&self) -> Vec<u8> {
        let Self { agent, path, key, session, body, status, answer } = self;
        checksum(&[
            agent.as_bytes(),
            path.as_bytes(),
            key.as_bytes(),
            session.as_bytes(),
            body,
            &status.to_le_bytes(),
            answer.as_bytes(),
        ])
    }
}

/// Something that the hub notes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A call to be remembered.
    Call(KeptCall),
    /// This call is no longer needed.
    ForgetCall {
        /// The name of the agent.
        agent: String,
        /// What was called.
        path: String,
        /// The key.
        key: String,
    },
    /// The calls of this session are no longer needed.
    ForgetCalls {
        /// Which.
        session: String,
    },
    /// The clock on the wall jumped.
    ClockJumped,
}

impl Note {
    pub(super) fn write(&self, transaction: &Connection) -> rusqlite::Result<()> {
        match self {
            Note::Call(call) => {
                let KeptCall { agent, path, key, session, body, status, answer } = call;
                let insert = "INSERT OR REPLACE INTO calls VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
                let values =
                    params![agent, path, key, session, body, status, answer, call.checksum()];
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
                if let Some((number, start)) = last_start(transaction)? {
                    let start = Start { jumped: true, ..start };
                    let update = "UPDATE starts SET jumped = 1, checksum = ?2 WHERE start = ?1";
                    transaction.execute(update, params![number, start.checksum()])?;
                }
            }
        }
        Ok(())
    }
}

/// A start of a hub, and what it knew of its clocks (I8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The version of the hub.
    pub version: String,
    /// Which boot of the machine it was; empty if nobody knows.
    pub boot: String,
    /// The clock on the wall minus the boot clock, in microseconds.
    pub clock: i64,
    /// Whether the clock on the wall jumped while it ran.
    pub jumped: bool,
    /// What it concluded about what was there.
    pub trust: String,
}

impl Start {
    fn checksum(&self) -> Vec<u8> {
        let Self { version, boot, clock, jumped, trust } = self;
        checksum(&[
            version.as_bytes(),
            boot.as_bytes(),
            &clock.to_le_bytes(),
            &[u8::from(*jumped)],
            trust.as_bytes(),
        ])
    }
}

/// The last start with its number; one that was changed afterwards is an error.
fn last_start(connection: &rusqlite::Connection) -> rusqlite::Result<Option<(i64, Start)>> {
    let last = "SELECT start, version, boot, clock, jumped, trust, checksum FROM starts
                ORDER BY start DESC LIMIT 1";
    let found = connection
        .query_row(last, [], |row| {
            let start = Start {
                version: row.get(1)?,
                boot: row.get(2)?,
                clock: row.get(3)?,
                jumped: row.get(4)?,
                trust: row.get(5)?,
            };
            Ok((row.get(0)?, start, row.get::<_, Vec<u8>>(6)?))
        })
        .optional()?;
    match found {
        Some((_, start, checksum)) if start.checksum() != checksum => {
            Err(rusqlite::Error::IntegralValueOutOfRange(6, 0))
        }
        found => Ok(found.map(|(number, start, _)| (number, start))),
    }
}

impl Sqlite {
    /// The start before this one, if there was one.
    pub fn last_start(&self) -> Result<Option<Start>, Damage> {
        let found = last_start(&self.connection);
        let changed =
            |_| Damage { number: 0, why: "the note of the last start was changed".into() };
        Ok(found.map_err(changed)?.map(|(_, start)| start))
    }

    /// Notes that a hub starts now.
    pub fn note_start(&mut self, start: &Start) -> Result<(), Fault> {
        let Start { version, boot, clock, jumped, trust } = start;
        let insert = "INSERT INTO starts (at, version, boot, clock, jumped, trust, checksum)
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![wall_micros(), version, boot, clock, jumped, trust, start.checksum()];
        let done = self.connection.execute(insert, values).map(drop);
        done.map_err(|error| fault_of(&error))
    }

    /// Every call that is remembered.
    pub fn calls(&self) -> Result<Vec<KeptCall>, Damage> {
        let all = "SELECT agent, path, key, session, body, status, answer, checksum FROM calls";
        let mut statement = self.connection.prepare(all)?;
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
        rows.map(|row| match row? {
            (call, checksum) if call.checksum() == checksum => Ok(call),
            _ => Err(Damage { number: 0, why: "what was kept of a call was changed".into() }),
        })
        .collect()
    }

    /// Notes something by itself.
    pub fn note(&mut self, note: Note) -> Result<(), Fault> {
        self.keep(&[Unit { entries: Vec::new(), notes: vec![note] }])
    }
}
