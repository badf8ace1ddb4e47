"""Measure the quality of a reduction, and reduce plain files.

The rates are those of the dissertation's section 3.4: shares from 0 to 1. A rate that cannot be
known (no coverage was watched, no mutants were drawn) is None, never 0. Each is shown beside the
rate of random reductions (3.5.2), which keep as many parts as the reduction did, chosen at random:
what they preserve, any reduction to that size would preserve.

`PlainFile` lets any file be reduced as a test by a command that decides whether it is interesting.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Result
from swarmtest.coverage.watch import Coverage
from swarmtest.mutate.mutant import Mutant
from swarmtest.reduce.reduction import Reduced, hits_of
from swarmtest.reducer.criteria import preservation_rate, randomly_reduced
from swarmtest.reducer.reducer import ConvertedCriterion, minimised
from swarmtest.subjects.command.reduction import reduced_text
from swarmtest.subjects.command.test import CommandTest
from swarmtest.subjects.subject import Subject

_RANDOM_TESTS = 3
"""The number of random reductions, the same as in the dissertation."""


class KillCounter(Protocol):
    """Finds out which mutants a test kills."""

    def killed(self, test: Any) -> Sequence[Mutant]:
        """Return the mutants that a test kills."""


@dataclass(frozen=True)
class Quality:
    """The rates of one reduction.

    >>> print(Quality(srr=0.9, cpr=0.95, random_cpr=0.5))
    size reduced by 90% (SRR), 95% of the coverage kept (CPR; at random 50%)
    """

    srr: float
    """Size reduction rate: the share of the parts that were removed."""
    cpr: float | None = None
    """Coverage preservation rate: the share of the original's targets that are still hit."""
    mpr: float | None = None
    """Mutant preservation rate: the share of the original's killed mutants still killed."""
    random_cpr: float | None = None
    random_mpr: float | None = None

    def __str__(self) -> str:
        rates = [f"size reduced by {self.srr:.0%} (SRR)"]
        for what, name, rate, by_chance in (
            ("coverage", "CPR", self.cpr, self.random_cpr),
            ("killed mutants", "MPR", self.mpr, self.random_mpr),
        ):
            if rate is not None:
                chance = "" if by_chance is None else f"; at random {by_chance:.0%}"
                rates.append(f"{rate:.0%} of the {what} kept ({name}{chance})")
        return ", ".join(rates)


def quality_of(
    subject: Subject,
    original: Any,
    reduced: Reduced,
    *,
    coverage: Coverage | None = None,
    kills: KillCounter | None = None,
    seconds: float = 10.0,
    seed: int = 0,
) -> Quality:
    """Return the rates of a reduction.

    `coverage` observes what tests hit; `kills` finds out which mutants they kill.

    >>> from swarmtest import Machine, action
    >>> from swarmtest.coverage import Target
    >>> from swarmtest.reduce import Keep, reduce_test
    >>> from swarmtest.subjects import MachineSubject
    >>> class Lamp(Machine):
    ...     steps = 10
    ...     @action
    ...     def switch(self): self.event("switched")
    >>> subject = MachineSubject(Lamp)
    >>> test = subject.test_of(subject.space.default(), seed=1)
    >>> keep = Keep(targets=frozenset({Target.parse("event:switched").key}))
    >>> print(quality_of(subject, test, reduce_test(subject, test, keep)))
    size reduced by 90% (SRR), 100% of the coverage kept (CPR; at random 100%)
    """

    def hits(test: Any) -> frozenset[int]:
        return hits_of(subject, test, coverage, seconds)[1]

    def killed(test: Any) -> frozenset[str]:
        return frozenset(mutant.id for mutant in kills.killed(test)) if kills else frozenset()

    random_tests = _random_tests(subject, original, reduced.size, seed)
    cpr, random_cpr = _rates(original, reduced.test, random_tests, hits)
    mpr, random_mpr = (
        _rates(original, reduced.test, random_tests, killed) if kills else (None, None)
    )
    return Quality(reduced.srr, cpr, mpr, random_cpr, random_mpr)


