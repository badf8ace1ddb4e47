"""Covering arrays: every combination of t features, on and off, in as few configurations as known.

Where a swarm makes a combination of t features likely, a covering array makes it certain (swarm
testing, section 5, compares the two). The rows take turns. For the entries that a row leaves open,
a coin is tossed for each test, or they are always included or always excluded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import Clause
from swarmtest.core.errors import UserError
from swarmtest.core.sampling import Proposal, draw_settings, toss
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.strategy import register

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_FILLS = ("coin", "include", "exclude")


@register("covering")
@dataclass
class Covering:
    """The rows of a t-way covering array over the features, in turn.

    >>> covering = Covering(t=2)
    >>> covering.prepare(Space(["a", "b", "c", "d"]))
    >>> covering.rows.shape
    (5, 4)
    """

    t: int = 2
    """Every combination of this many features, on or off, is in some row: 2 to 6."""
    fill: str = "coin"
    """How entries that the array leaves open are set: ``coin``, ``include`` or ``exclude``."""
    rows: npt.NDArray[np.int8] = field(init=False, repr=False, compare=False)
    _space: Space | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.t not in range(2, 7):
            raise UserError(f"strategy 'covering': t is from 2 to 6, not {self.t}")
        if self.fill not in _FILLS:
            raise UserError(
                f"strategy 'covering': fill is one of {', '.join(_FILLS)}, not {self.fill!r}"
            )

    def prepare(self, space: Space) -> None:
        """Construct the array, once per campaign."""
        # Imported here: every worker process imports this module, and few use the strategy.
        import numpy as np

        from swarmtest.strategies.covering.arrays import (
            covering_array,
            with_open_entries,
            without_empty_row,
        )

        self._space = space
        count = len(space.features)
        if not count:
            return
        clauses = [literals(clause) for clause in space.clauses]
        if clauses:
            clauses.append(tuple(range(1, count + 1)))
        try:
            rows = covering_array(count, self.t, clauses=clauses)
        except ValueError as error:
            raise UserError(f"strategy 'covering': {error}") from None
        bound = frozenset(abs(literal) - 1 for clause in clauses[:-1] for literal in clause)
        rows = rows if clauses else without_empty_row(rows)
        self.rows = with_open_entries(rows, min(self.t, count), bound)
        fill = {"coin": 0.5, "include": 1.0, "exclude": 0.0}[self.fill]
        self._shares = tuple(np.where(self.rows < 0, fill, self.rows).mean(axis=0).tolist())

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose the row whose turn it is, with its open entries filled."""
        if not space.features:
            return toss(space, (), rng)
        if self._space != space:
            self.prepare(space)
        number = trial % len(self.rows)
        bits = 0
        for i, entry in enumerate(self.rows[number].tolist()):
            if entry == 1 or (entry < 0 and self._filled(rng, space.feature_names[i])):
                bits |= 1 << i
        bits = bits or self._any_open(number, rng)
        configuration = Configuration(space, bits, None, draw_settings(space, rng))
        return Proposal(configuration, self._shares, f"row {number}")

    def _filled(self, rng: Stream, name: str) -> bool:
        return self.fill == "include" or (self.fill == "coin" and rng.named(name) < 0.5)

    def _any_open(self, number: int, rng: Stream) -> int:
        """Return one of a row's open features, for a row that came out empty.

        A test has at least one feature.
        """
        return 1 << rng.choice(
            [i for i, entry in enumerate(self.rows[number].tolist()) if entry < 0]
        )


def literals(clause: Clause) -> tuple[int, ...]:
    """Return a clause as DIMACS literals: feature i is i + 1, negative for off."""
    width = (clause.on | clause.off).bit_length()
    on = [i + 1 for i in range(width) if clause.on >> i & 1]
    return (*on, *(-(i + 1) for i in range(width) if clause.off >> i & 1))
