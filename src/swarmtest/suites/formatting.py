"""Python text as black and ruff would leave it, at any line length of 79 or more.

What fits a line of 79 is on one; a call or a collection that does not has one item per line, with
a comma behind the last, which formatters take as the wish to keep it so.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize

WIDTH = 79
_STEP = "    "
_SINGLE = re.compile(r"(b?)'([^\"]*)'", re.DOTALL)


def formatted(code: str, indent: str = "") -> list[str]:
    """The lines of some statements.

    >>> print(*formatted("shop.add('tea', count=1); shop.close()"), sep="\\n")
    shop.add("tea", count=1)
    shop.close()
    """
    lines = []
    for node in ast.parse(code).body:
        lines += _statement(node, indent)
    return lines


def expression(code: str, indent: str = "", prefix: str = "", suffix: str = "") -> list[str]:
    """The lines of one expression, with something before and behind it."""
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
    return [line for node in body for line in _statement(node, indent + _STEP)]


def _fitted(node: ast.expr, indent: str, prefix: str, suffix: str) -> list[str]:
    line = f"{indent}{prefix}{_text(node)}{suffix}"
    items = _items(node)
    if len(line) <= WIDTH or not items:
        return [line]
    before, behind = _brackets(node)
    inside = [line for name, item in items for line in _fitted(item, indent + _STEP, name, ",")]
    return [f"{indent}{prefix}{before}", *inside, f"{indent}{behind}{suffix}"]


def _items(node: ast.expr) -> list[tuple[str, ast.expr]]:
    """What stands between the brackets, with what is written before each."""
    if isinstance(node, ast.Call):
        named = [(f"{one.arg}=" if one.arg else "**", one.value) for one in node.keywords]
        return [*(("", one) for one in node.args), *named]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return [("", one) for one in node.elts]
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
    """The code of a node on one line, with the quotes that formatters prefer."""
    found = ast.unparse(node)
    if "'" not in found:
        return found
    lines = found.splitlines(keepends=True)
    tokens = [*tokenize.generate_tokens(io.StringIO(found).readline)]
    for token in reversed(tokens):
        if token.type == tokenize.STRING and token.start[0] == token.end[0]:
            row, start, end = token.start[0] - 1, token.start[1], token.end[1]
            lines[row] = lines[row][:start] + _double_quoted(token.string) + lines[row][end:]
    return "".join(lines)


def _double_quoted(text: str) -> str:
    found = _SINGLE.fullmatch(text)
    return f'{found[1]}"{found[2]}"' if found and "\\'" not in found[2] else text
