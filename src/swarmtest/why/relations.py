"""Relations between the values of a failing test: a walk over values, and a rule learnt from it.

The walk starts at the test and changes one value, equal values together, or all values of a
generator. It goes on from what still fails, and starts again every so often. The rule is a
conjunction of simple relations (equal, smaller, an offset, a sum, a bound, a part of a text) that
hold in all failing variants but a few, chosen so that together they reject the passing ones. How
good the rule is, is measured on a fresh walk; a rule below one half is not shown.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

from swarmtest.why.editing import Slot, Steps
from swarmtest.why.experiments import Study
from swarmtest.why.explanation import RelationFact, short_name
from swarmtest.why.variant_runs import VariantOutcome

_RESTART = 60
"""Moves after which the walk starts again at the test."""
_SLACK = 0.03
"""The share of failing variants in which a relation need not hold."""
_LEAST_GAIN = ((3, 0.06), (6, 0.1), (99, 0.15))
"""The share of the passing variants that a relation has to reject, beyond the others: for ranks up
to 3, and so on. A complicated relation has to explain more."""
_FEWEST = 5
"""Failing and passing variants without which no rule is learnt."""
_HOPELESS = 50
"""Variants without a passing one after which the walk ends: there is no relation to learn."""
_MOST_SLOTS = 10
_MOST_BASES = 20
_MOST_IN_SUMS = 7
_SMALL_OFFSET = 3
WORTH_SHOWING = 0.5

Vector = tuple[Any, ...]
"""The values of the slots in one variant."""


@dataclass(frozen=True)
class Relation:
    """A relation between values: a test of a vector, its words, and how simple it is."""

    text: str
    holds: Callable[[Vector], bool]
    rank: int
    """Smaller is simpler."""


@dataclass(frozen=True)
class Rule:
    """Relations between the values in some slots, all of which hold where the fault shows."""

    slots: tuple[Slot, ...] = ()
    relations: tuple[Relation, ...] = ()

    def holds(self, vector: Vector) -> bool:
        """Return whether values, one for each slot, have all the relations."""
        return _fits(self.relations, vector)


def find_relations(
    study: Study, slots: Sequence[Slot], runs: int, bases: list[Steps]
) -> tuple[list[RelationFact], Rule | None]:
    """Learn which relations between the values of these slots the fault needs.

    A third of the runs is spent on the fresh walk that judges the rule. Variants that show the
    fault are appended to `bases`. Return the facts, and the rule that they are about.
    """
    chosen = list(slots)[:_MOST_SLOTS]
    if not chosen:
        return [], None
    names = [f"{short_name(study.features, slot.step)}.{slot.label}" for slot in chosen]
    start = tuple(study.editor.value(study.steps, slot) for slot in chosen)
    walk: dict[Vector, bool] = {}
    for vector, failed in _walk(study, chosen, study.rng("walk"), runs * 2 // 3):
        walk[vector] = failed
        if len(walk) == _HOPELESS and all(walk.values()):
            break
    for vector in [vector for vector, failed in walk.items() if failed][:_MOST_BASES]:
        steps = study.editor.with_values(study.steps, dict(zip(chosen, vector, strict=True)))
        if steps is not None and steps != study.steps:
            bases.append(steps)
    rule = learn_rule(start, [v for v, f in walk.items() if f], _passing(walk), names, chosen)
    if not rule:
        return [], None
    fresh = dict(_walk(study, chosen, study.rng("fresh walk"), runs - runs * 2 // 3))
    unseen = {vector: failed for vector, failed in fresh.items() if vector not in walk}
    # If there are few values, the first walk has seen nearly all of them.
    judged = unseen if sum(unseen.values()) >= _FEWEST else fresh
    fitting = [failed for vector, failed in judged.items() if _fits(rule, vector)]
    failing = [vector for vector, failed in judged.items() if failed]
    if not fitting or not failing:
        return [], None
    precision = sum(fitting) / len(fitting)
    recall = sum(_fits(rule, vector) for vector in failing) / len(failing)
    if min(precision, recall) < WORTH_SHOWING:
        return [], None
    facts = [
        RelationFact(relation.text, precision, recall, len(fitting), sum(fitting))
        for relation in rule
    ]
    return facts, Rule(tuple(chosen), tuple(rule))


def _passing(walk: dict[Vector, bool]) -> list[Vector]:
    return [vector for vector, failed in walk.items() if not failed]


def _fits(rule: Sequence[Relation], vector: Vector) -> bool:
    return all(relation.holds(vector) for relation in rule)


def _walk(
    study: Study, slots: Sequence[Slot], rng: random.Random, runs: int
) -> Iterator[tuple[Vector, bool]]:
    """Yield the vectors that were tried, and whether they showed the fault."""
    start = tuple(study.editor.value(study.steps, slot) for slot in slots)
    pools = [study.editor.candidates(study.steps, slot, rng) for slot in slots]
    yield start, True
    with study.runs.limited(runs):
        current = start
        for move in range(4 * runs):
            if move % _RESTART == 0:
                current = start
            vector = _moved(current, slots, pools, rng)
            variant = study.editor.with_values(study.steps, dict(zip(slots, vector, strict=True)))
            if variant is None or vector == current:
                continue
            outcome = study.outcome(variant)
            if outcome.is_kept:
                current = vector
            if outcome.is_kept or outcome is VariantOutcome.GONE:
                yield vector, outcome.is_kept


def _moved(
    vector: Vector, slots: Sequence[Slot], pools: Sequence[Sequence[Any]], rng: random.Random
) -> Vector:
    """Return a vector with one value changed, or equal values, or those of a group."""
    at = rng.randrange(len(vector))
    old = vector[at]
    how = rng.random()
    new = _new_value(old, vector, pools[at], rng)
    if how < 0.4:
        return (*vector[:at], new, *vector[at + 1 :])
    if how < 0.7:
        return tuple(
            new if type(value) is type(old) and value == old else value for value in vector
        )
    if type(old) not in (int, float):
        return (*vector[:at], new, *vector[at + 1 :])
    shift = new - old
    return tuple(
        value + shift if slot.group == slots[at].group and type(value) is type(old) else value
        for slot, value in zip(slots, vector, strict=True)
    )


def _new_value(old: Any, vector: Vector, pool: Sequence[Any], rng: random.Random) -> Any:
    kind = type(old)
    others = [value for value in vector if type(value) is kind and value != old]
    ways = [lambda: rng.choice(pool)] if pool else []
    if kind in (int, float):
        ways += [lambda: old + rng.choice((-1, 1)), lambda: old + rng.randint(-6, 6)]
        if others:
            ways.append(lambda: rng.choice(others) + rng.choice((-1, 0, 0, 1)))
    elif others:
        ways.append(lambda: rng.choice(others))
    return rng.choice(ways)() if ways else old


# The rule.


def learn_rule(
    start: Vector,
    failing: Sequence[Vector],
    passing: Sequence[Vector],
    names: Sequence[str],
    slots: Sequence[Slot] = (),
) -> list[Relation]:
    """Return few relations that hold where the fault shows, and reject where it does not.

    >>> failing = [(n, n) for n in range(9)]
    >>> passing = [(n, n + d) for n in range(9) for d in (-2, 1, 5)]
    >>> [relation.text for relation in learn_rule((0, 0), failing, passing, ["a.x", "b.y"])]
    ['a.x = b.y']
    """
    if len(failing) < _FEWEST or len(passing) < _FEWEST:
        return []
    allowed = int(_SLACK * len(failing))
    candidates = [
        relation
        for relation in _relations(start, failing, names, slots)
        if _violations(relation, failing, allowed) <= allowed
    ]
    rejected = {id(r): {i for i, v in enumerate(passing) if not r.holds(v)} for r in candidates}
    rule: list[Relation] = []
    left = set(range(len(passing)))
    while left:
        gains = {id(r): len(rejected[id(r)] & left) for r in candidates}
        candidates = [r for r in candidates if gains[id(r)] >= _least_gain(r, len(passing))]
        if not candidates:
            break
        best = min(candidates, key=lambda r: (-gains[id(r)], r.rank, r.text))
        rule.append(best)
        left -= rejected[id(best)]
    for relation in sorted(rule, key=lambda r: -r.rank):
        others = [r for r in rule if r is not relation]
        extra = rejected[id(relation)] - set().union(*(rejected[id(r)] for r in others))
        if len(extra) < _least_gain(relation, len(passing)) and others:
            rule.remove(relation)
    return rule


def _least_gain(relation: Relation, passing: int) -> float:
    share = next(share for rank, share in _LEAST_GAIN if relation.rank <= rank)
    return max(2.0, share * passing)


def _violations(relation: Relation, failing: Sequence[Vector], allowed: int) -> int:
    count = 0
    for vector in failing:
        if not relation.holds(vector):
            count += 1
            if count > allowed:
                break
    return count


def _relations(
    start: Vector, failing: Sequence[Vector], names: Sequence[str], slots: Sequence[Slot]
) -> Iterator[Relation]:
    """Yield all relations that might hold, simple ones first."""
    numbers = [i for i, value in enumerate(start) if type(value) in (int, float)]
    texts = [i for i, value in enumerate(start) if type(value) in (str, bytes)]
    others = [i for i in range(len(start)) if i not in numbers and i not in texts]

    def penalty(i: int, j: int) -> int:
        """Values of different generators are seldom related."""
        return 0 if not slots or slots[i].group == slots[j].group else 1

    for same in (numbers, texts, others):
        for i, j in combinations(same, 2):
            rank = penalty(i, j)
            yield Relation(f"{names[i]} = {names[j]}", _equal(i, j), rank)
            yield Relation(f"{names[i]} ≠ {names[j]}", _unequal(i, j), 4 + rank)
    for i, j in permutations(numbers, 2):
        rank = 2 + penalty(i, j)
        yield Relation(f"{names[i]} < {names[j]}", _less(i, j), rank)
        yield Relation(f"{names[i]} ≤ {names[j]}", _at_most(i, j), rank)
        offset = start[i] - start[j]
        if 0 < offset <= _SMALL_OFFSET:
            yield Relation(f"{names[i]} = {names[j]} + {offset}", _offset(i, j, offset), rank + 1)
    for i in numbers:
        yield from _bounds(i, start, failing, names)
    for i, j in permutations(texts, 2):
        yield Relation(f"{names[i]} is part of {names[j]}", _contains(i, j), 3 + penalty(i, j))
    for i in texts:
        yield Relation(f"{names[i]} = {start[i]!r}", _constant(i, start[i]), 6)
        shortest, longest = (f(len(v[i]) for v in failing) for f in (min, max))
        yield Relation(f"len({names[i]}) ≥ {shortest}", _long(i, shortest), 6)
        yield Relation(f"len({names[i]}) ≤ {longest}", _short(i, longest), 6)
    for i in others:
        yield Relation(f"{names[i]} = {start[i]!r}", _constant(i, start[i]), 6)
    if len(numbers) <= _MOST_IN_SUMS:
        for i, j in combinations(numbers, 2):
            for k in numbers:
                if k not in (i, j):
                    yield from _sums(i, j, k, names)


def _bounds(
    i: int, start: Vector, failing: Sequence[Vector], names: Sequence[str]
) -> Iterator[Relation]:
    values = sorted(vector[i] for vector in failing)
    slack = int(_SLACK * len(values))
    low, high = values[slack], values[-1 - slack]
    yield Relation(f"{names[i]} = {start[i]!r}", _constant(i, start[i]), 4)
    yield Relation(f"{names[i]} ≥ {low!r}", lambda v: bool(v[i] >= low), 5)
    yield Relation(f"{names[i]} ≤ {high!r}", lambda v: bool(v[i] <= high), 5)
    yield Relation(f"{names[i]} ≠ 0", lambda v: bool(v[i] != 0), 5)
    if isinstance(start[i], int):
        parity = start[i] % 2
        word = "odd" if parity else "even"
        yield Relation(f"{names[i]} is {word}", lambda v: bool(v[i] % 2 == parity), 6)


def _sums(i: int, j: int, k: int, names: Sequence[str]) -> Iterator[Relation]:
    total = f"{names[i]} + {names[j]}"
    yield Relation(f"{total} = {names[k]}", lambda v: bool(v[i] + v[j] == v[k]), 7)
    yield Relation(f"{total} < {names[k]}", lambda v: bool(v[i] + v[j] < v[k]), 8)
    yield Relation(f"{total} ≤ {names[k]}", lambda v: bool(v[i] + v[j] <= v[k]), 8)
    yield Relation(f"{total} > {names[k]}", lambda v: bool(v[i] + v[j] > v[k]), 8)
    yield Relation(f"{total} ≥ {names[k]}", lambda v: bool(v[i] + v[j] >= v[k]), 8)


def _equal(i: int, j: int) -> Callable[[Vector], bool]:
    return lambda v: bool(v[i] == v[j])


def _unequal(i: int, j: int) -> Callable[[Vector], bool]:
    return lambda v: bool(v[i] != v[j])


def _less(i: int, j: int) -> Callable[[Vector], bool]:
    return lambda v: bool(v[i] < v[j])


def _at_most(i: int, j: int) -> Callable[[Vector], bool]:
    return lambda v: bool(v[i] <= v[j])


def _offset(i: int, j: int, offset: Any) -> Callable[[Vector], bool]:
    return lambda v: bool(v[i] == v[j] + offset)


def _contains(i: int, j: int) -> Callable[[Vector], bool]:
    return lambda v: type(v[i]) is type(v[j]) and v[i] in v[j]


def _constant(i: int, constant: Any) -> Callable[[Vector], bool]:
    return lambda v: type(v[i]) is type(constant) and bool(v[i] == constant)


def _long(i: int, shortest: int) -> Callable[[Vector], bool]:
    return lambda v: len(v[i]) >= shortest


def _short(i: int, longest: int) -> Callable[[Vector], bool]:
    return lambda v: len(v[i]) <= longest
