"""The interface between a campaign and what it tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from swarmtest.core.configuration import Configuration
from swarmtest.core.result import Fault, Result
from swarmtest.core.space import Space


def usual_strategy(subject: Subject) -> str:
    """Return the default strategy: the best one whose weights the subject understands."""
    return "layered" if subject.weighted else "coin"


@runtime_checkable
class Subject(Protocol):
    """Something that can be tested: it generates tests from configurations and runs them.

    Campaigns call `execute`, which generates and runs a test in one go, because many generators
    must see the program's state before they choose the next step (the papers' feedback).

    >>> from swarmtest import Machine, MachineSubject, action
    >>> class Lamp(Machine):
    ...     @action
    ...     def switch(self): pass
    >>> subject: Subject = MachineSubject(Lamp)
    >>> subject.execute(subject.space.default(), seed=1).verdict.label
    'passed'
    """

    name: str
    """The name that a person uses, and by which a worker process loads the same subject."""
    space: Space
    interruptible: bool
    """Whether KeyboardInterrupt is the user's Ctrl-C; in a worker, the program raised it."""
    keep_tests: bool
    """Whether the result of a passed test contains the test as well."""
    journal: Callable[[Any], None] | None
    """Called with every step before it runs, when the current test may kill the process."""
    part: str
    """One word for what its tests consist of: step, line, token."""
    suffix: str
    """The suffix of a file that holds what `code` returns: ``.py``, ``.c``."""
    harness: str
    """The file that only drives the program: its text is the subject's version; may be empty."""
    weighted: bool
    """Whether weights between 0 and 1 have a meaning. If not, strategies that produce such
    weights are refused, and the default strategy is `coin`."""
    seconds: float | None
    """The subject's own time limit for a test; None if it sets none."""

    def check(self, thorough: bool = False) -> list[str]:
        """Return what is wrong with the subject, a line each, before any test is run.

        Most subjects are checked when they are loaded. `thorough` adds checks that take a while.
        """

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test from a configuration and a seed, and run it."""

    def result_of_journal(
        self, told: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """Return the result of a test that ended its process, from its journal entries."""

    def test_of(self, configuration: Configuration, seed: int) -> Any:
        """Return the test that a configuration and a seed give (JSON data), even if it passes."""

    def replay(self, test: Any) -> Result:
        """Run a test that was saved as JSON data."""

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """Return a smaller test for which `interesting` still holds."""

    def size(self, test: Any) -> int:
        """Return how many parts a test has."""

    def code(self, test: Any) -> str:
        """Return a test (JSON data) as text that a person can read and run."""
