"""For a target with too few hits: the rarest line that was hit by every test that hit it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Hit = npt.NDArray[np.bool_]


def implied_by(
    target: Hit, columns: Hit, lines: Sequence[int], enough: int, dominators: Sequence[int] = ()
) -> int | None:
    """The line to aim at instead of a target that few tests hit; None if no line will do.

    `target` tells for each test whether it hit the target, `columns` for each test and each of
    `lines` (of the target's function) whether it hit that line. Every test that hit the target has
    to have hit the line, and at least `enough` tests. Lines that always come before the target
    (`dominators`, nearest first) are preferred: that holds for tests still to come, where
    implication in the data may be chance. Then the rarest, of equally rare ones the last.

    >>> hits = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [1, 0, 0]], dtype=bool)
    >>> implied_by(hits[:, 2], hits, lines=[3, 5, 7], enough=2)
    5
    """
    if columns.shape != (len(target), len(lines)):
        raise ValueError(f"{columns.shape} hits for {len(target)} tests and {len(lines)} lines")
    counts = columns.sum(axis=0)
    fit = (counts >= enough) & columns[target].all(axis=0)
    chosen = {line: int(count) for line, count, ok in zip(lines, counts, fit, strict=True) if ok}
    first = next((line for line in dominators if line in chosen), None)
    return first or min(chosen, key=lambda line: (chosen[line], -line), default=None)
