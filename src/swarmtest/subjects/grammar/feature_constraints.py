"""Constraints on features, so that strategies draw only configurations that can make texts.

With `effective`, a configuration is canonical: every feature that is on can appear in a text. That
takes nothing away, for a feature that cannot appear changes nothing by being on; but what is on is
then what the test may contain, and statistics on features are about what they name.

Two families of clauses say so. *Finishing*: a feature needs a way to write each choice that it
needs, and choices that need each other need a way out. *Reaching*: a feature needs one that leads
to it, and choices that lead to each other need a way in. "Each other" are the loops (as in the loop
formulas of answer set programming); a component of up to `_WHOLE` choices gets all of its loops, a
larger one its single choices and itself as a whole. Where that is not exact, a feature may now and
then be on without effect. All clauses have at most one negative literal, so that whatever follows
from a decision without a contradiction can be completed: by everything else being on.

Without `effective`, only the start has to be finished: the minimal sets of features of which one
has to be on (minimal cut sets), as far as `_MOST_CUTS` of them say it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swarmtest.core.constraints import Constraint, at_least_one_of, requires
from swarmtest.subjects.grammar.feature_graph import FeatureGraph, bits_of, mask_of

_WHOLE = 8
_MOST_CUTS = 200


def effective_constraints(graph: FeatureGraph) -> tuple[Constraint, ...]:
    """What makes every feature that is on one that can appear.

    >>> from swarmtest.subjects.grammar.generator import load_grammar
    >>> generator = load_grammar('start: "a" | "(" start ")" | "b" [start]', length=5)
    >>> for constraint in generator.constraints:
    ...     print(constraint)
    at least one of 'start:a', 'start:(start)', 'start:b-start?'
    'start:(start)' requires one of 'start:a', 'start:b-start?'
    'start?start' requires 'start:b-start?'
    """
    found: dict[tuple[int, int], None] = {}
    for choice in bits_of(graph.start_needs):
        found[graph.choices[choice].features, -1] = None
    for feature, needed in enumerate(graph.needs):
        for choice in bits_of(needed & ~(1 << graph.choice_of[feature])):
            found[graph.choices[choice].features, feature] = None
    for loop in _loops([_needs_of(graph, c) for c in range(len(graph.choices))]):
        features = _features_of(graph, loop)
        inside = mask_of(f for f in bits_of(features) if graph.needs[f] & loop)
        for feature in bits_of(inside):
            found[features & ~inside, feature] = None
    for loop in _loops([_leads_of(graph, c) for c in range(len(graph.choices))]):
        if not loop & graph.start_leads_to:
            features = _features_of(graph, loop)
            for feature in bits_of(features):
                found[graph.leading_to(loop) & ~features, feature] = None
    return tuple(_constraint(graph, on, off) for on, off in _smallest(found))


def start_constraints(graph: FeatureGraph) -> tuple[tuple[Constraint, ...], bool]:
    """What makes the start one that can be finished, and whether that is all it takes."""
    cuts, exact = _cuts(graph)
    return tuple(_constraint(graph, cut, -1) for cut in cuts), exact


def _needs_of(graph: FeatureGraph, choice: int) -> int:
    found = 0
    for feature in bits_of(graph.choices[choice].features):
        found |= graph.needs[feature]
    return found


def _leads_of(graph: FeatureGraph, choice: int) -> int:
    found = 0
    for feature in bits_of(graph.choices[choice].features):
        found |= graph.leads_to[feature]
    return found


def _features_of(graph: FeatureGraph, choices: int) -> int:
    found = 0
    for choice in bits_of(choices):
        found |= graph.choices[choice].features
    return found


def _loops(following: Sequence[int]) -> Iterator[int]:
    """Sets of choices that follow each other: each alone, components, subsets of small ones."""
    yield from (1 << choice for choice in range(len(following)))
    for component in _components(following):
        members = [*bits_of(component)]
        if len(members) > _WHOLE:
            yield component
            continue
        for subset in range(1, 1 << len(members)):
            loop = mask_of(members[place] for place in bits_of(subset))
            if loop.bit_count() > 1 and _connected(following, loop):
                yield loop


def _connected(following: Sequence[int], loop: int) -> bool:
    """Whether each of these leads to each other without leaving the set."""
    return all(_reached(following, 1 << one, loop) == loop for one in bits_of(loop))


def _components(following: Sequence[int]) -> Iterator[int]:
    """Strongly connected sets of more than one."""
    whole = (1 << len(following)) - 1
    reach = [_reached(following, 1 << one, whole) for one in range(len(following))]
    seen = 0
    for one, others in enumerate(reach):
        if not seen >> one & 1:
            component = mask_of(other for other in bits_of(others) if reach[other] >> one & 1)
            component |= 1 << one
            seen |= component
            if component.bit_count() > 1:
                yield component


def _reached(following: Sequence[int], first: int, within: int) -> int:
    reached, waiting = first, first
    while waiting:
        new = 0
        for one in bits_of(waiting):
            new |= following[one]
        waiting = new & within & ~reached
        reached |= waiting
    return reached


def _smallest(clauses: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The clauses that no other one implies."""
    always = [on for on, off in clauses if off < 0]
    kept: list[tuple[int, int]] = []
    for on, off in sorted(clauses, key=lambda clause: clause[0].bit_count()):
        if off >= 0 and on >> off & 1:
            continue
        implied = any(not other & ~on for other, its in kept if its in (-1, off)) or (
            off >= 0 and any(not other & ~on for other in always)
        )
        if not implied:
            kept.append((on, off))
    return sorted(kept, key=lambda clause: (clause[1], clause[0].bit_count()))


