"""Shrink a tree to a smaller tree of the same grammar, for tests that fail.

These moves are tried from the root down, until none works any more:

1. Replace the tree of a rule by the smallest tree of that rule. When that no longer helps, try the
   smallest tree of each alternative, and other alternatives with the subtrees that fit them.
2. Replace the tree of a rule by one of its own subtrees of the same rule.
3. Remove items from a repetition. In ``x ("," x)*``, also let the next ``x`` replace the first.
4. Make the text of a token shorter and plainer.

Every move makes the tree smaller, by tokens, then characters, then nodes, or makes a text plainer,
so this ends. Every tree that is tried is a tree of the grammar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from swarmtest.core.errors import UserError
from swarmtest.reducer.reducer import minimised
from swarmtest.subjects.grammar.growth import Tree, tokens_of
from swarmtest.subjects.grammar.model import (
    Alternative,
    Grammar,
    Item,
    Repeat,
    RuleReference,
    Terminal,
    base_of,
    needed_rules,
)
from swarmtest.subjects.grammar.token_texts import TokenTexts, simplicity

Path: TypeAlias = tuple[int, ...]
"""The position of a subtree: an index at each level, from the root down."""


class Shrinker:
    """One reduction: the smallest interesting tree so far, and the texts that were tried.

    `interesting` is called with trees of the grammar, and never twice for the same tokens.
    """

    def __init__(
        self,
        grammar: Grammar,
        texts: dict[Terminal, TokenTexts],
        tree: Tree,
        interesting: Callable[[Tree], bool],
    ) -> None:
        self._grammar = grammar
        self._texts = texts
        self._smallest = SmallestTrees(grammar, texts)
        self._interesting = interesting
        self._tried: dict[tuple[str, ...], bool] = {}
        self.tree = checked(grammar, tree)

    def run(self) -> Tree:
        """Return the smallest tree that the moves lead to."""
        for thorough in (False, True):
            while self._round(thorough):
                pass
        return self.tree

    def _round(self, thorough: bool) -> bool:
        before = self.tree
        self._visit((), thorough)
        if thorough:
            for path in [*_token_paths(self.tree)]:
                self._shorten_token(path)
        return self.tree != before

    def _visit(self, path: Path, thorough: bool) -> None:
        if _at(self.tree, path)[0] < 0:
            self._shorten_repeat(path)
        else:
            self._simplify_rule(path, thorough)
            while self._hoist(path, thorough) or self._move_up(path):
                pass
        # Visiting a child replaces `self.tree`, so the node is looked up each time.
        for position in range(1, len(_at(self.tree, path))):
            if isinstance(_at(self.tree, path)[position], list):
                self._visit((*path, position), thorough)

    def _simplify_rule(self, path: Path, thorough: bool) -> None:
        rule = self._grammar.rules[self._rule_at(path)]
        if self._replace(path, self._smallest.of_rule(rule.number)) or not thorough:
            return
        node = _at(self.tree, path)
        trees = [self._smallest.of_alternative(a.number) for a in rule.alternatives]
        trees += [self._recast(node, a) for a in rule.alternatives if a.number != node[0]]
        for tree in sorted(trees, key=_size):
            if self._replace(path, tree):
                return

    def _recast(self, node: Tree, alternative: Alternative) -> Tree:
        """Return the smallest tree of another alternative, with the node's children that fit it."""
        tree = self._smallest.of_alternative(alternative.number)
        spare = [child for child in node[1:] if isinstance(child, list) and child[0] >= 0]
        for position, item in enumerate(alternative.items, start=1):
            if isinstance(item, RuleReference):
                rules = [self._grammar.alternatives[child[0]].rule for child in spare]
                if item.rule in rules:
                    tree[position] = spare.pop(rules.index(item.rule))
        return tree

    def _hoist(self, path: Path, thorough: bool) -> bool:
        """Replace a tree by one of its subtrees of the same rule; try the smallest first."""
        node, rule = _at(self.tree, path), self._rule_at(path)
        subtrees = [*self._subtrees(node, rule, thorough)]
        return any(self._replace(path, inner) for inner in sorted(subtrees, key=_size))

    def _move_up(self, path: Path) -> bool:
        """Replace a child by the tree of the same rule in the first item of a repetition."""
        node = _at(self.tree, path)
        for position, child in enumerate(node):
            if not isinstance(child, list) or child[0] < 0:
                continue
            rule = self._grammar.alternatives[child[0]].rule
            for other in range(1, len(node)):
                moved = self._without_first(node[other], rule)
                if moved is not None:
                    inner, rest = moved
                    new = [*node]
                    new[position], new[other] = inner, rest
                    if self._replace(path, new):
                        return True
        return False

    def _without_first(self, node: Any, rule: int) -> tuple[Tree, Tree] | None:
        """Return a rule's tree in the first item of a repetition, and the repetition without it.

        None if the node is not a repetition, cannot lose an item, or has no such tree.
        """
        if not isinstance(node, list) or node[0] >= 0:
            return None
        if len(node) - 1 <= self._grammar.repeats[-1 - node[0]].low:
            return None
        subtree = next(self._subtrees([0, node[1]], rule, False), None)
        return None if subtree is None else (subtree, [node[0], *node[2:]])

    def _subtrees(self, node: Tree, rule: int, nested: bool) -> Iterator[Tree]:
        """Yield the subtrees of a rule below a node; with `nested`, also those inside others."""
        for child in node[1:]:
            if isinstance(child, list):
                same = child[0] >= 0 and self._grammar.alternatives[child[0]].rule == rule
                if same:
                    yield child
                if nested or not same:
                    yield from self._subtrees(child, rule, nested)

    def _shorten_repeat(self, path: Path) -> None:
        code, *items = _at(self.tree, path)
        low = self._grammar.repeats[-1 - code].low
        if len(items) <= low:
            return

        def still(kept: Sequence[Any]) -> bool:
            return len(kept) >= low and self._holds(_with(self.tree, path, [code, *kept]))

        self.tree = _with(self.tree, path, [code, *minimised(items, still)])

    def _shorten_token(self, path: Path) -> None:
        terminal = self._terminal_at(path)
        if not terminal.pattern:
            return
        texts = self._texts[terminal]

        def still(text: str) -> bool:
            return texts.takes(text) and self._holds(_with(self.tree, path, text))

        text = _at(self.tree, path)
        plain = sorted({texts.smallest, *texts.notable}, key=simplicity)
        simpler = (t for t in plain if simplicity(t) < simplicity(text))
        short = next(filter(still, simpler), "")
        if not short:
            short = "".join(minimised(text, lambda kept: still("".join(kept))))
            short = self._plainer(short, still)
        self.tree = _with(self.tree, path, short)

    def _plainer(self, text: str, still: Callable[[str], bool]) -> str:
        """Return the text with characters replaced by 0 or a, where it still is interesting."""
        for position in range(len(text)):
            for plain in "0a":
                changed = f"{text[:position]}{plain}{text[position + 1 :]}"
                if simplicity(changed) < simplicity(text) and still(changed):
                    text = changed
                    break
        return text

    def _replace(self, path: Path, new: Tree) -> bool:
        if _size(new) >= _size(_at(self.tree, path)):
            return False
        tree = _with(self.tree, path, new)
        if not self._holds(tree):
            return False
        self.tree = tree
        return True

    def _holds(self, tree: Tree) -> bool:
        key = tuple(tokens_of(tree))
        if key not in self._tried:
            self._tried[key] = self._interesting(tree)
        return self._tried[key]

    def _rule_at(self, path: Path) -> int:
        number: int = _at(self.tree, path)[0]
        return self._grammar.alternatives[number].rule

    def _terminal_at(self, path: Path) -> Terminal:
        code = _at(self.tree, path[:-1])[0]
        if code < 0:
            item: Item = self._grammar.repeats[-1 - code].item
        else:
            item = self._grammar.alternatives[code].items[path[-1] - 1]
        assert isinstance(item, Terminal)
        return item


