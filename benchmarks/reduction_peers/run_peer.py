"""Runs a reducer on inputs, in an environment of its own: ``run_peer.py PEER ROW SEED...``.

Prints a JSON object for each: how often it asked, what it left (parts and bytes), CPU seconds of
the reduction alone. What is asked twice counts once: whoever has no memory of answers is given one.
After `LIMIT` calls it is stopped. Reducers that also rewrite are told that what they wrote is not
interesting, and are not charged for asking; only of the C program any text may be left.
"""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from inputs import ROWS, Input, Parts

LIMIT = 4_000


class TooMany(BaseException):
    """The reducer has asked more often than anyone would wait for."""


class Counted:
    """The criterion of an input, counting; remembers answers, and the smallest that holds."""

    def __init__(self, given: Input) -> None:
        self._holds = given.holds
        self._known: dict[tuple[bytes, ...], bool] = {}
        self.calls = 0
        self.stopped = False
        self.smallest: Parts = given.parts

    def __call__(self, kept: Parts) -> bool:
        key = tuple(kept)
        if key in self._known:
            return self._known[key]
        if self.calls >= LIMIT:
            raise TooMany
        self.calls += 1
        holds = self._known[key] = self._holds(kept)
        if holds and len(kept) < len(self.smallest):
            self.smallest = tuple(kept)
        return holds


