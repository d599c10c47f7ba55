-- The layout of version 1, as it was released: unkeyed hashes, checksums of eight bytes.
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
