"""The tests of a stored campaign, for mutation: draw them, regenerate them, skip the useless ones.

A campaign with line coverage has recorded which lines each test reached. As long as the watched
files and the subject are unchanged, a test that reached no line of a mutant cannot kill it and need
not be run. If anything is uncertain (the coverage of a test is missing, a mutant has no line of its
own, the code that it changes runs at import), all tests are run.
"""

from __future__ import annotations

import heapq
import json
from pathlib import Path
from typing import Any

from pyroaring import BitMap

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.core.seeds import key_of, mixed
from swarmtest.core.space import Space
from swarmtest.core.targets import Source
from swarmtest.coverage.scope import is_as_it_was
from swarmtest.mutate.generation import DrawnMutants
from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.switching import LiveFile
from swarmtest.processes.fork_tasks import Forks, ForkTask, Tell
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, TrialRecord
from swarmtest.subjects.subject import Subject

_CHUNK = 64
"""How many tests one fork regenerates."""


def check_features(subject: Subject, record: CampaignRecord) -> None:
    """Raise if the features of a subject are not those of the campaign."""
    if subject.space.feature_names != Space.from_json(record.space).feature_names:
        raise UserError(
            f"{subject.name} has other features now than in campaign {record.id}: its tests cannot "
            "be made again; run a new campaign"
        )


def draw_trials(store: Store, campaign: int, most: int, seed: int) -> list[TrialRecord]:
    """Return at most `most` of a campaign's trials, chosen by the seed."""
    usable = [
        number
        for block in store.blocks(campaign, hits=False)
        for number in block.numbers[block.verdicts != Verdict.INVALID].tolist()
    ]
    if len(usable) > most:
        by_chance = mixed(seed)
        usable = heapq.nsmallest(
            most, usable, key=lambda number: mixed(key_of(str(number)) ^ by_chance)
        )
    return list(store.chosen_trials(campaign, usable))


def tests_of(
    store: Store,
    record: CampaignRecord,
    subject: Subject,
    trials: list[TrialRecord],
    seconds: float,
    workers: int,
) -> dict[str, Any]:
    """Return tests as JSON data: stored ones, and others regenerated from their seeds in forks."""
    stored = {trial.trial: store.test(record.id, trial.trial) for trial in trials}
    by_number = {trial.trial: trial for trial in trials}
    tests = {number: json.loads(text) for number, text in stored.items() if text is not None}

    def regenerate(numbers: list[int], tell: Tell) -> None:
        for number in numbers:
            trial = by_number[number]
            configuration = Configuration.from_bytes(subject.space, trial.configuration)
            tell(subject.test_of(configuration, trial.seed))

    missing = [number for number in by_number if number not in tests]
    chunks = [missing[i : i + _CHUNK] for i in range(0, len(missing), _CHUNK)]
    tasks = [ForkTask(chunk, [seconds] * len(chunk)) for chunk in chunks]
    for answer in Forks(regenerate, workers).answers(tasks):
        if answer.value is not None:
            tests[answer.item] = answer.value
    return {f"{record.id}#{number}": tests[number] for number in sorted(tests)}


def trials_that_reach(
    store: Store,
    record: CampaignRecord,
    subject: Subject,
    drawn: DrawnMutants,
    trials: list[TrialRecord],
) -> list[TrialRecord]:
    """Return the trials that may reach a mutant; if there is none, the first, to have one."""
    lines = _mutated_lines(store, record, subject, drawn)
    if lines is None:
        return trials
    return [trial for trial in trials if _may_reach(trial, lines)] or trials[:1]


def _may_reach(trial: TrialRecord, lines: BitMap) -> bool:
    if not trial.hits_are_known:
        return True
    return trial.hits is not None and BitMap.deserialize(trial.hits).intersect(lines)


def _mutated_lines(
    store: Store, record: CampaignRecord, subject: Subject, drawn: DrawnMutants
) -> BitMap | None:
    """Return the store's ids of the lines that mutants are on; None if they are not known."""
    coverage = record.options.get("coverage") or {}
    if "line" not in coverage.get("kinds", ()) or coverage.get("from") or not record.outside:
        return None
    if record.options.get("machine", "") != _version(subject):
        return None
    if not all(source.text and is_as_it_was(source) for source in store.sources(record.id)):
        return None
    outside = BitMap.deserialize(record.outside)
    ids = {
        (target.source, target.line): id
        for id, target in store.watched_targets(record.id).items()
        if target.kind == "line"
    }
    files = {source.path: source for source in drawn.sources}
    mutated = BitMap()
    for path, mutants in _by_path(drawn.mutants).items():
        source = files[path]
        # The import of a watched file reaches some of its lines; otherwise it was not watched.
        if not any(id in outside for (version, _), id in ids.items() if version == source.id):
            return None
        for line in _own_lines(source, mutants):
            id = ids.get((source.id, line or 0))
            if id is None or id in outside:
                return None
            mutated.add(id)
    return mutated


def _version(subject: Subject) -> str:
    """Return the hash that a campaign records of the file that drives the program."""
    try:
        return Source("", Path(subject.harness).read_text()).id if subject.harness else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _by_path(mutants: tuple[Mutant, ...]) -> dict[str, list[Mutant]]:
    by_path: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_path.setdefault(mutant.path, []).append(mutant)
    return by_path


def _own_lines(source: Source, mutants: list[Mutant]) -> set[int | None]:
    """Return the first lines of the mutated statements; None stands for one without a line."""
    file = LiveFile(source, {})
    numbers = {file.statement(mutant) for mutant in mutants}
    return {None if number < 0 else file.line_of(number) for number in numbers}
