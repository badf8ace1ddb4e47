"""The few pieces of syntax that weaving puts into a program.

Almost all are statements without calls, so that they neither count against the recursion limit nor
show in a profile, and all use names that end in two underscores, which classes do not mangle.

`watch_predicates` is for predicate-complete coverage. Ball's measure (FMCO 2004), as the swarm
paper uses it, needs the values of all predicates of a function at every statement. Evaluating a
Python condition again may call anything, so here the value of a predicate is the one it had when
the call last evaluated it; until then it is unknown. The predicates are the atoms of ``if``,
``while``, ``assert`` and conditional expressions, outside of nested scopes.
"""

from __future__ import annotations

import ast
from typing import TypeVar

from swarmtest.coverage.weaving.syntax import FunctionNode, is_constant

HITS = "__swarm_hits__"
RAISED = "__swarm_raised__"
STATES = "__swarm_states__"
PATHS = "__swarm_paths__"
WAYS = "__swarm_ways__"
ANYTHING = "__swarm_anything__"
CELLS = (HITS, RAISED, STATES, PATHS, WAYS, ANYTHING)
"""Module globals: a list of probes, three dictionaries used as sets, a list of ways, and
`BaseException` (in a tuple), because the program may give that name another meaning."""

_ERROR = "__swarm_error__"
_PATH = "__swarm_path__"
_STATE = "__swarm_state__"
CUT_WAY = "\0w"
"""Follows the function's number in the path of a numbered call that an exception ended."""
RAISED_MARK = "\0"
"""Encloses the line of an exception in a path."""

Node = TypeVar("Node", bound=ast.AST)
_LOCATED = (ast.stmt, ast.expr, ast.ExceptHandler, ast.keyword)


def located(nodes: list[Node], place: ast.AST) -> list[Node]:
    """Give new syntax the location of the code that it belongs to, and return it."""
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, _LOCATED) and not hasattr(node, "lineno"):
                ast.copy_location(node, place)
                # One line only, so that a traceback does not point at the whole suite.
                node.end_lineno = node.lineno
                node.end_col_offset = node.col_offset
    return nodes


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _mark(cell: str, key: ast.expr) -> ast.stmt:
    """Return ``cell[key] = 1``."""
    item = ast.Subscript(_load(cell), key, ast.Store())
    return ast.Assign([item], ast.Constant(1))


def probe(number: int) -> ast.stmt:
    """Return ``hits[number] = 1``."""
    return _mark(HITS, ast.Constant(number))


def probed(number: int, value: ast.expr) -> ast.expr:
    """Return ``(hits.__setitem__(number, 1), value)[1]``, a probe where only an expression fits."""
    store = ast.Attribute(_load(HITS), "__setitem__", ast.Load())
    call = ast.Call(store, [ast.Constant(number), ast.Constant(1)], [])
    return ast.Subscript(ast.Tuple([call, value], ast.Load()), ast.Constant(1), ast.Load())


def start_path(function: int) -> ast.stmt:
    """Return ``path = "..."``: a path begins with the number of its function."""
    return ast.Assign([ast.Name(_PATH, ast.Store())], ast.Constant(chr(function)))


def step_path(symbol: str) -> ast.stmt:
    """Return ``path += "..."``, which CPython does in place for a string with one reference."""
    return ast.AugAssign(ast.Name(_PATH, ast.Store()), ast.Add(), ast.Constant(symbol))


def end_path() -> ast.stmt:
    """Return ``paths[path] = 1``."""
    return _mark(PATHS, _load(_PATH))


def start_way(first: int) -> ast.stmt:
    """Return ``way = first``, the position of the function's first way in the list."""
    return ast.Assign([ast.Name(_PATH, ast.Store())], ast.Constant(first))


def step_way(added: int) -> ast.stmt:
    """Return ``way += added``."""
    return ast.AugAssign(ast.Name(_PATH, ast.Store()), ast.Add(), ast.Constant(added))


def counted(body: list[ast.stmt], first: int) -> list[ast.stmt]:
    """Return a function's body that records its way, at index 0 if an exception ended it."""
    end = _mark(WAYS, _load(_PATH))
    return [start_way(first), ast.Try(body, [], [], [end])]


def note_cut_way(function: int) -> list[ast.stmt]:
    """Return ``paths["...way...line"] = 1; way = 0``, for a handler."""
    traceback = ast.Attribute(_load(_ERROR), "__traceback__", ast.Load())
    line = ast.FormattedValue(ast.Attribute(traceback, "tb_lineno", ast.Load()), -1, None)
    way = ast.FormattedValue(_load(_PATH), -1, None)
    marks = [ast.Constant(text) for text in (f"{chr(function)}{CUT_WAY}", RAISED_MARK, RAISED_MARK)]
    key = ast.JoinedStr([marks[0], way, marks[1], line, marks[2]])
    return [ast.If(traceback, [_mark(PATHS, key)], []), start_way(0)]


def start_state(predicates: int) -> ast.stmt:
    """Return ``state = 1 << 2n``: no predicate is evaluated yet; the top bit keeps it truthy."""
    return ast.Assign([ast.Name(_STATE, ast.Store())], ast.Constant(1 << 2 * predicates))


