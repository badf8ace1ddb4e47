"""Constraints between features, and the solver that answers questions about them.

Every constraint on features is a clause: "one of these features is on, or one of those is off". A
clause is kept as two bit masks over the features, so that checking a configuration takes two ANDs.

`Solver` is the only solver for clauses in swarmtest: spaces are checked, configurations drawn and
covering arrays built with it. It propagates units and, where that does not decide, searches (Davis,
Logemann, Loveland: A machine program for theorem-proving, 1962). Spaces have tens to hundreds of
features, and nearly all of their constraints have two literals, so there is little to search.

`Solver.decide` answers what follows when one more feature is switched on or off, fast enough to be
asked for every test. A grammar with 150 features has hundreds of clauses, and a draw decides
feature by feature. So consequences are looked for only in the clauses that name the feature, and a
*witness*, a whole configuration that agrees with everything decided so far, shows that the rest can
still be completed. A decision that the witness shares needs no search at all; for any other the
witness is patched with the consequences, which is nearly always enough.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

Masks: TypeAlias = tuple[int, int]
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

    @property
    def masks(self) -> Masks:
        """The clause without its words."""
        return self.on, self.off

    def holds(self, bits: int) -> bool:
        """Return whether the configuration with these bits satisfies the clause."""
        return bool(bits & self.on or ~bits & self.off)


def solve(clauses: Sequence[Clause], true: int = 0, false: int = 0) -> int | None:
    """Return the bits of a configuration that satisfies all clauses, or None if there is none.

    The features `true` are on in it, and the features `false` are off.

    >>> solve([Clause(0b10, 0b01, requires("a", "b"))], true=0b01)
    3
    """
    width = max([mask.bit_length() for c in clauses for mask in c.masks], default=0)
    width = max(width, true.bit_length(), false.bit_length())
    return Solver([clause.masks for clause in clauses], width).solve(true, false)


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


class Decisions(NamedTuple):
    """The features that are decided, and a configuration that completes the decisions."""

    true: int
    false: int
    witness: int


class Solver:
    """Answers which configurations satisfy clauses, and what follows from decisions.

    >>> solver = Solver([(0b10, 0b01)], 2)  # feature 1 is on, or feature 0 is off
    >>> solver.solve(preferred=0b01), solver.solve(true=0b01, false=0b10)
    (3, None)
    >>> solver.decide(solver.start, 0b01, on=True).true
    3
    """

    def __init__(self, clauses: Iterable[Masks], features: int) -> None:
        """Index the clauses by feature; they may contradict each other."""
        self.clauses: list[Masks] = []
        """The clauses that do not always hold."""
        self._if_on: list[list[Masks]] = [[] for _ in range(features)]
        self._if_off: list[list[Masks]] = [[] for _ in range(features)]
        occurrences = [0] * features
        for masks in clauses:
            on, off = masks
            for mask, index in ((on, self._if_off), (off, self._if_on)):
                for number in _numbers(mask):
                    occurrences[number] += 1
                    if not on & off:
                        index[number].append(masks)
            if not on & off:
                self.clauses.append(masks)
        order = sorted(range(features), key=occurrences.__getitem__, reverse=True)
        self._order = [1 << number for number in order if occurrences[number]]
        self._facts = self._find_facts()

    @functools.cached_property
    def start(self) -> Decisions:
        """What holds in every configuration; only for clauses that can be satisfied together."""
        # Decisions that the witness shares are cheap. Any will do; one with every other feature is
        # right about half of the coin tosses.
        witness = self.solve(preferred=sum(1 << i for i in range(0, len(self._if_on), 2)))
        assert witness is not None, "an unsatisfiable space is refused when it is built"
        assert self._facts is not None
        return Decisions(*self._facts, witness)

    def solve(self, true: int = 0, false: int = 0, preferred: int = 0) -> int | None:
        """Return a configuration that satisfies all clauses, or None if there is none.

        The features `true` are on in it, and the features `false` are off. The features named by
        most clauses come first: each is on if it is in `preferred` and off if it is not, unless
        that is impossible. So the answer does not depend on how it is searched for.
        """
        known = self.propagate(true, false)
        if known is None:
            return None
        true, false = known
        if self.is_satisfied(wish := true | preferred & ~false):
            return wish
        # Each decision with the state before it, to be tried the other way.
        untried: list[tuple[int, int, int, int, bool]] = []
        position = 0
        while position < len(self._order):
            bit = self._order[position]
            if (true | false) & bit:
                position += 1
                continue
            on = bool(preferred & bit)
            untried.append((position, true, false, bit, not on))
            followed = self._follow(true, false, bit, on)
            while followed is None:
                if not untried:
                    return None
                position, true, false, bit, on = untried.pop()
                followed = self._follow(true, false, bit, on)
            true, false = followed
        return true | preferred & ~false

    def propagate(self, true: int, false: int) -> Masks | None:
        """Return all features that follow from those known on (`true`) and off (`false`).

        Return None if they conflict.
        """
        known = self._facts
        for mask, on in ((true, True), (false, False)):
            for number in _numbers(mask):
                if known is None:
                    return None
                if not known[not on] >> number & 1:
                    known = self._follow(*known, 1 << number, on)
        return known

    def is_satisfied(self, bits: int) -> bool:
        """Return whether a configuration satisfies all clauses."""
        return all(bits & on or ~bits & off for on, off in self.clauses)

    def decide(self, decisions: Decisions, bit: int, on: bool) -> Decisions | None:
        """Return what follows from one more decision; None if it cannot be completed."""
        true, false, witness = decisions
        if not (self._if_on if on else self._if_off)[bit.bit_length() - 1]:
            if on:  # no clause forbids it
                return None if bit & false else Decisions(true | bit, false, witness | bit)
            return None if bit & true else Decisions(true, false | bit, witness & ~bit)
        consequences = self._follow(true, false, bit, on)
        if consequences is None:
            return None
        completed: int | None = witness
        if bool(witness & bit) != on:
            completed = self._complete(*consequences, witness)
        return None if completed is None else Decisions(*consequences, completed)

    def is_possible(self, decisions: Decisions, bit: int, on: bool) -> bool:
        """Return whether one more decision could be completed.

        This is faster than finding out what follows from the decision.
        """
        witness = decisions.witness
        if bool(witness & bit) == on or self._broken_clause(witness ^ bit, bit) is None:
            return True
        return self.decide(decisions, bit, on) is not None

    def is_met(self, decisions: Decisions) -> bool:
        """Return whether every clause is satisfied by what is decided already.

        Also return False if there are too many clauses to find out quickly.
        """
        true, false = decisions.true, decisions.false
        few = len(self.clauses) <= _FEW
        return few and all(on & true or off & false for on, off in self.clauses)

    def _find_facts(self) -> Masks | None:
        """Return what the clauses with one literal say, and what follows from them."""
        true = false = 0
        for on, off in self.clauses:
            if not on | off:
                return None
            if (on | off).bit_count() == 1:
                followed = self._follow(true, false, on | off, bool(on))
                if followed is None:
                    return None
                true, false = followed
        return true, false

    def _follow(self, true: int, false: int, bit: int, on: bool) -> Masks | None:
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

    def _broken_clause(self, bits: int, changed: int) -> Masks | None:
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

    def _complete(self, true: int, false: int, witness: int) -> int | None:
        """Return a configuration near the witness that agrees with all decisions, or None.

        If the patched witness violates a clause, one of its undecided literals has to be met. Each
        is tried in turn, and is assumed not to hold in the tries after it.
        """
        patched = (witness | true) & ~false
        broken = self._broken_clause(patched, patched ^ witness)
        if broken is None:
            return patched
        on, off = broken
        left = (on | off) & ~(true | false)
        while left:
            bit = left & -left
            left &= ~bit
            meets = bool(on & bit)
            followed = self._follow(true, false, bit, meets)
            if followed is not None:
                completed = self._complete(*followed, witness)
                if completed is not None:
                    return completed
            otherwise = self._follow(true, false, bit, not meets)
            if otherwise is None:
                return None
            true, false = otherwise
        return None


def _numbers(mask: int) -> Iterator[int]:
    """Yield the numbers of the bits of a mask, the lowest first."""
    while mask:
        bit = mask & -mask
        yield bit.bit_length() - 1
        mask ^= bit
