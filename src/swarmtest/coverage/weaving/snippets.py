"""The few pieces of syntax that weaving puts into a program.

All are statements without calls, so that they neither count against the recursion limit nor show
in a profile, and all use names that end in two underscores, which classes do not mangle.
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
`BaseException` (in a tuple), whatever the program means by that name."""

_ERROR = "__swarm_error__"
_PATH = "__swarm_path__"
_STATE = "__swarm_state__"
CUT_WAY = "\0w"
"""What follows the function's number in the path of a counted call that an exception ended."""
RAISED_MARK = "\0"
"""What stands before and after the line of an exception in a path."""


Node = TypeVar("Node", bound=ast.AST)
_PLACED = (ast.stmt, ast.expr, ast.ExceptHandler, ast.keyword)


def located(nodes: list[Node], place: ast.AST) -> list[Node]:
    """Give new syntax the place of the code that it belongs to."""
    for top in nodes:
        for node in ast.walk(top):
            if isinstance(node, _PLACED) and not hasattr(node, "lineno"):
                ast.copy_location(node, place)
                # One line, so that a traceback never points at more than it should.
                node.end_lineno = node.lineno
                node.end_col_offset = node.col_offset
    return nodes


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _mark(cell: str, key: ast.expr) -> ast.stmt:
    """``cell[key] = 1``."""
    place = ast.Subscript(_load(cell), key, ast.Store())
    return ast.Assign([place], ast.Constant(1))


def probe(number: int) -> ast.stmt:
    """``hits[number] = 1``."""
    return _mark(HITS, ast.Constant(number))


def probed(number: int, value: ast.expr) -> ast.expr:
    """``(hits.__setitem__(number, 1), value)[1]``: a probe where no statement can stand."""
    store = ast.Attribute(_load(HITS), "__setitem__", ast.Load())
    call = ast.Call(store, [ast.Constant(number), ast.Constant(1)], [])
    return ast.Subscript(ast.Tuple([call, value], ast.Load()), ast.Constant(1), ast.Load())


def start_path(function: int) -> ast.stmt:
    """``path = "..."``: a path begins with the number of its function."""
    return ast.Assign([ast.Name(_PATH, ast.Store())], ast.Constant(chr(function)))


def step_path(symbol: str) -> ast.stmt:
    """``path += "..."``: CPython appends to a string that nobody else holds in place."""
    return ast.AugAssign(ast.Name(_PATH, ast.Store()), ast.Add(), ast.Constant(symbol))


def end_path() -> ast.stmt:
    """``paths[path] = 1``."""
    return _mark(PATHS, _load(_PATH))


def start_way(first: int) -> ast.stmt:
    """``way = first``: the place of the function's ways in the list."""
    return ast.Assign([ast.Name(_PATH, ast.Store())], ast.Constant(first))


def step_way(added: int) -> ast.stmt:
    """``way += added``."""
    return ast.AugAssign(ast.Name(_PATH, ast.Store()), ast.Add(), ast.Constant(added))


def counted(body: list[ast.stmt], first: int) -> list[ast.stmt]:
    """A function's body whose way is noted; place 0 is for ways that exceptions cut short."""
    end = _mark(WAYS, _load(_PATH))
    return [start_way(first), ast.Try(body, [], [], [end])]


def note_cut_way(function: int) -> list[ast.stmt]:
    """``paths["...way...line"] = 1; way = 0``, in a handler."""
    traceback = ast.Attribute(_load(_ERROR), "__traceback__", ast.Load())
    line = ast.FormattedValue(ast.Attribute(traceback, "tb_lineno", ast.Load()), -1, None)
    way = ast.FormattedValue(_load(_PATH), -1, None)
    marks = [ast.Constant(text) for text in (f"{chr(function)}{CUT_WAY}", RAISED_MARK, RAISED_MARK)]
    key = ast.JoinedStr([marks[0], way, marks[1], line, marks[2]])
    return [ast.If(traceback, [_mark(PATHS, key)], []), start_way(0)]


def start_state(predicates: int) -> ast.stmt:
    """``state = 1 << 2n``: no predicate has been evaluated yet; the top bit keeps it true."""
    return ast.Assign([ast.Name(_STATE, ast.Store())], ast.Constant(1 << 2 * predicates))


def note_state(fact: int) -> ast.stmt:
    """``states[fact, state] = 1``."""
    return _mark(STATES, ast.Tuple([ast.Constant(fact), _load(_STATE)], ast.Load()))