def _constraint(graph: FeatureGraph, on: int, off: int) -> Constraint:
    names = tuple(graph.names[feature] for feature in bits_of(on))
    if off < 0:
        return at_least_one_of(*names)
    feature = graph.names[off]
    if len(names) == 1:
        return requires(feature, names[0])
    return Constraint(names, (feature,), f"{feature!r} requires one of {_listed(names)}")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:4]))
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"


def _cuts(graph: FeatureGraph) -> tuple[list[int], bool]:
    """Minimal sets of features of which one has to be on, and whether they are all there are.

    A choice's cuts grow from "nothing works" in rounds; a round that would need too many of them
    keeps those that were found and true before.
    """
    count = len(graph.choices)
    cuts: list[list[int]] = [[0]] * count
    exact = True
    while True:
        before = cuts
        after = []
        for choice in range(count):
            found, whole = _any_of(
                [
                    _all_of(graph, feature, before)
                    for feature in bits_of(graph.choices[choice].features)
                ]
            )
            exact = exact and whole
            after.append(found)
        cuts = after
        if cuts == before or not exact:
            break
    if not exact:
        return [graph.choices[choice].features for choice in bits_of(graph.start_needs)], False
    return _minimal(cut for choice in bits_of(graph.start_needs) for cut in cuts[choice]), True


def _all_of(graph: FeatureGraph, feature: int, cuts: Sequence[list[int]]) -> list[int]:
    inner = (cut for choice in bits_of(graph.needs[feature]) for cut in cuts[choice])
    return _minimal([1 << feature, *inner])


def _any_of(parts: Sequence[list[int]]) -> tuple[list[int], bool]:
    """The cuts of an alternation: one of each part, joined."""
    found = [0]
    for part in parts:
        found = _minimal(one | other for one in found for other in part)
        if len(found) > _MOST_CUTS:
            return [], False
    return found, True


def _minimal(sets: Iterable[int]) -> list[int]:
    kept: list[int] = []
    for one in sorted(set(sets), key=lambda mask: (mask.bit_count(), mask)):
        if not any(not other & ~one for other in kept):
            kept.append(one)
    return kept


# -------------------------------------------------------------------------------------------------
# Which features of a grammar mean others: what a feature is within, brings along, and enables.
#
# Low-level alternatives can often be reached through many others (the papers' difficulty with
# SpiderMonkey): `ways` counts them. Where there is one way only, or where every way goes through
# the
# same feature, that one is named.
#
# Each feature is taken out once, and what can then no longer appear depended on it.


@dataclass(frozen=True, slots=True)
class Implication:
    """What one feature has to do with the others."""

    feature: str
    choice: str
    """The rule that it is an alternative of; for a part that may be left out, its own name."""
    within: tuple[str, ...]
    """It stands only within these: it cannot be reached without any one of them."""
    brings: tuple[str, ...]
    """Every text that has it has these, too, though it does not stand within them."""
    enables: tuple[str, ...]
    """What cannot appear without it."""
    ways: tuple[str, ...]
    """The features that lead to it directly; ``start`` stands for the start of the grammar."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}


def implications(graph: FeatureGraph) -> list[Implication]:
    """One for each feature, in the grammar's order.

    >>> from swarmtest.subjects.grammar.generator import load_grammar
    >>> generator = load_grammar('start: "a" | "(" list ")"\\nlist: start ["," list]', length=5)
    >>> for found in implications(generator.graph):
    ...     print(found.feature, found.within, found.brings, found.ways)
    start:a () () ('start', 'start:(list)', 'list?COMMA-list')
    start:(list) () ('start:a',) ('start', 'list?COMMA-list')
    list?COMMA-list ('start:(list)',) ('start:a',) ('start:(list)',)
    """
    count = len(graph.names)
    within: list[list[int]] = [[] for _ in range(count)]
    brings: list[list[int]] = [[] for _ in range(count)]
    enables: list[list[int]] = [[] for _ in range(count)]
    for out in range(count):
        left = graph.everything & ~(1 << out)
        reached = graph.reached(left)
        for lost in bits_of(left & ~graph.effective(left)):
            (brings if reached >> lost & 1 else within)[lost].append(out)
            enables[out].append(lost)

    def names(numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(graph.names[number] for number in numbers)

    return [
        Implication(
            graph.names[feature],
            graph.choices[graph.choice_of[feature]].name,
            names(within[feature]),
            names(brings[feature]),
            names(enables[feature]),
            _ways(graph, feature),
        )
        for feature in range(count)
    ]


def _ways(graph: FeatureGraph, feature: int) -> tuple[str, ...]:
    choice = 1 << graph.choice_of[feature]
    start = ("start",) if graph.start_leads_to & choice else ()
    others = graph.leading_to(choice) & ~(1 << feature)
    return start + tuple(graph.names[other] for other in bits_of(others))
