"""Whether a campaign still finds new things, and what more tests of the same kind would find.

Campaigns of the same subject and strategy with other seeds are more tests of the same kind, so they
can be read as one. Every kind of target is treated separately: faults, lines, branches, events.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.discovery import Discovery, FoundTarget, halves
from swarmtest.analysis.intervals import binomial_p_value
from swarmtest.analysis.trial_columns import changed_between
from swarmtest.core.display import Displayed, ShownTable
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.formatting import plural
from swarmtest.core.strategy_names import current_strategy_text
from swarmtest.core.targets import Target, unpack_hits
from swarmtest.coverage.kinds import WITH_PROBES
from swarmtest.growth.richness import (
    Forecast,
    Incidence,
    incidence,
    least_unseen,
    new_within,
    unseen,
)
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord

_LATE = 20
"""Origins are compared on this many of the last tests that found something."""
_LEAST_LATE = 5
"""With fewer such tests, origins are not compared."""


@dataclass(frozen=True)
class ForecastCheck:
    """What the first half of the tests predicted for the second, and what was found."""

    predicted: Forecast
    found: int

    @property
    def holds(self) -> bool:
        """Return whether what was found lies in the interval.

        >>> ForecastCheck(Forecast(5.0, 1.2, 9.7), found=10).holds
        True
        """
        return math.floor(self.predicted.low) <= self.found <= math.ceil(self.predicted.high)

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"foretold": self.predicted.to_json(), "came": self.found, "holds": self.holds}


@dataclass(frozen=True)
class KindGrowth:
    """The growth of one kind of target: what was found, and what is still to be found."""

    kind: str
    seen: Incidence
    curve: npt.NDArray[np.int64]
    """How many were found so far, after each test."""
    new: Forecast
    """How many would be found in as many tests again."""
    unseen: Forecast
    """Chao2's estimate of what such tests could still reach; its mean is at most the truth."""
    watched: int | None = None
    """How many there are in the watched files, for kinds where that is known."""
    unreached: int | None = None
    """How many of them were reached neither by a test nor by an import."""
    check: ForecastCheck | None = None

    @property
    def least_unseen(self) -> int:
        """Return a lower bound of what such tests could still reach, with 95% confidence."""
        return least_unseen(self.seen, self.unseen)

    def to_json(self) -> dict[str, Any]:
        """Return plain data.

        Of the curve, only the tests that found something are included (1 is the first test).
        """
        steps = np.flatnonzero(np.diff(self.curve, prepend=0))
        return {
            "kind": self.kind,
            "tests": self.seen.tests,
            "found": self.seen.found,
            "once": self.seen.once,
            "twice": self.seen.twice,
            "new_per_test": self.seen.new_per_test,
            "familiar": self.seen.familiar,
            "new_in_as_many_tests": self.new.to_json(),
            "unseen": self.unseen.to_json(),
            "unseen_at_least": self.least_unseen,
            "watched": self.watched,
            "unreached": self.unreached,
            "check": self.check.to_json() if self.check else None,
            "curve": np.column_stack([steps + 1, self.curve[steps]]).tolist(),
        }


@dataclass(frozen=True)
class LeadingOrigin:
    """A part of the strategy with a larger share of the late discoveries than of the tests.

    >>> print(LeadingOrigin("dominant", found=9, late=20, share=0.1))
    9 of the last 20 tests that found something came from 'dominant', which made 10% of the tests
    """

    origin: str
    found: int
    late: int
    share: float

    def __str__(self) -> str:
        return (
            f"{self.found} of the last {self.late} tests that found something came from "
            f"{self.origin!r}, which made {self.share:.0%} of the tests"
        )