def watched_predicate(test: ast.expr, number: int, predicates: int) -> ast.expr:
    """An expression that is true or false as `test` is, and notes which in the state."""
    keep = (1 << 2 * predicates + 1) - 1 & ~(3 << 2 * number)

    def noted(value: int) -> ast.expr:
        kept = ast.BinOp(_load(_STATE), ast.BitAnd(), ast.Constant(keep))
        both = ast.BinOp(kept, ast.BitOr(), ast.Constant(value << 2 * number))
        return ast.NamedExpr(ast.Name(_STATE, ast.Store()), both)

    return ast.IfExp(test, noted(2), ast.UnaryOp(ast.Not(), noted(1)))


def handler(statements: list[ast.stmt], named: bool) -> ast.ExceptHandler:
    """``except BaseException: ...; raise``: sees every exception, and stops none.

    A bare ``raise`` leaves the traceback as it was.
    """
    name = _ERROR if named else None
    return ast.ExceptHandler(_load(ANYTHING), name, [*statements, ast.Raise()])


def note_raised(function: int, lines: bool, path: bool) -> list[ast.stmt]:
    """``if error.__traceback__: ...``: note the line that an exception came from.

    For lines, ``raised[function, line] = 1``; for the path, the line between two marks.
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
    """A suite whose exceptions are noted (`note_raised`), and go on."""
    return ast.Try(body, [handler(notes, named=True)], [], [])


def traced(body: list[ast.stmt], function: int) -> list[ast.stmt]:
    """A function's body whose path is noted, however it is left."""
    return [start_path(function), ast.Try(body, [], [], [end_path()])]


def prologue(file: str) -> ast.stmt:
    """``hits, raised, ... = __import__(...).cells("file")``.

    A statement of the module, not something its loader sets: so it also holds when the code is run
    in another namespace (`runpy`).
    """
    live = ast.Call(
        _load("__import__"),
        [ast.Constant("swarmtest.coverage.file_probes")],
        [ast.keyword("fromlist", ast.List([ast.Constant("cells")], ast.Load()))],
    )
    call = ast.Call(ast.Attribute(live, "cells", ast.Load()), [ast.Constant(file)], [])
    names: list[ast.expr] = [ast.Name(name, ast.Store()) for name in CELLS]
    return ast.Assign([ast.Tuple(names, ast.Store())], call)


# -------------------------------------------------------------------------------------------------
# Predicate-complete coverage: what the conditions of a function were at each of its statements.
#
# Ball's measure (FMCO 2004), as the swarm paper uses it, asks for the values of all predicates at
# every statement. Evaluating a Python condition again may call anything, so a predicate's value
# here
# is the one it had when the call last evaluated it; until then it is unknown. The conditions are
# the
# atoms of ``if``, ``while``, ``assert`` and conditional expressions, outside of nested scopes.

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
    """Let each condition of a function note its value, in place; answers their sources."""
    atoms: list[ast.expr] = []
    for node in function.body:
        _collect(node, atoms)
    texts = [ast.unparse(atom) for atom in atoms]
    numbers = {id(atom): i for i, atom in enumerate(atoms)}
    swap = _Swap(numbers)
    for node in function.body:
        swap.visit(node)
    return texts


def _collect(node: ast.AST, atoms: list[ast.expr]) -> None:
    if isinstance(node, _OTHER_SCOPES):
        return
    if isinstance(node, ast.If | ast.While | ast.Assert | ast.IfExp):
        _atoms_of(node.test, atoms)
    for child in ast.iter_child_nodes(node):
        if child is not getattr(node, "annotation", None):  # evaluated elsewhere, or never
            _collect(child, atoms)


def _atoms_of(test: ast.expr, atoms: list[ast.expr]) -> None:
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            _atoms_of(value, atoms)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        _atoms_of(test.operand, atoms)
    elif not is_constant(test) and not isinstance(test, ast.IfExp):
        atoms.append(test)


class _Swap(ast.NodeTransformer):
    """Puts the watching expression in the place of each atom."""

    def __init__(self, numbers: dict[int, int]) -> None:
        self._numbers = numbers

    def visit(self, node: ast.AST) -> ast.AST:
        number = self._numbers.get(id(node))
        if isinstance(node, _OTHER_SCOPES):
            return node
        swapped = self.generic_visit(node)
        if number is None:
            return swapped
        assert isinstance(swapped, ast.expr)
        watching = watched_predicate(swapped, number, len(self._numbers))
        for part in ast.walk(watching):
            if "lineno" in part._attributes and not hasattr(part, "lineno"):
                ast.copy_location(part, node)
        return watching
