"""Campaigns among the dying: everything is killed, and nothing may be lost or counted twice.

    python benchmarks/chaos.py [--quick] [--only TEXT]

Real processes, Dask schedulers and workers (in part with TLS), SQLite and PostgreSQL stores. Each
campaign ends with a comparison of its trials and faults with an undisturbed campaign of the same
seed: all columns but the times. `lost` and `duplicated` count trials, `different` counts trials and
faults, `orphans` counts processes that outlive the campaign that started them.

What is killed (SIGKILL): the campaign's process, which is then resumed; hosts, which import the
subject; children, which run the tests, and the commands that these run; Dask's nannies, workers and
scheduler; the database; and connections to the scheduler and to the database, which are cut. Which
one is next follows from a seed. The next kill comes when more tests have run, never after a time.

`--quick` runs two parts, with a cluster of one worker, and kills one of each kind. `--only Dask`
runs the parts that have this in their name. Nothing stays behind when this script is killed itself
(`chaos_guard.py`). The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import random
import resource
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from chaos_campaigns import NAP, SEED, Chaos, Kind, Part, read, stored
from chaos_guard import guarded
from chaos_processes import (
    CampaignProcess,
    Database,
    Keeper,
    commands_of,
    hosts_of,
    kill,
    wait_for,
    workers_of_hosts,
)
from harness import (
    print_figures,
    print_table,
    progress,
    require_modules,
    require_programs,
)

from swarmtest.store import open_store

MACHINE = Kind("steady.py", 3000, spacing=16, coverage=True)
RULES = Kind("rules.py", 1500, spacing=16, coverage=True)
COMMAND = Kind("command.toml", 800, spacing=8)
ON_DASK = Kind("steady.py", 3000, spacing=60, coverage=True)
FAST_ON_DASK = Kind("steady.py", 30_000, spacing=600, coverage=True)
TROUBLED = Kind("steady.py", 4000, coverage=True)
QUICK = Kind("steady.py", 800, spacing=20, coverage=True)
KINDS = ("campaign", "host", "child", "nanny", "worker", "scheduler", "database", "connection")
_SAY_EVERY = 3.0
_MOST_STARTS = 60
"""Starts of one campaign; more means that it makes no progress."""
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


@dataclass
class Storm:
    """Kills processes of running campaigns, one campaign after the other."""

    chaos: Chaos
    part: Part
    kind: Kind
    plan: Mapping[str, int]
    """How many of each kind are killed."""
    keeper: Keeper | None = None
    database: Database | None = None

    def __post_init__(self) -> None:
        self._rng = random.Random(self.part.name)
        self._left = [victim for victim, count in self.plan.items() for _ in range(count)]
        self._rng.shuffle(self._left)
        self._said = 0.0

    def run(self) -> None:
        """Kill everything that is planned; compare each campaign when it has ended."""
        for seed in itertools.count(SEED):
            name = f"storm{next(self.chaos.numbers)}"
            store = self.database.url(name) if self.database else self.chaos.store(name)
            executor = self.keeper.executor if self.keeper else []
            campaign = self.chaos.campaign(self.kind, store, executor, seed)
            while self._left and self._more_tests_come(campaign):
                if self._strike(campaign):
                    self.part.kills[self._left.pop()] += 1
                    self._say(store)
            counted = until_done(campaign, self.part)
            self.part.orphans += self.chaos.left_of(campaign.mark)
            self.part.compare(read(store, 1), self.chaos.undisturbed(self.kind, seed), counted)
            if not self._left:
                return

    def _more_tests_come(self, campaign: CampaignProcess) -> bool:
        """Wait until more tests have run; return False if the campaign is done."""
        wanted = self.chaos.tests_run() + self._rng.randint(1, 2 * self.kind.spacing)
        while True:
            wait_for(
                lambda: self.chaos.tests_run() >= wanted or not campaign.running,
                f"{self.part.name}: tests run",
            )
            if campaign.running:
                return True
            if campaign.end():
                return False
            resume(campaign, self.part)

    def _strike(self, campaign: CampaignProcess) -> bool:
        """Kill the next one; return False if the campaign ended before there was one."""
        victim = self._left[-1]
        struck = False

        def strike() -> bool:
            nonlocal struck
            struck = self._kill(victim, campaign)
            return struck or not campaign.running

        wait_for(strike, f"{self.part.name}: a {victim}")
        if struck and victim == "campaign":
            campaign.start_again()
        return struck

    def _kill(self, victim: str, campaign: CampaignProcess) -> bool:
        if victim == "campaign":
            return campaign.kill()
        if victim == "database":
            return self.database is not None and self.database.kill()
        if victim == "connection":
            ends = [end for end in (self.keeper and self.keeper.proxy, self.database) if end]
            return self._rng.choice(ends).cut()
        candidates = self._candidates(victim, campaign)
        return bool(candidates) and kill(self._rng.choice(candidates))

    def _candidates(self, victim: str, campaign: CampaignProcess) -> list[int]:
        keeper = self.keeper
        if keeper is not None and victim in ("nanny", "worker", "scheduler"):
            found = {"nanny": "nannies", "worker": "dask_workers", "scheduler": "schedulers"}
            pids: list[int] = getattr(keeper, found[victim])
            return pids
        hosts = keeper.hosts if keeper is not None else hosts_of(campaign.pid)
        if victim == "host":
            return hosts
        children = workers_of_hosts(hosts)
        return children + commands_of(children, b"program.sh")

    def _say(self, store: str) -> None:
        if time.monotonic() - self._said < _SAY_EVERY and self._left and not self.chaos.quick:
            return
        self._said = time.monotonic()
        done, all_of_them = self.part.kills.total(), sum(self.plan.values())
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.part.kills.items()))
        progress(
            f"{self.part.name}: {done:,} of {all_of_them:,} killed ({kinds}), "
            f"{stored(store):,} of {self.kind.tests:,} trials are stored"
        )


def resume(campaign: CampaignProcess, part: Part) -> None:
    """Resume a campaign that gave up."""
    if campaign.starts > _MOST_STARTS:
        raise SystemExit(f"chaos: {part.name}: it gives up again and again: {campaign.said}")
    progress(f"{part.name}: the campaign gave up, and is resumed: {campaign.said[-1][:200]}")
    part.gave_up += 1
    campaign.start_again()


def until_done(campaign: CampaignProcess, part: Part) -> int:
    """Resume until a campaign is done; how many tests it says it has run."""
    while not (last := campaign.end()):
        resume(campaign, part)
    part.starts += campaign.starts
    return int(last["progress"]["tests"])


# The parts in which processes are killed.


def local_machine(chaos: Chaos, part: Part) -> None:
    """A machine in local processes."""
    Storm(chaos, part, MACHINE, {"child": 240, "host": 60, "campaign": 20}).run()


def local_rules(chaos: Chaos, part: Part) -> None:
    """A state machine of Hypothesis."""
    Storm(chaos, part, RULES, {"child": 70, "host": 20, "campaign": 5}).run()


def local_command(chaos: Chaos, part: Part) -> None:
    """A program that is run as a command."""
    Storm(chaos, part, COMMAND, {"child": 70, "host": 20, "campaign": 5}).run()


def local_on_postgresql(chaos: Chaos, part: Part) -> None:
    """A machine in local processes, and a database that dies."""
    plan = {"child": 220, "host": 50, "campaign": 15, "database": 12, "connection": 50}
    with database_of(chaos, part) as database:
        Storm(chaos, part, MACHINE, plan, database=database).run()


def dask_on_sqlite(chaos: Chaos, part: Part) -> None:
    """A cluster without TLS."""
    plan = {"child": 60, "host": 25, "worker": 20, "nanny": 12, "scheduler": 12, "campaign": 10}
    with chaos.cluster(part, False, NAP, NAP) as keeper:
        Storm(chaos, part, ON_DASK, plan | {"connection": 20}, keeper).run()


def dask_with_blocks(chaos: Chaos, part: Part) -> None:
    """Tests that are so fast that workers send them in blocks."""
    plan = {"child": 20, "host": 10, "worker": 8, "nanny": 4, "scheduler": 4, "campaign": 6}
    with chaos.cluster(part, False, 0, 0) as keeper:
        Storm(chaos, part, FAST_ON_DASK, plan | {"connection": 6}, keeper).run()


def dask_on_postgresql(chaos: Chaos, part: Part) -> None:
    """A cluster with TLS, and a database that dies."""
    plan = {"child": 60, "host": 25, "worker": 20, "nanny": 12, "scheduler": 12, "campaign": 10}
    plan |= {"database": 10, "connection": 24}
    if chaos.quick:
        plan = dict.fromkeys(plan, 1)
    kind = QUICK if chaos.quick else ON_DASK
    naps = [NAP] if chaos.quick else [NAP, NAP]
    with database_of(chaos, part) as database, chaos.cluster(part, True, *naps) as keeper:
        Storm(chaos, part, kind, plan, keeper, database).run()


@contextlib.contextmanager
def database_of(chaos: Chaos, part: Part) -> Iterator[Database]:
    """A database for a part."""
    part.store = "PostgreSQL"
    database = Database(chaos.place / f"pg{next(chaos.numbers)}")
    try:
        yield database
    finally:
        database.close()


# The parts with other trouble.


def disk_full(chaos: Chaos, part: Part) -> None:
    """The store's disk has no room; later it has."""
    kind = QUICK if chaos.quick else TROUBLED
    with small_disk(chaos, kind) as (directory, more_room, disk):
        store = str(directory / "full.db")
        campaign = chaos.campaign(kind, store, [], NAP="0")
        if campaign.end():
            raise SystemExit("chaos: the disk was not full: more tests")
        more_room()
        campaign.start_again()
        counted = until_done(campaign, part)
        part.happened = f"{disk}: {campaign.said[0].removeprefix('swarmtest: ')[:60]}..."
        part.compare(read(store, 1), chaos.undisturbed(kind), counted)
    part.orphans += chaos.left_of(campaign.mark)


