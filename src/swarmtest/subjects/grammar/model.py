"""A grammar as plain values: rules, their alternatives, and the items of these.

Invariants:

- An item is a terminal, a reference to a rule, or a repetition of one of these. Groups have become
  rules of their own; `Rule.owner` names the rule that contains the group.
- Alternatives are numbered across all rules and repetitions across all alternatives, so a tree
  needs only numbers. Rule 0 is the start, every rule is reachable from it, and every rule and
  alternative can be finished: what cannot was pruned when the grammar was built.
- An alternative of a rule with several is a feature, and so is an optional part (``?``, ``[]`` and
  ``*``). `Alternative.feature` and `Repeat.feature` are empty for the others.

`Layout` is for grammars whose lexer makes tokens of indentation. `Sizes` has the least sizes of
trees.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

from swarmtest.core.errors import UserError
from swarmtest.subjects.grammar.compiled_sizes import Compiled, Row, compile_sizes
from swarmtest.subjects.grammar.token_texts import TokenTexts


@dataclass(frozen=True, slots=True)
class Terminal:
    """A token: a fixed text, or any text that a regular expression matches.

    >>> Terminal("PLUS", "+").pattern
    ''
    """

    name: str
    text: str = ""
    pattern: str = ""
    """A regular expression for Python's `re`, including flags; empty: the text is fixed."""
    any_case: bool = False
    """Whether a lexer accepts the fixed text in upper and lower case."""
    line: int = field(default=0, compare=False)
    """The line of the file that defines it; 0: not known."""


@dataclass(frozen=True, slots=True)
class RuleReference:
    """A reference to a rule, by its number."""

    rule: int


@dataclass(frozen=True, slots=True)
class Repeat:
    """An item that is repeated `low` to `high` times; `high` is None if there is no limit."""

    number: int
    item: Terminal | RuleReference
    low: int
    high: int | None
    feature: str = ""


Item: TypeAlias = Terminal | RuleReference | Repeat


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to write a rule."""

    number: int
    rule: int
    items: tuple[Item, ...]
    feature: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, or a group in the rule `owner`."""

    number: int
    name: str
    owner: str
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True)
class Grammar:
    """Everything that is needed to make texts of a grammar; of its source, only the path.

    >>> from swarmtest.subjects.grammar.generator import load_grammar
    >>> grammar = load_grammar('start: "a"* | "b" start', length=5).grammar
    >>> [alternative.feature for alternative in grammar.alternatives]
    ['start:a*', 'start:b-start']
    """

    path: str
    rules: tuple[Rule, ...]
    ignored: tuple[str, ...] = ()
    """Regular expressions for what may stand between tokens."""
    notes: tuple[str, ...] = ()
    """What was left out and why, one line each."""
    indented: bool = False
    """Whether a lexer makes tokens of the spaces at the start of a line."""

    @cached_property
    def alternatives(self) -> tuple[Alternative, ...]:
        """All alternatives, in the order of their numbers."""
        return tuple(alternative for rule in self.rules for alternative in rule.alternatives)

    @cached_property
    def repeats(self) -> tuple[Repeat, ...]:
        """All repetitions, in the order of their numbers."""
        repeats = [i for a in self.alternatives for i in a.items if isinstance(i, Repeat)]
        return tuple(sorted(repeats, key=lambda repeat: repeat.number))

    @cached_property
    def features(self) -> tuple[str, ...]:
        """The names of the features, in the order of the grammar."""
        names = []
        for alternative in self.alternatives:
            parts = (item.feature for item in alternative.items if isinstance(item, Repeat))
            names += [name for name in (alternative.feature, *parts) if name]
        return tuple(names)

    @cached_property
    def terminals(self) -> tuple[Terminal, ...]:
        """All terminals, each once."""
        bases = (base_of(item) for a in self.alternatives for item in a.items)
        return tuple(dict.fromkeys(base for base in bases if isinstance(base, Terminal)))


def base_of(item: Item) -> Terminal | RuleReference:
    """Return the terminal or reference of an item, which a repetition has inside."""
    return item.item if isinstance(item, Repeat) else item


