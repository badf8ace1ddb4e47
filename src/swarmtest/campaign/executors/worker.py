"""The inner loop of a campaign: ask, run, record. It runs in a process that a test may kill.

A worker gets trial numbers (or, from a strategy that learns, whole proposals) and returns rows that
are ready for the store. Before each test, it writes the trial and its start time into shared
memory, so that the host knows which test was running when the worker hung or died.
"""

from __future__ import annotations

import functools
import marshal
import mmap
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import _exit, getpid  # by their names, here and below: a test may replace what `os` has
from time import monotonic_ns, process_time_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from swarmtest.campaign.hits import NO_NEWS, HitSender, News
from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.faults import message_of
from swarmtest.core.result import Fault, Result
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream, seeds_of_tests, trial_key
from swarmtest.processes.tree import children_cpu_ns, reported_cpu_ns, stray_check
from swarmtest.store.records import TrialRecord, pack_counts, pack_floats
from swarmtest.strategies.strategy import LearningStrategy, Strategy, strategy_text
from swarmtest.subjects.subject import Subject, identity_of, printed_code

if TYPE_CHECKING:
    from swarmtest.coverage.watch import Coverage

TRIAL, STARTED, STOP, SENDING, PIPE_GONE, LAST, SPENT = range(7)
"""Indices into the cell of shared memory: the trial at hand, when it began (ns), "stop now",
whether results are being sent (that is no test's time), whether they cannot be sent any more, the
last trial of those that have ended, and the CPU time (ns) of the process when the trial began."""
IDLE = -1


def private_cell() -> memoryview:
    """Return a cell that this process shares with its forks."""
    return _idle(mmap.mmap(-1, mmap.PAGESIZE))


def cell_of_file(file: int) -> memoryview:
    """Return a cell that all processes share which have this file."""
    os.truncate(file, mmap.PAGESIZE)
    return _idle(mmap.mmap(file, mmap.PAGESIZE))


def _idle(memory: mmap.mmap) -> memoryview:
    cell = memoryview(memory).cast("q")
    cell[TRIAL] = cell[LAST] = IDLE
    return cell


_dumps = marshal.dumps

_FLUSH_NS = 200_000_000
"""Results are sent after this time: what a test kills with its process has to run again."""
_FLUSH_ROWS = 4096
_FLUSH_TARGETS = 3_000_000
"""Hits of a batch, one for each test and target: what can be turned round in little memory."""
_FASTEST_CHILD_NS = 50_000
"""No test that starts a process takes less; to ask for the time of children takes a microsecond."""
_BLOCK_ROWS = 64
"""Smaller batches are sent as rows; the process that writes collects them into blocks."""


@dataclass
class CampaignJob:
    """What every worker of a campaign needs."""

    subject: Subject
    strategy: Strategy
    seed: int
    keep_tests: bool = False
    """Keep every test whole, not only those that show a fault."""
    coverage: Coverage | None = None
    """Records what tests reach, in the process that runs them."""
    packs_blocks: bool = False
    """Whether workers pack their results into blocks, which the recorder need not look into."""
    moved_below: str = ""
    """The directory below which the subject's files lie here, each at the path that it has on the
    campaign's machine. Results do not contain it, so they are those of a local run."""


_Row = tuple[
    int, bytes, bytes, str, int, int, str | None, int, int, bytes, None, int, int, str
]  # fmt: skip
"""The fields of a `TrialRecord` without hits. The process that receives the batch makes the
records: in the worker, that would take 2% of the time of a fast test."""
_trial_record = functools.partial(tuple.__new__, TrialRecord)
"""`TrialRecord._make` in half the time."""


_BLOCK_FAULTS = 1
"""The place of `SentBlock.faults`, without loading numpy."""


