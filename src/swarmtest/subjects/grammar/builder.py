"""Build the model of a grammar from the rules that a grammar file defines.

A source (Lark, ANTLR) gives each rule as an expression; everything after that is the same for all
sources. Groups become rules of their own (`_Drafts`), what can never be finished is pruned, and
features get their names (`_Namer`). The expressions are at the end.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.subjects.grammar.model import (
    Alternative,
    Grammar,
    Item,
    Repeat,
    Rule,
    RuleReference,
    Terminal,
    base_of,
)

_LONGEST_NAME = 28


@dataclass
class _Draft:
    """A rule whose number and features are not final yet."""

    name: str
    owner: str
    ways: list[tuple[str, list[Item], str]] = field(default_factory=list)
    """Alias, items and text of each alternative."""


def build_grammar(
    path: str,
    definitions: Mapping[str, Expression],
    start: str,
    ignored: Iterable[str] = (),
    lines: Mapping[str, int] | None = None,
    optional_features: bool = True,
) -> Grammar:
    """Return the model of the rules that can be reached from `start`.

    >>> rules = {"start": Alternation((("", Terminal("A", "a")), ("", Terminal("B", "b"))))}
    >>> build_grammar("tiny", rules, "start").features
    ('start:a', 'start:b')
    """
    if start not in definitions:
        raise UserError(
            f"{path} has no rule {start!r} to start from{did_you_mean(start, definitions)}"
        )
    drafts = _Drafts(definitions)
    drafts.number_of(start)
    drafts.complete()
    where = f"{path}:{lines[start]}" if lines and start in lines else path
    usable, notes = _pruned(drafts.drafts, where, path, lines or {})
    rules = _Namer(usable, optional_features).rules()
    return Grammar(path, rules, tuple(ignored), tuple(notes))


class _Drafts:
    """The rules in the order in which they are first used; groups follow their rule."""

    def __init__(self, definitions: Mapping[str, Expression]) -> None:
        self.definitions = definitions
        self.drafts: list[_Draft] = []
        self.numbers: dict[str, int] = {}
        self.repeats = itertools.count()
        self.waiting: list[tuple[int, str]] = []

    def number_of(self, name: str) -> int:
        if name not in self.numbers:
            self.numbers[name] = self._new(name, name)
            self.waiting.append((self.numbers[name], name))
        return self.numbers[name]

    def complete(self) -> None:
        while self.waiting:
            number, name = self.waiting.pop(0)
            self._fill(number, self.definitions[name])

    def _new(self, name: str, owner: str) -> int:
        self.drafts.append(_Draft(name, owner))
        return len(self.drafts) - 1

    def _group(self, owner: str, expression: Expression) -> RuleReference:
        groups = sum(d.owner == owner for d in self.drafts)
        number = self._new(f"{owner}/{groups}", owner)
        self._fill(number, expression)
        return RuleReference(number)

    def _fill(self, number: int, expression: Expression) -> None:
        draft = self.drafts[number]
        for alias, way in ways_of(expression):
            # Groups and optional parts of an alternative with an alias are named after the alias.
            items = [*self._items(alias or draft.owner, way)]
            draft.ways.append((alias, items, spelled(way)))

    def _items(self, owner: str, expression: Expression) -> Iterator[Item]:
        match expression:
            case Terminal():
                yield expression
            case RuleName(name):
                yield RuleReference(self.number_of(name))
            case Concatenation(parts):
                for part in parts:
                    yield from self._items(owner, part)
            case Alternation(ways) if len(ways) == 1:
                yield from self._items(owner, ways[0][1])
            case Alternation():
                yield self._group(owner, expression)
            case Repetition(part, low, high):
                inner = bare(part)
                if low == high == 1:
                    yield from self._items(owner, inner)
                elif high != 0 and inner != Concatenation(()):
                    item = self._single(owner, inner)
                    yield Repeat(next(self.repeats), item, low, high, spelled(part))

    def _single(self, owner: str, part: Expression) -> Terminal | RuleReference:
        if isinstance(part, Terminal):
            return part
        if isinstance(part, RuleName):
            return RuleReference(self.number_of(part.name))
        return self._group(owner, part)


def _pruned(
    drafts: list[_Draft], where: str, path: str, lines: Mapping[str, int]
) -> tuple[list[_Draft], list[str]]:
    """Return the drafts without alternatives that can never be finished, and notes on these."""
    finished = _finished(drafts)
    if 0 not in finished:
        raise UserError(f"{where}: {_reason(drafts, finished)}")
    notes = []
    for draft in drafts:
        finite = [way for way in draft.ways if _can_finish(way[1], finished)]
        line = f"{path}:{lines[draft.owner]}" if draft.owner in lines else path
        notes += [
            f"{line}: left out, because it can never end: {draft.owner}: {text}"
            for _, items, text in draft.ways
            if not _can_finish(items, finished)
        ]
        draft.ways = [(alias, [*_possible(items, finished)], text) for alias, items, text in finite]
    return _renumbered(drafts), notes


def _finished(drafts: Sequence[_Draft]) -> set[int]:
    """Return the rules from which a text can be made."""
    finished: set[int] = set()
    while True:
        before = len(finished)
        for number, draft in enumerate(drafts):
            if any(_can_finish(items, finished) for _, items, _ in draft.ways):
                finished.add(number)
        if len(finished) == before:
            return finished


def _can_finish(items: Iterable[Item], finished: set[int]) -> bool:
    return all(
        isinstance(base_of(i), Terminal)
        or base_of(i).rule in finished  # type: ignore[union-attr]
        or (isinstance(i, Repeat) and i.low == 0)
        for i in items
    )


def _possible(items: Iterable[Item], finished: set[int]) -> Iterator[Item]:
    """Yield the items without optional parts that can never be finished."""
    for item in items:
        base = base_of(item)
        if isinstance(base, Terminal) or base.rule in finished:
            yield item


def _reason(drafts: Sequence[_Draft], finished: set[int]) -> str:
    """Return why no text can be made: the rules that need each other, beginning at the start."""
    chain, number = [0], 0
    while True:
        items = drafts[number].ways[0][1] if drafts[number].ways else []
        stuck = [base_of(i) for i in items if not _can_finish([i], finished)]
        if not stuck:
            return f"rule {drafts[number].owner!r} has no alternative: nothing can be generated"
        number = stuck[0].rule  # type: ignore[union-attr]
        if number in chain:
            break
        chain.append(number)
    names = list(dict.fromkeys(drafts[n].owner for n in [*chain, number]))
    loop = " needs ".join([*names, drafts[number].owner])
    return f"the rule {drafts[0].name!r} can never end: every alternative needs it again ({loop})"


def _renumbered(drafts: Sequence[_Draft]) -> list[_Draft]:
    """Return the drafts that can still be reached from the first one, with new numbers."""
    order: dict[int, int] = {}
    waiting = [0]
    while waiting:
        number = waiting.pop()
        if number not in order:
            order[number] = len(order)
            bases = [base_of(i) for _, items, _ in drafts[number].ways for i in items]
            waiting += [base.rule for base in reversed(bases) if isinstance(base, RuleReference)]
    new = {old: number for number, old in enumerate(sorted(order))}

    def moved(item: Item) -> Item:
        if isinstance(item, RuleReference):
            return RuleReference(new[item.rule])
        if isinstance(item, Repeat) and isinstance(item.item, RuleReference):
            return Repeat(
                item.number, RuleReference(new[item.item.rule]), item.low, item.high, item.feature
            )
        return item

    return [
        _Draft(
            drafts[old].name,
            drafts[old].owner,
            [(alias, [*map(moved, items)], text) for alias, items, text in drafts[old].ways],
        )
        for old in sorted(order)
    ]


class _Namer:
    """Makes the final rules, with unique names for features that say what they stand for."""

    def __init__(self, drafts: Sequence[_Draft], optional_features: bool) -> None:
        self.drafts = drafts
        self.optional_features = optional_features
        self.taken: set[str] = set()
        aliases = [alias for draft in drafts for alias, _, _ in draft.ways if alias]
        self.shared = {alias for alias in aliases if aliases.count(alias) > 1}

    def rules(self) -> tuple[Rule, ...]:
        numbers = itertools.count()
        repeats = itertools.count()
        rules = []
        for number, draft in enumerate(self.drafts):
            alternatives = []
            for alias, items, text in draft.ways:
                name = self._named(draft, alias, text) if len(draft.ways) > 1 else ""
                final = tuple(
                    self._repeat(alias or draft.owner, item, next(repeats))
                    if isinstance(item, Repeat)
                    else item
                    for item in items
                )
                alternatives.append(Alternative(next(numbers), number, final, name))
            rules.append(Rule(number, draft.name, draft.owner, tuple(alternatives)))
        return tuple(rules)

    def _named(self, draft: _Draft, alias: str, text: str) -> str:
        owner = draft.owner.replace(",", "|")
        if alias:
            return self._unique(f"{owner}.{alias}" if alias in self.shared else alias)
        return self._unique(f"{owner}:{_cut(text)}")

    def _repeat(self, owner: str, repeat: Repeat, number: int) -> Repeat:
        name = ""
        if repeat.low == 0 and self.optional_features:
            sign = "?" if repeat.high == 1 else "*"
            name = self._unique(f"{owner.replace(',', '|')}{sign}{_cut(repeat.feature)}")
        return Repeat(number, repeat.item, repeat.low, repeat.high, name)

    def _unique(self, wish: str) -> str:
        numbered = (f"{wish}/{n}" for n in itertools.count(2))
        name = next(name for name in itertools.chain([wish], numbered) if name not in self.taken)
        self.taken.add(name)
        return name


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 2].rstrip("-") + ".."


# Expressions: rules as a grammar file defines them, before groups become rules of their own.


@dataclass(frozen=True, slots=True)
class RuleName:
    """A reference to a rule by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Concatenation:
    """A sequence of expressions."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """Several alternatives, each with its alias (empty if it has none)."""

    ways: tuple[tuple[str, Expression], ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """An expression that is repeated `low` to `high` times; None: no limit."""

    part: Expression
    low: int
    high: int | None


Expression: TypeAlias = Terminal | RuleName | Concatenation | Alternation | Repetition


def bare(expression: Expression) -> Expression:
    """Return an expression without the groups that have a single part."""
    while True:
        match expression:
            case Alternation(((_, inner),)) | Concatenation((inner,)):
                expression = inner
            case _:
                return expression


def ways_of(expression: Expression) -> Iterator[tuple[str, Expression]]:
    """Yield the alternatives of a rule; a nested group that stands alone adds its own to them."""
    if isinstance(expression, Concatenation) and len(expression.parts) == 1:
        yield from ways_of(expression.parts[0])
    elif isinstance(expression, Alternation):
        for alias, way in expression.ways:
            inner = [*ways_of(way)]
            if alias or len(inner) == 1:
                yield alias or inner[0][0], way
            else:
                yield from inner
    else:
        yield "", expression


def spelled(expression: Expression) -> str:
    """Return a short text for an expression, without spaces and commas.

    >>> spelled(Concatenation((RuleName("expr"), Terminal("PLUS", "+"), RuleName("expr"))))
    'expr+expr'
    """
    match expression:
        case Terminal(name, text, pattern):
            plain = text and not pattern and not re.search(r"[\s,\"']", text)
            return text if plain else re.sub(r"[\s,]+", "_", re.sub("[\"']", "", name)) or "quote"
        case RuleName(name):
            return name.replace(",", "|")
        case Concatenation(parts):
            return _joined([spelled(part) for part in parts]) or "empty"
        case Alternation(ways):
            words = [spelled(way) for _, way in ways]
            return f"({'|'.join(words)})" if len(words) > 1 else words[0]
        case Repetition(part, low, high):
            sign = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high), f"~{low}..{high}")
            body = spelled(part)
            return f"({body}){sign}" if isinstance(bare(part), Concatenation) else body + sign


def _joined(words: Sequence[str]) -> str:
    """Join words, with a hyphen where two words of letters would meet."""
    text, before = "", ""
    for word in words:
        # `?`, `*` or `+` after another character is a repetition sign; alone it is a token.
        meets = re.match(r"[\w{]", word) and re.search(r"[\w}]$|.[?*+]$", before)
        text += f"-{word}" if meets else word
        before = word
    return text
