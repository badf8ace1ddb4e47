"""One measurement of `benchmarks/scale.py`, in a process of its own: CPU seconds and peak memory.

    python benchmarks/scale_measure.py counting TESTS FEATURES TARGETS HITS LIKES
    python benchmarks/scale_measure.py store    TESTS FEATURES TARGETS HITS LIKES

`counting` is counts, intervals, roles, exact p-values and their correction, of hits that are made
by another process, so that their making needs no memory of this one: those of 4,000 tests, over and
over, so that a million can be counted in the time that it takes to count them. `store` is the same,
and what else a person asks, of a real SQLite file.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from harness import cpu_seconds
from scale_data import Made

from swarmtest import open_store
from swarmtest.analysis.hit_blocks import HitBlock
from swarmtest.analysis.propensities import propensities_of
from swarmtest.core.targets import Target
from swarmtest.growth.growth import measure_growth
from swarmtest.roles.counting import RoleCounter
from swarmtest.roles.study import Study
from swarmtest.roles.triage import triage
from swarmtest.store.blocks.hits import BlockHits, invert_hits

_OVER_AND_OVER = 4_000


def megabytes() -> int:
    """The most that this process has had in memory so far.

    Linux says it of the program; `getrusage` includes the process that it was forked from.
    """
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return round(int(peak.split()[1]) / 1024)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def write_hits(made: Made, path: str) -> None:
    """Write the hits of 4,000 tests, by target."""
    some = Made(_OVER_AND_OVER, made.features, made.targets, made.hits, made.likes)
    hits = invert_hits(list(itertools.islice(some.rows(), made.tests)))
    columns = {name: getattr(hits, name) for name in ("targets", "classes", "starts", "positions")}
    np.savez(path, size=hits.size, **columns)


def made_hits(made: Made) -> BlockHits:
    """Return the hits of 4,000 tests, made by another process."""
    with tempfile.TemporaryDirectory() as place:
        path = str(Path(place, "hits.npz"))
        process = multiprocessing.get_context("spawn").Process(target=write_hits, args=(made, path))
        process.start()
        process.join()
        with np.load(path) as columns:
            names = ("targets", "classes", "starts", "positions")
            return BlockHits(int(columns["size"]), *(columns[name] for name in names))


def counting(made: Made) -> dict[str, float]:
    hits = made_hits(made)
    evidence = made.evidence()
    count = len(made.starts) - 1
    targets = tuple(Target("line", str(i)) for i in range(count))
    before = megabytes()
    start = cpu_seconds()

    def blocks(part: slice) -> Iterator[HitBlock]:
        inside = slice(*np.searchsorted(hits.targets, [part.start, part.stop]))
        rows, classes = hits.targets[inside] - part.start, hits.classes[inside]
        for first in range(0, made.tests, hits.size):
            last = min(first + hits.size, made.tests)
            yield HitBlock(first, last, hits.starts, hits.positions, rows, classes)

    counter = RoleCounter(evidence, propensities_of(evidence), 0.95)
    table = counter.table(targets, *counter.cells(blocks, count))
    counted = cpu_seconds() - start
    table.rows.discoveries(0.05)
    return {
        "distinct": count,
        "hits": int(table.hits.sum()),
        "count_seconds": round(counted, 2),
        "seconds": round(cpu_seconds() - start, 2),
        "megabytes_before": before,
        "megabytes": megabytes(),
    }


def store(made: Made) -> dict[str, float]:
    figures: dict[str, float] = {}

    def timed(name: str, run: Callable[[], object]) -> None:
        start = cpu_seconds()
        run()
        figures[f"{name}_seconds"] = round(cpu_seconds() - start, 2)

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "made.db"
        with open_store(str(path)) as opened:
            timed("write", lambda: made.record_into(opened))
        figures["file_megabytes"] = round(path.stat().st_size / 2**20)
        with open_store(str(path)) as opened:
            study: list[Study] = []
            timed("read", lambda: study.append(Study(opened, [1])))
            timed("roles", lambda: study[0].table("line").rows.discoveries(0.05))
            timed("triage", lambda: triage(study[0]))
            figures["megabytes"] = megabytes()
            study.clear()
            timed("growth", lambda: measure_growth(opened, [1]))
            figures["megabytes_growth"] = megabytes()
    return figures


def main() -> None:
    what, *numbers, likes = sys.argv[1:]
    tests, features, targets, hits = map(int, numbers)
    made = Made(tests, features, targets, hits, float(likes))
    print(json.dumps({"counting": counting, "store": store}[what](made)))


if __name__ == "__main__":
    main()
