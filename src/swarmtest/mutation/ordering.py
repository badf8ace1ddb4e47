"""Which test to try first on a mutant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from swarmtest.mutation.originals import Original


class Order:
    """Cheap tests come first, and those that killed mutants of the same function (a *group*)."""

    def __init__(self, originals: dict[int, Original], groups: Sequence[str]) -> None:
        self._originals = originals
        self._groups = groups
        self._tried: Counter[tuple[str, int]] = Counter()
        self._killed: Counter[tuple[str, int]] = Counter()

    def learn(self, mutant: int, test: int, killed: bool) -> None:
        """Note whether a test killed a mutant."""
        key = self._groups[mutant], test
        self._tried[key] += 1
        self._killed[key] += killed

    def of(self, mutant: int, tests: list[int]) -> list[int]:
        """Tests in the order of what they are expected to cost per kill."""
        group = self._groups[mutant]

        def cost(test: int) -> float:
            chance = (self._killed[group, test] + 0.5) / (self._tried[group, test] + 1)
            return self._originals[test].seconds / chance

        return sorted(tests, key=cost)
