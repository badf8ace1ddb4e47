"""What a campaign needs to know of what it tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from swarmtest.core.configuration import Configuration
from swarmtest.core.result import Fault, Result
from swarmtest.core.space import Space


def usual_strategy(subject: Subject) -> str:
    """The strategy of who names none: the best of those whose weights the subject understands."""
    return "layered" if subject.weighted else "coin"


@runtime_checkable
class Subject(Protocol):
    """Something that can be tested: it makes tests from configurations, and runs them.

    `execute` is what campaigns call: generate and run in one go, because many generators need to
    see the program's state before they choose the next step (the papers' feedback).

    >>> from swarmtest import Machine, MachineSubject, action
    >>> class Lamp(Machine):
    ...     @action
    ...     def switch(self): pass
    >>> subject: Subject = MachineSubject(Lamp)
    >>> subject.execute(subject.space.default(), seed=1).verdict.label
    'passed'
    """

    name: str
    """How a person names it, and how a worker process finds it again."""
    space: Space
    interruptible: bool
    """Whether KeyboardInterrupt is the user's Ctrl-C; in a worker it is the program's doing."""
    keep_tests: bool
    """Whether results carry their test also when it passed."""
    journal: Callable[[Any], None] | None
    """Told of every step before it runs, when the test at hand may kill the process."""
    part: str
    """What its tests are made of, in one word: step, line, token."""
    suffix: str
    """How a file is named that holds a test as `code` gives it: ``.py``, ``.c``."""
    harness: str
    """The file that only drives the program: its text is the subject's version; may be empty."""
    weighted: bool
    """Whether weights between 0 and 1 mean something; without, strategies that give them are
    refused, and the default strategy is `coin`."""
    seconds: float | None
    """How long a test may take by the subject's own account; None: it does not know."""

    def check(self, thorough: bool = False) -> list[str]:
        """What is wrong with it, a line each, before any test is run; most find out when loaded.

        `thorough`: also what takes a while to find out.
        """

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test from a configuration and a seed, and run it."""

    def result_of_journal(
        self, told: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """What came of a test that ended its process, from what it told the journal before."""

    def test_of(self, configuration: Configuration, seed: int) -> Any:
        """The test that a configuration and a seed give (JSON data), also when it passes."""

    def replay(self, test: Any) -> Result:
        """Run a test that was saved as JSON data."""

    def reduced(self, test: Any, interesting: Callable[[Any], bool]) -> Any:
        """A smaller test for which `interesting` still holds: the subject knows its parts."""

    def size(self, test: Any) -> int:
        """How many parts a test has."""

    def code(self, test: Any) -> str:
        """A test (JSON data) as something a person can read and run."""
