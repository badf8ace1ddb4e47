"""Constraints between features, and fast deduction from them.

Every constraint on features is a clause: "one of these features is on, or one of those is off". A
clause is kept as two bit masks over the features, so that checking a configuration takes two ANDs.
Spaces have tens to hundreds of features, and nearly all of their constraints have two literals,
where unit propagation alone decides; a DPLL solver of thirty lines does the rest.

`Deduction` answers what follows when one more feature is switched on or off, fast enough to be
asked for every test. A grammar with 150 features has hundreds of clauses, and a draw decides
feature by feature. So consequences are looked for only in the clauses that name the feature, and a
*witness*, a whole configuration that agrees with everything decided so far, shows that the rest can
still be completed. A decision that the witness shares needs no search at all; for any other the
witness is patched with the consequences, which is nearly always enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Pair: TypeAlias = tuple[int, int]
"""A clause as two masks: a bit of the first is on, or a bit of the second is off."""
_FEW = 4
"""The number of clauses that can be checked after each decision."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule between features; `requires`, `excludes` and the functions below create them.

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
        """Return the constraint as plain data."""
        return {"on": list(self.on), "off": list(self.off), "text": self.text}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Constraint:
        """Return the constraint that `to_json` described."""
        return cls(tuple(data["on"]), tuple(data["off"]), data["text"])


def requires(feature: str, needed: str) -> Constraint:
    """Return the constraint that `feature` makes no sense without `needed`.

    >>> print(requires("close", "open"))
    'close' requires 'open'
    """
    return Constraint((needed,), (feature,), f"{feature!r} requires {needed!r}")


def excludes(feature: str, other: str) -> Constraint:
    """Return the constraint that the two features are never in the same configuration.

    >>> print(excludes("read-only", "write"))
    'read-only' excludes 'write'
    """
    return Constraint((), (feature, other), f"{feature!r} excludes {other!r}")


def mandatory(feature: str) -> Constraint:
    """Return the constraint that `feature` is in every configuration.

    >>> print(mandatory("main"))
    'main' is mandatory
    """
    return Constraint((feature,), (), f"{feature!r} is mandatory")


def at_least_one_of(*features: str) -> Constraint:
    """Return the constraint that every configuration has one of these features.

    >>> print(at_least_one_of("read", "write"))
    at least one of 'read', 'write'
    """
    return Constraint(features, (), f"at least one of {', '.join(map(repr, features))}")


@dataclass(frozen=True, slots=True)
class Clause:
    """A constraint over feature numbers: it holds if ``bits & on`` or ``~bits & off``."""

    on: int
    off: int
    constraint: Constraint

    def holds(self, bits: int) -> bool:
        """Return whether the configuration with these bits satisfies the clause."""
        return bool(bits & self.on or ~bits & self.off)


