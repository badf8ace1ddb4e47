"""The graph of a grammar's features: what each feature needs, and what it leads to.

A *choice* is a rule with several alternatives, or an optional part. A choice has features, and each
time it is made, one of them is taken. A feature *needs* the choices without which it cannot be
finished, and *leads to* the choices that may stand in it. Rules with a single alternative are not
in the graph: they are replaced by what they contain. Sets of features and of choices are bit masks.

A feature is **effective** in a configuration if some text of that configuration uses it: it can be
finished, and it can be reached from the start through features that are effective themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from swarmtest.subjects.grammar.model import Grammar, Item, Repeat, RuleReference, base_of


@dataclass(frozen=True, slots=True)
class GrammarChoice:
    """A rule with several alternatives, or an optional part."""

    name: str
    features: int
    part: bool = False
    """Whether it is an optional part, which nothing needs."""


@dataclass(frozen=True)
class FeatureGraph:
    """The features and choices of a grammar, by number; features are in the grammar's order.

    >>> from swarmtest.subjects.grammar.generator import load_grammar
    >>> graph = feature_graph(load_grammar('start: "a" | "(" start ")"', length=5).grammar)
    >>> bin(graph.effective(0b11)), bin(graph.effective(0b10))
    ('0b11', '0b0')
    """

    names: tuple[str, ...]
    choices: tuple[GrammarChoice, ...]
    choice_of: tuple[int, ...]
    """The choice of each feature."""
    needs: tuple[int, ...]
    """For each feature, the mask of the choices that it needs."""
    leads_to: tuple[int, ...]
    """For each feature, the mask of the choices that it leads to."""
    start_needs: int
    start_leads_to: int

    @cached_property
    def everything(self) -> int:
        """The mask of all features."""
        return (1 << len(self.names)) - 1

    def finished(self, on: int) -> int:
        """Return the features that can be finished with only the features in `on`."""
        done, ready = 0, 0
        while True:
            before = done
            for feature in bits_of(on & ~done):
                if not self.needs[feature] & ~ready:
                    done |= 1 << feature
                    ready |= 1 << self.choice_of[feature]
            if done == before:
                return done

    def choices_with(self, features: int) -> int:
        """Return the choices that these features belong to."""
        choices = 0
        for feature in bits_of(features):
            choices |= 1 << self.choice_of[feature]
        return choices

    def works(self, on: int) -> bool:
        """Return whether any text can be made with these features."""
        return not self.start_needs & ~self.choices_with(self.finished(on))

    def effective(self, on: int) -> int:
        """Return the features that appear in some text made with the features in `on`."""
        usable = self.finished(on)
        if self.start_needs & ~self.choices_with(usable):
            return 0
        return self.reached(usable)

    def reached(self, on: int) -> int:
        """Return the features in `on` that the start leads to, finished or not."""
        reached, waiting = 0, self.start_leads_to
        while waiting:
            new = 0
            for choice in bits_of(waiting):
                new |= self.choices[choice].features
            new &= on & ~reached
            reached |= new
            waiting = 0
            for feature in bits_of(new):
                waiting |= self.leads_to[feature]
        return reached

    def leading_to(self, choices: int) -> int:
        """Return the features that lead to one of these choices."""
        return mask_of(f for f, others in enumerate(self.leads_to) if others & choices)


def bits_of(mask: int) -> Iterator[int]:
    """Yield the positions of the bits that are set.

    >>> list(bits_of(0b1010))
    [1, 3]
    """
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def mask_of(places: Iterable[int]) -> int:
    """Return the mask with bits set at these positions."""
    mask = 0
    for place in places:
        mask |= 1 << place
    return mask


def feature_graph(grammar: Grammar) -> FeatureGraph:
    """Return the graph of a grammar's features."""
    return _GraphBuilder(grammar).graph()


class _GraphBuilder:
    """Builds the graph; looks through rules with one alternative to the choices in them."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.number = {name: n for n, name in enumerate(grammar.features)}
        self.rule_choice: dict[int, int] = {}
        self.part_choice: dict[int, int] = {}
        self.choices: list[GrammarChoice] = []
        for rule in grammar.rules:
            if len(rule.alternatives) > 1:
                mask = mask_of(self.number[a.feature] for a in rule.alternatives)
                self.rule_choice[rule.number] = self._add(GrammarChoice(rule.name, mask))
        for repeat in grammar.repeats:
            if repeat.feature:
                choice = GrammarChoice(repeat.feature, 1 << self.number[repeat.feature], part=True)
                self.part_choice[repeat.number] = self._add(choice)

    def _add(self, choice: GrammarChoice) -> int:
        self.choices.append(choice)
        return len(self.choices) - 1

    def graph(self) -> FeatureGraph:
        count = len(self.number)
        choice_of, needs, leads_to = [0] * count, [0] * count, [0] * count
        for alternative in self.grammar.alternatives:
            if alternative.feature:
                feature = self.number[alternative.feature]
                choice_of[feature] = self.rule_choice[alternative.rule]
                needs[feature] = self._needs(alternative.items)
                leads_to[feature] = self._leads_to(alternative.items)
        for repeat in self.grammar.repeats:
            if repeat.feature:
                feature = self.number[repeat.feature]
                choice_of[feature] = self.part_choice[repeat.number]
                needs[feature] = self._needs([repeat.item])
                leads_to[feature] = self._leads_to([repeat.item])
        start = [RuleReference(0)]
        return FeatureGraph(
            self.grammar.features,
            tuple(self.choices),
            tuple(choice_of),
            tuple(needs),
            tuple(leads_to),
            self._needs(start),
            self._leads_to(start),
        )

    def _needs(self, items: Iterable[Item]) -> int:
        """Return the choices that must be made first for all of these items."""
        return self._first_choices(items, needed=True)

    def _leads_to(self, items: Iterable[Item]) -> int:
        """Return the choices that may come first in these items."""
        return self._first_choices(items, needed=False)

    def _first_choices(self, items: Iterable[Item], needed: bool) -> int:
        seen: set[int] = set()
        choices = 0
        waiting = [*items]
        while waiting:
            item = waiting.pop()
            base = base_of(item)
            if needed and isinstance(item, Repeat) and item.low == 0:
                continue
            if not needed and isinstance(item, Repeat) and item.feature:
                choices |= 1 << self.part_choice[item.number]
            elif not isinstance(base, RuleReference):
                continue
            elif base.rule in self.rule_choice:
                choices |= 1 << self.rule_choice[base.rule]
            elif base.rule not in seen:
                seen.add(base.rule)
                waiting += self.grammar.rules[base.rule].alternatives[0].items
        return choices
