"""The outline of a function (its basic blocks, nested as its statements are), and numbered paths.

Probes write a path as a string of symbols. Entering a suite has a symbol: the body of an ``if``, a
loop or a ``with``, a ``case``, an ``except``. The other branch (``else``, or its absence; the end
of a loop) needs none: it is known by the absence of the symbol, because a decision is not reached
again without another symbol in between, as every cycle goes through the body of a loop. The outline
says which symbol stands for which branch, so that a string can be read back as blocks (`paths`).
Block 0 is the entry, which defines the parameters.

As plain data, a suite is a list of items:

- ``("run", block)``: statements without a decision
- ``("jump", block, how)``: the same, ending in ``return``, ``raise``, ``break`` or ``continue``
- ``("if", block, symbol, suite, symbol or "", else suite)``
- ``("loop", block, symbol or "", body, else suite, "endless" or "")``: a body that begins with an
  ``if`` with an ``else`` needs no symbol of its own, if both branches of that have one
- ``("match", block, [(symbol, suite), ...], "always" or "")``: whether some case always matches
- ``("with", block, symbol, body)``: its line is that of entering and of leaving the context
- ``("try", body, [(symbol, suite), ...], else suite, finally suite, "group" or "")``

The paths through a function without loops are numbered instead (Ball and Larus, MICRO 1996); a
numbered path is called a *way*. Adding a number at some decisions gives every way from entry to
exit its own sum, from 0 up to the number of ways. So a call needs one store into a list, where
other functions need a string. The sums of two ways that have come to the same block differ as well
(otherwise their continuations could not be told apart), so the sum and the line of an exception
tell where a call failed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any

from swarmtest.coverage.weaving.syntax import (
    FunctionNode,
    first_line,
    header_end,
    is_constant,
    is_docstring,
    is_endless,
    is_irrefutable,
)

_JUMPS = {ast.Return: "return", ast.Raise: "raise", ast.Break: "break", ast.Continue: "continue"}


class Outline:
    """The outline of one function, and the symbols that its probes use."""

    def __init__(self, function: FunctionNode) -> None:
        self.symbols: dict[tuple[int, int], str] = {}
        """(id of a statement, number of its branch) -> symbol."""
        self._marked: set[int] = set()
        self._clauses: dict[int, list[tuple[int, int]]] = {}
        line = first_line(function)
        self._blocks: list[tuple[int, int, set[str], set[str]]] = [
            (line, line, set(_parameters(function)), set())
        ]
        body = function.body[1:] if is_docstring(function.body[0]) else function.body
        self._body = self._suite(body)

    def to_plain(self) -> Any:
        """Return the blocks and the suite as plain data.

        A block is its first and last line, the variables defined and used in it, and the lines of
        cases that are tested in it.
        """
        blocks = [
            (a, b, tuple(sorted(d)), tuple(sorted(u)), tuple(self._clauses.get(i, ())))
            for i, (a, b, d, u) in enumerate(self._blocks)
        ]
        return blocks, self._body

    def _symbol(self, node: ast.stmt, branch: int) -> str:
        symbol = chr(len(self.symbols) + 1)
        self.symbols[id(node), branch] = symbol
        return symbol

    def _suite(self, body: list[ast.stmt]) -> list[Any]:
        items: list[Any] = []
        open_block = -1
        for node in body:
            if isinstance(node, ast.Try | ast.TryStar):
                items += _run(open_block)
                open_block = -1
                items.append(self._try(node))
                continue
            # The header of a loop is a block of its own, because the body returns to it.
            needs_block = open_block < 0 or isinstance(node, ast.While | ast.For | ast.AsyncFor)
            if needs_block:
                items += _run(open_block)
                open_block = self._new_block(node)
            self._extend(open_block, node)
            how = _JUMPS.get(type(node))
            item = ("jump", open_block, how) if how else self._compound(node, open_block)
            if item:
                items.append(item)
                open_block = -1
        return items + _run(open_block)

    def _compound(self, node: ast.stmt, block: int) -> Any:
        match node:
            case ast.If():
                then = self._symbol(node, 0), self._suite(node.body)
                other = self._symbol(node, 1) if id(node) in self._marked else ""
                return ("if", block, *then, other, self._suite(node.orelse))
            case ast.While() | ast.For() | ast.AsyncFor():
                last = _last_of_chain(node.body[0])
                if last is not None:
                    self._marked.add(id(last))
                body = "" if last else self._symbol(node, 0), self._suite(node.body)
                ends = "endless" if is_endless(node) else ""
                return ("loop", block, *body, self._suite(node.orelse), ends)
            case ast.With() | ast.AsyncWith():
                return ("with", block, self._symbol(node, 0), self._suite(node.body))
            case ast.Match():
                self._clauses[block] = [_clause_lines(case) for case in node.cases]
                cases = [
                    (self._symbol(node, i), self._suite(case.body))
                    for i, case in enumerate(node.cases)
                ]
                always = "always" if is_irrefutable(node.cases[-1]) else ""
                return ("match", block, cases, always)
        return None

    def _try(self, node: ast.Try | ast.TryStar) -> Any:
        body = self._suite(node.body)
        handlers = [
            (self._symbol(node, i), self._suite(handler.body))
            for i, handler in enumerate(node.handlers)
        ]
        group = "group" if isinstance(node, ast.TryStar) else ""
        orelse, final = self._suite(node.orelse), self._suite(node.finalbody)
        return ("try", body, handlers, orelse, final, group)

    def _new_block(self, node: ast.stmt) -> int:
        self._blocks.append((first_line(node), header_end(node), set(), set()))
        return len(self._blocks) - 1

    def _extend(self, block: int, node: ast.stmt) -> None:
        first, _, defined, used = self._blocks[block]
        stores: set[str] = set()
        loads: set[str] = set()
        for name, stored in _names(node):
            (stores if stored else loads).add(name)
        used |= loads - defined
        defined |= stores
        self._blocks[block] = (first, header_end(node), defined, used)


def _clause_lines(case: ast.match_case) -> tuple[int, int]:
    end = case.guard or case.pattern
    return case.pattern.lineno, end.end_lineno or end.lineno


def _last_of_chain(node: ast.stmt) -> ast.If | None:
    """Return the last ``elif`` of an ``if`` that ends in ``else``; None for other statements."""
    if not isinstance(node, ast.If) or is_constant(node.test) or not node.orelse:
        return None
    first = node.orelse[0]
    chained = len(node.orelse) == 1 and isinstance(first, ast.If)
    return _last_of_chain(first) if chained else node


def _run(block: int) -> list[Any]:
    return [("run", block)] if block >= 0 else []


def _parameters(function: FunctionNode) -> Iterator[str]:
    args = function.args
    for argument in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
        if argument is not None:
            yield argument.arg


def _names(node: ast.stmt) -> Iterator[tuple[str, bool]]:
    """Yield the names in a statement's own code, and whether each is defined there."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name, True
    remaining: list[ast.AST] = list(_own_code(node))
    while remaining:
        part = remaining.pop()
        if isinstance(part, ast.Name):
            yield part.id, isinstance(part.ctx, ast.Store)
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            yield part.target.id, False
        elif isinstance(part, ast.alias):
            yield (part.asname or part.name.split(".")[0]), True
        elif isinstance(part, ast.MatchAs | ast.MatchStar) and part.name:
            yield part.name, True
        remaining.extend(ast.iter_child_nodes(part))


