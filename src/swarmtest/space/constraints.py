"""What a configuration must respect, as clauses, and a small solver for them.

Every constraint on features is a clause: "one of these features is on, or one of those is off".
A clause is kept as two bit masks over the features, so that checking a configuration is two ANDs.
Spaces have tens to hundreds of features and constraints that are nearly all of two literals, where
unit propagation decides alone; a DPLL of thirty lines does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule that users write beside the features; `requires`, `excludes` and the rest make them.

    `on` and `off` name features: the rule holds if one of `on` is included or one of `off` is not.

    >>> print(Constraint(("read", "write"), ("open",), "open is for reading or writing"))
    open is for reading or writing
    """

    on: tuple[str, ...]
    off: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"on": list(self.on), "off": list(self.off), "text": self.text}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Constraint:
        """The constraint that `to_json` described."""
        return cls(tuple(data["on"]), tuple(data["off"]), data["text"])


def requires(feature: str, needed: str) -> Constraint:
    """`feature` makes no sense without `needed`.

    >>> print(requires("close", "open"))
    'close' requires 'open'
    """
    return Constraint((needed,), (feature,), f"{feature!r} requires {needed!r}")


def excludes(feature: str, other: str) -> Constraint:
    """The two features cannot be in the same configuration.

    >>> print(excludes("read-only", "write"))
    'read-only' excludes 'write'
    """
    return Constraint((), (feature, other), f"{feature!r} excludes {other!r}")


def mandatory(feature: str) -> Constraint:
    """`feature` is in every configuration.

    >>> print(mandatory("main"))
    'main' is mandatory
    """
    return Constraint((feature,), (), f"{feature!r} is mandatory")


def at_least_one_of(*features: str) -> Constraint:
    """Every configuration has one of these features.

    >>> print(at_least_one_of("read", "write"))
    at least one of 'read', 'write'
    """
    return Constraint(features, (), f"at least one of {', '.join(map(repr, features))}")


@dataclass(frozen=True, slots=True)
class Clause:
    """A constraint over feature numbers: holds if ``bits & on`` or ``~bits & off``."""

    on: int
    off: int
    constraint: Constraint

    def holds(self, bits: int) -> bool:
        """Whether the configuration with these bits respects the clause."""
        return bool(bits & self.on or ~bits & self.off)


def propagate(clauses: Iterable[Clause], true: int, false: int) -> tuple[int, int] | None:
    """Everything that follows from features known on (`true`) and off (`false`); None: conflict."""
    clauses = [clause for clause in clauses if not clause.on & clause.off]  # those always hold
    while True:
        before = true, false
        for clause in clauses:
            if clause.on & true or clause.off & false:
                continue
            on, off = clause.on & ~false, clause.off & ~true
            if not on and not off:
                return None
            if (on | off).bit_count() == 1:
                true, false = true | on, false | off
        if true & false:
            return None
        if (true, false) == before:
            return before


def solve(clauses: Sequence[Clause], true: int = 0, false: int = 0) -> int | None:
    """Bits of a configuration that respects all clauses and the given features, or None.

    >>> solve([Clause(0b10, 0b01, requires("a", "b"))], true=0b01)
    3
    """
    known = propagate(clauses, true, false)
    if known is None:
        return None
    true, false = known
    for clause in clauses:
        if not (clause.on & true or clause.off & false):
            free = (clause.on | clause.off) & ~true & ~false
            bit = free & -free
            found = solve(clauses, true | bit, false)
            return found if found is not None else solve(clauses, true, false | bit)
    return true


def conflict(clauses: Sequence[Clause]) -> list[Constraint]:
    """A smallest-by-deletion set of constraints that cannot hold together; empty if all can.

    >>> both = [Clause(1, 0, mandatory("a")), Clause(0, 1, excludes("a", "a"))]
    >>> [str(constraint) for constraint in conflict(both)]
    ["'a' is mandatory", "'a' excludes 'a'"]
    """
    if solve(clauses) is not None:
        return []
    core = list(clauses)
    for clause in clauses:
        rest = [kept for kept in core if kept is not clause]
        if solve(rest) is None:
            core = rest
    return [clause.constraint for clause in core]
