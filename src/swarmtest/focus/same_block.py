"""Which statements after a line are executed whenever it is: those of its block, up to a jump.

New code often stands at the top of a branch, before statements that have data. What comes before it
is the condition, which is hit far more often; what comes after it in the block is hit as often.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def lines_after(text: str, line: int) -> list[int]:
    """Where the statements begin that follow a statement in its block, nearest first.

    >>> lines_after("if a:\\n    b = 1\\n    c = 2\\n    return c\\n    d = 3\\n", 2)
    [3, 4]
    """
    block = _blocks(text).get(line, [])
    starts = [statement.lineno for statement in block]
    return list(_followers(block[starts.index(line) :])) if block else []


@lru_cache(maxsize=64)
def _blocks(text: str) -> dict[int, list[ast.stmt]]:
    """The block that each statement is in, by where it begins."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the program's own
        tree = ast.parse(text)
    found: dict[int, list[ast.stmt]] = {}
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue  # the parts of a lambda or a conditional expression
            for statement in block:
                found.setdefault(statement.lineno, block)
    return found


def _followers(statements: list[ast.stmt]) -> Iterator[int]:
    for statement, following in pairwise(statements):
        if _may_jump(statement):
            return
        if following.lineno > statement.lineno:
            yield following.lineno


def _may_jump(statement: ast.AST) -> bool:
    if isinstance(statement, _SCOPES):
        return False
    if isinstance(statement, _JUMPS):
        return True
    return any(_may_jump(child) for child in ast.iter_child_nodes(statement))
