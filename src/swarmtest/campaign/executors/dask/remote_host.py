"""A host process on a Dask worker: it runs trials for a while and returns their results.

A result may get lost on its way to the campaign: a scheduler dies, a client goes. The rows are run
again, but what a host sends only once (what its targets are, the shortest test of a fault) would be
missing in all that follows. So it is sent again with every result until the campaign confirms it.
"""

from __future__ import annotations

import contextlib
import marshal
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from swarmtest.campaign.executors.host_start import Spawned, end
from swarmtest.core.result import Fault
from swarmtest.processes import frames as wire

# The paths in a host's messages, as they are on the machine where the campaign runs.
#
# On a worker, a subject's files are under a directory of their own, each at the path that it has on
# the campaign's machine. Where that directory's name appears in a message (files that are watched,
# the details of a fault, a signature), it is removed, so that results are those of a local run.

_FAULT = 6
"""The index of the fault's id in a row."""


class PathTranslator:
    """Removes the directory `prefix`, under which the subject's files are, from messages."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._mark = prefix.encode()
        self._ids: dict[str, str] = {}

    def text(self, line: str) -> str:
        """Return a line without the directory.

        >>> PathTranslator("/scratch/7").text("cannot import /scratch/7/home/ann/stack.py")
        'cannot import /home/ann/stack.py'
        """
        return line.replace(self._prefix, "")

    def message(self, packed: bytes) -> bytes:
        """Translate a packed message of a `swarmtest.campaign.executors.worker.Batch`."""
        if self._mark not in packed and not self._ids:
            return packed
        rows, sets, (targets, sources, outside, notes), faults, tests = marshal.loads(packed)
        sources = [(path, text, self.text(file)) for path, text, file in sources]
        news = (targets, sources, outside, [self.text(note) for note in notes])
        faults = [self._fault(*fault) for fault in faults]
        if self._ids:
            rows = [self._row(row) for row in rows]
        return marshal.dumps((rows, sets, news, faults, tests))

    def _fault(self, id: str, kind: str, signature: str, details: str, *rest: Any) -> Any:
        fault = Fault(kind, self.text(signature), self.text(details))
        if fault.signature != signature:
            self._ids[id] = fault.id
        return (self._ids.get(id, id), kind, fault.signature, fault.details, *rest)

    def _row(self, row: Any) -> Any:
        fault = row[_FAULT]
        if fault not in self._ids:
            return row
        return (*row[:_FAULT], self._ids[fault], *row[_FAULT + 1 :])


_PIECE_SECONDS = 0.1
_LARGEST_PIECE = 1000
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


class RemoteHost:
    """A host process, seen from the Dask worker that started it."""

    def __init__(self, name: str, spawned: Spawned, translator: PathTranslator) -> None:
        self.name = name
        self.alive = True
        self.idle_since = 0.0
        self._line = spawned.line
        self._process = spawned.process
        self._frames = wire.Frames(self._line.fileno())
        self._translator = translator
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
    ) -> BatchResults:
        """Run trials in order for about so long; at least one, unless the host ends or is stopped.

        Pieces of a tenth of a second go to the host, so that a slow machine gives back in time what
        it cannot do.
        """
        results = BatchResults()
        while self.alive and not self._ready:
            self._listen(results, stopped)
        start = time.monotonic()
        while self.alive and results.done < len(trials) and not stopped():
            if results.done and time.monotonic() - start >= seconds:
                break
            self._run_piece(results, trials, proposals, stopped)
        results.seconds = time.monotonic() - start
        return results

    def _run_piece(
        self,
        results: BatchResults,
        trials: list[int],
        proposals: list[Any] | None,
        stopped: Callable[[], bool],
    ) -> None:
        largest = _LARGEST_PIECE if proposals is None else _LARGEST_WITH_PROPOSALS
        wanted = int(self._rate * _PIECE_SECONDS)
        self._piece = max(1, min(wanted, 4 * self._piece, largest))
        first, last = results.done, results.done + self._piece
        piece = None if proposals is None else proposals[first:last]
        began = time.monotonic()
        self._send(("batch", (trials[first:last], piece)))
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
                results.messages.append(self._translate(packed))
            elif kind == "ready":
                self._ready = True
                results.messages.append(self._translate(body))
            elif kind == "error":
                results.error = self._translator.text(body)
                self.alive = False
            done = done or kind == "done"
        if self._frames.ended:
            self.alive = False
        return done

    def _translate(self, packed: bytes) -> bytes:
        """Return a message with the campaign's paths; keep what must not get lost of it."""
        message = self._translator.message(packed)
        _rows, _sets, news, faults, _tests = marshal.loads(message)
        targets, sources, outside, notes = news
        if faults or targets or sources or notes or outside != self._outside:
            self._outside = outside
            self._last_message += 1
            self._unconfirmed.append(
                (self._last_message, marshal.dumps(([], [], news, faults, [])))
            )
        return message

    def _send(self, message: Any) -> None:
        with contextlib.suppress(OSError):  # a dead host is noticed by its silence
            wire.send(self._line.fileno(), message)

    def close(self) -> None:
        """End the host; it ends its own child."""
        self.alive = False
        self._line.close()
        end(self._process)
