//! What the file looks like inside, and how older files become newer ones.
//!
//! `docs/durability.md` explains it for people; a test compares the two.

use std::collections::BTreeMap;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::open::CannotOpen;

/// Says that a file is ours: `AAEP`.
pub(super) const APPLICATION_ID: i32 = 0x4141_4550;

/// One step for each version: from an empty file to 1, from 1 to 2, and so on. A step that was
/// released is never changed.
const STEPS: &[&str] = &[VERSION_1, VERSION_2, VERSION_3];

/// The first version whose journals have keys.
pub(super) const KEYED: u32 = 2;

/// The version that this program writes.
pub const VERSION: u32 = STEPS.len() as u32;

const VERSION_1: &str = r"
-- This store: one row.
CREATE TABLE store (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    id      TEXT NOT NULL,      -- 32 hex digits, drawn when the store was made
    opened  INTEGER NOT NULL    -- how often a hub has opened it
) STRICT;
INSERT INTO store VALUES (1, lower(hex(randomblob(16))), 0);

-- Everything that must survive a restart, in order. Only `at` and `bytes` count;
-- the other columns say the same for people, and `aaep audit verify` compares them.
CREATE TABLE records (
    number          INTEGER PRIMARY KEY,    -- 1, 2, 3, ...
    at              INTEGER NOT NULL,       -- when it was written, in microseconds since 1970, UTC
    kind            TEXT NOT NULL,
    session         TEXT,
    request         TEXT,
    agent           TEXT,
    user            TEXT,
    tool            TEXT,
    call            TEXT,
    text            TEXT,       -- the action or the question, in the words that were shown
    irreversible    INTEGER,
    deadline        INTEGER,    -- in microseconds since 1970, UTC
    outcome         TEXT,
    runs            INTEGER,    -- whether the action may run
    decided_by      TEXT,       -- who or what decided; who sent a reply that did not count
    reason          INTEGER,    -- why a reply did not count
    bytes           BLOB NOT NULL,  -- the record, with its own number and checksum
    hash            BLOB NOT NULL   -- SHA-256(hash before, at, bytes)
) STRICT;
CREATE INDEX ends ON records (at) WHERE kind = 'ended';