def needed_rules(alternative: Alternative) -> Iterator[int]:
    """Yield the rules that an alternative needs, each as often as it needs it."""
    for item in alternative.items:
        base = base_of(item)
        if isinstance(base, RuleReference):
            yield from [base.rule] * (item.low if isinstance(item, Repeat) else 1)


# Indentation that a lexer turns into tokens.
#
# A grammar declares such tokens (`%declare _INDENT _DEDENT`, as Lark's `Indenter` requires) and has
# another token for the end of a line together with the spaces at the start of the next. In a tree,
# the declared tokens are marks; in a text, they are spaces.

INDENT, DEDENT = "\x0e", "\x0f"
_STEP = "    "


def mark_of(name: str) -> str:
    """Return the mark for a declared token of indentation; empty for any other token.

    >>> mark_of("_INDENT") == INDENT, mark_of("OTHER")
    (True, '')
    """
    return {"INDENT": INDENT, "DEDENT": DEDENT}.get(name.strip("_").upper(), "")


class Layout:
    """Arranges tokens on indented lines."""

    def __init__(self, texts: Iterable[TokenTexts], path: str) -> None:
        self._ends = [t for t in texts if t.takes("\n") and t.takes(f"\n{_STEP}")]
        if not self._ends:
            raise UserError(
                f"{path}: it declares tokens for indentation, but has none for the end of a line "
                r"and the spaces after it, like _NEWLINE: /(\r?\n[\t ]*)+/"
            )

    def lines(self, tokens: Sequence[str]) -> Iterator[tuple[list[str], str]]:
        """Yield the tokens of each line, and its end with the indentation of the next line."""
        level = 0
        line: list[str] = []
        end = ""
        for token in tokens:
            if token in (INDENT, DEDENT):
                level += 1 if token == INDENT else -1
            elif any(texts.takes(token) for texts in self._ends):
                if end:  # a line end after another one, perhaps with marks between them
                    yield line, self._indented(end, level)
                    line = []
                end = token
            else:
                if end:
                    yield line, self._indented(end, level)
                    line, end = [], ""
                line.append(token)
        yield line, self._indented(end, level) if end else ""

    def _indented(self, end: str, level: int) -> str:
        """Return a line end with the indentation of a level; a plain one if that is no token."""
        before, newline, _ = end.rpartition("\n")
        plain = f"\n{_STEP * level}"
        text = (before if newline else end.rstrip(" \t")) + plain
        return text if any(texts.takes(text) for texts in self._ends) else plain


# How small the trees of each rule can be, and which alternatives can grow without limit.
#
# The least number of tokens and the least depth of a rule are least fixed points, given the
# alternatives that are on. A rule that cannot be finished with these has size `NEVER`. Rules are
# visited in an order for which one round is enough when everything is on. After that, only rules
# are visited again that need one whose size has changed. When sizes were computed a few times,
# `compiled_sizes` does it.

NEVER = 1 << 40
"""The size of a rule that cannot be finished; larger than any real size."""


class Sizes(NamedTuple):
    """The least sizes of rules and alternatives, by number; depth counts nested rules."""

    rule_tokens: Sequence[int]
    rule_depth: Sequence[int]
    tokens: Sequence[int]
    """The least tokens of each alternative."""
    depth: Sequence[int]
    """The least depth of each alternative."""


_FEW_TIMES = 8
"""So often sizes are computed before it is worth compiling a function: that takes as long."""
_MOST_COMPILED = 2000
"""Alternatives of the largest grammar for which a function is compiled."""