def ddmin(given: Input, holds: Counted) -> None:
    """The textbook's: subsets, then complements, then twice the granularity."""
    kept, pieces = given.parts, 2
    holds(kept)
    while len(kept) >= 2:
        bounds = [len(kept) * i // pieces for i in range(pieces + 1)]
        some = [kept[a:b] for a, b in pairwise(bounds)]
        others = [kept[:a] + kept[b:] for a, b in pairwise(bounds)]
        if subset := next(filter(holds, some), None):
            kept, pieces = subset, 2
        elif complement := next(filter(holds, others), None):
            kept, pieces = complement, max(pieces - 1, 2)
        elif pieces < len(kept):
            pieces = min(2 * pieces, len(kept))
        else:
            return


def complements(given: Input, holds: Counted) -> None:
    """The textbook's without the subsets, which seldom hold; goes on where a piece has gone."""
    pieces = [given.parts]
    holds(given.parts)
    while any(len(piece) > 1 for piece in pieces):
        halves = [(p[: (len(p) + 1) // 2], p[(len(p) + 1) // 2 :]) for p in pieces]
        pieces = [half for both in halves for half in both if half]
        at, failed = len(pieces) - 1, 0
        while failed < len(pieces) > 1:
            others = pieces[:at] + pieces[at + 1 :]
            if holds([part for piece in others for part in piece]):
                pieces, failed = others, 0
            else:
                failed += 1
            at = (at or len(pieces)) - 1


def probdd(given: Input, holds: Counted, first: float = 0.1) -> None:
    """Probabilistic delta debugging (Wang et al., 2021), with the paper's prior.

    Each part has a probability of being needed. What is left out next is what promises the most:
    of the parts that are needed least, so many that their number times the chance that none of them
    is needed is largest. If that does not hold, each of them is needed more probably.
    """
    chance = dict.fromkeys(range(len(given.parts)), first)
    holds(given.parts)
    while any(p < 1 - 1e-9 for p in chance.values()):
        order = sorted(chance, key=lambda part: (chance[part], part))
        without, best, free, gain = 0, 1.0, 1.0, 0.0
        for count, part in enumerate(order, 1):
            free *= 1 - chance[part]
            if count * free > gain:
                without, best, gain = count, free, count * free
        left_out = set(order[:without])
        kept = [part for part in sorted(chance) if part not in left_out]
        if holds([given.parts[part] for part in kept]):
            chance = {part: chance[part] for part in kept}
        else:
            chance.update({part: chance[part] / (1 - best) for part in left_out})


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
        # Others only remove: what is in another order, or there twice, is not asked about.
        lambda numbers: (
            all(a < b for a, b in pairwise(numbers)) and holds([given.parts[i] for i in numbers])
        ),
        settings=chosen,
        database_key=b"it",
    )


def shrinkray(given: Input, holds: Counted) -> None:
    """Its own passes on the bytes, one question at a time, in this process."""
    import trio
    from shrinkray.problem import BasicReductionProblem
    from shrinkray.reducer import ShrinkRay
    from shrinkray.work import Volume, WorkContext

    async def interesting(content: bytes) -> bool:
        return _asked(given, holds, content)

    work = WorkContext(parallelism=1, volume=Volume.quiet)
    problem = BasicReductionProblem(b"".join(given.parts), interesting, work)
    try:
        trio.run(ShrinkRay(problem, enable_cpp_passes="C program" in sys.argv[2]).run)
    except BaseExceptionGroup as problems:
        if problems.subgroup(TooMany) is None:
            raise
        holds.stopped = True
    holds.smallest = _parts_of(given, problem.current_test_case)


def cvise(given: Input, holds: Counted) -> None:
    """Its passes for C or for anything else; its test is a shell that asks this process."""
    with tempfile.TemporaryDirectory() as temporary, socket.create_server(("127.0.0.1", 0)) as here:
        work = Path(temporary)
        file, test = work / "test.c", work / "test.sh"
        file.write_bytes(b"".join(given.parts))
        port = here.getsockname()[1]
        test.write_text(
            f"#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/{port}\n"
            'echo "$PWD/test.c" >&3\nread -r answer <&3\nexit "$answer"\n'
        )
        test.chmod(0o755)
        is_c = [] if "C program" in sys.argv[2] else ["--not-c"]
        command = ["cvise", "--n", "1", "--no-cache", *is_c, str(test), file.name]
        with subprocess.Popen(
            command, cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as running:
            here.settimeout(1.0)
            while running.poll() is None:
                try:
                    _answer(here, given, holds)
                except TimeoutError:
                    continue
                except TooMany:
                    holds.stopped = True
                    running.terminate()
        holds.smallest = _parts_of(given, file.read_bytes())


def _answer(here: socket.socket, given: Input, holds: Counted) -> None:
    connection, _ = here.accept()
    with connection, connection.makefile("rw") as lines:
        content = Path(lines.readline().strip()).read_bytes()
        lines.write(f"{int(not _asked(given, holds, content))}\n")


def _asked(given: Input, holds: Counted, content: bytes) -> bool:
    """Whether content is interesting; each content is one call, whatever is made of it."""
    kept = _parts_of(given, content)
    known = set(given.parts)
    # What a reducer wrote itself is no part of the original; only a compiler can judge that.
    return ("C program" in sys.argv[2] or known.issuperset(kept)) and holds(kept)


def _parts_of(given: Input, content: bytes) -> Parts:
    by_line = given.parts[0].endswith(b"\n")
    lines = content.splitlines(keepends=True)
    return lines if by_line else [content[i : i + 1] for i in range(len(content))]


PEERS: dict[str, Callable[[Input, Counted], None]] = {
    "ddmin": ddmin,
    "ddmin, complements": complements,
    "ProbDD": probdd,
    "picire": picire,
    "lithium": lithium,
    "hypothesis": hypothesis,
    "shrinkray": shrinkray,
    "cvise": cvise,
}


def cpu_seconds() -> float:
    """Of this process and of those it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def reduced(peer: str, given: Input) -> dict[str, object]:
    """What a reducer does with an input."""
    holds = Counted(given)
    begun = cpu_seconds()
    try:
        PEERS[peer](given, holds)
    except TooMany:
        holds.stopped = True
    return {
        "calls": holds.calls,
        "size": len(holds.smallest),
        "bytes": sum(map(len, holds.smallest)),
        "cpu": cpu_seconds() - begun,
        "complete": not holds.stopped,
    }


def main() -> None:
    peer, row, *seeds = sys.argv[1:]
    for seed in seeds:
        print(json.dumps(reduced(peer, ROWS[row](int(seed)))), flush=True)


if __name__ == "__main__":
    main()
