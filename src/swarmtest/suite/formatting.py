"""Format the Python text of a suite: names and comments of its tests, and the code itself.

Code is formatted as black and ruff would leave it at any line length of 79 or more. What fits into
79 characters is on one line; a call or collection that does not fit has one item per line and a
trailing comma, which tells formatters to keep it so.
"""

from __future__ import annotations

import ast
import io
import re
import textwrap
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from swarmtest.core.formatting import counted
from swarmtest.core.signatures import SignatureParts
from swarmtest.core.targets import Target
from swarmtest.suite.suite import SuiteTest

WIDTH = 79
_INDENT = "    "
_SINGLE_QUOTED = re.compile(r"(b?)'([^\"]*)'", re.DOTALL)


def formatted(code: str, indent: str = "") -> list[str]:
    """Return the lines of some statements, formatted.

    >>> print(*formatted("shop.add('tea', count=1); shop.close()"), sep="\\n")
    shop.add("tea", count=1)
    shop.close()
    """
    lines = []
    for node in ast.parse(code).body:
        lines += _statement(node, indent)
    return lines


def expression(code: str, indent: str = "", prefix: str = "", suffix: str = "") -> list[str]:
    """Return the lines of one expression, formatted, with text before and after it."""
    return _fitted(ast.parse(code, mode="eval").body, indent, prefix, suffix)


def _statement(node: ast.stmt, indent: str) -> list[str]:
    if isinstance(node, ast.Expr):
        return _fitted(node.value, indent, "", "")
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _fitted(node.value, indent, f"{_text(node.targets[0])} = ", "")
    if isinstance(node, ast.With) and len(node.items) == 1 and not node.items[0].optional_vars:
        head = _fitted(node.items[0].context_expr, indent, "with ", ":")
        return [*head, *_block(node.body, indent)]
    if isinstance(node, ast.For):
        head = [f"{indent}for {_text(node.target)} in {_text(node.iter)}:"]
        return [*head, *_block(node.body, indent)]
    return [indent + line for line in _text(node).splitlines()]


def _block(body: list[ast.stmt], indent: str) -> list[str]:
    return [line for node in body for line in _statement(node, indent + _INDENT)]


def _fitted(node: ast.expr, indent: str, prefix: str, suffix: str) -> list[str]:
    """Return an expression on one line if it fits, else with one item per line."""
    line = f"{indent}{prefix}{_text(node)}{suffix}"
    items = _items(node)
    if len(line) <= WIDTH or not items:
        return [line]
    opening, closing = _brackets(node)
    inside = [line for name, item in items for line in _fitted(item, indent + _INDENT, name, ",")]
    return [f"{indent}{prefix}{opening}", *inside, f"{indent}{closing}{suffix}"]


def _items(node: ast.expr) -> list[tuple[str, ast.expr]]:
    """Return the items between the brackets, each with its prefix, such as ``name=``."""
    if isinstance(node, ast.Call):
        named = [(f"{word.arg}=" if word.arg else "**", word.value) for word in node.keywords]
        return [*(("", argument) for argument in node.args), *named]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [("", element) for element in node.elts]
    if isinstance(node, ast.Dict):
        keys = [f"{_text(key)}: " if key else "**" for key in node.keys]
        return list(zip(keys, node.values, strict=True))
    return []


def _brackets(node: ast.expr) -> tuple[str, str]:
    if isinstance(node, ast.Call):
        return f"{_text(node.func)}(", ")"
    if isinstance(node, ast.Tuple):
        return "(", ")"
    return ("[", "]") if isinstance(node, ast.List) else ("{", "}")


def _text(node: ast.AST) -> str:
    """Return the code of a node on one line, with double quotes where formatters use them."""
    code = ast.unparse(node)
    if "'" not in code:
        return code
    lines = code.splitlines(keepends=True)
    tokens = [*tokenize.generate_tokens(io.StringIO(code).readline)]
    # From the end, so that the columns of earlier tokens stay valid.
    for token in reversed(tokens):
        if token.type == tokenize.STRING and token.start[0] == token.end[0]:
            row, start, end = token.start[0] - 1, token.start[1], token.end[1]
            lines[row] = lines[row][:start] + _double_quoted(token.string) + lines[row][end:]
    return "".join(lines)


