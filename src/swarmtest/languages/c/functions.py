"""The functions of a C or C++ file: where they are, their control flow, and what they mention.

This is a light reading of the text, without preprocessor and types. What it cannot see, it takes as
possible: a macro in capitals may jump to any label of the function, a label that nothing visible
jumps to may be reached from anywhere, and so may the code after a jump without a label (a macro may
hide a ``case``). So no line is dead here, and what dominates in this graph is executed before; a
macro that hides half of an ``if`` is the exception.

`CStatements` has the lines that may be executed: neither blank lines nor comments nor directives.
Any other line may be one that the compiler reports. Where the user names a range, lines with
nothing but braces are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from swarmtest.languages.c.control_flow import FunctionFlow, flow_of_body
from swarmtest.languages.c.tokens import Token, partners, tokens_of
from swarmtest.languages.python.callers import TOO_MANY, CallSite
from swarmtest.languages.text_lines import AnyStatements, lines_of, next_or_last

_GROUPS = {"class", "struct", "union", "namespace", "extern"}
_AFTER_PARAMETERS = {"__attribute__", "const", "noexcept", "override", "final", "asm", "__asm__"}
_NOT_CALLED = {"if", "for", "while", "switch", "return", "sizeof", "defined", "catch"}


@dataclass(frozen=True)
class CFunction:
    """A function with a body."""

    name: str
    """The name as written, with the classes before it: ``Cart::total``."""
    first: int
    last: int
    static: bool
    flow: FunctionFlow
    mentions: tuple[Token, ...]
    """The names in its body that may be functions."""


@lru_cache(maxsize=4096)
def functions_of(text: str) -> tuple[CFunction, ...]:
    """Return the functions of a file, in order.

    >>> [f.name for f in functions_of("static int f(int x) { return x; }\\nint y;")]
    ['f']
    """
    tokens = tokens_of(text)
    return tuple(_Reader(tokens).functions(0, len(tokens), ""))


def function_at(text: str, line: int) -> CFunction | None:
    """Return the function around a line."""
    return next(
        (function for function in functions_of(text) if function.first <= line <= function.last),
        None,
    )


def lines_before(text: str, line: int) -> list[list[int]]:
    """Return the statements of the function that are executed before a line, nearest first.

    Each is a list of its lines, because the text does not show which of them the compiler reports.

    >>> lines_before("int f(int x) {\\n  x++;\\n  if (x)\\n    x--;\\n  return x;\\n}\\n", 4)
    [[3], [2], [1]]
    """
    function = function_at(text, line)
    return function.flow.before(line) if function else []


def call_sites(function: str, sources: Mapping[str, str], place: str = "") -> list[CallSite]:
    """Return where a C or C++ function is mentioned; nothing if that is nearly everywhere.

    >>> text = "int f(int x) { return x; }\\nint g(void) {\\n  return f(1);\\n}\\n"
    >>> call_sites("f", {"a.c": text})
    [CallSite(place='a.c', line=3, caller='g', feature='')]
    """
    name = function.partition("(")[0].rpartition("::")[2].strip()
    own = functions_of(sources[place]) if place in sources else ()
    static = any(definition.static for definition in own if definition.name == function)
    searched = {place: sources[place]} if static else sources
    mentions = [
        CallSite(where, mention.line, caller.name)
        for where, text in searched.items()
        for caller in functions_of(text)
        for mention in caller.mentions
        if mention.text == name
    ]
    sites = list(dict.fromkeys(mentions))
    return sites if len(sites) <= TOO_MANY else []


class _Reader:
    """A reader of the functions in the tokens of a file."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._partners = partners(tokens)

    def functions(self, start: int, end: int, prefix: str) -> Iterator[CFunction]:
        """Yield the functions between two tokens, outside other functions."""
        head = at = start
        while at < end:
            text = self._tokens[at].text
            if text in ("}", ";") and not self._declares_parameters(head, at):
                head = at + 1
            elif text in ("(", "["):
                at = self._partners[at]
            elif text == "{":
                close = min(self._partners[at], end)
                name = self._name(head, at)
                if name:
                    yield self._function(name, prefix, head, at, close)
                else:
                    yield from self._inside(head, at, close, prefix)
                if name or self._next_is(close, "}") or not self._continues(close):
                    head = close + 1
                at = close
            at += 1

    def _next_is(self, at: int, text: str) -> bool:
        return at + 1 < len(self._tokens) and self._tokens[at + 1].text == text

    def _continues(self, close: int) -> bool:
        """Return whether a brace closed in the middle: that of an initialiser before a body."""
        return self._next_is(close, ",") or self._next_is(close, "{")

    def _inside(self, head: int, opening: int, close: int, prefix: str) -> Iterator[CFunction]:
        """Yield the functions in the braces of a class or namespace."""
        words = [token.text for token in self._tokens[head:opening]]
        group = next((i for i, word in enumerate(words) if word in _GROUPS), -1)
        if group < 0 or "=" in words or "enum" in words:
            return
        named = words[group] in ("class", "struct", "union") and group + 1 < len(words)
        inner = f"{prefix}{words[group + 1]}::" if named else prefix
        yield from self.functions(opening + 1, close, inner)

    def _declares_parameters(self, head: int, at: int) -> bool:
        """Return whether a ``;`` ends the declaration of a parameter, as before ANSI C."""
        if self._tokens[at].text != ";":
            return False
        for i in range(head, at):
            if self._tokens[i].text == "(":
                after = min(self._partners[i] + 1, at)
                word = self._tokens[after].text
                before = self._tokens[i - 1].text if i > head else ""
                is_name = word[:1].isalpha() or word[:1] == "_"
                return is_name and word not in _AFTER_PARAMETERS and _is_name(before)
        return False

    def _name(self, head: int, opening: int) -> str:
        """Return the name of the function whose body opens; empty if it is not a function."""
        tokens = self._tokens
        words = [token.text for token in tokens[head:opening]]
        if not words or "=" in words or words[0] in ("typedef", "enum"):
            return ""
        if self._initialises(head, opening):
            return ""
        last = max((i for i in range(head, opening) if tokens[i].text == ";"), default=head)
        for begin in (last, head):
            i = begin
            while i < opening:
                before = tokens[i - 1].text if i > begin else ""
                named = _is_name(before) and before not in _AFTER_PARAMETERS
                if named and tokens[i].text == "(":
                    return self._qualified(i - 1, begin)
                if tokens[i].text in ("(", "["):
                    i = self._partners[i]
                i += 1
        return ""

    def _initialises(self, head: int, opening: int) -> bool:
        """Return whether the brace belongs to a member in a constructor's list: ``: size{1}``."""
        i = head
        while i < opening:
            if self._tokens[i].text == "(":
                i = self._partners[i]
                if self._next_is(i, ":"):
                    return _is_name(self._tokens[opening - 1].text)
            i += 1
        return False

    def _qualified(self, at: int, begin: int) -> str:
        parts = [self._tokens[at].text]
        while at - 2 >= begin and self._tokens[at - 1].text == "::":
            at -= 2
            parts.insert(0, self._tokens[at].text)
        return "::".join(parts)

    def _function(self, name: str, prefix: str, head: int, opening: int, close: int) -> CFunction:
        tokens = self._tokens
        short = name.rpartition("::")[2]
        named = next(i for i in range(head, opening) if tokens[i].text == short)
        first = tokens[named].line
        last = tokens[min(close, len(tokens) - 1)].line
        static = any(token.text == "static" for token in tokens[head:named])
        flow = flow_of_body(tokens, self._partners, opening, min(close, len(tokens)), first)
        mentions = tuple(
            token
            for i, token in enumerate(tokens[opening + 1 : close], opening + 1)
            if _is_name(token.text)
            and token.text not in _NOT_CALLED
            and (self._next_is(i, "(") or tokens[i - 1].text not in (".", "->"))
        )
        return CFunction(prefix + name, first, last, static, flow, mentions)


