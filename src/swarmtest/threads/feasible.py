"""The feasible mode: woven functions run code that also tells where this interpreter may switch.

Both versions of a module's code have the same functions in the same order. A function that exists
is given the other version of its code; those that it makes follow.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType

_woven: list[tuple[CodeType, Callable[[], CodeType]]] = []
"""The code of each woven module, and how to make the version with events."""
_pairs: list[tuple[CodeType, CodeType]] = []
"""Each code object without and with events. By identity: equal code may be of two modules."""


class _Mode:
    """What woven functions have now."""

    feasible = False
    known = 0
    """How many modules have both versions."""


def note_woven(code: CodeType, with_events: Callable[[], CodeType]) -> None:
    """Remember how to make the version with events of a module's code."""
    _woven.append((code, with_events))


def use_events(feasible: bool) -> None:
    """See that woven functions have events, or have none."""
    is_new = feasible and _Mode.known < len(_woven)
    if feasible == _Mode.feasible and not is_new:
        return
    for code, with_events in _woven[_Mode.known :]:
        _pairs.extend(_matched(code, with_events()))
    _Mode.feasible, _Mode.known = feasible, len(_woven)
    new = {id(one): two for one, two in _pairs}
    if not feasible:
        new = {id(two): one for one, two in _pairs}
    for function in gc.get_objects():
        if type(function) is FunctionType and id(function.__code__) in new:
            function.__code__ = new[id(function.__code__)]


def _matched(one: CodeType, other: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield one, other
    inside = [
        [const for const in code.co_consts if isinstance(const, CodeType)] for code in (one, other)
    ]
    for first, second in zip(*inside, strict=True):
        yield from _matched(first, second)