def _rates(
    original: Any,
    reduced: Any,
    random_tests: Sequence[Any],
    reached: Callable[[Any], frozenset[Any]],
) -> tuple[float | None, float | None]:
    """Return the preservation rate of a reduction, and the mean rate of random reductions."""
    reached_before = reached(original)
    if not reached_before:
        return None, None
    random_rates = [preservation_rate(reached_before, reached(test)) for test in random_tests]
    rate = preservation_rate(reached_before, reached(reduced))
    return rate, sum(random_rates) / len(random_rates) if random_rates else None


def _random_tests(subject: Any, original: Any, size: int, seed: int) -> list[Any]:
    """Return random reductions; none if the subject's tests have no independent parts."""
    parts: Iterable[Any] = subject.parts(original) if hasattr(subject, "parts") else ()
    parts, rng = list(parts), random.Random(seed)
    if not 0 < size <= len(parts):
        return []
    samples = [randomly_reduced(parts, size, rng) for _ in range(_RANDOM_TESTS)]
    return [subject.with_parts(original, sample) for sample in samples]


# Plain files as tests.

PARTS = ("lines", "characters", "bytes")


class PlainFile(Subject):
    """Any file as a subject whose test can be reduced but not run.

    Its parts are lines (blocks in braces are tried first), then characters or bytes if asked for.

    >>> file = PlainFile("report.txt", "characters")
    >>> test = file.test(b"hay\\nneedle\\nhay\\n")
    >>> file.content(file.reduced(test, lambda smaller: b"edl" in file.content(smaller)))
    b'edl'
    """

    def __init__(self, path: str, parts: str = "lines") -> None:
        if parts not in PARTS:
            raise UserError(f"--parts {parts}: choose from {', '.join(PARTS)}")
        self.name = path
        self.suffix = Path(path).suffix or ".txt"
        self.part = parts.removesuffix("s")

    def generate(self, configuration: Configuration, seed: int) -> Any:
        """Refuse: a file is there already."""
        raise UserError(f"{self.name} is a plain file: no tests are generated")

    def run(self, test: Any) -> Result:
        """Refuse: nobody says what to run on a file."""
        raise UserError(f"{self.name} is a plain file: it cannot be run")

    def test(self, content: bytes) -> Any:
        """Return the test, as JSON data, whose file has this content."""
        return CommandTest(self.name, content).to_json()

    def content(self, test: Any) -> bytes:
        """Return the content of the file."""
        return CommandTest.from_json(test).content

    def code(self, test: Any) -> str:
        """Return the file as text for a terminal."""
        return CommandTest.from_json(test).shown

    def size(self, test: Any) -> int:
        """Return the number of parts."""
        whole = CommandTest.from_json(test)
        return whole.size if self.part == "line" else len(self._pieces(whole))

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return the test with only the parts that it needs to stay interesting."""
        still_interesting = ConvertedCriterion(interesting, CommandTest.to_json)
        small = reduced_text(CommandTest.from_json(test), still_interesting)
        if self.part != "line":

            def joined(pieces: Sequence[bytes]) -> Any:
                return small.with_content(b"".join(pieces)).to_json()

            pieces = minimised(self._pieces(small), ConvertedCriterion(interesting, joined))
            small = small.with_content(b"".join(pieces))
        return small.to_json()

    def parts(self, test: Any) -> list[bytes]:
        """Return the parts: the lines that are not blank, or the characters or bytes."""
        whole = CommandTest.from_json(test)
        if self.part != "line":
            return self._pieces(whole)
        return [line for line in whole.content.splitlines(keepends=True) if line.strip()]

    def with_parts(self, test: Any, parts: Sequence[bytes]) -> Any:
        """Return the test made of other parts."""
        return CommandTest.from_json(test).with_content(b"".join(parts)).to_json()

    def _pieces(self, test: CommandTest) -> list[bytes]:
        if self.part == "character":
            try:
                return [letter.encode() for letter in test.content.decode()]
            except UnicodeDecodeError:
                raise UserError(f"{self.name} is no text: --parts bytes") from None
        return [test.content[i : i + 1] for i in range(len(test.content))]