@dataclass(frozen=True)
class Growth(Displayed):
    """What some campaigns found together, for each kind; faults are always first.

    >>> Growth((1,), "stack.py", "coin", 100, 0, ()).to_json()["tests"]
    100
    """

    campaigns: tuple[int, ...]
    subject: str
    strategy: str
    tests: int
    missing: int
    """Tests with unknown coverage, which count only for faults."""
    kinds: tuple[KindGrowth, ...]
    lead: LeadingOrigin | None = None
    left_out: tuple[str, ...] = ()
    """Kinds that were found or watched, but not asked for."""

    def shown_title(self) -> str:
        """Return whose growth it is."""
        numbers = ", ".join(map(str, self.campaigns))
        return f"{self.subject}, {self.strategy}, campaign {numbers}: {plural(self.tests, 'test')}"

    def shown_tables(self) -> list[ShownTable]:
        """Return a row per kind: what was found, and what as many tests again would add."""
        head = ("kind", "found", "by 1 test", "by 2 tests", "new in as many", "low", "high")
        rows = [
            (
                *(each.kind, each.seen.found, each.seen.once, each.seen.twice),
                *(each.new.value, each.new.low, each.new.high, each.least_unseen),
            )
            for each in self.kinds
        ]
        return [ShownTable("", (*head, "unseen, at least"), rows)]

    def data_columns(self) -> Mapping[str, Any]:
        """Return how many were found of each kind after each test that found something."""
        rows = [
            (each.kind, tests, found)
            for each in self.kinds
            for tests, found in each.to_json()["curve"]
        ]
        names = ("kind", "tests", "found")
        return {name: [row[column] for row in rows] for column, name in enumerate(names)}

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "campaigns": list(self.campaigns),
            "subject": self.subject,
            "strategy": self.strategy,
            "tests": self.tests,
            "coverage_missing": self.missing,
            "lead": vars(self.lead) if self.lead else None,
            "kinds": [kind.to_json() for kind in self.kinds],
        }


@dataclass(frozen=True)
class _Pool:
    """Several campaigns as if they had run one after the other."""

    tests: int
    missing: int
    found: dict[str, list[FoundTarget]]
    """The targets that were found, by kind."""

    def seen(self, kind: str) -> Incidence:
        """Return the counts of one kind."""
        lost = 0 if kind == "fault" else self.missing
        return incidence(self.found.get(kind, []), self.tests - lost)


def measure_growth(store: Store, campaigns: Sequence[int], kind: str = "") -> Growth:
    """Read campaigns of one subject and strategy; with `kind`, only that kind of target.

    >>> from swarmtest import open_store, swarm
    >>> with open_store(":memory:") as store:
    ...     for trial in swarm(["push", "pop"], seed=1, tests=20, store=store):
    ...         trial.record(failed="pop" not in trial and "overflow")
    ...     measure_growth(store, [1]).kinds[0].seen.found
    1
    """
    records = [store.campaign(number) for number in campaigns]
    _check_alike(store, records)
    read = [halves(store, number) for number in campaigns]
    half, pool = _pool([first for first, _ in read]), _pool([whole for _, whole in read])
    watched = _watched(store, records)
    names = sorted({"fault", *pool.found, *watched}, key=lambda name: (name != "fault", name))
    if kind and kind not in names:
        raise UserError(f"nothing of kind {kind!r} was found or watched{did_you_mean(kind, names)}")
    chosen = [kind] if kind else names
    return Growth(
        tuple(campaigns),
        records[0].subject,
        records[0].label,
        pool.tests,
        pool.missing,
        tuple(_growth_of(name, pool, half, watched) for name in chosen),
        _lead(store, campaigns, pool, chosen),
        tuple(name for name in names if name not in chosen),
    )


def _growth_of(
    kind: str, pool: _Pool, half: _Pool, watched: dict[str, tuple[int, set[Target]]]
) -> KindGrowth:
    """Return the growth of one kind."""
    seen, before = pool.seen(kind), half.seen(kind)
    check = ForecastCheck(new_within(before, seen.tests - before.tests), seen.found - before.found)
    found = pool.found.get(kind, [])
    whole, left = watched.get(kind, (None, set()))
    unreached = None if whole is None else len(left - {item.target for item in found})
    most = math.inf if unreached is None else float(unreached)
    return KindGrowth(
        kind,
        seen,
        np.cumsum(np.bincount([item.first for item in found], minlength=pool.tests)),
        new_within(seen, seen.tests).at_most(most),
        unseen(seen).at_most(most),
        whole,
        unreached,
        check if before.tests else None,
    )


