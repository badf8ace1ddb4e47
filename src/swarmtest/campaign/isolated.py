"""One run in a process of its own: for replaying tests that may kill the process."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import tempfile
import time
from collections.abc import Callable

from swarmtest.campaign.child import Death, prepare_child
from swarmtest.errors import UserError
from swarmtest.result import Result, Verdict


def run_isolated(
    run: Callable[[], Result], seconds: float, memory: int = 0, *, quiet: bool = False
) -> Result:
    """What `run` answers; or, if it ends its process or takes too long, the fault it showed.

    `quiet`: what it prints is of no use to anybody.

    >>> run_isolated(lambda: os._exit(3), seconds=5).fault.signature
    'the program ended its process with exit status 3'
    """
    with tempfile.TemporaryFile() as stderr:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            try:
                prepare_child(stderr.fileno(), memory, quiet=quiet)
                _answer(run, write)
            finally:
                os._exit(0)
        os.close(write)
        data, timed_out = _gather(read, pid, seconds)
        _, status, usage = os.wait4(pid, 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # what the program started and left behind
        cpu_ns = int((usage.ru_utime + usage.ru_stime) * 1e9)
        if data:
            answer = pickle.loads(data)
            if isinstance(answer, Exception):
                raise answer
            result: Result = answer
            return result
        stderr.seek(0)
        dump = stderr.read().decode(errors="replace")
        death = Death(status, cpu_ns, timed_out, asked=False)
        return Result(Verdict.FAILED, death.fault(dump, seconds))


def _answer(run: Callable[[], Result], write: int) -> None:
    try:
        answer: Result | Exception = run()
    except UserError as error:
        answer = error
    with os.fdopen(write, "wb") as out:
        pickle.dump(answer, out)


def _gather(read: int, pid: int, seconds: float) -> tuple[bytes, bool]:
    """What the process wrote, and whether its time ran out."""
    deadline = time.monotonic() + seconds
    data = b""
    timed_out = False
    while True:
        # A process that the program forked may hold the pipe open after the end, so look often.
        ready, _, _ = select.select([read], [], [], 0.02)
        if ready:
            chunk = os.read(read, 1 << 16)
            if not chunk:
                break
            data += chunk
        elif os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
        elif time.monotonic() > deadline:
            timed_out = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR2)
                time.sleep(0.05)
                os.killpg(pid, signal.SIGKILL)
            break
    os.close(read)
    return data, timed_out
