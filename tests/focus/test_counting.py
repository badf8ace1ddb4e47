"""Hits of focused campaigns, counted by column, are those that counting test by test gives."""

from __future__ import annotations

import random
from collections import defaultdict

from pyroaring import BitMap
from store_examples import CAMPAIGN, trial

from swarmtest.core.targets import Source, Target, pack_hits
from swarmtest.focus.measurement import count_hits
from swarmtest.store import open_store

WAYS = ("directed", "undirected", "default")


def test_counts_by_column_are_those_of_each_test() -> None:
    rng = random.Random(3)
    source = Source("a.py", "x\n" * 30)
    lines = [source.target("line", str(n), n)._replace(function=f"f{n // 10}") for n in range(30)]
    names = [*map(str, lines[:12]), "event:full", "event:never", "fault:f", "fault:g"]
    with open_store(":memory:") as store:
        number = store.add_campaign(CAMPAIGN)
        ids = store.target_ids([*lines, Target("event", "full")])
        records = []
        for n in range(700):
            fault = rng.choice((None, None, "f", "g"))
            hits = pack_hits(rng.sample(ids, rng.randrange(6))) if rng.random() < 0.9 else None
            records.append(
                trial(
                    n,
                    configuration=rng.choice((b"\0\1", b"\0\2", b"\0\3")),
                    origin=rng.choice(("directed f1", "undirected", "default", "")),
                    verdict=int(fault is not None),
                    fault=fault,
                    hits=hits,
                    missing=rng.choice(("", "", "", "its process died")),
                    cpu_ns=rng.randrange(10**9),
                )
            )
        for start in range(0, 700, 150):
            store.record(number, records[start : start + 150])
        counted = count_hits(store, number, names)
    tests, cpu = dict.fromkeys(WAYS, 0), dict.fromkeys(WAYS, 0)
    faults: dict[str, dict[str, int]] = {}
    hits_of: dict[str, dict[str, int]] = {name: dict.fromkeys(WAYS, 0) for name in names}
    configurations, ways = defaultdict[str, set[bytes]](set), defaultdict[str, set[bytes]](set)
    function = {
        str(line): BitMap(ids[n // 10 * 10 : n // 10 * 10 + 10]) for n, line in enumerate(lines)
    }
    by_id = dict(zip(ids, [*map(str, lines), "event:full"], strict=True))
    for record in records:
        if record.missing:
            continue
        way = record.origin if record.origin in WAYS[1:] else "directed"
        tests[way] += 1
        cpu[way] += record.cpu_ns
        hit = BitMap.deserialize(record.hits) if record.hits else BitMap()
        shown = [by_id[id] for id in hit if by_id[id] in hits_of]
        if record.fault:
            faults.setdefault(record.fault, dict.fromkeys(WAYS, 0))[way] += 1
            shown.append(f"fault:{record.fault}")
        for name in shown:
            hits_of[name][way] += 1
            if way == "directed":
                configurations[name].add(record.configuration)
                ways[name].add((hit & function.get(name, BitMap())).serialize())
    assert counted.tests == tests
    assert {way: round(1e9 * seconds) for way, seconds in counted.cpu.items()} == cpu
    assert counted.faults == faults
    assert len(counted.configurations) == 3
    for name, seen in counted.targets.items():
        assert seen.hits == hits_of[name]
        assert seen.configurations == configurations[name]
        assert len(seen.ways) == len(ways[name])
