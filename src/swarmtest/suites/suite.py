"""A suite as a value: its tests, what each adds, and what they keep together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from swarmtest.result import Fault
from swarmtest.subjects.subject import Subject
from swarmtest.targets import Target


@dataclass(frozen=True)
class SuiteTest:
    """One test of a suite.

    >>> SuiteTest(17, {"steps": []}, before=40, size=3, adds=(Target("line", "a.py:1"),)).srr
    0.925
    """

    trial: int
    """Of the campaign that it comes from."""
    data: Any = field(repr=False)
    """The test, as JSON data."""
    before: int
    """The parts that it had."""
    size: int
    """The parts that it has."""
    adds: tuple[Target, ...] = field(default=(), repr=False)
    """What it hits that no test before it does."""
    hits: frozenset[int] = field(default=frozenset(), repr=False)
    """All that it hits, of what counts: places in `Suite.targets`."""
    fault: Fault | None = None
    """What it shows; None: it passes."""
    seconds: float = 0.0
    """What it took when it was last run, alone."""
    seconds_before: float = 0.0
    """What it took in the campaign."""
    complete: bool = True
    """Whether nothing more of it can go."""

    @property
    def srr(self) -> float:
        """The size reduction rate: the share of its parts that are gone (dissertation, 3.4.1)."""
        return 1 - self.size / self.before if self.before else 0.0


@dataclass(frozen=True)
class Suite:
    """Tests that keep what a campaign reached, or a share of it; `make_suite` makes one.

    >>> from swarmtest import Machine, MachineSubject, Target, action
    >>> class Stack(Machine):
    ...     @action
    ...     def push(self): pass
    >>> full = Target("event", "stack was full")
    >>> test = SuiteTest(17, {"steps": []}, before=40, size=32, adds=(full,), hits=frozenset({0}))
    >>> suite = Suite(
    ...     1, 0, MachineSubject(Stack), (test,), (full,), "exact", at_least=1, trials=500,
    ...     trials_seconds=2.5, chosen=1,
    ... )
    >>> suite.share, suite.parts, suite.proven
    (1.0, (40, 32), True)
    """

    campaign: int
    seed: int
    """Of the campaign."""
    subject: Subject = field(repr=False, compare=False)
    tests: tuple[SuiteTest, ...]
    """In the order of what they add per second."""
    targets: tuple[Target, ...] = field(repr=False)
    """All that counts."""
    method: str
    """How whole tests were chosen: ``exact``, ``greedy`` or, with a limit, ``greedy in time``."""
    at_least: int
    """So many whole tests are needed to keep what was asked for, as far as is known."""
    trials: int
    """The tests of the campaign."""
    trials_seconds: float
    """What those took."""
    chosen: int = 0
    """How many whole tests were chosen, before they were reduced."""
    chosen_kept: int = 0
    """What those kept."""
    faults: str = "xfail"
    """How tests of faults are written."""
    limit: float | None = None
    """The seconds that all may take; None: any time."""
    dropped: tuple[tuple[int, str], ...] = ()
    """Trials that were chosen and are not in the suite, with the reason."""
    notes: tuple[str, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether it is known that fewer whole tests do not keep as much."""
        return self.chosen == self.at_least

    @property
    def kept(self) -> frozenset[int]:
        """What the tests hit of the targets: places in `targets`."""
        return frozenset[int]().union(*(one.hits for one in self.tests))

    @property
    def share(self) -> float:
        """The share of the targets that is kept."""
        return len(self.kept) / len(self.targets) if self.targets else 1.0

    @property
    def by_kind(self) -> dict[str, tuple[int, int]]:
        """For each kind of targets how many are kept, of how many."""
        kept = Counter(self.targets[i].kind for i in self.kept)
        return {
            kind: (kept[kind], count)
            for kind, count in sorted(Counter(target.kind for target in self.targets).items())
        }

    @property
    def parts(self) -> tuple[int, int]:
        """The parts of all tests, before they were reduced and now."""
        return sum(one.before for one in self.tests), sum(one.size for one in self.tests)

    @property
    def seconds(self) -> tuple[float, float]:
        """What all tests took, in the campaign and when they were last run."""
        before = sum(one.seconds_before for one in self.tests)
        return before, sum(one.seconds for one in self.tests)

    @property
    def srr(self) -> float:
        """The size reduction rate of the tests together."""
        before, now = self.parts
        return 1 - now / before if before else 0.0

    def without(self, trials: Mapping[int, str]) -> Suite:
        """The suite without some tests, each with the reason why."""
        left = in_turn([one for one in self.tests if one.trial not in trials], self.targets)
        dropped = sorted({**dict(self.dropped), **trials}.items())
        return replace(self, tests=left, dropped=tuple(dropped))

    def in_time(self, seconds: Mapping[int, float]) -> Suite:
        """The suite within its limit, by what the tests of trials take: the last ones go."""
        if self.limit is None:
            return self
        left, gone = self.limit, dict[int, str]()
        for one in self.tests:
            left -= seconds.get(one.trial, 0.0)
            if left < 0:
                gone[one.trial] = f"when it was run, the {self.limit:g} s were over"
        return self.without(gone)


def in_turn(tests: Iterable[SuiteTest], targets: Sequence[Target]) -> tuple[SuiteTest, ...]:
    """The same tests, each with what it adds to those before it."""
    kept: frozenset[int] = frozenset()
    found = []
    for one in tests:
        new = one.hits - kept
        kept |= new
        found.append(replace(one, adds=tuple(targets[i] for i in sorted(new))))
    return tuple(found)
