"""End what `chaos.py` started when `chaos.py` itself is gone, also after ``kill -9``.

    python chaos_guard.py MARK DIRECTORY

Every process that the benchmark starts inherits an environment variable with the mark, or works in
the benchmark's directory. Both are looked at, because a program that changes its title (PostgreSQL,
Dask with `setproctitle`) may overwrite its environment. This script reads its standard input, a
pipe from the benchmark. The pipe closes when the benchmark ends, in whatever way. Then those
processes are killed, and the directory is removed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "SWARMTEST_CHAOS"
_SECONDS = 30.0


def marked(variable: str, mark: str) -> list[int]:
    """Processes whose environment has the mark; zombies have none."""
    wanted = f"{variable}={mark}".encode()
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in file.read_bytes().split(b"\0"):
                found.append(int(file.parent.name))
    return found


def working_in(directory: Path) -> list[int]:
    """Processes whose working directory is this one, or below it."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if Path(os.readlink(link)).is_relative_to(directory):
                found.append(int(link.parent.name))
    return found


def end_all(mark: str, directory: Path) -> None:
    """Kill every process of the benchmark, and those that they start meanwhile."""
    deadline = time.monotonic() + _SECONDS
    while left := {*marked(VARIABLE, mark), *working_in(directory)} - {os.getpid()}:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        time.sleep(0.05)


def remove(directory: Path) -> None:
    """Remove a directory in which small disks may be mounted."""
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in mounts:
        if Path(mount).is_relative_to(directory):
            subprocess.run(["umount", "-l", mount], capture_output=True)
    shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def guarded() -> Iterator[Path]:
    """Give a directory, and leave neither it nor any process behind, however this process ends."""
    # Not private: the user that runs PostgreSQL has to reach its files.
    directory = Path(tempfile.mkdtemp(prefix="chaos")).resolve()
    directory.chmod(0o755)
    mark = str(os.getpid())
    guard = subprocess.Popen(
        [sys.executable, "-S", "-P", __file__, mark, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    temporary = directory / "tmp"
    temporary.mkdir()
    temporary.chmod(0o1777)
    os.environ |= {VARIABLE: mark, "TMPDIR": str(temporary)}
    tempfile.tempdir = None  # look at TMPDIR again
    try:
        yield directory
    finally:
        guard.communicate()


def main() -> None:
    """Wait for the end of the benchmark, then tidy up."""
    mark, directory = sys.argv[1:]
    sys.stdin.read()
    end_all(mark, Path(directory))
    remove(Path(directory))


if __name__ == "__main__":
    main()
