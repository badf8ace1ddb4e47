"""What runs inside a Dask worker: batches of trials, each in a host process of its own.

A Dask worker is shared with others and must survive the program under test, so nothing of that
program is imported here. Each campaign has as many hosts as the worker has threads at work for it;
they are kept between batches, and end with the campaign, or when it has not been heard of for a
while. When the worker dies, their lines close and they end.

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
from swarmtest.campaign.executors.dask.packages import Arrival, refusal
from swarmtest.campaign.executors.dask.remote_host import Guest, Homeward
from swarmtest.campaign.executors.host_start import Interpreter, spawn

_IDLE_SECONDS = 10.0
"""How long a host waits for the next batch before it is ended."""


class Lodging:
    """The hosts of one campaign on this worker."""

    def __init__(self, shipment: dict[str, Any], directory: str, threads: int) -> None:
        self.stopped = False
        self._shipment = shipment
        self._arrival = Arrival(shipment, directory)
        self._memory = shipment["memory"]
        if self._memory is None:
            self._memory = Limits().memory_bytes(threads)
        self._idle: list[Guest] = []
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def run(self, order: dict[str, Any], name: str) -> dict[str, Any]:
        """Run a batch; return the answer for the campaign."""
        guest = self._taken(name)
        guest.forget(order["heard"].get(guest.name, 0))
        unheard = guest.unheard()
        stint = guest.run(order["trials"], order["told"], order["seconds"], lambda: self.stopped)
        answer = {
            "host": guest.name,
            "told": guest.told,
            "messages": [*unheard, *stint.messages],
            "done": stint.done,
            "seconds": stint.seconds,
            "error": stint.error,
            "died": not guest.alive and not self.stopped,
        }
        self._give_back(guest)
        return answer

    def _taken(self, name: str) -> Guest:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            number = next(self._numbers)
        arrival, shipment = self._arrival, self._shipment
        path = [*arrival.path, *sys.path]
        interpreter = Interpreter(path, shipment["flags"], arrival.directory)
        spawned = spawn(interpreter, shipment["setup"], arrival.coverage, self._memory)
        return Guest(f"{name}/{os.getpid()}-{number}", spawned, Homeward(arrival.prefix))

    def _give_back(self, guest: Guest) -> None:
        with self._lock:
            if guest.alive and not self.stopped:
                guest.idle_since = time.monotonic()
                self._idle.append(guest)
                return
        guest.close()

    def let_go(self, idle: float = 0.0) -> bool:
        """End the hosts that were idle for so many seconds; return whether any is left."""
        now = time.monotonic()
        with self._lock:
            leaving = [one for one in self._idle if now - one.idle_since >= idle]
            self._idle = [one for one in self._idle if one not in leaving]
            left = bool(self._idle)
        for guest in leaving:
            guest.close()
        return left


_lodgings: dict[str, Lodging] = {}
_ended: set[str] = set()
_lock = threading.Lock()
_sweeper: threading.Thread | None = None


def run_batch(order: dict[str, Any], shipment: dict[str, Any]) -> dict[str, Any]:
    """Run an order's trials, or refuse; this is the Dask task."""
    worker = get_worker()
    about = {
        "worker": worker.address,
        "name": str(worker.name),
        "machine": platform.node(),
        "pid": os.getpid(),
    }
    why_not = refusal(shipment)
    if why_not:
        return about | {"refused": f"worker {worker.address} {why_not}"}
    if order["token"] in _ended:
        return about | {"done": 0, "messages": [], "seconds": 0.0, "error": "", "died": False}
    lodging = _lodging(order["token"], shipment, worker)
    return about | lodging.run(order, worker.address)


def stop_campaign(token: str) -> None:
    """Let the tests at hand finish, and run no other of this campaign."""
    with _lock:
        _ended.add(token)
        lodging = _lodgings.pop(token, None)
    if lodging is not None:
        lodging.stopped = True
        threading.Thread(target=lodging.let_go, daemon=True).start()


def _lodging(token: str, shipment: dict[str, Any], worker: Any) -> Lodging:
    global _sweeper
    with _lock:
        if token not in _lodgings:
            _lodgings[token] = Lodging(shipment, worker.local_directory, worker.state.nthreads)
        if _sweeper is None:
            _sweeper = threading.Thread(target=_sweep, daemon=True, name="swarmtest-sweeper")
            _sweeper.start()
        return _lodgings[token]


def _sweep() -> None:
    """End hosts that get no batches: their campaign may have been killed."""
    while True:
        time.sleep(_IDLE_SECONDS / 4)
        with _lock:
            lodgings = list(_lodgings.values())
        for lodging in lodgings:
            with contextlib.suppress(OSError):
                lodging.let_go(_IDLE_SECONDS)
