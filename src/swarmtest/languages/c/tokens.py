"""C and C++ as tokens, without comments, the contents of strings, and directives.

Conditional directives are kept, as tokens of their own, if each of their branches has balanced
braces and parentheses: then the branches are alternatives, like those of ``if``. If a brace opens
in each branch, only the first branch counts. Code inside ``#if 0`` never does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

IF, ELSE, END = "#if", "#else", "#end"
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s|\\\n)+)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<raw>\bu?8?[LU]?R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")
  | (?P<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?)
  | (?P<directive>^[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n])*)
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<name>[A-Za-z_$][\w$]*)
  | (?P<sign>::|->|.)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_DIRECTIVE = re.compile(r"\s*#\s*(\w+)\s*(.*)", re.DOTALL)


class Token(NamedTuple):
    """A word or punctuation mark, and its line. Every string is ``""``."""

    text: str
    line: int


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a file.

    >>> [token.text for token in tokens_of('int f(void) { return "}"; } // }')]
    ['int', 'f', '(', 'void', ')', '{', 'return', '""', ';', '}']
    """
    return _Conditionals(list(_scan(text))).resolved()


def _scan(text: str) -> Iterator[Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        kind, word = match.lastgroup, match[0]
        if kind in ("string", "raw") or (kind == "mark"):
            yield Token('""', line)
        elif kind == "directive":
            yield from _directive(word, line)
        elif kind in ("name", "number", "sign"):
            yield Token(word, line)
        line += word.count("\n")


def _directive(word: str, line: int) -> Iterator[Token]:
    match = _DIRECTIVE.match(word)
    name, rest = match.groups() if match else ("", "")
    if name in ("if", "ifdef", "ifndef"):
        yield Token(f"{IF} 0" if name == "if" and rest.strip() == "0" else IF, line)
    elif name in ("else", "elif", "elifdef", "elifndef"):
        yield Token(ELSE if name == "else" else f"{ELSE} if", line)
    elif name == "endif":
        yield Token(END, line)


class _Conditionals:
    """A filter that keeps, of each group of branches, all of them or the first."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def resolved(self) -> list[Token]:
        """Return the tokens of the branches that are kept."""
        out: list[Token] = []
        while self._at < len(self._tokens):
            out += self._piece()
        return out

    def _piece(self) -> list[Token]:
        token = self._tokens[self._at]
        self._at += 1
        if token.text.startswith(IF):
            return self._group(token)
        return [] if token.text.startswith((ELSE, END)) else [token]

    def _group(self, opening: Token) -> list[Token]:
        branches: list[list[Token]] = [[]]
        heads = [opening]
        end = opening
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.text == END:
                self._at += 1
                end = token
                break
            if token.text.startswith(ELSE):
                self._at += 1
                heads.append(token)
                branches.append([])
            else:
                branches[-1] += self._piece()
        if opening.text == f"{IF} 0":
            del heads[0], branches[0]
            if not branches:
                return []
            heads[0] = Token(IF, heads[0].line)
            if len(branches) == 1:
                return branches[0]
        if not all(_is_balanced(branch) for branch in branches):
            return branches[0]
        out: list[Token] = []
        for head, branch in zip(heads, branches, strict=True):
            out += [head, *branch]
        return [*out, Token(END, end.line)]


def _is_balanced(tokens: list[Token]) -> bool:
    expected: list[str] = []
    for token in tokens:
        if token.text in _PAIRS:
            expected.append(_PAIRS[token.text])
        elif token.text in _PAIRS.values() and (not expected or expected.pop() != token.text):
            return False
    return not expected


def partners(tokens: list[Token]) -> dict[int, int]:
    """Return the index of the closing bracket for each opening one; the end if there is none.

    >>> partners(tokens_of("f(a[1])"))
    {3: 5, 1: 6}
    """
    closing: dict[int, int] = {}
    opened: list[int] = []
    for i, token in enumerate(tokens):
        if token.text in _PAIRS:
            opened.append(i)
        elif token.text in _PAIRS.values():
            # A bracket that was never closed ends where the enclosing one does.
            while opened and _PAIRS[tokens[opened[-1]].text] != token.text:
                closing[opened.pop()] = i
            if opened:
                closing[opened.pop()] = i
    return closing | dict.fromkeys(opened, len(tokens))
