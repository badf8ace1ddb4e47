"""Kill matrices of the tests of a subject, or of a stored campaign."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from swarmtest.errors import UserError
from swarmtest.instrument.scope import parse_scope
from swarmtest.loading import split_reference
from swarmtest.mutation.drawing import draw_mutants
from swarmtest.mutation.forks import Forks, Task, Tell
from swarmtest.mutation.kills import Limits, Runner, Show
from swarmtest.mutation.loaded import live_files, loaded_sources, named_sources, source_of
from swarmtest.mutation.matrix import KillMatrix
from swarmtest.result import Verdict
from swarmtest.seeds import key_of, mixed
from swarmtest.space import Configuration, Space
from swarmtest.store import CampaignRecord, Store
from swarmtest.store.records import TrialRecord
from swarmtest.subjects.loading import SubjectReference
from swarmtest.subjects.subject import Subject
from swarmtest.targets import Source

_CHUNK = 64
_SECONDS = 10.0

Lines = Mapping[str, Collection[int]]


class SubjectTests:
    """Tests of a subject as JSON data, replayed: no random generator sees what a mutant does."""

    def __init__(self, subject: Subject, tests: Mapping[str, Any]) -> None:
        self.names = list(tests)
        self._subject = subject
        self._tests = list(tests.values())

    def run(self, test: int, following: int | None) -> str:
        """The verdict, and the fault that was shown."""
        self._subject.interruptible = False
        result = self._subject.replay(self._tests[test])
        return f"{result.verdict.label} {result.fault.id if result.fault else ''}"

    def finish(self) -> None:
        """Every test starts from nothing: there is nothing to clear away."""

    def why_not(self, ended: str) -> str:
        """One that fails is of use: with a mutant it may pass, or fail otherwise."""
        return "is no test" if ended.startswith(Verdict.INVALID.label) else ""


def kill_matrix(
    subject: Subject,
    tests: Sequence[Any] | Mapping[str, Any],
    files: Iterable[str | Source] = (),
    *,
    operators: str | Collection[str] = "",
    lines: Lines | None = None,
    sample: int | None = None,
    seed: int = 0,
    workers: int = 2,
    first_kill: bool = False,
    seconds: float = _SECONDS,
    memory: int = 0,
    mutants_per_fork: int = 16,
    on_progress: Show | None = None,
) -> KillMatrix:
    """Which tests (JSON data, perhaps by name) kill which mutants of the files of a program.

    `files` are Python files, or directories of them; without: what is loaded of the code beside the
    subject. `first_kill`: each mutant only
    up to the first test that kills it. `lines`: only mutants on these, by file.

    >>> from swarmtest import Machine, MachineSubject, action
    >>> class Counter(Machine):
    ...     def start(self): self.n = 0
    ...     @action
    ...     def up(self): self.n += 1
    >>> subject = MachineSubject(Counter)
    >>> tests = [subject.test_of(subject.space.default(), seed) for seed in (1, 2)]
    >>> kill_matrix(subject, tests, ["no_such_file.py"])
    Traceback (most recent call last):
    ...
    swarmtest.errors.UserError: no_such_file.py: there is no such file to mutate
    """
    named = tests if isinstance(tests, Mapping) else {str(i): one for i, one in enumerate(tests)}
    if not named:
        raise UserError("there are no tests to run on mutants")
    sources = named_sources(files) or _sources_beside(subject)
    drawn = draw_mutants(sources, operators, lines, sample, seed)
    if not drawn.mutants:
        where = ", ".join(source.path for source in sources)
        raise UserError(f"no mutant is left of {where}: other lines or operators?")
    concerned = {mutant.path for mutant in drawn.mutants}
    loaded = live_files([source for source in sources if source.path in concerned])
    limits = Limits(seconds, memory, mutants_per_fork)
    runner = Runner(SubjectTests(subject, named), loaded, limits, workers)
    try:
        runner.run_originals()
        matrix = runner.matrix(drawn.mutants, first_kill=first_kill, on_progress=on_progress)
    finally:
        for file in loaded:
            file.restore()
    return matrix.drawn_from(drawn)


def _sources_beside(subject: Subject) -> list[Source]:
    where, _ = split_reference(subject.name)
    beside = os.path.dirname(subject.harness) if subject.harness else ""
    package = "" if where.endswith((".py", ".toml")) else where.partition(".")[0]
    sources = loaded_sources(parse_scope((), beside, package), subject.harness)
    if not sources:
        raise UserError(f"no file of what {subject.name} tests was found: name the files to mutate")
    return sources


def mutate_campaign(
    store: Store,
    campaign: int,
    files: Iterable[str] = (),
    *,
    operators: str | Collection[str] = "",
    lines: Lines | None = None,
    sample: int | None = None,
    tests: int = 1000,
    seed: int = 0,
    workers: int = 2,
    first_kill: bool = False,
    on_progress: Show | None = None,
) -> KillMatrix:
    """The kill matrix of a campaign's tests, named ``CAMPAIGN#TRIAL``.

    Without `files`: those that the campaign watched. `tests`: so many of its tests at most; which
    ones, the seed decides.
    """
    record = store.campaign(campaign)
    reference = record.options.get("subject")
    if not reference:
        raise UserError(
            f"campaign {campaign} tested {record.subject}, which cannot be imported by name; "
            "mutate it from the program that defined it (kill_matrix)"
        )
    subject = SubjectReference.from_json(reference).load()
    _check_features(subject, record)
    drawn = _draw_trials(store, campaign, tests, seed)
    seconds = record.options.get("seconds") or _SECONDS
    made = _tests_of(store, record, subject, drawn, seconds, workers)
    if not made:
        raise UserError(f"campaign {campaign} has no test that can be made again")
    sources: list[str | Source] = [*files]
    return kill_matrix(
        subject,
        made,
        sources or _watched(store, campaign),
        operators=operators,
        lines=lines,
        sample=sample,
        seed=seed,
        workers=workers,
        first_kill=first_kill,
        seconds=seconds,
        on_progress=on_progress,
    )


def _check_features(subject: Subject, record: CampaignRecord) -> None:
    if subject.space.feature_names != Space.from_json(record.space).feature_names:
        raise UserError(
            f"{subject.name} has other features now than in campaign {record.id}: its tests cannot "
            "be made again; run a new campaign"
        )


def _watched(store: Store, campaign: int) -> list[Source]:
    """The files of a campaign with coverage, as they are now."""
    return [
        source_of(source.place)
        for source in store.sources(campaign)
        if source.place.endswith(".py")
    ]


def _draw_trials(store: Store, campaign: int, most: int, seed: int) -> list[TrialRecord]:
    usable = [one for one in store.trials(campaign) if one.verdict != Verdict.INVALID]
    if len(usable) > most:
        usable.sort(key=lambda one: mixed(key_of(str(one.trial)) ^ mixed(seed)))
        usable = sorted(usable[:most])
    return usable


def _tests_of(
    store: Store,
    record: CampaignRecord,
    subject: Subject,
    trials: list[TrialRecord],
    seconds: float,
    workers: int,
) -> dict[str, Any]:
    """Tests as JSON data: kept ones, and others made again from their seeds, in forks."""
    kept = {trial.trial: store.test(record.id, trial.trial) for trial in trials}
    by_number = {trial.trial: trial for trial in trials}
    made = {number: json.loads(text) for number, text in kept.items() if text is not None}

    def make(numbers: list[int], tell: Tell) -> None:
        for number in numbers:
            trial = by_number[number]
            configuration = Configuration.from_bytes(subject.space, trial.configuration)
            tell(subject.test_of(configuration, trial.seed))

    missing = [number for number in by_number if number not in made]
    chunks = [missing[i : i + _CHUNK] for i in range(0, len(missing), _CHUNK)]
    tasks = [Task(chunk, [seconds] * len(chunk)) for chunk in chunks]
    for answer in Forks(make, workers).answers(tasks):
        if answer.value is not None:
            made[answer.item] = answer.value
    return {f"{record.id}#{number}": made[number] for number in sorted(made)}
