"""Campaigns among the dying: everything is killed, and nothing may be lost or counted twice.

    python benchmarks/chaos.py [--quick]

Real Dask schedulers and workers, real SQLite and PostgreSQL stores. Each part ends with a
comparison of every trial with an undisturbed run of the same seed: all fields but the times.
`lost` and `duplicated` count trials over all parts. `--quick` runs two of the parts, with fewer
trials on one cluster of one worker, and kills each kind of process once. Nothing stays behind when
this script is killed itself (`chaos_guard.py`). The last line is one JSON object.
"""

from __future__ import annotations

import contextlib
import functools
import random
import resource
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos_guard import guarded
from chaos_processes import SWARMTEST, CampaignProcess, Database, Keeper, wait_for
from harness import (
    arguments,
    print_figures,
    print_table,
    progress,
    require_modules,
    require_programs,
)

from swarmtest.core.errors import UserError
from swarmtest.core.targets import unpack_hits
from swarmtest.store import open_store

SUBJECT = """
import os, time
from swarmtest import Machine, Pool, action, consumes, integers, invariant

NAP = float(os.environ.get("NAP", "0")) / 1000

class Steady(Machine):
    steps = (5, 30)
    files = Pool()

    def start(self):
        self.numbers, self.opened = [], 0
        time.sleep(NAP)  # not under an if: what a test reaches must not depend on it

    @action(value=integers(0, 9))
    def push(self, value):
        self.numbers.append(value)
        if len(self.numbers) > 12:
            self.event("many numbers")

    @action(when=lambda self: self.numbers)
    def pop(self):
        self.event(f"popped {self.numbers.pop() // 4}")

    @action(into=files)
    def open(self):
        self.opened += 1
        return f"file {self.opened}"

    @action(file=consumes(files))
    def close(self, file):
        self.opened -= 1
        if len(self.numbers) == 3:
            raise KeyError(file)

    @invariant
    def few_files(self):
        assert self.opened < 9
"""
CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>
/* The wall clock jumps by an hour, forth and back, every 700 ms. */
static long shift(void) {
    static int (*real)(clockid_t, struct timespec *);
    struct timespec now;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    real(CLOCK_MONOTONIC, &now);
    long long ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
    return (ms / 700) % 3 == 0 ? 0 : (ms / 700) % 3 == 1 ? 3600 : -3600;
}
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int answer = real(id, t);
    if (!answer && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += shift();
    return answer;
}
time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""
NAP = 2.0
"""Milliseconds that an ordinary worker sleeps in each test, so that there is time to kill it."""
_QUIETLY = ("-q", "--no-reduce", "-j", "2")
Trials = list[tuple[object, ...]]


@dataclass
class Part:
    """What one kind of trouble came to."""

    name: str
    trials: int = 0
    lost: int = 0
    duplicated: int = 0
    different: int = 0
    killed: str = ""
    starts: int = 1
    seconds: float = 0.0

    def compare(self, there: Trials, undisturbed: Trials, counted: int) -> None:
        """`counted`: how many tests the campaign said it had run."""
        numbers = [row[0] for row in there]
        known = {row[0]: row for row in undisturbed}
        self.trials += len(undisturbed)
        self.lost += len(known.keys() - set(numbers))
        self.duplicated += len(numbers) - len(set(numbers)) + abs(counted - len(set(numbers)))
        self.different += sum(known.get(row[0]) != row for row in there)


def read(store: str, campaign: int) -> Trials:
    """All of the trials that must not depend on luck."""
    with open_store(store, must_exist=True, read_only=True) as opened:
        names = opened.targets()
        return [
            (
                *trial._replace(hits=None, cpu_ns=0, wall_ns=0),
                *(sorted(str(names[i]) for i in unpack_hits(trial.hits)) if trial.hits else ()),
            )
            for trial in opened.trials(campaign)
        ]


def stored(store: str, campaign: int = 1) -> int:
    """How many trials are kept so far."""
    try:
        with open_store(store, must_exist=True, read_only=True) as opened:
            return opened.summary(campaign)["trials"]
    except UserError:
        return 0


