"""The tests of a stored campaign, made again so that mutants can be tried on them."""

from __future__ import annotations

import json
from typing import Any

from swarmtest.errors import UserError
from swarmtest.mutation.forks import Forks, Task, Tell
from swarmtest.result import Verdict
from swarmtest.seeds import key_of, mixed
from swarmtest.space import Configuration, Space
from swarmtest.store import CampaignRecord, Store
from swarmtest.store.records import TrialRecord
from swarmtest.subjects.subject import Subject

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
