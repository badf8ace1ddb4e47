"""The SQLite schema; its SQL comments are the manual for users of the ``sqlite3`` shell.

Version history (``PRAGMA user_version``):

1. The first: campaigns, trials, faults, tests, targets, meta.
2. Coverage: targets have places in files; sources, campaign_sources; trials.missing;
   campaigns.outside.
3. Reductions of faults' tests.
4. Workers; totals of trials in blocks of a hundred.

When the schema changes: add a line here, raise `VERSION`, add the step from the previous version to
`MIGRATIONS`, and add a script to `postgres/migrations`. A file with a newer version than `VERSION`
is refused.
"""

from __future__ import annotations

VERSION = 4
"""The version of `SCHEMA`, stored in ``PRAGMA user_version``."""

APPLICATION_ID = 0x5357524D
"""``SWRM`` in ASCII, stored in ``PRAGMA application_id``: marks a file as ours."""

PAGE_SIZE = 16384
"""Measured: twice as fast as SQLite's 4 KB with 2.5 KB of hits per trial, otherwise the same."""

TARGETS = """
-- Behaviours that some tests show and others do not; shared by all campaigns of the file.
CREATE TABLE IF NOT EXISTS targets (
    id       INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL,         -- event, line, branch, path, mutant, ...
    name     TEXT NOT NULL,         -- 'stack was full', 'shop/cart.py:12'
    source   TEXT NOT NULL,         -- sources.id: the version of the file; '' for events
    file     TEXT NOT NULL,
    line     INTEGER NOT NULL,
    function TEXT NOT NULL,
    content  TEXT NOT NULL,         -- hash of the code it stands for: found again after an edit
    detail   TEXT NOT NULL,         -- what the name only hashes: a path's blocks
    UNIQUE (kind, name, source)
);

-- Versions of files of programs under test, so that reports show what was tested.
CREATE TABLE IF NOT EXISTS sources (
    id   TEXT PRIMARY KEY,          -- hash of path and text
    path TEXT NOT NULL,
    text BLOB NOT NULL              -- UTF-8, zlib
);

-- Which of them a campaign watched: its targets are the targets of these, hit or not.
CREATE TABLE IF NOT EXISTS campaign_sources (
    campaign INTEGER NOT NULL,      -- campaigns.id
    source   TEXT NOT NULL,         -- sources.id
    place    TEXT NOT NULL,         -- where the file was on that machine; '' when not known
    PRIMARY KEY (campaign, source)
) WITHOUT ROWID;
"""

REDUCTIONS = """
-- Tests of faults made smaller; the tests they were made from stay in faults and tests.
CREATE TABLE IF NOT EXISTS reductions (
    campaign  INTEGER NOT NULL,     -- campaigns.id
    fault     TEXT NOT NULL,        -- faults.id
    criterion TEXT NOT NULL,        -- what had to be kept: 'fault', the same signature
    trial     INTEGER NOT NULL,     -- the trial whose test it began with
    before    INTEGER NOT NULL,     -- parts of that test
    size      INTEGER NOT NULL,     -- parts that are left
    test      TEXT,                 -- what is left, JSON; NULL: the fault did not show again
    details   TEXT NOT NULL,        -- what that printed: a traceback, a stack
    runs      INTEGER NOT NULL,     -- tests that were run for it
    seconds   REAL NOT NULL,
    complete  INTEGER NOT NULL,     -- 1: nothing more can go; 0: the time was up
    PRIMARY KEY (campaign, fault, criterion)
);
"""

WORKERS = """
-- What the workers of campaigns last said of themselves.
CREATE TABLE IF NOT EXISTS workers (
    campaign  INTEGER NOT NULL,     -- campaigns.id
    name      TEXT NOT NULL,        -- its own within the campaign
    host      TEXT NOT NULL,
    pid       INTEGER NOT NULL,
    started   REAL NOT NULL,        -- seconds since 1970
    last_seen REAL NOT NULL,        -- seconds since 1970
    tests     INTEGER NOT NULL,     -- run so far
    state     TEXT NOT NULL,        -- working, idle, done, lost
    PRIMARY KEY (campaign, name)
) WITHOUT ROWID;
"""

BLOCK = 100
"""Trials per row of the table blocks."""

BLOCKS = f"""
-- Totals of trials, so that a page about a million of them need not read them.
CREATE TABLE IF NOT EXISTS blocks (
    campaign INTEGER NOT NULL,      -- campaigns.id
    block    INTEGER NOT NULL,      -- trials.trial / {BLOCK}
    trials   INTEGER NOT NULL,
    passed   INTEGER NOT NULL,
    failed   INTEGER NOT NULL,
    invalid  INTEGER NOT NULL,
    steps    INTEGER NOT NULL,
    skipped  INTEGER NOT NULL,
    cpu_ns   REAL NOT NULL,         -- REAL: sums of 63-bit numbers have more than 63 bits
    wall_ns  REAL NOT NULL,
    PRIMARY KEY (campaign, block)
) WITHOUT ROWID;
"""

COUNT_BLOCKS = f"""
INSERT OR REPLACE INTO blocks
SELECT campaign, trial / {BLOCK}, count(*), sum(verdict = 0), sum(verdict = 1), sum(verdict = 2),
       sum(steps), sum(skipped), total(cpu_ns), total(wall_ns)
FROM trials"""
"""Write the totals of trials; append a WHERE and ``GROUP BY campaign, trial / BLOCK``."""

SCHEMA = f"""
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
    space        TEXT NOT NULL,     -- JSON: dimensions and constraints
    outside      BLOB               -- targets.id reached by imports, not by tests; as trials.hits
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
    missing       TEXT NOT NULL DEFAULT '', -- why its coverage is not known; '': hits are complete
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

{TARGETS}
{REDUCTIONS}
{WORKERS}
{BLOCKS}

PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};

COMMIT;
"""
"""One transaction that turns an empty file into a store; two processes may run it at once."""

MIGRATIONS = {
    1: f"""
BEGIN IMMEDIATE;
ALTER TABLE trials ADD COLUMN missing TEXT NOT NULL DEFAULT '';
ALTER TABLE campaigns ADD COLUMN outside BLOB;
ALTER TABLE targets RENAME TO targets_1;
{TARGETS}
INSERT INTO targets SELECT id, kind, name, '', '', 0, '', '', '' FROM targets_1;
DROP TABLE targets_1;
PRAGMA user_version = 2;
COMMIT;
""",
    2: f"""
BEGIN IMMEDIATE;
{REDUCTIONS}
PRAGMA user_version = 3;
COMMIT;
""",
    3: f"""
BEGIN IMMEDIATE;
{WORKERS}
{BLOCKS}
{COUNT_BLOCKS} GROUP BY campaign, trial / {BLOCK};
PRAGMA user_version = 4;
COMMIT;
""",
}
"""The steps from each older version to the next, each in one transaction."""
