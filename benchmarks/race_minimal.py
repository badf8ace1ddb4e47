"""Whether failing schedules are as small as they could be: brute force tries to shorten them.

    python benchmarks/race_minimal.py [--quick]

Small programs with two or three threads fail under random walks. Each failing schedule is made
minimal. Brute force then runs every schedule of the program with fewer switches, wherever threads
can be switched, and all subsets of the first schedule that have fewer. `not_minimal` is how many
schedules it can shorten. The last line is one JSON object.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from harness import arguments, cpu_seconds, print_figures, print_table, progress

from swarmtest.coverage.scope import Scope
from swarmtest.race.control.runner import (
    ControlledRun,
    controlled_run,
    extent_of,
    minimised_schedule,
)
from swarmtest.race.control.schedulers import RandomWalk, Schedule, ScheduleReplay, Switch
from swarmtest.race.weaving.weaver import woven

FRAME = """\
import threading

box = None
lock = threading.Lock()
other = threading.Lock()


class Box:
    def __init__(self):
        self.n = self.m = 0
        self.seen = []
        self.table = {{"a": 1}}


{body}


def test():
    global box
    box = Box()
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {holds}
"""
TWICE = "works = (work, work)"
PROGRAMS = {
    "lost update": (f"def work(): box.n += 1\n{TWICE}", "box.n == 2"),
    "check, then act": (f"def work():\n    if not box.n: box.n += 1\n{TWICE}", "box.n == 1"),
    "two fields": (
        "def work():\n    box.n += 1\n    box.m += 1\n"
        "def look(): box.seen.append((box.n, box.m))\nworks = (work, look)",
        "all(n == m for n, m in box.seen)",
    ),
    "seen in between": (
        "def work():\n    box.n += 1\n    box.n -= 1\n"
        "def look(): box.seen.append(box.n)\nworks = (work, look)",
        "box.seen == [0]",
    ),
    "seen twice": (
        "def work():\n    box.n = 1\n    box.n = 2\n"
        "def look(): box.seen[:] = [box.n, box.n]\nworks = (work, look)",
        "box.seen != [1, 2]",
    ),
    "iteration": (
        "def work(): return [str(k) for k in box.table]\n"
        "def add(): box.table['b'] = 2\nworks = (work, add)",
        "box.table",
    ),
    "locked, but twice": (
        "def work():\n    with lock: n = box.n\n    with lock: box.n = n + 1\n" + TWICE,
        "box.n == 2",
    ),
    "opposite locks": (
        "def work():\n    with lock:\n        with other: box.n += 1\n"
        "def turn():\n    with other:\n        with lock: box.n += 1\nworks = (work, turn)",
        "box.n == 2",
    ),
    "three of three": (
        "def work():\n    n = box.n\n    box.n = n + 1\nworks = (work, work, work)",
        "box.n > 1",
    ),
}


def failing(test: Callable[[], object], schedules: int) -> list[ControlledRun]:
    """Failing runs, found with many switches and with few."""
    walks = (RandomWalk(seed, 1.0 if seed % 2 else 0.2) for seed in range(2_000))
    runs = (run for walk in walks if (run := controlled_run(test, walk)).fault)
    return list(itertools.islice(runs, schedules))


def shorter(test: Callable[[], object], failed: ControlledRun, small: Schedule) -> bool:
    """Whether any schedule with fewer switches shows the same fault."""

    def run(switches: Sequence[Switch]) -> ControlledRun:
        return controlled_run(test, ScheduleReplay(Schedule(tuple(switches))), traced=True)

    reached = extent_of(run(())).joined(extent_of(run(failed.schedule.switches)))
    possible = list(reached.switches())
    for count in range(len(small)):
        subsets = itertools.combinations(failed.schedule.switches, count)
        for switches in itertools.chain(itertools.combinations(possible, count), subsets):
            if run(switches).fault == failed.fault:
                return True
    return False


def main() -> None:
    """Shorten, check, print."""
    options = arguments(__doc__ or "")
    schedules = 2 if options.quick else 12
    names = list(PROGRAMS)[: 5 if options.quick else None]
    begin = cpu_seconds()
    rows, checked, wrong = [], 0, 0
    with tempfile.TemporaryDirectory() as place:
        sys.path.insert(0, place)
        with woven(Scope(places=(place,))):
            for number, name in enumerate(names):
                progress(name)
                body, holds = PROGRAMS[name]
                module = f"minimal_{number}"
                Path(place, f"{module}.py").write_text(FRAME.format(body=body, holds=holds))
                test = __import__(module).test
                runs = failing(test, schedules)
                before, after, longer = [], [], 0
                for failed in runs:
                    assert failed.fault is not None
                    small = minimised_schedule(test, failed.schedule, failed.fault)
                    before.append(len(failed.schedule))
                    after.append(len(small))
                    longer += shorter(test, failed, small)
                rows.append([name, len(runs), max(before), max(after), longer])
                checked += len(runs)
                wrong += longer
    print_table(["program", "schedules", "switches", "made small", "could be shorter"], rows)
    print_figures(
        {
            "schedules": checked,
            "not_minimal": wrong,
            "cpu_seconds": round(cpu_seconds() - begin, 1),
        }
    )


if __name__ == "__main__":
    main()
