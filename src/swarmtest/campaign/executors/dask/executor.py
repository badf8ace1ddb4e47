"""The executor that runs batches on a cluster, through Dask.

Which worker runs what, and how often, never changes a result: the first answer to a batch counts,
and later ones are dropped. Batches that get lost with a worker, a scheduler or a connection are
handed out again.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from swarmtest.campaign.executors.dask.connection import Answer, SchedulerConnection, Unreachable
from swarmtest.campaign.executors.dask.scheduler import SchedulerAccess
from swarmtest.campaign.executors.executor import BatchShape, Executor
from swarmtest.campaign.executors.worker import BatchMessage
from swarmtest.core.errors import UserError
from swarmtest.processes.kills import FEWEST_KILLS
from swarmtest.store.records import WorkerRecord

# The workers of a cluster as a campaign sees them: which have worked, are gone, or refused.


class WorkerRoster:
    """Remembers workers by their addresses."""

    def __init__(self) -> None:
        self._workers: dict[str, WorkerRecord] = {}
        self._refusals: dict[str, str] = {}

    @property
    def refusing(self) -> Collection[str]:
        """The addresses of workers that run nothing of ours."""
        return self._refusals.keys()

    @property
    def refusals(self) -> list[str]:
        """Return the reasons, one line each."""
        return list(self._refusals.values())

    def note_refusal(self, worker: str, why: str) -> None:
        """Note a worker that has another version of something."""
        self._refusals[worker] = why

    def note_work(self, answer: dict[str, Any]) -> None:
        """Note that a worker has finished a batch, or a part of it."""
        now = time.time()
        record = self._workers.get(answer["worker"]) or WorkerRecord(
            answer["worker"], answer["machine"], answer["pid"], now, now
        )
        tests = record.tests + answer["done"]
        self._workers[answer["worker"]] = record._replace(tests=tests, last_seen=now)

    def records(self, present: Collection[str]) -> list[WorkerRecord]:
        """Return what is known about all workers."""
        return [
            record if record.name in present else record._replace(state="lost")
            for record in self._workers.values()
        ]


# What hosts send besides rows, and which of it the campaign has received.
#
# A fault that only a dropped copy of a batch showed (a program that is not the same twice) must
# not count: what is known of a fault waits until a row that counts refers to it.


class Definitions:
    """Sorts the messages that come with rows."""

    def __init__(self) -> None:
        self._received: dict[str, int] = {}
        self._counted: set[str] = set()
        self._held: dict[str, list[Any]] = {}

    def received_from(self, workers: Iterable[str]) -> dict[str, int]:
        """Return the last message from each host on these workers; forget other workers."""
        present = set(workers)
        self._received = {
            host: number
            for host, number in self._received.items()
            if host.rpartition("/")[0] in present
        }
        return dict(self._received)

    def accept(
        self, answer: dict[str, Any], messages: Sequence[BatchMessage], *, with_rows: bool
    ) -> list[BatchMessage]:
        """Return an answer's messages for the recorder, without rows if they were sent before."""
        host = answer.get("host")
        if host is not None:
            self._received[host] = max(answer["last_message"], self._received.get(host, 0))
        return [self._sort(message, with_rows=with_rows) for message in messages]

    def _sort(self, message: BatchMessage, *, with_rows: bool) -> BatchMessage:
        if not with_rows:
            message = message.without_trials()
        for fault in message.faults:
            self._held.setdefault(fault[0], []).append(fault)
        self._counted |= message.shown_faults
        shown = [fault for id in self._counted & self._held.keys() for fault in self._held.pop(id)]
        return message._replace(faults=shown)


_ATTEMPTS = 25
"""How often a batch may fail because workers died before the campaign gives up."""
_MOST_DEATHS = 10
"""How often in a row, for each thread of the workers, hosts may die without a result."""
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0
_LOADING = 60.0
"""Seconds that workers have to load the subject, besides."""
_SHAPE = BatchShape(
    seconds=1.0,
    learning_seconds=0.2,
    shortest_seconds=0.1,
    largest=50_000,
    largest_with_proposals=512,
    grace=3.0,
)
"""Handing over a batch takes Dask about ten milliseconds, whatever is in it. A worker that is
killed costs the tests of the batches that it had, which others run again."""


