"""Load a grammar, and generate random texts of it under weights and size limits.

`load_grammar` reads a grammar file and returns a `GrammarGenerator`, which brings the other modules
together: the model, the feature graph, growing, printing and shrinking.
"""

from __future__ import annotations

import copy
import functools
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from swarmtest.core.configuration import Configuration
from swarmtest.core.constraints import Constraint
from swarmtest.core.dimensions import Feature
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.subjects.grammar.feature_constraints import effective_constraints, start_constraints
from swarmtest.subjects.grammar.feature_graph import FeatureGraph, feature_graph
from swarmtest.subjects.grammar.growth import DEEPEST, Grower, GrowthPlan, Printer, Tree, tokens_of
from swarmtest.subjects.grammar.model import Grammar, Terminal
from swarmtest.subjects.grammar.shrinking import Shrinker
from swarmtest.subjects.grammar.token_texts import TokenTexts

LENGTH = (5, 100)
"""The default range for the number of tokens of a text; a length is drawn for every test."""
DEPTH = 50
"""The default limit of nested rules."""
_MOST_PLANS = 64


class GrammarGenerator:
    """Makes random texts of a grammar, with its alternatives as features.

    >>> generator = load_grammar('start: "a" | "b" start', length=(1, 8))
    >>> [feature.name for feature in generator.features]
    ['start:a', 'start:b-start']
    >>> tree = generator.generate({"start:a": 1, "start:b-start": 1}, seed=2)
    >>> generator.text(tree), generator.used(tree), generator.size(tree)
    ('ba', {'start:a': 1, 'start:b-start': 1}, 2)
    """

    def __init__(
        self,
        grammar: Grammar,
        depth: int = DEPTH,
        length: int | tuple[int, int] = LENGTH,
        effective: bool = True,
    ) -> None:
        self.grammar = grammar
        self.depth = _checked_depth(depth)
        self.length = _checked_length(length)
        self._texts = _token_texts(grammar)
        self._grower = Grower(grammar, self._texts)
        self._printer = Printer(grammar, self._texts)
        self._check_depth()
        self._plans: dict[tuple[float, ...] | int, GrowthPlan] = {}
        """The last plans, by weights or by the bits of the features that are on."""
        self._effective = effective

    def _check_depth(self) -> None:
        try:
            self._grower.plan((1.0,) * len(self.grammar.features))
        except UserError as error:
            raise UserError(f"{self.grammar.path}: {error}") from None

    def resized(self, length: int | tuple[int, int]) -> GrammarGenerator:
        """Return the same generator with another length of texts."""
        other = copy.copy(self)
        other.length = _checked_length(length)
        return other

    @functools.cached_property
    def features(self) -> tuple[Feature, ...]:
        """The features, in the order of the grammar."""
        return tuple(map(Feature, self.grammar.features))

    @functools.cached_property
    def graph(self) -> FeatureGraph:
        """The graph of what features need and lead to."""
        return feature_graph(self.grammar)

    @functools.cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints on configurations under which a text can be made."""
        if self._effective:
            return effective_constraints(self.graph)
        return start_constraints(self.graph)[0]

    def generate(self, weights: Mapping[str, float], seed: int) -> Tree:
        """Return the tree for some weights and a seed; features without a weight are off."""
        names = self.grammar.features
        for name in weights:
            if name not in names:
                raise UserError(f"the grammar has no feature {name!r}{did_you_mean(name, names)}")
        return self.grown(tuple(weights.get(name, 0.0) for name in names), seed)

    def plan_for(self, configuration: Configuration) -> GrowthPlan:
        """Return the part of the grammar that a configuration leaves; the last plans are kept."""
        if configuration.fractional:
            return self.plan(configuration.weights)
        # One number is found in much less time than all the weights.
        plan = self._plans.get(configuration.bits)
        return plan or self._keep(configuration.bits, configuration.weights)

    def plan(self, weights: tuple[float, ...]) -> GrowthPlan:
        """Return the part of the grammar that weights leave; the last plans are kept."""
        return self._plans.get(weights) or self._keep(weights, weights)

    def _keep(self, key: tuple[float, ...] | int, weights: tuple[float, ...]) -> GrowthPlan:
        if len(self._plans) > _MOST_PLANS:
            self._plans.clear()
        plan = self._plans[key] = self._grower.plan(weights)
        return plan

    def grown(self, weights: tuple[float, ...], seed: int) -> Tree:
        """Return the tree for a seed and one weight per feature, in the grammar's order."""
        return self.grow(self.plan(weights), seed)

    def grow(self, plan: GrowthPlan, seed: int) -> Tree:
        """Return the tree for a plan and a seed."""
        rng = random.Random(seed)
        low, high = self.length
        return self._grower.grow(plan, rng, low + int(rng.random() * (high - low + 1)), self.depth)

    def text(self, tree: Tree) -> str:
        """Return the text of a tree."""
        return self._printer.text(tree)

    def size(self, tree: Tree) -> int:
        """Return the number of tokens of a tree."""
        return len(tokens_of(tree))

    def used(self, tree: Tree) -> Mapping[str, int]:
        """Return how often a tree uses each feature, without the features that it does not use."""
        counts: Counter[int] = Counter()
        _count(tree, counts)
        named = {a.number: a.feature for a in self.grammar.alternatives}
        named |= {-1 - r.number: r.feature for r in self.grammar.repeats}
        return {named[n]: count for n, count in sorted(counts.items()) if named[n]}

    def reduced(self, tree: Tree, interesting: Callable[[Tree], bool]) -> Tree:
        """Return a smaller tree for which `interesting` holds, as it does for `tree`."""
        return Shrinker(self.grammar, self._texts, tree, interesting).run()


