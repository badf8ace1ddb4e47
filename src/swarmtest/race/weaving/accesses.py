"""Weave probes before reads, and before accesses to a part of an object.

`Accesses` is a transformer of syntax trees, which `swarmtest.race.weaving.weaver` extends with
writes and control flow. `Events` adds the calls that feasible mode needs.
"""

from __future__ import annotations

import ast
import sys
from typing import Any

from swarmtest.race.primitives.policy import CALL, EVENT, PROBE
from swarmtest.race.weaving.names import ScopeNames, names_of
from swarmtest.race.weaving.sites import SITES, Site

_READS_CONTENTS = frozenset(
    ("all", "any", "bool", "dict", "enumerate", "frozenset", "iter", "len", "list", "max", "min")
) | frozenset(("next", "reversed", "set", "sorted", "sum", "tuple"))
"""Builtins that read the contents of their first argument."""


class Accesses(ast.NodeTransformer):
    """A transformer that weaves probes into reads and all accesses that have a container."""

    def __init__(self, tree: ast.Module, path: str, events: bool) -> None:
        self._tree = tree
        self._path = path
        self._names: ScopeNames = names_of(tree)
        self._qualname: list[str] = []
        self._methods: list[set[str]] = []
        self._in_expression_scope = 0
        self._temporaries = 0
        self._events = Events() if events else None

    def weave(self) -> None:
        """Weave the whole module, in place."""
        self._tree.body = self._woven_body(self._tree.body)

    # Probes.

    def _probe(self, node: ast.AST, kind: str, what: str, name: str, *args: ast.expr) -> Any:
        function = ".".join(self._qualname).removesuffix(".<locals>")
        variable = text_of(node)
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        site = Site(self._path, line, column, function, kind, what, variable, name)
        number = ast.Constant(SITES.number(site))
        call = ast.Call(ast.Name(PROBE, ast.Load()), [number, *args], [])
        return located(call, node)

    def _temporary(self) -> str:
        self._temporaries += 1
        return f"__t{self._temporaries}__"

    # Scopes.

    def _woven_body(self, body: list[ast.stmt]) -> list[ast.stmt]:
        woven: list[ast.stmt] = []
        for node in body:
            rewritten = self.visit(node)
            woven += rewritten if isinstance(rewritten, list) else [rewritten]
        return woven

    def _enter_scope(self, node: ast.AST, name: str) -> None:
        self._names = self._names.inner[node]
        self._qualname.append(name)

    def _leave_scope(self) -> None:
        assert self._names.parent is not None
        self._names = self._names.parent
        self._qualname.pop()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._function(node)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        outer = self._in_expression_scope
        self._in_expression_scope = 0
        self._enter_scope(node, node.name)
        self._qualname.append("<locals>")
        node.body = self._woven_body(node.body)
        self._qualname.pop()
        self._leave_scope()
        self._in_expression_scope = outer
        if self._events:
            node.body = self._events.at_entry(node.body)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._in_expression_scope += 1
        self._enter_scope(node, "<lambda>")
        node.body = self.visit(node.body)
        self._leave_scope()
        self._in_expression_scope -= 1
        if self._events:
            node.body = self._events.before(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        methods = {
            statement.name for statement in node.body if isinstance(statement, ast.FunctionDef)
        }
        self._methods.append(methods)
        self._enter_scope(node, node.name)
        node.body = self._woven_body(node.body)
        self._leave_scope()
        self._methods.pop()
        return node

    def _comprehension(self, node: Any) -> Any:
        self._in_expression_scope += 1
        self.generic_visit(node)
        self._in_expression_scope -= 1
        return self._events.in_comprehension(node) if self._events else node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    # Reads, and all accesses that have a container.

    def visit_Name(self, node: ast.Name) -> Any:
        if not isinstance(node.ctx, ast.Load):
            return node
        what = self._names.shared_as(node.id)
        if not what or is_dunder(node.id):
            return node
        probe = self._probe(node, "read", what, node.id)
        return located(ast.BoolOp(ast.Or(), [probe, node]), node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return self._attribute(node, "write" if is_written(node) else "read")

    def _attribute(self, node: ast.Attribute, kind: str) -> ast.AST:
        if self._is_plain(node, kind):
            node.value = self._base(node.value)
            return node
        text = text_of(node)
        base = self._base(node.value)
        probe = self._probe(named(node, text), kind, "attribute", node.attr, base)
        node.value = probe
        return node

    def _is_plain(self, node: ast.Attribute, kind: str) -> bool:
        """Return whether an attribute is no variable.

        Functions of modules, the object's own methods and dunder names are none.
        """
        if is_dunder(node.attr) or is_super(node.value) or is_coverage(node):
            return True
        if not isinstance(node.value, ast.Name):
            return False
        name = node.value.id
        owner = self._names.owner(name)
        if kind != "write" and owner is not None and name in owner.standard_modules:
            return True
        return kind == "call" and name == "self" and any(node.attr in m for m in self._methods)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if is_coverage(node):
            return node
        if isinstance(node.value, ast.Tuple):  # no other thread can have a new tuple
            self.generic_visit(node)
            return node
        kind = "write" if is_written(node) else "read"
        text = f"{text_of(node.value)}[]"
        simple = self._is_simple(node.slice)
        base = self._base(node.value)
        index = self.visit(node.slice)
        stand_in = named(node, text)
        if simple or isinstance(node.slice, ast.Slice) or not self._may_assign():
            node.value, node.slice = self._probe(stand_in, kind, "subscript", "", base), index
            return node
        # The container is evaluated before the index, and the probe has to come after both.
        name = self._temporary()
        container = ast.NamedExpr(ast.Name(name, ast.Store()), base)
        probe = self._probe(stand_in, kind, "subscript", "", ast.Name(name, ast.Load()))
        both = ast.Tuple([index, probe], ast.Load())
        node.value = located(container, node)
        node.slice = located(ast.Subscript(both, ast.Constant(0), ast.Load()), node)
        return node

    def _base(self, node: ast.expr) -> Any:
        """Weave the object of an access; a name that never changes needs no probe of its own."""
        if isinstance(node, ast.Name) and not self._names.is_rebound(node.id):
            return node
        return self.visit(node)

    def _is_simple(self, node: ast.expr) -> bool:
        if isinstance(node, ast.UnaryOp):
            return self._is_simple(node.operand)
        if isinstance(node, ast.Name):
            return not self._names.shared_as(node.id)
        return isinstance(node, ast.Constant)

    def _may_assign(self) -> bool:
        """Return whether an expression here may use a temporary name."""
        return self._names.is_function and not self._in_expression_scope

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        node.left = self.visit(node.left)
        node.comparators = [
            self._contents_read(comparator)
            if isinstance(operator, ast.In | ast.NotIn)
            else self.visit(comparator)
            for operator, comparator in zip(node.ops, node.comparators, strict=True)
        ]
        return node

    def _contents_read(self, node: ast.expr) -> Any:
        """Weave a container that is read as a whole: by ``in``, a loop, or ``len``."""
        if isinstance(node, ast.Name):
            may_be_shared = bool(self._names.shared_as(node.id))
        else:
            may_be_shared = isinstance(node, ast.Attribute | ast.Subscript)
        if not may_be_shared:
            return self.visit(node)
        stand_in = named(node, f"{text_of(node)}[]")
        return self._probe(stand_in, "read", "subscript", "", self._base(node))

    def _reads_contents(self, name: str) -> bool:
        return name in _READS_CONTENTS and self._names.owner(name) is None

    def visit_Call(self, node: ast.Call) -> ast.AST:
        wrappable = self._events is not None and self._events.may_wrap(node)
        function = node.func
        if isinstance(function, ast.Attribute):
            node.func = self._attribute(function, "call")  # type: ignore[assignment]
        elif isinstance(function, ast.Name):
            node.func = self._base(function)
        else:
            node.func = self.visit(function)
        reads_contents = isinstance(function, ast.Name) and self._reads_contents(function.id)
        node.args = [
            self._contents_read(arg) if reads_contents and position == 0 else self.visit(arg)
            for position, arg in enumerate(node.args)
        ]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        return self._events.call(node) if self._events and wrappable else node


# Events of feasible mode.
#
# CPython 3.11 to 3.13 with a GIL check whether another thread wants to run when a function is
# entered (and a generator resumed), when a loop jumps back, and after a call of something that is
# not a Python function. They check nowhere else, except in calls that wait. Uncertain places are
# left out, because a schedule of feasible mode must be possible.

_FRAME_DEPENDENT = {"super", "locals", "globals", "vars", "dir", "eval", "exec", "_getframe"}
"""Functions that would return something else if they were called through another function."""


class Events:
    """A factory for the nodes of events."""

    def before(self, node: ast.expr) -> Any:
        """Return an expression preceded by an event."""
        return located(ast.BoolOp(ast.Or(), [_event(), node]), node)

    def at_entry(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the body of a function with an event at its entry."""
        first = body[0]
        has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        begin = 1 if has_docstring and isinstance(first.value.value, str) else 0  # type: ignore[attr-defined]
        return [*body[:begin], located(ast.Expr(_event()), first), *body[begin:]]

    def in_comprehension(self, node: Any) -> Any:
        """Begin each iteration of a comprehension with an event, if it is a function or resumed."""
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
        """Return whether a function may be called through another one."""
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        return name not in _FRAME_DEPENDENT

    def call(self, node: ast.Call) -> Any:
        """Return a call through a function that knows what is called."""
        wrapped = ast.Call(ast.Name(CALL, ast.Load()), [node.func, *node.args], node.keywords)
        return located(wrapped, node)

    def for_loop(self, node: ast.For) -> ast.For:
        """Add an event at the end of each iteration, where a loop jumps back."""
        node.body = [*_Continues(None).of(node.body), located(ast.Expr(_event()), node)]
        return node

    def while_loop(self, node: ast.While, flag: str) -> list[ast.stmt]:
        """Add an event at the start of each iteration but the first.

        A ``while`` loop evaluates its condition before it jumps back.
        """
        repeated = ast.If(ast.Name(flag, ast.Load()), [ast.Expr(_event())], [])
        node.body = [
            located(repeated, node),
            located(_assign(flag, True), node),
            *_Continues(flag).of(node.body),
        ]
        return [located(_assign(flag, False), node), node]


class _Continues(ast.NodeTransformer):
    """A transformer that adds an event before each ``continue``, which jumps back at once.

    In a ``while`` loop, ``continue`` jumps back before the condition is evaluated.
    """

    def __init__(self, flag: str | None) -> None:
        self._flag = flag

    def of(self, body: list[ast.stmt]) -> list[ast.stmt]:
        rewritten: list[ast.stmt] = []
        for node in body:
            new = self.visit(node)
            rewritten += new if isinstance(new, list) else [new]
        return rewritten

    def visit_Continue(self, node: ast.Continue) -> list[ast.stmt]:
        reset = [located(_assign(self._flag, False), node)] if self._flag else []
        return [*reset, located(ast.Expr(_event()), node), node]

    def _keep(self, node: ast.AST) -> ast.AST:
        return node

    visit_For = visit_While = visit_AsyncFor = _keep
    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _keep


def _event() -> ast.Call:
    return ast.Call(ast.Name(EVENT, ast.Load()), [], [])


def _assign(name: str, value: bool) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value))


# Helpers for syntax trees.


def located(node: Any, place: ast.AST) -> Any:
    """Give a new node the position of an old one; parts that have a position keep theirs."""
    for part in ast.walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, place)
    return node


def named(node: ast.expr, text: str) -> ast.expr:
    """Return a stand-in for an access that keeps its position and text when the node changes."""
    return ast.copy_location(ast.Name(text, ast.Load()), node)


_MAX_TEXT = 60


def text_of(node: ast.AST) -> str:
    """Return the source text of a node in one short line."""
    if isinstance(node, ast.Name):
        return node.id
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def is_written(node: ast.Attribute | ast.Subscript) -> bool:
    """Return whether an access changes or deletes what it names."""
    return not isinstance(node.ctx, ast.Load)


def is_dunder(name: str) -> bool:
    """Return whether a name is reserved for Python or for probes."""
    return name.startswith("__") and name.endswith("__")


def is_coverage(node: ast.AST) -> bool:
    """Return whether a name, or an access based on it, belongs to the probes of coverage."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id.startswith("__swarm_")


def is_super(node: ast.expr) -> bool:
    """Return whether an expression is a call of ``super``."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )
