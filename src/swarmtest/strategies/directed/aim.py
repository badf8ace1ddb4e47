"""Aims of directed tests, and the configurations for one aim (directed swarm, section 4).

An aim is what the directed swarm paper calls a target once targets may be merged: one or more
goals, with the features that trigger and suppress them.

Two aims conflict if a feature triggers one and suppresses the other. A feature that triggers the
aims A and suppresses the aims B makes every aim of A conflict with every aim of B, so the conflict
graph is a union of complete bipartite graphs, one per feature. `Conflicts` keeps it in that form,
which has far fewer parts than edges and gives a SAT solver a small input.

`propose` makes configurations for one aim, with one of the three single-target strategies:

| strategy       | triggers | the rest | suppressors |
|----------------|----------|----------|-------------|
| half-swarm     | in       | a coin   | out         |
| no-suppressors | in       | in       | out         |
| triggers-only  | in       | out      | out         |

(The formula for half-swarm in the paper is garbled; the dissertation has the one above.) Two more
kinds of configuration are for aims for which even these give no valid test:
``coin-without-suppressors`` tosses for the triggers too, and ``coin`` tosses for everything.

Invariant: no configuration contains a suppressor of its aim unless the space does not allow leaving
it out. So the constraints of a space are resolved once, in a fixed order: first the suppressors are
left out, then the triggers are included as far as that still allows, and then the open features are
tossed, in a random order. A trigger that needs a suppressor is left out with it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import Decisions
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.sampling import Proposal, draw_settings, rates_for, settled, toss
from swarmtest.core.seeds import Stream, key_of
from swarmtest.core.space import Space


@dataclass(frozen=True)
class Goal:
    """A target to hit.

    >>> Goal("line:cart.py:12", through=("line:cart.py:9",)).target
    'line:cart.py:12'
    """

    target: str
    """``kind:name``, as in `Result.hits`; a fault is ``fault:ID``."""
    through: tuple[str, ...] = ()
    """Targets whose statistics are used in place of its own: every test that hits the goal hits
    one of them first."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {"target": self.target, "through": list(self.through)}


