"""Records that tests share, and real processes that use a store."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyroaring import BitMap

import swarmtest.core.errors
from swarmtest.core.dimensions import Choice, Feature, Flag
from swarmtest.core.space import Space
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, FaultRecord, TrialRecord

SPACE = Space([Feature("push"), Feature("pop"), Flag("fsync"), Choice("level", ("-O0", "-O2"))])
CAMPAIGN = CampaignRecord(
    "examples/stack.py", "coin", 7, SPACE.to_json(), {"p": 0.5, "budget": {"tests": 100}}
)
BITS = SPACE.configuration({"push": 1, "level": "-O2"}).to_bytes()


def trial(number: int, **values: Any) -> TrialRecord:
    """A trial that differs from others in more than its number."""
    record = TrialRecord(number, BITS, seed=number * 31, steps=20 + number % 5, cpu_ns=number * 7)
    return record._replace(**values)


def trials(start: int, stop: int) -> list[TrialRecord]:
    return [trial(number) for number in range(start, stop)]


def fault(name: str, number: int, size: int = 9, test: str | None = "[]") -> FaultRecord:
    """What one trial says about a fault."""
    details = f"Traceback of trial {number}"
    return FaultRecord(name, "exception", f"Error: {name}", details, number, number, size, test)


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another Python process that can import swarmtest and these examples."""
    here, source = Path(__file__).parent, Path(swarmtest.core.errors.__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(here)])},
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Let a process go on to its end, and give what it printed."""
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return printed


def hash_by_records(store: Store, campaign: int) -> str:
    """The hash of a campaign as versions before blocks computed it, a trial at a time."""
    sections = [hashlib.sha256() for _ in range(8)]
    names = store.targets()

    def add(section: int, values: Any) -> None:
        sections[section].update(json.dumps(values, sort_keys=True).encode() + b"\n")

    def sum_of(hits: bytes | None) -> bytes:
        if hits is None:
            return b""
        digests = [
            hashlib.sha256(json.dumps(names[id]).encode()).digest()
            for id in BitMap.deserialize(hits)
        ]
        sums = [sum(int.from_bytes(d[i : i + 8], "little") for d in digests) for i in (0, 8)]
        return b"".join((total % 2**64).to_bytes(8, "little") for total in sums)

    record = store.campaign(campaign)
    values = [record.subject, record.strategy, str(record.seed), record.status, record.created]
    values += [record.wall_seconds, record.cpu_seconds, record.space, record.options]
    add(0, values)
    sections[0].update(sum_of(record.outside))
    for source in store.sources(campaign):
        add(1, [source.path, source.text, source.place])
    for target in sorted(store.watched_targets(campaign).values()):
        add(2, target)
    for each in store.trials(campaign):
        packed = (each.configuration, each.propensities, each.used)
        small = each._replace(configuration=b"", propensities=b"", used=b"", hits=None)
        numbers = [value for value in small if not isinstance(value, bytes)]
        add(3, [*numbers, each.hits is None, *map(len, packed)])
        sections[3].update(b"".join([*packed, sum_of(each.hits)]))
    for found in sorted(store.faults(campaign)):
        add(4, found[: found._fields.index("code")])
    for test in store.tests(campaign):
        add(5, test)
    for reduction in store.reductions(campaign):
        add(6, reduction)
    for worker in store.workers(campaign):
        add(7, worker)
    return hashlib.sha256(b"".join(each.digest() for each in sections)).hexdigest()
