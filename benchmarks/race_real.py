"""A race that was in a real package: found, replayed and explained in the old release, not the new.

    python benchmarks/race_real.py [--quick]

`redis` (the client for Python, in Python) before 4.5.5: `Connection.disconnect` asks whether there
is a socket, shuts it down and closes it. When two threads disconnect, one may set the socket to
None in between: ``AttributeError: 'NoneType' object has no attribute 'close'`` (redis-py, pull
request 2719: "Fix potential race condition during disconnection"). The test below connects to a
real socket of this process, and two threads disconnect. Both releases come from the package index
when this is run. A second race, in what `disconnect` calls of the parser, is in both releases; it
shows on free-threaded builds only. The last line is one JSON object.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from harness import (
    arguments,
    cannot_measure,
    cpu_seconds,
    print_figures,
    print_table,
    progress,
)

from swarmtest import open_store

OLD, NEW = "4.5.4", "4.5.5"
STORE, SAVED = "races.db", "test_race.py"
ENDED = (0, 1)  # the exit status of a campaign that ran to its end
SIGNATURE = "[AbstractConnection.disconnect]"
"""Where the race that was fixed showed: in the method itself, not in what it calls."""
TEST = """\
import socket
import threading

from redis.connection import Connection

LISTENING = socket.create_server(("127.0.0.1", 0), backlog=100)


def two_disconnect():
    connection = Connection(port=LISTENING.getsockname()[1])
    connection.connect()
    accepted, _ = LISTENING.accept()
    threads = [threading.Thread(target=connection.disconnect) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accepted.close()
    assert connection._sock is None
"""
PLAIN = """\
import sys, threading, two
errors = []
threading.excepthook = lambda args: errors.append(args.exc_value)
for _ in range(int(sys.argv[1])):
    two.two_disconnect()
print(len(errors))
"""


def fetched(version: str, place: Path) -> Path:
    """A directory with a release of redis in it, and the test."""
    directory = place / version
    directory.mkdir()
    words = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [*words, "-d", directory, f"redis=={version}"], capture_output=True, text=True
    )
    wheels = list(directory.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
        cannot_measure(f"redis {version} could not be fetched from a package index: {last}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(directory)
    (directory / "two.py").write_text(TEST)
    (directory / "plain.py").write_text(PLAIN)
    return directory


def plain_failures(directory: Path, runs: int) -> int:
    """How many plain runs fail."""
    done = subprocess.run(
        [sys.executable, "plain.py", str(runs)], cwd=directory, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def raced(directory: Path, tests: int) -> tuple[subprocess.CompletedProcess[str], float]:
    """What `swarmtest race` says, and its CPU time."""
    before = cpu_seconds()
    words = ("--cover", "redis.connection", "--cover", "two", "-n", tests, "--store", STORE)
    command = ["race", "two.py::two_disconnect", *map(str, words), "--save", SAVED]
    done = subprocess.run(
        [sys.executable, "-m", "swarmtest", *command], cwd=directory, capture_output=True, text=True
    )
    return done, cpu_seconds() - before


def is_shown(store: Path) -> bool:
    """Whether the race that was fixed is among the faults of a campaign."""
    with open_store(str(store), must_exist=True, read_only=True) as kept:
        return any(SIGNATURE in fault.signature for fault in kept.faults(1))


def failures(directory: Path, runs: int) -> int:
    """How many runs of the saved test fail."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_race.py"]
    ended = (subprocess.run(words, cwd=directory, capture_output=True) for _ in range(runs))
    return sum(one.returncode == 1 for one in ended)


def main() -> None:
    """Fetch, race, print."""
    options = arguments(__doc__ or "")
    tests, replays = (100, 1) if options.quick else (1_000, 10)
    with tempfile.TemporaryDirectory() as made:
        progress("both releases are fetched")
        old, new = (fetched(version, Path(made)) for version in (OLD, NEW))
        rows, shown, plain, failing = [], [], [], []
        for version, place in zip((OLD, NEW), (old, new), strict=True):
            progress(f"redis {version}: plain runs")
            plain.append(plain_failures(place, tests))
            progress(f"redis {version}: swarmtest race")
            done, cpu = raced(place, tests)
            print(f"redis {version}\n\n{done.stdout}{done.stderr}")
            if done.returncode not in ENDED:
                sys.exit(f"swarmtest race failed on redis {version}:\n{done.stderr}")
            shown.append(is_shown(place / STORE))
            if place is new:
                shutil.copy(old / SAVED, new)
            progress(f"redis {version}: the saved test")
            failing.append(failures(place, replays))
            row = [version, plain[-1], shown[-1], f"{failing[-1]}/{replays}", f"{cpu:.1f}"]
            rows.append(row)
        head = ["redis", f"of {tests} plain runs fail", "race shown", "saved test fails", "CPU s"]
        print_table(head, rows)
    print_figures(
        {
            "found_in_old": shown[0],
            "found_in_new": shown[1],
            "plain_failures": plain,
            "saved_test_fails": failing,
            "replays": replays,
        }
    )


if __name__ == "__main__":
    main()
