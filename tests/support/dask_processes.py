"""Real `dask scheduler` and `dask worker` processes on loopback, for tests."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class DaskProcesses:
    """A scheduler and its workers, which can be killed and started again."""

    def __init__(self, place: Path) -> None:
        self.port = free_port()
        self.place = place
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start_scheduler()

    @property
    def executor(self) -> str:
        return f"dask://127.0.0.1:{self.port}"

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        self.scheduler = self._dask(
            *("scheduler", "--host", "127.0.0.1", "--port", self.port),
            *("--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
        )
        deadline = time.monotonic() + 60
        while not answers(self.port) and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.scheduler

    def start_worker(self, *, threads: int = 1, **environment: str) -> subprocess.Popen[bytes]:
        directory = self.place / f"worker{len(self.workers)}"
        directory.mkdir()
        worker = self._dask(
            *("worker", f"tcp://127.0.0.1:{self.port}", "--nthreads", threads, "--no-dashboard"),
            *("--local-directory", directory, "--no-nanny"),
            **environment,
        )
        self.workers.append(worker)
        return worker

    def _dask(self, *arguments: object, **environment: str) -> subprocess.Popen[bytes]:
        with open(self.place / "dask.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "dask", *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.place,
                env=os.environ | environment,
                start_new_session=True,
            )

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
