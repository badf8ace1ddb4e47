"""The policy that makes noise.

Each thread draws from a stream of its own, keyed by the run's seed and the thread's name, and draws
not at each probe but how many probes to pass until the next noise. So noise that is not made costs
little, and a thread makes its noise at the same ones of its probes each time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, NoReturn

from swarmtest.seeds import Stream
from swarmtest.threads.free_policy import FreePolicy
from swarmtest.threads.noise.makers import Makers, ThreadNoise
from swarmtest.threads.noise.settings import MOST, NoiseSettings
from swarmtest.threads.raw import get_ident
from swarmtest.threads.running import MOST_PROBES
from swarmtest.threads.sites import SITES
from swarmtest.threads.stuck import livelock
from swarmtest.threads.tasks import Task, Unwound

_HALTS = 0.1
"""The share of noise that is a halt, with that heuristic."""

_MOST_MADE = 1000
"""A thread that was disturbed so often is left alone: also a run that takes long has to end."""
_MOST_PLACES = 200


class Noise(FreePolicy):
    """Disturbs threads at probes and at synchronisation; one object per run.

    `shared`: the sites of shared variables (`shared_sites`), which the heuristics need that look
    for them; with None, all sites count as such. `switched`: sites after which another thread went
    on in earlier runs; what is seen in this run is added. `most_probes`: a thread that passes more
    is in a loop that does not end.

    >>> from swarmtest.threads import free_run
    >>> free_run(lambda: None, Noise(NoiseSettings(frequency=500), seed=1)).fault is None
    True
    """

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
        self.places: deque[tuple[str, int]] = deque(maxlen=_MOST_PLACES)
        """Who was disturbed, before the how manieth of its probes that count, in order."""
        self._makers = Makers(settings, self._threads)
        self._never = settings.frequency == 0
        self._log = 0.0 if settings.frequency in (0, MOST) else math.log1p(-self._share)
        self.only = self._chosen_sites(shared)
        """The sites where noise may be made; None: all, and synchronisation."""
        self._at_synchronisation = self.only is None and not settings.predecessors
        self.access = self._probe()  # type: ignore[method-assign]

    @property
    def _share(self) -> float:
        return self.settings.frequency / MOST

    def _chosen_sites(self, shared: Collection[int] | None) -> frozenset[int] | None:
        settings = self.settings
        if not settings.one_variable:
            wanted = settings.shared_only and shared is not None
            return frozenset(shared or ()) if wanted else None
        sites = range(len(SITES)) if shared is None else shared
        by_name: dict[tuple[str, str], list[int]] = {}
        for site in sites:
            place = SITES[site]
            if place.kind != "call" or shared is not None:
                by_name.setdefault((place.what, place.name or place.variable), []).append(site)
        if not by_name:
            return frozenset()
        drawn = self._stream.split("variable").choice(sorted(by_name))
        return frozenset(by_name[drawn])

    def begins(self, task: Task) -> None:
        """A thread begins; it has its own random stream."""
        mine = ThreadNoise(task.name, self._stream.split(task.name))
        mine.left = mine.passed = self._gap(mine)
        self._threads[get_ident()] = mine

    def ends(self, task: Task) -> None:
        """A thread has ended."""
        del self._threads[task.ident]

    def _gap(self, mine: ThreadNoise) -> int:
        """How many probes to pass until the next noise."""
        if self._never or mine.made >= _MOST_MADE:
            return self._most_probes
        if not self._log:
            return 0
        return int(math.log(1.0 - mine.stream.random()) / self._log)

    def _probe(self) -> Callable[..., Any]:
        threads, ident = self._threads, get_ident
        only, predecessors = self.only, self.settings.predecessors
        passes, follows, favours = self._passes, self._follows, self._makers.may_favour

        def plain(site: int, obj: Any = None) -> Any:
            mine = threads.get(ident())
            if mine is not None:
                if mine.left and not favours:
                    mine.left -= 1
                else:
                    passes(mine)
            return obj

        def chosen(site: int, obj: Any = None) -> Any:
            if only is None or site in only:
                mine = threads.get(ident())
                if mine is not None and (not predecessors or follows(site, mine)):
                    passes(mine)
            return obj

        return plain if only is None and not predecessors else chosen

    def _passes(self, mine: ThreadNoise) -> None:
        """A thread is where noise may be made."""
        makers = self._makers
        if makers.may_favour:
            makers.heed_favour(mine)
        if mine.left:
            mine.left -= 1
            return
        if mine.passed >= self._most_probes:
            self._livelock()
        place = mine.thread, mine.passed + 1
        mine.left = self._gap(mine)
        mine.passed += mine.left + 1
        if self._never or mine.made >= _MOST_MADE:
            return
        self.places.append(place)
        if self.settings.halt_one_thread and mine.stream.random() < _HALTS:
            makers.halt(mine)
        else:
            makers.make(mine)

    def _livelock(self) -> NoReturn:
        self.fail(livelock(self._most_probes, self.tasks))
        raise Unwound

    _last: tuple[int, ThreadNoise] | None = None

    def _follows(self, site: int, mine: ThreadNoise) -> bool:
        """Whether another thread has been seen to go on after this site; and learn of the last."""
        last, self._last = self._last, (site, mine)
        if last is not None and last[1] is not mine:
            self.switched.add(last[0])
        return site in self.switched

    def before(self, kind: str) -> None:
        """A thread is about to synchronise."""
        if self._at_synchronisation and not self._never:
            self._passes(self._threads[get_ident()])

    def shortened(self, seconds: float) -> float:
        """Times of sleeps and waits, made shorter if the settings say so."""
        if not self.settings.tamper_timeouts:
            return seconds
        return seconds * self._threads[get_ident()].stream.random()
