"""A log of the values with which the program compared something and found it different.

A condition like ``code == self.secret`` is seldom met by chance, and the source does not say the
value. So the functions of the program get another code object, in which the comparisons of
conditions note both sides when they fail: ``a == b`` becomes

    (left := a) == (right := b) or not different(7, left, right)

Generators then draw the noted values now and then, later in the same test. The values of one test
are forgotten before the next, so that a test still follows from its configuration and seed.

What a condition does stays the same: both sides are evaluated once and in order, and the truth of
the comparison is asked once. Only conditions of ``if``, ``assert`` and ``... if ... else`` in
functions are changed, and no function that looks at its local variables. A failed comparison costs
one more call, so those in loops stay as they are: they would make a search in a list three times as
slow, and what it finds there are mostly values that the test has used. An object is held until its
function returns; only numbers, texts and bytes are noted.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import types
from collections.abc import Callable, Iterator
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

from swarmtest.coverage.weaving.syntax import looks_at_locals
from swarmtest.subjects.machine.mixtures.program_constants import files_of

_LEFT, _RIGHT = "__swarm_left__", "__swarm_right__"
_DIFFERENT, _ABSENT = "__swarm_different__", "__swarm_absent__"
_KINDS = frozenset((int, float, str, bytes))
_COLLECTIONS = frozenset((tuple, list, set, frozenset, dict))
_LONGEST = 64
_MOST_ELEMENTS = 16
_MOST_BYTES = 200_000
"""The size of all files that are changed: each is parsed and compiled."""

Log = dict[int, tuple[Any, ...]]
"""The values of the last failed comparison, by the number of its place."""
_log: Log = {}


def log_into(log: Log) -> None:
    """Note the values of failed comparisons in `log` from now on."""
    global _log
    _log = log


def _different(place: int, left: Any, right: Any) -> bool:
    """Note two values that differ; return True."""
    if type(left) in _KINDS and type(right) is type(left):
        _log[place] = left, right
    return True


def _absent(place: int, value: Any, values: Any) -> bool:
    """Note the elements of a small collection that a value is not in; return False."""
    small = type(values) in _COLLECTIONS and len(values) <= _MOST_ELEMENTS
    if small and type(value) in _KINDS:
        known = [element for element in values if type(element) is type(value)]
        # The order of a set of texts differs from process to process.
        _log[place] = (value, *(sorted(known) if type(values) in (set, frozenset) else known))
    return False


def noted_values(log: Log, used: list[Any]) -> list[Any]:
    """Return the noted values, without those that the test itself has passed.

    >>> noted_values({0: (5, 77)}, [5])
    [77]
    """
    return [
        value
        for values in log.values()
        for value in values
        if not (type(value) in (str, bytes) and len(value) > _LONGEST) and value not in used
    ]


# Changing the program.

_places = 0


def watch_comparisons(module: str) -> None:
    """Note failed comparisons in the functions of a machine's module and of those that it uses."""
    for loaded, path in files_of(module, _MOST_BYTES):
        if _DIFFERENT not in vars(loaded):
            setattr(loaded, _DIFFERENT, _different)
            setattr(loaded, _ABSENT, _absent)
            _watch(loaded, path)


def _functions_of(module: types.ModuleType) -> list[types.FunctionType]:
    """Return the functions that a module defines, with methods and what decorators hide.

    They are not asked from the garbage collector, which does not name frozen objects.
    """
    found: dict[int, types.FunctionType] = {}
    seen: set[int] = set()
    waiting: list[Any] = list(vars(module).values())
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, types.FunctionType):
            if thing.__globals__ is vars(module):
                found[id(thing)] = thing
            waiting += [cell.cell_contents for cell in thing.__closure__ or () if _is_filled(cell)]
            waiting.append(vars(thing).get("__wrapped__"))
        elif isinstance(thing, type):
            if thing.__module__ == module.__name__:
                waiting += vars(thing).values()
        elif isinstance(thing, staticmethod | classmethod | types.MethodType):
            waiting.append(thing.__func__)
        elif isinstance(thing, property):
            waiting += [thing.fget, thing.fset, thing.fdel]
        elif isinstance(thing, functools.cached_property):
            waiting.append(thing.func)
    return list(found.values())


def _is_filled(cell: types.CellType) -> bool:
    try:
        return isinstance(cell.cell_contents, types.FunctionType)
    except ValueError:  # a variable that has no value yet
        return False


def _watch(module: types.ModuleType, path: Path) -> None:
    try:
        tree = _tree(module, path)
        rewriter = _Rewriter()
        rewriter.visit(tree)
        # From the cache of compiled modules, as the functions have it.
        loader = module.__loader__
        if not rewriter.count or not isinstance(loader, SourceFileLoader):
            return
        plain = loader.get_code(module.__name__)
        if plain is None:
            return
        old = _codes(plain)
        ast.fix_missing_locations(tree)
        new = _codes(compile(tree, str(path), "exec", dont_inherit=True))
    except (OSError, SyntaxError, ValueError, ImportError, RecursionError):
        return
    for function in _functions_of(module):
        key = _key(function.__code__)
        # A function of another version of the file, or one that someone else has changed, stays.
        same = old.get(key) == function.__code__
        if same and key in new and new[key].co_freevars == function.__code__.co_freevars:
            function.__code__ = new[key]


