"""Check a store, and save what can be read of a damaged one.

`find_damage` reads everything that a store keeps of its campaigns, decodes it, and follows every
reference. `save_readable` copies what is sound into another store. Both use only the interface of
stores.

A damaged trial is kept if only what describes it further is damaged: hits that cannot be decoded
become "not known", as for a test that died. Without its configuration or its verdict, it is lost.
"""

from __future__ import annotations

import datetime
import json
import math
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar, get_origin, get_type_hints

import numpy as np
from pyroaring import BitMap

from swarmtest.core.configuration import Configuration
from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.core.space import Space
from swarmtest.core.targets import Target
from swarmtest.store.blocks import TrialBlock
from swarmtest.store.blocks.columns import ODD_COUNTS, ODD_HITS
from swarmtest.store.copies import IdTranslation
from swarmtest.store.fault_lives import EVENTS
from swarmtest.store.interface import Store
from swarmtest.store.records import (
    CampaignRecord,
    FaultEvent,
    FaultRecord,
    ReductionRecord,
    TestRecord,
    TrialRecord,
    WorkerRecord,
    unpack_counts,
    unpack_floats,
)

T = TypeVar("T")

_BATCH = 4096
_FEW = 100_000
"""How many trials to look for where neither the trials nor their totals tell how many there are."""
_MOST_UNREADABLE = 2_000
"""After so many ranges of trials that cannot be read, the rest is given up: it may be long."""
_LOST_HITS = "its hits were damaged in the store"
_HINTS = {
    each: get_type_hints(each)
    for each in (
        CampaignRecord,
        TrialRecord,
        FaultEvent,
        FaultRecord,
        TestRecord,
        ReductionRecord,
        WorkerRecord,
        Target,
    )
}


class Damage(NamedTuple):
    """Something in a store that cannot be read, or that contradicts something else.

    >>> print(Damage("campaign 1, trial 17", "its hits cannot be decoded"))
    campaign 1, trial 17: its hits cannot be decoded
    """

    where: str
    """``campaign 1``, ``campaign 1, trial 17``, or ``the file``."""
    what: str
    campaign: int = 0
    """The number of the campaign; 0 for the whole store."""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def find_damage(store: Store) -> Iterator[Damage]:
    """Check everything in a store, and yield what is damaged.

    >>> from swarmtest.store import open_store
    >>> with open_store(":memory:") as store:
    ...     space = Space(["push"])
    ...     number = store.add_campaign(CampaignRecord("stack.py", "coin", 7, space.to_json()))
    ...     store.record(number, [TrialRecord(0, space.default().to_bytes(), hits=b"?")])
    ...     print(*find_damage(store))
    campaign 1, trial 0: its hits cannot be decoded (ValueError: Could not deserialize bitmap)
    """
    for what in store.integrity():
        yield Damage("the database", what)
    try:
        numbers = store.campaign_numbers()
        targets = _sound_targets(store)
    except Exception as error:
        yield Damage("the campaigns and targets", _cannot("read", error))
        return
    for id in BitMap(store.targets()) - targets:
        yield Damage(f"target {id}", "it is not what it should be")
    for number in numbers:
        yield from _campaign_damage(store, number, targets)
    yield from _history_damage(store, {0, *numbers})


def _history_damage(store: Store, numbers: set[int]) -> Iterator[Damage]:
    try:
        events = store.fault_events()
    except Exception as error:
        yield Damage("the history of faults", _cannot("read", error))
        return
    for at, event in enumerate(events, start=1):
        problem = _event_problem(event, numbers)
        if problem:
            yield Damage(f"the history of faults, event {at}", problem)


def _event_problem(event: FaultEvent, numbers: set[int]) -> str:
    """Return what is wrong with an event; empty if nothing is."""
    for name in _wrong_types(event, event._fields):
        return f"its {name} is not what it should be"
    if event.event not in EVENTS:
        return f"nothing is called {event.event!r}"
    if not math.isfinite(event.time):
        return f"its time is {event.time}"
    return "" if event.campaign in numbers else f"there is no campaign {event.campaign}"