@dataclass(frozen=True)
class Aim:
    """Goals that are aimed at together.

    >>> full = Aim((Goal("event:full"),), triggers={"push"}, suppressors={"pop"})
    >>> empty = Aim((Goal("event:empty"),), triggers={"pop"})
    >>> full.conflicts_with(empty)
    True
    """

    goals: tuple[Goal, ...]
    triggers: frozenset[str] = frozenset()
    suppressors: frozenset[str] = frozenset()
    certain: frozenset[str] = frozenset()
    """The triggers that are beyond doubt; empty if these are not known. Among dozens of features,
    one or two look like triggers by chance."""

    if TYPE_CHECKING:  # any set is accepted, and kept as a frozen one

        def __init__(
            self,
            goals: tuple[Goal, ...],
            triggers: Set[str] = frozenset(),
            suppressors: Set[str] = frozenset(),
            certain: Set[str] = frozenset(),
        ) -> None: ...

    def __post_init__(self) -> None:
        object.__setattr__(self, "triggers", frozenset(self.triggers))
        object.__setattr__(self, "suppressors", frozenset(self.suppressors))
        object.__setattr__(self, "certain", frozenset(self.certain))
        if not self.certain <= self.triggers:
            raise ValueError(f"certain triggers are triggers: {sorted(self.certain)}")
        both = self.triggers & self.suppressors
        if both:
            raise ValueError(f"a trigger is no suppressor of the same aim: {sorted(both)}")

    @property
    def surest(self) -> frozenset[str]:
        """The certain triggers, or all triggers if it is not known which are certain."""
        return self.certain or self.triggers

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the targets of its goals."""
        return tuple(goal.target for goal in self.goals)

    def conflicts_with(self, other: Aim) -> bool:
        """Return whether a feature triggers one aim and suppresses the other."""
        return bool(self.triggers & other.suppressors or self.suppressors & other.triggers)

    def merged_with(self, other: Aim) -> Aim:
        """Return one aim for both, which must not conflict."""
        return Aim(
            self.goals + other.goals,
            self.triggers | other.triggers,
            self.suppressors | other.suppressors,
            self.surest | other.surest,
        )

    def to_json(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "goals": [goal.to_json() for goal in self.goals],
            "triggers": sorted(self.triggers),
            "suppressors": sorted(self.suppressors),
            "certain": sorted(self.certain),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Aim:
        """Return the aim that `to_json` described."""
        goals = tuple(Goal(goal["target"], tuple(goal["through"])) for goal in data["goals"])
        roles = (frozenset(data[name]) for name in ("triggers", "suppressors", "certain"))
        return cls(goals, *roles)


@dataclass(frozen=True)
class Conflicts:
    """A graph whose vertices are aims, by number, and whose edges are conflicts.

    A set of vertices is an integer used as a bit set.

    >>> Conflicts(3, ((0b001, 0b110),)).neighbours
    (6, 1, 1)
    """

    size: int
    sides: tuple[tuple[int, int], ...]
    """Pairs of disjoint sets; each vertex of one set conflicts with each vertex of the other."""

    @classmethod
    def between(cls, aims: Sequence[Aim]) -> Conflicts:
        """Return the conflicts between aims."""
        sides: dict[str, list[int]] = {}
        for number, aim in enumerate(aims):
            for side, names in enumerate((aim.triggers, aim.suppressors)):
                for name in names:
                    sides.setdefault(name, [0, 0])[side] |= 1 << number
        pairs = {(left, right) for left, right in sides.values() if left and right}
        return cls(len(aims), tuple(sorted(pairs)))

    @cached_property
    def neighbours(self) -> tuple[int, ...]:
        """For each vertex, the set of vertices that it conflicts with."""
        neighbours = [0] * self.size
        for left, right in self.sides:
            for vertex in members(left):
                neighbours[vertex] |= right
            for vertex in members(right):
                neighbours[vertex] |= left
        return tuple(neighbours)

    def within(self, vertices: int) -> tuple[tuple[int, int], ...]:
        """Return the sides of the conflicts among some of the vertices."""
        cut = ((left & vertices, right & vertices) for left, right in self.sides)
        return tuple(sorted({pair for pair in cut if pair[0] and pair[1]}))


def members(bits: int) -> Iterator[int]:
    """Yield the numbers in a bit set, smallest first.

    >>> list(members(0b1010))
    [1, 3]
    """
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


# Configurations for one aim.


HALF_SWARM = "half-swarm"
NO_SUPPRESSORS = "no-suppressors"
TRIGGERS_ONLY = "triggers-only"
TRIGGERS_TOSSED = "triggers-tossed"
"""Triggers-only, with a coin for each trigger that is not certain."""
COIN_WITHOUT_SUPPRESSORS = "coin-without-suppressors"
COIN = "coin"

SINGLES = (HALF_SWARM, NO_SUPPRESSORS, TRIGGERS_ONLY)
"""The paper's strategies for a single target."""

RUNGS = (TRIGGERS_ONLY, HALF_SWARM, NO_SUPPRESSORS, COIN_WITHOUT_SUPPRESSORS, COIN)
"""All kinds of configuration for an aim; each gives a generator more freedom than the last."""

_REST_RATE = {NO_SUPPRESSORS: 1.0, TRIGGERS_ONLY: 0.0, TRIGGERS_TOSSED: 0.0}


@dataclass(frozen=True)
class FittedAim:
    """An aim fitted to a space: what is fixed, and what is tossed."""

    kind: str
    """One of `RUNGS`: the requested one, or half-swarm if triggers-only would be empty."""
    rates: tuple[float, ...]
    decisions: Decisions | None
    """What is decided before the first toss."""
    notes: tuple[str, ...] = ()
    """Which parts of the aim the space does not allow."""
    certain: int = 0
    """In a space without constraints: the features that are always in."""
    open: tuple[tuple[int, float], ...] = ()
    """In a space without constraints: the bit and the rate of each feature that is tossed."""
    keys: tuple[int, ...] = ()
    """The keys of the draws for `open`."""


def propose(single: str, aim: Aim, space: Space, rng: Stream, origin: str = "") -> Proposal:
    """Propose a configuration for one aim; `single` is one of `RUNGS` or `TRIGGERS_TOSSED`.

    >>> from swarmtest.strategies.directed.aim import Goal
    >>> full = Aim((Goal("event:full"),), triggers={"push"}, suppressors={"pop"})
    >>> space = Space(["push", "pop", "add"])
    >>> print(propose("no-suppressors", full, space, Stream()).configuration)
    push -pop add
    >>> print(propose("triggers-only", full, space, Stream()).configuration)
    push -pop -add
    """
    doubtful = aim.triggers - aim.surest if single == TRIGGERS_TOSSED else frozenset()
    plan = fitted(single, aim.triggers, aim.suppressors, space, doubtful)
    if not plan.certain:
        return toss(space, plan.rates, rng, origin, plan.decisions)
    bits = plan.certain
    for draw, (bit, rate) in zip(rng.named_each(plan.keys), plan.open, strict=True):
        if draw < rate:
            bits |= bit
    settings = draw_settings(space, rng)
    return Proposal(Configuration(space, bits, None, settings), plan.rates, origin)


