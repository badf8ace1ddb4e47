"""The tests of one or more campaigns as columns: features enabled and used, faults, and odds.

`read_evidence` reads them from the blocks of a store. What stays in memory is packed: a bit per
test and feature for what was enabled, and some 50 bytes per test. How often features were used
(usually a byte per test and feature) and which targets are alike is read when it is first needed.
What tests *hit* may be thousands of targets per test, so it is read again from the store when it is
counted (see `swarmtest.analysis.role_cells`).

An invalid test counts as one that hit nothing: a feature that makes tests invalid does keep them
from hitting anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.analysis.bit_counts import Bits, Bools, Words, bits_between, chunks, rows_of_bits
from swarmtest.analysis.block_reading import (
    JoinedColumns,
    Uses,
    read_target_classes,
    read_uses,
)
from swarmtest.core.configuration import FULL
from swarmtest.core.errors import UserError
from swarmtest.core.seeds import mixed_array
from swarmtest.core.space import Space
from swarmtest.core.targets import Target
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_FULL = np.float32(FULL)
_MEMBER = re.compile(r"(?:^|/)(?:member|row) \d+$")
"""An origin that names one of a fixed set of configurations (see `Proposal`)."""
_ROW = re.compile(r"(?:^|/)row \d+$")
_STEP = np.uint64(0x9E3779B97F4A7C15)
"""The step of SplitMix64."""
_LOTS = np.uint64(0x6C078965)
"""Keeps the lots apart from other random numbers of tests."""


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
    """The space of each campaign: the same features, but possibly other constraints."""
    features: tuple[str, ...]
    campaign: npt.NDArray[np.int32]
    """Index into `campaigns`, one per test."""
    trial: Counts
    columns: Words
    """A column of bits for each feature: whether it was enabled; bit i is the i-th test."""
    fractions: npt.NDArray[np.uint16] | None
    """Tests by features: weights in 65535ths; None if all are 0 or 1."""
    steps: Counts
    cpu_seconds: Floats
    odds: npt.NDArray[np.float32]
    """Distinct rows of logged propensities, by features; a row of NaN if nothing was logged."""
    odds_row: npt.NDArray[np.int32]
    """Which row of `odds` each test has."""
    origins: tuple[str, ...]
    origin: npt.NDArray[np.int32]
    """Index into `origins`, one per test."""
    fault_ids: tuple[str, ...]
    signatures: tuple[str, ...]
    fault: npt.NDArray[np.int32]
    """Index into `fault_ids`, one per test; -1 if it passed."""
    hits_known: Bools
    """Whether a test's hits are known."""
    invalid: int
    """How many tests were invalid."""
    store: Store | None = None
    """Where the tests are; None if they were made up, and used and hit nothing."""

    @property
    def n(self) -> int:
        """Return how many tests there are."""
        return len(self.trial)

    def configurations(self, tests: Any) -> npt.NDArray[np.void]:
        """Return values that are equal for those of some tests with the same weights."""
        packed = self.enabled.words if self.fractions is None else self.fractions
        rows = np.ascontiguousarray(packed[tests])
        return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]

    def weights(self, tests: Any) -> npt.NDArray[np.float32]:
        """Return the weights of some tests, by features; 0 means left out."""
        if self.fractions is None:
            return self.enabled[tests].astype(np.float32)
        weights: npt.NDArray[np.float32] = self.fractions[tests] / _FULL
        return weights

    @cached_property
    def clusters(self) -> npt.NDArray[np.int32]:
        """Return the same number for tests that share one draw of a configuration; -1 for others.

        A campaign that runs each of a hundred configurations a hundred times has drawn a hundred
        times, not ten thousand: what looks like 40 independent tests may be one configuration. The
        rows of covering arrays are not drawn independently, and two arrays may share rows: equal
        rows count together, also in different campaigns. Members of swarms, and tests that were
        drawn one by one, are independent draws, also where their configurations happen to be equal.
        """
        numbers = self.members.copy()
        row = np.array([bool(_ROW.search(name)) for name in self.origins], bool)
        tests = np.flatnonzero(row[self.origin])
        if len(tests):
            rows = np.unique(numbers[tests], return_inverse=True)[1]
            alike = _alike_rows(self.enabled.words[tests], rows)
            numbers[tests] = numbers.max() + 1 + alike[rows]
            in_some = numbers >= 0
            numbers[in_some] = np.unique(numbers[in_some], return_inverse=True)[1]
        return numbers

    @cached_property
    def members(self) -> npt.NDArray[np.int32]:
        """Return a number for each member of a campaign's fixed set of configurations; -1: none."""
        fixed = np.array([bool(_MEMBER.search(name)) for name in self.origins], bool)
        member = fixed[self.origin]
        keys = self.campaign.astype(np.int64) * len(self.origins) + self.origin
        numbers = np.full(self.n, -1, np.int32)
        if member.any():
            numbers[member] = np.unique(keys[member], return_inverse=True)[1]
        return numbers

    @cached_property
    def used(self) -> Uses:
        """Return, for tests by features, how often each feature appeared."""
        return read_uses(self)

    @cached_property
    def reached(self) -> BitMap:
        """Return the store's ids of all targets that some test hit."""
        if self.store is not None and self.hits_known.all():
            ids = [self.store.hit_summary(campaign).targets for campaign in self.campaigns]
            return BitMap(np.concatenate(ids).astype(np.uint32))
        return BitMap(np.flatnonzero(self.target_class >= 0).astype(np.uint32))

    @cached_property
    def target_class(self) -> npt.NDArray[np.int32]:
        """Return, by the store's id, the class of targets that the same tests hit; -1 if none."""
        return read_target_classes(self)

    @cached_property
    def enabled(self) -> Bits:
        """Return, for tests by features, whether each feature was enabled."""
        parts = [
            rows_of_bits(bits_between(self.columns, part.start, part.stop), part.stop - part.start)
            for part in chunks(self.n)
        ]
        return Bits(np.concatenate(parts), len(self.features))

    @cached_property
    def single(self) -> Words:
        """Return the tests with exactly one feature, as a column of bits."""
        some, several = np.zeros_like(self.columns[0]), np.zeros_like(self.columns[0])
        for column in self.columns:
            several |= some & column
            some |= column
        single: Words = some & ~several
        return single

    @cached_property
    def sizes(self) -> Counts:
        """Return how many features each test has."""
        return self.enabled.sizes()

    @cached_property
    def has_uses(self) -> Bools:
        """Return the tests that are known to have used some feature."""
        return np.asarray(self.used.any(axis=1))

    @cached_property
    def lots(self) -> npt.NDArray[np.float32]:
        """Return a random number from 0 to 1 for each test, always the same one."""
        numbers = mixed_array(np.arange(self.n, dtype=np.uint64) * _STEP + _LOTS)
        return (numbers >> np.uint64(40)).astype(np.float32) * np.float32(2.0**-24)

    @cached_property
    def fault_tests(self) -> list[npt.NDArray[np.intp]]:
        """Return the tests that show each fault, ascending."""
        failing = np.flatnonzero(self.fault >= 0)
        faults = self.fault[failing]
        order = np.argsort(faults, kind="stable")
        ends = np.cumsum(np.bincount(faults, minlength=len(self.fault_ids)))
        return np.split(failing[order], ends[:-1])

    def fault_target(self, number: int) -> Target:
        """Return a fault as a target like any other."""
        return Target("fault", self.fault_ids[number], detail=self.signatures[number])


