"""Executors: where the trials of a campaign run, and how a user names such a place.

`Engine` is what every executor offers. `InlineEngine` runs tests in this process, `local.py` in
worker processes, and `dask/` on a cluster. `parse_engine` reads ``--engine``.
"""

from __future__ import annotations

import re
import shlex
import time
import tomllib
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from swarmtest.campaign.budget import parse_seconds
from swarmtest.campaign.executors.worker import Batch, Job, Worker, restored
from swarmtest.campaign.hits import NO_NEWS
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.processes.tree import Supervision
from swarmtest.store.records import WorkerRecord

# Running tests in this process, for debuggers: a crash of the program ends the campaign.


class InlineEngine:
    """Runs tests in this process: ``workers=0``."""

    def __init__(self, job: Job) -> None:
        self._worker = Worker(job)
        self._batches: deque[tuple[list[int], list[Any] | None]] = deque()
        self._finished: list[Batch] = [self._worker.introduction()]
        self._cell = [0, 0, 0]
        self.deaf_to_interrupts = False
        self.shape = BatchShape()
        self.slots = 1
        self.condition = ""
        self.notes: tuple[str, ...] = ()
        self.rate = 0.0

    @property
    def hungry(self) -> int:
        """The number of batches that could be handed over now."""
        return 1 - len(self._batches)

    @property
    def busy(self) -> bool:
        """Whether any batch is waiting."""
        return bool(self._batches or self._finished)

    def workers(self) -> list[WorkerRecord]:
        """Return no workers: there is only this process."""
        return []

    def feed(self, trials: list[int], told: list[Any] | None) -> None:
        """Take a batch; it runs in `collect`."""
        self._batches.append((trials, told))

    def collect(self, timeout: float) -> list[Any]:
        """Run a batch and return its rows."""
        if self._finished or not self._batches:
            return self._taken()
        trials, told = self._batches.popleft()
        space = self._worker.job.subject.space
        proposals = self._worker.proposals(trials) if told is None else restored(space, told)
        start = time.monotonic()
        # What was finished before Ctrl-C is collected by the next call.
        with Supervision():
            self._worker.run(trials, proposals, self._cell, self._finished.append)
        self.rate = len(trials) / max(time.monotonic() - start, 1e-6)
        return self._taken()

    def _taken(self) -> list[Any]:
        taken, self._finished = self._finished, []
        return [batch.message() for batch in taken if batch.rows or batch.news != NO_NEWS]

    def stop(self) -> None:
        """Drop what is waiting."""
        self._batches.clear()

    def close(self) -> None:
        """Do nothing: no process was started."""


# What every executor offers. Which worker runs a trial never changes its result.


@dataclass(frozen=True)
class BatchShape:
    """How much an engine wants at once, and how long it may take to end.

    >>> BatchShape().seconds
    0.2
    """

    seconds: float = 0.2
    """How long a batch should take."""
    learning_seconds: float = 0.05
    """The same for a strategy that learns: what is out was asked for before it learnt more."""
    largest: int = 5000
    largest_told: int = 64
    """Proposals in a batch: they must fit a socket's buffer, or both ends might wait for each
    other."""
    grace: float = 0.8
    """Seconds for the last rows once it is told to stop."""


class Engine(Protocol):
    """Where trials run."""

    rate: float
    """Tests per second of one worker, lately; 0 while unknown."""
    deaf_to_interrupts: bool
    """Whether tests run elsewhere, so that Ctrl-C can wait for a good moment here."""
    shape: BatchShape

    @property
    def slots(self) -> int:
        """The number of tests that run at the same time."""

    @property
    def hungry(self) -> int:
        """The number of batches that could be handed over now."""

    @property
    def busy(self) -> bool:
        """Whether any batch is out."""

    @property
    def condition(self) -> str:
        """What a waiting user should know; empty if all is well."""

    @property
    def notes(self) -> Sequence[str]:
        """What a user should know at the end."""

    def workers(self) -> list[WorkerRecord]:
        """Return the workers and their state."""

    def feed(self, trials: list[int], told: list[Any] | None) -> None:
        """Hand over a batch; `told` are the proposals of a strategy that learns."""

    def collect(self, timeout: float) -> list[Any]:
        """Return the batches of rows that arrive within `timeout` seconds; perhaps none."""

    def stop(self) -> None:
        """Finish the tests at hand and drop the rest."""

    def close(self) -> None:
        """End everything that the engine started."""


