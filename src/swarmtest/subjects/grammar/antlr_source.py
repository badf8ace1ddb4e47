"""Read an ANTLR v4 grammar with grammarinator, and turn its graph into our model.

Lexer rules become regular expressions, with fragments inlined. Actions and predicates are code in
the parser's language, and are left out. Text that a lexer rule skips or sends to another channel
may stand between tokens.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.subjects.grammar.builder import (
    Alternation,
    Concatenation,
    Expression,
    Repetition,
    RuleName,
    build_grammar,
)
from swarmtest.subjects.grammar.model import Grammar, Terminal, mark_of

INSTALL = "ANTLR grammars need the package grammarinator: pip install 'swarmtest[antlr]'"


def antlr_grammar(path: Path, start: str = "", optional_features: bool = True) -> Grammar:
    """Read a ``.g4`` file; the lexer grammar of a parser grammar must be in the same directory."""
    try:
        processor: Any = importlib.import_module("grammarinator.tool.processor")
    except ImportError:
        raise UserError(INSTALL) from None
    files = [str(path), *_vocabulary(path)]
    for file in files:
        _check_syntax(file)
    try:
        roots = processor.ProcessorTool.parse_grammars(files, str(path.parent))
        graph = processor.ProcessorTool.build_graph(False, *roots, None, start or None)
    except (AssertionError, ValueError, OSError, KeyError) as error:
        raise UserError(_located(str(error), path)) from None
    reader = _AntlrReader(graph, processor.dot_ranges[graph.dot], str(path))
    definitions = reader.definitions()
    skipped = [name for root in roots if root is not None for name in _skipped(root)]
    ignored = [reader.pattern(graph.vertices[(name,)]) for name in skipped]
    text = path.read_text(encoding="utf-8")
    lines = {name: line for name in definitions if (line := _line_of(name, text))}
    begin = start or min(lines, key=lambda name: lines[name], default="")
    if not begin:
        raise UserError(f"{path} has no parser rule to start from: it is a lexer grammar")
    grammar = build_grammar(str(path), definitions, begin, ignored, lines, optional_features)
    empty = [t.name for t in grammar.terminals if not t.text and not t.pattern]
    if empty:
        raise UserError(
            f"{path}: the token {empty[0]} has no lexer rule, so nothing can be generated for it"
        )
    indented = any(mark_of(t.name) == t.text != "" for t in grammar.terminals)
    return dataclasses.replace(grammar, indented=indented)


class _AntlrReader:
    """Converts the nodes of grammarinator's graph to expressions and regular expressions.

    Nodes are told apart by the names of their classes, because grammarinator is imported only when
    it is needed.
    """

    def __init__(self, graph: Any, dot: Any, path: str) -> None:
        self.graph = graph
        self.dot = dot
        self.path = path
        self._open_rules: list[str] = []

    def definitions(self) -> dict[str, Expression]:
        return {
            rule.name: self._sequence(rule.out_neighbours)
            for rule in self.graph.rules
            if rule.type == "UnparserRule" and len(rule.id) == 1
        }

    def _sequence(self, nodes: Iterable[Any]) -> Expression:
        return Concatenation(tuple(part for node in nodes for part in self._parts(node)))

    def _parts(self, node: Any) -> Iterator[Expression]:
        kind = type(node).__name__
        match kind:
            case "UnparserRuleNode":
                yield (
                    RuleName(node.name)
                    if len(node.id) == 1
                    else self._sequence(node.out_neighbours)
                )
            case "UnlexerRuleNode":
                yield self._terminal(node)
            case "ImagRuleNode":
                yield Terminal(str(node.id[0]), mark_of(str(node.id[0])))
            case "AlternationNode":
                yield Alternation(tuple(map(self._alternative, node.out_neighbours)))
            case "QuantifierNode":
                high = None if node.stop == math.inf else int(node.stop)
                yield Repetition(self._sequence(node.out_neighbours), int(node.start), high)

    def _alternative(self, alternative: Any) -> tuple[str, Expression]:
        """Return the label of an alternative (``# label``; empty if it has none) and its items."""
        inner = alternative.out_neighbours
        labelled = len(inner) == 1 and len(getattr(inner[0], "id", ())) > 1
        label = inner[0].id[1] if labelled and type(inner[0]).__name__ == "UnparserRuleNode" else ""
        return str(label), self._sequence(inner)

    def _terminal(self, rule: Any) -> Terminal:
        inner = rule.out_neighbours
        if len(inner) == 1 and type(inner[0]).__name__ == "LiteralNode":
            return Terminal(rule.name, inner[0].src)
        return Terminal(rule.name, pattern=self.pattern(rule))

    def pattern(self, rule: Any) -> str:
        """Return a lexer rule as a regular expression."""
        if rule.name in self._open_rules:
            raise UserError(
                f"{self.path}: the lexer rule {rule.name} refers to itself: "
                "only parser rules may, if texts are to be generated"
            )
        self._open_rules.append(rule.name)
        text = "".join(self._pieces(rule.out_neighbours))
        self._open_rules.pop()
        return text

    def _pieces(self, nodes: Iterable[Any]) -> Iterator[str]:
        nodes = list(nodes)
        for position, node in enumerate(nodes):
            match type(node).__name__:
                case "LiteralNode":
                    yield re.escape(node.src)
                case "CharsetNode":
                    yield self._set(node)
                case "UnlexerRuleNode":
                    yield f"(?:{self.pattern(node)})"
                case "AlternationNode":
                    ways = ("".join(self._pieces(w.out_neighbours)) for w in node.out_neighbours)
                    yield f"(?:{'|'.join(ways)})"
                case "QuantifierNode":
                    yield self._repetition(node, last=position == len(nodes) - 1)

    def _repetition(self, node: Any, last: bool) -> str:
        inner = node.out_neighbours
        sign = "?" if node.stop == 1 else "+" if node.start else "*"
        # In a grammar, `.*?` stops at what follows it. Grammarinator does not distinguish it from
        # `.*`, which nobody writes, so every `.*` that something follows is taken as lazy.
        lazy = "?" if not last and len(inner) == 1 and self._is_dot(inner[0]) else ""
        return f"(?:{''.join(self._pieces(inner))}){sign}{lazy}"

    def _is_dot(self, node: Any) -> bool:
        if type(node).__name__ != "CharsetNode":
            return False
        return bool(self.graph.charsets[node.charset] == self.dot)

    def _set(self, node: Any) -> str:
        ranges = self.graph.charsets[node.charset]
        members = (
            _escaped(low) if high == low + 1 else f"{_escaped(low)}-{_escaped(high - 1)}"
            for low, high in ranges
        )
        return f"[{''.join(members)}]"


def _escaped(code: int) -> str:
    return re.escape(chr(code)) if code < 0x80 else f"\\U{code:08x}"


def _vocabulary(path: Path) -> list[str]:
    """Return the path of the lexer grammar that a parser grammar names, if it names one."""
    match = re.search(r"tokenVocab\s*=\s*(\w+)", path.read_text(encoding="utf-8"))
    if not match:
        return []
    lexer = path.with_name(f"{match[1]}.g4")
    if not lexer.exists():
        raise UserError(f"{path}: its lexer grammar is missing: {lexer.name}")
    return [str(lexer)]


def _check_syntax(file: str) -> None:
    antlr: Any = importlib.import_module("antlr4")
    language: Any = importlib.import_module("grammarinator.tool.g4")
    lexer = language.ANTLRv4Lexer(antlr.FileStream(file, encoding="utf-8"))
    parser = language.ANTLRv4Parser(antlr.CommonTokenStream(lexer))
    for part in (lexer, parser):
        part.removeErrorListeners()
        part.addErrorListener(_RaisingListener(file))
    parser.grammarSpec()


class _RaisingListener:
    """An error listener for an ANTLR parser that raises at the first syntax error."""

    def __init__(self, file: str) -> None:
        self.file = file

    def syntaxError(self, *words: Any) -> None:
        """Raise; the arguments are the parser, a token, line, column, message and exception."""
        raise UserError(f"{self.file}:{words[2]}: {words[4]}")

    def __getattr__(self, name: str) -> Any:
        return lambda *words: None  # ignores all other reports, such as ambiguities


def _skipped(root: Any) -> Iterator[str]:
    """Yield the lexer rules whose text may stand between tokens."""
    for rule in root.rules().ruleSpec():
        lexer_rule = rule.lexerRuleSpec()
        if lexer_rule and re.search(r"->(?:[^']*,)?(?:skip|channel\()", lexer_rule.getText()):
            yield str(lexer_rule.TOKEN_REF())


def _line_of(name: str, text: str) -> int:
    match = re.search(rf"^[ \t]*(?:fragment\s+)?{re.escape(name)}\b[^:;]*:", text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 0


def _located(message: str, path: Path) -> str:
    """Return one line for an error of grammarinator, with the line of an undefined rule."""
    undefined = re.match(r"\('?(\w+)'?,\) not in vertices", message)
    if undefined:
        text = path.read_text(encoding="utf-8")
        used = re.search(rf"\b{undefined[1]}\b", text)
        line = f":{text.count(chr(10), 0, used.start()) + 1}" if used else ""
        return f"{path}{line}: the rule {undefined[1]!r} is used but not defined"
    first = message.strip().splitlines()[0] if message.strip() else "it cannot be read"
    return f"{path}: {first}"
