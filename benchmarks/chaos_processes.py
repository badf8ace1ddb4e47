"""The processes that `chaos.py` kills: a Dask cluster, a database, campaigns; and who revives them.

Dask's workers end when their scheduler does, so whoever runs a cluster has something that starts
them again (systemd, Slurm, Kubernetes). Here that is `Keeper`. Processes are found by their parents
and by what they are not, never by a title: Dask changes its own where `setproctitle` is installed.
"""

from __future__ import annotations

import atexit
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import progress

SWARMTEST = [sys.executable, "-P", "-c", "from swarmtest.ui.cli import main; main()"]
START = "SWARMTEST_CHAOS_START"
"""The environment variable that names the cluster or campaign which a process belongs to."""
_PATIENCE = 600.0
"""Seconds: enough on a busy machine, too."""
_SAY_EVERY = 10.0


def wait_for(condition: Callable[[], Any], what: str, seconds: float = _PATIENCE) -> Any:
    """The condition's answer once it has one."""
    begun = said = time.monotonic()
    while True:
        answer = condition()
        if answer:
            return answer
        now = time.monotonic()
        if now - begun > seconds:
            raise SystemExit(f"chaos: {what}: not within {seconds:.0f} s")
        if now - said > _SAY_EVERY:
            progress(f"waiting for {now - begun:.0f} s: {what}")
            said = now
        time.sleep(0.05)


# Processes, as /proc shows them.


def kill(pid: int) -> bool:
    """Kill a process; return whether it was there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
        return True
    return False


def lives(pid: int) -> bool:
    """Return whether a process is there and has not ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def children_of(pid: int) -> list[int]:
    """The children of a process, whichever of its threads has started them."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, thread.read_text().split())
    return [child for child in found if lives(child)]


def command_of(pid: int) -> bytes:
    """The command line of a process; empty if it has ended."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def hosts_of(pid: int) -> list[int]:
    """The host processes that a campaign or a Dask worker has started."""
    return [
        child for child in children_of(pid) if b"executors.host import main" in command_of(child)
    ]


def workers_of_hosts(hosts: Sequence[int]) -> list[int]:
    """The processes that hosts have forked to run tests."""
    return [child for host in hosts for child in children_of(host)]


def commands_of(children: Sequence[int], name: bytes) -> list[int]:
    """The commands with this in their command line that children are running."""
    commands = [command for child in children for command in children_of(child)]
    return [command for command in commands if name in command_of(command)]


# A Dask cluster.


class Keeper:
    """A scheduler and workers under nannies, each started again when it ends."""

    def __init__(
        self,
        place: Path,
        workers: Sequence[Mapping[str, str]],
        tls: Mapping[str, str] | None = None,
    ) -> None:
        """`workers`: what each has in its environment; `tls`: the files of its certificates."""
        self.place = place
        self._workers = workers
        self.mark = str(place)
        """The value of `START` in the environment of its processes."""
        self._tls = tls or {}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.proxy = Proxy(self._port)
        """Campaigns connect through it, so that their connection can be cut."""
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._start_all()
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    @property
    def executor(self) -> list[str]:
        """The options with which a campaign names it."""
        kind = "tls" if self._tls else "dask"
        options = [f"--executor-option=tls-{name}={file}" for name, file in self._tls.items()]
        return ["--executor", f"{kind}://127.0.0.1:{self.proxy.port}", *options]

    @property
    def schedulers(self) -> list[int]:
        """The scheduler, if it runs."""
        return self._pids("scheduler")

    @property
    def nannies(self) -> list[int]:
        """The processes that watch over the workers."""
        return self._pids("worker")

    @property
    def dask_workers(self) -> list[int]:
        """The workers: what a nanny has started, but for Python's helper of multiprocessing."""
        found = [child for nanny in self.nannies for child in children_of(nanny)]
        return [pid for pid in found if b"resource_tracker" not in command_of(pid)]

    @property
    def hosts(self) -> list[int]:
        """The hosts of campaigns on all workers."""
        return [host for worker in self.dask_workers for host in hosts_of(worker)]

    def close(self) -> None:
        """End everything."""
        self._done.set()
        self._thread.join()
        for process in self._running.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.proxy.close()

    def _pids(self, name: str) -> list[int]:
        with self._lock:
            running = [p.pid for key, p in self._running.items() if key.startswith(name)]
        return [pid for pid in running if lives(pid)]

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
        directory = self.place / name
        directory.mkdir(exist_ok=True)
        environment: dict[str, str] = {START: self.mark}
        if name == "scheduler":
            words = ["scheduler", "--host", "127.0.0.1", "--port", str(self._port)]
            words += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
            words += ["--protocol", "tls"] if self._tls else []
        else:
            address = f"{'tls' if self._tls else 'tcp'}://127.0.0.1:{self._port}"
            words = ["worker", address, "--nthreads", "1"]
            words += ["--no-dashboard", "--local-directory", str(directory)]
            words += ["--death-timeout", "30"]
            environment |= self._workers[int(name.removeprefix("worker"))]
        names = {"ca": "--tls-ca-file", "cert": "--tls-cert", "key": "--tls-key"}
        words += [word for key, file in self._tls.items() for word in (names[key], file)]
        with open(self.place / f"{name}.log", "ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "dask", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory,
                env=os.environ | environment,
                start_new_session=True,
            )


