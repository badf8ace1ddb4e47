"""From tests to the counts behind a table of roles.

A feature that is alone in its test had to be there, since the empty test is never run. Such a hit
says something about the feature only if the empty test would *not* have hit, which can be told in
two ways. A test whose guards let no step run is an empty test: if there were some and none hit, the
target needs something. Or another feature alone never hit, though it is no suppressor. Where
neither is known, tests of single features are left out. (In a space of three features they may be
most of the hits; in one of twenty there are hardly any.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.chances import Chances
from swarmtest.analysis.cooccurrence import Words, cooccurrence, distinct_columns, packed
from swarmtest.analysis.evidence import Bools, Evidence
from swarmtest.analysis.hit_blocks import HitBlock, hit_blocks
from swarmtest.analysis.intervals import Floats, wilson_interval
from swarmtest.analysis.roles import RoleTable
from swarmtest.store import Store
from swarmtest.targets import Target

_FEW = 4
"""A feature with no more different chances than this gets a column of bits for each."""
_ROWS = 4096
"""Tests per matrix product."""
_BY_CHANCE = 0.01
"""How often luck may make a feature alone look needed."""
_IDLE = 5
"""Tests without a step that tell what an empty test does."""


@dataclass(frozen=True)
class _Columns:
    """What hits are counted against: columns of tests, each once, and which feature has which."""

    bits: Bools
    containing: list[int]
    informative: list[int]
    alone: list[int]
    idle: int
    """Tests in which no step ran."""
    alone_chance: Floats
    expected: list[list[tuple[int, float]]]
    """For each feature, the columns of tests with the same chance, and that chance."""
    means: npt.NDArray[np.float32] | None
    """Tests by features: the chances, where there are too many different ones for columns."""
    groups: Bools
    """A column for each group of tests that share a configuration, and one for all that tell."""


def role_table(
    store: Store,
    evidence: Evidence,
    chances: Chances,
    targets: Sequence[tuple[int, Target]],
    confidence: float,
) -> RoleTable:
    """The roles of all features for targets of the store (by id)."""
    ids = [id for id, _ in targets]
    blocks = hit_blocks(store, evidence, ids)
    return _counted(evidence, chances, [target for _, target in targets], blocks, confidence)


def fault_table(evidence: Evidence, chances: Chances, confidence: float) -> RoleTable:
    """The roles of all features for all faults."""
    hits = evidence.fault[:, None] == np.arange(len(evidence.fault_ids))
    targets = [evidence.fault_target(number) for number in range(len(evidence.fault_ids))]
    return table_of_hits(evidence, chances, targets, hits, confidence)


def table_of_hits(
    evidence: Evidence, chances: Chances, targets: list[Target], hits: Bools, confidence: float
) -> RoleTable:
    """The roles of all features for targets whose hits are given: tests by targets."""
    block = HitBlock(0, evidence.n, packed(hits))
    return _counted(evidence, chances, targets, [block], confidence)


def _counted(
    evidence: Evidence,
    chances: Chances,
    targets: list[Target],
    blocks: Iterable[HitBlock],
    confidence: float,
) -> RoleTable:
    columns = _columns(evidence, chances)
    counts = np.zeros((len(targets), columns.bits.shape[1]), np.int64)
    sums = np.zeros((len(targets), len(evidence.features)))
    hits = np.zeros(len(targets), np.int64)
    together = np.zeros((len(targets), columns.groups.shape[1]), np.int64)
    for block in blocks:
        tests = slice(block.start, block.stop)
        counts += cooccurrence(block.columns, packed(columns.bits[tests]))
        hits += np.bitwise_count(block.columns).sum(axis=1, dtype=np.int64)
        if columns.means is not None:
            sums += _summed(block.columns, columns.means[tests])
        if together.size:
            together += cooccurrence(block.columns, packed(columns.groups[tests]))
    informative, containing, base, alone = _shares(columns, counts, sums, confidence)
    weight = 1 / (_design_effect(together) * chances.same_seed)[:, None]
    return RoleTable(
        tuple(targets),
        evidence.features,
        hits,
        informative * weight,
        containing * weight,
        base,
        alone,
        confidence,
    )


def _shares(
    columns: _Columns, counts: npt.NDArray[np.int64], sums: Floats, confidence: float
) -> tuple[Floats, Floats, Floats, Bools]:
    """Hits that tell, those of them that contain the feature, and the share chance would give.

    Last, whether tests with the feature alone are among them.
    """
    informative = counts[:, columns.informative].astype(float)
    containing = counts[:, columns.containing].astype(float)
    for feature, parts in enumerate(columns.expected):
        for column, chance in parts:
            sums[:, feature] += chance * counts[:, column]
    high = wilson_interval(containing, informative, confidence)[1]
    with np.errstate(invalid="ignore"):
        suppressor = high < sums / informative
    counted = _empty_would_not_hit(columns, counts, suppressor)
    alone = np.where(counted, counts[:, columns.alone], 0)
    informative += alone
    containing += alone
    with np.errstate(invalid="ignore"):
        base = (sums + alone * columns.alone_chance) / informative
    return informative, containing, base, counted


def _empty_would_not_hit(
    columns: _Columns, counts: npt.NDArray[np.int64], suppressor: Bools
) -> Bools:
    """Targets by features: whether a hit of the feature alone shows that it was needed."""
    idle_tests = int(columns.bits[:, columns.idle].sum())
    if idle_tests >= _IDLE:
        nothing: Bools = counts[:, columns.idle] == 0
        return np.repeat(nothing[:, None], len(columns.alone), axis=1)
    alone = counts[:, columns.alone]
    tests = columns.bits[:, columns.alone].sum(axis=0)
    # Another feature was alone so often without a hit that it cannot be by chance, if the two were
    # equally likely to hit.
    silent = np.where((alone == 0) & ~suppressor, tests, 0).max(axis=1, keepdims=True)
    clear: Bools = alone / np.maximum(tests, 1) * silent >= math.log(len(tests) / _BY_CHANCE)
    return clear


def _columns(evidence: Evidence, chances: Chances) -> _Columns:
    """Columns of bits, those that are alike once: most features share their `informative` one."""
    known: dict[bytes, int] = {}
    bits: list[Bools] = []

    def place(column: Bools) -> int:
        number = known.setdefault(column.tobytes(), len(bits))
        if number == len(bits):
            bits.append(column)
        return number

    containing, informative, lonely = [], [], []
    expected: list[list[tuple[int, float]]] = []
    told = chances.informative
    single = evidence.enabled & (evidence.enabled.sum(axis=1) == 1)[:, None] & told
    with_others = told & ~single
    means = np.where(with_others, chances.values, 0)
    for i in range(len(evidence.features)):
        containing.append(place(evidence.enabled[:, i] & with_others[:, i]))
        informative.append(place(with_others[:, i]))
        lonely.append(place(single[:, i]))
        different = np.unique(chances.values[with_others[:, i], i])
        if len(different) <= _FEW:
            same = [(chances.values[:, i] == chance) & with_others[:, i] for chance in different]
            expected.append([(place(c), float(v)) for c, v in zip(same, different, strict=True)])
    few = len(expected) == len(evidence.features)
    tests_alone = np.maximum(single.sum(axis=0), 1)
    idle = place(evidence.steps == 0)
    return _Columns(
        bits=np.stack(bits, axis=1),
        containing=containing,
        informative=informative,
        alone=lonely,
        idle=idle,
        alone_chance=np.where(single, chances.values, 0).sum(axis=0) / tests_alone,
        expected=expected if few else [],
        means=None if few else means,
        groups=_groups(evidence.clusters, np.asarray(told.any(axis=1))),
    )


def _summed(hits: Words, means: npt.NDArray[np.float32]) -> Floats:
    """Targets by features: the sum of chances over the tests that hit."""
    distinct, place = distinct_columns(hits)
    sums = np.zeros((len(distinct), means.shape[1]))
    for start in range(0, len(means), _ROWS):
        words = np.ascontiguousarray(distinct[:, start // 64 : (start + _ROWS) // 64])
        part = means[start : start + _ROWS]
        dense = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=len(part))
        sums += dense.astype(np.float32) @ part
    return sums[place]


def _groups(clusters: npt.NDArray[np.int32], told: Bools) -> Bools:
    """Which tests belong to each group that shares a configuration, and which say anything."""
    if clusters.max(initial=-1) < 0:
        return np.zeros((len(clusters), 0), bool)
    member = clusters[:, None] == np.arange(int(clusters.max()) + 1)
    return np.column_stack([member, np.ones(len(member), bool)]) & told[:, None]


def _design_effect(together: npt.NDArray[np.int64]) -> Floats:
    """By how much hits that share configurations say less than as many independent ones.

    The last column of `together` has all hits that say anything, the others those of each group.

    Kish's design effect: groups of m_c hits weigh as much as (sum m_c)^2 / sum m_c^2 single ones.
    """
    if not together.shape[1]:
        return np.ones(len(together))
    groups, hits = together[:, :-1], together[:, -1]
    alone = hits - groups.sum(axis=1)
    squares = alone + (groups.astype(float) ** 2).sum(axis=1)
    effect: Floats = np.where(hits > 0, squares / np.maximum(hits, 1), 1.0)
    return effect
