"""The policy that makes noise.

Each thread draws from a stream of its own, keyed by the run's seed and the thread's name, and draws
not at each probe but how many probes to pass until the next noise. So noise that is not made costs
little, and a thread makes its noise at the same ones of its probes each time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, NoReturn

from swarmtest.core.configuration import Configuration
from swarmtest.core.dimensions import Choice, Dimension, Flag, Integer
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.race.control.runner import MOST_PROBES
from swarmtest.race.control.stuck import livelock
from swarmtest.race.control.tasks import Task, Unwound
from swarmtest.race.free.policy import FreePolicy
from swarmtest.race.primitives.originals import get_ident, raw_lock, raw_monotonic, raw_sleep
from swarmtest.race.weaving.sites import SITES

# -------------------------------------------------------------------------------------------------
# What noise may be made: how often, of which kind, how strong, and where (after ConTest).

KINDS: Mapping[str, str] = {
    "yield": "let other threads run, up to `strength` times",
    "sleep": "sleep for up to `strength` tenths of a millisecond",
    "wait": "the same, unless the next thread that comes to wait ends it",
    "synchronised-yield": "yield inside a lock that all threads share",
    "busy-wait": "ask for the time, for up to `strength` tenths of a millisecond",
    "inverse": "one thread goes on for up to `strength` probes, while all others are held",
    "mixed": "one of the others, drawn each time",
}
"""The kinds of noise, and what a thread does that makes it."""

MOST = 1000
STRENGTHS = (1, 3, 10, 30, 100)


@dataclass(frozen=True)
class NoiseSettings:
    """The noise of one run.

    >>> NoiseSettings(frequency=500, kind="sleep", strength=20).strength
    20
    >>> NoiseSettings(2000)
    Traceback (most recent call last):
    ...
    swarmtest.UserError: noise: frequency is from 0 (never) to 1000 (always), not 2000
    """

    frequency: int = 100
    """At how many of 1,000 probes there is noise: 0 never, 1000 always."""
    kind: str = "mixed"
    strength: int = 10
    """Yields, tenths of a millisecond, or probes, at most."""
    halt_one_thread: bool = False
    """Now and then, hold one thread until the others get no further."""
    tamper_timeouts: bool = False
    """Shorten sleeps and time limits of waits."""
    shared_only: bool = False
    """Noise only where variables are touched that threads share."""
    one_variable: bool = False
    """Noise only where one variable is touched, drawn by the seed."""
    predecessors: bool = False
    """Noise only at sites after which another thread has been seen to go on."""

    def __post_init__(self) -> None:
        if not _is_count(self.frequency) or self.frequency > MOST:
            raise UserError(
                f"noise: frequency is from 0 (never) to {MOST} (always), not {self.frequency!r}"
            )
        if not _is_count(self.strength) or not 1 <= self.strength <= MOST:
            raise UserError(f"noise: strength is from 1 to {MOST}, not {self.strength!r}")
        if self.kind not in KINDS:
            raise UserError(f"noise: no kind {self.kind!r}{did_you_mean(str(self.kind), KINDS)}")

    @classmethod
    def of(cls, values: Configuration | Mapping[str, Any], prefix: str = "") -> NoiseSettings:
        """The settings that a point of a space with `noise_dimensions` has.

        >>> NoiseSettings.of(noise_space().configuration({"kind": "sleep"})).kind
        'sleep'
        """
        return cls(**{field.name: values[prefix + field.name] for field in fields(cls)})

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON data; ``NoiseSettings(**data)`` makes them again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __str__(self) -> str:
        flags = [f.name.replace("_", " ") for f in fields(self) if getattr(self, f.name) is True]
        words = [f"frequency {self.frequency}", f"kind {self.kind}", f"strength {self.strength}"]
        return ", ".join([*words, *flags])


def noise_dimensions(prefix: str = "") -> list[Dimension]:
    """One dimension for each setting; `prefix` goes before the names, as ``noise_``.

    >>> [dimension.name for dimension in noise_dimensions()][:3]
    ['frequency', 'kind', 'strength']
    """
    default = NoiseSettings()
    flags = [field.name for field in fields(default) if isinstance(field.default, bool)]
    return [
        Integer(f"{prefix}frequency", 0, MOST, step=100, default=default.frequency),
        Choice(f"{prefix}kind", tuple(KINDS), default=default.kind),
        Choice(f"{prefix}strength", STRENGTHS, ordered=True, default=default.strength),
        *(Flag(prefix + name) for name in flags),
    ]


def noise_space() -> Space:
    """The space of all noise settings: 11 frequencies, 7 kinds, 5 strengths, 5 heuristics.

    >>> NoiseSettings.of(noise_space().default()) == NoiseSettings()
    True
    """
    return Space(noise_dimensions())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


# -------------------------------------------------------------------------------------------------
# The kinds of noise, each as what a thread does.

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


# -------------------------------------------------------------------------------------------------

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

    >>> from swarmtest.race.free.runner import free_run
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
