"""Find faults of an operation that come from another operation, which it calls.

If `extend` appends one by one, a bug in `append` shows after both. The check that fails is the same
check of the harness, so the operation after which it fails is all that tells the two faults apart.
They are one if two things hold: the failing step of `extend` calls every function of the program
that the failing step of `append` calls; and where `extend` fails, `append` fails as well. Without
this experiment, `extend` might have a bug of its own.

It is not enough that both call some function, even if each fails where the other one fails. Two
operations that forget to count both fail after the same steps, and both may call the same logger.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any

from swarmtest.core.faults import is_foreign, is_internal
from swarmtest.core.result import Result
from swarmtest.processes.fork_pool import run_isolated
from swarmtest.subjects.subject import Subject

_MOST_REPEATED = 3
"""How often the other operation is tried in a row: `extend` may append several elements."""
_MOST_VARIANTS = 24


def functions_of_last_step(
    subject: Subject, test: Any, step: str, seconds: float
) -> frozenset[str]:
    """Return the functions that the last step of a failing test calls, without the harness.

    There are none if the calls could not be watched.
    """
    return frozenset(run_isolated(lambda: _watched(subject, test, step), seconds, quiet=True).hits)


def _watched(subject: Subject, test: Any, step: str) -> Result:
    """Run a test in this process, which is one of its own, and return the functions as its hits."""
    watch = _StepWatch(step)
    sys.setprofile(watch.note)
    try:
        result = subject.replay(test)
    finally:
        sys.setprofile(None)
    return result._replace(hits=tuple(sorted(watch.called)), covered=())


class _StepWatch:
    """Notes the functions that are called until the function of a step ends, at its last call."""

    def __init__(self, step: str) -> None:
        self.called: set[str] = set()
        self._step = step
        self._frame: FrameType | None = None
        self._harness = ""
        """File and class of the step's function."""

    def note(self, frame: FrameType, event: str, _: object) -> None:
        if event == "return" and frame is self._frame:
            self._frame = None  # what follows are invariants
        if event != "call":
            return
        code, caller = frame.f_code, frame.f_back
        if code.co_name == self._step and caller is not None and _is_ours(caller):
            self._frame, self._harness = frame, _name(code).rpartition(".")[0] + "."
            self.called.clear()
        elif self._frame is not None and not (_is_ours(frame) or is_foreign(code.co_filename)):
            name = _name(code)
            if not name.startswith(self._harness):
                self.called.add(name)


def _is_ours(frame: FrameType) -> bool:
    """Return whether a frame is swarmtest's, or pytest's, which rewrites the asserts of tests."""
    module = str(frame.f_globals.get("__name__", ""))
    return is_internal(frame.f_code.co_filename) or module.partition(".")[0] == "_pytest"


def _name(code: CodeType) -> str:
    return f"{code.co_filename}:{code.co_qualname}"


def shows_in_its_state(
    show: Callable[[list[Any]], bool], before: Sequence[Any], steps: Sequence[Any]
) -> bool:
    """Return whether one of some steps, or a few of it in a row, fails after other steps.

    `show` says whether a list of steps fails as the fault of the operation does.
    """
    variants = [
        [*before, *[step] * times] for times in range(1, _MOST_REPEATED + 1) for step in steps
    ]
    return any(show(parts) for parts in variants[:_MOST_VARIANTS])


def steps_of(name: str, tests: Sequence[Sequence[Any]], name_of: Callable[[Any], str]) -> list[Any]:
    """Return the different steps of an operation in some tests, in their order."""
    found: list[Any] = []
    for step in _all_steps(tests):
        if name_of(step) == name and step not in found:
            found.append(step)
    return found


def _all_steps(tests: Sequence[Sequence[Any]]) -> Iterator[Any]:
    for test in tests:
        yield from reversed(test)
