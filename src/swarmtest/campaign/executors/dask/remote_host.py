"""A host process on a Dask worker: it runs trials for a while and returns their results.

A result may get lost on its way to the campaign: a scheduler dies, a client goes. The rows are run
again, but what a host tells only once (what its targets are, the shortest test of a fault) would be
missing in all that follows. So it is told again with every result until the campaign has said that
it heard it.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from swarmtest.campaign.executors.host_start import Spawned, end
from swarmtest.campaign.executors.worker import BatchMessage
from swarmtest.core.result import Fault
from swarmtest.processes import frames as wire
from swarmtest.store.records import TrialRecord

# What a host on another machine tells, in the words of the machine that the campaign runs on.
#
# A packed subject lies elsewhere on a worker: under a directory of its own, at the path that it
# has
# at home. Where that directory's name appears in what comes back (files that are watched, the
# details of a fault, a signature), it is taken out, so that results are those of a local run.


class Homeward:
    """Translates messages of one host; `away` is the directory under which the subject lies."""

    def __init__(self, away: str) -> None:
        self._away = away
        self._mark = away.encode()
        self._ids: dict[str, str] = {}

    def text(self, told: str) -> str:
        """A line without the directory.

        >>> Homeward("/scratch/7").text("cannot import /scratch/7/home/ann/stack.py")
        'cannot import /home/ann/stack.py'
        """
        return told.replace(self._away, "")

    def message(self, packed: bytes) -> bytes:
        """Translate a packed `BatchMessage`."""
        if self._mark not in packed and not self._ids:
            return packed
        message = BatchMessage.unpack(packed)
        targets, sources, outside, notes = message.news
        sources = [(path, text, self.text(place)) for path, text, place in sources]
        news = (targets, sources, outside, [self.text(note) for note in notes])
        faults = [self._fault(*fault) for fault in message.faults]
        rows = [self._row(row) for row in message.rows]
        return message._replace(rows=rows, news=news, faults=faults).pack()

    def _fault(self, id: str, kind: str, signature: str, details: str, *rest: Any) -> Any:
        at_home = Fault(kind, self.text(signature), self.text(details))
        if at_home.signature != signature:
            self._ids[id] = at_home.id
        return (self._ids.get(id, id), kind, at_home.signature, at_home.details, *rest)

    def _row(self, row: TrialRecord) -> TrialRecord:
        if row.fault not in self._ids:
            return row
        return row._replace(fault=self._ids[row.fault])


_PIECE_SECONDS = 0.1
_LARGEST_PIECE = 1000
_LARGEST_TOLD = 64
"""Proposals that fit a socket's buffer."""
_LISTEN = 0.05
_LAST_WORDS = 1.0
"""Seconds that a host has to send its last rows once it is stopped."""


@dataclass
class Stint:
    """The results of some trials."""

    done: int = 0
    """How many of them, from the first, were run."""
    messages: list[bytes] = field(default_factory=list)
    seconds: float = 0.0
    error: str = ""
    """What is wrong with the subject, if it cannot be tested."""


class Guest:
    """A host process, seen from the Dask worker that started it."""

    def __init__(self, name: str, spawned: Spawned, homeward: Homeward) -> None:
        self.name = name
        self.alive = True
        self.idle_since = 0.0
        self._line = spawned.line
        self._process = spawned.process
        self._frames = wire.Frames(self._line.fileno())
        self._homeward = homeward
        self._unheard: list[tuple[int, bytes]] = []
        self._told = 0
        self._outside = b""
        self._rate = 0.0
        self._piece = 1
        self._ready = False

    @property
    def told(self) -> int:
        """The number of the last message that the campaign must receive."""
        return self._told

    def forget(self, heard: int) -> None:
        """Forget the messages up to this number: the campaign has received them."""
        self._unheard = [(number, text) for number, text in self._unheard if number > heard]

    def unheard(self) -> list[bytes]:
        """Return the messages that the campaign has not confirmed."""
        return [text for _, text in self._unheard]

    def run(
        self,
        trials: list[int],
        proposals: list[Any] | None,
        seconds: float,
        stopped: Callable[[], bool],
    ) -> Stint:
        """Run trials in order for about so long; at least one, unless the host ends or is told to.

        Pieces of a tenth of a second go to the host, so that a slow machine gives back in time what
        it cannot do.
        """
        stint = Stint()
        while self.alive and not self._ready:
            self._listen(stint, stopped)
        start = time.monotonic()
        while self.alive and stint.done < len(trials) and not stopped():
            if stint.done and time.monotonic() - start >= seconds:
                break
            self._run_piece(stint, trials, proposals, stopped)
        stint.seconds = time.monotonic() - start
        return stint

    def _run_piece(
        self,
        stint: Stint,
        trials: list[int],
        proposals: list[Any] | None,
        stopped: Callable[[], bool],
    ) -> None:
        largest = _LARGEST_PIECE if proposals is None else _LARGEST_TOLD
        wanted = int(self._rate * _PIECE_SECONDS)
        self._piece = max(1, min(wanted, 4 * self._piece, largest))
        first, last = stint.done, stint.done + self._piece
        told = None if proposals is None else proposals[first:last]
        began = time.monotonic()
        self._send(("batch", (trials[first:last], told)))
        self._hear_piece(stint, stopped)
        rate = (stint.done - first) / max(time.monotonic() - began, 1e-6)
        self._rate = 0.5 * (self._rate or rate) + 0.5 * rate

    def _hear_piece(self, stint: Stint, stopped: Callable[[], bool]) -> None:
        deadline = float("inf")
        while self.alive and time.monotonic() < deadline:
            if self._listen(stint, stopped):
                return
            if stopped() and deadline == float("inf"):
                deadline = time.monotonic() + _LAST_WORDS
                self._send(("stop", None))
        self.alive = False

    def _listen(self, stint: Stint, stopped: Callable[[], bool]) -> bool:
        """Take what the host says within a moment; whether it said that it is done."""
        if not select.select([self._line], [], [], _LISTEN)[0]:
            self.alive = self._ready or not stopped()
            return False
        done = False
        for kind, body in self._frames.receive():
            if kind == "rows":
                count, _ranks, packed = body
                stint.done += count
                stint.messages.append(self._noted(packed))
            elif kind == "ready":
                self._ready = True
                stint.messages.append(self._noted(body))
            elif kind == "error":
                stint.error = self._homeward.text(body)
                self.alive = False
            done = done or kind == "done"
        if self._frames.ended:
            self.alive = False
        return done

    def _noted(self, packed: bytes) -> bytes:
        """A message in the campaign's words; what must not get lost of it is kept."""
        message = self._homeward.message(packed)
        told = BatchMessage.unpack(message)
        targets, sources, outside, notes = told.news
        if told.faults or targets or sources or notes or outside != self._outside:
            self._outside = outside
            self._told += 1
            self._unheard.append(
                (self._told, told._replace(rows=[], sets=[], set_indices=[], tests=[]).pack())
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