-- Calls of agents with an Idempotency-Key, and what they led to.
CREATE TABLE calls (
    agent       TEXT NOT NULL,
    path        TEXT NOT NULL,
    key         TEXT NOT NULL,
    session     TEXT NOT NULL,
    body        BLOB NOT NULL,  -- SHA-256 of what was sent
    status      INTEGER NOT NULL,
    answer      TEXT NOT NULL,
    checksum    BLOB NOT NULL,
    PRIMARY KEY (agent, path, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX calls_of_session ON calls (session);

-- Every start of a hub with this store.
CREATE TABLE starts (
    start       INTEGER PRIMARY KEY,
    at          INTEGER NOT NULL,
    version     TEXT NOT NULL,      -- of the hub
    boot        TEXT NOT NULL,      -- which boot of the machine; empty if nobody knows
    clock       INTEGER NOT NULL,   -- the clock on the wall minus the boot clock, in microseconds
    jumped      INTEGER NOT NULL,   -- whether the clock on the wall jumped while it ran
    trust       TEXT NOT NULL,      -- what the hub concluded about what was there
    checksum    BLOB NOT NULL
) STRICT;

CREATE VIEW sessions AS
SELECT o.session, o.agent, o.user,
       strftime('%Y-%m-%dT%H:%M:%SZ', o.at / 1000000, 'unixepoch') AS began_at,
       strftime('%Y-%m-%dT%H:%M:%SZ', e.at / 1000000, 'unixepoch') AS ended_at
FROM records o
LEFT JOIN records e ON e.kind = 'ended' AND e.session = o.session
WHERE o.kind = 'opened';

CREATE VIEW open_requests AS
SELECT a.request, o.agent, o.user, a.tool, a.text, a.irreversible,
       strftime('%Y-%m-%dT%H:%M:%SZ', a.at / 1000000, 'unixepoch') AS asked_at,
       strftime('%Y-%m-%dT%H:%M:%SZ', coalesce(x.deadline, a.deadline) / 1000000, 'unixepoch')
           AS deadline,
       a.session
FROM records a
JOIN records o ON o.kind = 'opened' AND o.session = a.session
LEFT JOIN (SELECT request, max(deadline) AS deadline FROM records
           WHERE kind = 'extended' GROUP BY request) x ON x.request = a.request
WHERE a.kind = 'asked'
  AND a.request NOT IN (SELECT request FROM records WHERE kind = 'resolved');

CREATE VIEW decisions AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', r.at / 1000000, 'unixepoch') AS decided_at,
       r.decided_by, r.outcome, r.runs, o.agent, o.user, a.tool, a.text, a.irreversible,
       strftime('%Y-%m-%dT%H:%M:%SZ', a.at / 1000000, 'unixepoch') AS asked_at,
       r.request, a.session
FROM records r
JOIN records a ON a.kind = 'asked' AND a.request = r.request
JOIN records o ON o.kind = 'opened' AND o.session = a.session
WHERE r.kind = 'resolved';

CREATE VIEW decisions_by_person AS
SELECT decided_by, outcome, count(*) AS decisions, max(decided_at) AS last_at
FROM decisions GROUP BY decided_by, outcome;

CREATE VIEW decisions_by_agent AS
SELECT agent, user, outcome, count(*) AS decisions, max(decided_at) AS last_at
FROM decisions GROUP BY agent, user, outcome;

CREATE VIEW decisions_by_day AS
SELECT substr(decided_at, 1, 10) AS day, outcome, count(*) AS decisions
FROM decisions GROUP BY day, outcome;

CREATE VIEW invocations AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', i.at / 1000000, 'unixepoch') AS invoked_at,
       i.call, a.tool, a.text, a.irreversible, o.agent, o.user,
       strftime('%Y-%m-%dT%H:%M:%SZ', c.at / 1000000, 'unixepoch') AS completed_at,
       i.request, a.session
FROM records i
JOIN records a ON a.kind = 'asked' AND a.request = i.request
JOIN records o ON o.kind = 'opened' AND o.session = a.session
LEFT JOIN records c ON c.kind = 'completed' AND c.call = i.call
WHERE i.kind = 'invoked';

CREATE VIEW ignored_replies AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', at / 1000000, 'unixepoch') AS at, decided_by AS sent_by,
       CASE reason
           WHEN 1 THEN 'too many, or nothing could be kept' WHEN 2 THEN 'no such subscription'
           WHEN 3 THEN 'its subscription does not answer' WHEN 4 THEN 'no such token'
           WHEN 5 THEN 'was decided already' WHEN 6 THEN 'too late'
           WHEN 7 THEN 'may not answer for this user' WHEN 8 THEN 'of the wrong kind'
           WHEN 9 THEN 'its time cannot be right' WHEN 10 THEN 'not an answer to this question'
           ELSE 'unknown' END AS reason
FROM records WHERE kind = 'ignored';
";

/// The key came with this version: it says where the keyed chain begins, and every row is sealed.
const VERSION_2: &str = r"
-- The last record from before the journal had its key; 0 if it always had one.
ALTER TABLE store ADD COLUMN anchor_number INTEGER NOT NULL DEFAULT 0;
-- Its unkeyed hash.
ALTER TABLE store ADD COLUMN anchor_hash BLOB;
-- HMAC over the name of the store and the anchor.
ALTER TABLE store ADD COLUMN seal BLOB;
-- HMAC over the other columns.
ALTER TABLE calls RENAME COLUMN checksum TO seal;
ALTER TABLE starts RENAME COLUMN checksum TO seal;
";

/// Records can be erased since this version: a row of the kind `gap` stands for those that are gone. It
/// has the number, the time and the hash of the last of them, and in the place of a record's bytes the
/// number of the first and a seal.
const VERSION_3: &str = r"
-- Records that say which others were erased.
CREATE INDEX erasures ON records (number) WHERE kind = 'erased';
";

/// Gives an empty file, or one of an earlier version that has its key, the layout of this program, all
/// of it or not at all. One that has it stays as it is.
pub(super) fn lay_out(connection: &mut Connection) -> Result<(), CannotOpen> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    upgrade(&transaction, STEPS)?;
    Ok(transaction.commit()?)
}

/// Brings a file to the version of this program, within a transaction: what else that takes is the
/// caller's.
pub(super) fn migrate(transaction: &Transaction<'_>) -> Result<(), CannotOpen> {
    upgrade(transaction, STEPS)
}

fn upgrade(transaction: &Transaction<'_>, steps: &[&str]) -> Result<(), CannotOpen> {
    let found = version_of(transaction)?;
    let known = steps.len() as u32;
    if found > known {
        return Err(CannotOpen::Newer { found, known });
    }
    if found == known {
        return Ok(());
    }
    for step in &steps[found as usize..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", known)?;
    Ok(())
}

// enforces: I33
/// Whether the layout of a file is as this program made it. A constraint, an index or a view of somebody
/// else could swallow what is written, or show what is not there.
pub(super) fn check(connection: &Connection) -> Result<(), CannotOpen> {
    let version = version_of(connection)? as usize;
    let made = Connection::open_in_memory()?;
    for step in STEPS.iter().take(version) {
        made.execute_batch(step)?;
    }
    let (found, made) = (layout_of(connection)?, layout_of(&made)?);
    // Only names of ours are told: the others are whatever somebody wrote.
    let what = match made.iter().find(|(name, sql)| found.get(*name) != Some(*sql)) {
        Some((name, _)) => format!("somebody changed its layout ({name})"),
        None if found.len() > made.len() => "somebody added to its layout".into(),
        None => return Ok(()),
    };
    Err(CannotOpen::Damaged { what })
}

/// Everything in a file that is no row, by its name: what it is, of which table, and how it was made.
fn layout_of(connection: &Connection) -> rusqlite::Result<BTreeMap<String, [Option<String>; 3]>> {
    let mut statement =
        connection.prepare("SELECT name, type, tbl_name, sql FROM sqlite_schema")?;
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?])))?;
    rows.collect()
}

