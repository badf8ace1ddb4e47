"""How often each target was hit: in directed tests, in control tests, and in earlier ones.

Invariant: a test counts in exactly one way (directed, undirected, default), by its origin, and only
if its hits are known; an invalid test counts as one that hit nothing, for it cost time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pyroaring import BitMap

from swarmtest.focus.base import BaseVerdict
from swarmtest.focus.fault_places import place_of_fault
from swarmtest.focus.history import History
from swarmtest.focus.outcome import Count, FocusedFault, FocusedTarget
from swarmtest.focus.plan import PlannedTarget
from swarmtest.instrument.scope import shown_path
from swarmtest.store import FaultRecord, Store, TrialRecord
from swarmtest.strategies.directed.controlled import DEFAULT, UNDIRECTED

DIRECTED = "directed"


@dataclass
class _Seen:
    """What was counted of one target."""

    hits: dict[str, int] = field(default_factory=lambda: {DIRECTED: 0, UNDIRECTED: 0, DEFAULT: 0})
    configurations: set[bytes] = field(default_factory=set)
    ways: set[bytes] = field(default_factory=set)


@dataclass
class Counted:
    """What one pass over a focused campaign's tests gives."""

    tests: dict[str, int] = field(default_factory=lambda: {DIRECTED: 0, UNDIRECTED: 0, DEFAULT: 0})
    cpu: dict[str, float] = field(
        default_factory=lambda: {DIRECTED: 0.0, UNDIRECTED: 0.0, DEFAULT: 0.0}
    )
    faults: dict[str, dict[str, int]] = field(default_factory=dict)
    configurations: set[bytes] = field(default_factory=set)
    """Of the directed tests."""
    targets: dict[str, _Seen] = field(default_factory=dict)

    def count(self, hits: dict[str, int], way: str) -> Count:
        """Hits of something, with the tests and the time of their way."""
        return Count(hits.get(way, 0), self.tests[way], self.cpu[way])


def way_of(trial: TrialRecord) -> str:
    """Whether a test of a focused campaign was directed, and if not, what it was."""
    return trial.origin if trial.origin in (UNDIRECTED, DEFAULT) else DIRECTED


def count_hits(store: Store, campaign: int, names: Iterable[str]) -> Counted:
    """Count a campaign's tests; `names` are the targets to count, faults are counted anyway."""
    ids, functions = _ids_of(store, campaign, names)
    counted = Counted(targets={name: _Seen() for name in names})
    wanted = BitMap(ids)
    for trial in store.trials(campaign):
        if not trial.hits_are_known:
            continue
        way = way_of(trial)
        counted.tests[way] += 1
        counted.cpu[way] += trial.cpu_ns / 1e9
        if way == DIRECTED:
            counted.configurations.add(trial.configuration)
        if trial.fault:
            _note_fault(counted, trial, way)
        if trial.hits:
            hits = BitMap.deserialize(trial.hits)
            for id in hits & wanted:
                _note(counted.targets[ids[id]], trial, way, hits, functions[id])
    return counted


def _note_fault(counted: Counted, trial: TrialRecord, way: str) -> None:
    assert trial.fault is not None
    shown = counted.faults.setdefault(trial.fault, {})
    shown[way] = shown.get(way, 0) + 1
    seen = counted.targets.get(f"fault:{trial.fault}")
    if seen is not None:
        _note(seen, trial, way, BitMap(), BitMap())


def _note(seen: _Seen, trial: TrialRecord, way: str, hits: BitMap, function: BitMap) -> None:
    seen.hits[way] += 1
    if way == DIRECTED:
        seen.configurations.add(trial.configuration)
        seen.ways.add((hits & function).serialize())


def _ids_of(
    store: Store, campaign: int, names: Iterable[str]
) -> tuple[dict[int, str], dict[int, BitMap]]:
    """The store's ids of named targets, and for each the lines of its function."""
    asked = set(names)
    reached = BitMap()
    for trial in store.trials(campaign):
        if trial.hits:
            reached |= BitMap.deserialize(trial.hits)
    targets = store.targets(reached)
    around: dict[tuple[str, str], list[int]] = {}
    for id, target in targets.items():
        if target.kind == "line":
            around.setdefault((target.source, target.function), []).append(id)
    ids = {id: str(target) for id, target in targets.items() if str(target) in asked}
    functions = {
        id: BitMap(around.get((targets[id].source, targets[id].function), ())) for id in ids
    }
    return ids, functions


