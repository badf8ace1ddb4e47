"""What a campaign needs to know of what it tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from swarmtest.result import Fault, Result
from swarmtest.space import Configuration, Space


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

    def execute(self, configuration: Configuration, seed: int) -> Result:
        """Generate a test from a configuration and a seed, and run it."""

    def result_of_journal(
        self, told: Sequence[Any], configuration: Configuration, fault: Fault
    ) -> Result:
        """What came of a test that ended its process, from what it told the journal before."""

    def replay(self, test: Any) -> Result:
        """Run a test that was saved as JSON data."""

    def code(self, test: Any) -> str:
        """A test (JSON data) as something a person can read and run."""
