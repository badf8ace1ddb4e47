"""Constraints and implications between the features of a grammar.

Constraints make strategies draw only configurations from which a text can be made.

With `effective_constraints`, every feature that is on can also appear in a text. This excludes no
test: a feature that cannot appear has no effect when it is on. But then the features that are on
are those that a test may contain, and statistics about a feature are about what its name says.

Two families of clauses express this. *Finishing*: a feature requires a feature for each choice that
it needs, and choices that need each other require a way out. *Reaching*: a feature requires one
that leads to it, and choices that lead to each other require a way in. Choices that need or lead to
each other form loops (as in the loop formulas of answer set programming). A component of up to
`_MOST_EXACT` choices gets clauses for all of its loops; a larger one, for its single choices and
for itself as a whole. That is not exact, so a feature may occasionally be on without effect. Each
clause has at most one negative literal. So after any decision that does not lead to a
contradiction, a configuration can be completed by turning everything else on.

With `start_constraints`, only the start must be finished. The clauses are the minimal sets of
features of which one must be on (minimal cut sets), if there are at most `_MOST_CUTS` of them.

`implications` says, for each feature, which others it stands within, brings along and enables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swarmtest.core.constraints import Constraint, at_least_one_of, requires
from swarmtest.subjects.grammar.feature_graph import FeatureGraph, bits_of, mask_of

_MOST_EXACT = 8
_MOST_CUTS = 200


def effective_constraints(graph: FeatureGraph) -> tuple[Constraint, ...]:
    """Return constraints under which every feature that is on can appear in a text.

    >>> from swarmtest.subjects.grammar.generator import load_grammar
    >>> generator = load_grammar('start: "a" | "(" start ")" | "b" [start]', length=5)
    >>> for constraint in generator.constraints:
    ...     print(constraint)
    at least one of 'start:a', 'start:(start)', 'start:b-start?'
    'start:(start)' requires one of 'start:a', 'start:b-start?'
    'start?start' requires 'start:b-start?'
    """
    # A clause is a mask of features of which one must be on, and the number of the feature that
    # requires this; -1: always required. A dict keeps them in the order in which they were added.
    clauses: dict[tuple[int, int], None] = {}
    for choice in bits_of(graph.start_needs):
        clauses[graph.choices[choice].features, -1] = None
    for feature, needed in enumerate(graph.needs):
        for choice in bits_of(needed & ~(1 << graph.choice_of[feature])):
            clauses[graph.choices[choice].features, feature] = None
    for loop in _loops([_needs_of(graph, c) for c in range(len(graph.choices))]):
        features = _features_of(graph, loop)
        inside = mask_of(f for f in bits_of(features) if graph.needs[f] & loop)
        for feature in bits_of(inside):
            clauses[features & ~inside, feature] = None
    for loop in _loops([_leads_of(graph, c) for c in range(len(graph.choices))]):
        if not loop & graph.start_leads_to:
            features = _features_of(graph, loop)
            for feature in bits_of(features):
                clauses[graph.leading_to(loop) & ~features, feature] = None
    return tuple(_constraint(graph, on, off) for on, off in _not_implied(clauses))


def start_constraints(graph: FeatureGraph) -> tuple[tuple[Constraint, ...], bool]:
    """Return constraints under which the start can be finished, and whether they suffice."""
    cuts, exact = _cuts(graph)
    return tuple(_constraint(graph, cut, -1) for cut in cuts), exact


def _needs_of(graph: FeatureGraph, choice: int) -> int:
    needs = 0
    for feature in bits_of(graph.choices[choice].features):
        needs |= graph.needs[feature]
    return needs


def _leads_of(graph: FeatureGraph, choice: int) -> int:
    leads_to = 0
    for feature in bits_of(graph.choices[choice].features):
        leads_to |= graph.leads_to[feature]
    return leads_to


def _features_of(graph: FeatureGraph, choices: int) -> int:
    features = 0
    for choice in bits_of(choices):
        features |= graph.choices[choice].features
    return features


def _loops(following: Sequence[int]) -> Iterator[int]:
    """Yield sets of choices that follow each other: single choices, and loops of several.

    `following` has, for each choice, the mask of the choices that it needs or leads to.
    """
    yield from (1 << choice for choice in range(len(following)))
    for component in _components(following):
        members = [*bits_of(component)]
        if len(members) > _MOST_EXACT:
            yield component
            continue
        for subset in range(1, 1 << len(members)):
            loop = mask_of(members[position] for position in bits_of(subset))
            if loop.bit_count() > 1 and _connected(following, loop):
                yield loop


def _connected(following: Sequence[int], loop: int) -> bool:
    """Return whether every choice of a set reaches every other without leaving the set."""
    return all(_reached(following, 1 << choice, loop) == loop for choice in bits_of(loop))


def _components(following: Sequence[int]) -> Iterator[int]:
    """Yield the strongly connected components with more than one choice."""
    whole = (1 << len(following)) - 1
    reach = [_reached(following, 1 << choice, whole) for choice in range(len(following))]
    seen = 0
    for choice, others in enumerate(reach):
        if not seen >> choice & 1:
            component = mask_of(other for other in bits_of(others) if reach[other] >> choice & 1)
            component |= 1 << choice
            seen |= component
            if component.bit_count() > 1:
                yield component


def _reached(following: Sequence[int], first: int, within: int) -> int:
    reached, waiting = first, first
    while waiting:
        new = 0
        for choice in bits_of(waiting):
            new |= following[choice]
        waiting = new & within & ~reached
        reached |= waiting
    return reached


def _not_implied(clauses: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the clauses that no other clause implies."""
    always = [on for on, off in clauses if off < 0]
    kept: list[tuple[int, int]] = []
    for on, off in sorted(clauses, key=lambda clause: clause[0].bit_count()):
        if off >= 0 and on >> off & 1:
            continue  # always true
        implied = any(not other & ~on for other, its_off in kept if its_off in (-1, off)) or (
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
    """Return minimal sets of features of which one must be on, and whether these are all.

    The cuts of each choice start as "nothing works" (an empty cut) and are refined in rounds until
    they no longer change. If a round needs too many cuts, return the features of the choices that
    the start needs.
    """
    count = len(graph.choices)
    cuts: list[list[int]] = [[0]] * count
    exact = True
    while True:
        before = cuts
        after = []
        for choice in range(count):
            choice_cuts, all_cuts = _any_of(
                [
                    _all_of(graph, feature, before)
                    for feature in bits_of(graph.choices[choice].features)
                ]
            )
            exact = exact and all_cuts
            after.append(choice_cuts)
        cuts = after
        if cuts == before or not exact:
            break
    if not exact:
        return [graph.choices[choice].features for choice in bits_of(graph.start_needs)], False
    return _minimal(cut for choice in bits_of(graph.start_needs) for cut in cuts[choice]), True


def _all_of(graph: FeatureGraph, feature: int, cuts: Sequence[list[int]]) -> list[int]:
    """Return the cuts of a feature: itself, and those of every choice that it needs."""
    inner = (cut for choice in bits_of(graph.needs[feature]) for cut in cuts[choice])
    return _minimal([1 << feature, *inner])


def _any_of(parts: Sequence[list[int]]) -> tuple[list[int], bool]:
    """Return the cuts of a choice, each the union of a cut of every feature, if not too many."""
    cuts = [0]
    for part in parts:
        cuts = _minimal(cut | other for cut in cuts for other in part)
        if len(cuts) > _MOST_CUTS:
            return [], False
    return cuts, True


def _minimal(sets: Iterable[int]) -> list[int]:
    """Return the sets of which no other is a subset, the smallest first."""
    minimal: list[int] = []
    for candidate in sorted(set(sets), key=lambda mask: (mask.bit_count(), mask)):
        if not any(not other & ~candidate for other in minimal):
            minimal.append(candidate)
    return minimal


# Implications between features.
#
# Low-level alternatives can often be reached through many others; the papers report this difficulty
# for SpiderMonkey. `ways` lists these, and `within` names a feature that all ways go through.


@dataclass(frozen=True, slots=True)
class Implication:
    """The relations of one feature to the others."""

    feature: str
    choice: str
    """The rule of which it is an alternative; for an optional part, its own name."""
    within: tuple[str, ...]
    """The features that it always stands within: it cannot be reached if one of them is off."""
    brings: tuple[str, ...]
    """The features that every text with it contains too, but that it does not stand within."""
    enables: tuple[str, ...]
    """The features that cannot appear without it."""
    ways: tuple[str, ...]
    """The features that lead to it directly; ``start`` stands for the start of the grammar."""

    def to_json(self) -> dict[str, Any]:
        """Return the implication as JSON data."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}


def implications(graph: FeatureGraph) -> list[Implication]:
    """Return an implication for each feature, in the grammar's order.

    Each feature is removed in turn; the features that can then no longer appear depend on it.

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
    for removed in range(count):
        left = graph.everything & ~(1 << removed)
        reached = graph.reached(left)
        for lost in bits_of(left & ~graph.effective(left)):
            (brings if reached >> lost & 1 else within)[lost].append(removed)
            enables[removed].append(lost)

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
