"""Executors: where the trials of a campaign run, and how a user names one.

`Executor` is the base class: a new executor has three methods to write. `InlineExecutor` runs
trials in this process, `local.py` in worker processes, and `dask/` on a cluster. `parse_executor`
reads ``--executor``.
"""

from __future__ import annotations

import inspect
import re
import shlex
import time
import tomllib
import traceback
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import swarmtest
from swarmtest.campaign.budget import parse_seconds
from swarmtest.campaign.executors.worker import (
    SPENT,
    STOP,
    CampaignJob,
    RowBatch,
    TrialRunner,
    unpack_proposals,
)
from swarmtest.campaign.hits import NO_NEWS
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import message_of
from swarmtest.languages.user_objects import entry_point, entry_point_names, load_object
from swarmtest.processes.tree import Supervision
from swarmtest.store.records import WorkerRecord


@dataclass(frozen=True)
class BatchShape:
    """How large the batches of an executor should be, and how long it may take to stop.

    >>> BatchShape().seconds
    0.2
    """

    seconds: float = 0.2
    """How long a batch should take."""
    learning_seconds: float = 0.05
    """The same for a strategy that learns: what is out was asked for before it learnt more."""
    shortest_seconds: float = 0.0
    """Near the end of the budget, batches shrink so that all workers stay busy, to no less than
    this. It should be longer than it takes to hand over a batch."""
    largest: int = 4096
    """Trials in a batch."""
    largest_with_proposals: int = 64
    """Trials in a batch that comes with proposals: they must fit a socket's buffer, or both ends
    might wait for each other."""
    grace: float = 0.8
    """Seconds for the last rows after `Executor.stop`."""


class Executor(ABC):
    """Runs the trials of a campaign, in batches: the base class of every executor.

    Write `submit`, `collect` and `busy`. Everything else has a default, which suits an executor
    that takes one batch at a time. `run_trials` runs a batch in this process. Which executor runs a
    trial, and in which order, must not change its result: that follows from the campaign's seed and
    the trial's number.

    A campaign calls ``submit`` as long as `capacity` is above 0, then ``collect`` again and again
    until the executor is not `busy`. It calls ``stop`` if it has to end before that, and ``close``
    in any case.

    >>> from swarmtest import Campaign, Machine, action
    >>> class Lamp(Machine):
    ...     @action
    ...     def press(self): pass
    >>> class Direct(Executor):
    ...     "Runs each batch at once, in this process."
    ...     rows = ()
    ...     def submit(self, trials, proposals): self.rows = self.run_trials(trials, proposals)
    ...     def collect(self, timeout): rows, self.rows = self.rows, (); return rows
    ...     @property
    ...     def busy(self): return bool(self.rows)
    >>> Campaign(Lamp, "coin", 20, store=":memory:", executor=Direct).run().progress.tests
    20
    """

    shape: BatchShape = BatchShape()
    """How large batches should be."""
    rate: float = 0.0
    """Tests per second of one worker, lately; 0 while unknown. Batches are sized by it, and
    `run_trials` sets it."""
    defers_interrupts: bool = False
    """Whether Ctrl-C waits until `collect` returns. Say yes if trials run elsewhere: then no row
    that has arrived gets lost."""

    def __init__(self, job: CampaignJob) -> None:
        """Keep what is to be run.

        Parameters after `job` are options of the executor: ``--executor-option NAME=VALUE``.
        """
        self.job = job
        self._runner: TrialRunner | None = None
        self._finished: list[RowBatch] = []
        self._cell = [0] * (SPENT + 1)

    # To be written.

    @abstractmethod
    def submit(self, trials: list[int], proposals: list[Any] | None) -> None:
        """Take a batch: the numbers of trials, to be run in this order.

        `proposals` says what a strategy that learns has proposed for each of them, as plain data;
        None if the strategy is asked where the trials run.
        """

    @abstractmethod
    def collect(self, timeout: float) -> list[Any]:
        """Return results that arrive within `timeout` seconds, as `run_trials` returns them."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether there is a batch whose results `collect` has not returned."""

    # With defaults.

    @property
    def capacity(self) -> int:
        """The number of batches that can be submitted now."""
        return 0 if self.busy else 1

    @property
    def slots(self) -> int:
        """The number of tests that run at the same time."""
        return 1

    @property
    def condition(self) -> str:
        """A warning for a user who is waiting, such as a lost connection; empty if all is well."""
        return ""

    @property
    def notes(self) -> Sequence[str]:
        """Lines for the user, shown at the end."""
        return ()

    def workers(self) -> list[WorkerRecord]:
        """Return the workers and their state, for ``show`` and the dashboard."""
        return []

    def stop(self) -> None:
        """Finish the tests at hand and drop the rest; what is finished is still collected."""
        self._cell[STOP] = 1

    def close(self) -> None:  # noqa: B027  (most executors have nothing to end)
        """End everything that the executor started."""

    def run_trials(self, trials: list[int], proposals: list[Any] | None) -> list[Any]:
        """Run trials in this process and return their results, for `collect`.

        If this raises an exception (Ctrl-C), the next call also returns what was finished before.
        """
        if self._runner is None:
            self._runner = TrialRunner(self.job)
            self._finished.append(self._runner.introduction())
        if trials:
            space = self.job.subject.space
            asked = (
                self._runner.proposals(trials)
                if proposals is None
                else unpack_proposals(space, proposals)
            )
            start = time.monotonic()
            with Supervision():
                self._runner.run(trials, asked, self._cell, self._keep)
            self.rate = len(trials) / max(time.monotonic() - start, 1e-6)
        finished, self._finished = self._finished, []
        return [batch.message() for batch in finished if batch.rows or batch.news != NO_NEWS]

    def _keep(self, batch: RowBatch) -> None:
        assert self._runner is not None
        self._finished.append(self._runner.complete(batch))