def _is_name(text: str) -> bool:
    return text[:1].isalpha() or text[:1] in ("_", "~")


# Lines that may be executed.

_COMMENT = re.compile(r"//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_STRING_OR_COMMENT = re.compile(
    f"(?P<string>{_STRING.pattern})|(?P<comment>{_COMMENT.pattern})", re.DOTALL
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_ONLY_BRACES = re.compile(r"[\s{}();,]*(else|do)?[\s{}();,]*")


class CStatements(AnyStatements):
    """The statements of a C or C++ file.

    >>> file = CStatements("int f(int x)\\n{\\n  // up\\n  return x + 1;\\n}\\n")
    >>> file.within(range(1, 6)), file.function_at(4), file.at(3)
    ([1, 4], 'f', None)
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = "\n".join(self.texts)
        without_comments = _STRING_OR_COMMENT.sub(_emptied_comment, self._text)
        self._code = lines_of(_DIRECTIVE.sub(_emptied, without_comments) + "\n")

    def at(self, line: int) -> int | None:
        """Return the line itself if it has code on it, or None."""
        return line if self._code[line - 1].strip() else None

    def within(self, lines: Iterable[int]) -> list[int]:
        """Return the lines with more than braces on them, in order."""
        return sorted({line for line in lines if not _ONLY_BRACES.fullmatch(self._code[line - 1])})

    def function_at(self, line: int) -> str:
        """Return the name of the function that contains a line."""
        function = function_at(self._text, line)
        return function.name if function else ""

    def what_is(self, line: int) -> str:
        """Describe a line that has no code on it."""
        text = self.texts[line - 1].strip()
        if not text:
            return "blank"
        return "a directive" if text.startswith("#") else "a comment or directive"

    def after(self, line: int, function: str = "") -> int | None:
        """Return the statement that follows a line in a function, or the last one before it."""
        return next_or_last(self.of_function(function), line) or super().after(line)

    @property
    def functions(self) -> list[str]:
        """Return the names of its functions, with the classes that contain them."""
        return [function.name for function in functions_of(self._text)]

    def of_function(self, name: str) -> list[int]:
        """Return where the statements of a function's body begin."""
        lines: set[int] = set()
        for function in functions_of(self._text):
            if function.name in (name, name.replace(".", "::")):
                body = {
                    line for line in function.flow.lines if function.first < line <= function.last
                }
                lines |= body or {function.first}
        return self.within(lines)


def _emptied_comment(match: re.Match[str]) -> str:
    return match["string"] or _emptied(match)


def _emptied(match: re.Match[str]) -> str:
    """Replace a match by as many empty lines, so that line numbers stay."""
    return "\n" * match[0].count("\n")