def _tree(module: types.ModuleType, path: Path) -> ast.Module:
    """Return the syntax tree of a module, with the probes of coverage if it has them."""
    loader = module.__loader__
    if type(loader) is SourceFileLoader:
        return ast.parse(importlib.util.decode_source(path.read_bytes()))
    # Here, because it needs numpy, which a run without coverage does not load.
    from swarmtest.coverage.import_hook import ProbingLoader

    if type(loader) is ProbingLoader:
        return loader.woven_tree(module.__name__)
    raise ImportError(f"{module.__name__} has a loader of its own")


def _key(code: types.CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: types.CodeType) -> dict[tuple[str, int], types.CodeType]:
    """Return the code objects in a module by name and line; none for those that are ambiguous."""
    codes: dict[tuple[str, int], types.CodeType] = {}
    ambiguous = set()
    for inner in _all_codes(code):
        if _key(inner) in codes:
            ambiguous.add(_key(inner))
        codes[_key(inner)] = inner
    return {key: inner for key, inner in codes.items() if key not in ambiguous}


def _all_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _all_codes(constant)


class _Rewriter(ast.NodeTransformer):
    """Changes the comparisons in the conditions of functions."""

    def __init__(self) -> None:
        self.count = 0
        self._in_function = False

    def _function(self, node: Any) -> Any:
        if looks_at_locals(node):
            return node
        outer, self._in_function = self._in_function, True
        node.body = [self.visit(statement) for statement in node.body]
        self._in_function = outer
        return node

    visit_FunctionDef = _function
    visit_AsyncFunctionDef = _function

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """Change the methods, not the body: its names would become attributes."""
        outer, self._in_function = self._in_function, False
        node.body = [self.visit(statement) for statement in node.body]
        self._in_function = outer
        return node

    def _unchanged(self, node: Any) -> Any:
        return node

    visit_Lambda = _unchanged
    visit_ListComp = _unchanged
    visit_SetComp = _unchanged
    visit_DictComp = _unchanged
    visit_GeneratorExp = _unchanged

    def _with_test(self, node: Any) -> Any:
        self.generic_visit(node)
        if self._in_function:
            node.test = self._condition(node.test)
        return node

    visit_For = _unchanged
    visit_AsyncFor = _unchanged
    visit_While = _unchanged
    visit_If = _with_test
    visit_Assert = _with_test
    visit_IfExp = _with_test

    def _condition(self, test: ast.expr) -> ast.expr:
        if isinstance(test, ast.BoolOp):
            test.values = [self._condition(value) for value in test.values]
        elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test.operand = self._condition(test.operand)
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            return self._comparison(test)
        return test

    def _comparison(self, test: ast.Compare) -> ast.expr:
        """Return ``a == b or not different(7, a, b)``; see the head of this module."""
        write = _WRITERS.get(type(test.ops[0]))
        right = test.comparators[0]
        if write is None or _is_trivial(test.left) or _is_trivial(right):
            return test
        global _places
        self.count += 1
        _places += 1
        left, taken_left = _named(test.left, _LEFT)
        right, taken_right = _named(right, _RIGHT)
        compare = ast.Compare(left, test.ops, [right])
        changed = write(compare, _places, taken_left, taken_right)
        for node in ast.walk(changed):
            if isinstance(node, ast.expr) and not hasattr(node, "lineno"):
                ast.copy_location(node, test)
        return changed


def _is_trivial(side: ast.expr) -> bool:
    """Return whether a side can only be True, False, None or a type's name: no value to draw."""
    if isinstance(side, ast.Constant):
        return side.value is None or isinstance(side.value, bool)
    return isinstance(side, ast.Call) and isinstance(side.func, ast.Name) and side.func.id == "type"


def _named(side: ast.expr, name: str) -> tuple[ast.expr, ast.expr]:
    """Return a side of a comparison that keeps its value, and an expression that reads it again."""
    if isinstance(side, ast.Constant):
        return side, ast.Constant(side.value)
    if isinstance(side, ast.Name):
        return side, ast.Name(side.id, ast.Load())
    return ast.NamedExpr(ast.Name(name, ast.Store()), side), ast.Name(name, ast.Load())


def _call(name: str, place: int, left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), [ast.Constant(place), left, right], [])


def _write_equal(test: ast.expr, place: int, left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BoolOp(
        ast.Or(), [test, ast.UnaryOp(ast.Not(), _call(_DIFFERENT, place, left, right))]
    )


def _write_unequal(test: ast.expr, place: int, left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BoolOp(ast.And(), [test, _call(_DIFFERENT, place, left, right)])


def _write_in(test: ast.expr, place: int, left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BoolOp(ast.Or(), [test, _call(_ABSENT, place, left, right)])


_WRITERS: dict[type[ast.cmpop], Callable[..., ast.expr]] = {
    ast.Eq: _write_equal,
    ast.NotEq: _write_unequal,
    ast.In: _write_in,
}
