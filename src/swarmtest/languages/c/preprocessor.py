"""C and C++ without what a parser should not see: comments, strings, macros and dead branches.

Tree-sitter reads a file as one program, but a file before preprocessing may be several: a brace may
open in each branch of an ``#if``. A group of branches stays for the parser, as alternatives, if
each of them consists of whole statements; outside functions, the code of all branches counts. Of
any other group only the first branch counts, as if the preprocessor had chosen it. Code inside
``#if 0`` never counts. Macros before the name of a function (``LUA_API int lua_gettop (``) are left
out. Lines keep their numbers.
"""

from __future__ import annotations

import re
from itertools import pairwise

from swarmtest.languages.text_lines import lines_of

_IF, _ELIF, _ELSE, _END, _NEVER = "#if 1", "#elif 1", "#else", "#endif", "#if 0"
_IGNORED = re.compile(
    r"""
    (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<raw>\bu?8?[LU]?R"(?P<mark>[^\s()\\]{0,16})\(.*?\)(?P=mark)")
  | (?P<number>\b\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<string>"(?:\\.|[^"\\\n])*")
  | (?P<character>'(?:\\.|[^'\\\n])+')
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#\s*(\w*)((?:\\\n|[^\n])*)", re.MULTILINE)
_HEAD = re.compile(
    r"^(?:(?:[A-Z_][A-Z\d_]*\([^()]*\)|[A-Za-z_]\w*)[\s*]+){2,}(?=[A-Za-z_]\w*\s*\()",
    re.MULTILINE,
)
"""The words before the name of a function that begins a line."""
_TYPES = {
    *("void", "char", "short", "int", "long", "float", "double", "signed", "unsigned"),
    *("bool", "_Bool"),
}
_TAGS = {"struct", "union", "enum", "class"}
_QUALIFIERS = {
    *("static", "extern", "inline", "const", "volatile", "restrict", "register", "typedef"),
}
_OTHER_KEYWORDS = {
    *("auto", "case", "constexpr", "delete", "do", "else", "explicit", "friend", "goto"),
    *("namespace", "new", "operator", "return", "sizeof", "template", "throw", "typename"),
    *("using", "virtual"),
}
_LINE_BREAK = re.compile(r"\\?\n")
_WORD = re.compile(r"\w+|\S")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_BEFORE_STATEMENT = {"", ";", "{", "}", ":", ")", "else", "do"}
_AFTER_STATEMENT = {"", ";", "}", ":"}


def without_comments(text: str) -> str:
    """Return a text without comments and without the contents of strings.

    >>> without_comments("x = '}'; // }")
    "x = '0'; \\n"
    """
    return _IGNORED.sub(_simplify, "\n".join(lines_of(text)) + "\n")


def code_lines(text: str) -> list[str]:
    """Return the lines of a file without comments, contents of strings, and directives."""
    return lines_of(
        _DIRECTIVE.sub(lambda match: "\n" * match[0].count("\n"), without_comments(text))
    )


def parseable(text: str) -> str:
    """Return a text for the parser.

    >>> parseable("#ifdef A\\nif (a) {\\n#else\\nif (b) {\\n#endif\\nc(); }\\n")
    '\\nif (a) {\\n\\n\\n\\nc(); }'
    """
    lines = lines_of(_DIRECTIVE.sub(_simplify_directive, without_comments(text)))
    return _HEAD.sub(_simplify_head, "\n".join(_Conditionals(lines).resolved()))


def _simplify(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "number":
            return match[0]
        case "character":
            return "'0'" + _blank(match)
        case "comment":
            return _blank(match) or ("" if match[0].startswith("//") else " ")
    return '""' + _blank(match)


def _blank(match: re.Match[str]) -> str:
    """Return the line breaks of a match, so that lines keep their numbers and macros go on."""
    return "".join(_LINE_BREAK.findall(match[0]))


def _simplify_directive(match: re.Match[str]) -> str:
    """Return a conditional directive with a condition that every parser can read."""
    match match[1]:
        case "if" | "ifdef" | "ifndef":
            is_never = match[1] == "if" and match[2].strip() == "0"
            directive = _NEVER if is_never else _IF
        case "elif" | "elifdef" | "elifndef":
            directive = _ELIF
        case "else":
            directive = _ELSE
        case "endif":
            directive = _END
        case _:
            directive = ""
    return directive + "\n" * match[0].count("\n")


def _simplify_head(match: re.Match[str]) -> str:
    """Return the words before a function's name without those that can only be macros.

    A type has one name; a parser that meets several unknown names must guess.
    """
    words = re.findall(r"[A-Za-z_]\w*(?:\([^()]*\))?", match[0])
    after_tags = {after for before, after in pairwise(words) if before in _TAGS}
    known = _TYPES | _TAGS | _QUALIFIERS | after_tags
    unknown = [word for word in words if word not in known]
    has_type = not _TYPES.union(_TAGS).isdisjoint(words)
    macros = unknown if has_type else unknown[:-1]
    if not macros or not _OTHER_KEYWORDS.isdisjoint(words):
        return match[0]
    return re.sub(rf"\b(?:{'|'.join(map(re.escape, macros))})(?!\w)", "", match[0])


class _Conditionals:
    """A filter that keeps all branches of an ``#if``, or the first."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._depth = 0
        """How many braces are open."""

    def resolved(self) -> list[str]:
        """Return all lines; those of branches that do not count are empty."""
        kept: list[str] = []
        while self._at < len(self._lines):
            kept += self._branch("")
            if self._at < len(self._lines):  # a directive that belongs to no #if
                kept.append("")
                self._at += 1
        return kept

    def _branch(self, before: str) -> list[str]:
        """Return the lines up to the end of a branch; `before` is the last word before it."""
        kept: list[str] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line in (_IF, _NEVER):
                kept += self._group(_last_word(kept) or before)
            elif line in (_ELIF, _ELSE, _END):
                break
            else:
                kept.append(line)
                self._depth += line.count("{") - line.count("}")
                self._at += 1
        return kept

    def _group(self, before: str) -> list[str]:
        """Return the lines from an ``#if`` to its ``#endif``."""
        heads: list[str] = []
        branches: list[list[str]] = []
        depths: list[int] = []
        outside = self._depth
        while self._at < len(self._lines) and self._lines[self._at] != _END:
            heads.append(self._lines[self._at])
            self._at += 1
            self._depth = outside
            branches.append(self._branch(before))
            depths.append(self._depth)
        ends = [_END] * (self._at < len(self._lines))
        self._at += len(ends)
        first = 1 if heads[0] == _NEVER else 0
        self._depth = depths[first] if first < len(depths) else outside
        branches[:first] = [[""] * len(branch) for branch in branches[:first]]
        if not self._are_alternatives(before, branches[first:]):
            branches[first + 1 :] = [[""] * len(branch) for branch in branches[first + 1 :]]
            heads, ends = [""] * len(heads), [""] * len(ends)
        elif outside <= 0 or heads[first:] in ([], [_ELSE]):
            heads, ends = [""] * len(heads), [""] * len(ends)
        else:
            heads[: first + 1] = [*[""] * first, _IF]
            branches = [_with_statement_after_label(branch) for branch in branches]
        pieces = zip(heads, branches, strict=True)
        return [line for head, branch in pieces for line in (head, *branch)] + ends

    def _are_alternatives(self, before: str, branches: list[list[str]]) -> bool:
        """Return whether each branch could stand alone between the words around the group."""
        return (
            before in _BEFORE_STATEMENT
            and all(_is_statements(branch) for branch in branches)
            and _first_word(self._lines[self._at : self._at + 9]) != "else"
        )


def _with_statement_after_label(lines: list[str]) -> list[str]:
    """Add an empty statement after a label at the end of a branch, as the grammar wants one."""
    last = next((i for i in reversed(range(len(lines))) if lines[i].strip()), -1)
    if last < 0 or _last_word(lines) != ":":
        return lines
    return [*lines[:last], lines[last] + ";", *lines[last + 1 :]]


def _is_statements(lines: list[str]) -> bool:
    """Return whether lines are whole statements, as far as their first and last words show."""
    return (
        _first_word(lines) != "else"
        and _last_word(lines) in _AFTER_STATEMENT
        and _is_balanced("\n".join(lines))
    )


def _first_word(lines: list[str]) -> str:
    return next((match[0] for match in map(_WORD.search, lines) if match), "")


def _last_word(lines: list[str]) -> str:
    """Return the last word; a group of branches that was kept ends a statement."""
    line = next((line for line in reversed(lines) if line.strip()), "")
    return ";" if line == _END else (_WORD.findall(line) or [""])[-1]


def _is_balanced(text: str) -> bool:
    expected: list[str] = []
    for bracket in re.findall(r"[()\[\]{}]", text):
        if bracket in _PAIRS:
            expected.append(_PAIRS[bracket])
        elif not expected or expected.pop() != bracket:
            return False
    return not expected
