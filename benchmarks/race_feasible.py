"""Whether the label of a race is right: does it happen on an interpreter with a lock?

    python benchmarks/race_feasible.py [--quick]

Small programs change shared variables without a lock. Some do it in ways that CPython with a GIL
does not interrupt: no call, no back-jump between reading and writing, or one operation of a
built-in type. In the others a thread can be switched in between. Each is raced, and its fault gets
a label: "happens on your interpreter: shown by this schedule", or "not seen on your interpreter".
Then the plain program runs with the shortest switch interval and many repetitions, which tells the
truth. `label_wrong` counts programs whose label says otherwise, one way or the other. The last line
is one JSON object.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from harness import arguments, print_figures, print_table, progress

from swarmtest.coverage.scope import Scope
from swarmtest.race.control.runner import controlled_run
from swarmtest.race.control.schedulers import PCT, POS, RandomWalk
from swarmtest.race.explanation import explain_schedule
from swarmtest.race.raced_program import RacedProgram
from swarmtest.race.racer import Racer
from swarmtest.race.weaving.weaver import woven

PROGRAM = """\
import threading

total = 0
items = []
table = {{}}
ready = False
repeat = 2
lock = threading.Lock()


class Box:
    def __init__(self):
        self.n = 0
        self.other = 0

    @property
    def value(self):
        return self.n

    def add(self):
        n = self.n
        self.check()
        self.n = n + 1

    def check(self):
        pass


class Key:
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1

    def __format__(self, how):
        return ""

    def __enter__(self):
        pass

    def __exit__(self, *error):
        pass

    def __getattr__(self, name):
        return 1


class Last:
    def __del__(self):
        pass


def plus_one(n):
    return n + 1


def numbers():
    n = 0
    while n < 1_000_000_000:
        yield n
        n += 1


box = Box()
key = Key()
source = numbers()


def work():
    global total, ready
    for _ in range(repeat):
        {body}


def program():
    global total, ready, source
    total, ready, source = 0, False, numbers()
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
    "global += 1": ("total += 1", "total == 3 * repeat"),
    "attribute += 1": ("box.n += 1", "box.n == 3 * repeat"),
    "subscript += 1": ("table['n'] += 1", "table['n'] == 3 * repeat"),
    "two attributes": ("box.n += 1; box.other = box.n", "box.n == box.other == 3 * repeat"),
    "read, then write": ("n = total; total = n + 1", "total == 3 * repeat"),
    "list.append": ("items.append(1)", "len(items) == 3 * repeat"),
    "dict.setdefault": ("table.setdefault('k', []).append(1)", "len(table['k']) == 3 * repeat"),
    "test and set": ("if not ready: ready = True; total += 1", "total == 1"),
    "swap": ("box.n, box.other = box.other, box.n + 1", "box.n + box.other == 3 * repeat"),
}
_BETWEEN = {
    "a call": "plus_one(n)",
    "a builtin": "str(n)",
    "a loop": "[0 for _ in (1, 2)]",
    "a lock": "lock.acquire(); lock.release()",
    "__eq__": "key == n",
    "in": "key in [n]",
    "a hash": "{key: n}",
    "a format": "f'{key}'",
    "an attribute hook": "key.anything",
    "a sort key": "sorted((2, 1), key=lambda n: n)",
    "a finalizer": "Last()",
    "a generator": "sum(n for n in (1, 2))",
}
WRONG = {
    **{
        f"{name} in between": (f"n = total; {code}; total = n + 1", "total == 3 * repeat")
        for name, code in _BETWEEN.items()
    },
    "a context manager in between": (
        """n = total
        with key:
            total = n + 1""",
        "total == 3 * repeat",
    ),
    "a property": ("box.n = box.value + 1", "box.n == 3 * repeat"),
    "a method": ("box.add()", "box.n == 3 * repeat"),
    "a changing dict": (
        "table[threading.get_ident()] = 1; [str(k) for k in table]; "
        "del table[threading.get_ident()]",
        "True",
    ),
    "a dict in a loop": (
        """table[threading.get_ident()] = 1
        for k in table:
            str(k)
        del table[threading.get_ident()]""",
        "True",
    ),
    "a shared generator": ("next(source)", "True"),
}
"""Programs with a race that a GIL does not prevent."""


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


# The label of each program against what plain runs show.

PLAIN = """\
import importlib, sys, threading, time
sys.setswitchinterval(1e-6)
sys.path.insert(0, sys.argv[1])
module = importlib.import_module(sys.argv[2])
module.repeat = 2_000
failed = []
threading.excepthook = lambda args: failed.append(1)
deadline = time.process_time() + float(sys.argv[3])
while not failed and time.process_time() < deadline:
    try:
        module.program()
    except Exception:
        failed.append(1)
print(len(failed))
"""
RUNS = 400
HAPPENS = "happens on your interpreter"


def label_of(path: Path) -> str:
    """The label that a race of a program gets."""
    racer = Racer(RacedProgram(str(path), "program"))
    walks = (RandomWalk(seed, 1.0 if seed % 2 else 0.2) for seed in range(RUNS))
    failed = next((run for walk in walks if (run := racer.scheduled(walk)).fault), None)
    if failed is None or failed.fault is None:
        return "no fault was found"
    return explain_schedule(racer, failed.schedule, failed.fault)[1].truth


def fails_plainly(place: str, module: str, seconds: float) -> bool:
    """Whether the program fails in plain runs, within some CPU seconds."""
    words = [sys.executable, "-c", PLAIN, place, module, str(seconds)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return int(done.stdout) > 0


def main() -> None:
    """Race, run plainly, compare, print."""
    options = arguments(__doc__ or "")
    programs = {**CORRECT, **WRONG}
    names = list(programs)
    if options.quick:
        names = [*list(CORRECT)[:2], *list(WRONG)[:2]]
    rows, wrong = [], {"says it happens": 0, "says it does not": 0}
    with tempfile.TemporaryDirectory() as place:
        for number, name in enumerate(names):
            progress(name)
            body, holds = programs[name]
            path = Path(place, f"labelled_{number}.py")
            path.write_text(PROGRAM.format(body=body, holds=holds))
            label = label_of(path)
            plain = fails_plainly(place, path.stem, 1.0 if options.quick else 6.0)
            happens = label.startswith(HAPPENS)
            if happens != plain:
                wrong["says it happens" if happens else "says it does not"] += 1
            rows.append([name, label.partition(" (")[0], plain, happens == plain])
    print_table(["program", "label", "fails plainly", "right"], rows)
    print_figures({"programs": len(rows), "label_wrong": sum(wrong.values()), "wrong_ways": wrong})


if __name__ == "__main__":
    main()