class Chaos:
    """What the parts share."""

    def __init__(self, place: Path, tests: int, quick: bool) -> None:
        self.place = place
        self.tests = tests
        self.quick = quick
        self.pause = 0.2 if quick else 1.0
        """The longest time, in seconds, from a batch of trials to the next kill."""
        self.subject = place / "subject"  # a directory of its own, because all of it travels
        self.subject.mkdir()
        (self.subject / "steady.py").write_text(SUBJECT)
        self._undisturbed: dict[int, Trials] = {}
        self._campaigns: list[CampaignProcess] = []
        self._shared: Keeper | None = None

    def words(self, seed: int = 5) -> list[str]:
        """The campaign."""
        return ["steady.py", "-n", str(self.tests), "--seed", str(seed), "--coverage", "line"]

    def undisturbed(self, seed: int = 5) -> Trials:
        """What a local run with the same seed gives."""
        if seed not in self._undisturbed:
            store = str(self.place / f"undisturbed{seed}.db")
            done = subprocess.run(
                [*SWARMTEST, "run", *self.words(seed), "--store", store, *_QUIETLY],
                cwd=self.subject,
                capture_output=True,
                text=True,
            )
            assert done.returncode in (0, 1), done.stderr
            self._undisturbed[seed] = read(store, 1)
        return self._undisturbed[seed]

    @contextlib.contextmanager
    def cluster(self, name: str, *naps: float) -> Iterator[Keeper]:
        """A cluster with a worker for each nap: milliseconds that it sleeps in each test.

        A quick run has one cluster of one worker for all parts.
        """
        if self.quick:
            self._shared = self._shared or self._keeper("cluster", [NAP])
            yield self._shared
            return
        keeper = self._keeper(name, naps)
        try:
            yield keeper
        finally:
            keeper.close()

    def _keeper(self, name: str, naps: Sequence[float]) -> Keeper:
        directory = self.place / name
        directory.mkdir()
        return Keeper(directory, [{"NAP": str(nap)} for nap in naps])

    def campaign(self, store: str, keeper: Keeper, seed: int = 5, **env: str) -> CampaignProcess:
        """A campaign that has begun."""
        begun = CampaignProcess(self.subject, store, keeper.executor, self.words(seed), **env)
        self._campaigns.append(begun)
        return begun

    def close(self) -> None:
        """End the campaigns that still run, and the cluster of a quick run."""
        for campaign in self._campaigns:
            campaign.kill()
        if self._shared is not None:
            self._shared.close()

    def store(self, name: str) -> str:
        """A file for a store."""
        return str(self.place / f"{name}.db")


def until_done(campaign: CampaignProcess, part: Part) -> int:
    """Resume until a campaign is done; how many tests it says it has run."""
    while True:
        last = campaign.end()
        if last:
            part.starts = campaign.starts
            return int(last["progress"]["tests"])
        if campaign.starts > 12:
            raise SystemExit(f"chaos: {part.name}: it gives up again and again: {campaign.said[0]}")
        progress(f"{part.name}: the campaign gave up, and is resumed")
        campaign.start_again()


def more_is_done(campaign: CampaignProcess, store: str, before: int) -> bool:
    """Whether trials were added, or none will be."""
    return stored(store) > before or not campaign.running


def storm(chaos: Chaos, part: Part, store: str, database: Database | None, kills: int) -> None:
    """Kill processes of a running campaign; which one dies next, and when, follows from a seed."""
    rng = random.Random(7)
    victims = ["worker", "nanny", "scheduler", "campaign"] + ["database"] * (database is not None)
    order = [v for _ in range(-(-kills // len(victims))) for v in rng.sample(victims, len(victims))]
    deaths: dict[str, int] = {}
    with chaos.cluster(part.name.replace(" ", "-"), NAP, NAP) as keeper:
        campaign = chaos.campaign(store, keeper)
        for victim in order[:kills]:
            before = stored(store)
            wait_for(functools.partial(more_is_done, campaign, store, before), "more is done")
            time.sleep(rng.random() * chaos.pause)
            if not campaign.running and campaign.end():
                raise SystemExit(f"chaos: {part.name}: done before all were killed: more tests")
            progress(f"{part.name}: {stored(store):,} of {chaos.tests:,} trials are stored")
            if victim == "campaign":
                found = campaign.kill()
            elif victim == "database" and database is not None:
                found = database.kill()
                database.start()
            else:
                which = rng.randrange(keeper.workers)
                found = wait_for(functools.partial(keeper.kill, victim, which), f"a {victim}")
            deaths[victim] = deaths.get(victim, 0) + found
            progress(f"{part.name}: killed the {victim}")
            if not campaign.running:
                campaign.start_again()
        counted = until_done(campaign, part)
    part.killed = ", ".join(f"{count} {name}" for name, count in sorted(deaths.items()))
    part.compare(read(store, 1), chaos.undisturbed(), counted)


def storm_on_sqlite(chaos: Chaos, part: Part) -> None:
    """Workers, nannies, scheduler and campaign die."""
    storm(chaos, part, chaos.store("storm"), None, 12)


def storm_on_postgresql(chaos: Chaos, part: Part) -> None:
    """Those, and the database."""
    place = chaos.place / "pg"
    place.mkdir()
    database = Database(place)
    try:
        storm(chaos, part, database.url("storm"), database, 5 if chaos.quick else 15)
    finally:
        database.close()


def disk_full(chaos: Chaos, part: Part) -> None:
    """The store's disk has no room; later it has."""
    with (
        small_disk(chaos) as (directory, more_room, kind),
        chaos.cluster("disk", 0, 0) as keeper,
    ):
        store = str(directory / "full.db")
        campaign = chaos.campaign(store, keeper)
        if campaign.end():
            raise SystemExit("chaos: the disk was not full: more tests")
        more_room()
        campaign.start_again()
        counted = until_done(campaign, part)
        part.killed = f"{kind}: {campaign.said[0].removeprefix('swarmtest: ')[:60]}..."
        part.compare(read(store, 1), chaos.undisturbed(), counted)


@contextlib.contextmanager
def small_disk(chaos: Chaos) -> Iterator[tuple[Path, Callable[[], None], str]]:
    """A directory without much room, how to make more, and what it is."""
    directory = chaos.place / "small-disk"
    directory.mkdir()
    open_store(chaos.store("empty")).close()
    chaos.undisturbed()
    empty, whole = (Path(chaos.store(n)).stat().st_size for n in ("empty", "undisturbed5"))
    room = 2 * empty + (whole - empty) // 4  # a new store's journal is as large as itself
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={room}", "tmpfs", str(directory)], capture_output=True
    )
    if mounted.returncode == 0:
        try:
            more = ["mount", "-o", "remount,size=200m", str(directory)]

            def more_room() -> None:
                subprocess.run(more, check=True)

            yield directory, more_room, "small tmpfs"
        finally:
            subprocess.run(["umount", "-l", str(directory)], check=True)
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield directory, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard)), "RLIMIT"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def clock_jumps(chaos: Chaos, part: Part) -> None:
    """The campaign's wall clock jumps by an hour, forth and back: a shim of ours, preloaded."""
    source, shim = chaos.place / "clock.c", chaos.place / "clock.so"
    source.write_text(CLOCK)
    compiler = shutil.which("cc") or "gcc"
    made = [compiler, "-shared", "-fPIC", "-O1", "-o", str(shim), str(source), "-ldl"]
    subprocess.run(made, check=True)
    with chaos.cluster("clock", NAP, NAP) as keeper:
        campaign = chaos.campaign(chaos.store("clock"), keeper, LD_PRELOAD=str(shim))
        counted = until_done(campaign, part)
    part.killed = "clock +1 h, -1 h every 0.7 s"
    part.compare(read(chaos.store("clock"), 1), chaos.undisturbed(), counted)