def _double_quoted(text: str) -> str:
    match = _SINGLE_QUOTED.fullmatch(text)
    return f'{match[1]}"{match[2]}"' if match and "\\'" not in match[2] else text


# Names and comments of tests.

_LONGEST_NAME = 60
_LISTED = 8
"""How many targets of a kind are listed by name; of the others only the number is given."""


def name_of(test: SuiteTest) -> str:
    """Return the name of a test's function: its trial, which is unique, and what it keeps.

    >>> line = Target("line", "cart.py:3", "cart.py", 3, "Cart.add")
    >>> name_of(SuiteTest(17, None, 9, 2, adds=(line, line)))
    'test_17_keeps_2_lines_of_cart_add'
    """
    if test.fault is not None:
        return f"test_{test.trial}_{_words(f'shows {_short_signature(test.fault.signature)}')}"
    counts = Counter(target.kind for target in test.adds).most_common(2)
    what = " and ".join(counted(count, kind) for kind, count in counts)
    where = Counter(target.function or target.file for target in test.adds).most_common(1)
    place = f" of {where[0][0]}" if where and where[0][0] else ""
    single = f" {test.adds[0].name}" if len(test.adds) == 1 and not place else ""
    return f"test_{test.trial}_{_words(f'keeps {what}{place}{single}')}"


def _short_signature(signature: str) -> str:
    """Return a signature without the statement, which is too long for a name."""
    parts = SignatureParts.of(signature)
    words = [parts.label, parts.type, parts.message, *parts.functions]
    return " ".join(filter(None, words))


def comment_of(test: SuiteTest, campaign: int, part: str) -> list[str]:
    """Return comment lines that say what a test keeps and where it comes from."""
    lines = []
    if test.fault is not None:
        lines += _wrapped(f"Shows fault {test.fault.id}: {test.fault.signature}")
    by_kind: dict[str, list[Target]] = defaultdict(list)
    for target in test.adds:
        by_kind[target.kind].append(target)
    if by_kind:
        counts = [counted(len(targets), kind) for kind, targets in sorted(by_kind.items())]
        lines += _wrapped(f"Keeps {', '.join(counts)}:")
    for kind, targets in sorted(by_kind.items()):
        lines += _wrapped(f"{kind} {places(kind, targets)}", "  ")
    left = f"{test.size:,} of {test.before:,} {part}s are left"
    whole = f"{test.size:,} {part}{'s' * (test.size != 1)}"
    lines += _wrapped(f"Trial {test.trial} of campaign {campaign}: {left if test.srr else whole}.")
    return lines


def places(kind: str, targets: Sequence[Target]) -> str:
    """Return where targets are, in short: lines as ranges, other kinds by the first few names.

    >>> lines = [Target("line", f"a.py:{n}", "a.py", n) for n in (3, 4, 5, 9)]
    >>> places("line", lines)
    'a.py:3-5, 9'
    """
    if kind in ("line", "block"):
        by_file: dict[str, set[int]] = defaultdict(set)
        for target in targets:
            by_file[target.file].add(target.line)
        return "; ".join(f"{file}:{_ranges(lines)}" for file, lines in sorted(by_file.items()))
    names = [target.name for target in targets]
    more = len(names) - _LISTED
    shown = ", ".join(names[:_LISTED])
    return f"{shown} and {more:,} more" if more > 0 else shown


def _ranges(numbers: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)


def _words(text: str) -> str:
    """Return text as a part of an identifier, cut at a word if it is long."""
    plain = re.sub(r"[^0-9a-zA-Z]+", "_", text.replace(",", "")).strip("_").lower()
    if len(plain) <= _LONGEST_NAME:
        return plain
    return plain[:_LONGEST_NAME].rpartition("_")[0] or plain[:_LONGEST_NAME]


def _wrapped(text: str, indent: str = "") -> list[str]:
    plain = " ".join(re.sub(r"[^\x20-\x7e]", "?", " ".join(text.split())).split())
    return textwrap.wrap(
        plain,
        WIDTH,
        initial_indent=f"# {indent}",
        subsequent_indent=f"# {indent}    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
