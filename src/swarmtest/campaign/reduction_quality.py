"""What a reduction was worth: the rates of the dissertation's section 3.4, and chance beside them.

All are shares from 0 to 1. What cannot be known (no coverage was watched, no mutants were drawn) is
None, never 0. Random reduction (3.5.2) takes as many parts as the reduction left, any of them: what
it keeps, any reduction of that size would keep.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from swarmtest.campaign.reducing import Reduced, hits_of
from swarmtest.instrument.watch import Coverage
from swarmtest.mutation.mutant import Mutant
from swarmtest.reduction import preservation_rate, randomly_reduced
from swarmtest.subjects.subject import Subject

_RANDOM_TESTS = 3
"""As many as in the dissertation."""


class KilledBy(Protocol):
    """Tells which mutants a test kills."""

    def killed(self, test: Any) -> Sequence[Mutant]:
        """The mutants that a test kills."""


@dataclass(frozen=True)
class Quality:
    """The rates of one reduction.

    >>> print(Quality(srr=0.9, cpr=0.95, random_cpr=0.5))
    SRR 90%, CPR 95% (random: 50%)
    """

    srr: float
    """Size reduction rate: the share of the parts that are gone."""
    cpr: float | None = None
    """Coverage preservation rate: the share of what the original hit that is still hit."""
    mpr: float | None = None
    """Mutant preservation rate: the share of the killed mutants that are still killed."""
    random_cpr: float | None = None
    random_mpr: float | None = None

    def __str__(self) -> str:
        rates = [f"SRR {self.srr:.0%}"]
        for name, rate, by_chance in (
            ("CPR", self.cpr, self.random_cpr),
            ("MPR", self.mpr, self.random_mpr),
        ):
            if rate is not None:
                chance = "" if by_chance is None else f" (random: {by_chance:.0%})"
                rates.append(f"{name} {rate:.0%}{chance}")
        return ", ".join(rates)


def quality_of(
    subject: Subject,
    original: Any,
    reduced: Reduced,
    *,
    coverage: Coverage | None = None,
    kills: KilledBy | None = None,
    seconds: float = 10.0,
    seed: int = 0,
) -> Quality:
    """The rates of a reduction; `coverage` sees what tests hit, `kills` which mutants they kill.

    >>> from swarmtest import Keep, Machine, MachineSubject, Target, action, reduce_test
    >>> class Lamp(Machine):
    ...     steps = 10
    ...     @action
    ...     def switch(self): self.event("switched")
    >>> subject = MachineSubject(Lamp)
    >>> test = subject.test_of(subject.space.default(), seed=1)
    >>> keep = Keep(targets=frozenset({Target.parse("event:switched").key}))
    >>> print(quality_of(subject, test, reduce_test(subject, test, keep)))
    SRR 90%, CPR 100% (random: 100%)
    """

    def hits(test: Any) -> frozenset[int]:
        return hits_of(subject, test, coverage, seconds)[1]

    def killed(test: Any) -> frozenset[str]:
        return frozenset(mutant.id for mutant in kills.killed(test)) if kills else frozenset()

    by_chance = _random_tests(subject, original, reduced.size, seed)
    cpr, random_cpr = _rates(original, reduced.test, by_chance, hits)
    mpr, random_mpr = _rates(original, reduced.test, by_chance, killed) if kills else (None, None)
    return Quality(reduced.srr, cpr, mpr, random_cpr, random_mpr)


def _rates(
    original: Any,
    reduced: Any,
    by_chance: Sequence[Any],
    reached: Callable[[Any], frozenset[Any]],
) -> tuple[float | None, float | None]:
    """What a reduction keeps of what the original reached, and what random ones do on average."""
    whole = reached(original)
    if not whole:
        return None, None
    chances = [preservation_rate(whole, reached(test)) for test in by_chance]
    rate = preservation_rate(whole, reached(reduced))
    return rate, sum(chances) / len(chances) if chances else None


def _random_tests(subject: Any, original: Any, size: int, seed: int) -> list[Any]:
    """Random reductions; none of tests whose parts do not stand alone."""
    parts: Iterable[Any] = subject.parts(original) if hasattr(subject, "parts") else ()
    parts, rng = list(parts), random.Random(seed)
    if not 0 < size <= len(parts):
        return []
    chosen = [randomly_reduced(parts, size, rng) for _ in range(_RANDOM_TESTS)]
    return [subject.with_parts(original, some) for some in chosen]