def _sound_targets(store: Store) -> BitMap:
    """Return the ids of the targets whose fields have the right types."""
    hints = _HINTS[Target]
    return BitMap(
        id for id, target in store.targets().items() if all(map(isinstance, target, hints.values()))
    )


def _campaign_damage(store: Store, number: int, targets: BitMap) -> Iterator[Damage]:
    campaign = _CampaignReader(store, number, targets)
    try:
        campaign.read_all()
    except _CampaignLostError as lost:
        yield Damage(f"campaign {number}", str(lost), number)
    yield from campaign.damage


class _CampaignLostError(Exception):
    """Nothing can be read of a campaign, because its record cannot."""


@dataclass
class _Rest:
    """What a campaign has besides its trials."""

    faults: list[FaultRecord]
    tests: list[TestRecord]
    reductions: list[ReductionRecord]
    workers: list[WorkerRecord]


class _CampaignReader:
    """Reads a campaign, and notes what is damaged."""

    def __init__(self, store: Store, number: int, targets: BitMap) -> None:
        self._store = store.recorded
        self._number = number
        self._targets = targets
        self._decoded_hits: dict[bytes, str] = {}
        self.damage: list[Damage] = []
        self.lost_trials = 0
        self._unreadable = 0
        """How many ranges of trials could not be read."""

    def read_all(self) -> None:
        """Read everything; only the notes on damage are of interest."""
        record, space = self.record()
        faults = {fault.id for fault in self.rest().faults}
        for source in self._try("its files", lambda: self._store.sources(self._number)) or ():
            if not (isinstance(source.path, str) and isinstance(source.place, str)):
                self._note("", f"the path of its file {source.path!r} is not what it should be")
        self._try("its targets", lambda: self._store.watched_targets(self._number))
        self._try("its sums", lambda: self._store.hit_summary(self._number))
        self._try("its sums of features", lambda: self._store.feature_summary(self._number))
        counted = self._counted_blocks(space, faults) or self._counted_trials(space, faults)
        if not self.damage and record.status != "running":
            self._check_totals(*counted)

    def _counted_blocks(
        self, space: Space | None, faults: set[str]
    ) -> tuple[Counter[int], Counter[str]] | None:
        """Count verdicts and faults by column; None if there is anything to look at closely."""
        verdicts, shown = Counter[int](), Counter[str]()
        try:
            stored = sum(count for _, _, count in self._store.block_ranges(self._number))
            for block in self._store.blocks(self._number):
                if not _is_sound(block, space, faults, self._targets):
                    return None
                verdicts.update(block.verdicts.tolist())
                indices = block.fault_index[block.fault_index >= 0].tolist()
                shown.update(map(block.faults.__getitem__, indices))
        except Exception:  # trial by trial, it becomes clear what is damaged
            return None
        return (verdicts, shown) if verdicts.total() == stored else None

    def _counted_trials(
        self, space: Space | None, faults: set[str]
    ) -> tuple[Counter[int], Counter[str]]:
        verdicts, shown = Counter[int](), Counter[str]()
        for trial in self.trials(space, faults):
            verdicts[int(trial.verdict)] += 1
            if trial.fault is not None:
                shown[trial.fault] += 1
        return verdicts, shown

    def record(self) -> tuple[CampaignRecord, Space | None]:
        """Return the record of the campaign, and its space; None if it has no dimensions."""
        try:
            record = self._store.campaign(self._number)
            wrong = _wrong_types(record, [field.name for field in fields(record)])
            if wrong:
                raise _CampaignLostError(f"its {wrong[0]} is not what it should be")
            datetime.datetime.fromtimestamp(record.created)
            space = Space.from_json(record.space) if record.space["dimensions"] else None
        except _CampaignLostError:
            raise
        except Exception as error:
            raise _CampaignLostError(_cannot("read", error)) from error
        wrong = [name for name in record.options if not _sound_option(name, record.options[name])]
        for name in wrong:
            self._note("", f"its option {name!r} is not what it should be")
        if wrong:
            options = {k: v for k, v in record.options.items() if k not in wrong}
            record = replace(record, options=options)
        problem = self._hits_problem(record.outside)
        if problem:
            self._note("", f"what its imports reached {problem}")
            record = replace(record, outside=None)
        return record, space

    def rest(self) -> _Rest:
        """Return what can be read of faults, tests, reductions and workers."""
        store, number = self._store, self._number
        faults = self._try("its faults", lambda: store.faults(number)) or ()
        tests = self._try("its stored tests", lambda: [*store.tests(number)]) or ()
        reductions = self._try("its reduced tests", lambda: store.reductions(number)) or ()
        workers = self._try("its workers", lambda: store.workers(number)) or ()
        return _Rest(
            [
                replaced
                for fault in faults
                if (replaced := self._sound_test(fault, f"fault {fault.id}")) is not None
            ],
            [test for test in tests if self._sound_test(test, f"the test of trial {test.trial}")],
            [each for each in reductions if self._sound_test(each, f"reduction of {each.fault}")],
            [worker for worker in workers if self._has_types(worker, f"worker {worker.name}")],
        )

    def trials(self, space: Space | None, faults: set[str]) -> Iterator[TrialRecord]:
        """Yield the trials, without what is damaged in them."""
        for trial in self._readable_trials():
            where = f"trial {trial.trial}"
            if not self._has_types(trial, where) or not self._has_sense(trial, space, where):
                self.lost_trials += 1
                continue
            if trial.fault is not None and trial.fault not in faults:
                self._note(where, f"its fault {trial.fault} is not in the store")
            yield self._described(trial, space, where)

    def _described(self, trial: TrialRecord, space: Space | None, where: str) -> TrialRecord:
        """Return the trial without hits, counts and propensities that cannot be decoded."""
        problem = self._hits_problem(trial.hits)
        if problem:
            self._note(where, f"its hits {problem}")
            trial = trial._replace(hits=None, missing=trial.missing or _LOST_HITS)
        features = len(space.features) if space is not None else 0
        if not _sound_counts(trial.used, features):
            self._note(where, "its counts of features cannot be decoded")
            trial = trial._replace(used=b"")
        if not _sound_propensities(trial.propensities, features):
            self._note(where, "its propensities cannot be decoded")
            trial = trial._replace(propensities=b"")
        return trial

    def _has_sense(self, trial: TrialRecord, space: Space | None, where: str) -> bool:
        numbers = (trial.trial, trial.steps, trial.skipped, trial.cpu_ns, trial.wall_ns)
        if trial.verdict not in (Verdict.PASSED, Verdict.FAILED, Verdict.INVALID):
            self._note(where, f"its verdict is {trial.verdict}")
        elif min(numbers) < 0:
            self._note(where, f"a number is {min(numbers)}")
        elif not _sound_configuration(space, trial.configuration):
            self._note(where, "its configuration cannot be decoded")
        else:
            return True
        return False

    def _readable_trials(self) -> Iterator[TrialRecord]:
        """Yield the trials, and leave out those that the database cannot read."""
        store, number = self._store, self._number
        try:
            ranges = store.block_ranges(number)
        except Exception as error:
            self._note("", f"some trials {_cannot('read', error)}")
            end, counted = self._end(-1), self.lost_trials
            for low, high in self._halved(-1, end or _FEW):
                yield from store.trials(number, after=low, before=high)
            if not end:
                self.lost_trials = counted
                self._note("", "how many trials are lost is not known")
            return
        for first, last, count in ranges:
            if isinstance(first, int) and isinstance(last, int):
                yield from self._trials_of_block(first, last, count)
                continue
            self._note("a block of trials", f"it reaches from {first!r} to {last!r}")
            self.lost_trials += count if isinstance(count, int) else 0

    def _trials_of_block(self, first: int, last: int, count: int) -> list[TrialRecord]:
        """Return the trials of a block; without their hits if only those cannot be read."""
        store, number = self._store, self._number
        where = f"trials {first:,} to {last:,}"
        try:
            return list(store.trials(number, after=first - 1, before=last + 1))
        except Exception as error:
            hits_error = error
        try:
            block = next(store.blocks(number, after=first - 1, hits=False))
            records = list(block.without_hits().records())
        except Exception as error:
            self._note(where, _cannot("read", _cause(error)))
            self.lost_trials += count if isinstance(count, int) else 0
            return []
        self._note(where, f"their hits {_cannot('read', _cause(hits_error))}")
        return [trial._replace(missing=trial.missing or _LOST_HITS) for trial in records]

    def _end(self, after: int) -> int:
        """Return a number above those of all trials; 0 if it is not known."""
        with suppress(Exception):
            newest = self._store.trials(self._number, newest_first=True, limit=1)
            return max(after, *(trial.trial for trial in newest)) + 2
        with suppress(Exception):
            return max(after, self._store.summary(self._number)["trials"]) + 2
        return 0

    def _halved(self, after: int, before: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of trials that can be read; ranges that cannot are halved."""
        if before - after < 2:
            return
        if self._unreadable >= _MOST_UNREADABLE:
            self.lost_trials += before - after - 1
            return
        try:
            for _ in self._store.trials(self._number, after=after, before=before):
                pass
            yield after, before
        except Exception:
            self._unreadable += 1
            if before - after == 2:
                self.lost_trials += 1
                return
            middle = (after + before + 1) // 2
            yield from self._halved(after, middle)
            yield from self._halved(middle - 1, before)

    def _check_totals(self, verdicts: Counter[int], shown: Counter[str]) -> None:
        summary = self._try("its totals", lambda: self._store.summary(self._number))
        counted = {"trials": verdicts.total()}
        counted |= {verdict.label: verdicts[verdict] for verdict in Verdict}
        for name, count in counted.items():
            if summary and summary[name] != count:
                self._note("", f"its totals say {summary[name]:,} {name}, but there are {count:,}")
        for fault in self._store.faults(self._number):
            if fault.count != shown[fault.id]:
                counts = f"{fault.count:,} trials, but there are {shown[fault.id]:,}"
                self._note("", f"its totals say that fault {fault.id} has {counts}")
        self._try("its progress", lambda: self._store.progress(self._number))

    def _sound_test(self, record: Any, where: str) -> Any:
        """Return the record, without a test that cannot be decoded; None if nothing is left."""
        if not self._has_types(record, where):
            return None
        try:
            test = json.loads(record.test) if record.test is not None else {}
        except (ValueError, RecursionError) as error:
            self._note(where, f"its test {_cannot('decode', error)}")
        else:
            if isinstance(test, dict | list):
                return record
            self._note(where, "its test is not a test")
        return record._replace(test=None) if isinstance(record, FaultRecord) else None

    def _hits_problem(self, hits: bytes | None) -> str:
        if not hits:
            return ""
        if hits not in self._decoded_hits:
            if len(self._decoded_hits) > _BATCH:
                self._decoded_hits.clear()
            self._decoded_hits[hits] = _undecodable(hits, self._targets)
        return self._decoded_hits[hits]

    def _has_types(self, record: Any, where: str) -> bool:
        for name in _wrong_types(record, record._fields):
            self._note(where, f"its {name} is not what it should be")
            return False
        return True

    def _try(self, what: str, call: Callable[[], T]) -> T | None:
        """Return what a call returns; note the damage and return None if it fails."""
        try:
            return call()
        except Exception as error:
            self._note("", f"{what} {_cannot('read', error)}")
            return None

    def _note(self, where: str, what: str) -> None:
        place = f"campaign {self._number}" + (f", {where}" if where else "")
        self.damage.append(Damage(place, what, self._number))


def _cause(error: Exception) -> Exception:
    """Return the error behind a message that says where it happened, which is known here."""
    return error.__cause__ if isinstance(error.__cause__, ValueError) else error


def _cannot(done: str, error: Exception) -> str:
    # The advice of an error of the store, to ask the doctor, is for others.
    cause = error.__cause__ if isinstance(error, UserError) and error.__cause__ else error
    why = str(cause) if isinstance(cause, UserError) else f"{type(cause).__name__}: {cause}"
    participle = "decoded" if done == "decode" else done
    return f"cannot be {participle} ({' '.join(why.split())})"


def _undecodable(hits: bytes, targets: BitMap) -> str:
    try:
        unknown = len(BitMap.deserialize(hits) - targets)
    except ValueError as error:
        return _cannot("decode", error)
    return f"name {unknown:,} targets that are not in the store" if unknown else ""


def _wrong_types(record: Any, names: Iterable[str]) -> list[str]:
    hints = _HINTS[type(record)]
    return [name for name in names if not _has_type(getattr(record, name), hints[name])]


def _has_type(value: object, hint: Any) -> bool:
    if hint is float:
        return isinstance(value, int | float)
    origin = get_origin(hint)
    return isinstance(value, origin if origin in (dict, tuple) else hint)


_NUMBER = (int, float, type(None))
_OPTIONS: dict[str, Any] = {
    "subject": {"text": str, "api": bool, "raises": [str], "avoid": [{"text": str}]},
    "budget": {"tests": _NUMBER, "seconds": _NUMBER, "cpu_seconds": _NUMBER, "faults": _NUMBER},
    "coverage": {
        **{key: [str] for key in ("kinds", "cover", "imports", "left_out")},
        **dict.fromkeys(("probes", "beside", "package", "harness", "from"), str),
    },
    "search": {"file": str, "fitness": str, "keep": str, "combine": str, "forbid": [str]},
    "process": {"host": str, "pid": int, "started": str},
    "plan": {},
    "killed": [int],
    "seconds": _NUMBER,
    "memory": (str, *_NUMBER),
    **dict.fromkeys(("machine", "part", "python", "version"), str),
}
"""The forms of options: a type or types, a list of what is in it, or a mapping with known keys."""


def _sound_option(name: str, value: object) -> bool:
    return value is None or _has_form(value, _OPTIONS.get(name, object))


def _has_form(value: Any, form: Any) -> bool:
    if isinstance(form, list):
        return isinstance(value, list) and all(_has_form(item, form[0]) for item in value)
    if isinstance(form, dict):
        return isinstance(value, dict) and all(
            _has_form(value[key], form[key]) for key in form.keys() & value.keys()
        )
    return isinstance(value, form)


def _is_sound(block: TrialBlock, space: Space | None, faults: set[str], targets: BitMap) -> bool:
    """Return whether all trials of a block are as they should be; decode every column."""
    numbers = (block.numbers, block.steps, block.skipped, block.cpu_ns, block.wall_ns)
    hits = block.hits
    texts = (*block.origins, *block.missing, *block.faults)
    return (
        min(int(column.min()) for column in numbers) >= 0
        and bool((np.diff(block.numbers) > 0).all())
        and bool(np.isin(block.verdicts, list(Verdict)).all())
        and all(isinstance(text, str) for text in texts)
        and faults.issuperset(block.faults)
        and len(block.seeds) == block.size
        and block.used.shape == (block.features, block.size)
        and not (block.used_states == ODD_COUNTS).any()
        and not (block.hit_states == ODD_HITS).any()
        and not BitMap(hits.targets.astype(np.uint32)) - targets
        and int(hits.positions.max(initial=0)) < block.size
        and all(_sound_propensities(row, block.features) for row in block.propensity_rows)
        and all(_sound_configuration(space, each) for each in _distinct_configurations(block))
    )


def _distinct_configurations(block: TrialBlock) -> list[bytes]:
    """Return a configuration for each that differs in more than which features are on."""
    kinds = np.stack([block.kinds, block.weight_index, block.tail_index], axis=1)
    _, examples = np.unique(kinds, axis=0, return_index=True)
    return block.take(np.sort(examples)).configurations()


def _sound_configuration(space: Space | None, packed: bytes) -> bool:
    if space is None:
        return True
    try:
        configuration = Configuration.from_bytes(space, packed)
        return configuration.to_bytes() == packed and all(
            configuration[setting.name] in setting.values for setting in space.settings
        )
    except (ValueError, LookupError, TypeError, struct.error, UserError, RecursionError):
        return False


def _sound_counts(packed: bytes, features: int) -> bool:
    try:
        return not packed or (packed[0] in (1, 4) and len(unpack_counts(packed)) in (0, features))
    except struct.error:
        return False


def _sound_propensities(packed: bytes, features: int) -> bool:
    try:
        values = unpack_floats(packed)
    except struct.error:
        return False
    return len(values) in (0, 1, features) and all(0 <= value <= 1 for value in values)


# Saving.


class SavedCampaign(NamedTuple):
    """What was saved of a campaign."""

    campaign: int
    """Its number in the damaged store."""
    number: int
    """Its number in the new store; 0 if nothing could be saved."""
    trials: int
    lost: int
    """How many trials are known to be lost."""
    why: str = ""
    """Why nothing could be saved."""


def save_readable(source: Store, destination: Store) -> Iterator[SavedCampaign]:
    """Copy everything that can be read from a store to another one; yield what became of each.

    >>> from swarmtest.store import open_store
    >>> with open_store(":memory:") as old, open_store(":memory:") as new:
    ...     space = Space(["push"])
    ...     number = old.add_campaign(CampaignRecord("stack.py", "coin", 7, space.to_json()))
    ...     old.record(number, [TrialRecord(0, b"?"), TrialRecord(1, space.default().to_bytes())])
    ...     print(*save_readable(old, new))
    SavedCampaign(campaign=1, number=1, trials=1, lost=1, why='')
    """
    targets = _sound_targets(source)
    new_numbers = {0: 0}
    for number in source.campaign_numbers():
        reader = _CampaignReader(source, number, targets)
        try:
            record, space = reader.record()
        except _CampaignLostError as lost:
            yield SavedCampaign(number, 0, 0, 0, str(lost))
            continue
        saved = _save_campaign(source, destination, reader, record, space)
        new_numbers[number] = saved.number
        yield saved
    _save_history(source, destination, new_numbers)
    with suppress(Exception):  # they are only about how faults are shown
        destination.decide_faults(source.fault_decisions())


def _save_history(source: Store, destination: Store, new_numbers: dict[int, int]) -> None:
    """Save the sound events of faults; `new_numbers` has the campaigns that were saved."""
    with suppress(Exception):  # nothing of it can be read; `find_damage` says so
        destination.add_fault_events(
            [
                event._replace(campaign=new_numbers[event.campaign])
                for event in source.fault_events()
                if not _event_problem(event, {*new_numbers})
            ]
        )


def _save_campaign(
    source: Store,
    destination: Store,
    reader: _CampaignReader,
    record: CampaignRecord,
    space: Space | None,
) -> SavedCampaign:
    rest = reader.rest()
    ids = IdTranslation(source, destination)
    status = "interrupted" if record.status == "running" else record.status
    number = destination.add_campaign(replace(record, status=status, outside=None, id=0))
    try:
        ids.translate([*source.watched_targets(record.id)])
        destination.add_sources(number, source.sources(record.id))
    except Exception as error:
        reader.damage.append(Damage(f"campaign {record.id}", _cannot("read", error), record.id))
    destination.update_campaign(number, outside=ids.packed(record.outside))
    saved, batch = 0, list[TrialRecord]()
    known = {fault.id for fault in rest.faults}
    for trial in reader.trials(space, known):
        batch.append(trial._replace(hits=ids.packed(trial.hits)))
        saved += 1
        if len(batch) == _BATCH:
            destination.record(number, batch)
            batch = []
    destination.record(number, batch, rest.faults, rest.tests)
    for reduction in rest.reductions:
        destination.add_reduction(number, reduction)
    for worker in rest.workers:
        destination.note_worker(number, worker)
    return SavedCampaign(record.id, number, saved, reader.lost_trials)
