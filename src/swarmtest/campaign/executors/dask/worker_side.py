"""What runs inside a Dask worker: batches of trials, each in a host process of its own.

A Dask worker is shared with others and must survive the program under test, so nothing of that
program is imported here. Each campaign has as many hosts as the worker has threads at work for it;
they are kept between batches, and end with the campaign, or when it has sent nothing for a while.
When the worker dies, their connections close and they end.

Orders and answers are plain data, and an order's versions are compared before anything else in it
is looked at: the campaign may run another swarmtest than this worker.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import sys
import threading
import time
from typing import Any

from distributed import get_worker

from swarmtest.campaign.budget import Limits
from swarmtest.campaign.executors.dask.packages import UnpackedBundle, reason_to_refuse
from swarmtest.campaign.executors.dask.remote_host import PathTranslator, RemoteHost
from swarmtest.campaign.executors.host_start import Interpreter, spawn

_IDLE_SECONDS = 10.0
"""How long a host waits for the next batch before it is ended."""


class CampaignHosts:
    """The hosts of one campaign on this worker."""

    def __init__(self, bundle: dict[str, Any], directory: str, threads: int) -> None:
        self.stopped = False
        self._bundle = bundle
        self._unpacked = UnpackedBundle(bundle, directory)
        self._memory = bundle["memory"]
        if self._memory is None:
            self._memory = Limits().memory_bytes(threads)
        self._idle: list[RemoteHost] = []
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def run(self, order: dict[str, Any], name: str) -> dict[str, Any]:
        """Run a batch; return the answer for the campaign."""
        host = self._take_host(name)
        host.confirm(order["received"].get(host.name, 0))
        unconfirmed = host.unconfirmed()
        trials, proposals = order["trials"], order["proposals"]
        results = host.run(trials, proposals, order["seconds"], lambda: self.stopped)
        answer = {
            "host": host.name,
            "last_message": host.last_message,
            "messages": [*unconfirmed, *results.messages],
            "done": results.done,
            "seconds": results.seconds,
            "error": results.error,
            "died": not host.alive and not self.stopped,
        }
        self._give_back(host)
        return answer

    def _take_host(self, name: str) -> RemoteHost:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            number = next(self._numbers)
        unpacked, bundle = self._unpacked, self._bundle
        path = [*unpacked.path, *sys.path]
        interpreter = Interpreter(path, bundle["flags"], unpacked.directory)
        spawned = spawn(interpreter, bundle["setup"], unpacked.coverage, self._memory)
        return RemoteHost(
            f"{name}/{os.getpid()}-{number}", spawned, PathTranslator(unpacked.prefix)
        )

    def _give_back(self, host: RemoteHost) -> None:
        with self._lock:
            if host.alive and not self.stopped:
                host.idle_since = time.monotonic()
                self._idle.append(host)
                return
        host.close()

    def close_idle(self, idle: float = 0.0) -> bool:
        """End the hosts that were idle for so many seconds; return whether any is left."""
        now = time.monotonic()
        with self._lock:
            leaving = [host for host in self._idle if now - host.idle_since >= idle]
            self._idle = [host for host in self._idle if host not in leaving]
            left = bool(self._idle)
        for host in leaving:
            host.close()
        return left


_campaigns: dict[str, CampaignHosts] = {}
_ended: set[str] = set()
_lock = threading.Lock()
_sweeper: threading.Thread | None = None


def run_batch(order: dict[str, Any], bundle: dict[str, Any]) -> dict[str, Any]:
    """Run an order's trials, or refuse; this is the Dask task."""
    worker = get_worker()
    about = {
        "worker": worker.address,
        "name": str(worker.name),
        "machine": platform.node(),
        "pid": os.getpid(),
    }
    why_not = reason_to_refuse(bundle)
    if why_not:
        return about | {"refused": f"worker {worker.address} {why_not}"}
    if order["token"] in _ended:
        return about | {"done": 0, "messages": [], "seconds": 0.0, "error": "", "died": False}
    hosts = _hosts_of(order["token"], bundle, worker)
    return about | hosts.run(order, worker.address)


def stop_campaign(token: str) -> None:
    """Let the tests at hand finish, and run no other of this campaign."""
    with _lock:
        _ended.add(token)
        hosts = _campaigns.pop(token, None)
    if hosts is not None:
        hosts.stopped = True
        threading.Thread(target=hosts.close_idle, daemon=True).start()


def _hosts_of(token: str, bundle: dict[str, Any], worker: Any) -> CampaignHosts:
    global _sweeper
    with _lock:
        if token not in _campaigns:
            _campaigns[token] = CampaignHosts(bundle, worker.local_directory, worker.state.nthreads)
        if _sweeper is None:
            _sweeper = threading.Thread(target=_sweep, daemon=True, name="swarmtest-sweeper")
            _sweeper.start()
        return _campaigns[token]


def _sweep() -> None:
    """End hosts that get no batches: their campaign may have been killed."""
    while True:
        time.sleep(_IDLE_SECONDS / 4)
        with _lock:
            campaigns = list(_campaigns.values())
        for hosts in campaigns:
            with contextlib.suppress(OSError):
                hosts.close_idle(_IDLE_SECONDS)
