"""Counting steps: a budget that ends what a mutant made endless, the same on every machine.

A *step* is a pass through the body of a loop in the files that are mutated, or the entry of the
mutated function. In the original run of a test each statement is counted, which tells both what the
test reaches and how many steps it takes; with a mutant, a multiple of those steps is allowed. Then
`StepBudgetExceeded` is raised at every further step, so that code which swallows it comes no
further.

What counts is a constant of the compiled code, not a name: the program's modules gain none.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from itertools import chain, repeat
from operator import length_hint
from types import CodeType
from typing import Any, NoReturn

from swarmtest.instrument.syntax import is_docstring
from swarmtest.mutation.tree import Function, Module, Spot, children

_COUNTS = "\0swarmtest counts"
_TICK = "\0swarmtest tick"
_FACTOR = 10
_EXTRA = 1000
_ANY = 1 << 60


class StepBudgetExceeded(BaseException):
    """A mutant takes many times the steps of the original: it would perhaps never end."""


class Steps:
    """The steps that are left to a test; code of a `ticking` module uses them up.

    >>> steps = Steps()
    >>> steps.allow(0)
    >>> for _ in range(1000): steps.tick()
    >>> steps.tick()
    Traceback (most recent call last):
    ...
    swarmtest.mutation.steps.StepBudgetExceeded
    """

    def __init__(self) -> None:
        self.exceeded = False
        """Whether the test was ended, whatever became of it then."""
        # What code holds on to stays the same object. A partial object, a chain and a repetition
        # are all in C: calling them costs less than counting down in Python.
        self.tick: functools.partial[Any] = functools.partial(repeat(None).__next__)

    def allow(self, original: int) -> None:
        """Start a test that takes `original` steps without a mutant."""
        self.exceeded = False
        within = repeat(None, original * _FACTOR + _EXTRA)
        steps = chain(within, map(self._exceed, repeat(None)))
        self.tick.__setstate__((steps.__next__, (), {}, {}))  # type: ignore[attr-defined]

    def count(self) -> None:
        """Start a test that may take any number of steps; `counted` tells how many it took."""
        self.exceeded = False
        self._left = repeat(None, _ANY)  # it tells how many are left, and answers None
        self.tick.__setstate__((self._left.__next__, (), {}, {}))  # type: ignore[attr-defined]

    def counted(self) -> int:
        """The steps since `count`."""
        return _ANY - length_hint(self._left)

    def _exceed(self, _: None) -> NoReturn:
        self.exceeded = True
        raise StepBudgetExceeded

    def bind(self, code: CodeType) -> CodeType:
        """Code of a `ticking` module that uses up these steps."""
        return with_constants(code, {_TICK: self.tick})


class _Cells(list[int]):
    """Numbers in a code object, which is hashed by whoever looks at tracebacks."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class Counts:
    """How often each statement of a file was executed; code of a `counting` module tells."""

    def __init__(self, module: Module) -> None:
        self.of_statements = _Cells([0] * module.statements)

    def reset(self) -> None:
        """Forget what was counted."""
        self.of_statements[:] = [0] * len(self.of_statements)

    def bind(self, code: CodeType) -> CodeType:
        """Code of a `counting` module that counts here."""
        return with_constants(code, {_COUNTS: self.of_statements, _TICK: self._count})

    def _count(self, number: int) -> None:
        self.of_statements[number] += 1


def ticking(module: Module, *, loops_only: bool = False) -> Module:
    """Make the functions of a freshly parsed module use up steps, in place."""
    ticks = set(module.loops if loops_only else module.ticks)
    _insert(module, lambda number: _tick() if number in ticks else None, lambda number: [])
    return module


def ticking_at_import(module: Module) -> Module:
    """Make the loops that a module and its classes run at import use up steps, in place."""
    level: list[ast.AST] = [module.tree]
    while level:
        node = level.pop()
        level += [one for _, _, one in children(node) if not isinstance(one, Function)]
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            node.body.insert(0, _placed(_tick(), node.body[0]))
    return module


def counting(module: Module) -> Module:
    """Make the functions of a freshly parsed module count each statement, in place."""
    _insert(module, _count, lambda number: [ast.Constant(number)])
    return module


def _tick() -> ast.stmt:
    return ast.Expr(ast.Call(ast.Constant(_TICK), [], []))


def _count(number: int) -> ast.stmt:
    cell = ast.Subscript(ast.Constant(_COUNTS), ast.Constant(number), ast.Store())
    return ast.AugAssign(cell, ast.Add(), ast.Constant(1))


def _insert(
    module: Module,
    before: Callable[[int], ast.stmt | None],
    arguments: Callable[[int], list[ast.expr]],
) -> None:
    """Put statements before numbered ones; a lambda calls before it evaluates."""
    for number, place in enumerate(module.numbered):
        spot = module.spots[place]
        if isinstance(spot.node, ast.Lambda):
            call = ast.Call(ast.Constant(_TICK), arguments(number), [])
            body = spot.node.body
            spot.node.body = _placed(ast.BoolOp(ast.Or(), [call, body]), body)
        elif not is_docstring(spot.node):  # type: ignore[arg-type]
            statement = before(number)
            if statement is not None:
                _put_before(spot, _placed(statement, spot.node))


def _put_before(spot: Spot, statement: ast.AST) -> None:
    suite = getattr(spot.parent, spot.field)
    suite.insert(next(i for i, one in enumerate(suite) if one is spot.node), statement)


def _placed(node: Any, place: ast.AST) -> Any:
    return ast.fix_missing_locations(ast.copy_location(node, place))


def with_constants(code: CodeType, values: dict[str, object]) -> CodeType:
    """Code in which constants that hold a place are replaced by what belongs there."""
    constants = []
    changed = False
    for one in code.co_consts:
        new: object = one
        if isinstance(one, CodeType):
            new = with_constants(one, values)
        elif isinstance(one, str) and one in values:
            new = values[one]
        changed = changed or new is not one
        constants.append(new)
    return code.replace(co_consts=tuple(constants)) if changed else code