def checked(grammar: Grammar, tree: Any) -> Tree:
    """Return the tree if it is a tree of this grammar; otherwise raise `UserError`."""
    if not _is_of_rule(grammar, tree, 0):
        raise UserError(
            f"this test does not fit the grammar {grammar.path}: was the grammar edited since?"
        )
    return tree  # type: ignore[no-any-return]


def _is_of_rule(grammar: Grammar, tree: Any, rule: int) -> bool:
    if not isinstance(tree, list) or not tree or type(tree[0]) is not int:
        return False
    if not 0 <= tree[0] < len(grammar.alternatives):
        return False
    alternative = grammar.alternatives[tree[0]]
    return (
        alternative.rule == rule
        and len(tree) == len(alternative.items) + 1
        and all(
            _is_of_item(grammar, c, i) for c, i in zip(tree[1:], alternative.items, strict=True)
        )
    )


def _is_of_item(grammar: Grammar, tree: Any, item: Item) -> bool:
    if isinstance(item, Repeat):
        return (
            isinstance(tree, list)
            and tree[:1] == [-1 - item.number]
            and item.low <= len(tree) - 1 <= (item.high if item.high is not None else len(tree))
            and all(_is_of_item(grammar, child, item.item) for child in tree[1:])
        )
    base = base_of(item)
    return (
        _is_of_rule(grammar, tree, base.rule)
        if isinstance(base, RuleReference)
        else isinstance(tree, str)
    )