def load_grammar(
    path: str | Path,
    start: str = "",
    depth: int = DEPTH,
    length: int | tuple[int, int] = LENGTH,
    optional_features: bool = True,
    effective: bool = True,
) -> GrammarGenerator:
    """Return the generator for a grammar file: ``.lark``, or ``.g4`` for ANTLR version 4.

    A text that contains a line break, or a colon and a space, is a Lark grammar, not a path.

    >>> load_grammar('start: "a"+', length=3).grammar.features
    ()
    """
    if not isinstance(path, str | Path) or not str(path).strip():
        raise UserError(f"a grammar is the path of a file, or a text, not {path!r}")
    text = str(path)
    if isinstance(path, str) and ("\n" in text or ": " in text):
        grammar = _lark(text, "<grammar>", start or "start", optional_features)
    else:
        grammar = _from_file(Path(path), start, optional_features)
    return GrammarGenerator(grammar, depth, length, effective)


def _count(tree: Tree, counts: Counter[int]) -> None:
    """Count the alternatives and repetitions of a tree; an empty repetition does not count."""
    if tree[0] >= 0 or len(tree) > 1:
        counts[tree[0]] += 1
    for child in tree:
        if type(child) is list:
            _count(child, counts)


def _from_file(path: Path, start: str, optional_features: bool) -> Grammar:
    if path.suffix not in (".lark", ".g4"):
        raise UserError(f"{path}: a grammar is a .lark file, or a .g4 file (ANTLR version 4)")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = [p.name for p in path.parent.glob("*") if p.suffix in (".lark", ".g4")]
        raise UserError(f"no such grammar: {path}{did_you_mean(path.name, near)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    if path.suffix == ".g4":
        from swarmtest.subjects.grammar.antlr_source import antlr_grammar

        return antlr_grammar(path, start, optional_features)
    return _lark(text, str(path), start or "start", optional_features)


def _lark(text: str, path: str, start: str, optional_features: bool) -> Grammar:
    from swarmtest.subjects.grammar.lark_source import lark_grammar

    return lark_grammar(text, path, start, optional_features)


def _token_texts(grammar: Grammar) -> dict[Terminal, TokenTexts]:
    fixed = [t for t in grammar.terminals if not t.pattern]
    reserved = frozenset(t.text for t in fixed)
    reserved |= {f(t.text) for t in fixed if t.any_case for f in (str.lower, str.upper, str.title)}
    return {
        t: TokenTexts(
            t.name, t.pattern, reserved, f"{grammar.path}:{t.line}" if t.line else grammar.path
        )
        for t in grammar.terminals
        if t.pattern
    }


def _checked_depth(depth: int) -> int:
    if not isinstance(depth, int) or not 1 <= depth <= DEEPEST:
        raise UserError(f"depth is a number of nested rules, from 1 to {DEEPEST}, not {depth!r}")
    return depth


def _checked_length(length: int | tuple[int, int]) -> tuple[int, int]:
    low, high = length if isinstance(length, tuple) else (length, length)
    if not (isinstance(low, int) and isinstance(high, int) and 1 <= low <= high):
        raise UserError(f"length is a number of tokens above 0, or a range of them, not {length!r}")
    return low, high
