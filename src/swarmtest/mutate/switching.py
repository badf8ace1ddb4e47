"""Switch a mutant on in a running program: no file is written, nothing is imported again.

The functions of a loaded file are found by their code objects (among all objects that the garbage
collector knows, so decorators and wrappers do not matter). They are given the mutant's code, which
is compiled from the file's text, so it does not matter either whether the loaded code was woven for
coverage. Default arguments are stored in the function object and are changed there.

Code of a module or a class body ran when it was imported, and a suspended generator continues with
the code that it has. Such mutants cannot be switched on: `switchable` returns False.

An endless mutant is stopped by a budget of steps, which is the same on every machine. A *step* is a
pass through the body of a loop in the mutated files, or a call of the mutated function. In the run
without a mutant each statement is counted, which shows both what a test reaches and how many steps
it takes; with a mutant, a multiple of those steps is allowed. After that every step raises
`StepBudgetExceeded`, so that code that swallows the exception gets no further.
"""

from __future__ import annotations

import ast
import functools
import gc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import length_hint
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any, NoReturn

from swarmtest.core.targets import Source
from swarmtest.coverage.weaving.syntax import is_docstring
from swarmtest.mutate.generation import function_code, module_code, nested_codes, replacement
from swarmtest.mutate.mutant import (
    Function,
    Module,
    Mutant,
    NodeSpot,
    OuterFunction,
    Place,
    children,
)

# Counting steps. The compiled code refers to its counters by constants, not by names, so that the
# program's modules do not get new names. These strings are placeholders for the constants.

_COUNTS = "\0swarmtest counts"
_TICK = "\0swarmtest tick"
_FACTOR = 10
_EXTRA = 1000
_UNLIMITED = 1 << 60


class StepBudgetExceeded(BaseException):
    """Raised when a mutant takes many times the steps of the original and might never end."""


class Steps:
    """The budget of steps of a test, which the code of a `ticking` module uses up.

    >>> steps = Steps()
    >>> steps.allow(0)
    >>> for _ in range(1000): steps.tick()
    >>> steps.tick()
    Traceback (most recent call last):
    ...
    swarmtest.mutate.switching.StepBudgetExceeded
    """

    def __init__(self) -> None:
        self.exceeded = False
        """Whether the budget was exceeded, even if the test caught the exception."""
        # Compiled code holds on to this object, so its state is replaced, never the object. A
        # partial, a chain and a repeat are implemented in C: calling them costs less than
        # counting down in Python.
        self.tick: functools.partial[Any] = functools.partial(repeat(None).__next__)

    def allow(self, original: int) -> None:
        """Set the budget for a test that takes `original` steps without a mutant."""
        self.exceeded = False
        within = repeat(None, original * _FACTOR + _EXTRA)
        steps = chain(within, map(self._exceed, repeat(None)))
        self.tick.__setstate__((steps.__next__, (), {}, {}))  # type: ignore[attr-defined]

    def count(self) -> None:
        """Allow any number of steps; `counted` returns how many were taken."""
        self.exceeded = False
        self._left = repeat(None, _UNLIMITED)  # its length hint is the number of steps left
        self.tick.__setstate__((self._left.__next__, (), {}, {}))  # type: ignore[attr-defined]

    def counted(self) -> int:
        """Return the number of steps since `count`."""
        return _UNLIMITED - length_hint(self._left)

    def _exceed(self, _: None) -> NoReturn:
        self.exceeded = True
        raise StepBudgetExceeded

    def bind(self, code: CodeType) -> CodeType:
        """Return the code of a `ticking` module, bound to this budget."""
        return with_constants(code, {_TICK: self.tick})


class _Cells(list[int]):
    """A hashable list: it becomes a constant of a code object, and tracebacks hash those."""

    __hash__ = object.__hash__  # type: ignore[assignment]


class Counts:
    """How often each statement of a file was executed, counted by code of a `counting` module."""

    def __init__(self, module: Module) -> None:
        self.of_statements = _Cells([0] * module.statements)

    def reset(self) -> None:
        """Set all counts to 0."""
        self.of_statements[:] = [0] * len(self.of_statements)

    def bind(self, code: CodeType) -> CodeType:
        """Return the code of a `counting` module, bound to these counts."""
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
        level += [child for _, _, child in children(node) if not isinstance(child, Function)]
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            node.body.insert(0, _with_location(_tick(), node.body[0]))
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
    """Insert a statement before each numbered one; in a lambda, a call before its body."""
    for number, place in enumerate(module.numbered):
        spot = module.spots[place]
        if isinstance(spot.node, ast.Lambda):
            call = ast.Call(ast.Constant(_TICK), arguments(number), [])
            body = spot.node.body
            # The call returns None, so the value is that of the body.
            spot.node.body = _with_location(ast.BoolOp(ast.Or(), [call, body]), body)
        elif not is_docstring(spot.node):  # type: ignore[arg-type]
            statement = before(number)
            if statement is not None:
                _put_before(spot, _with_location(statement, spot.node))


