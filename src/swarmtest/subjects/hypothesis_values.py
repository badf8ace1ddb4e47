"""Drawing from Hypothesis strategies with our own random source.

Hypothesis has no public way to draw one value from a given `random.Random`; `ConjectureData` with
a random source is what its own engine uses, and has been stable for years. A draw that Hypothesis
gives up on (``assume``, a filter that never passes) is tried again a few times.
"""

from __future__ import annotations

import inspect
import random
from typing import Any

from swarmtest.errors import UserError
from swarmtest.subjects.generators import Generator

_TRIES = 50


def from_hypothesis(strategy: Any) -> Generator[Any]:
    """A generator that draws from a Hypothesis strategy, reproducibly.

    >>> from hypothesis import strategies
    >>> 0 <= from_hypothesis(strategies.integers(0, 9)).draw(random.Random(1)) <= 9
    True
    """
    from hypothesis.control import BuildContext
    from hypothesis.errors import InvalidArgument, StopTest
    from hypothesis.internal.conjecture.data import ConjectureData

    try:
        strategy.validate()
    except InvalidArgument as error:
        raise UserError(f"Hypothesis refuses the strategy {strategy!r}: {error}") from None

    # Newer versions want to know the test that draws.
    wanted = "wrapped_test" in inspect.signature(BuildContext).parameters
    context: dict[str, Any] = {"wrapped_test": from_hypothesis} if wanted else {}

    def draw(rng: random.Random) -> Any:
        for _ in range(_TRIES):
            data = ConjectureData(random=random.Random(rng.getrandbits(64)))
            try:
                with BuildContext(data, is_final=False, **context):
                    return data.draw(strategy)
            except StopTest:
                continue
        raise UserError(f"{strategy!r} gave no value in {_TRIES} tries: its filters are too strict")

    return Generator(draw)