def split_by_sight(
    store: Store, campaign: int, planned: Sequence[PlannedTarget]
) -> tuple[list[PlannedTarget], list[str]]:
    """The targets whose hits a campaign could see, and a line for each file with others."""
    watched = {source.path for source in store.sources(campaign)}
    seen, unseen = [], dict[tuple[str, str], int]()
    for one in planned:
        shown = shown_path(one.place) if one.place else ""
        if one.cause == "at import" or (one.place and shown not in watched):
            why = one.dropped if one.cause in ("at import", "unseen") else "no test imported it"
            unseen[shown, why] = unseen.get((shown, why), 0) + 1
        else:
            seen.append(one)
    return seen, [
        f"{file}: {count} line{'s' * (count != 1)}: {why}" for (file, why), count in unseen.items()
    ]


def focused_targets(
    planned: Sequence[PlannedTarget],
    counted: Counted,
    history: History,
    undirected: str,
    pooled: bool,
) -> tuple[FocusedTarget, ...]:
    """Planned targets with their counts.

    `pooled`: earlier undirected tests of the same code count as well. They do not where they were
    what targets were chosen by: the rarest of many were rare by luck, too.
    """
    return tuple(_focused(one, counted, history, undirected, pooled) for one in planned)


def _focused(
    planned: PlannedTarget, counted: Counted, history: History, undirected: str, pooled: bool
) -> FocusedTarget:
    seen = counted.targets[planned.name]
    plain = counted.count(seen.hits, UNDIRECTED)
    is_line = planned.name.startswith("line:") and bool(planned.place)
    if pooled and is_line:
        plain = _sum(plain, earlier_count(history, planned, undirected))
    return FocusedTarget(
        target=planned.name,
        file=shown_path(planned.place) if planned.place else "",
        line=planned.line,
        function=planned.function,
        stand_in=planned.stand_in,
        mapped=planned.mapped,
        dropped=planned.dropped,
        triggers=planned.triggers,
        suppressors=planned.suppressors,
        directed=counted.count(seen.hits, DIRECTED),
        undirected=plain,
        default=counted.count(seen.hits, DEFAULT),
        configurations=len(seen.configurations),
        ways=len(seen.ways),
    )


def focused_faults(
    store: Store,
    campaign: int,
    faults: Sequence[FaultRecord],
    counted: Counted,
    verdicts: Mapping[str, BaseVerdict],
) -> tuple[FocusedFault, ...]:
    """Faults with their counts, and what the base version has to say about them."""
    watched = store.sources(campaign)
    found = []
    for fault in faults:
        shown = counted.faults.get(fault.id, {})
        verdict = verdicts.get(fault.id)
        found.append(
            FocusedFault(
                fault,
                counted.count(shown, DIRECTED),
                counted.count(shown, UNDIRECTED),
                verdict.status if verdict else "",
                verdict.why if verdict else "",
                place_of_fault(fault.details, watched),
                f"swarmtest replay {fault.id}",
            )
        )
    return tuple(found)


def earlier_count(history: History, planned: PlannedTarget, undirected: str) -> Count:
    """Hits in earlier tests of the same code that were drawn like the undirected control tests."""
    study = history.study
    alike = [
        number
        for number, campaign in enumerate(study.evidence.campaigns)
        if study.store.campaign(campaign).strategy == undirected
    ]
    tests = np.isin(study.evidence.campaign, alike) & history.knowing(planned.place, planned.line)
    tests &= history.unchanged(planned.place)
    hit = history.column([(planned.place, planned.line)])
    cpu = float(study.evidence.cpu_seconds[tests].sum())
    return Count(int((hit & tests).sum()), int(tests.sum()), cpu)


def _sum(one: Count, other: Count) -> Count:
    return Count(
        one.hits + other.hits, one.tests + other.tests, one.cpu_seconds + other.cpu_seconds
    )
