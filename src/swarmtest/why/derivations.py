"""Explain tests of grammars: which productions are needed, and which parts may be anything.

Each part of the derivation tree, from the root down, is replaced by parts of the same rule from
other generated tests. If the fault always stays, the part is free, and what is below it is not
looked at. Otherwise its production is needed; productions that keep the fault in its place can
stand in for it. Then productions are inserted: an item more in a repetition, or a part that has the
old one inside (``(x)`` or ``x + 1`` for ``x``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.result import Fault
from swarmtest.core.seeds import key_of
from swarmtest.subjects.grammar.generator import GrammarGenerator
from swarmtest.subjects.grammar.growth import Tree
from swarmtest.subjects.grammar.model import Repeat
from swarmtest.why.explanation import (
    IRRELEVANT,
    SUPPRESSOR,
    UNCLEAR,
    Explanation,
    InsertionFact,
    StepFact,
    ValueFact,
    share_interval,
)
from swarmtest.why.variant_runs import VariantOutcome, VariantRuns

_GENERATED = 60
_TRIED = 8
"""Other parts that are tried in place of a part."""
_INSERTED = 30
"""Insertions of one production that are tried."""
_LEAST_EFFECT = 0.1
_PART_SHARE = 0.6
"""The share of the runs for replacing parts; the rest is for insertions."""
_LONGEST_TEXT = 30
UNSUPPORTED = "the order of parts is not tried: a grammar says where its parts belong"


def grammar_of(subject: Any, test: Any) -> GrammarGenerator | None:
    """Return the grammar of a test that has a derivation tree; None for other tests."""
    if not isinstance(test, dict) or not isinstance(test.get("tree"), list):
        return None
    generator = getattr(subject, "generator", None)
    if isinstance(generator, GrammarGenerator):
        return generator
    spec = getattr(subject, "spec", None)
    grammar = getattr(getattr(spec, "generate", None), "grammar", None)
    return grammar if isinstance(grammar, GrammarGenerator) else None


def explain_derivation(
    grammar: GrammarGenerator, test: Any, fault: Fault, runs: VariantRuns, seed: int
) -> Explanation:
    """Explain a test by replacing parts of its derivation tree."""
    study = _Derivation(grammar, test, runs)
    runs.check(test, test)
    steps: list[StepFact] = []
    values: list[ValueFact] = []
    insertions: list[InsertionFact] = []
    parts = _parts_by_rule(grammar, seed)
    with runs.limited(int(_PART_SHARE * runs.budget.runs)):
        for fact in study.facts(parts):
            if fact.is_needed:
                steps += [fact.step()] * bool(fact.feature)  # others are in every test
            else:
                values.append(fact.value(max(len(steps) - 1, 0)))
    with runs.limited(runs.budget.runs):
        for inserted in study.insertions(parts, seed):
            insertions.append(inserted)  # noqa: PERF402  # what was found stays when the runs end
    insertions.sort(key=lambda fact: (fact.role != SUPPRESSOR, -fact.low, -fact.gone))
    return Explanation(
        fault.id,
        tuple(steps),
        values=tuple(values),
        insertions=tuple(insertions),
        kept=study.kept,
        variants=study.kept,
        runs=runs.runs,
        cpu_seconds=runs.cpu_seconds,
        seed=seed,
        is_complete=not runs.is_spent,
        is_ordered=False,
        is_derivation=True,
        notes=(UNSUPPORTED,),
    )


@dataclass(frozen=True)
class _PartFact:
    """What replacing one part of the tree showed."""

    rule: str
    feature: str
    text: str
    kept: int
    runs: int
    others: tuple[str, ...]
    """Productions that kept the fault in its place."""

    @property
    def is_needed(self) -> bool:
        return self.kept < self.runs

    def step(self) -> StepFact:
        return StepFact(self.feature, self.text, self.others, self.runs)

    def value(self, number: int) -> ValueFact:
        return ValueFact(number, self.rule, "any", f"any {self.rule}", self.kept, self.runs)


@dataclass
class _Derivation:
    grammar: GrammarGenerator
    test: Any
    runs: VariantRuns
    kept: int = 0

    def facts(self, others: dict[int, list[Tree]]) -> Iterator[_PartFact]:
        free: list[tuple[int, ...]] = []
        for path, node in _nodes(self.test["tree"]):
            if any(path[: len(above)] == above for above in free):
                continue
            fact = self._fact(path, node, others)
            if fact is None:
                continue
            if not fact.is_needed:
                free.append(path)
                self.kept += fact.kept
            yield fact

    def _fact(
        self, path: tuple[int, ...], node: Tree, others: dict[int, list[Tree]]
    ) -> _PartFact | None:
        alternatives = {a.number: a for a in self.grammar.grammar.alternatives}
        alternative = alternatives[node[0]]
        text = self.grammar.text(node)
        kept = gone = 0
        instead: list[str] = []
        for other in others.get(alternative.rule, ()):
            if kept + gone >= _TRIED:
                break
            if self.grammar.text(other) == text:
                continue
            tree = _with_node(self.test["tree"], path, other)
            variant = {**self.test, "text": self.grammar.text(tree), "tree": tree}
            outcome = self.runs.outcome(variant)
            if outcome.is_kept:
                kept += 1
                name = alternatives[other[0]].feature
                if name and name != alternative.feature and name not in instead:
                    instead.append(name)
            elif outcome is VariantOutcome.GONE:
                gone += 1
        if not kept + gone:
            return None
        rule = self.grammar.grammar.rules[alternative.rule]
        return _PartFact(
            rule.owner or rule.name,
            alternative.feature,
            text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…",
            kept,
            kept + gone,
            tuple(instead),
        )

    def insertions(self, others: dict[int, list[Tree]], seed: int) -> Iterator[InsertionFact]:
        """Insert each production at many places; yield what that does to the fault."""
        for feature, trees in _enlarged(self.grammar, self.test["tree"], others).items():
            rng = random.Random(key_of(f"why:{seed}:insert {feature}"))
            gone = kept = 0
            for tree in rng.sample(trees, min(len(trees), _INSERTED)):
                variant = {**self.test, "text": self.grammar.text(tree), "tree": tree}
                outcome = self.runs.outcome(variant)
                kept += outcome.is_kept
                gone += outcome is VariantOutcome.GONE
            if gone + kept:
                low, high = share_interval(gone, gone + kept)
                role = UNCLEAR if gone else IRRELEVANT
                role = SUPPRESSOR if low > _LEAST_EFFECT else role
                yield InsertionFact(feature, role, gone, gone + kept, low, high)


def _enlarged(
    grammar: GrammarGenerator, tree: Tree, others: dict[int, list[Tree]]
) -> dict[str, list[Tree]]:
    """Return trees with one part more, by the production of that part, each text once.

    A part that brings other new productions with it would tell nothing about its own.
    """
    features = {a.number: a.feature for a in grammar.grammar.alternatives}
    own = {features[node[0]] for _, node in _nodes(tree)}
    found: dict[str, dict[str, Tree]] = {}
    for feature, larger in (*_wrapped(grammar, tree, others), *_extended(grammar, tree, others)):
        new = {features[node[0]] for _, node in _nodes(larger)} - own - {""}
        if feature and new <= {feature}:
            found.setdefault(feature, {}).setdefault(grammar.text(larger), larger)
    return {feature: list(trees.values()) for feature, trees in found.items()}


def _wrapped(
    grammar: GrammarGenerator, tree: Tree, others: dict[int, list[Tree]]
) -> Iterator[tuple[str, Tree]]:
    """Yield trees in which a part is inside another part of the same rule."""
    alternatives = {a.number: a for a in grammar.grammar.alternatives}
    for path, node in _nodes(tree):
        rule = alternatives[node[0]].rule
        for other in others.get(rule, ()):
            for inner, part in _nodes(other):
                if inner and alternatives[part[0]].rule == rule:
                    larger = _with_node(tree, path, _with_node(other, inner, node))
                    yield alternatives[other[0]].feature, larger


def _extended(
    grammar: GrammarGenerator, tree: Tree, others: dict[int, list[Tree]]
) -> Iterator[tuple[str, Tree]]:
    """Yield trees in which a repetition has one item more."""
    alternatives = {a.number: a for a in grammar.grammar.alternatives}
    most = {
        -1 - item.number: item.high
        for alternative in grammar.grammar.alternatives
        for item in alternative.items
        if isinstance(item, Repeat)
    }
    for path, node in _repetitions(tree):
        high = most.get(node[0])
        item = node[1]
        if high is not None and len(node) > high:
            continue
        if not isinstance(item, list) or item[0] not in alternatives:
            continue
        for other in others.get(alternatives[item[0]].rule, ()):
            for at in range(1, len(node) + 1):
                larger = _with_node(tree, path, [*node[:at], other, *node[at:]])
                yield alternatives[other[0]].feature, larger


def _repetitions(tree: Tree, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Tree]]:
    """Yield the repetitions of a tree that have items."""
    if tree[0] < 0 and len(tree) > 1:
        yield path, tree
    for at, child in enumerate(tree):
        if isinstance(child, list):
            yield from _repetitions(child, (*path, at))


def _nodes(tree: Tree, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Tree]]:
    """Yield the parts of a tree that are productions, with their paths, from the root down."""
    if tree[0] >= 0:
        yield path, tree
    for at, child in enumerate(tree):
        if isinstance(child, list):
            yield from _nodes(child, (*path, at))


def _with_node(tree: Tree, path: tuple[int, ...], node: Tree) -> Tree:
    if not path:
        return node
    at, *rest = path
    child = tree[at]
    assert isinstance(child, list)
    return [*tree[:at], _with_node(child, tuple(rest), node), *tree[at + 1 :]]


def _parts_by_rule(grammar: GrammarGenerator, seed: int) -> dict[int, list[Tree]]:
    """Return parts of generated trees by their rules, the shortest first, without repetitions."""
    rules = {a.number: a.rule for a in grammar.grammar.alternatives}
    weights = (1.0,) * len(grammar.grammar.features)
    found: dict[int, dict[str, Tree]] = {}
    for number in range(_GENERATED):
        try:
            tree = grammar.grown(weights, key_of(f"why:{seed}:{number}"))
        except UserError:
            continue
        for _, node in _nodes(tree):
            found.setdefault(rules[node[0]], {}).setdefault(grammar.text(node), node)
    return {rule: _varied(list(nodes.values())) for rule, nodes in found.items()}


def _varied(nodes: list[Tree]) -> list[Tree]:
    """Return parts in an order in which different productions take turns."""
    by_production: dict[int, list[Tree]] = {}
    for node in sorted(nodes, key=lambda node: len(str(node))):
        by_production.setdefault(node[0], []).append(node)
    turns = max(map(len, by_production.values()), default=0)
    return [group[i] for i in range(turns) for group in by_production.values() if i < len(group)]
