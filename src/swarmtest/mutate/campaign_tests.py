"""Which tests of a campaign need not be run on mutants, by what the store knows of their lines.

A campaign that watched lines has kept which of them each test reached. As long as the watched files
and the subject are what they were, a test that reached no line of a mutant cannot kill it. Whatever
is not certain (coverage of a test is missing, a mutant is on no line of its own, what it changes
runs at import) means that all tests are run.
"""

from __future__ import annotations

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
from swarmtest.mutate.generation import Drawn
from swarmtest.mutate.mutant import Mutant
from swarmtest.mutate.switching import LiveFile
from swarmtest.processes.fork_tasks import Forks, Task, Tell
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, TrialRecord
from swarmtest.subjects.subject import Subject

# -------------------------------------------------------------------------------------------------
# The tests of a stored campaign, made again so that mutants can be tried on them.

_CHUNK = 64


def check_features(subject: Subject, record: CampaignRecord) -> None:
    """Refuse a subject whose features are not those of the campaign."""
    if subject.space.feature_names != Space.from_json(record.space).feature_names:
        raise UserError(
            f"{subject.name} has other features now than in campaign {record.id}: its tests cannot "
            "be made again; run a new campaign"
        )


def draw_trials(store: Store, campaign: int, most: int, seed: int) -> list[TrialRecord]:
    """At most so many of a campaign's tests; which ones, the seed decides."""
    usable = [one for one in store.trials(campaign) if one.verdict != Verdict.INVALID]
    if len(usable) > most:
        usable.sort(key=lambda one: mixed(key_of(str(one.trial)) ^ mixed(seed)))
        usable = sorted(usable[:most])
    return usable


def tests_of(
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


# -------------------------------------------------------------------------------------------------


def trials_that_reach(
    store: Store,
    record: CampaignRecord,
    subject: Subject,
    drawn: Drawn,
    trials: list[TrialRecord],
) -> list[TrialRecord]:
    """The tests that may reach one of the mutants; if there is none, the first, to have one."""
    lines = _lines_of(store, record, subject, drawn)
    if lines is None:
        return trials
    return [trial for trial in trials if _may_reach(trial, lines)] or trials[:1]


def _may_reach(trial: TrialRecord, lines: BitMap) -> bool:
    if not trial.hits_are_known:
        return True
    return trial.hits is not None and BitMap.deserialize(trial.hits).intersect(lines)


def _lines_of(
    store: Store, record: CampaignRecord, subject: Subject, drawn: Drawn
) -> BitMap | None:
    """The store's ids of the lines that mutants are on; None: that is not known."""
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
    found = BitMap()
    for path, mutants in _by_path(drawn.mutants).items():
        source = files[path]
        # A file that was watched has lines that its import reached.
        if not any(id in outside for (of, _), id in ids.items() if of == source.id):
            return None
        for line in _own_lines(source, mutants):
            id = ids.get((source.id, line or 0))
            if id is None or id in outside:
                return None
            found.add(id)
    return found


def _version(subject: Subject) -> str:
    """What a campaign keeps of the file that drives the program."""
    try:
        return Source("", Path(subject.harness).read_text()).id if subject.harness else ""
    except (OSError, UnicodeDecodeError):
        return ""


def _by_path(mutants: tuple[Mutant, ...]) -> dict[str, list[Mutant]]:
    found: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        found.setdefault(mutant.path, []).append(mutant)
    return found


def _own_lines(source: Source, mutants: list[Mutant]) -> set[int | None]:
    """Where the statements begin that mutants are in; None stands for one that has no line."""
    file = LiveFile(source, {})
    numbers = {file.statement(mutant) for mutant in mutants}
    return {None if number < 0 else file.line_of(number) for number in numbers}