@functools.lru_cache(maxsize=4096)
def fitted(
    kind: str,
    triggers: frozenset[str],
    suppressors: frozenset[str],
    space: Space,
    doubtful: frozenset[str] = frozenset(),
) -> FittedAim:
    """Return what `propose` tosses for, and which parts of an aim the space does not allow.

    `doubtful` are the triggers for which `TRIGGERS_TOSSED` tosses.

    >>> fitted("half-swarm", frozenset({"push"}), frozenset({"pop"}), Space(["push", "pop"])).rates
    (1.0, 0.0)
    """
    if kind not in (*RUNGS, TRIGGERS_TOSSED):
        raise UserError(f"unknown way to aim {kind!r}{did_you_mean(kind, RUNGS)}")
    on, off = _mask(triggers - doubtful, space), _mask(suppressors, space)
    if kind == COIN or not space.features:
        return FittedAim(COIN, rates_for(space, 0.5), None)
    decisions = settled(space, off, 0 if kind == COIN_WITHOUT_SUPPRESSORS else on)
    notes = [_unavoidable(space, off & decisions.true)] if off & decisions.true else []
    if kind != COIN_WITHOUT_SUPPRESSORS and on & ~decisions.true:
        notes.append(_out_of_reach(space, on & ~decisions.true))
    if kind == TRIGGERS_ONLY and not on & decisions.true:
        notes.append("triggers-only would be empty: it has no triggers; half-swarm instead")
        kind = HALF_SWARM
    rates = _rates(kind, space, decisions, _mask(doubtful, space))
    if space.clauses:
        return FittedAim(kind, rates, decisions, tuple(notes))
    return FittedAim(kind, rates, decisions, tuple(notes), *_independent(space, rates))


def _independent(
    space: Space, rates: tuple[float, ...]
) -> tuple[int, tuple[tuple[int, float], ...], tuple[int, ...]]:
    """Return `certain`, `open` and `keys` of `FittedAim` for a space without constraints.

    They are computed once, and certain features need no draws, so this is faster than `toss`.
    """
    certain = sum(1 << i for i, rate in enumerate(rates) if rate == 1)
    tossed = [i for i, rate in enumerate(rates) if 0 < rate < 1]
    keys = tuple(key_of(space.feature_names[i]) for i in tossed)
    return certain, tuple((1 << i, rates[i]) for i in tossed), keys


def _rates(kind: str, space: Space, decisions: Decisions, tossed: int = 0) -> tuple[float, ...]:
    """Return each feature's rate: 0 or 1 if it is decided, 0.5 if `tossed`, else the rest's.

    Where the rest is tossed with a coin, a feature's own rate replaces the coin's.
    """
    rest = _REST_RATE.get(kind)
    coins = rates_for(space, 0.5) if rest is None else (rest,) * len(space.features)
    return tuple(
        1.0
        if decisions.true >> i & 1
        else 0.0
        if decisions.false >> i & 1
        else 0.5
        if tossed >> i & 1
        else rate
        for i, rate in enumerate(coins)
    )


def _mask(names: frozenset[str], space: Space) -> int:
    mask = 0
    for name in sorted(names):
        number = space.feature_number.get(name)
        if number is None:
            raise UserError(
                f"an aim names a feature that the space does not have: {name!r}"
                f"{did_you_mean(name, space.feature_names)}"
            )
        mask |= 1 << number
    return mask


def _unavoidable(space: Space, mask: int) -> str:
    return f"suppressors stay in, the space cannot do without: {_names(space, mask)}"


def _out_of_reach(space: Space, mask: int) -> str:
    return f"triggers stay out, excluded or not without a suppressor: {_names(space, mask)}"


def _names(space: Space, mask: int) -> str:
    return ", ".join(n for i, n in enumerate(space.feature_names) if mask >> i & 1)