@dataclass
class _PendingBatch:
    """Trials that a worker has, and what a learning strategy proposed for them."""

    trials: list[int]
    proposals: list[Any] | None
    attempts: int = 0
    since: float = 0.0
    """When it was handed out last."""
    one_by_one: bool = False
    """Whether a host was killed that had it: then it is run with care."""
    deaths: dict[int, int] = field(default_factory=dict)
    """How many hosts were killed while they ran a trial."""

    def left(self, answer: dict[str, Any]) -> _PendingBatch:
        """Return the trials that an answer has no results of."""
        done, died_in = answer["done"], answer["died_in"]
        proposals = None if self.proposals is None else self.proposals[done:]
        deaths = dict(self.deaths)
        if died_in is not None:
            deaths[died_in] = deaths.get(died_in, 0) + 1
        one_by_one = self.one_by_one or answer["died"]
        return _PendingBatch(self.trials[done:], proposals, one_by_one=one_by_one, deaths=deaths)

    def survived(self, done: int) -> int:
        """Return how many hosts were killed from outside: their trials have ended since.

        >>> _PendingBatch([7, 8, 9], None, deaths={7: 1, 8: 2, 9: 1}).survived(2)
        3
        """
        deaths = (self.deaths.get(trial, 0) for trial in self.trials[:done])
        return sum(count for count in deaths if count < FEWEST_KILLS)