class InlineExecutor(Executor):
    """Runs tests in this process, for debuggers: a crash of the program ends the campaign."""

    def __init__(self, job: CampaignJob) -> None:
        super().__init__(job)
        self._batches: deque[tuple[list[int], list[Any] | None]] = deque()

    @property
    def busy(self) -> bool:
        """Whether any batch is waiting."""
        return bool(self._batches or self._finished)

    def submit(self, trials: list[int], proposals: list[Any] | None) -> None:
        """Take a batch; it runs in `collect`."""
        self._batches.append((trials, proposals))

    def collect(self, timeout: float) -> list[Any]:
        """Run a batch and return its rows."""
        if self._finished or not self._batches:  # finished before Ctrl-C
            return self.run_trials([], None)
        return self.run_trials(*self._batches.popleft())

    def stop(self) -> None:
        """Drop what is waiting."""
        self._batches.clear()


# Reading what the user wrote.

LOCAL = "local"
QUEUES = ("slurm", "pbs", "kubernetes")
ENTRY_POINTS = "swarmtest.executors"
"""The group in which installed packages offer executors by name."""
_OWN_CODE = str(Path(swarmtest.__file__).parent)
_SCHEDULER_OPTIONS = ("connect", "patience", "tls-ca", "tls-cert", "tls-key")
_ADDRESS = re.compile(r"(dask|tcp|tls)://(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})/?")


@dataclass(frozen=True)
class ExecutorChoice:
    """Where a campaign's tests run, as the user chose it; nothing is imported or connected yet.

    >>> parse_executor("dask://ant:8786").address
    'tcp://ant:8786'
    """

    kind: str = LOCAL
    """``local``, ``dask``, one of `QUEUES`, or ``own`` for a class that is no part of swarmtest."""
    address: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    text: str = LOCAL
    """How the user named it."""
    own_class: type[Executor] | None = None
    """For the kind ``own``: the class, if the user passed it instead of its name."""

    @property
    def is_local(self) -> bool:
        """Whether tests run on this machine, in processes of the campaign's own."""
        return self.kind == LOCAL

    @property
    def is_own(self) -> bool:
        """Whether the executor is a class that is no part of swarmtest."""
        return self.kind == "own"

    @property
    def words(self) -> str:
        """The options that name it on a command line; empty for the local one.

        >>> parse_executor("dask://ant:8786", ["patience=60s"]).words
        ' --executor dask://ant:8786 --executor-option patience=60s'
        """
        if self.is_local:
            return ""
        given = [] if self.text.endswith(".toml") else self.options.items()
        words = [f" --executor-option {shlex.quote(f'{name}={value}')}" for name, value in given]
        return f" --executor {shlex.quote(self.text)}" + "".join(words)

    def seconds(self, name: str, usual: float) -> float:
        """Return an option that is a duration, in seconds."""
        value = self.options.get(name, usual)
        try:
            return parse_seconds(value if isinstance(value, str) else repr(value))
        except UserError as error:
            raise UserError(f"--executor-option {name}: {error}") from None

    def load_class(self) -> type[Executor]:
        """Import the class of an executor of the user's own, and check that it is complete.

        >>> ExecutorChoice("own", text="collections:Counter").load_class()
        Traceback (most recent call last):
        ...
        swarmtest.UserError: collections:Counter is not an executor: ...
        """
        loaded: Any = self.own_class
        if loaded is None:
            by_name = ":" in self.text
            loaded = load_object(self.text, "executor") if by_name else None
            loaded = loaded or entry_point(ENTRY_POINTS, self.text)
        if not inspect.isclass(loaded) or not issubclass(loaded, Executor):
            raise UserError(
                f"{self.text} is not an executor: derive its class from swarmtest.campaign.Executor"
            )
        for name, signature in _REQUIRED.items():
            if name in loaded.__abstractmethods__:
                raise UserError(
                    f"{self.text}: an incomplete executor, it has no {name}: write {signature}"
                )
        return loaded

    def make_own(self, job: CampaignJob) -> Executor:
        """Return an executor of the user's own class, with the options that were given."""
        cls = self.load_class()
        known = [*inspect.signature(cls).parameters][1:]
        for name in self.options:
            if name not in known:
                raise UserError(
                    f"--executor-option {name}: {self.text} has no such option"
                    f"{did_you_mean(name, known)}"
                )
        try:
            return cls(job, **self.options)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{self.text}: {cls.__name__}() raised {message_of(error)}") from None

    def refuse_mistake(self, error: BaseException) -> None:
        """Raise `UserError` for an exception in the code of a user's own executor."""
        if not self.is_own or not isinstance(error, Exception) or isinstance(error, UserError):
            return
        frame = traceback.extract_tb(error.__traceback__)[-1]
        if not frame.filename.startswith(_OWN_CODE):
            where = f"{frame.filename}:{frame.lineno}"
            raise UserError(f"executor {self.text} raised {message_of(error)} ({where})") from error


