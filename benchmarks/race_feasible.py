"""Programs that are correct as long as there is a GIL: no fault of theirs may be reported.

Each changes shared variables without a lock, but only in ways that CPython with a GIL does not
interrupt: no call, no back-jump between reading and writing, or one operation of a built-in type.
Without the restriction to feasible switches most of them do fail.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from swarmtest.coverage.scope import Scope
from swarmtest.race.control.runner import controlled_run
from swarmtest.race.control.schedulers import PCT, POS, RandomWalk
from swarmtest.race.weaving.weaver import woven

PROGRAM = """\
import threading

total = 0
items = []
table = {{}}
ready = False


class Box:
    def __init__(self):
        self.n = 0
        self.other = 0


box = Box()


def work():
    global total, ready
    for _ in range(2):
        {body}


def program():
    global total, ready
    total, ready = 0, False
    items.clear()
    table.clear()
    table["n"] = 0
    box.n = box.other = 0
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {holds}
"""
CORRECT = {
    "global += 1": ("total += 1", "total == 6"),
    "attribute += 1": ("box.n += 1", "box.n == 6"),
    "subscript += 1": ("table['n'] += 1", "table['n'] == 6"),
    "two attributes": ("box.n += 1; box.other = box.n", "box.n == box.other == 6"),
    "read, then write": ("n = total; total = n + 1", "total == 6"),
    "list.append": ("items.append(1)", "len(items) == 6"),
    "dict.setdefault": ("table.setdefault('k', []).append(1)", "len(table['k']) == 6"),
    "test and set": ("if not ready: ready = True; total += 1", "total == 1"),
    "swap": ("box.n, box.other = box.other, box.n + 1", "box.n + box.other == 6"),
}


def reports(runs: int) -> dict[str, tuple[int, int, int]]:
    """For each program: faults in feasible runs, faults in other runs, and how many runs each."""
    answer = {}
    with tempfile.TemporaryDirectory() as place:
        sys.path.insert(0, place)
        with woven(Scope(places=(place,))):
            for number, (name, (body, holds)) in enumerate(CORRECT.items()):
                module = f"correct_under_gil_{number}"
                Path(place, f"{module}.py").write_text(PROGRAM.format(body=body, holds=holds))
                program = __import__(module).program
                feasible, free = (_faults(program, runs, mode) for mode in (True, False))
                answer[name] = feasible, free, 3 * runs
        sys.path.remove(place)
    return answer


def _faults(program: object, runs: int, feasible: bool) -> int:
    assert callable(program)
    makes = (RandomWalk, POS, lambda seed: PCT(seed, steps=100))
    return sum(
        controlled_run(program, make(seed), feasible=feasible).fault is not None
        for make in makes
        for seed in range(runs)
    )