class Proxy:
    """A port that passes everything on to another one, until its connections are cut."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> bool:
        """Cut all connections; return whether there were any."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _shut(pair)
        return bool(pairs)

    def close(self) -> None:
        """Cut all connections, and accept no more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self._to), timeout=30)
            except OSError:  # nobody is there: as the other end would find it
                near.close()
                continue
            far.settimeout(None)
            pair = (near, far)
            self._pairs.append(pair)
            for source, sink in (pair, pair[::-1]):
                threading.Thread(target=self._pump, args=(source, sink, pair), daemon=True).start()

    def _pump(
        self, source: socket.socket, sink: socket.socket, pair: tuple[socket.socket, socket.socket]
    ) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        _shut(pair)
        with contextlib.suppress(ValueError):
            self._pairs.remove(pair)


def _shut(pair: tuple[socket.socket, socket.socket]) -> None:
    for end in pair:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def certificates(place: Path) -> dict[str, str]:
    """Make a certificate for TLS that signs itself; return its files, as swarmtest names them."""
    place.mkdir()
    key, certificate = place / "key.pem", place / "cert.pem"
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    words += ["-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    words += ["-addext", "subjectAltName=IP:127.0.0.1"]
    words += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(words, check=True, capture_output=True)
    return {"ca": str(certificate), "cert": str(certificate), "key": str(key)}


# A database.


class Database:
    """A PostgreSQL server that can be killed and started again."""

    def __init__(self, place: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pgserver import postgres_server
        place.mkdir()
        place.chmod(0o755)
        self._handle = postgres_server.get_server(place / "data", cleanup_mode=None)
        self._directory = Path(self._handle.pgdata)

    def url(self, schema: str) -> str:
        """A store of its own."""
        return f"postgresql://postgres@/postgres?host={self._directory}&schema={schema}"

    def kill(self) -> bool:
        """Kill the server's first process; the others notice and end. Then start it again."""
        pid = int((self._directory / "postmaster.pid").read_text().split()[0])
        backends = children_of(pid)
        found = kill(pid)
        wait_for(lambda: not any(map(lives, [pid, *backends])), "the database's processes end")
        self._start()
        return found

    def cut(self) -> bool:
        """End the connections of all clients; return whether there were any."""
        import psycopg

        with psycopg.connect(f"postgresql://postgres@/postgres?host={self._directory}") as own:
            ended = own.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            return any(row[0] for row in ended.fetchall())

    def _start(self) -> None:
        """Start it again; it recovers from its log."""
        # Where nobody reaps orphans, the dead server's number looks alive to the new one.
        for left in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (self._directory / left).unlink(missing_ok=True)
        words = ["start", "-t", "600", "-l", str(self._directory / "log")]
        self._pg_ctl(*words, "-o", f'-h "" -k {self._directory}')

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(Exception):
            self._pg_ctl("stop", "-m", "immediate")
        # At the exit of this process it would write a file, after all files have been removed.
        atexit.unregister(self._handle._cleanup)

    def _pg_ctl(self, *words: str) -> None:
        from pgserver import _commands

        user = self._handle.system_user
        _commands.pg_ctl(["-w", *words], pgdata=self._directory, user=user)


# Campaigns.


class CampaignProcess:
    """`swarmtest run`, and `swarmtest resume` as often as it takes."""

    def __init__(
        self,
        place: Path,
        output: Path,
        words: Sequence[str],
        options: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        """Start it.

        `output`: where files for what it prints are made. `words`: the subject and other words for
        `run`; `options`: those for `resume` too. It is the first one in its store.
        """
        self._place = place
        self._output = (output.with_suffix(".out"), output.with_suffix(".err"))
        self.mark = str(output)
        """The value of `START` in the environment of its processes."""
        self._environment = {**environment, START: self.mark}
        self._tail = [*options, "--json", "--no-reduce"]
        self.starts = 0
        self.said: list[str] = []
        """What it said when it gave up."""
        self._process = self._started(["run", *words])

    def start_again(self) -> None:
        """Resume."""
        self._process = self._started(["resume", "1"])

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it is at work."""
        return self._process.poll() is None

    def kill(self) -> bool:
        """Kill the process."""
        found = self.running and kill(self._process.pid)
        self._process.wait()
        return found

    def end(self) -> dict[str, Any]:
        """The last event once it has ended; empty if it gave up."""
        wait_for(lambda: not self.running, "the campaign ends", 2 * _PATIENCE)
        out, err = (file.read_text() for file in self._output)
        if self._process.returncode not in (0, 1):
            self.said.append(err.strip())
            return {}
        last: dict[str, Any] = json.loads(out.splitlines()[-1])
        return last

    def _started(self, words: Sequence[str]) -> subprocess.Popen[bytes]:
        self.starts += 1
        # Files, because nobody reads a pipe before the end, and a full one would stop the campaign.
        with open(self._output[0], "wb") as out, open(self._output[1], "wb") as err:
            return subprocess.Popen(
                [*SWARMTEST, *words, *self._tail],
                cwd=self._place,
                env=os.environ | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )
