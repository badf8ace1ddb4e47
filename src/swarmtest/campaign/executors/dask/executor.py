"""The executor that runs batches on a cluster, through Dask.

Which worker runs what, and how often, never changes a result: a batch is answered once, whatever
else is said of it later. Batches that a worker, a scheduler or a connection takes with it to its
grave are handed out again.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from swarmtest.campaign.executors.dask.connection import Answer, Link, Unreachable
from swarmtest.campaign.executors.dask.scheduler import Place
from swarmtest.campaign.executors.executor import BatchShape
from swarmtest.campaign.executors.worker import BatchMessage
from swarmtest.core.errors import UserError
from swarmtest.store.records import WorkerRecord

# The workers of a cluster as a campaign sees them: who worked, who is gone, who refused.


class Crew:
    """Remembers workers by their addresses."""

    def __init__(self) -> None:
        self._known: dict[str, WorkerRecord] = {}
        self._refusals: dict[str, str] = {}

    @property
    def refusing(self) -> Collection[str]:
        """The addresses of workers that run nothing of ours."""
        return self._refusals.keys()

    @property
    def refusals(self) -> list[str]:
        """Return the reasons, one line each."""
        return list(self._refusals.values())

    def refused(self, worker: str, why: str) -> None:
        """Note a worker that has another version of something."""
        self._refusals[worker] = why

    def worked(self, answer: dict[str, Any]) -> None:
        """Note that a worker has finished a batch, or a part of it."""
        now = time.time()
        known = self._known.get(answer["worker"]) or WorkerRecord(
            answer["worker"], answer["machine"], answer["pid"], now, now
        )
        tests = known.tests + answer["done"]
        self._known[answer["worker"]] = known._replace(tests=tests, last_seen=now)

    def records(self, present: Collection[str]) -> list[WorkerRecord]:
        """Return what is known about all workers."""
        return [
            record if record.name in present else record._replace(state="lost")
            for record in self._known.values()
        ]


# What hosts tell besides rows, and which of it the campaign has heard.
#
# A fault that only a dropped copy of a batch showed (a program that is not the same twice) must
# not
# count: what is known of a fault waits until a row that counts refers to it.


class Definitions:
    """Sorts the messages that come with rows."""

    def __init__(self) -> None:
        self._heard: dict[str, int] = {}
        self._counted: set[str] = set()
        self._held: dict[str, list[Any]] = {}

    def heard_from(self, workers: Iterable[str]) -> dict[str, int]:
        """Return the last message from each host on these workers; forget other workers."""
        known = set(workers)
        self._heard = {h: n for h, n in self._heard.items() if h.rpartition("/")[0] in known}
        return dict(self._heard)

    def taken(
        self, answer: dict[str, Any], messages: Sequence[BatchMessage], *, with_rows: bool
    ) -> list[BatchMessage]:
        """Return an answer's messages for the recorder, without rows if they were sent before."""
        host = answer.get("host")
        if host is not None:
            self._heard[host] = max(answer["told"], self._heard.get(host, 0))
        return [self._sorted(message, with_rows=with_rows) for message in messages]

    def _sorted(self, message: BatchMessage, *, with_rows: bool) -> BatchMessage:
        if not with_rows:
            message = message._replace(rows=[], sets=[], set_indices=[], tests=[])
        for fault in message.faults:
            self._held.setdefault(fault[0], []).append(fault)
        self._counted.update(row.fault for row in message.rows if row.fault is not None)
        known = [fault for id in self._counted & self._held.keys() for fault in self._held.pop(id)]
        return message._replace(faults=known)


