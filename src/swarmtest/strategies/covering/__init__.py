"""Covering arrays: every combination of t features, on and off, in as few configurations as known.

Where a swarm makes a combination of t features likely, a covering array makes it certain (swarm
testing, section 5, compares the two). The rows take turns. For the entries that a row leaves open,
a coin is tossed for each test, or they are always included or always excluded.

The array follows the campaign's seed. A fixed array always gives the same features to the same
columns, and two columns that happen to agree in the rows that matter cannot be told apart, however
many campaigns repeat them. So each campaign draws which feature gets which column, in which columns
on and off are swapped, and in which order the rows come. All three leave an array covering.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import Clause
from swarmtest.core.errors import UserError
from swarmtest.core.sampling import Proposal, draw_settings, refuse_rates, toss
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
    """The array of the campaign that asked last; after `prepare`, that of seed 0."""
    _space: Space | None = field(default=None, init=False, repr=False, compare=False)
    _seed: int = field(default=0, init=False, repr=False, compare=False)

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
        from swarmtest.strategies.covering.arrays import covering_array, with_open_entries

        refuse_rates(space, "covering", "has every combination of features")
        self._space = space
        count = len(space.features)
        if not count:
            return
        if not space.clauses:
            try:
                rows = covering_array(count, self.t)
            except ValueError as error:
                raise UserError(f"strategy 'covering': {error}") from None
            self._unlabelled = with_open_entries(rows, min(self.t, count))
        self._draw(space, Stream(0))

    def _draw(self, space: Space, rng: Stream) -> None:
        """Draw the array of a campaign."""
        import numpy as np

        from swarmtest.strategies.covering.arrays import relabelled

        self._seed = rng.campaign_seed
        design = rng.of_campaign(0).split("covering")
        column = np.argsort([design.named(name) for name in space.feature_names])
        rows = (
            self._constrained(space, design, column)
            if space.clauses
            else relabelled(
                self._unlabelled,
                column,
                lambda attempt: [design.named(n, attempt) < 0.5 for n in space.feature_names],
            )
        )
        order = list(range(len(rows)))
        design.shuffle(order)
        self.rows = rows[order]
        fill = {"coin": 0.5, "include": 1.0, "exclude": 0.0}[self.fill]
        self._shares = tuple(np.where(self.rows < 0, fill, self.rows).mean(axis=0).tolist())

    def _constrained(
        self, space: Space, design: Stream, column: npt.NDArray[np.intp]
    ) -> npt.NDArray[np.int8]:
        """Return an array for the constraints, written in the drawn labels and translated back.

        So what the construction prefers (first columns, zeros) is no feature's for all seeds.
        """
        import numpy as np

        from swarmtest.strategies.covering.arrays import covering_array, with_open_entries

        count = len(space.features)
        swapped = np.array([design.named(name, 1) < 0.5 for name in space.feature_names])
        some = tuple(range(1, count + 1))  # a configuration is never empty
        clauses = [*(literals(clause) for clause in space.clauses), some]
        bound = frozenset(abs(literal) - 1 for clause in clauses[:-1] for literal in clause)

        def label(literal: int) -> int:
            feature = abs(literal) - 1
            sign = -1 if (literal < 0) != swapped[feature] else 1
            return sign * (int(column[feature]) + 1)

        try:
            rows = covering_array(
                count, self.t, clauses=[tuple(map(label, clause)) for clause in clauses]
            )
        except ValueError as error:
            raise UserError(f"strategy 'covering': {error}") from None
        translated = (rows[:, column] ^ swapped).astype(np.int8)
        return with_open_entries(translated, min(self.t, count), bound)

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Propose the row whose turn it is, with its open entries filled."""
        if not space.features:
            return toss(space, (), rng)
        if self._space != space:
            self.prepare(space)
        if self._seed != rng.campaign_seed:
            self._draw(space, rng)
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
