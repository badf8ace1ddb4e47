"""The campaigns of `chaos.py`, and the comparison of what came of them."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from chaos_guard import marked, working_in
from chaos_processes import (
    START,
    SWARMTEST,
    CampaignProcess,
    Keeper,
    certificates,
    command_of,
)
from harness import progress

from swarmtest.core.errors import UserError
from swarmtest.core.targets import unpack_hits
from swarmtest.store import open_store

SUBJECTS = Path(__file__).with_name("chaos_subjects")
NAP = 2.0
"""Milliseconds that an ordinary worker sleeps in each test, so that there is time to kill it."""
SEED = 5
_TO_END = 60.0
"""Seconds that processes have to end after their campaign, on a busy machine."""
_SAY_AFTER = 5.0
Trials = list[tuple[object, ...]]
Faults = list[tuple[object, ...]]


@dataclass(frozen=True)
class Kind:
    """A kind of campaign."""

    subject: str
    tests: int
    spacing: int = 0
    """How many tests run, on average, between two kills."""
    coverage: bool = False

    def words(self, seed: int) -> list[str]:
        """The words for `swarmtest run`."""
        words = [self.subject, "-n", str(self.tests), "--seed", str(seed)]
        return words + ["--coverage", "line"] * self.coverage


@dataclass
class Part:
    """What one kind of trouble came to."""

    name: str
    store: str = "SQLite"
    kills: Counter[str] = field(default_factory=Counter)
    trials: int = 0
    lost: int = 0
    duplicated: int = 0
    different: int = 0
    orphans: int = 0
    noted: int = 0
    """Tests of which the store says that they were killed from outside and ran again."""
    starts: int = 0
    gave_up: int = 0
    """How often a campaign ended by itself before it was done, and was resumed."""
    seconds: float = 0.0
    happened: str = ""

    def compare(self, result: Result, undisturbed: Result, counted: int) -> None:
        """`counted`: how many tests the campaign said it had run."""
        numbers = [row[0] for row in result.trials]
        known = {row[0]: row for row in undisturbed.trials}
        self.trials += len(undisturbed.trials)
        self.lost += len(known.keys() - set(numbers))
        self.duplicated += len(numbers) - len(set(numbers)) + abs(counted - len(set(numbers)))
        different = [row for row in result.trials if known.get(row[0]) != row]
        faults = set(result.faults) ^ set(undisturbed.faults)
        for row in different[:3]:
            progress(f"different: {row} instead of {known.get(row[0])}")
        for fault in sorted(faults, key=str)[:4]:
            progress(f"different: fault {fault}, {fault in result.faults}")
        self.different += len(different) + len({fault[0] for fault in faults})
        self.noted += len(result.killed)


@dataclass(frozen=True)
class Result:
    """What must not depend on luck, and which tests were killed from outside."""

    trials: Trials
    faults: Faults
    killed: Sequence[int]


def read(store: str, campaign: int) -> Result:
    """Read a campaign."""
    with open_store(store, must_exist=True, read_only=True) as opened:
        names = opened.targets()
        trials: Trials = [
            (
                *trial._replace(hits=None, cpu_ns=0, wall_ns=0),
                *(sorted(str(names[i]) for i in unpack_hits(trial.hits)) if trial.hits else ()),
            )
            for trial in opened.trials(campaign)
        ]
        faults: Faults = [
            (f.id, f.kind, f.signature, f.first_trial, f.trial, f.size, f.test, f.code, f.count)
            for f in opened.faults(campaign)
        ]
        return Result(trials, faults, opened.campaign(campaign).killed)


def stored(store: str, campaign: int = 1) -> int:
    """How many trials are kept so far."""
    try:
        with open_store(store, must_exist=True, read_only=True) as opened:
            return opened.summary(campaign)["trials"]
    except UserError:
        return 0


class Chaos:
    """What the parts share."""

    def __init__(self, place: Path, quick: bool) -> None:
        self.place = place
        self.quick = quick
        self.subjects = place / "subjects"  # a directory of its own, because all of it travels
        shutil.copytree(SUBJECTS, self.subjects, ignore=shutil.ignore_patterns("__pycache__"))
        self._undisturbed: dict[tuple[Kind, int], Result] = {}
        self._campaigns: list[CampaignProcess] = []
        self.numbers = itertools.count(1)
        """For names that are used once."""

    def undisturbed(self, kind: Kind, seed: int = SEED) -> Result:
        """What a local run with the same seed gives."""
        if (kind, seed) not in self._undisturbed:
            store = str(self.undisturbed_file(kind, seed))
            done = subprocess.run(
                [*SWARMTEST, "run", *kind.words(seed), "--store", store, "-q", "--no-reduce"],
                cwd=self.subjects,
                env=os.environ | {"TESTS_RUN": os.devnull, "SWARMTEST_WORKERS": "2"},
                capture_output=True,
                text=True,
            )
            assert done.returncode in (0, 1), done.stderr
            self._undisturbed[kind, seed] = read(store, 1)
        return self._undisturbed[kind, seed]

    def undisturbed_file(self, kind: Kind, seed: int = SEED) -> Path:
        """The store of that run."""
        return self.place / f"undisturbed-{kind.subject}-{kind.tests}-{seed}.db"

    @contextlib.contextmanager
    def cluster(self, part: Part, tls: bool, *naps: float) -> Iterator[Keeper]:
        """A cluster with a worker for each nap: milliseconds that it sleeps in each test."""
        keeper = self._keeper(naps, tls)
        try:
            yield keeper
        finally:
            keeper.close()
        part.orphans += self.left_of(keeper.mark, keeper.place)

    def _keeper(self, naps: Sequence[float], tls: bool) -> Keeper:
        number = next(self.numbers)
        directory = self.place / f"cluster{number}"
        directory.mkdir()
        counter = {"TESTS_RUN": str(self.counter)}
        files = certificates(directory / "tls") if tls else None
        workers = [{"NAP": str(nap)} | counter for nap in naps]
        return Keeper(directory, workers, files)

    @property
    def counter(self) -> Path:
        """The file to which each test of a disturbed campaign adds a byte."""
        return self.place / "tests-run"

    def tests_run(self) -> int:
        """How many tests have begun so far, in all campaigns, and counting those that were lost."""
        return self.counter.stat().st_size if self.counter.exists() else 0

    def campaign(
        self,
        kind: Kind,
        store: str,
        executor: Sequence[str],
        seed: int = SEED,
        **env: str,
    ) -> CampaignProcess:
        """A campaign that has begun."""
        output = self.place / f"campaign{next(self.numbers)}"
        local = {} if executor else {"SWARMTEST_WORKERS": "2"}
        environment = {"TESTS_RUN": str(self.counter), "NAP": str(NAP)} | local | env
        begun = CampaignProcess(
            self.subjects,
            output,
            kind.words(seed),
            ["--store", store, *executor],
            environment,
        )
        self._campaigns.append(begun)
        return begun

    def left_of(self, mark: str, directory: Path | None = None) -> int:
        """How many processes of a start are left, or work in a directory; they have time to end."""

        def left() -> set[int]:
            return {*marked(START, mark), *(working_in(directory) if directory else ())}

        deadline = time.monotonic() + _TO_END
        said = time.monotonic() + _SAY_AFTER
        while (orphans := left()) and time.monotonic() < deadline:
            if time.monotonic() > said:
                said = deadline
                for pid in orphans:
                    words = command_of(pid).decode(errors="replace").replace("\0", " ")
                    progress(
                        f"still there, of {Path(mark).name}: {pid} {' '.join(words.split())[:300]}"
                    )
            time.sleep(0.05)
        return len(orphans)

    def close(self) -> None:
        """End the campaigns that still run."""
        for campaign in self._campaigns:
            campaign.kill()

    def store(self, name: str) -> str:
        """A file for a store."""
        return str(self.place / f"{name}.db")
