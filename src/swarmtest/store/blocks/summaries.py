"""Sums over the blocks of a campaign: hits per target, uses per feature."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from swarmtest.store.blocks.block import TrialBlock
from swarmtest.store.blocks.hits import Ints


@dataclass(frozen=True, eq=False)
class HitSummary:
    """How often each target of a campaign was hit, and by which trial first.

    Only targets that were hit are in it, in the order of their ids.
    """

    targets: Ints
    """The ids of the targets."""
    counts: Ints
    """How many trials hit each."""
    first: Ints
    """The lowest number of a trial that hit each."""


@dataclass(frozen=True, eq=False)
class FeatureSummary:
    """How often each feature of a campaign was enabled and used: one number per feature."""

    enabled: Ints
    """Trials that included it."""
    offered: Ints
    """Trials that included it and whose counts are known."""
    used: Ints
    """Trials in which it appeared."""
    steps: Ints
    """How often it appeared, in all trials together."""
    known: int
    """Trials whose counts are known."""


def summarise_hits(blocks: Iterable[TrialBlock]) -> HitSummary:
    """Return the sums of the hits of blocks.

    >>> from pyroaring import BitMap
    >>> from swarmtest.store.records import TrialRecord
    >>> records = [TrialRecord(n, b"", hits=BitMap([3, n]).serialize()) for n in (7, 9)]
    >>> found = summarise_hits([TrialBlock.from_records(records, 0)])
    >>> found.targets.tolist(), found.counts.tolist(), found.first.tolist()
    ([3, 7, 9], [2, 1, 1], [7, 7, 9])
    """
    return join_hit_summaries(map(block_hit_summary, blocks))


def block_hit_summary(block: TrialBlock) -> HitSummary:
    """Return the sums of the hits of one block."""
    hits = block.hits
    return HitSummary(hits.targets, hits.counts, block.numbers[hits.first])


def join_hit_summaries(parts: Iterable[HitSummary]) -> HitSummary:
    """Return the sums of several summaries."""
    counts, first = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for part in parts:
        if len(part.targets) and part.targets[-1] >= len(counts):
            more = max(int(part.targets[-1]) + 1, 2 * len(counts)) - len(counts)
            counts = np.concatenate([counts, np.zeros(more, np.int64)])
            first = np.concatenate([first, np.full(more, np.iinfo(np.int64).max)])
        counts[part.targets] += part.counts
        first[part.targets] = np.minimum(first[part.targets], part.first)
    targets = np.flatnonzero(counts)
    return HitSummary(targets, counts[targets], first[targets])


def summarise_features(blocks: Iterable[TrialBlock], features: int) -> FeatureSummary:
    """Return the sums of the features of blocks.

    >>> from swarmtest.store.records import TrialRecord
    >>> records = [TrialRecord(n, b"\\0\\1", used=bytes([1, n, 0])) for n in range(3)]
    >>> found = summarise_features([TrialBlock.from_records(records, 2)], 2)
    >>> found.enabled.tolist(), found.used.tolist(), found.steps.tolist(), found.known
    ([3, 0], [2, 0], [3, 0], 3)
    """
    return join_feature_summaries(map(block_feature_summary, blocks), features)


def block_feature_summary(block: TrialBlock) -> FeatureSummary:
    """Return the sums of the features of one block."""
    known = block.counts_known
    return FeatureSummary(
        np.bitwise_count(block.enabled).sum(axis=1, dtype=np.int64),
        np.bitwise_count(block.enabled & block.packed(known)).sum(axis=1, dtype=np.int64),
        np.count_nonzero(block.used, axis=1),
        block.used.sum(axis=1, dtype=np.int64),
        int(known.sum()),
    )


def join_feature_summaries(parts: Iterable[FeatureSummary], features: int) -> FeatureSummary:
    """Return the sums of several summaries over the same features."""
    sums = np.zeros((4, features), np.int64)
    known = 0
    for part in parts:
        sums += np.stack([part.enabled, part.offered, part.used, part.steps])
        known += part.known
    enabled, offered, used, steps = sums
    return FeatureSummary(enabled, offered, used, steps, known)
