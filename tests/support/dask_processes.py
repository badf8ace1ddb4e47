"""Real `dask scheduler` and `dask worker` processes on loopback, for tests."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Proxy:
    """A port that passes everything on to another one, until its connections fall silent."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._silent: list[threading.Event] = []
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def silence(self) -> int:
        """Drop everything from now on that comes over connections that are there."""
        for event in self._silent:
            event.set()
        return len(self._silent)

    def close(self) -> None:
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in (self._listener, *self._ends):
            end.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += (near, far)
                self._silent.append(silent := threading.Event())
                self._start(self._pump, near, far, silent)
                self._start(self._pump, far, near, silent)

    def _pump(self, source: socket.socket, sink: socket.socket, silent: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if not silent.is_set():
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)


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
