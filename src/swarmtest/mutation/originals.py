"""Tests that are run again and again, and what is known of each without a mutant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from swarmtest.mutation.matrix import ENDLESS, FAILED, PASSED
from swarmtest.mutation.steps import Steps


class Tests(Protocol):
    """Tests that can be run again and again, by their numbers."""

    @property
    def names(self) -> Sequence[str]:
        """What a person calls each."""

    def run(self, test: int, following: int | None) -> str:
        """Run one; the same answer means that it ended the same way.

        `following` will be run next in this process; None: this is the last.
        """

    def finish(self) -> None:
        """Clear away what tests keep for those that follow: other tests come next, or none."""

    def why_not(self, ended: str) -> str:
        """Why a test that ends so without a mutant is of no use; empty: it is."""


@dataclass(frozen=True)
class Original:
    """A test without a mutant."""

    ended: str
    seconds: float
    steps: int
    reached: tuple[frozenset[int], ...]
    """For each file, the numbers of the statements that it executed."""
    imports: bool = False
    """Whether it imports one of the files itself, perhaps again: what is loaded is not what it
    runs then."""


def outcome_of(
    tests: Tests, test: int, following: int | None, original: Original, steps: Steps
) -> int:
    """Run a test on the program as it is now, and compare."""
    steps.allow(original.steps)
    try:
        ended = tests.run(test, following)
    except BaseException:
        ended = ""
    if steps.exceeded:
        return ENDLESS
    return PASSED if ended == original.ended else FAILED


def in_turn(tests: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Each test with the one that follows it; None follows the last."""
    return zip(tests, [*tests[1:], None], strict=True)