class BatchMessage(NamedTuple):
    """What a worker sends to the recorder."""

    rows: list[TrialRecord]
    """Trials without their hits, which follow as `sets` and `set_indices`."""
    sets: list[bytes]
    """The distinct sets of targets that tests of the batch reached, each as `HitSender.keys`."""
    set_indices: list[tuple[int, ...]]
    """For each row, the indices of its sets in `sets`."""
    news: News
    faults: list[tuple[Any, ...]]
    """The fields of `FaultRecord` without the count: the test as JSON data, and its code."""
    tests: list[tuple[int, Any]]
    """Tests that are kept whole, as JSON data, by trial."""
    killed: tuple[int, ...] = ()
    """Trials whose process was killed from outside, and whose rows are of another run."""
    block: tuple[Any, ...] | None = None
    """A `SentBlock` in place of `rows`, `sets` and `set_indices`."""

    @property
    def shown_faults(self) -> set[str]:
        """The ids of the faults that trials of this message show."""
        if self.block is not None:
            faults: Iterable[tuple[Any, ...]] = self.block[_BLOCK_FAULTS]
            return {fault for fault, *_ in faults}
        return {row.fault for row in self.rows if row.fault is not None}

    def without_trials(self) -> BatchMessage:
        """Return what came with the trials."""
        return self._replace(rows=[], sets=[], set_indices=[], tests=[], block=None)

    def pack(self) -> bytes:
        """Return the message as bytes."""
        rows = list(map(tuple, self.rows))  # marshal takes no subclasses of tuple
        return _dumps((rows, *self[1:]))

    @classmethod
    def unpack(cls, packed: bytes) -> BatchMessage:
        """Return the message that `pack` or `RowBatch.packed` packed."""
        rows, *rest = marshal.loads(packed)
        return cls(list(map(_trial_record, rows)), *rest)


class RowBatch:
    """Rows for the store, with what they refer to."""

    def __init__(self) -> None:
        self.rows: list[_Row] = []
        self.sets: dict[tuple[int, bytes], int] = {}
        """The distinct sets of targets: the place of the catalogue, and numbers in it."""
        self.set_indices: list[tuple[int, ...]] = []
        self.targets = 0
        """How many targets the tests have hit, each test for itself."""
        self.keys: list[bytes] = []
        """`sets` as they are sent; `TrialRunner.complete` fills it in."""
        self.block: tuple[Any, ...] | None = None
        """All that in one block, in place of `keys`; likewise."""
        self.news: News = NO_NEWS
        self.faults: dict[str, tuple[Any, ...]] = {}
        self.tests: list[tuple[int, Any]] = []
        self.killed: list[int] = []
        self.lacked_memory = False
        """Whether a test failed for want of memory, which earlier tests may hold."""

    def message(self) -> BatchMessage:
        """Return the batch for a recorder in the same process."""
        rows = [] if self.block is not None else list(map(_trial_record, self.rows))
        return BatchMessage(rows, *self._rest())

    def packed(self) -> tuple[int, list[tuple[str, int, int]], bytes]:
        """Return the batch as it is sent: the number of rows, the ranks of faults, and the rest.

        The rest is packed, so that a host passes it on without looking at every row.
        """
        ranks = [(id, steps, trial) for id, *_, trial, steps, _test, _code in self.faults.values()]
        rows = [] if self.block is not None else self.rows
        return len(self.rows), ranks, _dumps((rows, *self._rest()))

    def _rest(self) -> tuple[Any, ...]:
        faults = list(self.faults.values())
        indices = [] if self.block is not None else self.set_indices
        killed = tuple(self.killed)
        return self.keys, indices, self.news, faults, self.tests, killed, self.block


