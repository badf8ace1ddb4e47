"""Real `dask scheduler` and `dask worker` processes on loopback, for tests."""

from __future__ import annotations

import contextlib
import itertools
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
    """A port that passes everything on to another one, until there is trouble."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._silent: set[int] = set()
        self._cut_at = b""
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def silence(self) -> None:
        """Drop everything from now on that comes over connections that are there."""
        self._silent.update(range(len(self._pairs)))

    def cut_at_results(self) -> None:
        """Cut the connection over which the next results are asked for, but no other."""
        self._cut_at = b"gather"

    def close(self) -> None:
        ends = (self._listener, *itertools.chain(*self._pairs))
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in ends:
            end.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._pairs.append((near, far))
                for source, sink in ((near, far), (far, near)):
                    self._start(self._pump, len(self._pairs) - 1, source, sink)

    def _pump(self, number: int, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self._cut_at and self._cut_at in data:
                    self._cut_at = b""
                    break
                if number not in self._silent:
                    sink.sendall(data)
            for end in (source, sink):
                end.shutdown(socket.SHUT_RDWR)


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
