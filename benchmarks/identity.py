"""Which failures are the same bug? swarmtest's faults beside the rules of other tools.

    python benchmarks/identity.py [--quick] [--only WORD] [--work DIR] [--seed N]

Each program runs in a process of its own, and many of its tests fail. The truth of each failure is
known: in programs with planted bugs, each failing test is run again with one bug at a time; in old
releases of PyPI packages, a failing test that passes on the fixed release shows the bug of the
changelog. Failures whose cause is not clear are left out, and counted.

A rule puts the failures of a program into groups. A bug is hidden if each of its failures is in a
group in which another bug is more frequent: nobody would look for it. Pair precision is the share
of the pairs of failures in one group that have the same bug, pair recall the share of the pairs
with the same bug that are in one group. Only pairs of one program are counted.

The rules of other tools are written after their sources, and get the same failures, one program at
a time. swarmtest's own rule is what a store says after `run`: recorded, then reduced.

The rules were made with the tuning half. The bugs of the judging half were written down before any
rule was applied to them, but programs and rules came in one commit, so the history cannot show it.
The programs of the earlier half judged a first
version, but they are no clean judge: three programs went from there to tuning after they had judged
once. The last line is one JSON object; keys without a prefix are those of the judging half.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from changelogs import BUGS
from harness import cpu_seconds, print_figures, print_table, progress
from known_bugs import DEFAULT_WORK, HERE, install

Failure = dict[str, Any]
Rule = Callable[[Sequence[Failure]], list[Any]]


@dataclass(frozen=True)
class Program:
    """A program with bugs, and how many tests it gets."""

    name: str
    file: str
    tests: int
    half: str = "tuning"
    package: str = ""
    broken: str = ""
    fixed: str = ""
    quick_tests: int = 0  # 0: it is not in a quick run

    @property
    def path(self) -> Path:
        return HERE / ("known_bugs" if self.package else "identity_programs") / self.file


HALVES = ("tuning", "earlier", "judging")
EARLIER = "earlier"
PLANTED = [
    Program("ring buffer", "ring_buffer.py", 1_500, quick_tests=200),
    Program("intervals", "interval_set.py", 1_500),
    Program("LRU cache", "lru_cache.py", 1_500),
    Program("text editor", "text_editor.py", 1_500),
    Program("search tree", "search_tree.py", 1_500),
    Program("task queue", "task_queue.py", 1_500),
    Program("ledger", "ledger.py", 1_500, EARLIER, quick_tests=200),
    Program("sheet", "sheet.py", 1_500, EARLIER),
    Program("files", "file_tree.py", 1_500, EARLIER),
    Program("calendar", "calendar_rooms.py", 1_500, EARLIER),
    Program("graph", "graph.py", 1_500, EARLIER),
    Program("documents", "document_store.py", 1_500, "judging"),
    Program("matrix", "sparse_matrix.py", 1_500, "judging"),
    Program("prefix tree", "prefix_tree.py", 1_500, "judging", quick_tests=200),
    Program("allocator", "allocator.py", 1_500, "judging"),
    Program("rope", "rope.py", 1_500, "judging"),
    Program("warehouse", "warehouse.py", 1_500, "judging"),
    Program("connection", "connection.py", 1_500, "judging"),
]
DROPPED = "BarrelList: pop"
"""A first judge left it out after its recall was seen; it belongs to the half of that time."""
RELEASES = [
    Program(
        f"{bug.package} {bug.broken} {bug.title}",
        bug.machine,
        3_000,
        EARLIER if bug.package in ("bitstring", "cachetools") or bug.title == DROPPED else "tuning",
        package=bug.package,
        broken=bug.broken,
        fixed=bug.claims[-1].release,
    )
    for bug in BUGS
]


# The rules. Each gets the failures of one program and returns a group for each of them.


def by_swarmtest(failures: Sequence[Failure]) -> list[Any]:
    """The fault that the store shows after reduction."""
    return [failure["fault"] for failure in failures]


def by_swarmtest_at_first(failures: Sequence[Failure]) -> list[Any]:
    """The fault that was recorded while tests ran."""
    return [failure["recorded"] for failure in failures]


def by_hypothesis(failures: Sequence[Failure]) -> list[Any]:
    """`InterestingOrigin`: type, file and line of the last frame, and of what was being handled."""
    return [
        (f["type"], f["frames"][-1][0], f["frames"][-1][2], json.dumps(f["context"]))
        for f in failures
    ]


def by_sentry(failures: Sequence[Failure]) -> list[Any]:
    """Type, and for all frames of the application the function and the text of the line."""
    return [
        (
            failure["type"],
            *((Path(f[0]).stem, f[1], f[3]) for f in failure["frames"] if f[4]),
        )
        for failure in failures
    ]


SIMILAR, SAME_FRAMES = 0.8, 2


def by_clusterfuzz(failures: Sequence[Failure]) -> list[Any]:
    """The crash state, the top three functions; similar states of the same type are one group."""
    states = [
        (f["type"], tuple(frame[1] for frame in f["frames"][::-1] if frame[4])[:3])
        for f in failures
    ]
    leaders: list[tuple[str, tuple[str, ...]]] = []
    group_of: dict[tuple[str, tuple[str, ...]], int] = {}
    for state in states:
        if state in group_of:
            continue
        for number, leader in enumerate(leaders):
            if leader[0] == state[0] and _alike(leader[1], state[1]):
                group_of[state] = number
                break
        else:
            group_of[state] = len(leaders)
            leaders.append(state)
    return [group_of[state] for state in states]


def _alike(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """`CrashComparer`: two equal frames in a row of three, or lines that are alike on average."""
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    if sum(block.size for block in blocks) >= SAME_FRAMES:
        return True
    ratios = [SequenceMatcher(None, a, b).ratio() for a, b in zip(one, other, strict=False)]
    return bool(ratios) and sum(ratios) / max(len(one), len(other)) > SIMILAR


CASR_POSITION, CASR_OFFSET, CASR_DISTANCE = 0.04, 0.13, 0.3


def by_casr(failures: Sequence[Failure]) -> list[Any]:
    """Stacks with lines; those nearer than 0.3 are one cluster (complete linkage)."""
    stacks = [tuple((f[0], f[1], f[2]) for f in failure["frames"][::-1]) for failure in failures]
    distinct = list(dict.fromkeys(stacks))
    clusters: list[list[int]] = [[number] for number in range(len(distinct))]
    distance = {
        (i, j): 1 - _likeness(distinct[i], distinct[j])
        for i in range(len(distinct))
        for j in range(i)
    }

    def apart(one: list[int], other: list[int]) -> float:
        return max(distance[max(i, j), min(i, j)] for i in one for j in other)

    while len(clusters) > 1:
        gap, one, other = min(
            (apart(clusters[i], clusters[j]), i, j) for i in range(len(clusters)) for j in range(i)
        )
        if gap >= CASR_DISTANCE:
            break
        clusters[other] += clusters.pop(one)
    number_of = {distinct[i]: number for number, each in enumerate(clusters) for i in each}
    return [number_of[stack] for stack in stacks]


def _likeness(one: Sequence[Any], other: Sequence[Any]) -> float:
    """The similarity of two stacks, as casr (after ReBucket) computes it."""
    best = [[0.0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, frame in enumerate(one, 1):
        for j, against in enumerate(other, 1):
            near = math.exp(-CASR_POSITION * min(i, j) - CASR_OFFSET * abs(i - j))
            taken = best[i - 1][j - 1] + near * (frame == against)
            best[i][j] = max(best[i - 1][j], best[i][j - 1], taken)
    most = sum(math.exp(-CASR_POSITION * k) for k in range(1, min(len(one), len(other)) + 1))
    return best[-1][-1] / most if most else 0.0


RULES: dict[str, Rule] = {
    "swarmtest": by_swarmtest,
    "swarmtest, before reduction": by_swarmtest_at_first,
    "Hypothesis": by_hypothesis,
    "ClusterFuzz": by_clusterfuzz,
    "Sentry": by_sentry,
    "casr": by_casr,
}


# The figures.


@dataclass(frozen=True)
class Grouping:
    """How well a rule groups failures whose bugs are known."""

    groups: int
    bugs: int
    hidden: int
    pair_precision: float
    pair_recall: float

    def row(self) -> list[object]:
        shares = [f"{self.pair_precision:.3f}", f"{self.pair_recall:.3f}"]
        return [self.groups, self.bugs, self.hidden, *shares]


def judge(rule: Rule, programs: Sequence[Sequence[Failure]]) -> Grouping:
    """Apply a rule to each program, and compare with the truth."""
    groups = bugs = hidden = 0
    right = grouped = same = 0  # pairs
    for failures in programs:
        labelled = [failure for failure in failures if failure["truth"] is not None]
        together: dict[Any, Counter[str]] = defaultdict(Counter)
        for failure, group in zip(labelled, rule(labelled), strict=True):
            together[group][failure["truth"]] += 1
        truths = Counter(failure["truth"] for failure in labelled)
        groups += len(together)
        bugs += len(truths)
        leading = {max(sorted(each), key=each.__getitem__) for each in together.values()}
        hidden += len(truths.keys() - leading)
        right += sum(math.comb(n, 2) for each in together.values() for n in each.values())
        grouped += sum(math.comb(each.total(), 2) for each in together.values())
        same += sum(math.comb(count, 2) for count in truths.values())
    return Grouping(groups, bugs, hidden, right / max(grouped, 1), right / max(same, 1))


# Running programs.


def failures_of(program: Program, tests: int, seed: int, work: Path) -> list[Failure]:
    """The failures of a program, with their truth."""
    progress(f"{program.name}: {tests:,} tests")
    release = [install(program.package, program.broken, work)] if program.package else []
    text = _run(program, release, ["collect", str(program.path), str(tests), str(seed)])
    failures: list[Failure] = json.loads(text)
    if program.package:
        fixed = [install(program.package, program.fixed, work)]
        sent = json.dumps([failure["test"] for failure in failures])
        still = json.loads(_run(program, fixed, ["replay", str(program.path)], sent))
        for failure, fails in zip(failures, still, strict=True):
            failure["truth"] = None if fails else program.name
    return failures


def _run(program: Program, path: Sequence[Path], words: list[str], sent: str = "") -> str:
    entries = os.pathsep.join(map(str, (*path, HERE.parent / "src")))
    ended = subprocess.run(
        [sys.executable, str(HERE / "identity_runs.py"), *words],
        input=sent,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": entries, "PYTHONHASHSEED": "0"},
    )
    if ended.returncode:
        sys.exit(f"{program.name}: {ended.stderr.strip()[-2000:]}")
    return ended.stdout


def figures(grouping: Grouping, prefix: str = "") -> dict[str, object]:
    return {
        prefix + name: round(value, 3) if isinstance(value, float) else value
        for name, value in vars(grouping).items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two small programs")
    parser.add_argument("--half", choices=HALVES, help="only these programs")
    parser.add_argument("--only", default="", help="programs whose names have this word")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="keeps PyPI releases")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chosen = [
        program
        for program in [*PLANTED, *RELEASES]
        if given.only in program.name
        and (program.quick_tests or not given.quick)
        and given.half in (None, program.half)
    ]
    halves: dict[str, list[list[Failure]]] = {half: [] for half in HALVES}
    rows = []
    for program in chosen:
        tests = program.quick_tests if given.quick else program.tests
        found = failures_of(program, tests, given.seed, given.work.expanduser())
        halves[program.half].append(found)
        alone = judge(by_swarmtest, [found])
        unclear = sum(failure["truth"] is None for failure in found)
        rows.append([program.name, program.half, len(found), unclear, *alone.row()])
    head = ["groups", "bugs", "hidden", "pair precision", "pair recall"]
    print_table(["program", "half", "failures", "unclear", *head], rows)
    results = {}
    for half in HALVES:
        print(f"\n{half} half")
        results[half] = {name: judge(rule, halves[half]) for name, rule in RULES.items()}
        table = [[name, *found.row()] for name, found in results[half].items()]
        print_table(["rule", *head], table)
    shown: dict[str, object] = {}
    for half, prefix in (("judging", ""), ("tuning", "tuning_"), ("earlier", "earlier_")):
        shown |= figures(results[half]["swarmtest"], prefix)
    for name in ("Hypothesis", "ClusterFuzz", "Sentry", "casr"):
        shown |= figures(results["judging"][name], f"{name.lower()}_")
    print_figures({**shown, "cpu_seconds": round(cpu_seconds(), 1)})


if __name__ == "__main__":
    main()