def _check_alike(store: Store, records: Sequence[CampaignRecord]) -> None:
    """Raise an error if the campaigns cannot be read as one."""
    first = records[0]
    seeds: dict[int, int] = {}
    for record in records:
        for what, name in (("subject", "subject"), ("strategy", "label")):
            expected, other = getattr(first, name), getattr(record, name)
            if expected != other:
                raise UserError(
                    f"campaigns {first.id} and {record.id} cannot be read as one: the {what} of "
                    f"{first.id} is {expected}, of {record.id} {other}"
                )
        if _options(first) != _options(record):
            raise UserError(
                f"campaigns {first.id} and {record.id} cannot be read as one: they differ in the "
                "steps of a test, the exceptions that are correct, or what was watched"
            )
        if record.seed in seeds:
            raise UserError(
                f"campaigns {seeds[record.seed]} and {record.id} have the same seed "
                f"({record.seed}), so their tests are the same: name one of them"
            )
        seeds[record.seed] = record.id
    changed = changed_between(store, records)
    if changed:
        raise UserError(
            f"{changed.path} changed between campaigns {changed.before} and {changed.after}: "
            "they tested different programs"
        )


def _options(record: CampaignRecord) -> tuple[Any, ...]:
    """Return the options that make tests of the same subject and strategy differ."""
    reference, coverage = (record.options.get(name) or {} for name in ("subject", "coverage"))
    return reference.get("steps"), reference.get("raises"), coverage.get("kinds")


def _pool(runs: Sequence[Discovery]) -> _Pool:
    pooled: dict[Target, FoundTarget] = {}
    before = 0
    for run in runs if len(runs) > 1 else ():
        for found in run.found:
            earlier = pooled.get(found.target) or FoundTarget(found.target, 0, before + found.first)
            pooled[found.target] = replace(earlier, hits=earlier.hits + found.hits)
        before += run.tests
    by_kind: dict[str, list[FoundTarget]] = defaultdict(list)
    for found in pooled.values() if len(runs) > 1 else runs[0].found:
        by_kind[found.target.kind].append(found)
    tests, missing = (sum(getattr(run, name) for run in runs) for name in ("tests", "missing"))
    return _Pool(tests, missing, dict(by_kind))


def _watched(store: Store, records: Sequence[CampaignRecord]) -> dict[str, tuple[int, set[Target]]]:
    """Return, by kind, how many targets are watched, and those that no import reached."""
    targets: dict[int, Target] = {}
    outside: set[int] = set()
    for record in records:
        asked = (record.options.get("coverage") or {}).get("kinds", ["line"])
        kinds = WITH_PROBES & {*asked}
        watched = store.watched_targets(record.id)
        targets |= {id: target for id, target in watched.items() if target.kind in kinds}
        outside |= {*unpack_hits(record.outside)} if record.outside else set()
    whole = Counter(target.kind for target in targets.values())
    left: dict[str, set[Target]] = defaultdict(set)
    for id, target in targets.items():
        if id not in outside:
            left[target.kind].add(target)
    return {kind: (count, left[kind]) for kind, count in whole.items()}


def _lead(
    store: Store, campaigns: Sequence[int], pool: _Pool, kinds: Sequence[str]
) -> LeadingOrigin | None:
    """Return the origin that stands out among the last tests that found something.

    Early tests do not count, because at first every origin finds something.
    """
    finders = {item.first for kind in kinds for item in pool.found.get(kind, ())}
    late = {*sorted(at for at in finders if at >= pool.tests // 2)[-_LATE:]}
    tests_of: Counter[str] = Counter()
    finds_of: Counter[str] = Counter()
    for start, names, index in _origins(store, campaigns):
        counts = np.bincount(index, minlength=len(names)).tolist()
        finds = np.array(sorted(at for at in late if start <= at < start + len(index)), np.intp)
        found = np.bincount(index[finds - start], minlength=len(names)).tolist()
        for name, tests, times in zip(names, counts, found, strict=True):
            if tests:
                tests_of[name] += tests
                finds_of[name] += times
    for origin, count in finds_of.most_common() if len(late) >= _LEAST_LATE else ():
        share = tests_of[origin] / pool.tests
        chance = float(binomial_p_value(count, len(late), share)) * len(tests_of)
        if count > share * len(late) and chance < 0.05:
            return LeadingOrigin(origin, count, len(late), share)
    return None


def _origins(
    store: Store, campaigns: Sequence[int]
) -> Iterator[tuple[int, list[str], npt.NDArray[np.int32]]]:
    """Yield, for each block, its first test, the names of origins, and the origin of each test."""
    start = 0
    for campaign in campaigns:
        for block in store.blocks(campaign, hits=False):
            yield start, list(map(current_strategy_text, block.origins)), block.origin_index
            start += block.size
