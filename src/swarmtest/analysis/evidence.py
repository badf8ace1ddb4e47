"""The tests of one or more campaigns, as columns: what each could use, used, showed, and the odds.

Everything here is a few bytes per test and feature and stays in memory. What tests *hit* is read
again from the store when it is counted (`swarmtest.analysis.hit_blocks`), because that may be
thousands of targets per test.

An invalid test counts as one that hit nothing: a feature that makes tests invalid does keep them
from hitting anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.errors import UserError
from swarmtest.result import Verdict
from swarmtest.space import Space
from swarmtest.space.configuration import unpack_weights
from swarmtest.store import CampaignRecord, Store
from swarmtest.store.records import TrialRecord, unpack_counts, unpack_floats
from swarmtest.targets import Target

_MEMBER = re.compile(r"(?:^|/)(?:member|row) \d+$")
"""An origin that names one of a fixed set of configurations (see `swarmtest.space.Proposal`)."""

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Evidence:
    """What is known about each of `n` tests, in order of campaigns and trials.

    >>> from swarmtest import Campaign, Machine, action, open_store
    >>> class Light(Machine):
    ...     @action
    ...     def on(self): self.event("lit")
    ...     @action
    ...     def off(self): pass
    >>> with open_store(":memory:") as store:
    ...     outcome = Campaign(Light, "coin", 50, store=store, workers=0).run()
    ...     evidence = read_evidence(store, [1])
    >>> evidence.features, evidence.n
    (('on', 'off'), 50)
    """

    campaigns: tuple[int, ...]
    seeds: tuple[int, ...]
    spaces: tuple[Space, ...]
    """The space of each campaign: the same features, but perhaps other constraints."""
    features: tuple[str, ...]
    campaign: npt.NDArray[np.int32]
    """Index into `campaigns`, one per test."""
    trial: Counts
    weights: npt.NDArray[np.float32]
    """Tests by features; 0 is left out."""
    used: npt.NDArray[np.uint32]
    """Tests by features: how often each appeared."""
    steps: Counts
    cpu_seconds: Floats
    odds: Floats
    """Distinct rows of logged propensities, by features; a row of NaN: nothing was logged."""
    odds_row: npt.NDArray[np.int32]
    """Which row of `odds` each test has."""
    origins: tuple[str, ...]
    origin: npt.NDArray[np.int32]
    """Index into `origins`, one per test."""
    fault_ids: tuple[str, ...]
    signatures: tuple[str, ...]
    fault: npt.NDArray[np.int32]
    """Index into `fault_ids`, one per test; -1: it passed."""
    known: Bools
    """Whether a test's hits are known."""
    reached: BitMap
    """The store's ids of all targets that some test hit."""
    invalid: int
    """How many tests were invalid."""

    @property
    def n(self) -> int:
        """How many tests there are."""
        return len(self.trial)

    @cached_property
    def enabled(self) -> Bools:
        """Tests by features: whether each was allowed."""
        return self.weights > 0

    @cached_property
    def clusters(self) -> npt.NDArray[np.int32]:
        """Tests that share one draw of a configuration have one number; -1: a draw of its own.

        A campaign that runs each of a hundred configurations a hundred times has drawn a hundred
        times, not ten thousand: what looks like 40 independent tests may be one configuration.
        """
        fixed = np.array([bool(_MEMBER.search(name)) for name in self.origins], bool)
        member = fixed[self.origin]
        keys = self.campaign.astype(np.int64) * len(self.origins) + self.origin
        numbers = np.full(self.n, -1, np.int32)
        if member.any():
            numbers[member] = np.unique(keys[member], return_inverse=True)[1]
        return numbers

    def fault_target(self, number: int) -> Target:
        """A fault as a target like any other."""
        return Target("fault", self.fault_ids[number], detail=self.signatures[number])


def read_evidence(store: Store, campaigns: Sequence[int]) -> Evidence:
    """Read the tests of campaigns that have the same features."""
    records = [store.campaign(campaign) for campaign in campaigns]
    spaces = _spaces(records)
    columns = _Columns(len(spaces[0].features))
    for number, campaign in enumerate(campaigns):
        columns.add(number, store.trials(campaign))
    if not columns.trial:
        raise UserError(f"{_named(campaigns)} ran no tests yet: there is nothing to learn from")
    signatures = {f.id: f.signature for campaign in campaigns for f in store.faults(campaign)}
    seeds = tuple(record.seed for record in records)
    return columns.evidence(tuple(campaigns), seeds, spaces, signatures)


