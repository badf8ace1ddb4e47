"""Join the blocks of a store: columns of all tests, uses of features, and targets that are alike.

`TargetClasses` finds, while blocks stream by, which targets are hit by the same tests. A block
says which targets are alike within it (its classes of targets). Every class of every block has a
random number of 128 bits, and a target has the sum of the numbers of its classes. Targets hit by
the same tests have the same sum, and other targets have equal sums only once in 2^128 times. In
real programs most targets belong to such a class (the lines of a block of code), and counting once
for a whole class is many times faster.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from swarmtest.analysis.bit_counts import Bits, Words, put_bits
from swarmtest.core.configuration import FULL
from swarmtest.core.errors import UserError
from swarmtest.core.result import Verdict
from swarmtest.core.seeds import mixed_array
from swarmtest.store.blocks import BlockHits, HitSummary, TrialBlock, unpacked
from swarmtest.store.blocks.columns import ODD_HITS, ODD_KIND
from swarmtest.store.interface import Store, damaged

if TYPE_CHECKING:
    from swarmtest.analysis.trial_columns import Evidence

Uses = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Numbers = npt.NDArray[np.int32]

_STEP = np.uint64(0x9E3779B97F4A7C15)
"""The step of SplitMix64."""
_LONG_KEY = 64
"""Propensities of more bytes are recognised by a hash: whole rows would be large keys."""


# All tests.


class JoinedColumns:
    """The columns of the blocks that were added so far, over a number of features."""

    def __init__(self, features: int) -> None:
        self._features = features
        self.tests = 0
        self.invalid = 0
        self.origins: dict[str, int] = {}
        self.faults: dict[str, int] = {}
        self._odds: dict[bytes, int] = {}
        self._odds_rows: list[npt.NDArray[np.float32]] = []
        self._columns: list[Words] = []
        self._sizes: list[int] = []
        self._fractions: list[npt.NDArray[np.uint16] | None] = []
        self._plain: dict[str, list[npt.NDArray[Any]]] = {}

    def add(self, campaign: int, block: TrialBlock, url: str) -> None:
        """Add the next block of a campaign, which is given by its position; `url` is the store."""
        if (block.kinds == ODD_KIND).any():
            trial = int(block.numbers[np.argmax(block.kinds == ODD_KIND)])
            error = ValueError("no configuration")
            raise UserError(damaged(url, f"the configuration of trial {trial}", error))
        self.tests += block.size
        self.invalid += int((block.verdicts == Verdict.INVALID).sum())
        self._columns.append(block.enabled)
        self._sizes.append(block.size)
        self._fractions.append(_fractions(block))
        columns: dict[str, npt.NDArray[Any]] = {
            "campaign": np.full(block.size, campaign, np.int32),
            "trial": block.numbers,
            "steps": block.steps,
            "cpu_seconds": block.cpu_ns / 1e9,
            "odds_row": self._odds_row(block),
            "origin": renumbered(block.origins, block.origin_index, self.origins),
            "fault": renumbered(block.faults, block.fault_index, self.faults),
            "hits_known": block.hits_known,
        }
        for name, column in columns.items():
            self._plain.setdefault(name, []).append(column)

    def joined(self) -> dict[str, Any]:
        """Return the columns with one value per test, by name."""
        return {name: np.concatenate(parts) for name, parts in self._plain.items()}

    def odds(self) -> npt.NDArray[np.float32]:
        """Return the distinct rows of propensities."""
        return np.concatenate(self._odds_rows)

    def enabled(self) -> Words:
        """Return a column of bits for each feature: the tests that had it enabled."""
        columns = np.zeros((self._features, -(-self.tests // 64)), np.uint64)
        at = 0
        for part, size in zip(self._columns, self._sizes, strict=True):
            put_bits(columns, at, part)
            at += size
        return columns

    def fractions(self) -> npt.NDArray[np.uint16] | None:
        """Return the weights of tests by features in 65535ths; None if all are 0 or 1."""
        if all(part is None for part in self._fractions):
            return None
        weights = np.empty((self.tests, self._features), np.uint16)
        at = 0
        for enabled, part, size in zip(self._columns, self._fractions, self._sizes, strict=True):
            plain = unpacked(enabled, size).T * np.uint16(FULL) if part is None else part
            weights[at : at + size] = plain
            at += size
        return weights

    def _odds_row(self, block: TrialBlock) -> Numbers:
        numbers = np.empty(len(block.propensity_rows), np.int32)
        new = []
        for at, packed in enumerate(block.propensity_rows):
            long = len(packed) > _LONG_KEY
            key = hashlib.blake2b(packed, digest_size=16).digest() if long else packed
            row = self._odds.get(key)
            if row is None:
                row = self._odds[key] = len(self._odds)
                new.append(at)
            numbers[at] = row
        if new:
            self._odds_rows.append(block.propensities()[new])
        return numbers[block.propensity_index]


def _fractions(block: TrialBlock) -> npt.NDArray[np.uint16] | None:
    """Return the weights by tests and features in 65535ths; None if all are 0 or 1."""
    fractional = np.flatnonzero(block.weight_index >= 0)
    if not len(fractional):
        return None
    rows = block.weight_rows[block.weight_index[fractional]]
    if ((rows == 0) | (rows == FULL)).all():
        return None
    weights = unpacked(block.enabled, block.size).T * np.uint16(FULL)
    weights[fractional] = rows
    return weights


def renumbered(names: tuple[str, ...], index: Numbers, numbers: dict[str, int]) -> Numbers:
    """Return the indices into `numbers` instead of `names`; new names are added in order."""
    present = np.flatnonzero(index >= 0)
    used, first = np.unique(index[present], return_index=True)
    lookup = np.full(len(names) + 1, -1, np.int32)  # the last one is for index -1
    for number in used[np.argsort(first)].tolist():
        lookup[number] = numbers.setdefault(names[number], len(numbers))
    return lookup[index]


# What is read again.


def counted_blocks(evidence: Evidence, hits: bool = True) -> Iterator[tuple[int, TrialBlock]]:
    """Yield the blocks of the evidence's tests, each with the position of its first test.

    A campaign that is still running may have more tests now, which are left out.
    """
    assert evidence.store is not None
    bounds = np.searchsorted(evidence.campaign, np.arange(len(evidence.campaigns) + 1))
    for number, campaign in enumerate(evidence.campaigns):
        at, end = int(bounds[number]), int(bounds[number + 1])
        for block in evidence.store.blocks(campaign, hits=hits):
            if at == end:
                break
            block = among(block, evidence.trial[at:end])
            if block.size:
                yield at, block
                at += block.size


def among(block: TrialBlock, numbers: npt.NDArray[np.int64]) -> TrialBlock:
    """Return the block with only those trials whose numbers are among these, which are in order."""
    if np.array_equal(block.numbers, numbers[: block.size]):
        return block
    return block.take(np.flatnonzero(np.isin(block.numbers, numbers, assume_unique=True)))


def known_hits(block: TrialBlock, url: str) -> BlockHits:
    """Return the hits of a block without those of tests whose hits are not completely known."""
    if (block.hit_states == ODD_HITS).any():
        trial = int(block.numbers[np.argmax(block.hit_states == ODD_HITS)])
        raise UserError(damaged(url, f"the hits of trial {trial}", ValueError("no set")))
    known = block.hits_known
    if known.all():
        return block.hits
    kept = np.flatnonzero(known)
    hits = block.take(kept).hits
    positions = kept[hits.positions].astype(np.int32)
    return BlockHits(block.size, hits.targets, hits.classes, hits.starts, positions)


def read_uses(evidence: Evidence) -> Uses:
    """Return, for tests by features, how often each feature appeared."""
    shape = evidence.n, len(evidence.features)
    used: Uses | None = None
    if evidence.store is not None:
        for at, block in counted_blocks(evidence, hits=False):
            part = block.used.T
            if used is None:
                if not part.any():
                    continue
                used = np.zeros(shape, np.uint8)
            if int(part.max(initial=0)) > np.iinfo(used.dtype).max:
                used = used.astype(np.min_scalar_type(int(part.max())))
            used[at : at + block.size] = part
    return np.broadcast_to(np.zeros(1, np.uint8), shape) if used is None else used


def read_target_classes(evidence: Evidence) -> npt.NDArray[np.int32]:
    """Return, by id, the class of targets that the same tests hit; -1 for targets without hits."""
    classes = TargetClasses()
    if evidence.store is not None:
        for _, block in counted_blocks(evidence):
            hits = known_hits(block, evidence.store.url)
            classes.add(hits.targets, hits.classes)
    return classes.classes()


def known_hit_summary(store: Store, campaign: int, unknown: npt.NDArray[np.int64]) -> HitSummary:
    """Return how often targets were hit, and by which trial first, without some trials.

    The store knows the sums over all trials. Only the blocks of the `unknown` trials, whose hits
    may be incomplete, are looked at.
    """
    summary = store.hit_summary(campaign)
    if not len(unknown):
        return summary
    counts = summary.counts.copy()
    for block in _blocks_with(store, campaign, unknown):
        lost = among(block, unknown).hits
        counts[np.searchsorted(summary.targets, lost.targets)] -= lost.counts
    found = counts > 0
    targets, counts, first = summary.targets[found], counts[found], summary.first[found]
    _correct_first(store, campaign, unknown, targets, first)
    return HitSummary(targets, counts, first)


def _blocks_with(
    store: Store, campaign: int, trials: npt.NDArray[np.int64]
) -> Iterator[TrialBlock]:
    """Yield the blocks that have some of these trials, which are in order."""
    last = -1
    for trial in trials.tolist():
        if trial > last:
            block = next(store.blocks(campaign, after=trial - 1))
            last = block.last
            yield block


def _correct_first(
    store: Store,
    campaign: int,
    unknown: npt.NDArray[np.int64],
    targets: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
) -> None:
    """Set the first trials of the targets that an unknown trial hit first."""
    doubtful = np.flatnonzero(np.isin(first, unknown))
    if not len(doubtful):
        return
    after = int(first[doubtful].min()) - 1
    for block in store.blocks(campaign, after=after):
        hits = known_hits(block, store.url)
        at = np.searchsorted(hits.targets, targets[doubtful])
        at[at == len(hits.targets)] = 0
        here = (
            hits.targets[at] == targets[doubtful] if len(hits.targets) else np.zeros(len(at), bool)
        )
        first[doubtful[here]] = block.numbers[hits.first[at[here]]]
        doubtful = doubtful[~here]
        if not len(doubtful):
            return


def count_hits(
    store: Store, campaign: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], Counter[str]]:
    """Return the targets that tests with known hits hit, how many did, and why hits are unknown.

    The last is the number of tests for each reason.
    """
    missing: Counter[str] = Counter()
    unknown = [np.empty(0, np.int64)]
    for block in store.blocks(campaign, hits=False):
        if any(block.missing):
            lost = np.flatnonzero(~block.hits_known)
            unknown.append(block.numbers[lost])
            missing.update(block.missing[index] for index in block.missing_index[lost].tolist())
    summary = known_hit_summary(store, campaign, np.concatenate(unknown))
    return summary.targets, summary.counts, missing


def configuration_keys(block: TrialBlock) -> Words:
    """Return a number for each test that is the same for tests with the same configuration.

    Numbers of other configurations are equal only once in 2^64 times.
    """
    rows = Bits.of(unpacked(block.enabled, block.size).T).words
    keys = _folded(rows) + mixed_array((block.kinds.astype(np.uint64) + np.uint64(1)) * _STEP)
    weighted = np.flatnonzero(block.weight_index >= 0)
    if len(weighted):
        weights = _folded(block.weight_rows.astype(np.uint64) + np.uint64(1 << 32))
        keys[weighted] += weights[block.weight_index[weighted]]
    if any(block.tails):
        digests = [hashlib.blake2b(tail, digest_size=8).digest() for tail in block.tails]
        keys += np.frombuffer(b"".join(digests), np.uint64)[block.tail_index]
    return keys


def _folded(rows: Words) -> Words:
    """Return one number for each row of numbers."""
    keys = np.zeros(len(rows), np.uint64)
    salts = np.arange(1, rows.shape[1] + 1, dtype=np.uint64) * _STEP
    for salt, words in zip(salts, rows.T, strict=True):
        keys = mixed_array(keys + words + salt)
    return keys


class TargetClasses:
    """Classes of targets that the same tests hit, as sums of random numbers.

    >>> target_classes = TargetClasses()
    >>> target_classes.add(np.array([3, 5, 8]), np.array([0, 0, 1]))
    >>> target_classes.add(np.array([3, 5]), np.array([0, 0]))
    >>> target_classes.classes().tolist()
    [-1, -1, -1, 0, -1, 0, -1, -1, 1]
    """

    def __init__(self) -> None:
        self._sums = np.zeros((2, 1024), np.uint64)
        self._reached = np.zeros(1024, bool)
        self._next = 0

    def add(self, targets: npt.NDArray[np.integer], classes: npt.NDArray[np.integer]) -> None:
        """Add a block: the ids of its targets, in order, and the class of each within the block."""
        if not len(targets):
            return
        self._make_room(int(targets[-1]) + 1)
        keys = 2 * (self._next + classes.astype(np.uint64))
        for which in range(2):
            self._sums[which, targets] += mixed_array((keys + np.uint64(which + 1)) * _STEP)
        self._next += int(classes.max()) + 1
        self._reached[targets] = True

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
