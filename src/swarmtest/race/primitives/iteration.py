"""Let threads switch between the steps of a loop over a container that another thread may change.

``for name in self.metrics`` and ``[name for name in self.metrics]`` read the container again at
each step, although the source names it once. Woven code iterates over what ``__i__`` returns: the
iterable itself, or, while a policy is on that asks for it, a generator that passes a probe at each
step.
"""

from __future__ import annotations

import gc
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

_CONTAINERS = (list, dict, set, deque, bytearray)
_EMPTY: tuple[Any, ...] = ([], {}, set(), deque(), {}.values(), {}.items())
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_LAZY: tuple[type, ...] = (
    enumerate,
    zip,
    map,
    filter,
    reversed,
    *(type(iter(empty)) for empty in _EMPTY),
)
"""Iterators that read their container at each step."""
_MAX_NESTING = 4


def looped(iterable: Any, is_local: bool, site: int, access: Callable[[int, Any], Any]) -> Any:
    """Return what a loop iterates over: a generator that passes probes, or the iterable itself.

    A container that no other thread can know is left alone. `is_local` tells that a local variable
    leads to the iterable.

    >>> seats = {"window": 3}
    >>> box = [seats]
    >>> list(looped(seats.items(), False, 7, lambda site, obj: print(site, obj)))
    7 {'window': 3}
    [('window', 3)]
    """
    container = iterable
    if not isinstance(iterable, _CONTAINERS):
        container = _container_behind(iterable)
        if container is None:
            return iterable
    elif sys.getrefcount(iterable) <= _FRESH_COUNT + 1 + is_local:
        return iterable
    return _steps(iterable, container, site, access)


def _container_behind(iterable: Any) -> Any:
    """Return the container that a view or an iterator reads."""
    for _ in range(_MAX_NESTING):
        if not isinstance(iterable, _READING):
            return None
        parts = [part for part in gc.get_referents(iterable) if isinstance(part, _READABLE)]
        if not parts:
            return None
        iterable = parts[0]
        if isinstance(iterable, _CONTAINERS):
            return iterable
    return None


def _count(iterable: Any) -> int:
    return sys.getrefcount(iterable)


_READING = (*_VIEWS, *_LAZY)
_READABLE = (*_CONTAINERS, *_READING)
_FRESH_COUNT = _count([])
"""What `sys.getrefcount` says in a function about an argument that nothing else refers to."""


def _steps(
    iterable: Any, container: Any, site: int, access: Callable[[int, Any], Any]
) -> Iterator[Any]:
    for item in iterable:
        access(site, container)
        yield item
