"""Read the weights of many packed configurations as one array, which is what analysis needs.

This is not part of `swarmtest.core.configuration`, which has to work without importing numpy.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from swarmtest.core.configuration import FULL, WEIGHTS


def unpack_weights(packed: Sequence[bytes], count: int) -> npt.NDArray[np.float32]:
    """Return the weights of packed configurations over `count` features, one row each.

    >>> from swarmtest import Space
    >>> unpack_weights([Space(["push", "pop"]).configuration(["pop"]).to_bytes()], 2).tolist()
    [[0.0, 1.0]]
    """
    weights = np.empty((len(packed), count), np.float32)
    fractional = np.array([data[0] & WEIGHTS for data in packed], bool)
    sizes = {False: (count + 7) // 8, True: 2 * count}
    for kind, size in sizes.items():
        rows = np.flatnonzero(fractional == kind)
        joined = b"".join([packed[row][1 : 1 + size] for row in rows.tolist()])
        bodies = np.frombuffer(joined, np.uint8).reshape(len(rows), size)
        if kind:
            weights[rows] = bodies.view("<u2") / np.float32(FULL)
        else:
            weights[rows] = np.unpackbits(bodies, axis=1, count=count, bitorder="little")
    return weights