# Reading what the user wrote.

LOCAL = "local"
QUEUES = ("slurm", "pbs", "kubernetes")
_SCHEDULER_OPTIONS = ("connect", "patience", "tls-ca", "tls-cert", "tls-key")
_ADDRESS = re.compile(r"(dask|tcp|tls)://(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})/?")


@dataclass(frozen=True)
class EngineChoice:
    """Where tests run: on this machine, at a Dask scheduler, or in the jobs of a batch system.

    >>> parse_engine("dask://ant:8786").address
    'tcp://ant:8786'
    """

    kind: str = LOCAL
    """``local``, ``dask``, or one of `QUEUES`."""
    address: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    text: str = LOCAL
    """How the user named it."""

    @property
    def is_local(self) -> bool:
        """Whether tests run on this machine, in processes of the campaign's own."""
        return self.kind == LOCAL

    @property
    def words(self) -> str:
        """The options that name it on a command line; empty for the local one.

        >>> parse_engine("dask://ant:8786", ["patience=60s"]).words
        ' --engine dask://ant:8786 --engine-option patience=60s'
        """
        if self.is_local:
            return ""
        given = [] if self.text.endswith(".toml") else self.options.items()
        told = [f" --engine-option {shlex.quote(f'{name}={value}')}" for name, value in given]
        return f" --engine {shlex.quote(self.text)}" + "".join(told)

    def seconds(self, name: str, usual: float) -> float:
        """Return an option that is a duration, in seconds."""
        value = self.options.get(name, usual)
        try:
            return parse_seconds(value if isinstance(value, str) else repr(value))
        except UserError as error:
            raise UserError(f"--engine-option {name}: {error}") from None


def parse_engine(text: str = LOCAL, options: Sequence[str] = ()) -> EngineChoice:
    """Return the engine that ``--engine`` and ``--engine-option`` name.

    >>> parse_engine("slurm", ["jobs=4", "memory=8GB"]).options
    {'jobs': 4, 'memory': '8GB'}
    """
    given = dict(map(_option, options))
    if text.endswith(".toml"):
        kind, told = _read(Path(text))
        return _checked(kind, told | given, text)
    return _checked(text, given, text)


def _checked(name: str, options: dict[str, Any], text: str) -> EngineChoice:
    if name == LOCAL:
        if options:
            raise UserError(f"--engine-option {next(iter(options))}: the local engine has none")
        return EngineChoice()
    if name in QUEUES:
        return EngineChoice(name, options=options, text=text)
    if "://" not in name:
        known = (LOCAL, *QUEUES)
        raise UserError(
            f"--engine {name}: choose {', '.join(known)}, dask://HOST:PORT, or a .toml file"
            f"{did_you_mean(name, known)}"
        )
    found = _ADDRESS.fullmatch(name)
    if not found or int(found[3]) > 65535:
        raise UserError(
            f"--engine {name}: write dask://HOST:PORT, like dask://127.0.0.1:8786 "
            "(tls://HOST:PORT for an encrypted one)"
        )
    for option in options:
        if option not in _SCHEDULER_OPTIONS:
            raise UserError(
                f"--engine-option {option}: a Dask scheduler has no such option"
                f"{did_you_mean(option, _SCHEDULER_OPTIONS)}"
            )
    scheme = "tls" if found[1] == "tls" else "tcp"
    choice = EngineChoice("dask", f"{scheme}://{found[2]}:{found[3]}", options, text)
    for duration in ("connect", "patience"):
        choice.seconds(duration, usual=1)
    return choice


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise UserError(f"--engine-option {text}: write KEY=VALUE, like jobs=4")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return name.strip(), value.strip()


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """Read a file that names the engine and its options."""
    try:
        told = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"--engine: no such file: {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--engine: cannot read {path}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: {error}") from None
    kind = told.pop("engine", None)
    if not isinstance(kind, str) or kind.endswith(".toml"):
        raise UserError(f'{path}: say which engine: engine = "slurm", or "dask://HOST:PORT"')
    return kind, told
