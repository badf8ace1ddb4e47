-- The step to schema version 4, as swarmtest took it with Alembic.
-- What the workers of campaigns last said of themselves.
CREATE TABLE workers (
    campaign  bigint NOT NULL,      -- campaigns.id
    name      text COLLATE "C" NOT NULL, -- its own within the campaign
    host      text NOT NULL,
    pid       bigint NOT NULL,
    started   double precision NOT NULL, -- seconds since 1970
    last_seen double precision NOT NULL, -- seconds since 1970
    tests     bigint NOT NULL,      -- run so far
    state     text NOT NULL,        -- working, idle, done, lost
    PRIMARY KEY (campaign, name)
);

-- Totals of trials, so that a page about a million of them need not read them.
CREATE TABLE blocks (
    campaign bigint NOT NULL,       -- campaigns.id
    block    bigint NOT NULL,       -- trials.trial / 100
    trials   bigint NOT NULL,
    passed   bigint NOT NULL,
    failed   bigint NOT NULL,
    invalid  bigint NOT NULL,
    steps    numeric NOT NULL,      -- numeric, because sums of 63-bit numbers have more bits
    skipped  numeric NOT NULL,
    cpu_ns   numeric NOT NULL,
    wall_ns  numeric NOT NULL,
    PRIMARY KEY (campaign, block)
);

-- Nobody may add trials between this and the end of the transaction, which would not be counted.
LOCK TABLE trials IN SHARE MODE;
INSERT INTO blocks
SELECT campaign, trial / 100, count(*), count(*) FILTER (WHERE verdict = 0),
       count(*) FILTER (WHERE verdict = 1), count(*) FILTER (WHERE verdict = 2),
       sum(steps), sum(skipped), sum(cpu_ns), sum(wall_ns)
FROM trials GROUP BY campaign, trial / 100;
UPDATE alembic_version SET version_num = '4';
