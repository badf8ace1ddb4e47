"""What the benchmark scripts share: arguments, progress, CPU clocks, tables, the JSON line."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn


def arguments(doc: str) -> argparse.Namespace:
    """``--quick``: a run of under a minute."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--quick", action="store_true", help="a smaller run, under a minute")
    return parser.parse_args()


def progress(message: str) -> None:
    """Say on standard error what is done, or what begins now."""
    print(f"  {message}", file=sys.stderr, flush=True)


def cannot_measure(reason: str) -> NoReturn:
    """End a benchmark that lacks something, with one line that says how to get it."""
    print(f"{Path(sys.argv[0]).name} cannot measure here: {reason}", file=sys.stderr)
    sys.exit(2)


def require_modules(install: Mapping[str, str]) -> None:
    """End the benchmark unless it can import modules; the values say what pip installs."""
    missing = [name for module, name in install.items() if not importlib.util.find_spec(module)]
    if missing:
        cannot_measure(f"pip install {' '.join(missing)}")


def require_programs(install: Mapping[str, str]) -> None:
    """End the benchmark unless programs are on the path; the values are packages of Debian."""
    missing = [package for name, package in install.items() if not shutil.which(name)]
    if missing:
        cannot_measure(f"apt-get install {' '.join(dict.fromkeys(missing))}")


def cpu_seconds() -> float:
    """CPU time of this process and of the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def timed(run: Callable[[], object], clock: Callable[[], float] = cpu_seconds) -> float:
    """Seconds that a call takes on a clock."""
    start = clock()
    run()
    return clock() - start


def median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the ratios of measurements that were taken in turns."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Columns set to the right, but for the first."""
    cells = [list(map(str, row)) for row in [head, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    for number, row in enumerate(cells):
        line = [
            c.ljust(w) if i == 0 else c.rjust(w)
            for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(line).rstrip())
        if number == 0:
            print("  ".join("-" * w for w in widths))


def print_figures(figures: dict[str, object]) -> None:
    """The last line of a benchmark: one JSON object."""
    print()
    print(json.dumps(figures))


def cpu_seconds_of(pid: int) -> float:
    """Return the CPU seconds of a process, and of the processes that it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
