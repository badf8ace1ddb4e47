"""The control flow of a C function, read from its tokens.

`swarmtest.languages.c.functions` finds the functions, and says what this reading cannot see.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from swarmtest.languages.c.tokens import ELSE, END, IF, Token
from swarmtest.languages.dominators import Dominance
from swarmtest.languages.flow_graph import Graph

_KEYWORDS = {
    *("if", "else", "for", "while", "do", "switch", "case", "default", "return", "break"),
    *("continue", "goto", "try", "catch", "throw"),
}
_NO_LABELS = {"default", "public", "private", "protected"}


@dataclass(frozen=True)
class FunctionFlow:
    """The control-flow graph of a function.

    `ends` has the last line of each statement that spans several.
    """

    lines: tuple[int, ...]
    successors: tuple[tuple[int, ...], ...]
    ends: dict[int, int]

    @cached_property
    def _dominance(self) -> Dominance:
        return Dominance(self.lines, self.successors)

    def before(self, line: int) -> list[list[int]]:
        """Return the statements that dominate a line, nearest first: the lines of each."""
        begins = self._statement_at(line)
        own = [list(range(begins, line))] if begins < line else []
        chain = self._dominance.chain(begins) if begins in self._dominance.lines else []
        return own + [self._span(dominator) for dominator in chain if dominator != line]

    def _statement_at(self, line: int) -> int:
        """Return where the statement on a line begins, or the next one if the line has none."""
        lines = self._dominance.lines
        if line in lines:
            return line
        around = [start for start in lines if start < line <= self.ends.get(start, start)]
        return max(around) if around else min([n for n in lines if n > line], default=line)

    def _span(self, line: int) -> list[int]:
        """Return the lines of a statement, without those on which another one begins."""
        end = self.ends.get(line, line)
        return [line, *(n for n in range(line + 1, end + 1) if n not in self._dominance.lines)]


def flow_of_body(
    tokens: list[Token], partners: dict[int, int], opening: int, close: int, first: int
) -> FunctionFlow:
    """Return the flow of a function whose braces are the tokens `opening` and `close`."""
    builder = _Builder(tokens, partners, first)
    builder.body(opening, close)
    graph = builder.graph
    ends = {first: tokens[opening].line} | builder.ends
    return FunctionFlow(tuple(graph.lines), tuple(map(tuple, graph.successors)), ends)


@dataclass(frozen=True)
class _Exits:
    """The nodes where control goes when a statement is left early."""

    returned: int
    broken: int = -1
    continued: int = -1
    raised: int = -1
    switch: int = 0
    """The node from which hidden labels are reached: the ``switch``, or the entry."""


class _Builder:
    """A builder of the graph of one function.

    Methods take the index of a token and the node that control comes from; they return the index
    after the statement and the node where control continues.
    """

    def __init__(self, tokens: list[Token], partners: dict[int, int], first: int) -> None:
        self._tokens = tokens
        self._partners = partners
        self.graph = Graph(first)
        self.ends: dict[int, int] = {}
        self._labels: dict[str, int] = {}
        self._jumps: list[tuple[int, str]] = []
        """From which node to which label; an empty label means any."""
        self._after_jumps: set[int] = set()
        """The nodes after jumps."""
        self._defaults: set[int] = set()
        """The switches that have a ``default``."""

    def body(self, opening: int, close: int) -> None:
        """Add a whole function."""
        leave = self.graph.node()
        at = self._suite(opening + 1, close, 0, _Exits(leave))
        self.graph.edge(at, leave)
        if close < len(self._tokens):
            self.graph.node(self._tokens[close].line, leave)
        aimed = {label for _, label in self._jumps}
        for start, label in self._jumps:
            ends = [self._labels[label]] if label in self._labels else self._labels.values()
            for end in ends:
                self.graph.edge(start, end)
        for label, node in self._labels.items():
            if label not in aimed and "" not in aimed:
                self.graph.edge(0, node)

    def _text(self, at: int) -> str:
        return self._tokens[at].text if at < len(self._tokens) else ""

    def _line(self, begin: int, end: int, after: int, exits: _Exits) -> int:
        """Add a node for the tokens from `begin` to `end`."""
        tokens = self._tokens
        line = tokens[begin].line
        last = tokens[min(max(end, begin), len(tokens) - 1)].line
        if last > line:
            self.ends[line] = max(last, self.ends.get(line, 0))
        node = self.graph.node(line, after)
        if exits.raised >= 0:
            self.graph.edge(node, exits.raised)
        if any(self._is_macro(i) for i in range(begin, end)):
            self._jumps.append((node, ""))
        return node

    def _is_macro(self, at: int) -> bool:
        text = self._text(at)
        return text.isupper() and len(text) > 1 and self._text(at + 1) == "("

    def _suite(self, at: int, end: int, node: int, exits: _Exits) -> int:
        while at < end:
            if node in self._after_jumps and not self._is_label(at):
                # Nothing visible leads here, so a macro hides a label.
                self.graph.edge(exits.switch, node)
            at, node = self._statement(at, end, node, exits)
        return node

    def _is_label(self, at: int) -> bool:
        text = self._text(at)
        named = _is_word(text) and text not in _NO_LABELS and self._text(at + 1) == ":"
        return named or text in ("case", "default")

    def _statement(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        """Add one statement, and consume at least one token."""
        if at >= end:
            return at, node
        text = self._text(at)
        match text:
            case ";" | "else" | ")" | "]" | "}":
                return at + 1, node
            case "{":
                return self._block(at, end, node, exits)
            case "if":
                return self._if(at, end, node, exits)
            case "while" | "for":
                return self._loop(at, end, node, exits)
            case "do":
                return self._do(at, end, node, exits)
            case "switch":
                return self._switch(at, end, node, exits)
            case "case" | "default":
                return self._case(at, end, node, exits)
            case "return" | "break" | "continue" | "goto" | "throw":
                return self._jump(at, end, node, exits)
            case "try":
                return self._try(at, end, node, exits)
        if text.startswith("#"):
            return self._alternatives(at, end, node, exits)
        if self._is_label(at):
            label = self._labels.setdefault(text, self.graph.node())
            self.graph.edge(node, label)
            return at + 2, label
        return self._plain(at, end, node, exits)

    def _block(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        close = min(self._partners[at], end)
        node = self._suite(at + 1, close, node, exits)
        if close < end:
            node = self.graph.node(self._tokens[close].line, node)
        return close + 1, node

    def _header(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        """Add a keyword with the parentheses after it."""
        opening = at + 1
        while opening < end and self._text(opening) != "(" and _is_word(self._text(opening)):
            opening += 1  # if constexpr
        close = min(self._partners.get(opening, at), end)
        return close + 1, self._line(at, close, node, exits)

    def _if(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        after = self.graph.node()
        while True:
            at, test = self._header(at, end, node, exits)
            at, then = self._statement(self._past_marks(at, end), end, test, exits)
            self.graph.edge(then, after)
            if self._text(at) != "else" or at >= end:
                self.graph.edge(test, after)
                return at, after
            at = self._past_marks(at + 1, end)
            if self._text(at) != "if" or at >= end:
                at, other = self._statement(at, end, test, exits)
                self.graph.edge(other, after)
                return at, after
            node = test

    def _past_marks(self, at: int, end: int) -> int:
        """Skip directives between a header and its statement."""
        while at < end and self._text(at).startswith("#"):
            at += 1
        return at

    def _loop(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        if not self._is_endless(at):
            at, test = self._header(at, end, node, exits)
            return self._repeated(self._past_marks(at, end), end, test, exits)
        begin = min(self._partners[at + 1] + 1, end)
        top = self.graph.node(after=node)
        after = self.graph.node()
        inner = replace(exits, broken=after, continued=top)
        at, last = self._statement(self._past_marks(begin, end), end, top, inner)
        self.graph.edge(last, top)
        hidden = any(self._is_macro(i) for i in range(begin, at))
        if hidden or after not in self.graph.reached({after}):
            self.graph.edge(top, after)
        return at, after

    def _is_endless(self, at: int) -> bool:
        """Return whether a loop has no code of its own.

        Then its line stands only for the jump back.
        """
        close = self._partners.get(at + 1, at)
        inside = [token.text for token in self._tokens[at + 2 : close]]
        return self._text(at + 1) == "(" and inside in ([";", ";"], ["1"], ["true"])

    def _repeated(self, at: int, end: int, test: int, exits: _Exits) -> tuple[int, int]:
        after = self.graph.node(after=test)
        inner = replace(exits, broken=after, continued=test)
        at, last = self._statement(at, end, test, inner)
        self.graph.edge(last, test)
        return at, after

    def _do(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        top, tested, after = self.graph.node(after=node), self.graph.node(), self.graph.node()
        inner = replace(exits, broken=after, continued=tested)
        at, last = self._statement(self._past_marks(at + 1, end), end, top, inner)
        self.graph.edge(last, tested)
        if self._text(at) == "while" and at < end:
            at, tested = self._header(at, end, tested, exits)
        self.graph.edge(tested, top)
        self.graph.edge(tested, after)
        return at, after

    def _switch(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        at, chosen = self._header(at, end, node, exits)
        after = self.graph.node()
        inner = replace(exits, broken=after, switch=chosen)
        # What comes before the first visible case can only be reached through a hidden one.
        at, last = self._statement(at, end, self.graph.node(after=chosen), inner)
        self.graph.edge(last, after)
        if chosen not in self._defaults:
            self.graph.edge(chosen, after)
        return at, after

    def _case(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        if self._text(at) == "default":
            self._defaults.add(exits.switch)
        questions, line = 0, self._tokens[at].line
        at += 1
        while at < end and (self._text(at) != ":" or questions) and self._text(at) not in ";{}":
            questions += {"?": 1, ":": -1}.get(self._text(at), 0)
            at = self._partners.get(at, at) + 1
        label = self.graph.node(line, after=node)
        self.graph.edge(exits.switch, label)
        return (at + 1 if self._text(at) == ":" else at), label

    def _jump(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        close = self._end_of_plain(at + 1, end)
        node = self._line(at, close - 1, node, exits)
        match self._text(at):
            case "goto":
                named = self._text(at + 1)
                self._jumps.append((node, named if named != "*" else ""))
            case "break" if exits.broken >= 0:
                self.graph.edge(node, exits.broken)
            case "continue" if exits.continued >= 0:
                self.graph.edge(node, exits.continued)
            case "throw":
                pass
            case _:
                self.graph.edge(node, exits.returned)
        after = self.graph.node()
        self._after_jumps.add(after)
        return close, after

    def _try(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        raised, after = self.graph.node(), self.graph.node()
        at, last = self._statement(at + 1, end, node, replace(exits, raised=raised))
        self.graph.edge(last, after)
        while at < end and self._text(at) == "catch":
            at, clause = self._header(at, end, raised, exits)
            at, last = self._statement(at, end, clause, exits)
            self.graph.edge(last, after)
        if exits.raised >= 0:
            self.graph.edge(raised, exits.raised)
        return at, after

    def _alternatives(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        """Add the branches of an ``#if``; skip any other mark."""
        if not self._text(at).startswith(IF):
            return at + 1, node
        after = self.graph.node()
        complete = False
        while at < end and self._text(at) != END:
            complete |= self._text(at) == ELSE
            at += 1
            last = node
            while at < end and not self._text(at).startswith((ELSE, END)):
                at, last = self._statement(at, end, last, exits)
            self.graph.edge(last, after)
        if not complete:
            self.graph.edge(node, after)
        return at + 1, after

    def _plain(self, at: int, end: int, node: int, exits: _Exits) -> tuple[int, int]:
        """Add an expression or a declaration.

        A macro with a block after it is treated as a loop, a ``switch`` and a ``case``.
        """
        closed = self._partners.get(at + 1, -1) if self._text(at + 1) == "(" else -1
        if _is_word(self._text(at)) and closed >= 0 and self._text(closed + 1) == "{":
            test = self._line(at, closed, node, exits)
            if exits.switch:
                self.graph.edge(exits.switch, test)
            return self._repeated(closed + 1, end, test, replace(exits, switch=test))
        close = self._end_of_plain(at, end)
        return close, self._line(at, close - 1, node, exits)

    def _end_of_plain(self, at: int, end: int) -> int:
        """Return the index after a statement that ends in ``;``.

        It ends earlier, before a token that cannot belong to it.
        """
        begin = at
        while at < end:
            text = self._text(at)
            if text == ";":
                return at + 1
            if at > begin and (text in _KEYWORDS or text == "}"):
                return at
            at = min(self._partners.get(at, at), end) + 1
        return end


def _is_word(text: str) -> bool:
    return text[:1].isalpha() or text[:1] == "_"
