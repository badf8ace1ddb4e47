"""Trials by column: a block is some thousand trials of one campaign, in the order of their numbers.

Stores keep blocks (`codec` turns them into bytes), and everything that counts reads them. A
block gives back exactly the trials that it was made from. What does not fit the columns, such as a
damaged configuration, is kept beside them as it is.

Sets of trials are packed bits: bit ``i % 64`` of word ``i // 64`` belongs to the trial at position
``i`` of the block. Bits beyond the last trial are 0. So the number of failed tests with a feature
is ``np.bitwise_count(block.enabled[f] & block.packed(block.verdicts == 1)).sum()``.

Hits are kept by target. Targets that were hit by the same trials of a block form a *class*, which
is stored once: the lines of a basic block, for example.

Columns are decoded when they are first used: a reader that looks only at verdicts does not pay for
hits.
"""

from __future__ import annotations

from swarmtest.store.blocks.block import TrialBlock, split_records
from swarmtest.store.blocks.hits import BLOCK_SIZE, BlockHits, unpacked
from swarmtest.store.blocks.summaries import FeatureSummary, HitSummary
from swarmtest.store.loose_blocks import features_of

__all__ = [
    "BLOCK_SIZE",
    "BlockHits",
    "FeatureSummary",
    "HitSummary",
    "TrialBlock",
    "features_of",
    "split_records",
    "unpacked",
]