def two_campaigns(chaos: Chaos, part: Part) -> None:
    """Two campaigns with one store and one cluster, at once."""
    store = chaos.store("two")
    with chaos.cluster("two", 0, 0) as keeper:
        campaigns = [chaos.campaign(store, keeper, seed) for seed in (5, 6)]
        ends = [campaign.end() for campaign in campaigns]
    for seed, campaign, last in zip((5, 6), campaigns, ends, strict=True):
        if not last:
            raise SystemExit(f"chaos: {part.name}: {campaign.said}")
        rows = read(store, last["campaign"])
        part.compare(rows, chaos.undisturbed(seed), last["progress"]["tests"])
    part.killed = "nobody"


def slow_worker(chaos: Chaos, part: Part) -> None:
    """One of two workers takes 100 times as long for a test."""
    with chaos.cluster("slow", NAP, 100 * NAP) as keeper:
        store = chaos.store("slow")
        campaign = chaos.campaign(store, keeper)
        counted = until_done(campaign, part)
        with open_store(store, read_only=True) as opened:
            shares = sorted(worker.tests for worker in opened.workers(1))
    part.killed = f"nobody; the two ran {shares[0]:,} and {shares[-1]:,} tests"
    part.compare(read(store, 1), chaos.undisturbed(), counted)


PARTS = {
    "storm on SQLite": storm_on_sqlite,
    "storm on PostgreSQL": storm_on_postgresql,
    "disk full": disk_full,
    "clock jumps": clock_jumps,
    "two campaigns": two_campaigns,
    "slow worker": slow_worker,
}
QUICK_PARTS = ("storm on PostgreSQL", "disk full")
"""All kinds of processes are killed in the first; the second has its store in SQLite."""


def main() -> None:
    """Run the parts and print what they came to."""
    quick = arguments(__doc__ or "").quick
    require_modules({"distributed": "'swarmtest[dask]'", "pgserver": "pgserver"})
    require_programs({"cc": "gcc"})
    parts = []
    with guarded() as place:
        chaos = Chaos(place, 1000 if quick else 12_000, quick)
        try:
            names = QUICK_PARTS if quick else tuple(PARTS)
            for number, name in enumerate(names, 1):
                progress(f"part {number} of {len(names)}: {name}")
                part = Part(name)
                start = time.monotonic()
                PARTS[name](chaos, part)
                part.seconds = time.monotonic() - start
                parts.append(part)
        finally:
            chaos.close()
    head = ("part", "trials", "lost", "duplicated", "different", "starts", "s", "what happened")
    print_table(
        head,
        [
            (
                p.name,
                p.trials,
                p.lost,
                p.duplicated,
                p.different,
                p.starts,
                round(p.seconds),
                p.killed,
            )
            for p in parts
        ],
    )
    print_figures(
        {
            "trials": sum(p.trials for p in parts),
            "lost": sum(p.lost for p in parts),
            "duplicated": sum(p.duplicated for p in parts),
            "different": sum(p.different for p in parts),
        }
    )
    if any(p.lost or p.duplicated or p.different for p in parts):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
