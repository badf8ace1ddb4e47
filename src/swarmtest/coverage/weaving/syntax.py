"""Functions about Python syntax on which the placement of probes depends."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from types import CodeType

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_SUSPENDING = (ast.Yield, ast.YieldFrom, ast.Await)


def logical_lines(text: str) -> dict[int, int]:
    """Map each physical line to the first line of its logical line, if the two differ.

    >>> logical_lines("x = (1 +\\n  2)\\n")
    {2: 1}
    """
    starts: dict[int, int] = {}
    first = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if first:
                starts.update(dict.fromkeys(range(first + 1, token.end[0] + 1), first))
            first = 0
        elif not first and token.type not in (
            tokenize.NL,
            tokenize.COMMENT,
            tokenize.INDENT,
            tokenize.DEDENT,
        ):
            first = token.start[0]
    return {line: start for line, start in starts.items() if line != start}


def executable_lines(code: CodeType, starts: dict[int, int]) -> set[int]:
    """Return the logical lines for which the compiler generated code."""
    lines: set[int] = set()
    remaining = [code]
    while remaining:
        current = remaining.pop()
        lines.update(line for _, _, line in current.co_lines() if line)
        remaining += [constant for constant in current.co_consts if isinstance(constant, CodeType)]
    return {starts.get(line, line) for line in lines}


def first_line(node: ast.stmt) -> int:
    """Return the line on which a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def header_end(node: ast.stmt) -> int:
    """Return the last line of a statement's own code, without the suites below it."""
    suites = [suite for suite in suites_of(node) if suite]
    handlers = getattr(node, "handlers", None) or getattr(node, "cases", None)
    below = [first_line(suite[0]) for suite in suites]
    if handlers and isinstance(node, ast.Match):
        below += [case.pattern.lineno for case in node.cases]
    if not below:
        return node.end_lineno or node.lineno
    return max(node.lineno, min(below) - 1)


def suites_of(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the lists of statements directly below a statement."""
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(node, name, None)
        if suite:
            yield suite
    for part in getattr(node, "handlers", None) or getattr(node, "cases", None) or ():
        yield part.body


def is_compound(node: ast.stmt) -> bool:
    """Return whether a statement has suites that run in the same code object."""
    return any(True for _ in suites_of(node)) and not isinstance(node, _SCOPES)


def cannot_raise(node: ast.stmt) -> bool:
    """Return whether nothing in a statement's own code can raise an exception."""
    harmless = ast.Pass | ast.Try | ast.TryStar | ast.Global | ast.Nonlocal | ast.Break
    return isinstance(node, harmless | ast.Continue)


JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
"""Statements after which nothing in their suite is executed."""


def enters_its_body(node: ast.With) -> bool:
    """Return whether a ``with`` statement either raises or enters its body.

    If there is a second context, or an assignment that may fail, the first context is already
    active and may swallow the failure.
    """
    (first, *more) = node.items
    return not more and (first.optional_vars is None or isinstance(first.optional_vars, ast.Name))


def looks_at_locals(function: FunctionNode) -> bool:
    """Return whether a function may see local variables that it does not name."""
    names = {"locals", "vars", "dir", "eval", "exec"}
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(function))


def is_docstring(node: ast.stmt) -> bool:
    """Return whether a statement is only a string."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def is_future_import(node: ast.stmt) -> bool:
    """Return whether a statement is a ``__future__`` import, which must stay at the top."""
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def is_constant(test: ast.expr) -> bool:
    """Return whether the compiler knows the outcome of a test, and omits the decision."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_constant(test.operand)
    if isinstance(test, ast.BoolOp):
        return all(is_constant(value) for value in test.values)
    return isinstance(test, ast.Constant) or (isinstance(test, ast.Name) and test.id == "__debug__")


def is_endless(node: ast.stmt) -> bool:
    """Return whether a statement is a ``while`` loop whose condition is always true."""
    return (
        isinstance(node, ast.While)
        and isinstance(node.test, ast.Constant)
        and bool(node.test.value)
    )


def is_irrefutable(case: ast.match_case) -> bool:
    """Return whether a case always matches."""
    return case.guard is None and _matches_all(case.pattern)


def _matches_all(pattern: ast.pattern) -> bool:
    if isinstance(pattern, ast.MatchOr):
        return any(_matches_all(part) for part in pattern.patterns)
    if isinstance(pattern, ast.MatchAs):
        return pattern.pattern is None or _matches_all(pattern.pattern)
    return False


def catches_all(handler: ast.ExceptHandler) -> bool:
    """Return whether an ``except`` clause catches every exception."""
    kind = handler.type
    return kind is None or (isinstance(kind, ast.Name) and kind.id == "BaseException")


def suspends(node: ast.stmt) -> bool:
    """Return whether a statement's own code may stop for good at a ``yield`` or ``await``."""
    if isinstance(node, ast.AsyncFor | ast.AsyncWith):
        return True
    return any(may_suspend(part) for part in _own_parts(node))


def _own_parts(node: ast.stmt) -> Iterable[ast.AST]:
    if isinstance(node, ast.If | ast.While):
        return [node.test]
    if isinstance(node, ast.For):
        return [node.iter]
    if isinstance(node, ast.With):
        return [part for item in node.items for part in (item.context_expr,)]
    if isinstance(node, ast.Match):
        return [node.subject, *(case.guard for case in node.cases if case.guard)]
    if isinstance(node, (ast.Try, ast.TryStar, *_SCOPES)):
        return []
    return [node]


def may_suspend(node: ast.AST) -> bool:
    """Return whether code contains a ``yield`` or ``await``, outside of nested scopes."""
    if isinstance(node, _SUSPENDING):
        return True
    if isinstance(node, ast.comprehension) and node.is_async:
        return True
    if isinstance(node, _SCOPES):
        return False
    return any(may_suspend(child) for child in ast.iter_child_nodes(node))
