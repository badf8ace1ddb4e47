"""Runs one reducer on one input, in the environment of that reducer: ``run_peer.py PEER ROW SEED``.

Prints one JSON object: how often it asked, what it left (parts and bytes), CPU seconds. What is
asked twice counts twice, unless the reducer keeps its own answers. After `LIMIT` calls it is
stopped; one that starts a process for each call hears after `SLOW_LIMIT` that nothing is
interesting any more.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from inputs import ROWS, SLOW_LIMIT, Input, Parts

LIMIT = 4_000
HERE = Path(__file__).resolve().parent


class TooMany(BaseException):
    """The reducer has asked more often than anyone would wait for."""


class Counted:
    """The criterion of an input, counting; remembers the smallest that was interesting."""

    def __init__(self, given: Input) -> None:
        self._holds = given.holds
        self.calls = 0
        self.stopped = False
        self.smallest: Parts = given.parts

    def __call__(self, kept: Parts) -> bool:
        if self.calls >= LIMIT:
            raise TooMany
        self.calls += 1
        holds = self._holds(kept)
        if holds and len(kept) < len(self.smallest):
            self.smallest = tuple(kept)
        return holds


def ddmin(given: Input, holds: Counted) -> None:
    """The textbook's: subsets, then complements, then twice the granularity; with a cache."""
    known: dict[tuple[bytes, ...], bool] = {}

    def interesting(kept: tuple[bytes, ...]) -> bool:
        if kept not in known:
            known[kept] = holds(kept)
        return known[kept]

    kept, pieces = given.parts, 2
    interesting(kept)
    while len(kept) >= 2:
        bounds = [len(kept) * i // pieces for i in range(pieces + 1)]
        subsets = [kept[a:b] for a, b in pairwise(bounds)]
        others = [kept[:a] + kept[b:] for a, b in pairwise(bounds)]
        if subset := next(filter(interesting, subsets), None):
            kept, pieces = subset, 2
        elif complement := next(filter(interesting, others), None):
            kept, pieces = complement, max(pieces - 1, 2)
        elif pieces < len(kept):
            pieces = min(2 * pieces, len(kept))
        else:
            return


def picire(given: Input, holds: Counted) -> None:
    """Complements only, from the back, balanced, with its cache: its best setting here."""
    from picire import DD, ConfigCache, Outcome
    from picire.config_iterators import backward, skip
    from picire.config_splitters import BalancedSplit

    def outcome(kept: Sequence[int], _: object) -> Outcome:
        return Outcome.FAIL if holds([given.parts[i] for i in kept]) else Outcome.PASS

    reducer = DD(
        outcome,
        split=BalancedSplit(n=2),
        cache=ConfigCache(),
        subset_iterator=skip,
        complement_iterator=backward,
    )
    reducer(list(range(len(given.parts))))


def lithium(given: Input, holds: Counted) -> None:
    """Its default strategy, which asked least."""
    from lithium.strategies import Minimize
    from lithium.testcases import TestcaseLine

    whole = TestcaseLine()
    whole.parts = list(given.parts)
    whole.reducible = [True] * len(whole.parts)
    whole.before = whole.after = b""
    holds(whole.parts)
    walk = Minimize().reduce(whole)
    for attempt in walk:
        walk.feedback(holds(attempt.parts))


def hypothesis(given: Input, holds: Counted) -> None:
    """Its shrinker on a list of the parts' numbers, which it is given as a saved example."""
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis import strategies as st
    from hypothesis.database import InMemoryExampleDatabase, choices_to_bytes

    count = len(given.parts)
    saved = InMemoryExampleDatabase()
    choices = [value for i in range(count) for value in (True, i)]
    saved.save(b"it.secondary", choices_to_bytes([*choices, False]))
    chosen = settings(
        database=saved,
        phases=[Phase.reuse, Phase.shrink],
        max_examples=LIMIT,
        suppress_health_check=list(HealthCheck),
        deadline=None,
    )
    find(
        st.lists(st.integers(0, count - 1)),
        lambda numbers: holds([given.parts[i] for i in numbers]),
        settings=chosen,
        database_key=b"it",
    )


def external(command: Callable[[Path, Path], list[str]], in_place: bool) -> Callable[..., None]:
    """A program that takes a file and a test: each call is a line in a file of ours."""

    def run(given: Input, holds: Counted) -> None:
        with tempfile.TemporaryDirectory() as temporary:
            work = Path(temporary)
            file, calls, test = work / "test.c", work / "calls", work / "test.sh"
            file.write_bytes(b"".join(given.parts))
            # -S: without the site's packages a question takes half as long.
            asked = [sys.executable, "-S", str(HERE / "ask.py"), *sys.argv[2:4], str(calls)]
            where = "test.c" if in_place else "-"
            test.write_text(f"#!/bin/sh\nexec {' '.join(map(_quoted, asked))} {where}\n")
            test.chmod(0o755)
            subprocess.run(command(test, file), cwd=work, capture_output=True, timeout=3_600)
            left = file if in_place else work / "left"
            holds.calls = calls.read_bytes().count(b"\n")
            holds.stopped = holds.calls > SLOW_LIMIT
            content = left.read_bytes()
            by_line = given.parts[0].endswith(b"\n")
            holds.smallest = (
                content.splitlines(keepends=True)
                if by_line
                else [content[i : i + 1] for i in range(len(content))]
            )

    return run


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _shrinkray(test: Path, file: Path) -> list[str]:
    program = str(Path(sys.executable).parent / "shrinkray")
    return [
        program,
        "--parallelism",
        "1",
        "--target",
        str(file.parent / "left"),
        str(test),
        str(file),
    ]


def _cvise(test: Path, file: Path) -> list[str]:
    is_c = [] if "C program" in sys.argv[2] else ["--not-c"]
    return ["cvise", "--n", "1", "--no-cache", *is_c, str(test), file.name]


PEERS: dict[str, Callable[[Input, Counted], None]] = {
    "ddmin": ddmin,
    "picire": picire,
    "lithium": lithium,
    "hypothesis": hypothesis,
    "shrinkray": external(_shrinkray, in_place=False),
    "cvise": external(_cvise, in_place=True),
}


def main() -> None:
    peer, row, seed = sys.argv[1:4]
    given = ROWS[row](int(seed))
    holds = Counted(given)
    try:
        PEERS[peer](given, holds)
    except TooMany:
        holds.stopped = True
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = {
        "calls": holds.calls,
        "size": len(holds.smallest),
        "bytes": sum(map(len, holds.smallest)),
        "cpu": time.process_time() + children.ru_utime + children.ru_stime,
        "complete": not holds.stopped,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
