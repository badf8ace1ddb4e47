"""Reading paths back: from a string of symbols to the blocks of one call.

An exception is not a symbol: it shows as a symbol that does not fit, which belongs to a handler
further out, or as the end. A block in which an exception was raised counts as passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from swarmtest.instrument.snippets import ENDED_BY_EXCEPTION

EXIT = -1
"""Stands for leaving the function, in successors."""


def blocks_of(outline: Any, symbols: str) -> list[int]:
    """The blocks that a call passed, from its entry on."""
    reader = _Reader(symbols)
    reader.suite(outline[1])
    return reader.passed


class _Reader:
    def __init__(self, symbols: str) -> None:
        self._symbols = symbols
        self._at = 0
        self._handlers: list[str] = []
        self.passed = [0]

    @property
    def _next(self) -> str:
        return self._symbols[self._at : self._at + 1]

    def _took(self, symbol: str) -> bool:
        if symbol and self._next == symbol:
            self._at += 1
            return True
        return False

    def suite(self, items: Sequence[Any]) -> str:
        """How a suite was left: ``next``, ``return``, ``raise``, ``break`` or ``continue``."""
        for item in items:
            how = getattr(self, f"_{item[0]}")(*item[1:])
            if how != "next":
                return str(how)
        return "next"

    def _run(self, block: int) -> str:
        self.passed.append(block)
        return "next"

    def _jump(self, block: int, how: str) -> str:
        self.passed.append(block)
        return how

    def _if(self, block: int, then: str, body: Any, other: str, orelse: Any) -> str:
        self.passed.append(block)
        if self._took(then):
            return self.suite(body)
        return self.suite(orelse) if self._took(other) else "raise"

    def _loop(self, block: int, again: str, body: Any, done: str, orelse: Any) -> str:
        while True:
            self.passed.append(block)
            if not self._took(again):
                return self.suite(orelse) if self._took(done) else "raise"
            how = self.suite(body)
            if how == "break":
                return "next"
            if how not in ("next", "continue"):
                return how

    def _match(self, block: int, cases: Any, none: str) -> str:
        self.passed.append(block)
        for symbol, body in cases:
            if self._took(symbol):
                return self.suite(body)
        return "next" if self._took(none) else "raise"

    def _with(self, block: int, body: Any) -> str:
        self.passed.append(block)
        how = self.suite(body)
        if how == "raise" and not self._goes_to_a_handler():
            return "next"  # the context manager swallowed it
        return how

    def _goes_to_a_handler(self) -> bool:
        return self._next == ENDED_BY_EXCEPTION or any(
            self._next and self._next in symbols for symbols in self._handlers
        )

    def _try(self, body: Any, handlers: Any, orelse: Any, final: Any) -> str:
        self._handlers.append("".join(symbol for symbol, _ in handlers))
        how = self.suite(body)
        self._handlers.pop()
        caught = next((suite for symbol, suite in handlers if self._took(symbol)), None)
        if caught is not None:
            how = self.suite(caught)
        elif how == "next":
            how = self.suite(orelse)
        ending = self.suite(final)
        return how if ending == "next" else ending


def successors(outline: Any) -> list[list[int]]:
    """The control-flow graph of a function: for each block those that may follow, or `EXIT`."""
    blocks, body = outline
    graph = _Graph(len(blocks))
    graph.suite(body, {0}, {})
    return [sorted(following) for following in graph.following]


class _Graph:
    """Lays edges suite by suite. `before` are the blocks from which an item is reached; `jumps`
    tells where ``break`` and ``continue`` lead, as lists that the loop picks up."""

    def __init__(self, blocks: int) -> None:
        self.following: list[set[int]] = [set() for _ in range(blocks)]

    def suite(self, items: Sequence[Any], before: set[int], jumps: dict[str, set[int]]) -> set[int]:
        for item in items:
            before = getattr(self, f"_{item[0]}")(before, jumps, *item[1:])
        return before

    def _enter(self, before: set[int], block: int) -> set[int]:
        for one in before:
            self.following[one].add(block)
        return {block}

    def _run(self, before: set[int], _jumps: Any, block: int) -> set[int]:
        return self._enter(before, block)

    def _jump(self, before: set[int], jumps: dict[str, set[int]], block: int, how: str) -> set[int]:
        self._enter(before, block)
        if how in jumps:
            jumps[how].add(block)
        else:
            self.following[block].add(EXIT)
        return set()

    def _if(
        self, before: set[int], jumps: Any, block: int, _t: str, body: Any, _o: str, orelse: Any
    ) -> set[int]:
        here = self._enter(before, block)
        return self.suite(body, here, jumps) | self.suite(orelse, here, jumps)

    def _loop(
        self, before: set[int], jumps: Any, block: int, _a: str, body: Any, done: str, orelse: Any
    ) -> set[int]:
        here = self._enter(before, block)
        own: dict[str, set[int]] = {**jumps, "break": set(), "continue": set()}
        again = self.suite(body, here, own) | own["continue"]
        self._enter(again, block)
        out = self.suite(orelse, here, jumps) if done else set()
        return out | own["break"]

    def _match(self, before: set[int], jumps: Any, block: int, cases: Any, none: str) -> set[int]:
        here = self._enter(before, block)
        out = set(here) if none else set()
        for _, body in cases:
            out |= self.suite(body, here, jumps)
        return out

    def _with(self, before: set[int], jumps: Any, block: int, body: Any) -> set[int]:
        return self.suite(body, self._enter(before, block), jumps)

    def _try(
        self, before: set[int], jumps: Any, body: Any, handlers: Any, orelse: Any, final: Any
    ) -> set[int]:
        out = self.suite(body, before, jumps)
        raising = set(_blocks_in(body))
        out = self.suite(orelse, out, jumps)
        for _, suite in handlers:
            out |= self.suite(suite, raising, jumps)
        return self.suite(final, out | (raising if final else set()), jumps)


def _blocks_in(part: Any) -> Iterator[int]:
    """All blocks of a suite, or of a part of one: every number in it is a block."""
    if isinstance(part, int):
        yield part
    elif not isinstance(part, str):
        for inner in part:
            yield from _blocks_in(inner)
