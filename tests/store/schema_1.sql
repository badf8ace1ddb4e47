-- The tables of schema version 1, as swarmtest wrote them before it watched coverage.
BEGIN IMMEDIATE;

-- What this file is: 'created', 'created_by'.
CREATE TABLE IF NOT EXISTS meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- One row per campaign: one subject, one strategy, one budget, one seed.
-- AUTOINCREMENT: the number of a deleted campaign is not given to another one.
CREATE TABLE IF NOT EXISTS campaigns (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    subject      TEXT NOT NULL,
    strategy     TEXT NOT NULL,
    seed         TEXT NOT NULL,     -- decimal; text, because it may have more than 63 bits
    status       TEXT NOT NULL,     -- running, finished, interrupted
    created      REAL NOT NULL,     -- seconds since 1970: datetime(created, 'unixepoch')
    wall_seconds REAL NOT NULL,
    cpu_seconds  REAL NOT NULL,
    options      TEXT NOT NULL,     -- JSON
    space        TEXT NOT NULL      -- JSON: dimensions and constraints
);

-- One row per executed test. The small columns come first, so that totals need not walk the
-- overflow pages of large hits. Keyed in the order of writing and reading: rows are appended.
CREATE TABLE IF NOT EXISTS trials (
    campaign      INTEGER NOT NULL, -- campaigns.id
    trial         INTEGER NOT NULL, -- 0, 1, 2, ... within the campaign
    verdict       INTEGER NOT NULL, -- 0 passed, 1 failed, 2 invalid
    fault         TEXT,             -- faults.id, if it showed one
    steps         INTEGER NOT NULL, -- parts executed
    skipped       INTEGER NOT NULL, -- parts that could not run
    cpu_ns        INTEGER NOT NULL,
    wall_ns       INTEGER NOT NULL,
    seed          INTEGER NOT NULL, -- the test's own seed
    origin        TEXT NOT NULL,    -- which part of the strategy proposed it
    configuration BLOB NOT NULL,    -- Configuration.to_bytes
    propensities  BLOB NOT NULL,    -- float32 each: one per feature, or one for all, or none
    used          BLOB NOT NULL,    -- how often each feature appeared: records.pack_counts
    hits          BLOB,             -- targets.id reached, a roaring bitmap: targets.pack_hits
    PRIMARY KEY (campaign, trial)
) WITHOUT ROWID;

-- Failures are few: the index holds them only, and gives a fault's trials in order.
CREATE INDEX IF NOT EXISTS trials_by_fault ON trials (campaign, fault) WHERE fault IS NOT NULL;

-- One row per distinct failure of a campaign, with its shortest test so far. How many trials
-- showed it: SELECT fault, count(*) FROM trials WHERE fault IS NOT NULL GROUP BY fault.
CREATE TABLE IF NOT EXISTS faults (
    campaign    INTEGER NOT NULL,   -- campaigns.id
    id          TEXT NOT NULL,      -- hash of kind and signature, the same in every store
    kind        TEXT NOT NULL,      -- exception, invariant, signal, exit, timeout, memory
    signature   TEXT NOT NULL,      -- one line that stays the same when the bug shows again
    details     TEXT NOT NULL,      -- what the shortest test printed: a traceback, a stack
    first_trial INTEGER NOT NULL,   -- the lowest trial that showed it
    trial       INTEGER NOT NULL,   -- the trial of the shortest test
    size        INTEGER NOT NULL,   -- its steps
    test        TEXT,               -- the shortest test, JSON; NULL: died before it could tell
    PRIMARY KEY (campaign, id)
);

-- Tests that were asked to be kept whole.
CREATE TABLE IF NOT EXISTS tests (
    campaign INTEGER NOT NULL,      -- campaigns.id
    trial    INTEGER NOT NULL,
    test     TEXT NOT NULL,         -- JSON
    PRIMARY KEY (campaign, trial)
);

-- Behaviours that some tests show and others do not; shared by all campaigns of the file.
CREATE TABLE IF NOT EXISTS targets (
    id   INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,             -- event, line, branch, mutant, ...
    name TEXT NOT NULL,
    UNIQUE (kind, name)
);

PRAGMA application_id = 1398231629;
PRAGMA user_version = 1;

COMMIT;
