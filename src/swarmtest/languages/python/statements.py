"""The statements of a Python file: the lines that coverage uses as targets.

`lines_after` finds the statements that are executed whenever a line is: those after it in its
block, up to a jump. New code often is at the top of a branch, before statements for which there
already is data. What comes before it is the condition, which is hit far more often; what comes
after it in the block is hit as often.
"""

from __future__ import annotations

import ast
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise

from swarmtest.core.errors import UserError
from swarmtest.coverage.weaving.implications import ProbedFunction, ProbePlan
from swarmtest.coverage.weaving.syntax import is_docstring, logical_lines
from swarmtest.coverage.weaving.weaver import weave
from swarmtest.languages.text_lines import lines_of, next_or_last

_CLAUSES = ("else", "finally")
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class PythonStatements:
    """The statements of a Python file.

    The header of a function runs at import, so it is not a useful target for tests: it stands for
    the first statement of the function.

    >>> file = PythonStatements("def f(a,\\n      b):\\n    # sum\\n    return a\\n", "f.py")
    >>> file.at(2), file.at(3), file.function_at(4)
    (4, None, 'f')
    """

    def __init__(self, text: str, shown: str) -> None:
        self.texts = lines_of(text)
        self._text = text
        plan = _plan(text, shown)
        self._starts = logical_lines(text)
        self._functions = _lines_by_function(plan, self._starts)
        headers = _headers(plan.functions[1:], self._functions)
        owners = {line: name for name, own in self._functions for line in own}
        self._targets = {line: owners.get(line, "") for _, _, line, _, _ in plan.targets}
        self._stands_for = {
            line: first
            for header, first in headers
            for line in range(header, first)
            if line in self._targets and not self._targets[line]
        }

    @property
    def lines(self) -> list[int]:
        """Return the lines where statements begin, in order."""
        return sorted({self._stands_for.get(line, line) for line in self._targets})

    @property
    def functions(self) -> list[str]:
        """Return the qualified names of its functions, as people write them."""
        return [name.replace(".<locals>", "") for name, _ in self._functions]

    def at(self, line: int) -> int | None:
        """Return the line where the statement at a line begins; None if there is none."""
        start = self._starts.get(line, line)
        return self._stands_for.get(start, start) if start in self._targets else None

    def function_at(self, line: int) -> str:
        """Return the qualified name of the function that contains a statement."""
        return self._targets.get(line, "")

    def within(self, lines: Iterable[int]) -> list[int]:
        """Return the statements that lines belong to, in order."""
        return sorted({start for line in lines if (start := self.at(line)) is not None})

    def after(self, line: int, function: str = "") -> int | None:
        """Return the statement that follows a line in a function, or the last one before it."""
        own = sorted(start for start, name in self._targets.items() if name == function)
        return next_or_last(own, line)

    def of_function(self, name: str) -> list[int]:
        """Return the statements of a function's body, or of all functions of a class."""
        wanted = name.replace(".<locals>", "")
        lines: set[int] = set()
        for full, own in self._functions:
            plain = full.replace(".<locals>", "")
            if plain == wanted or plain.startswith(f"{wanted}."):
                lines |= own
        return sorted(lines)

    def what_is(self, line: int) -> str:
        """Describe a line that is not a statement."""
        text = self.texts[line - 1].strip()
        if self._is_in_string(line):
            return "part of a docstring"
        if not text:
            return "blank"
        if text.startswith("#"):
            return "a comment"
        word = text.partition(":")[0].strip()
        if word in _CLAUSES:
            return f"only `{word}:`, which is not executed itself"
        return "no code that is executed"

    def _is_in_string(self, line: int) -> bool:
        return any(first <= line <= last for first, last in self._strings)

    @cached_property
    def _strings(self) -> list[tuple[int, int]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(self._text)
        return [
            (node.lineno, node.end_lineno or node.lineno)
            for node in ast.walk(tree)
            if isinstance(node, ast.stmt) and is_docstring(node)
        ]


def code_of(lines: Sequence[str]) -> list[str]:
    """Return the lines of a Python file without comments, which are never executed.

    >>> code_of(["a = 1  # one", "# two"])
    ['a = 1', '']
    """
    code = list(lines)
    ended = (f"{line}\n" for line in lines)
    try:
        for token in tokenize.generate_tokens(lambda: next(ended, "")):
            if token.type == tokenize.COMMENT:
                line, column = token.start
                code[line - 1] = code[line - 1][:column].rstrip()
    except (tokenize.TokenError, SyntaxError):
        return list(lines)
    return code


def _plan(text: str, shown: str) -> ProbePlan:
    """Return the plan of the probes with which coverage would watch the lines of a file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # importing the program will show its warnings
            return weave(text, shown, "", ("line",))[1]
    except SyntaxError as error:
        where = f"{shown}:{error.lineno}" if error.lineno else shown
        raise UserError(f"{where} is not valid Python: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{shown} is not valid Python: {error}") from None


def _lines_by_function(plan: ProbePlan, starts: dict[int, int]) -> list[tuple[str, set[int]]]:
    """Return each function's name and lines.

    A body may share its header's line. The target of that line does not show this, but the spans of
    the function do.
    """
    own: list[set[int]] = [set() for _ in plan.functions]
    target_lines = set()
    for _, _, line, number, _ in plan.targets:
        own[number].add(line)
        target_lines.add(line)
    for lines, function in zip(own, plan.functions, strict=True):
        lines |= {starts.get(first, first) for first, _, _ in function.spans} & target_lines
    names = (function.name for function in plan.functions)
    return list(zip(names, own, strict=True))[1:]


def _headers(
    functions: Iterable[ProbedFunction], lines: Iterable[tuple[str, set[int]]]
) -> list[tuple[int, int]]:
    """Return where the header of each function begins, and its first statement."""
    return [(each.line, min(own)) for each, (_, own) in zip(functions, lines, strict=True) if own]


def lines_after(text: str, line: int) -> list[int]:
    """Return where the statements begin that follow a statement in its block, nearest first.

    >>> lines_after("if a:\\n    b = 1\\n    c = 2\\n    return c\\n    d = 3\\n", 2)
    [3, 4]
    """
    block = _blocks(text).get(line, [])
    starts = [statement.lineno for statement in block]
    return list(_followers(block[starts.index(line) :])) if block else []


@lru_cache(maxsize=64)
def _blocks(text: str) -> dict[int, list[ast.stmt]]:
    """Return the block of each statement, by the line where the statement begins."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # importing the program will show its warnings
        tree = ast.parse(text)
    blocks: dict[int, list[ast.stmt]] = {}
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list):
                continue  # the parts of a lambda or a conditional expression
            for statement in block:
                blocks.setdefault(statement.lineno, block)
    return blocks


def _followers(statements: list[ast.stmt]) -> Iterator[int]:
    """Yield where the following statements begin, up to one that may jump."""
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
