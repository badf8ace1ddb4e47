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
import select
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from distributed import get_worker

from swarmtest.campaign.budget import Limits
from swarmtest.campaign.executors.dask.packages import UnpackedBundle, reason_to_refuse
from swarmtest.campaign.executors.host_start import (
    Interpreter,
    Spawned,
    end,
    spawn,
    trial_at_hand,
)
from swarmtest.campaign.executors.worker import BatchMessage
from swarmtest.processes import frames as wire

# The hosts of a campaign on this worker, and the batches that they run.

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
        care = Care(order["one_by_one"], order["deaths"], order["outside_kills"])
        results = host.run(trials, proposals, order["seconds"], lambda: self.stopped, care)
        answer = {
            "host": host.name,
            "last_message": host.last_message,
            "messages": [*unconfirmed, *results.messages],
            "done": results.done,
            "seconds": results.seconds,
            "error": results.error,
            "died": not host.alive and not self.stopped,
            "died_in": results.died_in,
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
        moved = unpacked.prefix
        spawned = spawn(
            interpreter,
            bundle["setup"],
            unpacked.coverage,
            memory=self._memory,
            moved_below=moved,
        )
        return RemoteHost(f"{name}/{os.getpid()}-{number}", spawned, moved)

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
        return (
            about
            | {"done": 0, "messages": [], "seconds": 0.0, "error": "", "died": False}
            | {"died_in": None}
        )
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


# A host process on this worker: it runs trials for a while and returns their results.
#
# A result may get lost on its way to the campaign: a scheduler dies, a client goes. The rows are
# run again, but what a host sends only once (what its targets are, the shortest test of a fault)
# would be missing in all that follows. So it is sent again with every result until the campaign
# confirms it.

_PIECE_SECONDS = 0.5
_LARGEST_PIECE = 4096
_LARGEST_WITH_PROPOSALS = 64
"""Proposals that fit a socket's buffer."""
_LISTEN = 0.05
_LAST_WORDS = 1.0
"""Seconds that a host has to send its last rows once it is stopped."""


@dataclass
class BatchResults:
    """The results of some trials."""

    done: int = 0
    """How many of them, from the first, were run."""
    messages: list[bytes] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""
    """What is wrong with the subject, if it cannot be tested."""
    died_in: int | None = None
    """The trial that was running when the host was killed."""


@dataclass(frozen=True)
class Care:
    """How to run trials that hosts were killed in."""

    one_by_one: bool = False
    """Whether each result is sent before the next trial begins."""
    deaths: dict[int, int] = field(default_factory=dict)
    """How many hosts were killed while they ran a trial."""
    outside_kills: int = 0
    """How many hosts of the campaign are known to have been killed from outside."""


class RemoteHost:
    """A host process, seen from the Dask worker that started it."""

    def __init__(self, name: str, spawned: Spawned, moved_below: str = "") -> None:
        """`moved_below`: the directory below which the subject's files lie on this worker."""
        self.name = name
        self.alive = True
        self.idle_since = 0.0
        self._line = spawned.line
        self._process = spawned.process
        self._cell = spawned.cell
        self._frames = wire.Frames(self._line.fileno())
        self._moved_below = moved_below
        self._unconfirmed: list[tuple[int, bytes]] = []
        self._last_message = 0
        self._outside = b""
        self._rate = 0.0
        self._piece = 1
        self._ready = False

    @property
    def last_message(self) -> int:
        """The number of the last message that the campaign must receive."""
        return self._last_message

    def confirm(self, last: int) -> None:
        """Forget the messages up to this number: the campaign has received them."""
        self._unconfirmed = [(number, text) for number, text in self._unconfirmed if number > last]

    def unconfirmed(self) -> list[bytes]:
        """Return the messages that the campaign has not confirmed."""
        return [text for _, text in self._unconfirmed]

    def run(
        self,
        trials: list[int],
        proposals: list[Any] | None,
        seconds: float,
        stopped: Callable[[], bool],
        care: Care = Care(),
    ) -> BatchResults:
        """Run trials in order for about so long; at least one, unless the host ends or is stopped.

        Pieces of half a second go to the host, so that a slow machine gives back in time what it
        cannot do.
        """
        results = BatchResults()
        while self.alive and not self._ready:
            self._listen(results, stopped)
        start = time.monotonic()
        while self.alive and results.done < len(trials) and not stopped():
            if results.done and time.monotonic() - start >= seconds:
                break
            self._run_piece(results, trials, proposals, stopped, care)
        results.seconds = time.monotonic() - start
        if not self.alive and not stopped() and not results.error:
            end(self._process)
            left = trials[results.done :]
            results.died_in = trial_at_hand(self._cell, left, care.one_by_one)
        return results

    def _run_piece(
        self,
        results: BatchResults,
        trials: list[int],
        proposals: list[Any] | None,
        stopped: Callable[[], bool],
        care: Care,
    ) -> None:
        largest = _LARGEST_PIECE if proposals is None else _LARGEST_WITH_PROPOSALS
        wanted = int(self._rate * _PIECE_SECONDS)
        self._piece = max(1, min(wanted, 4 * self._piece, largest))
        first, last = results.done, results.done + self._piece
        piece = None if proposals is None else proposals[first:last]
        began = time.monotonic()
        deaths = {trial: care.deaths[trial] for trial in trials[first:last] if trial in care.deaths}
        cared = care.one_by_one, deaths, len(trials) - last, care.outside_kills
        self._send(("batch", (trials[first:last], piece, *cared)))
        self._hear_piece(results, stopped)
        rate = (results.done - first) / max(time.monotonic() - began, 1e-6)
        self._rate = 0.5 * (self._rate or rate) + 0.5 * rate

    def _hear_piece(self, results: BatchResults, stopped: Callable[[], bool]) -> None:
        deadline = float("inf")
        while self.alive and time.monotonic() < deadline:
            if self._listen(results, stopped):
                return
            if stopped() and deadline == float("inf"):
                deadline = time.monotonic() + _LAST_WORDS
                self._send(("stop", None))
        self.alive = False

    def _listen(self, results: BatchResults, stopped: Callable[[], bool]) -> bool:
        """Read what the host sends within a moment; return whether it says that it is done."""
        if not select.select([self._line], [], [], _LISTEN)[0]:
            self.alive = self._ready or not stopped()
            return False
        done = False
        for kind, body in self._frames.receive():
            if kind == "rows":
                count, _ranks, packed = body
                results.done += count
                results.messages.append(packed)
                self._keep_news(packed)
            elif kind == "ready":
                self._ready = True
                results.messages.append(body)
                self._keep_news(body)
            elif kind == "error":
                results.error = body.replace(self._moved_below, "") if self._moved_below else body
                self.alive = False
            done = done or kind == "done"
        if self._frames.ended:
            self.alive = False
        return done

    def _keep_news(self, packed: bytes) -> None:
        """Keep what must not get lost of a message."""
        message = BatchMessage.unpack(packed)
        targets, sources, outside, notes = message.news
        told = message.faults or targets or sources or notes or message.killed
        if told or outside != self._outside:
            self._outside = outside
            self._last_message += 1
            self._unconfirmed.append((self._last_message, message.without_trials().pack()))

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # a dead host is noticed by its silence
            wire.send(self._line.fileno(), message)

    def close(self) -> None:
        """End the host; it ends its own child."""
        self.alive = False
        self._line.close()
        end(self._process)
