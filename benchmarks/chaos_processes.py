"""The processes that `chaos.py` kills: a Dask cluster, a database, campaigns; and who revives them.

Dask's workers end when their scheduler does, so whoever runs a cluster has something that starts
them again (systemd, Slurm, Kubernetes). Here that is `Keeper`.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from harness import progress

SWARMTEST = [sys.executable, "-P", "-c", "from swarmtest.ui.cli import main; main()"]
_PATIENCE = 600.0
"""Seconds: enough on a busy machine, too."""
_SAY_EVERY = 10.0


def wait_for(condition: Callable[[], Any], what: str, seconds: float = _PATIENCE) -> Any:
    """The condition's answer once it has one."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = condition()
        if answer:
            return answer
        time.sleep(0.1)
    raise SystemExit(f"chaos: {what}: not within {seconds:.0f} s")


def kill(pid: int) -> bool:
    """Kill a process; return whether it was there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def children_of(pid: int) -> list[int]:
    """The children of a process, whichever of its threads has started them."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, thread.read_text().split())
    return found


class Keeper:
    """A scheduler and workers under nannies, each started again when it ends."""

    def __init__(self, place: Path, workers: Sequence[dict[str, str]]) -> None:
        """`workers`: what each has in its environment."""
        self._place = place
        self._workers = workers
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._start_all()
        self._thread = threading.Thread(target=self._keep)
        self._thread.start()

    @property
    def executor(self) -> str:
        """How a campaign names it."""
        return f"dask://127.0.0.1:{self._port}"

    @property
    def workers(self) -> int:
        """How many workers it has."""
        return len(self._workers)

    def kill(self, victim: str, which: int = 0) -> bool:
        """Kill ``scheduler``, ``nanny`` or ``worker``; whether there was one."""
        name = "scheduler" if victim == "scheduler" else f"worker{which}"
        with self._lock:
            process = self._running.get(name)
        if process is None:
            return False
        if victim != "worker":
            return kill(process.pid)
        return any(kill(pid) for pid in children_of(process.pid) if _is_worker(pid))

    def close(self) -> None:
        """End everything."""
        self._done.set()
        self._thread.join()
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _keep(self) -> None:
        while not self._done.wait(0.2):
            self._start_all()

    def _start_all(self) -> None:
        with self._lock:
            for name in ("scheduler", *(f"worker{n}" for n in range(len(self._workers)))):
                process = self._running.get(name)
                if process is None or process.poll() is not None:
                    self._running[name] = self._start(name)

    def _start(self, name: str) -> subprocess.Popen[bytes]:
        if name == "scheduler":
            words = ["scheduler", "--host", "127.0.0.1", "--port", str(self._port)]
            words += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
            environment: dict[str, str] = {}
        else:
            directory = self._place / name
            directory.mkdir(exist_ok=True)
            words = ["worker", f"tcp://127.0.0.1:{self._port}", "--nthreads", "1"]
            words += ["--no-dashboard", "--local-directory", str(directory)]
            words += ["--death-timeout", "30"]
            environment = self._workers[int(name.removeprefix("worker"))]
        with open(self._place / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "dask", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | environment,
                start_new_session=True,
            )


def _is_worker(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


class Database:
    """A PostgreSQL server that can be killed and started again."""

    def __init__(self, place: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pgserver import postgres_server
        place.chmod(0o755)
        self._handle = postgres_server.get_server(place / "data", cleanup_mode=None)
        self._directory = Path(self._handle.pgdata)

    def url(self, schema: str) -> str:
        """A store of its own."""
        return f"postgresql://postgres@/postgres?host={self._directory}&schema={schema}"

    def kill(self) -> bool:
        """Kill the server's first process; the others notice and end."""
        pid = int((self._directory / "postmaster.pid").read_text().split()[0])
        backends = children_of(pid)
        found = kill(pid)
        wait_for(lambda: not any(map(_lives, [pid, *backends])), "the database's processes end")
        return found

    def start(self) -> None:
        """Start it again; it recovers from its log."""
        # Where nobody reaps orphans, the dead server's number looks alive to the new one.
        for left in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (self._directory / left).unlink(missing_ok=True)
        words = ["start", "-l", str(self._directory / "log")]
        self._pg_ctl(*words, "-o", f'-h "" -k {self._directory}')

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(Exception):
            self._pg_ctl("stop", "-m", "immediate")

    def _pg_ctl(self, *words: str) -> None:
        from pgserver import _commands

        user = self._handle.system_user
        _commands.pg_ctl(["-w", *words], pgdata=self._directory, user=user)


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


class CampaignProcess:
    """`swarmtest run`, and `swarmtest resume` as often as it takes."""

    def __init__(
        self, place: Path, store: str, executor: str, words: Sequence[str], **environment: str
    ) -> None:
        self._place = place
        self._environment = environment
        self._tail = ["--store", store, "--executor", executor, "--json", "--no-reduce"]
        self.starts = 0
        self.said: list[str] = []
        """What it said when it gave up."""
        self._process = self._started(["run", *words])

    def start_again(self) -> None:
        """Resume."""
        self._process = self._started(["resume", "1"])

    @property
    def running(self) -> bool:
        """Whether it is at work."""
        return self._process.poll() is None

    def kill(self) -> bool:
        """Kill the process."""
        found = self.running and kill(self._process.pid)
        with contextlib.suppress(ValueError):  # heard to its end already
            self._process.communicate()
        return found

    def end(self) -> dict[str, Any]:
        """The last event once it has ended; empty if it gave up."""
        out, err = self._output()
        if self._process.returncode not in (0, 1):
            self.said.append(err.strip())
            return {}
        last: dict[str, Any] = json.loads(out.splitlines()[-1])
        return last

    def _output(self) -> tuple[str, str]:
        """What it printed up to its end; says at times that it still runs."""
        begun = time.monotonic()
        while True:
            try:
                return self._process.communicate(timeout=_SAY_EVERY)
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - begun
                if seconds > 2 * _PATIENCE:
                    raise
                progress(f"the campaign runs, {seconds:.0f} s so far")

    def _started(self, words: Sequence[str]) -> subprocess.Popen[str]:
        self.starts += 1
        return subprocess.Popen(
            [*SWARMTEST, *words, *self._tail],
            cwd=self._place,
            env=os.environ | self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
