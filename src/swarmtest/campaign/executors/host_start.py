"""Starting a host in a fresh interpreter, and waiting for its end."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from swarmtest.campaign.executors.host import HostSetup
from swarmtest.campaign.executors.worker import IDLE, LAST, TRIAL, CampaignJob, cell_of_file
from swarmtest.processes import frames as wire
from swarmtest.processes import tree
from swarmtest.strategies.strategy import Strategy
from swarmtest.subjects.loading import SubjectReference

_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from swarmtest.campaign.executors.host import main; main({fd}, {cell})"
)


@dataclass(frozen=True)
class Interpreter:
    """How a host's interpreter starts: its module path, options and directory."""

    path: Sequence[str]
    flags: Sequence[str]
    directory: str | None = None
    """None: this process's."""

    @classmethod
    def like_this_one(cls) -> Interpreter:
        """Return the settings of this process, so that tests run with the same options (``-O``)."""
        return cls(tuple(sys.path), interpreter_flags())


@dataclass(frozen=True)
class Spawned:
    """A host process, and this end of the connection to it."""

    line: socket.socket
    process: subprocess.Popen[bytes]
    cell: memoryview
    """The memory in which its children write which trial they run."""


def spawn(
    interpreter: Interpreter,
    setup: HostSetup | bytes,
    coverage: dict[str, Any] | None,
    **changes: Any,
) -> Spawned:
    """Start a fresh interpreter that imports the subject by its name.

    `setup` may be pickled already; `changes`: fields of it that are different on this machine.
    """
    pickled = setup if isinstance(setup, bytes) else pickle.dumps(setup)
    ours, theirs = socket.socketpair()
    with theirs, _memory_file() as file:
        cell = cell_of_file(file.fileno())
        start = _START.format(path=[*interpreter.path], fd=theirs.fileno(), cell=file.fileno())
        process = tree.spawn(
            [sys.executable, *interpreter.flags, "-c", start],
            pass_fds=[theirs.fileno(), file.fileno()],
            stdin=subprocess.DEVNULL,
            cwd=interpreter.directory,
            start_new_session=True,
        )
    with contextlib.suppress(BrokenPipeError):  # one that died at once is noticed by its silence
        wire.send(ours.fileno(), (coverage, pickled, changes))
    return Spawned(ours, process, cell)


def _memory_file() -> IO[bytes]:
    """Return a file for memory that is shared; on Linux it is not on a disk, which may be full."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("swarmtest"), "w+b", buffering=0)
    return tempfile.TemporaryFile()


def trial_at_hand(cell: memoryview, trials: Sequence[int], one_by_one: bool) -> int | None:
    """Return which of a dead host's trials was running; None if none was.

    `one_by_one`: it was to send each result before the next trial, so that the last one counts
    also if it had ended: it may have killed the host.
    """
    trial = cell[TRIAL]
    if trial == IDLE and one_by_one:
        trial = cell[LAST]
    return trial if trial in trials else None


def end(process: subprocess.Popen[bytes], patience: float = 2.0) -> bool:
    """Wait for a host whose line is closed; return False if it did not end and was killed."""
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if process.poll() is not None:
            return True
        time.sleep(0.005)
    tree.kill(process.pid)
    process.wait()
    return False


def interpreter_flags() -> tuple[str, ...]:
    """Return the options of this interpreter."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    return tuple(flags)


# The job of a campaign, for a process that has to find the subject by its name.


def can_be_sent(strategy: Strategy) -> bool:
    """Return whether a strategy can be sent to another process."""
    try:
        pickle.dumps(strategy)
    except Exception:
        return False
    return type(strategy).__module__ != "__main__"


def job_maker(
    reference: SubjectReference, name: str, strategy: Strategy, seed: int, keep_tests: bool
) -> Callable[[], CampaignJob]:
    """Return a function that makes the job in another process, and can be pickled.

    `name` is how the user names the subject; on another machine, the reference differs.
    """
    return functools.partial(_make, reference, name, strategy, seed, keep_tests)


def _make(
    reference: SubjectReference, name: str, strategy: Strategy, seed: int, keep_tests: bool
) -> CampaignJob:
    subject = reference.load()
    subject.name = name
    return CampaignJob(subject, strategy, seed, keep_tests)