_REQUIRED = {
    "submit": "def submit(self, trials, proposals), which takes a batch of trials",
    "collect": "def collect(self, timeout), which returns the results that have arrived",
    "busy": "a property busy, which says whether results are still to come",
}
"""What the class of an executor has to define."""


def parse_executor(
    text: str | type[Executor] = LOCAL, options: Sequence[str] = ()
) -> ExecutorChoice:
    """Return the executor that ``--executor`` and ``--executor-option`` name.

    >>> parse_executor("slurm", ["jobs=4", "memory=8GB"]).options
    {'jobs': 4, 'memory': '8GB'}
    >>> parse_executor("threads.py:InThread").kind
    'own'
    """
    given = dict(map(_parse_option, options))
    if not isinstance(text, str):
        name = getattr(text, "__qualname__", type(text).__qualname__)
        return ExecutorChoice("own", options=given, text=name, own_class=text)
    if text.endswith(".toml"):
        kind, from_file = _read_file(Path(text))
        return _checked(kind, from_file | given, text)
    return _checked(text, given, text)


def choose_executor(
    executor: str | type[Executor] | ExecutorChoice, engine: str | ExecutorChoice | None = None
) -> ExecutorChoice:
    """Return the choice that a parameter `executor` stands for; `engine` is its old name.

    >>> choose_executor("local").is_local
    True
    """
    if engine is not None:
        warn_of_engine("engine=", stacklevel=4)
        executor = engine
    return executor if isinstance(executor, ExecutorChoice) else parse_executor(executor)


def warn_of_engine(name: str, stacklevel: int = 3) -> None:
    """Warn that a name with "engine" in it is old."""
    new = name.replace("engine", "executor")
    warnings.warn(f"{name} is called {new} now", DeprecationWarning, stacklevel)


def _checked(name: str, options: dict[str, Any], text: str) -> ExecutorChoice:
    if name == LOCAL:
        if options:
            raise UserError(
                f"--executor-option {next(iter(options))}: the local executor has no options"
            )
        return ExecutorChoice()
    if name in QUEUES:
        return ExecutorChoice(name, options=options, text=text)
    if "://" in name:
        return _checked_address(name, options, text)
    if ":" not in name:
        offered = entry_point_names(ENTRY_POINTS)
        if name not in offered:
            known = (LOCAL, *QUEUES, *offered)
            raise UserError(
                f"--executor {name}: choose {', '.join(known)}, dask://HOST:PORT, MODULE:CLASS, "
                f"or a .toml file{did_you_mean(name, known)}"
            )
    # A file that names the executor and its options is not needed again: the class is.
    return ExecutorChoice("own", options=options, text=name)


def _checked_address(name: str, options: dict[str, Any], text: str) -> ExecutorChoice:
    address = _ADDRESS.fullmatch(name)
    if not address or int(address[3]) > 65535:
        raise UserError(
            f"--executor {name}: write dask://HOST:PORT, like dask://127.0.0.1:8786 "
            "(tls://HOST:PORT for an encrypted connection)"
        )
    for option in options:
        if option not in _SCHEDULER_OPTIONS:
            raise UserError(
                f"--executor-option {option}: a Dask scheduler has no such option"
                f"{did_you_mean(option, _SCHEDULER_OPTIONS)}"
            )
    scheme = "tls" if address[1] == "tls" else "tcp"
    choice = ExecutorChoice("dask", f"{scheme}://{address[2]}:{address[3]}", options, text)
    for duration in ("connect", "patience"):
        choice.seconds(duration, usual=1)
    return choice


def _parse_option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--executor-option {text}: write KEY=VALUE, like jobs=4")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()


def _read_file(path: Path) -> tuple[str, dict[str, Any]]:
    """Read a file that names the executor and its options."""
    try:
        options = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"--executor: no such file: {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--executor: cannot read {path}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: {error}") from None
    except RecursionError:
        raise UserError(f"{path} is nested too deeply") from None
    kind = options.pop("executor", None) or options.pop("engine", None)  # its old name
    if not isinstance(kind, str) or kind.endswith(".toml"):
        raise UserError(
            f'{path} does not say which executor: write executor = "slurm" or "dask://HOST:PORT"'
        )
    return kind, options
