"""Where CPython with a GIL may switch threads, woven in as events for the feasible mode.

CPython 3.11 to 3.13 look whether another thread wants to run when a function is entered (and a
generator resumed), when a loop jumps back, and after a call of something that is not a Python
function. Nowhere else, but for calls that wait. What is not certain is left out: a schedule of the
feasible mode must be possible.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

from swarmtest.threads.nodes import located
from swarmtest.threads.policy import CALL, EVENT

_LOOK_AT_FRAMES = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "_getframe"}
"""Called through another function these would answer something else."""


class Events:
    """Makes the nodes."""

    def before(self, node: ast.expr) -> Any:
        """An event, then the value of an expression."""
        return located(ast.BoolOp(ast.Or(), [_event(), node]), node)

    def at_entry(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body of a function, with an event at its entry."""
        first = body[0]
        has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        begin = 1 if has_docstring and isinstance(first.value.value, str) else 0  # type: ignore[attr-defined]
        return [*body[:begin], located(ast.Expr(_event()), first), *body[begin:]]

    def in_comprehension(self, node: Any) -> Any:
        """Each turn of a comprehension begins with an event, where it is a function or resumed."""
        is_function = sys.version_info < (3, 12) or isinstance(node, ast.GeneratorExp)
        if len(node.generators) > 1 or not is_function:
            return node
        only = node.generators[0]
        if only.ifs:
            only.ifs[0] = self.before(only.ifs[0])
        elif isinstance(node, ast.DictComp):
            node.key = self.before(node.key)
        else:
            node.elt = self.before(node.elt)
        return node

    def may_wrap(self, node: ast.Call) -> bool:
        """Whether a function may be called through another."""
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        return name not in _LOOK_AT_FRAMES

    def call(self, node: ast.Call) -> Any:
        """A call that knows what it calls."""
        wrapped = ast.Call(ast.Name(CALL, ast.Load()), [node.func, *node.args], node.keywords)
        return located(wrapped, node)

    def for_loop(self, node: ast.For) -> ast.For:
        """A loop jumps back after each turn."""
        node.body = [*_Continues(None).of(node.body), located(ast.Expr(_event()), node)]
        return node

    def while_loop(self, node: ast.While, flag: str) -> list[ast.stmt]:
        """A loop looks at its condition before it jumps back: from the second turn on."""
        begun = ast.If(ast.Name(flag, ast.Load()), [ast.Expr(_event())], [])
        node.body = [
            located(begun, node),
            located(_set(flag, True), node),
            *_Continues(flag).of(node.body),
        ]
        return [located(_set(flag, False), node), node]


class _Continues(ast.NodeTransformer):
    """`continue` jumps back at once, in a loop with a condition before that is looked at."""

    def __init__(self, flag: str | None) -> None:
        self._flag = flag

    def of(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for node in body:
            new = self.visit(node)
            found += new if isinstance(new, list) else [new]
        return found

    def visit_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        reset = [located(_set(self._flag, False), node)] if self._flag else []
        return [*reset, located(ast.Expr(_event()), node), node]

    def _stay_out(self, node: ast.AST) -> ast.AST:
        return node

    visit_For = visit_While = visit_AsyncFor = _stay_out
    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _stay_out


def _event() -> ast.Call:
    return ast.Call(ast.Name(EVENT, ast.Load()), [], [])


def _set(name: str, value: bool) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))
