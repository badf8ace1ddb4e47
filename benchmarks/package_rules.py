"""Where coverage by swarmtest differs from coverage.py's, and why it is meant to."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

Branch = tuple[int, int]
Item = int | Branch


@dataclass(frozen=True)
class Difference:
    """A line or branch of which the two say different things."""

    path: Path
    kind: str  # "line", "hit line", "branch" or "hit branch"
    only_in: str  # "coverage.py" or the other's name
    item: Item
    watched: bool = True  # whether both know the file

    @property
    def line(self) -> int:
        return self.item if isinstance(self.item, int) else self.item[0]

    @property
    def end(self) -> int:
        return self.item if isinstance(self.item, int) else abs(self.item[1])

    @property
    def text(self) -> str:
        return self.path.read_text().splitlines()[self.line - 1].strip()

    def __str__(self) -> str:
        where = "" if isinstance(self.item, int) else f" -> {self.item[1]}"
        return f"{self.path}:{self.line}{where}: {self.kind} only in {self.only_in}: {self.text}"


# The rules. All but the one about test modules were checked with a program of a few lines.


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All of a file's syntax."""
    return list(ast.walk(ast.parse(path.read_bytes())))


def of_test_module(it: Difference) -> bool:
    name = it.path.name
    is_test = name.startswith("test_") or name.endswith("_test.py")
    return is_test and not it.watched and it.only_in == "coverage.py"


def of_one_line_definition(it: Difference) -> bool:
    text = it.path.read_text().splitlines()
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return (it.kind, it.only_in) == ("branch", "coverage.py") and any(
        isinstance(node, definitions)
        and node.lineno == it.line
        and text[node.body[0].lineno - 1][: node.body[0].col_offset].strip()
        for node in nodes(it.path)
    )


def of_finally_after_jumps(it: Difference) -> bool:
    return (it.kind, it.only_in) == ("branch", "swarmtest") and any(
        isinstance(node, ast.Try)
        and not completes([node])
        and any(last.lineno == it.line for last in decisions_at_end(node.finalbody))
        for node in nodes(it.path)
    )


def of_async_with_end(it: Difference) -> bool:
    return (
        sys.version_info < (3, 12)
        and (it.kind, it.only_in) == ("hit branch", "swarmtest")
        and any(
            isinstance(node, ast.AsyncWith)
            and not node.lineno <= it.end <= (node.end_lineno or 0)
            and any(last.lineno == it.line for last in decisions_at_end(node.body))
            for node in nodes(it.path)
        )
    )


def completes(suite: list[ast.stmt]) -> bool:
    """Whether the end of a suite can be reached."""
    match suite:
        case [*_, ast.Return() | ast.Raise() | ast.Break() | ast.Continue()]:
            return False
        case [*_, ast.If(body=body, orelse=orelse)]:
            return completes(body) or completes(orelse)
        case [*_, ast.With(body=body) | ast.AsyncWith(body=body)]:
            return completes(body)
        case [*_, ast.Try(body=body, handlers=handlers, orelse=orelse)]:
            whole = completes(body) and completes(orelse)
            return whole or any(completes(handler.body) for handler in handlers)
    return True


def decisions_at_end(suite: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The decisions of which one way leads to the end of a suite."""
    match suite:
        case [*_, ast.If(body=body, orelse=orelse) as last]:
            yield last
            yield from decisions_at_end(body)
            yield from decisions_at_end(orelse)
        case [*_, ast.For() | ast.AsyncFor() | ast.While() as last]:
            yield last


@dataclass(frozen=True)
class Explanation:
    """A rule for differences that are meant."""

    name: str
    comment: str
    holds: Callable[[Difference], bool]


EXPLAINED = [
    Explanation(
        "test module in the package",
        "pytest rewrites the assertions of modules that are named as tests are (test_*.py), so its "
        "loader compiles them; swarmtest leaves them alone: they hold tests, not the program.",
        of_test_module,
    ),
    Explanation(
        "definition on one line",
        "`def f(): ...` is two code objects on one line: making the function, from which control "
        "goes on to the next line, and its body, from which it goes to the exit. coverage.py looks "
        "at lines, and takes the two arcs for a decision. There is none.",
        of_one_line_definition,
    ),
    Explanation(
        "finally after jumps",
        "an `if` or a loop ends the `finally` of a `try` that is always left by return, raise, "
        "break or continue. coverage.py lets no arc go out of such a `finally`, because nothing "
        "follows it in the usual way; so the decision has one arc left, and is none. swarmtest "
        "lets its second way lead to what would come next.",
        of_finally_after_jumps,
    ),
    Explanation(
        "end of async with, Python 3.11",
        "CPython 3.11 gives the code that leaves an `async with` the line of the last statement of "
        "its body. A decision that goes there goes to that line, as tracing has it, and not to the "
        "line after the `async with`: coverage.py lists that branch, but never sees it. It even "
        "takes that last statement for executed. Python 3.12 has the line of the `async with`.",
        of_async_with_end,
    ),
]
