"""When a smaller test is still good enough, for those who can run one.

A criterion is anything that takes parts and answers yes or no. Those here know nothing of subjects:
they are given functions that run the parts. A criterion may have `reason(parts)`, which says why
the original does not meet it.

Coverage and mutants are those of the dissertation's chapter 3: C%-coverage keeps a share of what
the original reached, N-mutant keeps N of the mutants that it killed, always the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from swarmtest.errors import UserError

Part = TypeVar("Part")
Target = TypeVar("Target", bound=Hashable)


class Criterion(Protocol):
    """Whether parts are still interesting; cheap answers come early (see `Repeated`)."""

    def __call__(self, parts: Sequence[Any], /) -> bool:
        """Whether these parts are interesting."""


class Repeated:
    """A criterion that does not hold every time: it is to hold in `k` of `n` runs.

    No more runs are made than it takes to know.

    >>> rolls = iter([True, False, True, False])
    >>> Repeated(lambda parts: next(rolls), k=2, n=4)([])
    True
    >>> next(rolls)
    False
    """

    def __init__(self, criterion: Callable[[Sequence[Any]], bool], k: int, n: int) -> None:
        if not 1 <= k <= n:
            raise UserError(f"{k} of {n} runs cannot be asked for; k is from 1 to n")
        self._criterion = criterion
        self.k = k
        self.n = n

    def __call__(self, parts: Sequence[Any], /) -> bool:
        met = 0
        for run in range(self.n):
            met += bool(self._criterion(parts))
            if met >= self.k:
                return True
            if met + self.n - run - 1 < self.k:
                return False
        return False

    def count(self, parts: Sequence[Any]) -> int:
        """In how many of `n` runs the criterion holds: how flaky it is."""
        return sum(bool(self._criterion(parts)) for _ in range(self.n))

    def told(self, met: int) -> str:
        """Why as many are not enough."""
        return f"{met} of {self.n} runs met it, {self.k} are needed"


class CoverageKept:
    """At least a share of what the original reached is reached: C%-coverage.

    `reached` may give the targets as they are met; it is not asked for more than are needed.

    >>> still = CoverageKept(lambda parts: parts, original={1, 2, 3, 4}, share=0.75)
    >>> still([1, 2, 9]), still([1, 2, 3])
    (False, True)
    """

    def __init__(
        self,
        reached: Callable[[Sequence[Any]], Iterable[Target]],
        original: Collection[Target],
        share: float = 1.0,
    ) -> None:
        if not 0 < share <= 1:
            raise UserError(
                f"a share of {share:g} of the coverage cannot be kept; above 0, up to 1"
            )
        if not original:
            raise UserError("the original reaches no target, so there is no coverage to keep")
        self._reached = reached
        self._original = frozenset(original)
        self.share = share
        # 0.07 * 100 is more than 7 in floating point: nobody means eight of them.
        self.needed = math.ceil(round(share * len(self._original), 9))
        """How many of the original's targets are enough."""

    def __call__(self, parts: Sequence[Any], /) -> bool:
        met: set[Hashable] = set()
        for target in self._reached(parts):
            if target in self._original:
                met.add(target)
                if len(met) >= self.needed:
                    return True
        return False

    def reason(self, parts: Sequence[Any]) -> str:
        """Why it is not met."""
        met = len(self._original & frozenset(self._reached(parts)))
        return f"it reaches {met} of {len(self._original)} targets now, {self.needed} are needed"


class TargetsKept(CoverageKept):
    """All of these targets are reached, whatever else is.

    >>> TargetsKept(lambda parts: parts, wanted={1, 2})([1, 2, 3])
    True
    """

    def __init__(
        self,
        reached: Callable[[Sequence[Any]], Iterable[Target]],
        wanted: Collection[Target],
    ) -> None:
        if not wanted:
            raise UserError("no targets are given that the smaller test is to keep")
        super().__init__(reached, wanted)


class MutantsKept:
    """All of these mutants are killed: N-mutant reduction.

    `kills` tells of one mutant; the first survivor is the answer. The last mutant that survived is
    tried first: what a candidate loses, the next one often loses too.

    >>> MutantsKept(lambda parts, mutant: mutant in parts, wanted=[3, 5])([3, 4])
    False
    """

    def __init__(
        self, kills: Callable[[Sequence[Any], Target], bool], wanted: Iterable[Target]
    ) -> None:
        self._kills = kills
        self._wanted = list(dict.fromkeys(wanted))
        if not self._wanted:
            raise UserError("no mutants are given that the smaller test is to kill")

    def __call__(self, parts: Sequence[Any], /) -> bool:
        for mutant in list(self._wanted):
            if not self._kills(parts, mutant):
                self._wanted.remove(mutant)
                self._wanted.insert(0, mutant)
                return False
        return True

    def reason(self, parts: Sequence[Any]) -> str:
        """Why it is not met."""
        killed = sum(self._kills(parts, mutant) for mutant in self._wanted)
        return f"it kills {killed} of the {len(self._wanted)} mutants"


def first_to_add(
    reached: Sequence[Collection[Target]], original: Collection[Target], share: float = 1.0
) -> tuple[int, ...]:
    """The parts that first reached something, as many as it takes for a share: a good beginning.

    `reached`: what has been reached after each part. Where the share is below 1, parts that add
    much come before parts that add little. Their indices are in order.

    >>> first_to_add([{1}, {1}, {1, 2, 3}, {1, 2, 3, 4}], {1, 2, 3, 4}, share=0.75)
    (0, 2)
    """
    wanted = frozenset(original)
    known: set[Target] = set()
    gains: list[tuple[int, int]] = []
    for part, met in enumerate(reached):
        new = (wanted & frozenset(met)) - known
        known |= new
        if new:
            gains.append((len(new), part))
    chosen: list[int] = []
    left = math.ceil(round(share * len(wanted), 9))
    for gain, part in sorted(gains, key=lambda pair: (-pair[0], pair[1])):
        if left <= 0:
            break
        chosen.append(part)
        left -= gain
    return tuple(sorted(chosen))