def note_state(fact: int) -> ast.stmt:
    """Return ``states[fact, state] = 1``."""
    return _mark(STATES, ast.Tuple([ast.Constant(fact), _load(_STATE)], ast.Load()))


def watched_predicate(test: ast.expr, number: int, predicates: int) -> ast.expr:
    """Return an expression that is as true as `test`, and records its value in the state.

    A predicate has two bits in the state: 0 before it is evaluated, 1 if false, 2 if true.
    """
    others = (1 << 2 * predicates + 1) - 1 & ~(3 << 2 * number)

    def record(value: int) -> ast.expr:
        cleared = ast.BinOp(_load(_STATE), ast.BitAnd(), ast.Constant(others))
        updated = ast.BinOp(cleared, ast.BitOr(), ast.Constant(value << 2 * number))
        return ast.NamedExpr(ast.Name(_STATE, ast.Store()), updated)

    return ast.IfExp(test, record(2), ast.UnaryOp(ast.Not(), record(1)))


def handler(statements: list[ast.stmt], named: bool) -> ast.ExceptHandler:
    """Return ``except BaseException: ...; raise``, which sees every exception and stops none.

    A bare ``raise`` leaves the traceback unchanged.
    """
    name = _ERROR if named else None
    return ast.ExceptHandler(_load(ANYTHING), name, [*statements, ast.Raise()])


def note_raised(function: int, lines: bool, path: bool) -> list[ast.stmt]:
    """Return ``if error.__traceback__: ...``, which records the line of an exception.

    For lines it is ``raised[function, line] = 1``; for the path, the line between two marks.
    """
    traceback = ast.Attribute(_load(_ERROR), "__traceback__", ast.Load())
    line = ast.Attribute(traceback, "tb_lineno", ast.Load())
    notes: list[ast.stmt] = []
    if lines:
        notes.append(_mark(RAISED, ast.Tuple([ast.Constant(function), line], ast.Load())))
    if path:
        mark = ast.Constant(RAISED_MARK)
        text = ast.JoinedStr([mark, ast.FormattedValue(line, -1, None), mark])
        notes.append(ast.AugAssign(ast.Name(_PATH, ast.Store()), ast.Add(), text))
    return [ast.If(traceback, notes, [])]


def watched(body: list[ast.stmt], notes: list[ast.stmt]) -> ast.stmt:
    """Return a suite whose exceptions are recorded (`note_raised`) and raised again."""
    return ast.Try(body, [handler(notes, named=True)], [], [])


def traced(body: list[ast.stmt], function: int) -> list[ast.stmt]:
    """Return a function's body that records its path, whether it returns or raises."""
    return [start_path(function), ast.Try(body, [], [], [end_path()])]


def prologue(file: str) -> ast.stmt:
    """Return ``hits, raised, ... = __import__(...).cells("file")``.

    It is a statement of the module, not something that its loader sets, so that it also works when
    the code is run in another namespace (`runpy`).
    """
    module = ast.Call(
        _load("__import__"),
        [ast.Constant("swarmtest.coverage.file_probes")],
        [ast.keyword("fromlist", ast.List([ast.Constant("cells")], ast.Load()))],
    )
    call = ast.Call(ast.Attribute(module, "cells", ast.Load()), [ast.Constant(file)], [])
    names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in CELLS]
    return ast.Assign([ast.Tuple(names, ast.Store())], call)


# Predicates.

_OTHER_SCOPES = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    getattr(ast, "TypeAlias", ast.GeneratorExp),  # Python 3.12: evaluated later, elsewhere
)


def watch_predicates(function: FunctionNode) -> list[str]:
    """Make each condition of a function record its value, in place; return their sources."""
    atoms: list[ast.expr] = []
    for node in function.body:
        _collect_atoms(node, atoms)
    texts = [ast.unparse(atom) for atom in atoms]
    numbers = {id(atom): i for i, atom in enumerate(atoms)}
    transformer = _WatchAtoms(numbers)
    for node in function.body:
        transformer.visit(node)
    return texts


def _collect_atoms(node: ast.AST, atoms: list[ast.expr]) -> None:
    if isinstance(node, _OTHER_SCOPES):
        return
    if isinstance(node, ast.If | ast.While | ast.Assert | ast.IfExp):
        _atoms_of(node.test, atoms)
    for child in ast.iter_child_nodes(node):
        if child is not getattr(node, "annotation", None):  # evaluated elsewhere, or never
            _collect_atoms(child, atoms)


def _atoms_of(test: ast.expr, atoms: list[ast.expr]) -> None:
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            _atoms_of(value, atoms)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        _atoms_of(test.operand, atoms)
    elif not is_constant(test) and not isinstance(test, ast.IfExp):
        atoms.append(test)


class _WatchAtoms(ast.NodeTransformer):
    """Replaces each atom by an expression that records its value."""

    def __init__(self, numbers: dict[int, int]) -> None:
        self._numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST:
        number = self._numbers.get(id(node))
        if isinstance(node, _OTHER_SCOPES):
            return node
        visited = self.generic_visit(node)
        if number is None:
            return visited
        assert isinstance(visited, ast.expr)
        watching = watched_predicate(visited, number, len(self._numbers))
        for part in ast.walk(watching):
            if "lineno" in part._attributes and not hasattr(part, "lineno"):
                ast.copy_location(part, node)
        return watching
