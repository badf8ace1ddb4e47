"""How many rows our covering arrays have, beside the best known and beside other tools.

    python benchmarks/covering.py [--quick] [--no-peers]

Every array, ours and the peers', goes through the independent checker. The full run checks 171
features at t = 5 (1.2 billion sets of features) in several minutes; --quick leaves out 171 features
from t = 4 on, and 43 at t = 6. The last line is one JSON object.

Best known: Colbourn's covering array tables. NIST: the arrays that NIST publishes. Only the
numbers of rows are taken from there.
"""

import argparse
import importlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np
from harness import progress
from numpy.typing import NDArray

from swarmtest.strategies.covering.arrays import covering_array
from swarmtest.strategies.covering.check import count_uncovered, is_covering

Array = NDArray[np.int8]

# features: for t = 2 to 6, best known and NIST
_PUBLISHED_BY_FEATURES: dict[int, list[tuple[int, int | None]]] = {
    7: [(6, 6), (12, 16), (24, 32), (42, 57), (64, 79)],
    23: [(8, 10), (20, 26), (46, 70), (114, 168), (350, 397)],
    43: [(9, 11), (25, 33), (67, 91), (136, 240), (553, 590)],
    171: [(11, 15), (42, 50), (134, 148), (327, 400), (720, None)],
}
PUBLISHED = {
    (features, t): published
    for features, row in _PUBLISHED_BY_FEATURES.items()
    for t, published in enumerate(row, start=2)
}
# 171 features have 32 billion sets of 6, too many to look at all of them.
SAMPLED = {(171, 6): 300_000}
# Beyond so many sets of t features a peer needs minutes.
PEER_SETS_AT_MOST = {"pypict": 40_000, "covertable": 2_000, "allpairspy": 9_000}


@dataclass
class Outcome:
    rows: int | None
    seconds: float = 0.0
    missing: int = 0
    sampled: bool = False

    @property
    def verified(self) -> bool:
        return self.rows is not None and self.missing == 0

    def __str__(self) -> str:
        if self.rows is None:
            return "-"
        flaw = f" misses {self.missing}!" if self.missing else ""
        return f"{self.rows} ({self.seconds:.2f} s){flaw}"


def by_pypict(features: int, t: int) -> Array:
    cmd = importlib.import_module("pypict.cmd")
    model = "\n".join(f"f{i}: 0, 1" for i in range(features))
    header, rows = cmd.pict(model, order=t)
    places = [int(name[1:]) for name in header]
    array = np.zeros((len(rows), features), dtype=np.int8)
    array[:, places] = np.array(rows, dtype=np.int8)
    return array


def by_covertable(features: int, t: int) -> Array:
    covertable = importlib.import_module("covertable")
    rows = covertable.make([[0, 1]] * features, strength=t)
    return np.array([list(row) for row in rows], dtype=np.int8)


def by_allpairspy(features: int, t: int) -> Array:
    allpairspy = importlib.import_module("allpairspy")
    rows = allpairspy.AllPairs([[0, 1]] * features, n=t)
    return np.array([list(row) for row in rows], dtype=np.int8)


PEERS: dict[str, Callable[[int, int], Array]] = {
    "pypict": by_pypict,
    "covertable": by_covertable,
    "allpairspy": by_allpairspy,
}


def installed(name: str) -> bool:
    try:
        importlib.import_module(name)
    except ImportError:
        return False
    return True


def measure(build: Callable[[int, int], Array], features: int, t: int) -> Outcome:
    started = time.process_time()
    array = build(features, t)
    outcome = Outcome(len(array), time.process_time() - started)
    if sample := SAMPLED.get((features, t)):
        outcome.sampled = True
        outcome.missing = int(not is_covering(array, t, sample=sample))
    else:
        outcome.missing = count_uncovered(array, t)
    return outcome


def measure_peer(name: str, features: int, t: int) -> Outcome:
    """A peer's array, unless it would take it minutes."""
    if comb(features, t) > PEER_SETS_AT_MOST[name]:
        return Outcome(None)
    return measure(PEERS[name], features, t)


def cells(quick: bool) -> list[tuple[int, int]]:
    def wanted(features: int, t: int) -> bool:
        return not quick or ((features < 171 if t >= 4 else True) and (features <= 23 or t <= 5))

    return [cell for cell in PUBLISHED if wanted(*cell)]


def worst_ratio(
    ours: dict[tuple[int, int], Outcome], published: Callable[[tuple[int, int]], int | None]
) -> float | None:
    """The largest number of rows over the published one, in the grid t = 2 to 5."""
    ratios = [
        outcome.rows / reference
        for cell, outcome in ours.items()
        if outcome.verified and outcome.rows and cell[1] <= 5 and (reference := published(cell))
    ]
    return round(max(ratios), 3) if ratios else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="under a minute")
    parser.add_argument("--no-peers", action="store_true")
    given = parser.parse_args()
    peers = [] if given.no_peers else [name for name in PEERS if installed(name)]
    absent = [name for name in PEERS if name not in peers]
    print(
        f"{'features':>8} {'t':>2} {'best':>5} {'NIST':>5}  {'ours (CPU)':<16}"
        + "".join(f" {name:<26}" for name in peers)
    )
    ours: dict[tuple[int, int], Outcome] = {}
    beside: dict[str, dict[str, Outcome]] = {name: {} for name in peers}
    for cell in cells(given.quick):
        features, t = cell
        progress(f"{features} features, t = {t}")
        best, nist = PUBLISHED[cell]
        ours[cell] = measure(covering_array, features, t)
        mark = "~" if ours[cell].sampled else ""
        line = f"{features:>8} {t:>2} {best:>5} {nist or '-':>5}  {f'{ours[cell]}{mark}':<16}"
        for name in peers:
            beside[name][f"{features},{t}"] = outcome = measure_peer(name, features, t)
            line += f" {outcome!s:<26}"
        print(line.rstrip(), flush=True)
    print("~ checked on a random sample; - not run (a peer would take too long)")
    if absent:
        why = "left out" if given.no_peers else f"not installed: pip install {' '.join(absent)}"
        print(f"not compared: {', '.join(absent)} ({why})")
    print(json.dumps(figures(given.quick, ours, beside, absent)))


def figures(
    quick: bool,
    ours: dict[tuple[int, int], Outcome],
    beside: dict[str, dict[str, Outcome]],
    absent: list[str],
) -> dict[str, object]:
    rows_of = {f"{features},{t}": outcome.rows for (features, t), outcome in ours.items()}
    return {
        "worst_vs_best_known": worst_ratio(ours, lambda cell: PUBLISHED[cell][0]),
        "worst_vs_nist": worst_ratio(ours, lambda cell: PUBLISHED[cell][1]),
        "rows_23_5": rows_of.get("23,5"),
        "all_verified": all(outcome.verified for outcome in ours.values()),
        "verified_by_sample": [f"{f},{t}" for (f, t), o in ours.items() if o.sampled],
        "left_out": [f"{f},{t}" for f, t in PUBLISHED if (f, t) not in ours],
        "quick": quick,
        "rows": rows_of,
        "cpu_seconds": round(sum(outcome.seconds for outcome in ours.values()), 2),
        "peers": {
            name: {
                cell: {"rows": outcome.rows, "missing": outcome.missing}
                for cell, outcome in outcomes.items()
                if outcome.rows is not None
            }
            for name, outcomes in beside.items()
        },
        "peers_absent": absent,
    }


if __name__ == "__main__":
    main()