def _own_code(node: ast.stmt) -> list[ast.AST]:
    """Return a statement's expressions, without the statements below it."""
    if isinstance(node, ast.Match):
        return [node.subject, *(case.pattern for case in node.cases)]
    if any(isinstance(child, ast.stmt) for child in ast.iter_child_nodes(node)):
        return [c for c in ast.iter_child_nodes(node) if isinstance(c, ast.expr | ast.withitem)]
    return [node]


# Numbered paths.

MOST = 64
"""The ways of a function are numbered if there are at most this many."""


def number_ways(outline: Any) -> tuple[int, dict[str, int]] | None:
    """Return how many ways a function has, and what each symbol of the outline adds.

    Return None if there are too many, or if the function has a loop, ``try`` or ``with``.

    >>> number_ways(([], [("if", 1, "a", [("jump", 2, "return")], "", []), ("run", 3)]))
    (2, {'a': 1})
    """
    added: dict[str, int] = {}
    count = _count(outline[1], 1, added)
    return (count, added) if 0 < count <= MOST else None


def _count(items: Sequence[Any], after: int, added: dict[str, int]) -> int:
    """Return the number of ways through a suite and the code after it.

    `after` is the number of ways through the code after it. Return 0 if the ways cannot be
    numbered.
    """
    ways = after
    for kind, *parts in reversed(items):
        if kind == "jump":
            ways = 1
        elif kind == "if":
            _, symbol, body, _, orelse = parts
            taken, not_taken = _count(body, ways, added), _count(orelse, ways, added)
            added[symbol] = not_taken
            ways = taken + not_taken if taken and not_taken else 0
        elif kind == "match":
            ways = _count_cases(parts[1], 0 if parts[2] else ways, ways, added)
        elif kind != "run":
            return 0
        if not 0 < ways <= MOST:
            return 0
    return ways


def _count_cases(cases: Any, none: int, after: int, added: dict[str, int]) -> int:
    """Return the number of ways through a ``match``; `none` are those on which no case matches."""
    total = none
    for symbol, body in cases:
        count = _count(body, after, added)
        if not count:
            return 0
        added[symbol] = total
        total += count
    return total


def symbols_of_way(outline: Any, added: dict[str, int], way: int, line: int = 0) -> str:
    """Return the symbols of a way, up to the block with a `line` if an exception ended it there."""
    reader = _WayReader(outline[0], added, way, line)
    reader.suite(outline[1])
    return "".join(reader.symbols)


class _WayReader:
    """Collects the symbols of the way with a given sum.

    The methods return True if the way ends in the suite.
    """

    def __init__(self, blocks: Any, added: dict[str, int], way: int, line: int) -> None:
        self._blocks = blocks
        self._added = added
        self._remaining = way
        self._line = line
        self.symbols: list[str] = []

    def suite(self, items: Sequence[Any]) -> bool:
        for kind, block, *parts in items:
            first, last, _, _, clauses = self._blocks[block]
            if any(a <= self._line <= b for a, b in ((first, last), *clauses)):
                return True
            if kind == "jump" or self._ends_below(kind, parts):
                return True
        return False

    def _ends_below(self, kind: str, parts: Sequence[Any]) -> bool:
        if kind == "if":
            symbol, body, _, orelse = parts
            return self.suite(body if self._takes(symbol) else orelse)
        if kind == "match":
            for symbol, body in reversed(parts[0]):
                if self._takes(symbol):
                    return self.suite(body)
        return False

    def _takes(self, symbol: str) -> bool:
        if self._remaining < self._added[symbol]:
            return False
        self._remaining -= self._added[symbol]
        self.symbols.append(symbol)
        return True