/// The version of a file; 0 for an empty one. A file of another application is refused.
pub(super) fn version_of(connection: &Connection) -> Result<u32, CannotOpen> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let (id, version) = (number("application_id")?, number("user_version")?);
    if id == i64::from(APPLICATION_ID) {
        // A version below 1 is no version of ours.
        return u32::try_from(version).ok().filter(|found| *found > 0).ok_or(CannotOpen::NotOurs);
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if id == 0 && version == 0 && tables == 0 { Ok(0) } else { Err(CannotOpen::NotOurs) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migrate_by(file: &mut Connection, steps: &[&str]) -> Result<(), CannotOpen> {
        let transaction = file.transaction().unwrap();
        upgrade(&transaction, steps)?;
        Ok(transaction.commit()?)
    }

    #[test]
    fn an_older_file_takes_every_step_once_and_a_newer_one_is_refused() {
        let mut file = Connection::open_in_memory().unwrap();
        let steps = ["CREATE TABLE a (x)", "CREATE TABLE b (x)", "DROP TABLE a"];
        for known in [1, 1, 3, 3] {
            migrate_by(&mut file, &steps[..known]).unwrap();
            assert_eq!(version_of(&file).unwrap(), known as u32);
        }
        let refused = migrate_by(&mut file, &steps[..2]).unwrap_err();
        assert!(matches!(refused, CannotOpen::Newer { found: 3, known: 2 }));
        assert!(refused.to_string().contains("newer"));
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_as_it_was() {
        let mut file = Connection::open_in_memory().unwrap();
        migrate_by(&mut file, &["CREATE TABLE a (x)"]).unwrap();
        let broken = ["CREATE TABLE a (x)", "CREATE TABLE b (x); CREATE TABLE a (x)"];
        assert!(migrate_by(&mut file, &broken).is_err());
        assert_eq!(version_of(&file).unwrap(), 1);
        assert!(file.prepare("SELECT * FROM b").is_err());
    }

    #[test]
    fn somebody_elses_file_is_left_alone() {
        let mut file = Connection::open_in_memory().unwrap();
        file.execute_batch("CREATE TABLE theirs (x)").unwrap();
        assert!(matches!(lay_out(&mut file), Err(CannotOpen::NotOurs)));
        file.prepare("SELECT * FROM theirs").unwrap();
    }
}
