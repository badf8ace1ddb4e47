"""Draw bugs of each kind that are neither trivial nor out of reach.

    python benchmarks/bug_families/calibration.py bugs | fresh

A bug is kept if the best of the single strategies finds it in at least one of 1,500 tests, and in
at most one of three. `layered` has no say in that. The files, `bugs.json` and `fresh_bugs.json`,
are committed, and are not drawn again when strategies change.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from harness import progress

from bug_families.fresh_kinds import FRESH
from bug_families.kinds import BUGS_FILE, FRESH_FILE, JUDGING, TUNING, Bug, draw_bug
from bug_families.simulation import by_world, odds_of
from swarmtest.strategies import parse_strategy

SINGLES = (
    *("all-on", "coin", "coin:p=random", "sized"),
    *("activation", "activation:renormalise=yes"),
)
"""The strategies that `layered` is compared with."""
BUGS_PER_KIND = 12
ROUND, MOST_ROUNDS = 60, 6
"""How many bugs of each kind to draw at once, and how often if too few can be used."""
RAREST, MOST_COMMON = 1 / 1500, 1 / 3


def usable(candidates: Sequence[Bug]) -> list[Bug]:
    """Return the bugs that the best single strategy finds neither too rarely nor too often."""
    best: dict[str, float] = {}
    for (features, steps), bugs in by_world(candidates).items():
        progress(f"{features} features, {steps} steps: {len(bugs)} bugs")
        tests = max(1024, min(6000, 6000 * 200 // steps))
        rates = [odds_of(parse_strategy(text), bugs, tests).overall for text in SINGLES]
        best |= zip(map(str, bugs), np.max(rates, axis=0), strict=True)
    return [bug for bug in candidates if RAREST <= best[str(bug)] <= MOST_COMMON]


def main() -> None:
    which = {"bugs": (TUNING + JUDGING, BUGS_FILE), "fresh": (FRESH, FRESH_FILE)}
    kinds, file = which[sys.argv[1]]
    chosen: dict[str, dict[str, Bug]] = {kind: {} for kind in kinds}
    for start in range(0, ROUND * MOST_ROUNDS, ROUND):
        missing = [kind for kind, bugs in chosen.items() if len(bugs) < BUGS_PER_KIND]
        seeds = range(start, start + ROUND)
        for bug in usable([draw_bug(kind, seed) for kind in missing for seed in seeds]):
            chosen[bug.kind][str(bug)] = bug
    for kind, bugs in chosen.items():
        progress(f"{kind}: {len(bugs)} bugs can be used")
    stored = {kind: [*bugs.values()][:BUGS_PER_KIND] for kind, bugs in chosen.items()}
    lines = [
        f'  "{kind}": [\n' + ",\n".join(f"    {_entry(bug)}" for bug in of) + "\n  ]"
        for kind, of in stored.items()
    ]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _entry(bug: Bug) -> str:
    return json.dumps([bug.features, bug.steps, bug.parameters])


if __name__ == "__main__":
    main()