@contextlib.contextmanager
def small_disk(chaos: Chaos, kind: Kind) -> Iterator[tuple[Path, Callable[[], None], str]]:
    """A directory without much room, how to make more, and what it is."""
    directory = chaos.place / "small-disk"
    directory.mkdir()
    open_store(chaos.store("empty")).close()
    chaos.undisturbed(kind)
    files = (Path(chaos.store("empty")), chaos.undisturbed_file(kind))
    empty, whole = (file.stat().st_size for file in files)
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
    store = chaos.store("clock")
    with chaos.cluster(part, False, NAP, NAP) as keeper:
        campaign = chaos.campaign(TROUBLED, store, keeper.executor, LD_PRELOAD=str(shim))
        counted = until_done(campaign, part)
    part.happened = "clock +1 h, -1 h every 0.7 s"
    part.compare(read(store, 1), chaos.undisturbed(TROUBLED), counted)


def two_campaigns(chaos: Chaos, part: Part) -> None:
    """Two campaigns with one store and one cluster, at once."""
    store = chaos.store("two")
    seeds = (SEED, SEED + 1)
    with chaos.cluster(part, False, 0, 0) as keeper:
        campaigns = [chaos.campaign(TROUBLED, store, keeper.executor, seed) for seed in seeds]
        ends = [campaign.end() for campaign in campaigns]
    for seed, campaign, last in zip(seeds, campaigns, ends, strict=True):
        if not last:
            raise SystemExit(f"chaos: {part.name}: {campaign.said}")
        result = read(store, last["campaign"])
        part.compare(result, chaos.undisturbed(TROUBLED, seed), last["progress"]["tests"])
    part.starts, part.happened = 2, "two campaigns at once"


