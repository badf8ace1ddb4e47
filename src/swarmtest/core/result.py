"""What came of one test: a verdict, perhaps a fault, what was used, what was hit, and its cost."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from swarmtest.core.configuration import Configuration
from swarmtest.core.targets import Hits


class Verdict(enum.IntEnum):
    """How a test ended.

    >>> Verdict.FAILED.label
    'failed'
    """

    PASSED = 0
    FAILED = 1
    INVALID = 2
    """The generator gave nothing that could be run: never a fault of the subject. `missing` says
    why."""

    @property
    def label(self) -> str:
        """The word used in tables, exports and on the command line."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure's signature: two failures with the same signature are the same fault.

    >>> Fault("exception", "OverflowError: stack is full [stack.push]").id
    '4ee18053'
    """

    kind: str
    """``exception``, ``invariant``, ``signal``, ``exit``, ``timeout``, ``memory``; of commands also
    ``message``, ``differential`` and ``oracle``."""
    signature: str
    """One line that stays the same when the same bug shows again."""
    details: str = field(default="", compare=False)
    """What a person wants to see: the traceback or stack of one occurrence."""

    @property
    def id(self) -> str:
        """A short name for the command line, the same in every store."""
        # Random text may hold lone surrogates, which UTF-8 refuses.
        text = f"{self.kind}\0{self.signature}".encode(errors="backslashreplace")
        return hashlib.blake2b(text, digest_size=4).hexdigest()


class Result(NamedTuple):
    """What came of one test. A tuple, because one is made per test.

    >>> Result(Verdict.PASSED, steps=20).verdict.label
    'passed'
    """

    verdict: Verdict
    fault: Fault | None = None
    used: tuple[int, ...] = ()
    """How often each feature really appeared, in the space's order: not what was enabled."""
    hits: tuple[str, ...] = ()
    """The targets this test reached, by name ("kind:name")."""
    steps: int = 0
    """The parts of the test that were executed."""
    skipped: int = 0
    """Parts that could not run (a value or a guard was gone) or were spent by a weight below 1."""
    test: Any = None
    """The test as plain data (JSON), when it failed or was asked for."""
    trial: int = -1
    """The number of the trial in its campaign (filled in by the campaign)."""
    configuration: Configuration | None = None
    """What the test was generated from (filled in by the campaign)."""
    cpu_seconds: float = 0.0
    """A subject tells what child processes took; the campaign adds the process of the test."""
    wall_seconds: float = 0.0
    covered: tuple[Hits, ...] = ()
    """More targets that it reached, as whoever watched it numbers them."""
    missing: str = ""
    """Why what it reached is not known in full; empty when it is."""
    measures: Mapping[str, float] = {}
    """Numbers that the test measured, by name: what a search may look for the best of."""