def _alike_rows(enabled: Words, row: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return a number for each row of covering arrays, the same for rows that are alike.

    A row may leave entries open, which differ from test to test. Rows are alike if the same
    features are on in all of their tests, and the same off in all.
    """
    order = np.argsort(row, kind="stable")
    starts = np.flatnonzero(np.diff(row[order], prepend=-1))
    always = np.bitwise_and.reduceat(enabled[order], starts)
    ever = np.bitwise_or.reduceat(enabled[order], starts)
    return np.unique(np.hstack([always, ever]), axis=0, return_inverse=True)[1].ravel()


def read_evidence(store: Store, campaigns: Sequence[int]) -> Evidence:
    """Read the tests of campaigns that have the same features."""
    records = [store.campaign(campaign) for campaign in campaigns]
    spaces = _spaces(records)
    columns = JoinedColumns(len(spaces[0].features))
    for number, campaign in enumerate(campaigns):
        for block in store.blocks(campaign, hits=False):
            columns.add(number, block, store.url)
    if not columns.tests:
        raise UserError(f"{_named(campaigns)} ran no tests yet: there is nothing to learn from")
    signatures = {f.id: f.signature for campaign in campaigns for f in store.faults(campaign)}
    return Evidence(
        campaigns=tuple(campaigns),
        seeds=tuple(record.seed for record in records),
        spaces=spaces,
        features=spaces[0].feature_names,
        columns=columns.enabled(),
        fractions=columns.fractions(),
        odds=columns.odds(),
        origins=tuple(columns.origins),
        fault_ids=tuple(columns.faults),
        signatures=tuple(signatures.get(id, "") for id in columns.faults),
        invalid=columns.invalid,
        store=store,
        **columns.joined(),
    )


def _spaces(records: Sequence[CampaignRecord]) -> tuple[Space, ...]:
    """Return the campaigns' spaces; raise an error if the campaigns cannot be analysed together."""
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


# Whether campaigns tested the same version of a program.


class SourceChange(NamedTuple):
    """A file, and two campaigns that tested different versions of it."""

    path: str
    before: int
    after: int

    def __str__(self) -> str:
        return f"{self.path} was changed between campaigns {self.before} and {self.after}"


def changed_between(store: Store, records: Sequence[CampaignRecord]) -> SourceChange | None:
    """Return the first file that is known to have changed between campaigns, or None.

    The versions of the machine's file and of every file with watched coverage are known.
    """
    seen: dict[str, tuple[str, int]] = {}
    for record in records:
        versions = {source.path: source.id for source in store.sources(record.id)}
        if record.options.get("machine"):
            versions[record.subject.partition("::")[0]] = record.options["machine"]
        for path, version in versions.items():
            earlier, campaign = seen.setdefault(path, (version, record.id))
            if earlier != version:
                return SourceChange(path, campaign, record.id)
    return None


def test_columns(evidence: Evidence) -> dict[str, Any]:
    """Return a row per test, as columns: what it was, how it ended, and the weights of features."""
    faults = np.array([*evidence.fault_ids, ""], dtype=object)
    weights = evidence.weights(slice(None))
    return {
        "campaign": np.array(evidence.campaigns)[evidence.campaign],
        "trial": evidence.trial,
        "fault": faults[evidence.fault],
        "steps": evidence.steps,
        "cpu_seconds": evidence.cpu_seconds,
        **{feature: weights[:, i] for i, feature in enumerate(evidence.features)},
    }


test_columns.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test
