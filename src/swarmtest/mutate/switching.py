"""Switching a mutant on in a running program: no file is written, nothing is imported again.

The functions of a loaded file are found by their code objects (among all that the garbage collector
knows, so it does not matter what decorated, wrapped or stored them), and get other code: the
mutant's, compiled from the file's text. So it makes no difference whether coverage was woven into
what was loaded. Default arguments are kept by the function itself and are changed there.

What a module or a class body executes happened when it was imported, and what is suspended (a
generator) goes on with the code that it has: such mutants cannot be switched on, and `switchable`
says so.
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
from swarmtest.mutate.mutant import Function, Module, Mutant, Outer, Place, Spot, children

# -------------------------------------------------------------------------------------------------
# Counting steps: a budget that ends what a mutant made endless, the same on every machine.
#
# A *step* is a pass through the body of a loop in the files that are mutated, or the entry of the
# mutated function. In the original run of a test each statement is counted, which tells both what
# the
# test reaches and how many steps it takes; with a mutant, a multiple of those steps is allowed.
# Then
# `StepBudgetExceeded` is raised at every further step, so that code which swallows it comes no
# further.
#
# What counts is a constant of the compiled code, not a name: the program's modules gain none.

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
    swarmtest.mutate.switching.StepBudgetExceeded
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


# -------------------------------------------------------------------------------------------------

_Key = tuple[str, int]
"""The qualified name of a code object, and the line where it begins."""
_PLAIN = (
    ast.Constant, ast.UnaryOp, ast.BinOp, ast.Tuple, ast.operator, ast.unaryop, ast.expr_context
)  # fmt: skip


_SUSPENDED = {GeneratorType: "gi_code", CoroutineType: "cr_code", AsyncGeneratorType: "ag_code"}


class NotSwitchable(Exception):
    """A mutant that the running program cannot be given."""


@dataclass
class LiveCode:
    """What exists in this process of a file."""

    functions: dict[_Key, list[FunctionType]] = field(default_factory=dict)
    suspended: set[_Key] = field(default_factory=set)
    """The code of generators and coroutines that have begun, or are about to."""


def live_code(filenames: Iterable[str]) -> dict[str, LiveCode]:
    """What exists in this process of the files that code objects name so."""
    found = {name: LiveCode() for name in filenames}
    # A process that forks may have frozen what it loaded, and then it is not told.
    frozen = gc.get_freeze_count() > 0
    gc.unfreeze()
    objects = gc.get_objects()
    if frozen:
        gc.freeze()
    for one in objects:
        if type(one) is FunctionType:
            code = one.__code__
            of_file = found.get(code.co_filename)
            if of_file is not None:
                of_file.functions.setdefault(_key(code), []).append(one)
        elif type(one) in _SUSPENDED:
            code = getattr(one, _SUSPENDED[type(one)])
            if code.co_filename in found:
                found[code.co_filename].suspended.add(_key(code))
    return found


def _key(code: CodeType) -> _Key:
    return code.co_qualname, code.co_firstlineno


@dataclass
class LiveFile:
    """A loaded file of the program, whose functions can be given other code.

    `steps` are used up by all its loops once `tick` was called, and by a mutant's function always.
    """

    source: Source
    functions: dict[_Key, list[FunctionType]]
    steps: Steps = field(default_factory=Steps)
    suspended: set[_Key] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.plain = Module(self.source.text, self.source.place)
        self._ticking = ticking(Module(self.source.text, self.source.place))
        self._changed: list[Callable[[], None]] = []

    # What all functions do

    def tick(self) -> None:
        """Let all loops use up steps."""
        module = ticking(Module(self.source.text, self.source.place), loops_only=True)
        self._give_all(module, self.steps.bind)

    def count(self) -> Counts:
        """Let all functions count their statements."""
        counts = Counts(self.plain)
        self._give_all(counting(Module(self.source.text, self.source.place)), counts.bind)
        return counts

    def counting_code(self, counts: Counts) -> CodeType:
        """The whole file, if it is imported again: its functions count their statements, too."""
        module = counting(Module(self.source.text, self.source.place))
        return counts.bind(module_code(module))

    def _give_all(self, module: Module, bind: Callable[[CodeType], CodeType]) -> None:
        for place, outer in module.outers.items():
            if self._is_live(self.plain.outers[place]):
                self._give(module, outer, bind)

    # Mutants

    def switch_on(self, mutant: Mutant) -> None:
        """Let the program be the mutant, until `restore`; `NotSwitchable` says why it cannot."""
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
        """How much was changed so far: where `restore` can go back to."""
        return len(self._changed)

    def restore(self, to: int = 0) -> None:
        """Give back what was changed, all of it or what was changed since."""
        while len(self._changed) > to:
            self._changed.pop()()

    def switchable(self, mutant: Mutant) -> bool:
        """Whether a mutant can be switched on in this process."""
        spot = self.plain.spots[mutant.place]
        if spot.outer is not None:
            outer = self.plain.outers[spot.outer]
            return self._is_live(outer) and not self._is_suspended(outer)
        owner = self.default_of(mutant.place)
        return owner is not None and self._is_live(self.plain.outers[owner])

    def statement(self, mutant: Mutant) -> int:
        """The number of the statement that a test has to execute to notice it; -1: none is."""
        owner = self.default_of(mutant.place)
        if owner is not None:
            return self.plain.entries.get(owner, -1)
        return self.plain.spots[mutant.place].statement

    def line_of(self, statement: int) -> int | None:
        """Where a numbered statement begins; None for a lambda, which has no line of its own."""
        node = self.plain.spots[self.plain.numbered[statement]].node
        return node.lineno if isinstance(node, ast.stmt) else None

    def default_of(self, place: Place) -> Place | None:
        """The outer function that has a default argument at a place which can be changed alone."""
        for end in range(len(place) - 1, 0, -1):
            outer = self.plain.outers.get(place[:end])
            if outer is None or place[end] != ("args", -1):
                continue
            default = self.plain.spots[place[: end + 2]].node
            if all(isinstance(node, _PLAIN) for node in ast.walk(default)):
                return place[:end]
        return None

    def _is_live(self, outer: Outer) -> bool:
        found = self.functions.get((outer.qualname, outer.line))
        if not found:
            return False
        # Two lambdas on a line have the same name and line.
        return outer.name != "<lambda>" or len({one.__code__ for one in found}) == 1 == sum(
            (other.qualname, other.line) == (outer.qualname, outer.line)
            for other in self.plain.outers.values()
        )

    def _is_suspended(self, outer: Outer) -> bool:
        """Whether there is something that would go on with the code it has."""
        within = f"{outer.qualname}.<locals>."
        return any(
            (name, line) == (outer.qualname, outer.line) or name.startswith(within)
            for name, line in self.suspended
        )

    def _give(self, module: Module, outer: Outer, bind: Callable[[CodeType], CodeType]) -> None:
        """Give a function, and those that it made before, the code that the tree has now."""
        code = function_code(module, outer)
        lost = self._lost_variables(code)
        if lost:
            code = function_code(module, outer, lost)
            if self._lost_variables(code):
                raise NotSwitchable(f"{outer.qualname} has other variables of its own")
        for one in nested_codes(bind(code)):
            for function in self.functions.get(_key(one), ()):
                self._set(function, "__code__", one)

    def _lost_variables(self, code: CodeType) -> dict[str, set[str]]:
        """Variables that live functions take from around them and this code does not."""
        lost: dict[str, set[str]] = {}
        for one in nested_codes(code):
            for function in self.functions.get(_key(one), ()):
                if function.__code__.co_freevars != one.co_freevars:
                    missing = set(function.__code__.co_freevars) - set(one.co_freevars)
                    lost.setdefault(one.co_qualname, set()).update(missing)
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
