"""Races in threaded Python: detections per run and per CPU second, of many tools and ways.

    python benchmarks/race.py [--quick] [--no-peers] [--seconds S] [--subject NAME ...]

Five programs (`race_subjects/`), three after "A platform for search-based testing of concurrent
software". Each way runs each of them for some CPU seconds in a process of its own: plain runs, runs
with the shortest switch interval, `frontrun` and `interleave-test` (`race_peers.py` tells how),
each kind of noise, each policy of control (switching before every access, before those of shared
variables, in turns), the best settings that a search found, and what `swarmtest race` does by
default. In brackets: a 95% Poisson interval. `vs_best_peer` compares our best way on a program with
the best of all others at its best setting there; `default_vs_best_peer` compares what
`swarmtest race` does without being told anything. Where others found nothing: with one find.
Ten more programs are raced by default only, two of them with their race in a comprehension. Five of
the ten were not looked at while defaults were chosen: `unseen_default_vs_best_peer_min`.

Then: how many switches a failing schedule has before and after it is made small, and how often it
replays; and programs that are correct under the GIL, of which no feasible run may report a fault.
The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import random
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import race_feasible
from harness import print_figures, print_table, progress
from race_peers import BARE, FRONTRUN, INTERLEAVE, Measured, measure, run_script
from race_ways import WAYS, few, loaded

from swarmtest.coverage.scope import Scope
from swarmtest.race.control.runner import controlled_run, minimised_schedule, replay
from swarmtest.race.control.schedulers import RandomWalk
from swarmtest.race.weaving.weaver import woven

SUBJECTS = ("airlines", "web_crawler", "ftp_server", "ab_ba", "lost_wake_up")
SEEN = ("bank_transfer", "connection_pool", "metrics", "lazy_settings", "event_bus")
"""Five more programs; the defaults may be tuned on these and on `SUBJECTS`."""
UNSEEN = ("inventory", "lru_cache", "work_list", "rate_limiter", "sessions")
"""Programs that nothing was tuned on; they judge the defaults."""
COMPREHENSIONS = ("metrics", "sessions")
"""Programs whose race is in a comprehension."""
OURS = Path(__file__).with_name("race_ways.py")
QUICK_SUBJECTS = ("web_crawler", "lost_wake_up")
QUICK_MORE = ("metrics", "sessions")
QUICK_WAYS = ("noise mixed", "control walk of few shared", "default")
QUICK_PEERS = (*BARE, "frontrun random", "interleave random lines")
REPLAYS = 10
MOST_SEEDS = 5_000
Table = dict[str, dict[str, Measured]]


@dataclass(frozen=True)
class Made:
    """A failing schedule, and what became of it."""

    before: int
    after: int
    replays: int
    happens: bool
    """Whether feasible runs show a fault, too."""


def detections(
    subjects: list[str], tools: list[str], ways: list[str], seconds: float
) -> dict[str, Table]:
    """Rates of others and of ours, by subject; in a random order, since the load drifts."""
    tables: dict[str, Table] = {name: {"others": {}, "ours": {}} for name in subjects}
    jobs = [(name, "others", tool) for name in subjects for tool in tools]
    jobs += [(name, "ours", way) for name in subjects for way in ways]
    random.Random(0).shuffle(jobs)
    for number, (name, whose, way) in enumerate(jobs, 1):
        progress(f"{number} of {len(jobs)}: {name}, {way}")
        told = (
            measure(way, name, seconds)
            if whose == "others"
            else run_script([sys.executable, OURS, way, name, seconds])
        )
        if told is not None:
            tables[name][whose][way] = told
    return tables


def made_small(name: str) -> Made:
    """The first failing walk of a subject: replayed, and with as few switches as possible."""
    with loaded(name) as subject:
        program = subject.program
        steps = controlled_run(program, RandomWalk(0)).steps
        runs = (controlled_run(program, few(seed, steps)) for seed in range(MOST_SEEDS))
        run = next(one for one in runs if one.fault)
        assert run.fault is not None
        again = sum(replay(program, run.schedule).fault == run.fault for _ in range(REPLAYS))
        small = minimised_schedule(program, run.schedule, run.fault)
        again += sum(replay(program, small).fault == run.fault for _ in range(REPLAYS))
        feasible = (
            controlled_run(program, few(seed, steps), feasible=True).fault
            for seed in range(MOST_SEEDS)
        )
        return Made(len(run.schedule), len(small), again, any(feasible))


def asyncio_rows(runs: int) -> list[tuple[str, bool, int, int]]:
    """For each program of asyncio: whether it is correct, failing runs, and the first of them."""
    rows = []
    with woven(Scope(names=("race_asyncio_programs",))):
        for kind in ("buggy", "correct"):
            module = importlib.import_module(f"race_asyncio_programs.{kind}")
            for name, program in module.PROGRAMS.items():
                progress(f"asyncio: {name}")
                main = partial(run_loop, program)
                faults = [
                    controlled_run(main, RandomWalk(seed)).fault is not None for seed in range(runs)
                ]
                first = faults.index(True) + 1 if any(faults) else 0
                rows.append((name, kind == "correct", sum(faults), first))
    return rows


def run_loop(program: Callable[[], Coroutine[object, object, None]]) -> None:
    """Run a program of asyncio, as `swarmtest race` does."""
    asyncio.run(program())


def best_of(measured: dict[str, Measured]) -> float:
    """Detections per CPU second of the best; at least as if one more had been seen."""
    return max(max(one.found, 1) / one.cpu for one in measured.values())


def default_against_others(tables: dict[str, Table]) -> dict[str, float]:
    """For each program, the rate of `swarmtest race` by that of the best other tool."""
    return {
        name: table["ours"]["default"].per_second / best_of(table["others"])
        for name, table in tables.items()
    }


def show(tables: dict[str, Table], head: str) -> None:
    rows = []
    for whose in ("others", "ours"):
        for way in dict.fromkeys(way for table in tables.values() for way in table[whose]):
            cells = (table[whose].get(way) for table in tables.values())
            rows.append([way, *(cell.shown if cell else "-" for cell in cells)])
    print_table([head, *tables], rows)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two programs, few ways, little time")
    parser.add_argument("--no-peers", action="store_true", help="no tools that must be installed")
    parser.add_argument("--seconds", type=float, help="CPU seconds for each way and subject")
    parser.add_argument("--subject", action="append", choices=SUBJECTS)
    return parser.parse_args()


def main() -> None:
    """Measure, print."""
    options = parsed()
    seconds = options.seconds or (0.3 if options.quick else 5.0)
    subjects = options.subject or list(QUICK_SUBJECTS if options.quick else SUBJECTS)
    ways = list(QUICK_WAYS if options.quick else WAYS)
    tools = list(QUICK_PEERS if options.quick else (*BARE, *FRONTRUN, *INTERLEAVE))
    if options.no_peers:
        tools = list(BARE)
    more = [] if options.subject else list(QUICK_MORE if options.quick else (*SEEN, *UNSEEN))
    tables = detections(subjects, tools, ways, seconds)
    show(tables, "found per run, per CPU second")

    print()
    others = detections(more, tools, ["default"], seconds)
    show(others, "ten more programs" if len(more) == len(SEEN + UNSEEN) else "more programs")

    print()
    small = {}
    for name in subjects:
        progress(f"{name}: a failing schedule is made small and replayed")
        small[name] = made_small(name)
    rows = [
        [name, one.before, one.after, f"{one.replays}/{2 * REPLAYS}", one.happens]
        for name, one in small.items()
    ]
    print_table(["schedule", "switches", "made small", "replays", "feasible under the GIL"], rows)

    print()
    progress("programs that are correct under the GIL")
    correct = race_feasible.reports(20 if options.quick else 400)
    rows = [[name, *counts] for name, counts in correct.items()]
    print_table(["correct under the GIL", "feasible faults", "other faults", "runs of each"], rows)

    print()
    loops = asyncio_rows(60 if options.quick else 1_000)
    rows = [[name, is_correct, failing, first or "-"] for name, is_correct, failing, first in loops]
    print_table(["asyncio", "correct", "failing runs", "first"], rows)

    by_default = default_against_others(tables)
    by_default_more = default_against_others(others)
    unseen = [ratio for name, ratio in by_default_more.items() if name in UNSEEN]
    by_best_way = {
        name: max(one.per_second for one in table["ours"].values()) / best_of(table["others"])
        for name, table in tables.items()
    }
    print_figures(
        {
            "seconds": seconds,
            "load": round(os.getloadavg()[0], 1),
            "per_cpu_second": {
                name: {
                    way: round(one.per_second, 2)
                    for part in t.values()
                    for way, one in part.items()
                }
                for name, t in tables.items()
            },
            "vs_best_peer": {name: round(ratio, 2) for name, ratio in by_best_way.items()},
            "vs_best_peer_min": round(min(by_best_way.values()), 2),
            "default_vs_best_peer": {name: round(ratio, 2) for name, ratio in by_default.items()},
            "default_vs_best_peer_min": round(min(by_default.values()), 2),
            "default_vs_best_peer_more": {
                name: round(ratio, 2) for name, ratio in by_default_more.items()
            },
            "unseen_default_vs_best_peer_min": round(min(unseen), 2) if unseen else None,
            "comprehension_found": sum(
                others[name]["ours"]["default"].found > 0
                for name in COMPREHENSIONS
                if name in others
            ),
            "infeasible_reports": sum(feasible for feasible, _, _ in correct.values()),
            "asyncio_found": sum(
                failing > 0 for _, is_correct, failing, _ in loops if not is_correct
            ),
            "asyncio_false_alarms": sum(
                failing for _, is_correct, failing, _ in loops if is_correct
            ),
            "replays": [sum(one.replays for one in small.values()), 2 * REPLAYS * len(small)],
            "switches": {name: [one.before, one.after] for name, one in small.items()},
        }
    )


if __name__ == "__main__":
    main()
