"""Noise for free runs: how it is made, and the policy that makes it.

Each thread draws from a random stream of its own, keyed by the run's seed and the thread's name. It
does not draw at each probe, but draws how many probes to pass until the next noise. So probes
without noise cost little, and a thread makes noise at the same probes in each run.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from swarmtest.core.seeds import Stream
from swarmtest.race.control.runner import MOST_PROBES
from swarmtest.race.control.stuck import livelock_fault
from swarmtest.race.control.tasks import ThreadTask
from swarmtest.race.free.policy import FreePolicy
from swarmtest.race.noise_settings import MOST, NoiseSettings
from swarmtest.race.primitives.policy import get_ident, raw_lock, raw_monotonic, raw_sleep
from swarmtest.race.unwinding import Unwound
from swarmtest.race.weaving.sites import SITES

# Making noise.

_STRENGTH_UNIT = 1e-4
"""A tenth of a millisecond, the unit of strength."""
_POLL_SECONDS = 2e-4
_HALT_POLL_SECONDS = 1e-3
_MAX_HALT_POLLS = 50


class ThreadNoise:
    """The noise state of one thread: its random stream, and its counts of probes and noises."""

    __slots__ = ("favour", "left", "made", "passed", "stream", "thread")

    def __init__(self, thread: str, stream: Stream) -> None:
        self.thread = thread
        self.stream = stream
        self.left = 0
        """The number of probes until the next noise."""
        self.passed = 0
        """The number of probes passed when the next noise is made."""
        self.made = 0
        self.favour = 0
        """The number of probes for which it still runs alone."""


class NoiseMakers:
    """The functions that make noise in the calling thread, and the state they share."""

    def __init__(self, settings: NoiseSettings, threads: Mapping[int, ThreadNoise]) -> None:
        self._strength = settings.strength
        self._threads = threads
        self._together = raw_lock()
        self._waiter: Any = None
        self._sole_runner: ThreadNoise | None = None
        self._halted: ThreadNoise | None = None
        by_kind = {
            "yield": self._yield,
            "sleep": self._sleep,
            "wait": self._wait,
            "synchronised-yield": self._synchronised_yield,
            "busy-wait": self._busy_wait,
            "inverse": self._inverse,
        }
        self._makers = [by_kind[kind] for kind in settings.kinds]
        self.may_favour = "inverse" in settings.kinds

    def make(self, mine: ThreadNoise) -> None:
        """Make noise of one of the configured kinds."""
        mine.made += 1
        makers = self._makers
        if makers:
            makers[int(mine.stream.random() * len(makers))](mine)

    def _count(self, mine: ThreadNoise) -> int:
        return 1 + int(mine.stream.random() * self._strength)

    def _seconds(self, mine: ThreadNoise) -> float:
        return mine.stream.random() * self._strength * _STRENGTH_UNIT

    def _yield(self, mine: ThreadNoise) -> None:
        for _ in range(self._count(mine)):
            raw_sleep(0)

    def _sleep(self, mine: ThreadNoise) -> None:
        raw_sleep(self._seconds(mine))

    def _wait(self, mine: ThreadNoise) -> None:
        """Wait until the next thread comes to wait, or the time is over."""
        gate = raw_lock()
        gate.acquire()
        previous, self._waiter = self._waiter, gate
        if previous is not None:
            with suppress(RuntimeError):  # two threads may arrive at once
                previous.release()
        if not gate.acquire(True, self._seconds(mine)) and self._waiter is gate:
            self._waiter = None

    def _synchronised_yield(self, mine: ThreadNoise) -> None:
        with self._together:
            self._yield(mine)

    def _busy_wait(self, mine: ThreadNoise) -> None:
        deadline = raw_monotonic() + self._seconds(mine)
        while raw_monotonic() < deadline:
            raw_sleep(0)  # without this the thread would keep the GIL and stop all others

    def _inverse(self, mine: ThreadNoise) -> None:
        """Let one thread, drawn at random, run alone; others are held from their next probe on."""
        if self._sole_runner is None:
            threads = list(self._threads.values())
            runner = threads[int(mine.stream.random() * len(threads))]
            runner.favour = self._count(mine)
            self._sole_runner = runner
            self.heed_favour(mine)

    def heed_favour(self, mine: ThreadNoise) -> None:
        """Count a probe of the thread that runs alone; hold any other thread, but not for long."""
        runner = self._sole_runner
        if runner is mine:
            mine.favour -= 1
            if mine.favour <= 0:
                self._sole_runner = None
        elif runner is not None:
            deadline = raw_monotonic() + self._strength * _STRENGTH_UNIT
            while self._sole_runner is runner:
                raw_sleep(_POLL_SECONDS)
                if raw_monotonic() > deadline:
                    self._sole_runner = None  # it waits for something itself

    def halt(self, mine: ThreadNoise) -> None:
        """Stay here until the other threads make no more progress; one thread at a time."""
        if self._halted is not None:
            return
        self._halted = mine
        try:
            previous: list[tuple[int, int]] = []
            for _ in range(_MAX_HALT_POLLS):
                current = [(other.left, other.made) for other in list(self._threads.values())]
                if current == previous:
                    break
                previous = current
                raw_sleep(_HALT_POLL_SECONDS)
        finally:
            self._halted = None


# The policy.

_HALT_SHARE = 0.1
"""The share of noise that is a halt if that heuristic is on."""

_MAX_NOISES = 1000
"""The number of noises after which a thread is left alone, since a long run has to end too."""
_MAX_PLACES = 200


class Noise(FreePolicy):
    """A policy that disturbs threads at probes and at synchronisation; create one for each run.

    `shared` is the set of sites of shared variables (`shared_sites`), which some heuristics need;
    with None, all sites count as shared. `switched` is the set of sites after which another thread
    continued in earlier runs; sites seen in this run are added. A thread that passes more than
    `most_probes` probes is in a loop that does not end.

    >>> from swarmtest.race.free.runner import free_run
    >>> free_run(lambda: None, Noise(NoiseSettings(frequency=500), seed=1)).fault is None
    True
    """

    watches_loops = True

    def __init__(
        self,
        settings: NoiseSettings,
        seed: int,
        shared: Collection[int] | None = None,
        switched: Collection[int] = (),
        most_probes: int = MOST_PROBES,
    ) -> None:
        super().__init__()
        self._most_probes = most_probes
        self.settings = settings
        self.switched = set(switched)
        self._stream = Stream(seed)
        self._threads: dict[int, ThreadNoise] = {}
        self.places: deque[tuple[str, int]] = deque(maxlen=_MAX_PLACES)
        """The disturbed threads in order, each with the number of its probe. Only probes at
        which noise may be made are counted."""
        self._makers = NoiseMakers(settings, self._threads)
        self._never = settings.frequency == 0
        self._log = 0.0 if settings.frequency in (0, MOST) else math.log1p(-self._share)
        self.only = self._chosen_sites(shared)
        """The sites where noise may be made; None for all sites and synchronisation."""
        self._at_synchronisation = self.only is None and not settings.predecessors
        self.access = self._probe()  # type: ignore[method-assign]

    @property
    def _share(self) -> float:
        return self.settings.frequency / MOST

    def _chosen_sites(self, shared: Collection[int] | None) -> frozenset[int] | None:
        settings = self.settings
        if not settings.one_variable:
            restricts = settings.shared_only and shared is not None
            return frozenset(shared or ()) if restricts else None
        sites = range(len(SITES)) if shared is None else shared
        by_name: dict[tuple[str, str], list[int]] = {}
        for site in sites:
            accessed = SITES[site]
            if accessed.kind != "call" or shared is not None:
                key = accessed.what, accessed.name or accessed.variable
                by_name.setdefault(key, []).append(site)
        if not by_name:
            return frozenset()
        drawn = self._stream.split("variable").choice(sorted(by_name))
        return frozenset(by_name[drawn])

    def begins(self, task: ThreadTask) -> None:
        """Give a new thread its own random stream."""
        mine = ThreadNoise(task.name, self._stream.split(task.name))
        mine.left = mine.passed = self._gap(mine)
        self._threads[get_ident()] = mine

    def ends(self, task: ThreadTask) -> None:
        """Forget a thread that has ended."""
        del self._threads[task.ident]

    def _gap(self, mine: ThreadNoise) -> int:
        """Return the number of probes until the next noise."""
        if self._never or mine.made >= _MAX_NOISES:
            return self._most_probes
        if not self._log:
            return 0
        return int(math.log(1.0 - mine.stream.random()) / self._log)

    def _probe(self) -> Callable[..., Any]:
        threads, ident = self._threads, get_ident
        only, predecessors = self.only, self.settings.predecessors
        disturb_if_due, is_predecessor = self._disturb_if_due, self._is_predecessor
        may_favour = self._makers.may_favour

        def plain(site: int, obj: Any = None) -> Any:
            mine = threads.get(ident())
            if mine is not None:
                if mine.left and not may_favour:
                    mine.left -= 1
                else:
                    disturb_if_due(mine)
            return obj

        def restricted(site: int, obj: Any = None) -> Any:
            if only is None or site in only:
                mine = threads.get(ident())
                if mine is not None and (not predecessors or is_predecessor(site, mine)):
                    disturb_if_due(mine)
            return obj

        return plain if only is None and not predecessors else restricted

    def _disturb_if_due(self, mine: ThreadNoise) -> None:
        """Make noise if it is due; a thread is where noise may be made."""
        makers = self._makers
        if makers.may_favour:
            makers.heed_favour(mine)
        if mine.left:
            mine.left -= 1
            return
        if mine.passed >= self._most_probes:
            self._fail_with_livelock()
        place = mine.thread, mine.passed + 1
        mine.left = self._gap(mine)
        mine.passed += mine.left + 1
        if self._never or mine.made >= _MAX_NOISES:
            return
        self.places.append(place)
        if self.settings.halt_one_thread and mine.stream.random() < _HALT_SHARE:
            makers.halt(mine)
        else:
            makers.make(mine)

    def _fail_with_livelock(self) -> NoReturn:
        self.fail(livelock_fault(self._most_probes, self.tasks))
        raise Unwound

    _last: tuple[int, ThreadNoise] | None = None

    def _is_predecessor(self, site: int, mine: ThreadNoise) -> bool:
        """Return whether another thread has been seen to continue after this site.

        Also add the last site to those sites if another thread passed it.
        """
        last, self._last = self._last, (site, mine)
        if last is not None and last[1] is not mine:
            self.switched.add(last[0])
        return site in self.switched

    def before(self, kind: str) -> None:
        """Make noise before a thread synchronises, if it is due."""
        if self._at_synchronisation and not self._never:
            self._disturb_if_due(self._threads[get_ident()])

    def shortened(self, seconds: float) -> float:
        """Return the time of a sleep or wait, shortened if the settings say so."""
        if not self.settings.tamper_timeouts:
            return seconds
        return seconds * self._threads[get_ident()].stream.random()