class TrialRunner:
    """Runs trials of one job.

    `best` remembers the shortest test of each fault that this worker has seen, so that only tests
    that improve on it travel.
    """

    def __init__(self, job: CampaignJob) -> None:
        self.job = job
        job.subject.keep_tests = job.keep_tests
        self.best: dict[str, tuple[int, int]] = {}
        self._identity = identity_of(job.subject).replace(job.moved_below or "\0", "")
        self._stream = Stream(job.seed)
        self._sender = HitSender()
        self._last_propensities: tuple[float, ...] = ()
        self._last_packed = b""
        self._packs_blocks = job.packs_blocks and not isinstance(job.strategy, LearningStrategy)

    def proposals(self, trials: Sequence[int]) -> Iterable[Proposal]:
        """Return what the strategy proposes for these trials."""
        many = getattr(self.job.strategy, "ask_many", None)
        if many is not None:
            answers = many(self.job.subject.space, trials, self.job.seed)
            if answers is not None:
                proposals: Iterable[Proposal] = answers
                return proposals
        return self._propose_each(trials)

    def propose(self, trial: int) -> Proposal:
        """Return what the strategy proposes for one trial."""
        self._stream.rekey(trial_key(self.job.seed, trial))
        try:
            answer = self.job.strategy.ask(self.job.subject.space, trial, self._stream)
        except (UserError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise mistake_in(self.job.strategy, "ask", error) from None
        if isinstance(answer, Proposal):
            return answer
        if not isinstance(answer, Configuration):
            name = strategy_text(self.job.strategy)
            raise UserError(f"strategy {name!r}: ask returned {answer!r}, not a configuration")
        return Proposal(answer)

    def _propose_each(self, trials: Sequence[int]) -> Iterator[Proposal]:
        for trial in trials:
            yield self.propose(trial)

    def run(
        self,
        trials: Sequence[int],
        proposals: Iterable[Proposal],
        cell: Any,
        flush: Callable[[RowBatch], None],
        careful: bool = False,
    ) -> bool:
        """Run trials in order and pass rows to `flush` now and then; return False if stopped.

        `careful`: pass them on after every test. `flush` calls `complete`.
        """
        execute, process = self.job.subject.execute, getpid()
        strays = stray_check()
        coverage = self.job.coverage
        seeds = seeds_of_tests(self.job.seed, trials)
        batch = RowBatch()
        cpu, wall = process_time_ns(), monotonic_ns()
        children, reported = children_cpu_ns(), reported_cpu_ns()
        flushed = wall
        try:
            for trial, seed, proposal in zip(trials, seeds, proposals, strict=True):
                if cell[STOP]:
                    break
                cell[STARTED] = wall
                cell[SPENT] = cpu + children
                cell[TRIAL] = trial
                if coverage is None:
                    result = execute(proposal.configuration, seed)
                else:
                    coverage.reset()
                    result = execute(proposal.configuration, seed)
                    result = result._replace(covered=(coverage.take(), *result.covered))
                if getpid() != process:
                    # The program forked, and its child came back here: one of us is enough.
                    _exit(0)
                strays.end_strays()
                cpu_now, wall_now = process_time_ns(), monotonic_ns()
                spent = cpu_now - cpu
                elsewhere = int(result.cpu_seconds * 1e9)
                if wall_now - wall > _FASTEST_CHILD_NS or reported_cpu_ns() != reported:
                    before, children = children, children_cpu_ns()
                    reported = reported_cpu_ns()
                    # What the subject says includes processes that are not ours to see.
                    elsewhere = max(elsewhere, children - before)
                spent += elsewhere
                self.note(batch, trial, proposal, seed, result, spent, wall_now - wall)
                cpu, wall = cpu_now, wall_now
                if (
                    careful
                    or wall - flushed > _FLUSH_NS
                    or len(batch.rows) >= _FLUSH_ROWS
                    or batch.targets > _FLUSH_TARGETS
                ):
                    full, batch = batch, RowBatch()
                    flush(full)
                    flushed = wall
        finally:
            strays.end_strays()  # of a test that raised
            # Sent before the cell says idle: if this fails, the test is still the one at hand, as
            # it is if it raised an exception that no test should.
            flush(batch)
        cell[LAST] = cell[TRIAL]
        cell[TRIAL] = IDLE
        return not cell[STOP]

    def note(
        self,
        batch: RowBatch,
        trial: int,
        proposal: Proposal,
        seed: int,
        result: Result,
        cpu_ns: int,
        wall_ns: int,
    ) -> None:
        """Add one result to a batch."""
        fault_id = None
        if result.killed:
            batch.killed.append(trial)
        if result.fault is not None:
            fault_id = self._note_fault(batch, result.fault, trial, result)
            batch.lacked_memory = batch.lacked_memory or result.fault.kind == "memory"
        elif self.job.keep_tests and result.test is not None:
            batch.tests.append((trial, result.test))
        indices: tuple[int, ...] = ()
        if result.hits or result.covered:
            sets, place = batch.sets, self._sender.number_of
            reached = list(result.covered)
            if result.hits:
                reached.append(self._sender.named(result.hits))
            indices = tuple(
                [
                    sets.setdefault((place(catalogue), numbers), len(sets))
                    for catalogue, numbers in reached
                    if numbers
                ]
            )
            batch.targets += sum([len(numbers) for _, numbers in reached]) // 4
        batch.set_indices.append(indices)
        batch.rows.append(
            (
                trial,
                proposal.configuration.to_bytes(),
                self._packed(proposal.propensities),
                proposal.origin,
                seed,
                int(result.verdict),
                fault_id,
                result.steps,
                result.skipped,
                pack_counts(result.used),
                None,
                cpu_ns,
                wall_ns,
                result.missing,
            )
        )

    def _packed(self, propensities: tuple[float, ...]) -> bytes:
        """Return propensities as the store keeps them.

        Comparing many numbers takes as long as packing them, so only the last ones are kept: a
        strategy that has the same for all trials mostly returns the same object.
        """
        if len(propensities) < 2:
            return _single_number(propensities)
        if propensities is not self._last_propensities:
            self._last_propensities = propensities
            self._last_packed = pack_floats(propensities)
        return self._last_packed

    def complete(self, batch: RowBatch) -> RowBatch:
        """Return a batch ready to be sent, with what its rows refer to for the first time."""
        if self._packs_blocks and len(batch.rows) >= _BLOCK_ROWS:
            from swarmtest.campaign.executors.block_batch import pack_batch
            from swarmtest.store.loose_blocks import BlockLayout

            layout = BlockLayout(len(self.job.subject.space.features), self.job.seed)
            keys = self._sender.key_arrays()
            batch.block = tuple(pack_batch(batch.rows, batch.sets, batch.set_indices, keys, layout))
        else:
            batch.keys = [self._sender.keys_of_set(*each) for each in batch.sets]
        batch.news = self._news()
        return batch

    def _news(self) -> News:
        """Return what was not sent yet, with the paths of the campaign's machine."""
        targets, sources, outside, notes = self._sender.news(self.job.coverage)
        moved = self.job.moved_below
        if moved:
            sources = [(path, text, place.replace(moved, "")) for path, text, place in sources]
            notes = [note.replace(moved, "") for note in notes]
        return targets, sources, outside, notes

    def introduction(self) -> RowBatch:
        """Return a batch without rows: the subject is loaded, and tests come next.

        It has all targets that are known so far, so that no child has to send them.
        """
        coverage = self.job.coverage
        if coverage is not None:
            if not getattr(self.job.subject, "loads_late", False):
                coverage.begin(getattr(self.job.subject, "harness", ""))
            self._sender.know(coverage.catalogue)
        return self.complete(RowBatch())

    def _note_fault(self, batch: RowBatch, fault: Fault, trial: int, result: Result) -> str:
        """Return the fault's id; add its test to the batch if it is the shortest so far."""
        moved = self.job.moved_below
        if moved:
            signature = fault.signature.replace(moved, "")
            fault = Fault(fault.kind, signature, fault.details.replace(moved, ""))
        fault_id = fault.of_subject(self._identity).id
        rank = (result.steps, trial)
        best = self.best.get(fault_id)
        if best is None or rank < best:
            self.best[fault_id] = rank
            batch.faults[fault_id] = (
                fault_id,
                fault.kind,
                fault.signature,
                fault.details,
                trial,
                trial,
                result.steps,
                result.test,
                printed_code(self.job.subject, result.test),
            )
        return fault_id


def tell(strategy: LearningStrategy, results: Iterable[Result]) -> None:
    """Tell a learning strategy the results; report an exception in it as the user's mistake."""
    try:
        for result in results:
            strategy.tell(result)
    except (UserError, KeyboardInterrupt):
        raise
    except Exception as error:
        raise mistake_in(strategy, "tell", error) from None


def mistake_in(strategy: Strategy, method: str, error: Exception) -> UserError:
    """Describe an exception in a user's strategy in one line: what happened, and where."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return UserError(
        f"strategy {strategy_text(strategy)!r}: {method} raised "
        f"{message_of(error)} ({frame.filename}:{frame.lineno})"
    )


_single_number = functools.lru_cache(maxsize=1024)(pack_floats)


def pack_proposal(proposal: Proposal) -> tuple[bytes, tuple[float, ...], str]:
    """Return a proposal as plain data, for another process."""
    return proposal.configuration.to_bytes(), proposal.propensities, proposal.origin


def unpack_proposals(
    space: Any, described: Sequence[tuple[bytes, tuple[float, ...], str]]
) -> list[Proposal]:
    """Return the proposals that `pack_proposal` described."""
    return [
        Proposal(Configuration.from_bytes(space, data), tuple(propensities), origin)
        for data, propensities, origin in described
    ]