class SizeTables:
    """The data that sizes are computed from, prepared once for a grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self.rules = len(grammar.rules)
        self.alternatives = len(grammar.alternatives)
        self._rows: list[tuple[int, list[Row]]] = [
            (rule.number, [_row(alternative) for alternative in rule.alternatives])
            for rule in grammar.rules
        ]
        self._users = self._users_of_rows()
        self._times = 0
        self._compiled: Compiled | None = None
        everything = self.sizes_by_tables([True] * self.alternatives)
        self._rows.sort(key=lambda entry: everything.rule_depth[entry[0]])
        self._users = self._users_of_rows()

    def __getstate__(self) -> dict[str, object]:
        """Return the data without the compiled function, which cannot be pickled."""
        return self.__dict__ | {"_compiled": None}

    def _users_of_rows(self) -> list[tuple[list[int], list[int]]]:
        """Return, for each row, the rows that need its rule: those up to itself, and all."""
        users: dict[int, list[int]] = {rule: [] for rule, _ in self._rows}
        for position, (_, entry) in enumerate(self._rows):
            for other in {other for _, _, needed in entry for other, _ in needed}:
                users[other].append(position)
        return [
            ([user for user in users[rule] if user <= position], users[rule])
            for position, (rule, _) in enumerate(self._rows)
        ]

    def sizes(self, on: Sequence[object]) -> Sizes:
        """Return the sizes when only the alternatives with a true value in `on` may be used."""
        if self._compiled is not None:
            return Sizes(*self._compiled(on))
        self._times += 1
        if self._times > _FEW_TIMES and self.alternatives <= _MOST_COMPILED:
            self._compiled = compile_sizes(self._rows, self.alternatives, NEVER)
        return self.sizes_by_tables(on)

    def sizes_by_tables(self, on: Sequence[object]) -> Sizes:
        """Return the sizes without a compiled function."""
        rule_tokens, rule_depth = [NEVER] * self.rules, [NEVER] * self.rules
        tokens, depth = [NEVER] * self.alternatives, [NEVER] * self.alternatives
        rows, users = self._rows, self._users
        pending: Sequence[int] = range(len(rows))
        first = True
        while pending:
            again: set[int] = set()
            for position in pending:
                rule, entry = rows[position]
                before, before_depth = least, lowest = rule_tokens[rule], rule_depth[rule]
                for number, own, needed in entry:
                    if not on[number]:
                        continue
                    size, level = own, 0
                    for other, times in needed:
                        size += rule_tokens[other] * times
                        if rule_depth[other] > level:
                            level = rule_depth[other]
                    level += 1
                    tokens[number], depth[number] = size, level
                    if size < least:
                        least = size
                    if level < lowest:
                        lowest = level
                if least < before or lowest < before_depth:
                    rule_tokens[rule], rule_depth[rule] = least, lowest
                    # In the first round, the rows after this one are still to come.
                    again.update(users[position][0 if first else 1])
            pending, first = sorted(again), False
        return Sizes(*map(tuple, (rule_tokens, rule_depth, tokens, depth)))


def _row(alternative: Alternative) -> Row:
    needed = Counter(needed_rules(alternative))
    bases = [(i.item, i.low) if isinstance(i, Repeat) else (i, 1) for i in alternative.items]
    own = sum(times for base, times in bases if isinstance(base, Terminal))
    return alternative.number, own, tuple(needed.items())


def endless_alternatives(grammar: Grammar) -> frozenset[int]:
    """Return the alternatives whose trees can grow without limit, by recursion or repetition."""
    inside = {
        rule.number: {
            base.rule
            for alternative in rule.alternatives
            for item in alternative.items
            if isinstance(base := base_of(item), RuleReference)
        }
        for rule in grammar.rules
    }
    endless = {rule for rule in inside if rule in _reached(inside, inside[rule])}
    alternatives: set[int] = set()
    while True:
        before = len(alternatives)
        for alternative in grammar.alternatives:
            if any(_is_endless(item, endless) for item in alternative.items):
                alternatives.add(alternative.number)
                endless.add(alternative.rule)
        if len(alternatives) == before:
            return frozenset(alternatives)


def _is_endless(item: Item, endless: set[int]) -> bool:
    base = base_of(item)
    unlimited = isinstance(item, Repeat) and item.high is None
    return unlimited or (isinstance(base, RuleReference) and base.rule in endless)


def _reached(inside: Mapping[int, set[int]], first: set[int]) -> set[int]:
    reached: set[int] = set()
    waiting = list(first)
    while waiting:
        rule = waiting.pop()
        if rule not in reached:
            reached.add(rule)
            waiting += inside[rule]
    return reached
