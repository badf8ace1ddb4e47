"""Compare what implementations do: results, exceptions and states, by declared equivalences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence, ValuesView
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import exception_text
from swarmtest.subjects.machine.values import text_of

STATES: dict[str, str] = {
    "len": "len(o)",
    "list": "list(o)",
    "set": "sorted(o, key=repr)",
    "items": "list(o.items())",
    "repr": "repr(o)",
    "str": "str(o)",
    "bool": "bool(o)",
}
"""What `same` can name for any object, besides `OUTCOMES`."""
OUTCOMES = ("result", "exception_type")
"""What `same` can name about one operation."""
_LONGEST = 1000
"""Values of an iterator that are compared."""


class Difference(AssertionError):
    """Two implementations that should behave alike do not.

    Its message names the operation and what differs, not the values, so that one cause is one
    fault; the values are in a note.
    """

    swarmtest_kind = "differential"


class CheckFailed(AssertionError):
    """A check that every class can have has failed."""

    swarmtest_kind = "oracle"


@dataclass(frozen=True)
class CallOutcome:
    """What an operation did: its result, or the exception that it raised.

    >>> outcome_of(lambda: 1 // 0).kind, outcome_of(lambda: 7).result
    ('ZeroDivisionError', 7)
    """

    result: Any = None
    error: Exception | None = None

    @property
    def kind(self) -> str:
        """The name of the exception's type; empty if none was raised."""
        return type(self.error).__name__ if self.error is not None else ""

    def __str__(self) -> str:
        if self.error is not None:
            return f"raised {exception_text(self.error)}"
        return f"returned {text_of(self.result)}"


def outcome_of(call: Callable[[], Any]) -> CallOutcome:
    """Return what a call does. The first values of an iterator are its result."""
    try:
        result = call()
        if hasattr(type(result), "__next__"):
            result = list(itertools.islice(result, _LONGEST))
        return CallOutcome(result)
    except Exception as error:
        return CallOutcome(error=error)


@dataclass(frozen=True)
class KnownCall:
    """A difference, as a function among the known `differences` of a machine sees it.

    >>> KnownCall("pop", (3,), CallOutcome(1), CallOutcome(2)).arguments
    (3,)
    """

    name: str
    arguments: tuple[Any, ...]
    actual: CallOutcome
    expected: CallOutcome


def has_own_eq(cls: type) -> bool:
    """Return whether a class says when two of its objects are equal.

    >>> has_own_eq(int), has_own_eq(object)
    (True, False)
    """
    own, plain = [getattr(each, "__eq__") for each in (cls, object)]  # noqa: B009
    return own is not plain


def same_names(same: str | Sequence[str], states: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names in `same`; raise `UserError` for one that means nothing.

    >>> same_names("result, len", {})
    ('result', 'len')
    """
    words = same.replace(",", " ").split() if isinstance(same, str) else list(same)
    known = [*OUTCOMES, *STATES, *states]
    for word in words:
        if word not in known:
            raise UserError(f"same: nothing is called {word!r}{did_you_mean(word, known)}")
    return tuple(words)


def agree(actual: Any, expected: Any) -> bool:
    """Return whether two results are the same for somebody who uses either implementation.

    A list and a tuple of equal values agree, and so do two values of which neither can be compared
    but whose types have the same name.

    >>> agree([1, float("nan")], (1, float("nan"))), agree(True, 1), agree(None, 0)
    (True, True, False)
    """
    if actual is expected:
        return True
    if isinstance(actual, list | tuple) and isinstance(expected, list | tuple):
        pairs = zip(actual, expected, strict=False)
        return len(actual) == len(expected) and all(agree(a, b) for a, b in pairs)
    try:
        if actual == expected:
            return True
        if actual != actual and expected != expected:  # NaN
            return True
    except Exception:
        return False
    if isinstance(actual, ValuesView | type({}.values())):
        return isinstance(expected, Collection) and agree(list(actual), list(expected))
    if not has_own_eq(type(actual)) and not has_own_eq(type(expected)):
        return type(actual).__name__ == type(expected).__name__
    return _contents_agree(actual, expected)


def _contents_agree(actual: Any, expected: Any) -> bool:
    """Compare two containers of different types, whose `==` knows only its own type."""
    if type(actual) is type(expected):
        return False
    if isinstance(actual, AbstractSet) and isinstance(expected, AbstractSet):
        return set(actual) == set(expected)
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        return dict(actual) == dict(expected)
    if isinstance(actual, str | bytes) or isinstance(expected, str | bytes):
        return False
    if isinstance(actual, Collection) and isinstance(expected, Collection):
        return agree(list(actual), list(expected))
    return False


def same_exception(actual: Exception, expected: Exception) -> bool:
    """Return whether an exception is one that a user of the other implementation would catch."""
    return isinstance(actual, type(expected)) or type(actual).__name__ == type(expected).__name__
