"""Numbers that are drawn more often than others.

Programs change their minds at the ends of a range, near 0, at powers of two and their neighbours,
at constants of their source and at values that they have seen. The rest of the draws is uniform, or
of any length in bits.
"""

from __future__ import annotations

import math
import random
from typing import Any

from swarmtest.subjects.machine.mixtures.program_random import (
    ProgramRandom,
    compared_in,
    constants_of,
    used_value,
)


def mixed_integer(rng: random.Random, low: int, high: int) -> int:
    """Draw a number from a wide range.

    >>> mixed_integer(random.Random(4), 0, 2**40) in range(0, 2**40 + 1)
    True
    """
    number = _integer(rng, low, high)
    if not low <= number <= high:
        number = rng.randrange(low, high + 1)
    if isinstance(rng, ProgramRandom):
        rng.note(number)
    return number


def _integer(rng: random.Random, low: int, high: int) -> int:
    share = rng.random()
    if share < 0.15:
        return rng.randrange(low, high + 1)
    if share < 0.45:
        number = _known_integer(rng, share)
        if number is not None:
            return number
        share += 0.4
    if share < 0.62:
        return int(rng.random() * 17) - 4
    if share < 0.8:
        exponent = int(rng.random() * max(abs(low), abs(high)).bit_length())
        number = (1 << exponent) + int(rng.random() * 3) - 1
        return -number if low < 0 and rng.random() < 0.5 else number
    if share < 0.88:
        return (low, low + 1, high - 1, high)[int(rng.random() * 4)]
    number = rng.getrandbits(1 + int(rng.random() * max(abs(low), abs(high)).bit_length()))
    return -number if low < 0 and rng.random() < 0.5 else number


def _known_integer(rng: random.Random, share: float) -> int | None:
    """Return a number that the program or the test has named; None if there is none."""
    if share < 0.26:
        compared = compared_in(rng)
        if compared:
            value = compared[int(rng.random() * len(compared))]
            return value + int(rng.random() * 3) - 1 if type(value) is int else None
    if share < 0.36:
        constants = constants_of(rng)
        known = constants.compared_numbers if rng.random() < 0.6 else constants.numbers
        known = known or constants.numbers
        return known[int(rng.random() * len(known))] if known else None
    used = used_value(rng, int)
    return None if used is None else _near(rng, used)


def _near(rng: random.Random, number: int) -> int:
    """Return the same number, mostly, or one that is related to it."""
    way = rng.random()
    if way < 0.6:
        return number
    if way < 0.8:
        return number + (1 if way < 0.7 else -1)
    return -number if way < 0.9 else number * 2


_SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 0.1, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-9)
_EXTREME = (math.inf, -math.inf, math.nan, 1.7976931348623157e308, -1.7976931348623157e308)
_LARGE = (1e16, 2.0**53, 2.0**53 + 2, 1e308, 9007199254740991.0, 1e22, 1e23)


def mixed_float(rng: random.Random, low: float, high: float) -> float:
    """Draw a floating-point number from a range, both ends included."""
    number = _float(rng, low, high)
    if not low <= number <= high:
        number = low + rng.random() * (high - low)
    if isinstance(rng, ProgramRandom):
        rng.note(number)
    return number


def _float(rng: random.Random, low: float, high: float) -> float:
    share = rng.random()
    if share < 0.25:
        return _SPECIAL[int(rng.random() * len(_SPECIAL))]
    if share < 0.45:
        ends = (low, high, math.nextafter(low, math.inf), math.nextafter(high, -math.inf))
        return ends[int(rng.random() * 4)]
    if share < 0.65:
        return float(int(rng.random() * 17) - 4)
    if share < 0.8:
        known = _known_floats(rng)
        if known:
            return float(known[int(rng.random() * len(known))])
    number = math.ldexp(1.0, int(rng.random() * 64) - 32)
    return -number if low < 0 and rng.random() < 0.5 else number


def _known_floats(rng: random.Random) -> list[Any]:
    used = used_value(rng, float)
    compared = [value for value in compared_in(rng) if type(value) is float]
    return [*([] if used is None else [used]), *compared, *constants_of(rng).floats]


def any_float(rng: random.Random) -> float:
    """Draw any floating-point number, also NaN and the infinities.

    >>> type(any_float(random.Random(0)))
    <class 'float'>
    """
    share = rng.random()
    if share < 0.15:
        return _EXTREME[int(rng.random() * len(_EXTREME))]
    if share < 0.25:
        return _LARGE[int(rng.random() * len(_LARGE))]
    if share < 0.6:
        return mixed_float(rng, -1e6, 1e6)
    mantissa = rng.random() * (1 if rng.random() < 0.5 else -1)
    if share < 0.8:
        return mantissa * 1000
    return math.ldexp(mantissa, int(rng.random() * 2090) - 1070)