def _put_before(spot: NodeSpot, statement: ast.AST) -> None:
    body = getattr(spot.parent, spot.field)
    body.insert(next(i for i, node in enumerate(body) if node is spot.node), statement)


def _with_location(node: Any, like: ast.AST) -> Any:
    return ast.fix_missing_locations(ast.copy_location(node, like))


def with_constants(code: CodeType, values: dict[str, object]) -> CodeType:
    """Return code in which placeholder constants are replaced by the given values."""
    constants = []
    changed = False
    for constant in code.co_consts:
        new: object = constant
        if isinstance(constant, CodeType):
            new = with_constants(constant, values)
        elif isinstance(constant, str) and constant in values:
            new = values[constant]
        changed = changed or new is not constant
        constants.append(new)
    return code.replace(co_consts=tuple(constants)) if changed else code


# Switching mutants on and off.

_Key = tuple[str, int]
"""The qualified name of a code object, and its first line."""
_PLAIN = (
    ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context
)  # fmt: skip
"""The nodes of a default argument that can be evaluated on its own."""
_SUSPENDED = {GeneratorType: "gi_code", CoroutineType: "cr_code", AsyncGeneratorType: "ag_code"}


class NotSwitchable(Exception):
    """Raised for a mutant that cannot be switched on in the running program."""


@dataclass
class LiveCode:
    """The functions and suspended generators of a file that exist in this process."""

    functions: dict[_Key, list[FunctionType]] = field(default_factory=dict)
    suspended: set[_Key] = field(default_factory=set)
    """The code of generators and coroutines that are running, suspended or not yet started."""


def live_code(filenames: Iterable[str]) -> dict[str, LiveCode]:
    """Return what exists in this process of files, by the file names in their code objects."""
    live = {name: LiveCode() for name in filenames}
    # `gc.get_objects` leaves out frozen objects, and a process that forks may have frozen some.
    frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    objects = gc.get_objects()
    if frozen:
        gc.freeze()
    for value in objects:
        if type(value) is FunctionType:
            code = value.__code__
            of_file = live.get(code.co_filename)
            if of_file is not None:
                of_file.functions.setdefault(_key(code), []).append(value)
        elif type(value) in _SUSPENDED:
            code = getattr(value, _SUSPENDED[type(value)])
            if code.co_filename in live:
                live[code.co_filename].suspended.add(_key(code))
    return live


def _key(code: CodeType) -> _Key:
    return code.co_qualname, code.co_firstlineno


