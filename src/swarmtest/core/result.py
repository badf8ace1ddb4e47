"""The result of one test: verdict, fault, features used, targets hit, and cost."""

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
    """The generator produced nothing that could be run. This is never a fault of the subject;
    `missing` says why."""

    @property
    def label(self) -> str:
        """Return the word used in tables, exports and on the command line."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Fault:
    """What identifies a failure: failures with the same kind and signature are the same fault.

    >>> Fault("exception", "OverflowError: stack is full [stack.push]").id
    '4ee18053'
    """

    kind: str
    """``exception``, ``invariant``, ``signal``, ``exit``, ``timeout`` or ``memory``; for commands
    also ``message``, ``differential`` or ``oracle``."""
    signature: str
    """One line that stays the same when the same bug appears again."""
    details: str = field(default="", compare=False)
    """The traceback or stack of one occurrence, for people to read."""
    name: str = field(default="", compare=False)
    """The id under which a store knows it; empty if that was not looked up."""

    @property
    def id(self) -> str:
        """Return a short name for the command line; `of_subject` says where it comes from."""
        return self.name or self.key

    @property
    def key(self) -> str:
        """Return a hash of kind and signature, which is equal for equal faults."""
        return _short_hash(self.kind, self.signature)

    def of_subject(self, identity: str) -> Fault:
        """Return the fault with its id in any store; `identity` is that of the subject.

        Two programs may fail in the same way; their faults have different ids.

        >>> fault = Fault("exit", "exit status 1")
        >>> fault.of_subject("a.py::A").id == fault.of_subject("b.py::A").id
        False
        """
        name = _short_hash(identity, self.kind, self.signature) if identity else ""
        return Fault(self.kind, self.signature, self.details, name)

    def is_called(self, name: str) -> bool:
        """Return whether a name is the id of this fault, or its key."""
        return name in (self.id, self.key)


def _short_hash(*texts: str) -> str:
    # Random text may hold lone surrogates, which UTF-8 refuses.
    whole = "\0".join(texts).encode(errors="backslashreplace")
    return hashlib.blake2b(whole, digest_size=4).hexdigest()


class Result(NamedTuple):
    """The result of one test; a named tuple, because every test creates one.

    >>> Result(Verdict.PASSED, steps=20).verdict.label
    'passed'
    """

    verdict: Verdict
    fault: Fault | None = None
    used: tuple[int, ...] = ()
    """How often each feature appeared, in the space's order, whether or not it was enabled."""
    hits: tuple[str, ...] = ()
    """The targets this test reached, by name ("kind:name")."""
    steps: int = 0
    """How many parts of the test were executed."""
    skipped: int = 0
    """How many parts could not run (a value or a guard was gone) or were skipped by a weight below
    1."""
    test: Any = None
    """The test as plain data (JSON), if it failed or if it was asked for."""
    trial: int = -1
    """The number of the trial in its campaign (set by the campaign)."""
    configuration: Configuration | None = None
    """The configuration that the test was generated from (set by the campaign)."""
    cpu_seconds: float = 0.0
    """A subject sets the time of child processes; the campaign adds that of the test's process."""
    wall_seconds: float = 0.0
    covered: tuple[Hits, ...] = ()
    """More targets that the test reached, numbered by the catalogue of each coverage tool."""
    missing: str = ""
    """Why the reached targets are not known completely; empty if they are."""
    measures: Mapping[str, float] = {}
    """Numbers that the test measured, by name, which a search can optimise."""
    killed: bool = False
    """Whether a process that it had started was killed from outside, so that it ran again."""