def _at(tree: Any, path: Path) -> Any:
    for position in path:
        tree = tree[position]
    return tree


def _with(tree: Any, path: Path, new: Any) -> Any:
    """Return a copy of the tree with a new subtree at a path; the rest is shared."""
    if not path:
        return new
    position, *rest = path
    changed = _with(tree[position], tuple(rest), new)
    return [*tree[:position], changed, *tree[position + 1 :]]


def _token_paths(tree: Tree, path: Path = ()) -> Iterator[Path]:
    for position, child in enumerate(tree):
        if isinstance(child, str):
            yield (*path, position)
        elif isinstance(child, list):
            yield from _token_paths(child, (*path, position))


def _size(tree: Any) -> tuple[int, int, int]:
    """Return the numbers of tokens, characters and nodes, by which trees are compared."""
    tokens = tokens_of(tree)
    return len(tokens), sum(map(len, tokens)), _nodes(tree)


def _nodes(tree: Tree) -> int:
    return 1 + sum(_nodes(child) for child in tree if isinstance(child, list))


# Smallest trees.

_NEVER = (1 << 40, 1 << 40)


class SmallestTrees:
    """Makes the smallest trees of one grammar: those with the fewest tokens, then the least depth.

    The cost of a tree is greater than that of each of its subtrees, so building a tree from the
    best alternatives always ends.
    """

    def __init__(self, grammar: Grammar, texts: Mapping[Terminal, TokenTexts]) -> None:
        self.grammar = grammar
        self._texts = texts
        self._best = self._best_alternatives()

    def of_rule(self, rule: int) -> Tree:
        """Return the smallest tree of a rule."""
        return self.of_alternative(self._best[rule])

    def of_alternative(self, number: int) -> Tree:
        """Return the smallest tree that starts with an alternative."""
        node: Tree = [number]
        for item in self.grammar.alternatives[number].items:
            if isinstance(item, Repeat):
                items = (self._of_item(item.item) for _ in range(item.low))
                node.append([-1 - item.number, *items])
            else:
                node.append(self._of_item(item))
        return node

    def _of_item(self, item: Terminal | RuleReference) -> Any:
        if isinstance(item, RuleReference):
            return self.of_rule(item.rule)
        return self._texts[item].smallest if item.pattern else item.text

    def _best_alternatives(self) -> list[int]:
        rules = self.grammar.rules
        costs = [_NEVER] * len(rules)
        best = [0] * len(rules)
        changed = True
        while changed:
            changed = False
            for alternative in self.grammar.alternatives:
                cost = _cost(alternative, costs)
                if cost < costs[alternative.rule]:
                    costs[alternative.rule], best[alternative.rule] = cost, alternative.number
                    changed = True
        return best


def _cost(alternative: Alternative, costs: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the tokens and the depth of an alternative's smallest tree, given those of rules."""
    needed = [costs[rule] for rule in needed_rules(alternative)]
    own = sum(
        item.low if isinstance(item, Repeat) else 1
        for item in alternative.items
        if isinstance(base_of(item), Terminal)
    )
    return own + sum(n[0] for n in needed), 1 + max((n[1] for n in needed), default=0)