@dataclass
class LiveFile:
    """A loaded file of the program, whose functions can be given other code.

    All its loops use up `steps` once `tick` was called; the function of a mutant always does.
    """

    source: Source
    functions: dict[_Key, list[FunctionType]]
    steps: Steps = field(default_factory=Steps)
    suspended: set[_Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.plain = Module(self.source.text, self.source.place)
        self._ticking = ticking(Module(self.source.text, self.source.place))
        self._changed: list[Callable[[], None]] = []

    # Instrumenting all functions

    def tick(self) -> None:
        """Make all loops use up steps."""
        module = ticking(Module(self.source.text, self.source.place), loops_only=True)
        self._give_all(module, self.steps.bind)

    def count(self) -> Counts:
        """Make all functions count their statements."""
        counts = Counts(self.plain)
        self._give_all(counting(Module(self.source.text, self.source.place)), counts.bind)
        return counts

    def counting_code(self, counts: Counts) -> CodeType:
        """Return code of the whole file that counts statements, for when it is imported again."""
        module = counting(Module(self.source.text, self.source.place))
        return counts.bind(module_code(module))

    def _give_all(self, module: Module, bind: Callable[[CodeType], CodeType]) -> None:
        for place, outer in module.outers.items():
            if self._is_live(self.plain.outers[place]):
                self._give(module, outer, bind)

    # Mutants

    def switch_on(self, mutant: Mutant) -> None:
        """Turn the program into the mutant until `restore`; raise `NotSwitchable` if impossible."""
        spot = self._ticking.spots[mutant.place]
        if spot.outer is None:
            self._change_default(mutant)
            return
        outer = self._ticking.outers[spot.outer]
        if not self._is_live(outer):
            raise NotSwitchable(f"{outer.qualname} is not loaded, or cannot be told apart")
        new = replacement(spot, mutant.change)
        spot.replace(new)
        try:
            self._give(self._ticking, outer, self.steps.bind)
        finally:
            spot.restore(new)

    @property
    def changes(self) -> int:
        """The number of changes so far, to which `restore` can go back."""
        return len(self._changed)

    def restore(self, to: int = 0) -> None:
        """Undo all changes, or those since there were `to` of them."""
        while len(self._changed) > to:
            self._changed.pop()()

    def switchable(self, mutant: Mutant) -> bool:
        """Return whether a mutant can be switched on in this process."""
        spot = self.plain.spots[mutant.place]
        if spot.outer is not None:
            outer = self.plain.outers[spot.outer]
            return self._is_live(outer) and not self._is_suspended(outer)
        owner = self.default_of(mutant.place)
        return owner is not None and self._is_live(self.plain.outers[owner])

    def statement(self, mutant: Mutant) -> int:
        """Return the number of the statement that a test must execute to notice a mutant.

        It is -1 if there is no such statement.
        """
        owner = self.default_of(mutant.place)
        if owner is not None:
            return self.plain.entries.get(owner, -1)
        return self.plain.spots[mutant.place].statement

    def line_of(self, statement: int) -> int | None:
        """Return the first line of a numbered statement; None for a lambda, which has no own."""
        node = self.plain.spots[self.plain.numbered[statement]].node
        return node.lineno if isinstance(node, ast.stmt) else None

    def default_of(self, place: Place) -> Place | None:
        """Return the outer function with a default argument at a place, if it can be changed.

        It can if it is made of constants and operators only.
        """
        for end in range(len(place) - 1, 0, -1):
            outer = self.plain.outers.get(place[:end])
            if outer is None or place[end] != ("args", -1):
                continue
            default = self.plain.spots[place[: end + 2]].node
            if all(isinstance(node, _PLAIN) for node in ast.walk(default)):
                return place[:end]
        return None

    def _is_live(self, outer: OuterFunction) -> bool:
        functions = self.functions.get((outer.qualname, outer.line))
        if not functions:
            return False
        if outer.name != "<lambda>":
            return True
        # Two lambdas on the same line cannot be told apart: they have the same name and line.
        same_line = sum(
            (other.qualname, other.line) == (outer.qualname, outer.line)
            for other in self.plain.outers.values()
        )
        return len({function.__code__ for function in functions}) == 1 == same_line

    def _is_suspended(self, outer: OuterFunction) -> bool:
        """Return whether a generator or coroutine would continue with the function's old code."""
        within = f"{outer.qualname}.<locals>."
        return any(
            (name, line) == (outer.qualname, outer.line) or name.startswith(within)
            for name, line in self.suspended
        )

    def _give(
        self, module: Module, outer: OuterFunction, bind: Callable[[CodeType], CodeType]
    ) -> None:
        """Give a function, and functions that it has created, the code of the current tree."""
        code = function_code(module, outer)
        lost = self._lost_variables(code)
        if lost:
            code = function_code(module, outer, lost)
            if self._lost_variables(code):
                raise NotSwitchable(f"{outer.qualname} has other variables of its own")
        for new in nested_codes(bind(code)):
            for function in self.functions.get(_key(new), ()):
                self._set(function, "__code__", new)

    def _lost_variables(self, code: CodeType) -> dict[str, set[str]]:
        """Return the free variables of live functions that are missing in their new code."""
        lost: dict[str, set[str]] = {}
        for new in nested_codes(code):
            for function in self.functions.get(_key(new), ()):
                if function.__code__.co_freevars != new.co_freevars:
                    missing = set(function.__code__.co_freevars) - set(new.co_freevars)
                    lost.setdefault(new.co_qualname, set()).update(missing)
        return lost

    def _change_default(self, mutant: Mutant) -> None:
        owner = self.default_of(mutant.place)
        if owner is None:
            raise NotSwitchable("it was executed when the module was imported")
        spot = self.plain.spots[mutant.place]
        outer = self.plain.outers[owner]
        _, (kind, index) = mutant.place[len(owner) : len(owner) + 2]
        new = replacement(spot, mutant.change)
        spot.replace(new)
        try:
            expression = getattr(outer.node.args, kind)[index]
            value = eval(compile(ast.Expression(expression), self.source.place, "eval"), {})
        except Exception as error:
            raise NotSwitchable(f"its default cannot be evaluated: {error}") from None
        finally:
            spot.restore(new)
        for function in self.functions[outer.qualname, outer.line]:
            if kind == "kw_defaults":
                named = {outer.node.args.kwonlyargs[index].arg: value}
                self._set(function, "__kwdefaults__", {**(function.__kwdefaults__ or {}), **named})
            else:
                defaults = list(function.__defaults__ or ())
                defaults[index] = value
                self._set(function, "__defaults__", tuple(defaults))

    def _set(self, function: FunctionType, name: str, value: Any) -> None:
        before = getattr(function, name)
        self._changed.append(lambda: setattr(function, name, before))
        setattr(function, name, value)