def slow_worker(chaos: Chaos, part: Part) -> None:
    """One of two workers takes 100 times as long for a test."""
    store = chaos.store("slow")
    with chaos.cluster(part, False, NAP, 100 * NAP) as keeper:
        campaign = chaos.campaign(TROUBLED, store, keeper.executor)
        counted = until_done(campaign, part)
        with open_store(store, read_only=True) as opened:
            shares = sorted(worker.tests for worker in opened.workers(1))
    part.happened = f"the two workers ran {shares[0]:,} and {shares[-1]:,} tests"
    part.compare(read(store, 1), chaos.undisturbed(TROUBLED), counted)


PARTS = {
    "local, machine": local_machine,
    "local, Hypothesis": local_rules,
    "local, command": local_command,
    "local, machine, database": local_on_postgresql,
    "Dask": dask_on_sqlite,
    "Dask, fast tests": dask_with_blocks,
    "Dask with TLS, database": dask_on_postgresql,
    "disk full": disk_full,
    "clock jumps": clock_jumps,
    "two campaigns": two_campaigns,
    "slow worker": slow_worker,
}
QUICK_PARTS = ("Dask with TLS, database", "disk full")
"""All kinds of processes are killed in the first; the second has its store in SQLite."""


def print_results(parts: list[Part]) -> None:
    """Print a table of the parts, one of the kills, and the figures."""
    columns = ("trials", "lost", "duplicated", "different", "orphans", "noted", "starts", "gave_up")
    rows = []
    for part in parts:
        numbers = [getattr(part, column) for column in columns]
        happened = part.happened or f"{part.kills.total():,} kills"
        rows.append((part.name, part.store, *numbers, round(part.seconds), happened))
    print_table(("part", "store", *columns, "s", "what happened"), rows)
    print()
    kills = {store: Counter[str]() for store in ("SQLite", "PostgreSQL")}
    for part in parts:
        kills[part.store] += part.kills
    both = sum(kills.values(), Counter[str]())
    by_kind = [(kind, *(kills[store][kind] for store in kills), both[kind]) for kind in KINDS]
    totals = ("all", *(kills[store].total() for store in kills), both.total())
    print_table(("killed", *kills, "both"), [*by_kind, totals])
    summed = ("trials", "lost", "duplicated", "different", "orphans")
    figures = {column: sum(getattr(part, column) for part in parts) for column in summed}
    print_figures(
        {"kills": both.total()} | figures | {f"kills_{kind}": both[kind] for kind in KINDS}
    )


def main() -> None:
    """Run the parts and print what they came to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two parts, and one kill of each kind")
    parser.add_argument("--only", metavar="TEXT", help="the parts with this in their name")
    options = parser.parse_args()
    quick = options.quick
    names = QUICK_PARTS if quick else tuple(PARTS)
    if options.only is not None:
        names = tuple(name for name in names if options.only in name)
        if not names:
            parser.error(f"--only {options.only}: no part has this in its name: {', '.join(PARTS)}")
    require_modules({"distributed": "'swarmtest[dask]'", "pgserver": "pgserver"})
    require_programs({"cc": "gcc", "openssl": "openssl"})
    parts = []
    with guarded() as place:
        chaos = Chaos(place, quick)
        try:
            for number, name in enumerate(names, 1):
                progress(f"part {number} of {len(names)}: {name}")
                part = Part(name)
                start = time.monotonic()
                PARTS[name](chaos, part)
                part.seconds = time.monotonic() - start
                parts.append(part)
        finally:
            chaos.close()
    print_results(parts)
    if any(part.lost or part.duplicated or part.different or part.orphans for part in parts):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
