"""Directories for tests, and a guard that outlives the process that runs them.

A worker may be killed at any moment: its time is up, or the campaign is told to stop. Then its
files would stay, and the command that was running might. So every process that runs tests has a
guard: a shell that waits until its standard input ends, which happens however the process dies.
Then it kills the process group whose number it got last, and removes the directory.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import weakref
from dataclasses import dataclass
from pathlib import Path

from swarmtest.processes import tree

_GUARD = """\
while read -r group; do last=$group; done
[ -n "$last" ] && kill -s KILL -- "-$last"
rm -rf "$1"
"""


@dataclass(frozen=True)
class _Owned:
    """The directory and the guard of one process; no other process uses them."""

    process: int
    guard: int
    line: int
    """Writing end of the pipe that the guard reads."""
    directory: Path


class Scratch:
    """Makes directories for tests; a forked process has its own.

    >>> scratch = Scratch()
    >>> directory = scratch.fresh("test")
    >>> directory.is_dir()
    True
    >>> scratch.close(); directory.exists()
    False
    """

    def __init__(self) -> None:
        self._owned: list[_Owned] = []
        self.close = weakref.finalize(self, _close, self._owned)
        """Remove all directories; done by itself when the process ends."""

    @property
    def directory(self) -> Path:
        """The directory of this process, created when it is first used."""
        return self._own().directory

    @property
    def temporary(self) -> str:
        """An empty directory for temporary files: a compiler that is killed leaves its behind."""
        directory = f"{self._own().directory}/tmp"
        try:
            left = os.listdir(directory)
        except OSError:
            left = ["the directory itself is not as it should be"]
        return str(self.fresh("tmp")) if left else directory

    def fresh(self, name: str) -> Path:
        """Return an empty directory of this process, with this name."""
        directory = self._own().directory / name
        try:
            directory.mkdir()
        except FileExistsError:
            empty(directory)
            if os.listdir(directory):  # something that cannot be removed, like a mounted disk
                directory.rename(tempfile.mktemp(prefix="left-", dir=directory.parent))
                directory.mkdir()
        return directory

    def guard(self, group: int) -> None:
        """Have a process group killed if this process dies; 0: no group."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._own().line, b"%d\n" % group if group else b"\n")

    def _own(self) -> _Owned:
        if not self._owned or self._owned[0].process != os.getpid():
            if self._owned:
                os.close(self._owned.pop().line)  # the parent's guard is not ours to hold
            self._owned.append(_begin())
        return self._owned[0]


def empty(directory: Path) -> None:
    """Remove what is in a directory, also if a test took the right to do so away.

    The directory itself stays for the next test: on many file systems making and removing one takes
    longer than all else that is done for a test here.
    """
    with contextlib.suppress(FileNotFoundError):  # a test may remove its directory
        directory.chmod(0o700)
        for entry in list(os.scandir(directory)):
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)


def _remove(directory: str) -> None:
    os.chmod(directory, 0o700)
    for place, names, _ in os.walk(directory):
        for name in names:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
    shutil.rmtree(directory, ignore_errors=True)


def _begin() -> _Owned:
    directory = Path(tempfile.mkdtemp(prefix="swarmtest-"))
    read, write = os.pipe()
    try:
        guard = os.posix_spawn(
            "/bin/sh",
            ["sh", "-c", _GUARD, tree.GUARD, str(directory)],
            {"PATH": os.environ.get("PATH", os.defpath)},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, read, 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
            setpgroup=0,
            setsigdef=[signal.SIGPIPE],
        )
        tree.keep(guard)
    finally:
        os.close(read)
    return _Owned(os.getpid(), guard, write, directory)


def _close(owned: list[_Owned]) -> None:
    if owned and owned[0].process == os.getpid():
        mine = owned.pop()
        os.close(mine.line)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(mine.guard, 0)
        shutil.rmtree(mine.directory, ignore_errors=True)