def _spaces(records: Sequence[CampaignRecord]) -> tuple[Space, ...]:
    if not records:
        raise UserError("name at least one campaign")
    for record in records:
        if not record.space["dimensions"]:
            raise UserError(
                f"campaign {record.id} has no features (it was measured by another tool): "
                "nothing was left out, so nothing can be a trigger or a suppressor"
            )
    spaces = [Space.from_json(record.space) for record in records]
    for record, space in zip(records, spaces, strict=True):
        if record.subject != records[0].subject:
            raise UserError(
                f"campaigns {records[0].id} and {record.id} tested different subjects: "
                f"{records[0].subject} and {record.subject}"
            )
        if space.feature_names != spaces[0].feature_names:
            odd = set(space.feature_names) ^ set(spaces[0].feature_names)
            raise UserError(
                f"campaigns {records[0].id} and {record.id} have different features: "
                f"{', '.join(sorted(odd)) or 'the order'}"
            )
    for at, record in enumerate(records):
        for earlier in records[:at]:
            if (record.strategy, record.seed, record.space) == (
                earlier.strategy,
                earlier.seed,
                earlier.space,
            ):
                raise UserError(
                    f"campaigns {earlier.id} and {record.id} ran the same tests (strategy "
                    f"{record.strategy}, seed {record.seed}): name one of them"
                )
    if not spaces[0].features:
        raise UserError(f"campaign {records[0].id} has no features to tell apart")
    return tuple(spaces)


def _named(campaigns: Sequence[int]) -> str:
    return f"campaign{'s' * (len(campaigns) > 1)} {', '.join(map(str, campaigns))}"


class _Columns:
    """Trials, turned into columns one by one."""

    def __init__(self, features: int) -> None:
        self._features = features
        self._odds: dict[bytes, int] = {}
        self._origins: dict[str, int] = {}
        self._faults: dict[str, int] = {}
        self._weights: list[bytes] = []
        self._used: list[tuple[int, ...]] = []
        self._places: list[tuple[int, int, int, bool]] = []
        self._spent: list[int] = []
        self._steps: list[int] = []
        self._campaign: list[int] = []
        self._reached = BitMap()
        self._invalid = 0
        self.trial: list[int] = []

    def add(self, campaign: int, trials: Iterable[TrialRecord]) -> None:
        """Take the trials of one campaign."""
        for trial in trials:
            self._invalid += trial.verdict == Verdict.INVALID
            self._campaign.append(campaign)
            self.trial.append(trial.trial)
            self._weights.append(trial.configuration)
            self._used.append(unpack_counts(trial.used))
            self._steps.append(trial.steps)
            self._spent.append(trial.cpu_ns)
            fault = -1
            if trial.fault is not None:
                fault = self._faults.setdefault(trial.fault, len(self._faults))
            odds = self._odds.setdefault(trial.propensities, len(self._odds))
            origin = self._origins.setdefault(trial.origin, len(self._origins))
            self._places.append((odds, origin, fault, trial.hits_are_known))
            if trial.hits and trial.hits_are_known:
                self._reached |= BitMap.deserialize(trial.hits)

    def evidence(
        self,
        campaigns: tuple[int, ...],
        seeds: tuple[int, ...],
        spaces: tuple[Space, ...],
        signatures: dict[str, str],
    ) -> Evidence:
        """All columns."""
        count = self._features
        places = np.array(self._places, np.int32)
        used = np.array([row or (0,) * count for row in self._used], np.uint32)
        return Evidence(
            campaigns=campaigns,
            seeds=seeds,
            spaces=spaces,
            features=spaces[0].feature_names,
            campaign=np.array(self._campaign, np.int32),
            trial=np.array(self.trial, np.int64),
            weights=unpack_weights(self._weights, count),
            used=used,
            steps=np.array(self._steps, np.int64),
            cpu_seconds=np.array(self._spent, np.int64) / 1e9,
            odds=np.array([_odds(packed, count) for packed in self._odds]),
            odds_row=places[:, 0],
            origins=tuple(self._origins),
            origin=places[:, 1],
            fault_ids=tuple(self._faults),
            signatures=tuple(signatures.get(id, "") for id in self._faults),
            fault=places[:, 2],
            known=places[:, 3].astype(bool),
            reached=self._reached,
            invalid=self._invalid,
        )


def _odds(packed: bytes, count: int) -> list[float]:
    logged = unpack_floats(packed)
    if not logged:
        return [float("nan")] * count
    return list(logged) * (count if len(logged) == 1 else 1)