_ATTEMPTS = 25
"""How often a batch may fail because workers died before the campaign gives up."""
_DEATHS = 3
"""How often in a row a host may die without a result."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_SHAPE = BatchShape(seconds=0.5, learning_seconds=0.2, largest_told=512, grace=3.0)


@dataclass
class _Batch:
    """Trials that a worker has, and what a learning strategy proposed for them."""

    trials: list[int]
    told: list[Any] | None
    attempts: int = 0
    since: float = 0.0
    """When it was handed out last."""


class DaskEngine:
    """Workers of a Dask cluster."""

    def __init__(self, place: Place, shipment: dict[str, Any], longest_test: float) -> None:
        """`longest_test`: seconds that one test may take, by its limit."""
        self._place = place
        self._shipment = shipment
        self._longest = 2 * longest_test + 2 * _LONGEST_WAIT
        self._token = uuid.uuid4().hex
        self._numbers = itertools.count()
        self._out: dict[int, _Batch] = {}
        self._again: deque[_Batch] = deque()
        self._definitions = Definitions()
        self._crew = Crew()
        self._deaths = 0
        self._stopping = False
        self._wait = 0.0
        self._next_try = 0.0
        self._without_since = 0.0
        self.shape = _SHAPE
        self.deaf_to_interrupts = True
        self.rate = 0.0
        self._link: Link | None = self._first_connection()

    @property
    def slots(self) -> int:
        """The number of tests that run at the same time, as far as is known."""
        return sum(self._threads().values())

    @property
    def hungry(self) -> int:
        """The number of batches that could be handed over now: the scheduler never holds many."""
        if self._stopping:
            return 0
        return 2 * self.slots + 2 - len(self._out) - len(self._again)

    @property
    def busy(self) -> bool:
        """Whether any batch is out."""
        return bool(self._out or self._again)

    @property
    def condition(self) -> str:
        """What a waiting user should know; empty if all is well."""
        seconds = time.monotonic() - self._without_since
        if self._link is None:
            return f"no connection to {self._place.name} for {seconds:.0f} s"
        if not self._threads():
            return f"no workers at {self._place.name} for {seconds:.0f} s"
        return ""

    @property
    def notes(self) -> list[str]:
        """What a user should know at the end."""
        return self._crew.refusals

    def workers(self) -> list[WorkerRecord]:
        """Return the workers and their state."""
        return self._crew.records(self._threads())

    def feed(self, trials: list[int], told: list[Any] | None) -> None:
        """Hand a batch to the scheduler."""
        self._send(_Batch(trials, told))

    def collect(self, timeout: float) -> list[Any]:
        """Return the batches of rows that arrive within `timeout` seconds; perhaps none."""
        self._keep_in_touch()
        if self._link is None:
            time.sleep(min(timeout, 0.05))
            return []
        found: list[Any] = []
        for number, answer in self._link.answers(timeout):
            found += self._taken(number, answer)
        self._send_again()
        return found

    def stop(self) -> None:
        """Tell the workers to finish the test at hand and drop the rest."""
        self._stopping = True
        self._again.clear()
        if self._link is not None:
            self._link.stop()

    def close(self) -> None:
        """Disconnect from the cluster, or end it if we started it."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._place.close()

    def _threads(self) -> dict[str, int]:
        """Return the workers that may run our tests, and how many each of them runs."""
        if self._link is None:
            return {}
        for worker, why in self._link.unfit.items():
            self._crew.refused(worker, why)
        threads = self._link.threads
        return {name: n for name, n in threads.items() if name not in self._crew.refusing}

    def _first_connection(self) -> Link:
        """Connect, in a time that we measure: Dask uses the wall clock, which may jump."""
        deadline = time.monotonic() + self._place.connect
        while True:
            try:
                return self._connect()
            except Unreachable as error:
                if time.monotonic() >= deadline:
                    self._place.close()
                    raise UserError(self._place.unreachable(str(error))) from None
            time.sleep(_FIRST_WAIT)

    def _connect(self) -> Link:
        return Link(self._place.client, self._token, self._shipment)

    def _send(self, batch: _Batch) -> None:
        number = next(self._numbers)
        batch.since = time.monotonic()
        self._out[number] = batch
        self._hand_over(number, batch)

    def _hand_over(self, number: int, batch: _Batch) -> None:
        if self._link is None:
            return  # handed over when there is a line again
        order = {
            "token": self._token,
            "trials": batch.trials,
            "told": batch.told,
            "seconds": 2 * _SHAPE.seconds,
            "heard": self._definitions.heard_from(self._link.threads),
        }
        chosen = [*self._threads()] if self._crew.refusing else None
        self._link.send(number, order, chosen)

    def _send_again(self) -> None:
        while self._again and 2 * self.slots + 2 > len(self._out) and not self._stopping:
            self._send(self._again.popleft())
        if self._again or self._stopping or len(self._out) >= max(self.slots, 1):
            return
        # Nothing else is left to do: whoever is free may try what takes others very long.
        now = time.monotonic()
        for number, batch in self._out.items():
            if now - batch.since > self._longest:
                batch.since = now
                self._hand_over(number, batch)

    def _taken(self, number: int, answer: Answer) -> list[Any]:
        """Return the rows of an answer, unless another worker has answered the batch before."""
        if isinstance(answer, BaseException):
            self._failed(number, answer)
            return []
        if "refused" in answer:
            self._refused(number, answer)
            return []
        if answer["error"]:
            raise UserError(f"{answer['error']} (on worker {answer['worker']})")
        batch = self._out.pop(number, None)
        messages = [BatchMessage.unpack(message) for message in answer["messages"]]
        told = self._definitions.taken(answer, messages, with_rows=batch is not None)
        if batch is not None:
            self._finish(batch, answer)
        return told

    def _finish(self, batch: _Batch, answer: dict[str, Any]) -> None:
        done: int = answer["done"]
        self._crew.worked(answer)
        if done:
            self._deaths = 0
            rate = done / max(answer["seconds"], 1e-6)
            self.rate = rate if not self.rate else 0.7 * self.rate + 0.3 * rate
        elif answer["died"]:
            self._deaths += 1
            if self._deaths > _DEATHS:
                raise UserError(
                    f"worker processes were killed {self._deaths} times in a row from outside "
                    f"(out of memory?), last on {answer['worker']}; what was finished is kept, "
                    "and `swarmtest resume` goes on"
                )
        if done < len(batch.trials) and not self._stopping:
            told = None if batch.told is None else batch.told[done:]
            self._again.append(_Batch(batch.trials[done:], told))

    def _failed(self, number: int, error: BaseException) -> None:
        """Handle a task without a result: its workers died, or could not begin."""
        if self._link is not None and self._link.lost:
            return  # all that is out will be handed out again
        batch = self._out.pop(number, None)
        if batch is None or self._stopping:
            return
        batch.attempts += 1
        if batch.attempts >= _ATTEMPTS or type(error).__name__ != "KilledWorker":
            raise UserError(
                f"a batch failed on the workers at {self._place.name}: "
                f"{type(error).__name__}: {' '.join(str(error).split())}"
            )
        self._again.append(batch)

    def _refused(self, number: int, answer: dict[str, Any]) -> None:
        self._crew.refused(answer["worker"], answer["refused"])
        batch = self._out.pop(number, None)
        if batch is not None:
            self._again.append(batch)

    def _keep_in_touch(self) -> None:
        """Notice a lost scheduler or a lack of workers, and send the unanswered batches again."""
        now = time.monotonic()
        self._without_since = self._without_since or now
        if self._link is not None and self._link.lost:
            self._link.close()
            self._link = None
            self._wait, self._next_try = _FIRST_WAIT, now
        if self._link is None and now >= self._next_try and not self._stopping:
            self._reconnect(now)
        if self._link is not None and self._threads():
            self._without_since = now
        elif self._link is not None and self._link.threads:
            raise UserError(self._crew.refusals[0])  # all that are there refuse
        elif now - self._without_since > self._place.patience:
            raise UserError(
                f"{self.condition or 'nothing to work with'}; what was finished is kept, and "
                "`swarmtest resume` goes on when there are workers"
            )

    def _reconnect(self, now: float) -> None:
        try:
            self._link = self._connect()
        except Unreachable:
            self._wait = min(2 * self._wait, _LONGEST_WAIT)
            self._next_try = now + self._wait
            return
        for number, batch in self._out.items():
            batch.since = now
            self._hand_over(number, batch)