def propagate(clauses: Iterable[Clause], true: int, false: int) -> tuple[int, int] | None:
    """Return all features that follow from those known on (`true`) and off (`false`).

    Return None if they conflict.
    """
    # A clause with the same feature on both sides always holds.
    clauses = [clause for clause in clauses if not clause.on & clause.off]
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
    """Return the bits of a configuration that satisfies all clauses, or None if there is none.

    The features `true` are on in it, and the features `false` are off.

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
            solution = solve(clauses, true | bit, false)
            return solution if solution is not None else solve(clauses, true, false | bit)
    return true


def conflict(clauses: Sequence[Clause]) -> list[Constraint]:
    """Return constraints that cannot hold together; an empty list if all of them can.

    No constraint can be left out of the returned set without resolving the conflict.

    >>> both = [Clause(1, 0, mandatory("a")), Clause(0, 1, excludes("a", "a"))]
    >>> [str(constraint) for constraint in conflict(both)]
    ["'a' is mandatory", "'a' excludes 'a'"]
    """
    if solve(clauses) is not None:
        return []
    core = list(clauses)
    for clause in clauses:
        rest = [other for other in core if other is not clause]
        if solve(rest) is None:
            core = rest
    return [clause.constraint for clause in core]


class Known(NamedTuple):
    """The features that are decided, and a configuration that completes the decisions."""

    true: int
    false: int
    witness: int


class Deduction:
    """The clauses of a space, indexed by feature.

    >>> from swarmtest.core.constraints import requires
    >>> deduction = Deduction([Clause(0b10, 0b01, requires("a", "b"))], 2)
    >>> deduction.decided(deduction.start, 0b01, on=True).true
    3
    """

    def __init__(self, clauses: Sequence[Clause], features: int) -> None:
        """Index `clauses`, which can all be satisfied together."""
        self._pairs: list[Pair] = [(c.on, c.off) for c in clauses if not c.on & c.off]
        self._if_on: list[list[Pair]] = [[] for _ in range(features)]
        self._if_off: list[list[Pair]] = [[] for _ in range(features)]
        for on, off in self._pairs:
            for i in range(features):
                if off >> i & 1:
                    self._if_on[i].append((on, off))
                if on >> i & 1:
                    self._if_off[i].append((on, off))
        start = self._facts()
        witness = solve(clauses, *start)
        assert witness is not None, "an unsatisfiable space is refused when it is built"
        self.start = Known(*start, witness)
        """What holds in every configuration."""

    def decided(self, known: Known, bit: int, on: bool) -> Known | None:
        """Return what follows from one more decision; None if it cannot be completed."""
        true, false, witness = known
        if not (self._if_on if on else self._if_off)[bit.bit_length() - 1]:
            if on:  # no clause forbids it
                return None if bit & false else Known(true | bit, false, witness | bit)
            return None if bit & true else Known(true, false | bit, witness & ~bit)
        consequences = self._followed(true, false, bit, on)
        if consequences is None:
            return None
        completed: int | None = witness
        if bool(witness & bit) != on:
            completed = self._completed(*consequences, witness)
        return None if completed is None else Known(*consequences, completed)

    def is_met(self, known: Known) -> bool:
        """Return whether every clause is satisfied already.

        Also return False if there are too many clauses to find out quickly.
        """
        true, false = known.true, known.false
        return len(self._pairs) <= _FEW and all(on & true or off & false for on, off in self._pairs)

    def possible(self, known: Known, bit: int, on: bool) -> bool:
        """Return whether one more decision could be completed.

        This is faster than finding out what follows from the decision.
        """
        if bool(known.witness & bit) == on or self._broken(known.witness ^ bit, bit) is None:
            return True
        return self.decided(known, bit, on) is not None

    def _facts(self) -> tuple[int, int]:
        """Return what the clauses with one literal say, and what follows from them."""
        true = false = 0
        for on, off in self._pairs:
            if (on | off).bit_count() == 1:
                followed = self._followed(true, false, on | off, bool(on))
                assert followed is not None, "an unsatisfiable space is refused when it is built"
                true, false = followed
        return true, false

    def _followed(self, true: int, false: int, bit: int, on: bool) -> tuple[int, int] | None:
        """Propagate one decision; return None at a conflict."""
        if bit & (false if on else true):
            return None
        true, false = (true | bit, false) if on else (true, false | bit)
        waiting = [(bit, on)]
        while waiting:
            bit, on = waiting.pop()
            number = bit.bit_length() - 1
            for clause_on, clause_off in self._if_on[number] if on else self._if_off[number]:
                if clause_on & true or clause_off & false:
                    continue
                left_on, left_off = clause_on & ~false, clause_off & ~true
                left = left_on | left_off
                if not left:
                    return None
                if not left & (left - 1):
                    true, false = true | left_on, false | left_off
                    waiting.append((left, bool(left_on)))
        return true, false

    def _broken(self, bits: int, changed: int) -> Pair | None:
        """Return a clause that `bits` violates, or None.

        Without the changed bits all clauses hold, so only clauses that name those are checked.
        """
        while changed:
            number = changed.bit_length() - 1
            changed ^= 1 << number
            for on, off in self._if_on[number] if bits >> number & 1 else self._if_off[number]:
                if not (bits & on or ~bits & off):
                    return on, off
        return None

    def _completed(self, true: int, false: int, witness: int) -> int | None:
        """Return a configuration near the witness that agrees with all decisions, or None.

        If the patched witness violates a clause, one of its undecided literals has to be met. Each
        is tried in turn, and is assumed not to hold in the tries after it.
        """
        patched = (witness | true) & ~false
        broken = self._broken(patched, patched ^ witness)
        if broken is None:
            return patched
        on, off = broken
        left = (on | off) & ~(true | false)
        while left:
            bit = left & -left
            left &= ~bit
            meets = bool(on & bit)
            followed = self._followed(true, false, bit, meets)
            if followed is not None:
                completed = self._completed(*followed, witness)
                if completed is not None:
                    return completed
            otherwise = self._followed(true, false, bit, not meets)
            if otherwise is None:
                return None
            true, false = otherwise
        return None
