"""Batons: who has its own may run."""

from __future__ import annotations

from typing import Protocol

from swarmtest.threads.accelerator import accelerator
from swarmtest.threads.raw import raw_lock


class Baton(Protocol):
    """Held by its thread unless that may run; only the thread itself waits for it."""

    def acquire(self) -> None:
        """Wait until this thread may run."""

    def release(self) -> None:
        """Let the thread run whose baton this is."""

    def hand(self, other: Baton) -> None:
        """Let another thread run, and wait until this one may."""


class PythonBaton:
    """A baton without the accelerator."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = raw_lock()
        self._lock.acquire()

    def acquire(self) -> None:
        """Wait until this thread may run."""
        self._lock.acquire()

    def release(self) -> None:
        """Let the thread run whose baton this is."""
        self._lock.release()

    def hand(self, other: Baton) -> None:
        """Let another thread run, and wait until this one may."""
        other.release()
        self.acquire()


def new_baton() -> Baton:
    """The fastest that can be had; it is held."""
    module = accelerator()
    baton: Baton = PythonBaton() if module is None else module.Baton()
    return baton
