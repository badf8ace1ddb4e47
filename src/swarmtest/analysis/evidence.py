"""The tests of one or more campaigns, as columns: what each could use, used, showed, and the odds.

What stays in memory is packed: a bit per test and feature for what was enabled, as a rule a byte
for how often it was used, and some 50 bytes per test. What tests *hit* is read again from the store
when it is counted (`swarmtest.analysis.hit_blocks`), because that may be thousands of targets per
test.

An invalid test counts as one that hit nothing: a feature that makes tests invalid does keep them
from hitting anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.analysis.bits import Bits, Bools
from swarmtest.analysis.evidence_columns import EvidenceColumns, Uses
from swarmtest.errors import UserError
from swarmtest.space import Space
from swarmtest.store import CampaignRecord, Store
from swarmtest.targets import Target

_MEMBER = re.compile(r"(?:^|/)(?:member|row) \d+$")
"""An origin that names one of a fixed set of configurations (see `swarmtest.space.Proposal`)."""

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
    enabled: Bits
    """Tests by features: whether each was allowed."""
    fractions: npt.NDArray[np.uint16] | None
    """Tests by features: weights in 65535ths; None if all are 0 or 1."""
    used: Uses
    """Tests by features: how often each appeared."""
    steps: Counts
    cpu_seconds: Floats
    odds: npt.NDArray[np.float32]
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
    like: npt.NDArray[np.int32]
    """By the store's id: a number that targets share if the same tests hit them; -1: not hit."""
    invalid: int
    """How many tests were invalid."""

    @property
    def n(self) -> int:
        """How many tests there are."""
        return len(self.trial)

    def configurations(self, tests: Any) -> npt.NDArray[np.void]:
        """What can be compared of some tests to see which have the same weights."""
        held = self.enabled.words if self.fractions is None else self.fractions
        some = np.ascontiguousarray(held[tests])
        return some.view(np.dtype((np.void, some.itemsize * some.shape[1])))[:, 0]

    def weights(self, tests: Any) -> npt.NDArray[np.float32]:
        """The weights of some tests, by features; 0 is left out."""
        if self.fractions is None:
            return self.enabled[tests].astype(np.float32)
        weights: npt.NDArray[np.float32] = self.fractions[tests] / np.float32(65535)
        return weights

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
    columns = EvidenceColumns(len(spaces[0].features))
    for number, campaign in enumerate(campaigns):
        columns.add(number, store.trials(campaign))
    if not columns.trial:
        raise UserError(f"{_named(campaigns)} ran no tests yet: there is nothing to learn from")
    signatures = {f.id: f.signature for campaign in campaigns for f in store.faults(campaign)}
    return Evidence(
        campaigns=tuple(campaigns),
        seeds=tuple(record.seed for record in records),
        spaces=spaces,
        features=spaces[0].feature_names,
        campaign=np.array(columns.campaign, np.int32),
        trial=np.array(columns.trial, np.int64),
        steps=np.array(columns.steps, np.int64),
        cpu_seconds=np.array(columns.cpu_ns, np.int64) / 1e9,
        odds_row=np.array(columns.odds_row, np.int32),
        origins=tuple(columns.origins),
        origin=np.array(columns.origin, np.int32),
        fault_ids=tuple(columns.faults),
        signatures=tuple(signatures.get(id, "") for id in columns.faults),
        fault=np.array(columns.fault, np.int32),
        known=np.array(columns.known, bool),
        reached=BitMap(columns.likeness.reached()),
        like=columns.likeness.classes(),
        invalid=columns.invalid,
        **columns.matrices()._asdict(),
    )


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
        number = records[0].id
        search = f"; of a search: `swarmtest search roles {number}`"
        hint = search if "search" in records[0].options else ""
        raise UserError(f"campaign {number} has no features to tell apart{hint}")
    return tuple(spaces)


def _named(campaigns: Sequence[int]) -> str:
    return f"campaign{'s' * (len(campaigns) > 1)} {', '.join(map(str, campaigns))}"
