"""Bandit: the families of `hedged`, with shares that follow what is new during the campaign.

No fixed shares are good for every program: one has bugs that need everything in balance, another
one bugs that some features suppress. What a test reaches for the first time (a line, an event, a
fault) shows which families suit a program before the first bug is found, if coverage is on.

A part of the tests, `fixed`, is drawn with the shares of `hedged`, so a bug needs at most 1/`fixed`
times as many tests as with these, whatever was learnt. For the others, the share of a family is
multiplied by how often its latest tests reached something new, compared with an average family.
Where nothing new is seen, for example without coverage, all shares are those of `hedged`.

*Propensities.* Only the past chooses the family of a test, and the family and its propensities are
logged as those of `hedged` are. So roles stay right: given the family, the features of a test do
not depend on what earlier tests hit.

`PRIOR`, `SHARPNESS`, `FADING` and `fixed` were chosen on the kinds of bugs for tuning
(``benchmarks/bug_families/learning.py``, which also judges the strategy on other kinds).
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.result import Result, Verdict
from swarmtest.core.sampling import Proposal
from swarmtest.core.seeds import Stream
from swarmtest.core.space import Space
from swarmtest.strategies.hedged import HEDGED_FAMILIES, Hedged
from swarmtest.strategies.strategy import register

PRIOR = 0.5
"""A family is taken for average until about so many new things were expected of its tests."""
SHARPNESS = 3.0
"""The power of a family's gain that its share is multiplied by."""
FADING = 0.99
"""How much a test of a family counts after each later test of the same family."""

_SHARES = tuple(share for _, share, _ in HEDGED_FAMILIES)
_HEDGED = Hedged()


def learnt_shares(
    new: Sequence[Any],
    tests: Sequence[Any],
    fixed: float,
    shares: Sequence[float] = _SHARES,
    sharpness: float = SHARPNESS,
    prior: float = PRIOR,
) -> list[Any]:
    """Return the share of each family, from how many of its tests reached something new.

    The counts are numbers, or arrays with an element for each of many campaigns.

    >>> learnt_shares([0, 0], [50, 50], 0.5, [0.8, 0.2])
    [0.8, 0.2]
    >>> [round(share, 2) for share in learnt_shares([0, 25], [50, 50], 0.5, [0.8, 0.2])]
    [0.4, 0.6]
    """
    pooled = sum(new) / (sum(tests) + 1e-9)
    # Where an average family would have had no gain yet either, nothing is known.
    worth = [
        share * ((gains + prior) / (count * pooled + prior)) ** sharpness
        for share, gains, count in zip(shares, new, tests, strict=True)
    ]
    free = (1.0 - fixed) / sum(worth)
    return [fixed * share + free * each for share, each in zip(shares, worth, strict=True)]


@register("bandit")
@dataclass
class Bandit:
    """Draw families as `hedged` does, more often those whose tests reach something new.

    >>> Bandit().ask(Space(["push", "pop"]), 0, Stream(campaign_seed=1)).origin
    'ladder'
    """

    fixed: float = 0.5
    """The part of the tests that have the shares of `hedged`, whatever was learnt."""
    _new: list[float] = field(default_factory=lambda: [0.0] * len(_SHARES), init=False, repr=False)
    _tests: list[float] = field(
        default_factory=lambda: [0.0] * len(_SHARES), init=False, repr=False
    )
    _reached: set[Any] = field(default_factory=set, init=False, repr=False)
    _pending: dict[int, int] = field(default_factory=dict, init=False, repr=False)
    """The family of each trial whose result is not known yet."""

    def __post_init__(self) -> None:
        if not 0 < self.fixed <= 1:
            raise UserError(f"strategy 'bandit': fixed is above 0 and at most 1, not {self.fixed}")

    def ask(self, space: Space, trial: int, rng: Stream) -> Proposal:
        """Draw a family by what was learnt, then weights from it."""
        bounds = [*itertools.accumulate(learnt_shares(self._new, self._tests, self.fixed))][:-1]
        family = bisect.bisect_right(bounds, rng.named("*family"))
        self._pending[trial] = family
        return _HEDGED.ask_of_family(space, family, rng)

    def tell(self, result: Result) -> None:
        """Note whether a test reached something for the first time."""
        family = self._pending.pop(result.trial, None)
        before = len(self._reached)
        if result.verdict is not Verdict.INVALID:
            self._reached.update(result.hits)
        if result.fault is not None:
            self._reached.add(f"fault:{result.fault.id}")
        is_new = len(self._reached) > before
        if family is None:  # of an earlier run, which is resumed
            return
        self._new[family] = FADING * self._new[family] + is_new
        self._tests[family] = FADING * self._tests[family] + 1.0
