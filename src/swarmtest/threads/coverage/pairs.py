"""Concurrent pairs: two sites passed one after the other, and whether the thread changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from swarmtest.threads.accelerator import accelerator
from swarmtest.threads.raw import get_ident

SITE_BITS = 24
_MASK = (1 << SITE_BITS) - 1

Access = Callable[..., Any]


class Pairs(Protocol):
    """Notes pairs; there is one in C and one in Python."""

    access: Access
    """The probe: calls the inner probe if there is one, in which other threads may run; then it
    notes the site."""

    def reset(self, inner: Access | None) -> None:
        """Forget all pairs; call this probe before a site is noted."""

    def passes(self, site: int) -> None:
        """Note a site at which there is no probe."""

    def began(self, ident: int) -> None:
        """A thread begins, with this identity."""

    def pairs(self) -> list[int]:
        """The pairs that were passed, as numbers: first site, second site, changed."""


class PythonPairs:
    """Pairs without the accelerator."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._last: list[int] = [-1, 0]
        """The last site and its thread; an identity may be given to another thread later."""
        self._note: Access
        self.access: Access = self._probe(None)

    def reset(self, inner: Access | None) -> None:
        """Forget all pairs; call this probe before a site is noted."""
        self._seen.clear()
        self._last[:] = [-1, 0]
        self.access = self._probe(inner)

    def began(self, ident: int) -> None:
        """A thread begins, with this identity."""
        if self._last[1] == ident:
            self._last[1] = 0

    def pairs(self) -> list[int]:
        """The pairs that were passed."""
        return list(self._seen)

    def passes(self, site: int) -> None:
        """Note a site at which there is no probe."""
        self._note(site)

    def _probe(self, inner: Access | None) -> Access:
        last, seen, ident = self._last, self._seen, get_ident

        def access(site: int, obj: Any = None) -> Any:
            if inner is not None:
                inner(site, obj)
            thread = ident()
            before, last_thread = last
            if before >= 0:
                seen.add(before << 25 | site << 1 | (thread != last_thread))
            last[0], last[1] = site, thread
            return obj

        if inner is None:
            self._note = access
        return access


def new_pairs() -> Pairs:
    """The fastest that can be had."""
    module = accelerator()
    pairs: Pairs = PythonPairs() if module is None else module.Pairs()
    return pairs


def parts_of(pair: int) -> tuple[int, int, bool]:
    """First site, second site, and whether the thread changed.

    >>> parts_of(3 << 25 | 5 << 1 | 1)
    (3, 5, True)
    """
    return pair >> (SITE_BITS + 1), pair >> 1 & _MASK, bool(pair & 1)
