"""Read a Lark grammar with Lark's own loader, so that imports, templates and overrides work.

Only Lark's step that turns repetitions into recursive rules is left out, so that trees can be
reduced by the repetitions that the grammar's author wrote.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Iterator, Mapping
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

INSTALL = "Lark grammars need the package lark: pip install 'swarmtest[grammar]'"


def lark_grammar(text: str, path: str, start: str, optional_features: bool = True) -> Grammar:
    """Read a grammar in Lark's language; `path` is for messages and for relative imports.

    >>> lark_grammar('start: "a" | "b"', "<text>", "start").features
    ('start:a', 'start:b')
    """
    try:
        import lark

        loader: Any = importlib.import_module("lark.load_grammar")
    except ImportError:
        raise UserError(INSTALL) from None
    try:
        source = path if Path(path).exists() else "<string>"
        loaded, _ = loader.load_grammar(text, source, [], False)
        reader = _LarkReader(loader, loaded, text, path)
        definitions = reader.definitions()
    except lark.exceptions.LarkError as error:
        cause = getattr(error, "orig_exc", error)  # a VisitError wraps the exception that matters
        message = str(cause) or f"Lark does not accept this {getattr(error, 'rule', 'grammar')}"
        raise UserError(_located(message, text, path)) from None
    except FileNotFoundError as error:
        name = Path(str(error.filename)).stem
        message = f"%import finds no file {error.filename!r}"
        raise UserError(f"{_at(path, _use_of(name, text))}: {message}") from None
    except (OSError, re.error, AssertionError) as error:
        message = str(error) or type(error).__name__
        raise UserError(_located(message, text, path)) from None
    except RecursionError:
        raise UserError(f"{path}: its groups are nested too deeply to be read") from None
    lines = {name: line for name in definitions if (line := line_of(name, text))}
    grammar = build_grammar(path, definitions, start, reader.ignored(), lines, optional_features)
    grammar = dataclasses.replace(grammar, indented=reader.indented)
    missing = [t.name for t in grammar.terminals if not t.text and not t.pattern]
    if missing:
        raise UserError(
            f"{_at(path, line_of(missing[0], text, declared=True))}: {missing[0]} is only declared"
            " (%declare), so nothing can be generated for it: give it a pattern, or start elsewhere"
        )
    return grammar


class _LarkReader:
    """Converts the grammar that Lark loaded to expressions."""

    def __init__(self, loader: Any, loaded: Any, text: str, path: str) -> None:
        to_pattern = loader.PrepareLiterals() * loader.TerminalTreeToPattern()
        terminals = [
            loader.TerminalDef(name, to_pattern.transform(tree), priority)
            for name, (tree, priority) in loaded.term_defs
            if tree is not None
        ]
        rules = list(loaded.rule_defs)
        anonymous = loader.PrepareAnonTerminals(terminals)
        prepare = loader.PrepareLiterals() * loader.ValidateSymbols() * anonymous
        prepare *= loader.ApplyTemplates(rules)
        self.text = text
        self.path = path
        self.trees: dict[str, Any] = {}
        for name, parameters, tree, options in rules:  # applying a template appends to `rules`
            if not parameters and tree is not None:
                anonymous.rule_options = options if options and options.keep_all_tokens else None
                self.trees[str(name)] = prepare.transform(tree)
        self.terminals: Mapping[str, Any] = {t.name: t.pattern for t in terminals}
        self.ignore = loaded.ignore
        self.indented = any(mark_of(name) for name, (tree, _) in loaded.term_defs if tree is None)

    def definitions(self) -> dict[str, Expression]:
        return {name: self._expression(tree) for name, tree in self.trees.items()}

    def ignored(self) -> Iterator[str]:
        return (self.terminals[n].to_regexp() for n in self.ignore if n in self.terminals)

    def _expression(self, node: Any) -> Expression:
        from lark.grammar import NonTerminal
        from lark.grammar import Terminal as LarkTerminal

        if isinstance(node, NonTerminal):
            name = str(node.name)
            return RuleName(name) if name in self.trees else Terminal(name)
        if isinstance(node, LarkTerminal):
            return self._terminal(str(node.name))
        match node.data:
            case "expansions":
                return Alternation(tuple(map(self._way, node.children)))
            case "expansion":
                return Concatenation(tuple(map(self._expression, node.children)))
            case "maybe":
                return Repetition(self._expression(node.children[0]), 0, 1)
            case "expr":
                return self._repetition(*node.children)
        return self._expression(node.children[0])

    def _way(self, node: Any) -> tuple[str, Expression]:
        if getattr(node, "data", "") == "alias":
            expansion, alias = node.children
            return str(getattr(alias, "name", alias) or ""), self._expression(expansion)
        return "", self._expression(node)

    def _repetition(self, part: Any, operator: Any, *numbers: Any) -> Expression:
        inner = self._expression(part)
        if operator == "~":
            low, high = int(numbers[0]), int(numbers[-1])
            if not 0 <= low <= high:
                line = _use_of(f"{low}..{high}", self.text)
                raise UserError(f"{_at(self.path, line)}: a part cannot come {low} to {high} times")
            return Repetition(inner, low, high)
        bounds: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
        return Repetition(inner, *bounds[str(operator)])

    def _terminal(self, name: str) -> Terminal:
        pattern = self.terminals.get(name)
        if pattern is None:
            return Terminal(name, mark_of(name))
        shown = str(pattern.raw) if name.startswith("__ANON") and pattern.raw else name
        if pattern.type == "str":
            return Terminal(shown, pattern.value, any_case="i" in pattern.flags)
        return Terminal(shown, pattern=pattern.to_regexp(), line=self._line(name, shown))

    def _line(self, name: str, shown: str) -> int:
        if name != shown and shown in self.text:
            return self.text.count("\n", 0, self.text.index(shown)) + 1
        return line_of(name, self.text)


def line_of(name: str, text: str, declared: bool = False) -> int:
    """Return the line on which a rule or terminal is defined; 0 if it is not in this text.

    >>> line_of("expr", "start: expr\\n?expr.2: INT")
    2
    """
    head = re.escape(name.partition("{")[0])
    pattern = rf"^[ \t]*(?:%override\s+|%extend\s+)?[!?]*{head}(?:\{{[^}}]*\}})?(?:\.-?\d+)?\s*:"
    if declared:
        pattern += rf"|^[ \t]*%declare\b[^\n]*\b{head}\b"
    match = re.search(pattern, text, re.MULTILINE)
    return text.count("\n", 0, match.end()) + 1 if match else 0


def _at(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path


def _located(message: str, text: str, path: str) -> str:
    """Return one line for an error from Lark, with the line of the file if that is known."""
    first = message.strip().splitlines()[0].rstrip(": ")
    position = re.search(r",? at line (\d+)(?: column \d+)?(?: in \S+)?", first)
    if position:
        rest = f"{first[: position.start()]}{first[position.end() :]}"
        return f"{path}:{position[1]}: {_without_tokens(rest)}"
    return f"{_at(path, _line_for(first, text))}: {first}"


def _line_for(message: str, text: str) -> int:
    """Return the line that an error from Lark is about, by the names in it; 0 if not known."""
    for form in (r"\(in (?:rule|terminal) (\w+)\)", r" in (\w+)\)$", r"'(\w+)'", r"\brule (\w+)"):
        named = re.search(form, message)
        if named:
            return line_of(named[1], text) or _use_of(named[1], text)
    return 0


def _use_of(name: str, text: str) -> int:
    """Return the line on which a name is first used; 0 if it is not used."""
    used = re.search(rf"\b{re.escape(name)}\b", text)
    return text.count("\n", 0, used.start()) + 1 if used else 0


def _without_tokens(message: str) -> str:
    """Return a message about an unexpected token without Lark's own name for the token."""
    match = re.match(r"Unexpected token Token\('(\w+)', (.*?)\)(?:, column \d+)?\.?$", message)
    if not match:
        return message
    return "the line ends too early" if match[1] == "_NL" else f"unexpected {match[2]}"