class DaskExecutor(Executor):
    """Workers of a Dask cluster."""

    shape = _SHAPE
    defers_interrupts = True

    def __init__(
        self, access: SchedulerAccess, bundle: dict[str, Any], longest_test: float
    ) -> None:
        """`longest_test`: seconds that one test may take, by its limit."""
        self._access = access
        self._bundle = bundle
        self._longest = 2 * longest_test + 2 * _LONGEST_WAIT
        self._token = uuid.uuid4().hex
        self._numbers = itertools.count()
        self._out: dict[int, _PendingBatch] = {}
        self._again: deque[_PendingBatch] = deque()
        self._definitions = Definitions()
        self._roster = WorkerRoster()
        self._deaths = 0
        self._outside_kills = 0
        """How many hosts were killed at trials that another host survived."""
        self._stopping = False
        self._wait = 0.0
        self._next_try = 0.0
        self._without_since = 0.0
        self._heard = time.monotonic()
        self._silence = self._longest + _LOADING
        self._connection: SchedulerConnection | None = self._first_connection()

    @property
    def slots(self) -> int:
        """The number of tests that run at the same time, as far as is known."""
        return sum(self._threads().values())

    @property
    def capacity(self) -> int:
        """The number of batches that can be submitted now: the scheduler never holds many."""
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
        if self._connection is None:
            return f"no connection to {self._access.name} for {seconds:.0f} s"
        if not self._threads():
            return f"no workers at {self._access.name} for {seconds:.0f} s"
        return ""

    @property
    def notes(self) -> list[str]:
        """What a user should know at the end."""
        return self._roster.refusals

    def workers(self) -> list[WorkerRecord]:
        """Return the workers and their state."""
        return self._roster.records(self._threads())

    def submit(self, trials: list[int], proposals: list[Any] | None) -> None:
        """Hand a batch to the scheduler."""
        self._send(_PendingBatch(trials, proposals))

    def collect(self, timeout: float) -> list[Any]:
        """Return the batches of rows that arrive within `timeout` seconds; perhaps none."""
        self._keep_in_touch()
        if self._connection is None:
            time.sleep(min(timeout, 0.05))
            return []
        messages: list[Any] = []
        for number, answer in self._connection.answers(timeout):
            self._heard, self._silence = time.monotonic(), self._longest
            messages += self._accept(number, answer)
        self._send_again()
        return messages

    def stop(self) -> None:
        """Tell the workers to finish the test at hand and drop the rest."""
        self._stopping = True
        self._again.clear()
        if self._connection is not None:
            self._connection.stop()

    def close(self) -> None:
        """Disconnect from the cluster, or end it if we started it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._access.close()

    def _threads(self) -> dict[str, int]:
        """Return the workers that may run our tests, and how many each of them runs."""
        if self._connection is None:
            return {}
        for worker, why in self._connection.unfit.items():
            self._roster.note_refusal(worker, why)
        threads = self._connection.threads
        return {name: n for name, n in threads.items() if name not in self._roster.refusing}

    def _first_connection(self) -> SchedulerConnection:
        """Connect, in a time that we measure: Dask uses the wall clock, which may jump."""
        deadline = time.monotonic() + self._access.connect
        while True:
            try:
                return self._connect()
            except Unreachable as error:
                if time.monotonic() >= deadline:
                    self._access.close()
                    raise UserError(self._access.unreachable(str(error))) from None
            time.sleep(_FIRST_WAIT)

    def _connect(self) -> SchedulerConnection:
        return SchedulerConnection(self._access.client, self._token, self._bundle)

    def _send(self, batch: _PendingBatch) -> None:
        number = next(self._numbers)
        batch.since = time.monotonic()
        self._out[number] = batch
        self._hand_over(number, batch)

    def _hand_over(self, number: int, batch: _PendingBatch) -> None:
        if self._connection is None:
            return  # handed over when there is a line again
        order = {
            "token": self._token,
            "trials": batch.trials,
            "proposals": batch.proposals,
            "one_by_one": batch.one_by_one,
            "deaths": batch.deaths,
            "outside_kills": self._outside_kills,
            "seconds": 2 * _SHAPE.seconds,
            "received": self._definitions.received_from(self._connection.threads),
        }
        chosen = [*self._threads()] if self._roster.refusing else None
        self._connection.send(number, order, chosen)

    def _send_again(self) -> None:
        while self._again and 2 * self.slots + 2 > len(self._out) and not self._stopping:
            self._send(self._again.popleft())
        if self._again or self._stopping or len(self._out) >= max(self.slots, 1):
            return
        # Nothing else is left to do: a free worker may try what takes others very long.
        now = time.monotonic()
        for number, batch in self._out.items():
            if now - batch.since > self._longest:
                batch.since = now
                self._hand_over(number, batch)

    def _accept(self, number: int, answer: Answer) -> list[Any]:
        """Return the rows of an answer, unless another worker has answered the batch before."""
        if isinstance(answer, BaseException):
            self._handle_failure(number, answer)
            return []
        if "refused" in answer:
            self._handle_refusal(number, answer)
            return []
        if answer["error"]:
            raise UserError(f"{answer['error']} (on worker {answer['worker']})")
        batch = self._out.pop(number, None)
        messages = [BatchMessage.unpack(message) for message in answer["messages"]]
        accepted = self._definitions.accept(answer, messages, with_rows=batch is not None)
        if batch is not None:
            self._finish(batch, answer)
        return accepted

    def _finish(self, batch: _PendingBatch, answer: dict[str, Any]) -> None:
        done: int = answer["done"]
        self._roster.note_work(answer)
        self._outside_kills += batch.survived(done)
        if done:
            self._deaths = 0
            rate = done / max(answer["seconds"], 1e-6)
            self.rate = rate if not self.rate else 0.5 * self.rate + 0.5 * rate
        elif answer["died"]:
            self._deaths += 1
            if self._deaths > _MOST_DEATHS * max(1, self.slots):
                raise UserError(
                    f"worker processes were killed {self._deaths} times in a row from outside "
                    f"(out of memory?), last on {answer['worker']}; finished tests are kept, "
                    "and `swarmtest resume` continues"
                )
        if done < len(batch.trials) and not self._stopping:
            self._again.append(batch.left(answer))

    def _handle_failure(self, number: int, error: BaseException) -> None:
        """Handle a task without a result: its workers died, or could not begin."""
        if self._connection is not None and self._connection.lost:
            return  # all that is out will be handed out again
        batch = self._out.pop(number, None)
        if batch is None or self._stopping:
            return
        batch.attempts += 1
        if batch.attempts >= _ATTEMPTS or type(error).__name__ != "KilledWorker":
            raise UserError(
                f"a batch failed on the workers at {self._access.name}: "
                f"{type(error).__name__}: {' '.join(str(error).split())}"
            )
        self._again.append(batch)

    def _handle_refusal(self, number: int, answer: dict[str, Any]) -> None:
        self._roster.note_refusal(answer["worker"], answer["refused"])
        batch = self._out.pop(number, None)
        if batch is not None:
            self._again.append(batch)

    def _keep_in_touch(self) -> None:
        """Notice a lost scheduler or a lack of workers, and send the unanswered batches again."""
        now = time.monotonic()
        self._without_since = self._without_since or now
        self._abandon_if_silent(now)
        if self._connection is not None and self._connection.lost:
            self._connection.close()
            self._connection = None
            self._wait, self._next_try = _FIRST_WAIT, now
        if self._connection is None and now >= self._next_try and not self._stopping:
            self._reconnect(now)
        if self._connection is not None and self._threads():
            self._without_since = now
        elif self._connection is not None and self._connection.threads:
            raise UserError(self._roster.refusals[0])  # all that are there refuse
        elif now - self._without_since > self._access.patience:
            raise UserError(
                f"{self.condition or 'no workers'}; finished tests are kept, and "
                "`swarmtest resume` continues when there are workers"
            )

    def _abandon_if_silent(self, now: float) -> None:
        """Count the connection as lost when no answer comes although workers have batches.

        Dask's messages wait for times of the wall clock, so if that is set back by an hour, they
        wait for an hour. Workers may also just be slow, so wait longer the next time.
        """
        if not self._out or self._connection is None or not self._threads():
            self._heard = now
        elif now - self._heard > self._silence:
            self._connection.abandon()
            self._heard, self._silence = now, 2 * self._silence

    def _reconnect(self, now: float) -> None:
        try:
            self._connection = self._connect()
        except Unreachable:
            self._wait = min(2 * self._wait, _LONGEST_WAIT)
            self._next_try = now + self._wait
            return
        for number, batch in self._out.items():
            batch.since = now
            self._hand_over(number, batch)
