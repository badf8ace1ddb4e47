"""The kinds of noise, each as what a thread does."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from swarmtest.seeds import Stream
from swarmtest.threads.noise.settings import KINDS, NoiseSettings
from swarmtest.threads.raw import raw_lock, raw_monotonic, raw_sleep

_TENTH = 1e-4
"""A tenth of a millisecond: what strength counts."""
_LOOKS = 2e-4
_HALT_LOOKS = 1e-3
_MOST_HALT_LOOKS = 50


class ThreadNoise:
    """What a thread draws, and how far it is."""

    __slots__ = ("favour", "left", "made", "passed", "stream", "thread")

    def __init__(self, thread: str, stream: Stream) -> None:
        self.thread = thread
        self.stream = stream
        self.left = 0
        """Probes until the next noise."""
        self.passed = 0
        """Probes passed when the next noise is made."""
        self.made = 0
        self.favour = 0
        """Probes for which it still runs alone."""


class Makers:
    """Makes noise in the thread that asks for it."""

    def __init__(self, settings: NoiseSettings, threads: Mapping[int, ThreadNoise]) -> None:
        self._strength = settings.strength
        self._threads = threads
        self._together = raw_lock()
        self._waiter: Any = None
        self._favoured: ThreadNoise | None = None
        self._halted: ThreadNoise | None = None
        by_kind = {
            "yield": self._yield,
            "sleep": self._sleep,
            "wait": self._wait,
            "synchronised-yield": self._synchronised_yield,
            "busy-wait": self._busy_wait,
            "inverse": self._inverse,
        }
        mixed = settings.kind == "mixed"
        self._makers = [by_kind[kind] for kind in KINDS if kind in by_kind and mixed] or [
            by_kind[settings.kind]
        ]
        self.may_favour = mixed or settings.kind == "inverse"

    def make(self, mine: ThreadNoise) -> None:
        """Make noise of the kind that was asked for."""
        mine.made += 1
        makers = self._makers
        makers[int(mine.stream.random() * len(makers))](mine)

    def _count(self, mine: ThreadNoise) -> int:
        return 1 + int(mine.stream.random() * self._strength)

    def _seconds(self, mine: ThreadNoise) -> float:
        return mine.stream.random() * self._strength * _TENTH

    def _yield(self, mine: ThreadNoise) -> None:
        for _ in range(self._count(mine)):
            raw_sleep(0)

    def _sleep(self, mine: ThreadNoise) -> None:
        raw_sleep(self._seconds(mine))

    def _wait(self, mine: ThreadNoise) -> None:
        """Wait until the next one comes to wait, or the time is over."""
        gate = raw_lock()
        gate.acquire()
        before, self._waiter = self._waiter, gate
        if before is not None:
            with suppress(RuntimeError):  # two may have come at once
                before.release()
        if not gate.acquire(True, self._seconds(mine)) and self._waiter is gate:
            self._waiter = None

    def _synchronised_yield(self, mine: ThreadNoise) -> None:
        with self._together:
            self._yield(mine)

    def _busy_wait(self, mine: ThreadNoise) -> None:
        deadline = raw_monotonic() + self._seconds(mine)
        while raw_monotonic() < deadline:
            raw_sleep(0)  # a thread that keeps the interpreter holds all others as well

    def _inverse(self, mine: ThreadNoise) -> None:
        """One thread, whichever, is to run alone; the others are held from their next probe on."""
        if self._favoured is None:
            threads = list(self._threads.values())
            drawn = threads[int(mine.stream.random() * len(threads))]
            drawn.favour = self._count(mine)
            self._favoured = drawn
            self.heed_favour(mine)

    def heed_favour(self, mine: ThreadNoise) -> None:
        """A thread that runs alone uses up its probes; others are held, but not for long."""
        favoured = self._favoured
        if favoured is mine:
            mine.favour -= 1
            if mine.favour <= 0:
                self._favoured = None
        elif favoured is not None:
            deadline = raw_monotonic() + self._strength * _TENTH
            while self._favoured is favoured:
                raw_sleep(_LOOKS)
                if raw_monotonic() > deadline:
                    self._favoured = None  # it waits for something itself

    def halt(self, mine: ThreadNoise) -> None:
        """Stay here until the other threads get no further; one at a time."""
        if self._halted is not None:
            return
        self._halted = mine
        try:
            before: list[tuple[int, int]] = []
            for _ in range(_MOST_HALT_LOOKS):
                now = [(one.left, one.made) for one in list(self._threads.values())]
                if now == before:
                    break
                before = now
                raw_sleep(_HALT_LOOKS)
        finally:
            self._halted = None
