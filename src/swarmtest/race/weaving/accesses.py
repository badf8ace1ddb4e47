"""Probes before reads, and before accesses to a part of something."""

from __future__ import annotations

import ast
import sys
from typing import Any

from swarmtest.race.primitives.policy import CALL, EVENT, PROBE
from swarmtest.race.weaving.names import Names, names_of
from swarmtest.race.weaving.sites import SITES, Site

# -------------------------------------------------------------------------------------------------
# Parts of syntax trees: where they are, what they say.


def located(node: Any, place: ast.AST) -> Any:
    """A new node where an old one is; parts of it that have a place keep theirs."""
    for part in ast.walk(node):
        if "lineno" in part._attributes and not hasattr(part, "lineno"):
            ast.copy_location(part, place)
    return node


def named(node: ast.expr, text: str) -> ast.expr:
    """A stand-in for an access that tells its place and its text, whatever becomes of the node."""
    return ast.copy_location(ast.Name(text, ast.Load()), node)


_LONGEST = 60


def text_of(node: ast.AST) -> str:
    """What the source says, in one short line."""
    if isinstance(node, ast.Name):
        return node.id
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def is_written(node: ast.Attribute | ast.Subscript) -> bool:
    """Whether an access changes or deletes what it names."""
    return not isinstance(node.ctx, ast.Load)


def is_dunder(name: str) -> bool:
    """Whether a name is one of Python's own, or of ours."""
    return name.startswith("__") and name.endswith("__")


def is_coverage(node: ast.AST) -> bool:
    """Whether a name, or what is made of it, belongs to the probes of coverage."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return isinstance(node, ast.Name) and node.id.startswith("__swarm_")


def is_super(node: ast.expr) -> bool:
    """Whether an expression is a call of ``super``."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    )


# -------------------------------------------------------------------------------------------------
# Where CPython with a GIL may switch threads, woven in as events for the feasible mode.
#
# CPython 3.11 to 3.13 look whether another thread wants to run when a function is entered (and a
# generator resumed), when a loop jumps back, and after a call of something that is not a Python
# function. Nowhere else, but for calls that wait. What is not certain is left out: a schedule of
# the
# feasible mode must be possible.

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


# -------------------------------------------------------------------------------------------------

_LOOK_INSIDE = frozenset(
    ("all", "any", "bool", "dict", "enumerate", "frozenset", "iter", "len", "list", "max", "min")
) | frozenset(("next", "reversed", "set", "sorted", "sum", "tuple"))
"""Builtins that read what their first argument contains."""


class Accesses(ast.NodeTransformer):
    """Weaves probes into reads, and into all accesses that have a container."""

    def __init__(self, tree: ast.Module, path: str, events: bool) -> None:
        self._tree = tree
        self._path = path
        self._names: Names = names_of(tree)
        self._qualname: list[str] = []
        self._methods: list[set[str]] = []
        self._in_expression_scope = 0
        self._temporaries = 0
        self._events = Events() if events else None

    def weave(self) -> None:
        """Weave the whole module, in place."""
        self._tree.body = self._suite(self._tree.body)

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

    def _suite(self, body: list[ast.stmt]) -> list[ast.stmt]:
        woven: list[ast.stmt] = []
        for node in body:
            found = self.visit(node)
            woven += found if isinstance(found, list) else [found]
        return woven

    def _inside(self, node: ast.AST, name: str) -> None:
        self._names = self._names.inner[node]
        self._qualname.append(name)

    def _outside(self) -> None:
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
        self._inside(node, node.name)
        self._qualname.append("<locals>")
        node.body = self._suite(node.body)
        self._qualname.pop()
        self._outside()
        self._in_expression_scope = outer
        if self._events:
            node.body = self._events.at_entry(node.body)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._in_expression_scope += 1
        self._inside(node, "<lambda>")
        node.body = self.visit(node.body)
        self._outside()
        self._in_expression_scope -= 1
        if self._events:
            node.body = self._events.before(node.body)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        defined = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        self._methods.append(defined)
        self._inside(node, node.name)
        node.body = self._suite(node.body)
        self._outside()
        self._methods.pop()
        return node

    def _comprehension(self, node: Any) -> Any:
        self._in_expression_scope += 1
        self.generic_visit(node)
        self._in_expression_scope -= 1
        return self._events.in_comprehension(node) if self._events else node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    # Reads, and all that has a container.

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
        """Functions of modules, one's own methods, and dunder names are no variables."""
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
        if isinstance(node.value, ast.Tuple):  # nobody else has what has just been made
            self.generic_visit(node)
            return node
        kind = "write" if is_written(node) else "read"
        text = f"{text_of(node.value)}[]"
        simple = self._is_simple(node.slice)
        base = self._base(node.value)
        index = self.visit(node.slice)
        place = named(node, text)
        if simple or isinstance(node.slice, ast.Slice) or not self._may_assign():
            node.value, node.slice = self._probe(place, kind, "subscript", "", base), index
            return node
        # The index is not yet known when the container is: the probe comes after both.
        name = self._temporary()
        held = ast.NamedExpr(ast.Name(name, ast.Store()), base)
        probe = self._probe(place, kind, "subscript", "", ast.Name(name, ast.Load()))
        both = ast.Tuple([index, probe], ast.Load())
        node.value = located(held, node)
        node.slice = located(ast.Subscript(both, ast.Constant(0), ast.Load()), node)
        return node

    def _base(self, node: ast.expr) -> Any:
        """What an access is made on: a name that never changes needs no probe of its own."""
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
        """Whether an expression here may have a temporary name."""
        return self._names.is_function and not self._in_expression_scope

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        node.left = self.visit(node.left)
        node.comparators = [
            self._contents(one) if isinstance(operator, ast.In | ast.NotIn) else self.visit(one)
            for operator, one in zip(node.ops, node.comparators, strict=True)
        ]
        return node

    def _contents(self, node: ast.expr) -> Any:
        """A container that is looked into as a whole: by ``in``, a loop, or ``len``."""
        if isinstance(node, ast.Name):
            may_be_shared = bool(self._names.shared_as(node.id))
        else:
            may_be_shared = isinstance(node, ast.Attribute | ast.Subscript)
        if not may_be_shared:
            return self.visit(node)
        place = named(node, f"{text_of(node)}[]")
        return self._probe(place, "read", "subscript", "", self._base(node))

    def _looks_inside(self, name: str) -> bool:
        return name in _LOOK_INSIDE and self._names.owner(name) is None

    def visit_Call(self, node: ast.Call) -> ast.AST:
        wrappable = self._events is not None and self._events.may_wrap(node)
        function = node.func
        if isinstance(function, ast.Attribute):
            node.func = self._attribute(function, "call")  # type: ignore[assignment]
        elif isinstance(function, ast.Name):
            node.func = self._base(function)
        else:
            node.func = self.visit(function)
        looks = isinstance(function, ast.Name) and self._looks_inside(function.id)
        node.args = [
            self._contents(arg) if looks and place == 0 else self.visit(arg)
            for place, arg in enumerate(node.args)
        ]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        return self._events.call(node) if self._events and wrappable else node
