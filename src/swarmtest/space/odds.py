"""How likely a feature was, given the others, for ways of drawing that treat all features alike."""

from __future__ import annotations

from collections.abc import Sequence


def alike_given_the_others(sizes: Sequence[float], bits: int) -> tuple[float, ...]:
    """Each feature's chance of being in, given the others, if all features are treated alike.

    Then a configuration's odds depend on its size only, and `sizes` has the probability of each
    size from 0 to the number of features. All configurations of a size being equally likely, one
    with s features has the odds sizes[s] / C(n, s).

    >>> alike_given_the_others([0.1, 0.2, 0.4, 0.3], 0b011)
    (0.6666666666666666, 0.6666666666666666, 0.6923076923076923)
    """
    count = len(sizes) - 1
    size = bits.bit_count()
    # As ratios of neighbours: C(n, s) itself is beyond a float for a thousand features.
    with_one_less = sizes[size - 1] / sizes[size] * (count - size + 1) / size
    if_in = 1 / (1 + with_one_less)
    if size == count:
        return (if_in,)
    with_one_more = sizes[size + 1] / sizes[size] * (size + 1) / (count - size)
    if_out = with_one_more / (1 + with_one_more)
    if abs(if_in - if_out) < 1e-12:
        return (if_in,)
    return tuple(if_in if bits >> i & 1 else if_out for i in range(count))
