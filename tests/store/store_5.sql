BEGIN TRANSACTION;
CREATE TABLE blocks (
    campaign BIGINT NOT NULL,       -- campaigns.id
    block    BIGINT NOT NULL,       -- trials.trial / 100
    trials   BIGINT NOT NULL,
    passed   BIGINT NOT NULL,
    failed   BIGINT NOT NULL,
    invalid  BIGINT NOT NULL,
    steps    INTEGER NOT NULL,
    skipped  INTEGER NOT NULL,
    cpu_ns   REAL NOT NULL,
    wall_ns  REAL NOT NULL,
    PRIMARY KEY (campaign, block)
) WITHOUT ROWID;
INSERT INTO "blocks" VALUES(1,0,20,16,4,0,553,0,3310099.0,17202237.0);
INSERT INTO "blocks" VALUES(2,0,20,16,4,0,552,0,6169634.0,24015511.0);
INSERT INTO "blocks" VALUES(3,0,20,20,0,0,309,291,2020952.0,6906405.0);
INSERT INTO "blocks" VALUES(4,0,3,1,1,1,3,1,7.0,-8.0);
CREATE TABLE campaign_sources (
    campaign BIGINT NOT NULL,       -- campaigns.id
    source   TEXT NOT NULL,         -- sources.id
    place    TEXT NOT NULL,         -- path of the file on that machine; '' if not known
    PRIMARY KEY (campaign, source)
) WITHOUT ROWID;
INSERT INTO "campaign_sources" VALUES(1,'dbf9af68c94e0870','/home/ann/machine.py');
INSERT INTO "campaign_sources" VALUES(2,'dbf9af68c94e0870','/home/ann/machine.py');
INSERT INTO "campaign_sources" VALUES(3,'dbf9af68c94e0870','/home/ann/machine.py');
CREATE TABLE campaigns (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    subject      TEXT NOT NULL,
    strategy     TEXT NOT NULL,
    seed         TEXT NOT NULL,     -- decimal; text, because it may have more than 63 bits
    status       TEXT NOT NULL,     -- running, finished, interrupted
    created      REAL NOT NULL,     -- seconds since 1970
    wall_seconds REAL NOT NULL,
    cpu_seconds  REAL NOT NULL,
    options      TEXT NOT NULL,     -- JSON
    space        TEXT NOT NULL,     -- JSON: dimensions and constraints
    outside      BLOB               -- targets that imports reached, not tests; as trials.hits
);
INSERT INTO "campaigns" VALUES(1,'machine.py::Stack','coin','3','finished',1.79500966325391173366e+09,3.93077924999943206785e-01,0.003310099,'{"subject": {"text": "machine.py::Stack", "api": false, "steps": null, "raises": [], "avoid": []}, "budget": {"tests": 20}, "seconds": 10.0, "memory": "auto", "keep_tests": false, "coverage": {"kinds": ["line"], "cover": ["."], "probes": "auto", "beside": "/home/ann", "package": "", "imports": [], "left_out": [], "harness": "/home/ann/machine.py"}, "python": "3.11.7", "machine": "d478c05d20c65453", "part": "step", "plan": null}','{"dimensions": [{"kind": "feature", "name": "push"}, {"kind": "feature", "name": "pop"}, {"kind": "feature", "name": "look"}]}',X'3B3000000100000900030001000500090001000C000100');
INSERT INTO "campaigns" VALUES(2,'machine.py::Stack','layered','3','finished',1.7950096679398646355e+09,5.54877011999906244454e-01,0.006169634,'{"subject": {"text": "machine.py::Stack", "api": false, "steps": null, "raises": [], "avoid": []}, "budget": {"tests": 20}, "seconds": 10.0, "memory": "auto", "keep_tests": false, "coverage": {"kinds": ["line"], "cover": ["."], "probes": "auto", "beside": "/home/ann", "package": "", "imports": [], "left_out": [], "harness": "/home/ann/machine.py"}, "python": "3.11.7", "machine": "d478c05d20c65453", "part": "step", "plan": null}','{"dimensions": [{"kind": "feature", "name": "push"}, {"kind": "feature", "name": "pop"}, {"kind": "feature", "name": "look"}]}',X'3B3000000100000900030001000500090001000C000100');
INSERT INTO "campaigns" VALUES(3,'machine.py::Stack','activation','3','finished',1.79500967137100791927e+09,2.97281416999794600997e-01,2.0209520000000003384e-03,'{"subject": {"text": "machine.py::Stack", "api": false, "steps": null, "raises": [], "avoid": []}, "budget": {"tests": 20}, "seconds": 10.0, "memory": "auto", "keep_tests": false, "coverage": {"kinds": ["line"], "cover": ["."], "probes": "auto", "beside": "/home/ann", "package": "", "imports": [], "left_out": [], "harness": "/home/ann/machine.py"}, "python": "3.11.7", "machine": "d478c05d20c65453", "part": "step", "plan": null}','{"dimensions": [{"kind": "feature", "name": "push"}, {"kind": "feature", "name": "pop"}, {"kind": "feature", "name": "look"}]}',X'3B3000000100000900030001000500090001000C000100');
INSERT INTO "campaigns" VALUES(4,'hand.py','coin','5','finished',1.0,0.0,0.0,'{}','{"dimensions": [{"kind": "feature", "name": "a"}, {"kind": "choice", "name": "level", "values": ["x", "y"]}]}',NULL);
CREATE TABLE faults (
    campaign    BIGINT NOT NULL,    -- campaigns.id
    id          TEXT NOT NULL,      -- hash of kind and signature, the same in every store
    kind        TEXT NOT NULL,      -- exception, invariant, signal, exit, timeout, memory
    signature   TEXT NOT NULL,      -- one line that is the same whenever the fault shows
    details     TEXT NOT NULL,      -- output of the shortest test: a traceback, a stack
    first_trial BIGINT NOT NULL,    -- the lowest trial that showed it
    trial       BIGINT NOT NULL,    -- the trial of the shortest test
    size        BIGINT NOT NULL,    -- steps of the shortest test
    test        TEXT,               -- the shortest test, JSON; NULL if its process died too early
    code        TEXT NOT NULL DEFAULT '', -- the shortest test as its subject printed it
    PRIMARY KEY (campaign, id)
);
INSERT INTO "faults" VALUES(1,'9f63ad53','exception','OverflowError: full [Stack.push]','Traceback (most recent call last):
  File "/home/ann/src/swarmtest/subjects/machine/subject.py", line 107, in execute
    run(
  File "<swarmtest machine.Stack>", line 20, in plain
    a0(x0)
  File "/home/ann/machine.py", line 9, in push
    if len(self.items) > 12: raise OverflowError("full")
                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^
OverflowError: full
',7,7,13,'{"format": "swarmtest machine test 1", "subject": "machine.py::Stack", "steps": [["push", [7]], ["push", [9]], ["push", [3]], ["push", [9]], ["push", [4]], ["push", [3]], ["push", [5]], ["push", [4]], ["push", [7]], ["push", [1]], ["push", [8]], ["push", [4]], ["push", [0]]]}','from machine import Stack

machine = Stack()
machine.start()
machine.push(7)
machine.push(9)
machine.push(3)
machine.push(9)
machine.push(4)
machine.push(3)
machine.push(5)
machine.push(4)
machine.push(7)
machine.push(1)
machine.push(8)
machine.push(4)
machine.push(0)
');
INSERT INTO "faults" VALUES(2,'9f63ad53','exception','OverflowError: full [Stack.push]','Traceback (most recent call last):
  File "/home/ann/src/swarmtest/subjects/machine/subject.py", line 107, in execute
    run(
  File "<swarmtest machine.Stack>", line 20, in plain
    a0(x0)
  File "/home/ann/machine.py", line 9, in push
    if len(self.items) > 12: raise OverflowError("full")
                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^
OverflowError: full
',6,6,13,'{"format": "swarmtest machine test 1", "subject": "machine.py::Stack", "steps": [["push", [4]], ["push", [5]], ["push", [1]], ["push", [1]], ["push", [8]], ["push", [7]], ["push", [8]], ["push", [7]], ["push", [1]], ["push", [6]], ["push", [3]], ["push", [3]], ["push", [0]]]}','from machine import Stack

machine = Stack()
machine.start()
machine.push(4)
machine.push(5)
machine.push(1)
machine.push(1)
machine.push(8)
machine.push(7)
machine.push(8)
machine.push(7)
machine.push(1)
machine.push(6)
machine.push(3)
machine.push(3)
machine.push(0)
');
INSERT INTO "faults" VALUES(4,'f','exit','boom','',0,0,3,'[]','');
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
INSERT INTO "meta" VALUES('created','2026-11-18T13:47:41+00:00');
INSERT INTO "meta" VALUES('created_by','swarmtest 0.1.0');
CREATE TABLE reductions (
    campaign  BIGINT NOT NULL,      -- campaigns.id
    fault     TEXT NOT NULL,        -- faults.id
    criterion TEXT NOT NULL,        -- what the reduced test had to keep; 'fault' is the signature
    trial     BIGINT NOT NULL,      -- the trial of the original test
    before    BIGINT NOT NULL,      -- parts of the original test
    size      BIGINT NOT NULL,      -- parts of the reduced test
    test      TEXT,                 -- the reduced test, JSON; NULL if the fault did not show again
    details   TEXT NOT NULL,        -- output of the reduced test: a traceback, a stack
    runs      BIGINT NOT NULL,      -- tests that the reduction ran
    seconds   REAL NOT NULL,
    complete  BOOLEAN NOT NULL,     -- true if no more parts can be removed; false if time was up
    code      TEXT NOT NULL DEFAULT '', -- the reduced test as its subject printed it
    PRIMARY KEY (campaign, fault, criterion)
);
INSERT INTO "reductions" VALUES(1,'9f63ad53','fault',7,13,13,'{"format": "swarmtest machine test 1", "subject": "machine.py::Stack", "steps": [["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]]]}','Traceback (most recent call last):
  File "/home/ann/src/swarmtest/subjects/machine/replay.py", line 153, in run
    if not self._run_step(machine, step, used):
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/ann/src/swarmtest/subjects/machine/replay.py", line 191, in _run_step
    result = getattr(machine, action.name)(*positional, **named)
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/ann/machine.py", line 9, in push
    if len(self.items) > 12: raise OverflowError("full")
                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^
OverflowError: full
',51,1.21310519799999383394e+00,1,'from machine import Stack

machine = Stack()
machine.start()
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
');
INSERT INTO "reductions" VALUES(2,'9f63ad53','fault',6,13,13,'{"format": "swarmtest machine test 1", "subject": "machine.py::Stack", "steps": [["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]], ["push", [0]]]}','Traceback (most recent call last):
  File "/home/ann/src/swarmtest/subjects/machine/replay.py", line 153, in run
    if not self._run_step(machine, step, used):
           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/ann/src/swarmtest/subjects/machine/replay.py", line 191, in _run_step
    result = getattr(machine, action.name)(*positional, **named)
             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  File "/home/ann/machine.py", line 9, in push
    if len(self.items) > 12: raise OverflowError("full")
                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^
OverflowError: full
',41,3.50699405000341357663e-01,1,'from machine import Stack

machine = Stack()
machine.start()
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
machine.push(0)
');
CREATE TABLE sources (
    id   TEXT PRIMARY KEY,          -- hash of path and text
    path TEXT NOT NULL,
    text BLOB NOT NULL              -- UTF-8, compressed with zlib
);
INSERT INTO "sources" VALUES('dbf9af68c94e0870','machine.py',X'789C6D90C16AC3300C86EF790A91930D2174EBA9818E5E761C3BEC387A30A9BC9A3AB69194F4F597B86992C17C11161FDF2FC952EC80EF863A4116705D8A24F061DAAB0B588169C5C550810B823F485C14AD37CCF025A6BDA919D34D01E363C1C47084FD2E7F2F68C79621518CDEEA06A6523BC16E82BECF193A3D02D4607C8FC7678ADA5570D07AD1A49EAFD9524106E7C01CBA486B931286CB43A517C059F018D4CA69788397D706C83846F81C90AC8FF777A248AAB4BDF7A5DE8EB60E11D3BCC9D6BD7AB70BD613FCBFC6C778FB73111C30882A19318CC9BF3D9A7BD4');
CREATE TABLE targets (
    id       INTEGER PRIMARY KEY,
    kind     TEXT NOT NULL,         -- event, line, branch, path, mutant, ...
    name     TEXT NOT NULL,         -- 'stack was full', 'shop/cart.py:12'
    source   TEXT NOT NULL,         -- sources.id, the version of the file; '' for events
    file     TEXT NOT NULL,
    line     BIGINT NOT NULL,
    function TEXT NOT NULL,
    content  TEXT NOT NULL,         -- hash of the code, which finds the target after an edit
    detail   TEXT NOT NULL          -- what the name only hashes, like the blocks of a path
);
INSERT INTO "targets" VALUES(1,'line','machine.py:1','dbf9af68c94e0870','machine.py',1,'','e2b13a7fb079cd21','');
INSERT INTO "targets" VALUES(2,'line','machine.py:3','dbf9af68c94e0870','machine.py',3,'','d18b30176ac040b4','');
INSERT INTO "targets" VALUES(3,'line','machine.py:4','dbf9af68c94e0870','machine.py',4,'','c2b18d82f251d835','');
INSERT INTO "targets" VALUES(4,'line','machine.py:5','dbf9af68c94e0870','machine.py',5,'','ba639dcc2ac9566c','');
INSERT INTO "targets" VALUES(5,'line','machine.py:6','dbf9af68c94e0870','machine.py',6,'','a6a680c90c1d7738','');
INSERT INTO "targets" VALUES(6,'line','machine.py:7','dbf9af68c94e0870','machine.py',7,'','0b1bb9b053af9f2e','');
INSERT INTO "targets" VALUES(7,'line','machine.py:8','dbf9af68c94e0870','machine.py',8,'Stack.push','dba4011ac2ddfb39','');
INSERT INTO "targets" VALUES(8,'line','machine.py:9','dbf9af68c94e0870','machine.py',9,'Stack.push','50203483a661f31b','');
INSERT INTO "targets" VALUES(9,'line','machine.py:10','dbf9af68c94e0870','machine.py',10,'','184ebbead8b2b7f2','');
INSERT INTO "targets" VALUES(10,'line','machine.py:11','dbf9af68c94e0870','machine.py',11,'','e7d72506b58bbfe9','');
INSERT INTO "targets" VALUES(11,'line','machine.py:12','dbf9af68c94e0870','machine.py',12,'Stack.pop','80199030284f477b','');
INSERT INTO "targets" VALUES(12,'line','machine.py:13','dbf9af68c94e0870','machine.py',13,'','184ebbead8b2b7f2','');
INSERT INTO "targets" VALUES(13,'line','machine.py:14','dbf9af68c94e0870','machine.py',14,'','901498aa7679f5c8','');
INSERT INTO "targets" VALUES(14,'event','seen','','',0,'','','');
CREATE TABLE tests (
    campaign BIGINT NOT NULL,       -- campaigns.id
    trial    BIGINT NOT NULL,       -- trials.trial
    test     TEXT NOT NULL,         -- JSON
    PRIMARY KEY (campaign, trial)
);
CREATE TABLE trials (
    campaign      BIGINT NOT NULL,  -- campaigns.id
    trial         BIGINT NOT NULL,  -- 0, 1, 2, ... within the campaign
    verdict       SMALLINT NOT NULL, -- 0 passed, 1 failed, 2 invalid
    fault         TEXT,             -- faults.id, if the test failed
    steps         BIGINT NOT NULL,  -- parts that were executed
    skipped       BIGINT NOT NULL,  -- parts that could not be executed
    cpu_ns        BIGINT NOT NULL,
    wall_ns       BIGINT NOT NULL,
    seed          BIGINT NOT NULL,  -- the seed of this test
    origin        TEXT NOT NULL,    -- which part of the strategy proposed it
    configuration BLOB NOT NULL,    -- Configuration.to_bytes
    propensities  BLOB NOT NULL,    -- float32: one per feature, one for all features, or none
    used          BLOB NOT NULL,    -- how often each feature appeared: records.pack_counts
    hits          BLOB,             -- targets.id that it reached, a roaring bitmap
    missing       TEXT NOT NULL DEFAULT '', -- why its coverage is not known, or ''
    PRIMARY KEY (campaign, trial)
) WITHOUT ROWID;
INSERT INTO "trials" VALUES(1,0,0,NULL,30,0,434592,425358,2496473999868931917,'',X'0004',X'0000003F',X'0100001E',X'3A3000000100000000000000100000000E00','');
INSERT INTO "trials" VALUES(1,1,0,NULL,30,0,255153,254692,3766013719050137271,'',X'0007',X'0000003F',X'010A0D07',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(1,2,0,NULL,30,0,52529,52279,3058247627178797695,'',X'0002',X'0000003F',X'01001E00',X'3A3000000100000000000000100000000B00','');
INSERT INTO "trials" VALUES(1,3,0,NULL,30,0,45208,45168,4633737700880644110,'',X'0003',X'0000003F',X'010B1300',X'3A300000010000000000020010000000070008000B00','');
INSERT INTO "trials" VALUES(1,4,0,NULL,30,0,28903,28913,206157977962190222,'',X'0004',X'0000003F',X'0100001E',X'3A3000000100000000000000100000000E00','');
INSERT INTO "trials" VALUES(1,5,0,NULL,30,0,28603,28583,1163033984071316886,'',X'0007',X'0000003F',X'01090F06',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(1,6,0,NULL,30,0,44747,44777,3983370656109535549,'',X'0006',X'0000003F',X'0100110D',X'3A3000000100000000000100100000000B000E00','');
INSERT INTO "trials" VALUES(1,7,1,'9f63ad53',13,0,1496557,15401584,654945012312761239,'',X'0001',X'0000003F',X'010D0000',X'3A30000001000000000001001000000007000800','');
INSERT INTO "trials" VALUES(1,8,1,'9f63ad53',13,0,175444,174932,8838398430362989606,'',X'0001',X'0000003F',X'010D0000',X'3A30000001000000000001001000000007000800','');
INSERT INTO "trials" VALUES(1,9,0,NULL,30,0,41422,41122,2953495095614928436,'',X'0002',X'0000003F',X'01001E00',X'3A3000000100000000000000100000000B00','');
INSERT INTO "trials" VALUES(1,10,0,NULL,30,0,26450,26430,4120220525068440210,'',X'0003',X'0000003F',X'010F0F00',X'3A300000010000000000020010000000070008000B00','');
INSERT INTO "trials" VALUES(1,11,0,NULL,30,0,24697,24787,6757278995132305813,'',X'0003',X'0000003F',X'01081600',X'3A300000010000000000020010000000070008000B00','');
INSERT INTO "trials" VALUES(1,12,1,'9f63ad53',25,0,149324,149504,2014255135674378807,'',X'0005',X'0000003F',X'010D000C',X'3A300000010000000000020010000000070008000E00','');
INSERT INTO "trials" VALUES(1,13,0,NULL,30,0,29053,28804,6268254255583374704,'',X'0004',X'0000003F',X'0100001E',X'3A3000000100000000000000100000000E00','');
INSERT INTO "trials" VALUES(1,14,0,NULL,30,0,82824,82103,6404508127963168257,'',X'0007',X'0000003F',X'01080B0B',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(1,15,1,'9f63ad53',22,0,217767,217938,13331294707034824,'',X'0005',X'0000003F',X'010D0009',X'3A300000010000000000020010000000070008000E00','');
INSERT INTO "trials" VALUES(1,16,0,NULL,30,0,38318,38107,591762876703321481,'',X'0004',X'0000003F',X'0100001E',X'3A3000000100000000000000100000000E00','');
INSERT INTO "trials" VALUES(1,17,0,NULL,30,0,53510,52879,8178957494289124057,'',X'0007',X'0000003F',X'010A0C08',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(1,18,0,NULL,30,0,34051,34001,9221496350842337834,'',X'0004',X'0000003F',X'0100001E',X'3A3000000100000000000000100000000E00','');
INSERT INTO "trials" VALUES(1,19,0,NULL,30,0,50947,50276,5717197938620951917,'',X'0006',X'0000003F',X'01000A14',X'3A3000000100000000000100100000000B000E00','');
INSERT INTO "trials" VALUES(2,0,0,NULL,30,0,796485,786751,2496473999868931917,'power',X'0534152B35FFFF',X'',X'01010716',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,1,0,NULL,30,0,404077,403846,3766013719050137271,'groups',X'0007',X'9A99793F',X'010A0D07',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,2,0,NULL,30,0,105278,105098,3058247627178797695,'dominant',X'0004',X'ABAAAA3EABAAAA3ECDCCCC3E',X'0100001E',X'3A3000000100000000000000100000000E00','');
INSERT INTO "trials" VALUES(2,3,0,NULL,30,0,66089,66019,4633737700880644110,'dominant',X'05FFFF406D406D',X'9A99793F',X'010C0B07',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,4,0,NULL,30,0,62173,62193,206157977962190222,'groups',X'05FFFFFFFF0040',X'9A99793F',X'010E0C04',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,5,0,NULL,30,0,70997,70937,1163033984071316886,'biased-coin',X'0003',X'ABAAAA3EABAAAA3E0000403F',X'01100E00',X'3A300000010000000000020010000000070008000B00','');
INSERT INTO "trials" VALUES(2,6,1,'9f63ad53',13,0,1406886,19240515,3983370656109535549,'biased-coin',X'0001',X'CDCCCC3EABAAAA3EABAAAA3E',X'010D0000',X'3A30000001000000000001001000000007000800','');
INSERT INTO "trials" VALUES(2,7,0,NULL,30,0,1567833,1568053,654945012312761239,'equal',X'0007',X'0000803F',X'01070A0D',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,8,0,NULL,30,0,127081,126660,8838398430362989606,'beta',X'05FFFFCEFD80E9',X'',X'0106090F',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,9,0,NULL,30,0,80821,80751,2953495095614928436,'groups',X'05AAAAFFFFAAAA',X'9A99793F',X'01090B0A',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,10,0,NULL,30,0,94232,94272,4120220525068440210,'coin',X'0006',X'0000003FB76DDB3EB76DDB3E',X'01000D11',X'3A3000000100000000000100100000000B000E00','');
INSERT INTO "trials" VALUES(2,11,0,NULL,30,0,48813,48643,6757278995132305813,'coin',X'0003',X'B76DDB3EB76DDB3E0000003F',X'01081600',X'3A300000010000000000020010000000070008000B00','');
INSERT INTO "trials" VALUES(2,12,0,NULL,30,0,41372,41332,2014255135674378807,'power',X'05FFFF48ED06F4',X'',X'010A0C08',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,13,1,'9f63ad53',25,0,385248,385749,6268254255583374704,'beta',X'0545CC0000FFFF',X'',X'010D000C',X'3A300000010000000000020010000000070008000E00','');
INSERT INTO "trials" VALUES(2,14,0,NULL,30,0,173741,172829,6404508127963168257,'groups',X'0007',X'9A99793F',X'01080B0B',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,15,1,'9f63ad53',21,0,294983,295183,13331294707034824,'power',X'05FFFFC138F562',X'',X'010E0106',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(2,16,0,NULL,30,0,68302,68052,591762876703321481,'coin',X'0004',X'B76DDB3EB76DDB3E2549123F',X'0100001E',X'3A3000000100000000000000100000000E00','');
INSERT INTO "trials" VALUES(2,17,0,NULL,30,0,106960,106229,8178957494289124057,'coin',X'0006',X'0000003FB76DDB3EB76DDB3E',X'01000C12',X'3A3000000100000000000100100000000B000E00','');
INSERT INTO "trials" VALUES(2,18,0,NULL,30,0,48613,48543,9221496350842337834,'coin',X'0004',X'B76DDB3EB76DDB3E2549123F',X'0100001E',X'3A3000000100000000000000100000000E00','');
INSERT INTO "trials" VALUES(2,19,1,'9f63ad53',13,0,219650,243856,5717197938620951917,'coin',X'0001',X'2549123FB76DDB3EB76DDB3E',X'010D0000',X'3A30000001000000000001001000000007000800','');
INSERT INTO "trials" VALUES(3,0,0,NULL,17,13,664858,655744,2496473999868931917,'',X'01C8BC55B20A1D',X'0000803F',X'01070901',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,1,0,NULL,4,26,288703,289845,3766013719050137271,'',X'01484A4E1BB21E',X'0000803F',X'01020101',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,2,0,NULL,17,13,55513,53881,3058247627178797695,'',X'01849C4E238BC4',X'0000803F',X'01060209',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,3,0,NULL,15,15,38017,37987,4633737700880644110,'',X'018646D25943E6',X'0000803F',X'0101040A',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,4,0,NULL,19,11,37006,36985,206157977962190222,'',X'018EADBADD974C',X'0000803F',X'01050C02',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,5,0,NULL,7,23,96645,4905833,1163033984071316886,'',X'01E905842E2238',X'0000803F',X'01000304',X'3A3000000100000000000100100000000B000E00','');
INSERT INTO "trials" VALUES(3,6,0,NULL,13,17,101762,101442,3983370656109535549,'',X'012FCD0E7CF503',X'0000803F',X'010A0300',X'3A300000010000000000020010000000070008000B00','');
INSERT INTO "trials" VALUES(3,7,0,NULL,18,12,66951,66971,654945012312761239,'',X'010703148AB3D5',X'0000803F',X'0101040D',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,8,0,NULL,23,7,85659,162845,8838398430362989606,'',X'0126ADD99136D6',X'0000803F',X'01060809',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,9,0,NULL,22,8,45378,45308,2953495095614928436,'',X'01B6F70117F2E4',X'0000803F',X'010D0108',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,10,0,NULL,12,18,57136,57256,4120220525068440210,'',X'01FB20661B3EFF',X'0000803F',X'0100000C',X'3A3000000100000000000000100000000E00','');
INSERT INTO "trials" VALUES(3,11,0,NULL,16,14,37076,37065,6757278995132305813,'',X'0147E0FD92588F',X'0000803F',X'010A0303',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,12,0,NULL,14,16,26700,26550,2014255135674378807,'',X'01AF2B9BF30558',X'0000803F',X'01020705',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,13,0,NULL,15,15,27611,27712,6268254255583374704,'',X'01DFB0C7A8F179',X'0000803F',X'01040605',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,14,0,NULL,9,21,130936,130025,6404508127963168257,'',X'01B51EA37BEE52',X'0000803F',X'01000207',X'3A3000000100000000000100100000000B000E00','');
INSERT INTO "trials" VALUES(3,15,0,NULL,16,14,96044,108293,13331294707034824,'',X'014265E2BFFF72',X'0000803F',X'01080602',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,16,0,NULL,24,6,38277,36534,591762876703321481,'',X'013ED218DEB577',X'0000803F',X'01080B05',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,17,0,NULL,12,18,40250,40140,8178957494289124057,'',X'014D29D8516C69',X'0000803F',X'01010506',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,18,0,NULL,21,9,33801,33691,9221496350842337834,'',X'01CADE7CD39BB6',X'0000803F',X'010C0405',X'3A300000010000000000030010000000070008000B000E00','');
INSERT INTO "trials" VALUES(3,19,0,NULL,15,15,52629,52298,5717197938620951917,'',X'01D2F892595C09',X'0000803F',X'010A0500',X'3A300000010000000000020010000000070008000B00','');
INSERT INTO "trials" VALUES(4,0,1,'f',3,1,7,-8,-5,'o',X'02015B2278225D',X'0000003F',X'042C010000',X'3B30000001000008000200010007000C000000','');
INSERT INTO "trials" VALUES(4,5,0,NULL,0,0,0,0,9223372036854775807,'',X'6F6464',X'000000',X'',NULL,'it died');
INSERT INTO "trials" VALUES(4,9,2,NULL,0,0,0,0,1,'',X'03FF0F5B2279225D',X'',X'01',X'3A30000000000000','why');
CREATE TABLE workers (
    campaign  BIGINT NOT NULL,      -- campaigns.id
    name      TEXT NOT NULL,        -- unique within the campaign
    host      TEXT NOT NULL,
    pid       BIGINT NOT NULL,
    started   REAL NOT NULL,        -- seconds since 1970
    last_seen REAL NOT NULL,        -- seconds since 1970
    tests     BIGINT NOT NULL,      -- tests that it has run so far
    state     TEXT NOT NULL,        -- working, idle, done, lost
    PRIMARY KEY (campaign, name)
) WITHOUT ROWID;
CREATE INDEX trials_by_fault ON trials (campaign, fault, trial) WHERE fault IS NOT NULL;
CREATE UNIQUE INDEX targets_by_name ON targets (kind, name, source);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('campaigns',4);
COMMIT;
