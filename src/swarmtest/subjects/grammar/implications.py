"""Which features of a grammar mean others: what a feature is within, brings along, and enables.

Low-level alternatives can often be reached through many others (the papers' difficulty with
SpiderMonkey): `ways` counts them. Where there is one way only, or where every way goes through the
same feature, that one is named.

Each feature is taken out once, and what can then no longer appear depended on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from swarmtest.subjects.grammar.feature_graph import FeatureGraph, bits_of


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

    >>> from swarmtest.subjects.grammar import load_grammar
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
