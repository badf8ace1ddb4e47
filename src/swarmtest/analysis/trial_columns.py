"""The tests of one or more campaigns as columns: features enabled and used, faults, and odds.

`read_evidence` reads them. What stays in memory is packed: a bit per test and feature for what was
enabled, usually a byte for how often it was used, and some 50 bytes per test. What tests *hit* may
be thousands of targets per test, so it is read again from the store when it is counted (see
`swarmtest.analysis.role_cells`).

An invalid test counts as one that hit nothing: a feature that makes tests invalid does keep them
from hitting anything.

`TargetClasses` finds, while tests stream by, which targets are hit by the same tests. Comparing
columns would need all of them. Instead every test has a random number of 128 bits, and a target has
the sum of the numbers of the tests that hit it. Targets hit by the same tests have the same sum,
and other targets have equal sums only once in 2^128 times. In real programs most targets belong to
such a class (the lines of a block), and counting once for a whole class is many times faster.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from swarmtest.analysis.bit_counts import Bits, Bools, Words, chunks
from swarmtest.core.configuration import FULL, unpack_weights
from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.core.seeds import mixed_array
from swarmtest.core.space import Space
from swarmtest.core.targets import Target
from swarmtest.store.interface import Store
from swarmtest.store.records import CampaignRecord, TrialRecord

Uses = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]

_ROWS = 4096
"""Trials whose bytes are collected and unpacked together."""
_FULL = np.float32(FULL)
_MEMBER = re.compile(r"(?:^|/)(?:member|row) \d+$")
"""An origin that names one of a fixed set of configurations (see `Proposal`)."""
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
    enabled: Bits
    """Tests by features: whether each feature was enabled."""
    fractions: npt.NDArray[np.uint16] | None
    """Tests by features: weights in 65535ths; None if all are 0 or 1."""
    used: Uses
    """Tests by features: how often each feature appeared."""
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
    reached: BitMap
    """The store's ids of all targets that some test hit."""
    target_class: npt.NDArray[np.int32]
    """By the store's id: the class of targets that the same tests hit; -1 if not hit."""
    invalid: int
    """How many tests were invalid."""

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
        times, not ten thousand: what looks like 40 independent tests may be one configuration.
        """
        fixed = np.array([bool(_MEMBER.search(name)) for name in self.origins], bool)
        member = fixed[self.origin]
        keys = self.campaign.astype(np.int64) * len(self.origins) + self.origin
        numbers = np.full(self.n, -1, np.int32)
        if member.any():
            numbers[member] = np.unique(keys[member], return_inverse=True)[1]
        return numbers

    @cached_property
    def columns(self) -> Words:
        """Return `enabled` as a column of bits for each feature; bit i is the i-th test."""
        parts = [self.enabled.packed_columns(part) for part in chunks(self.n)]
        return np.concatenate(parts, axis=1)

    @cached_property
    def sizes(self) -> Counts:
        """Return how many features each test has."""
        return self.enabled.sizes()

    @cached_property
    def has_uses(self) -> Bools:
        """Return the tests that are known to have used some feature."""
        uses: Bools = self.used.any(axis=1)
        return uses

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
        hits_known=np.array(columns.hits_known, bool),
        reached=BitMap(columns.target_classes.reached()),
        target_class=columns.target_classes.classes(),
        invalid=columns.invalid,
        **columns.matrices()._asdict(),
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


# Trials are turned into columns as they stream by; only a few packed bytes of each are kept.


def hit_ids(trial: TrialRecord) -> npt.NDArray[np.uint32]:
    """Return the ids of the targets that a trial hit, ascending; none if they are not known.

    >>> hit_ids(TrialRecord(0, b"", hits=BitMap([7, 3]).serialize())).tolist()
    [3, 7]
    """
    if not trial.hits or not trial.hits_are_known:
        return np.empty(0, np.uint32)
    return np.frombuffer(BitMap.deserialize(trial.hits).to_array(), np.uint32)


class TargetClasses:
    """Classes of targets that the same tests hit, as sums of random numbers.

    >>> target_classes = TargetClasses()
    >>> target_classes.add(0, np.array([3, 5, 8]))
    >>> target_classes.add(1, np.array([3, 5]))
    >>> target_classes.classes().tolist()
    [-1, -1, -1, 0, -1, 0, -1, -1, 1]
    """

    def __init__(self) -> None:
        self._sums = np.zeros((2, 1024), np.uint64)
        self._reached = np.zeros(1024, bool)
        self._numbers = _random_numbers(0)
        self._first = 0

    def add(self, test: int, ids: npt.NDArray[np.integer]) -> None:
        """Add what a test hit: ids in ascending order, each once."""
        if not len(ids):
            return
        self._make_room(int(ids[-1]) + 1)
        if test - self._first >= self._numbers.shape[1] or test < self._first:
            self._first = test
            self._numbers = _random_numbers(test)
        at = test - self._first
        self._sums[0, ids] += self._numbers[0, at]
        self._sums[1, ids] += self._numbers[1, at]
        self._reached[ids] = True

    def reached(self) -> npt.NDArray[np.intp]:
        """Return all ids that some test hit."""
        return np.flatnonzero(self._reached)

    def classes(self) -> npt.NDArray[np.int32]:
        """Return, by id, the number of the target's class; -1 if it was not hit.

        Classes are numbered from 0 in the order of ids.
        """
        ids = self.reached()
        pairs = np.ascontiguousarray(self._sums[:, ids].T).view([("", np.uint64)] * 2)[:, 0]
        _, first, position = np.unique(pairs, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int32)
        rank[np.argsort(first)] = np.arange(len(first))
        classes = np.full(int(ids[-1]) + 1 if len(ids) else 0, -1, np.int32)
        classes[ids] = rank[position.ravel()]
        return classes

    def _make_room(self, size: int) -> None:
        more = size - len(self._reached)
        if more > 0:
            more = max(more, len(self._reached))
            self._sums = np.pad(self._sums, ((0, 0), (0, more)))
            self._reached = np.pad(self._reached, (0, more))


def _random_numbers(first: int, count: int = 4096) -> Words:
    """Return two numbers of 64 bits for each test, by SplitMix64."""
    keys = np.arange(2 * first, 2 * (first + count), dtype=np.uint64) * _STEP + _STEP
    return np.ascontiguousarray(mixed_array(keys).reshape(count, 2).T)


class TrialMatrices(NamedTuple):
    """Everything with a value for each test and feature."""

    enabled: Bits
    fractions: npt.NDArray[np.uint16] | None
    """Weights in 65535ths; None if every weight is 0 or 1."""
    used: Uses
    odds: npt.NDArray[np.float32]
    """Distinct rows of logged propensities; NaN if nothing was logged."""


@dataclass
class EvidenceColumns:
    """The columns of the tests read so far, over a number of features."""

    features: int
    campaign: array[int] = field(default_factory=lambda: array("i"))
    trial: array[int] = field(default_factory=lambda: array("q"))
    steps: array[int] = field(default_factory=lambda: array("q"))
    cpu_ns: array[int] = field(default_factory=lambda: array("q"))
    odds_row: array[int] = field(default_factory=lambda: array("i"))
    origin: array[int] = field(default_factory=lambda: array("i"))
    fault: array[int] = field(default_factory=lambda: array("i"))
    hits_known: array[int] = field(default_factory=lambda: array("b"))
    origins: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    target_classes: TargetClasses = field(default_factory=TargetClasses)
    invalid: int = 0
    _odds: dict[bytes, int] = field(default_factory=dict)
    _waiting: list[tuple[bytes, bytes]] = field(default_factory=list)
    _new_odds: list[bytes] = field(default_factory=list)
    _words: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    _fractions: list[npt.NDArray[np.uint16] | None] = field(default_factory=list)
    _used: list[Uses] = field(default_factory=list)
    _odds_tables: list[npt.NDArray[np.float32]] = field(default_factory=list)

    def add(self, campaign: int, trials: Iterable[TrialRecord]) -> None:
        """Add the trials of one campaign, in their order."""
        for trial in trials:
            self.target_classes.add(len(self.trial), hit_ids(trial))
            self.invalid += trial.verdict == Verdict.INVALID
            self.campaign.append(campaign)
            self.trial.append(trial.trial)
            self.steps.append(trial.steps)
            self.cpu_ns.append(trial.cpu_ns)
            self.odds_row.append(self._odds_row(trial.propensities))
            self.origin.append(self.origins.setdefault(trial.origin, len(self.origins)))
            fault = -1
            if trial.fault is not None:
                fault = self.faults.setdefault(trial.fault, len(self.faults))
            self.fault.append(fault)
            self.hits_known.append(trial.hits_are_known)
            self._waiting.append((trial.configuration, trial.used))
            if len(self._waiting) == _ROWS:
                self._unpack()

    def matrices(self) -> TrialMatrices:
        """Return everything that has a value for each feature.

        This ends the reading: the parts are released.
        """
        self._unpack()
        fractions = self._joined_fractions()
        used = _joined(self._used) if any(part.any() for part in self._used) else None
        enabled = Bits(_joined(self._words), self.features)
        nothing = np.broadcast_to(np.zeros(1, np.uint8), enabled.shape)
        return TrialMatrices(
            enabled, fractions, nothing if used is None else used, _joined(self._odds_tables)
        )

    def _joined_fractions(self) -> npt.NDArray[np.uint16] | None:
        if all(part is None for part in self._fractions):
            return None
        parts = [
            Bits(words, self.features)[:] * np.uint16(_FULL) if part is None else part
            for words, part in zip(self._words, self._fractions, strict=True)
        ]
        self._fractions.clear()
        whole: npt.NDArray[np.uint16] = _joined(parts)
        return whole

    def _odds_row(self, packed: bytes) -> int:
        # Where every test has its own odds over many features, whole rows would be large keys.
        key = packed if len(packed) <= 64 else hashlib.blake2b(packed, digest_size=16).digest()
        row = self._odds.get(key)
        if row is None:
            row = self._odds[key] = len(self._odds)
            self._new_odds.append(packed)
        return row

    def _unpack(self) -> None:
        if not self._waiting:
            return
        weights = unpack_weights([packed for packed, _ in self._waiting], self.features)
        self._words.append(Bits.of(weights > 0).words)
        whole = bool(((weights == 0) | (weights == 1)).all())
        fractions = None if whole else np.rint(weights * _FULL).astype(np.uint16)
        self._fractions.append(fractions)
        self._used.append(_unpack_uses([used for _, used in self._waiting], self.features))
        self._odds_tables.append(_unpack_odds(self._new_odds, self.features))
        self._waiting.clear()
        self._new_odds.clear()


def _unpack_uses(packed: Sequence[bytes], count: int) -> Uses:
    """Return rows of counts that `swarmtest.store.records.pack_counts` packed.

    A trial without counts has used nothing.
    """
    kinds = np.array([data[0] if len(data) > 1 else 0 for data in packed])
    used = np.zeros((len(packed), count), np.uint32)
    for kind, bytes_each in ((1, "u1"), (4, "<u4")):
        rows = np.flatnonzero(kinds == kind)
        joined = b"".join([packed[row][1:] for row in rows.tolist()])
        used[rows] = np.frombuffer(joined, bytes_each).reshape(len(rows), count)
    return used.astype(np.min_scalar_type(int(used.max(initial=0))), copy=False)


def _unpack_odds(packed: Sequence[bytes], count: int) -> npt.NDArray[np.float32]:
    table = np.full((len(packed), count), np.nan, np.float32)
    for row, data in enumerate(packed):
        if data:
            table[row] = np.frombuffer(data, "<f4")
    return table


def _joined(parts: list[Any]) -> Any:
    """Return the parts as one array, and release each part when it is copied.

    Keeping both would take twice the memory.
    """
    shape = sum(map(len, parts)), parts[0].shape[1]
    whole = np.empty(shape, np.result_type(*{part.dtype for part in parts}))
    at = len(whole)
    while parts:
        part = parts.pop()
        whole[at - len(part) : at] = part
        at -= len(part)
    return whole
