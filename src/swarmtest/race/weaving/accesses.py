"""Weave probes before reads, and before accesses to a part of an object.

`Accesses` is a transformer of syntax trees, which `swarmtest.race.weaving.weaver` extends with
writes and control flow. `Events` adds the calls that feasible mode needs.
"""

from __future__ import annotations

import ast
from typing import Any

from swarmtest.race.primitives.policy import CALL, EVENT, ITERATE, PROBE
from swarmtest.race.weaving.names import ScopeNames, names_of
from swarmtest.race.weaving.sites import SITES, Site

GENERATOR = "generator"
"""What a site is at which a generator begins or is resumed."""
FUNCTION = "function"
"""What a site is at which a function begins that others call: C code, or Python itself."""
MODULE = "module"
"""What a site is at which a function uses state of the whole process, such as `os.chdir`."""
_NEW_OBJECTS = (
    ast.Constant,
    ast.JoinedStr,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
)
"""Expressions whose value no other thread can know."""
_MAKES_NEW = frozenset(("dict", "frozenset", "list", "range", "set", "sorted", "str", "tuple"))
_VIEW_METHODS = ("items", "keys", "values")
_LAZY_BUILTINS = ("enumerate", "iter", "reversed", "zip")
_PROCESS_STATE = frozenset(("locale", "os", "random", "shutil", "signal", "sys", "warnings"))
"""Modules of the standard library whose functions read or change state of the process."""
_PRINTS = {"print": "sys", "open": "os", "input": "sys"}
"""Builtins that use such state, with the module whose it is."""
_ATTRIBUTE_FUNCTIONS = {
    "getattr": "read",
    "hasattr": "read",
    "setattr": "write",
    "delattr": "write",
}
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
        self._consumed: set[ast.AST] = set()
        """The generator expressions that the call they are written in uses up."""
        self._yields: list[bool] = []
        """For each function around this place, whether it is a generator."""
        self._in_async = False
        self._has_probe: list[bool] = [False]
        """For the module and each function around this place, whether it has a probe of its own."""
        self._values = _names_of_values(tree)
        self._events = Events() if events else None

    def weave(self) -> None:
        """Weave the whole module, in place."""
        self._tree.body = self._woven_body(self._tree.body)

    # Probes.

    def _function_name(self) -> str:
        return ".".join(self._qualname).removesuffix(".<locals>")

    def _probe(self, node: ast.AST, kind: str, what: str, name: str, *args: ast.expr) -> Any:
        function = self._function_name()
        variable = text_of(node)
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        site = Site(self._path, line, column, function, kind, what, variable, name)
        self._has_probe[-1] = True
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
        outer = self._in_expression_scope, self._in_async
        self._in_expression_scope, self._in_async = 0, isinstance(node, ast.AsyncFunctionDef)
        self._yields.append(False)
        self._has_probe.append(False)
        self._enter_scope(node, node.name)
        self._qualname.append("<locals>")
        node.body = self._woven_body(node.body)
        self._generator_steps(node)
        if not self._has_probe.pop() and not self._in_async and self._is_callback(node):
            first = node.body[0]
            entry = located(ast.Expr(self._entry_probe(first, node.name)), first)
            node.body = after_docstring(node.body, entry)
        self._qualname.pop()
        self._leave_scope()
        self._in_expression_scope, self._in_async = outer
        if self._events:
            node.body = self._events.at_entry(node.body)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._in_expression_scope += 1
        self._yields.append(False)
        self._has_probe.append(False)
        self._enter_scope(node, "<lambda>")
        node.body = self.visit(node.body)
        if not self._has_probe.pop():
            entry = self._entry_probe(node.body, "<lambda>")
            node.body = located(ast.BoolOp(ast.Or(), [entry, node.body]), node.body)
        self._leave_scope()
        self._yields.pop()
        self._in_expression_scope -= 1
        if self._events:
            node.body = self._events.before(node.body)
        return node

    def _is_callback(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        """Return whether the place of a call need not show it: others may call the function.

        C code calls the key of a sort, Python calls ``__eq__`` and properties.
        """
        return bool(node.decorator_list) or is_dunder(node.name) or node.name in self._values

    def _entry_probe(self, node: ast.AST, name: str) -> Any:
        return self._probe(named(node, f"{name}()"), "call", FUNCTION, name)  # type: ignore[arg-type]

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

    visit_ListComp = visit_SetComp = visit_DictComp = _comprehension

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        """Weave a generator, which several threads may resume, with a probe at each step."""
        is_consumed_here = node in self._consumed
        stand_in = named(node, text_of(node))
        self._comprehension(node)
        if not is_consumed_here:
            probe = self._probe(stand_in, "call", GENERATOR, text_of(stand_in))
            node.elt = located(ast.BoolOp(ast.Or(), [probe, node.elt]), node.elt)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        """Weave one ``for`` of a comprehension."""
        iterable = node.iter if node.is_async else self._looped(node.iter)
        node.iter = iterable
        node.target = self.visit(node.target)
        node.ifs = [self.visit(condition) for condition in node.ifs]
        return node

    def _looped(self, node: ast.expr) -> Any:
        """Weave what a loop iterates over, so that each step may have a probe."""
        if isinstance(node, _NEW_OBJECTS) or self._makes_new_object(node):
            return self._contents_read(node)
        base = _base_of_view(node)
        is_local = isinstance(base, ast.Name) and not self._names.shared_as(base.id)
        stand_in = named(node, f"{text_of(base)}[]")
        probe = self._probe(stand_in, "read", "subscript", "")
        extra = [ast.Constant(True)] if is_local else []
        woven = self._contents_read(node)
        call = ast.Call(ast.Name(ITERATE, ast.Load()), [probe.args[0], woven, *extra], [])
        return located(call, node)

    def _makes_new_object(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _MAKES_NEW
            and self._names.owner(node.func.id) is None
        )

    def _generator_steps(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Give a generator function a probe where it begins, and where it is resumed."""
        if not self._yields.pop() or isinstance(node, ast.AsyncFunctionDef):
            return
        first = node.body[0]
        start = located(ast.Expr(self._generator_probe(first)), first)
        node.body = after_docstring(node.body, start)

    def _generator_probe(self, node: ast.AST, *args: ast.expr) -> Any:
        name = self._function_name()
        return self._probe(named(node, f"{name}()"), "call", GENERATOR, name, *args)  # type: ignore[arg-type]

    def visit_Yield(self, node: ast.Yield) -> Any:
        """Weave ``yield``: other threads may run when the generator is resumed."""
        if node.value is not None:
            node.value = self.visit(node.value)
        if not self._yields or not self._names.is_function:
            return node
        self._yields[-1] = True
        if self._in_async:
            return node
        probe = self._generator_probe(node, node)
        return self._events.after(probe) if self._events else probe

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

    def visit_Call(self, node: ast.Call) -> Any:
        wrappable = self._events is not None and self._events.may_wrap(node)
        function = node.func
        if isinstance(function, ast.Attribute):
            node.func = self._attribute(function, "call")  # type: ignore[assignment]
        elif isinstance(function, ast.Name):
            node.func = self._base(function)
        else:
            node.func = self.visit(function)
        builtin = self._builtin_name(function)
        if len(node.args) == 1 and isinstance(node.args[0], ast.GeneratorExp):
            self._consumed.add(node.args[0])
        effect = _ATTRIBUTE_FUNCTIONS.get(builtin, "") if len(node.args) > 1 else ""
        attribute = node.args[1] if effect else None
        original = node.args[0] if effect else None
        node.args = [
            self._contents_read(arg)
            if builtin in _READS_CONTENTS and position == 0
            else self.visit(arg)
            for position, arg in enumerate(node.args)
        ]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        if attribute is not None and original is not None:
            self._weave_named_attribute(node, original, attribute, effect)
        module = self._process_state(function, builtin)
        woven = self._events.call(node) if self._events and wrappable else node
        if module:
            probe = self._probe(named(node, text_of(function)), "call", MODULE, module)
            return located(ast.BoolOp(ast.Or(), [probe, woven]), node)
        return woven

    def _builtin_name(self, function: ast.expr) -> str:
        """Return the name of a function if it is one of Python's own, else an empty name."""
        is_builtin = isinstance(function, ast.Name) and self._names.owner(function.id) is None
        return function.id if is_builtin else ""  # type: ignore[attr-defined]

    def _weave_named_attribute(
        self, node: ast.Call, original: ast.expr, attribute: ast.expr, kind: str
    ) -> None:
        """Weave the attribute that ``getattr`` or ``setattr`` names."""
        name = attribute.value if isinstance(attribute, ast.Constant) else ""
        if not isinstance(name, str) or is_dunder(name):
            return
        stand_in = named(original, f"{text_of(original)}.{name or '…'}")
        if kind == "read":
            node.args[0] = self._probe(stand_in, kind, "attribute", name, node.args[0])
            return
        # The probe has to come after the value has been computed.
        known = [ast.Name(original.id, ast.Load())] if isinstance(original, ast.Name) else []
        probe = self._probe(stand_in, kind, "attribute", name, *known)
        both = ast.Tuple([node.args[-1], probe], ast.Load())
        node.args[-1] = located(ast.Subscript(both, ast.Constant(0), ast.Load()), node)

    def _process_state(self, function: ast.expr, builtin: str) -> str:
        """Return the module whose state a call uses, if that is state of the whole process."""
        if isinstance(function, ast.Name):
            return _PRINTS.get(builtin, "")
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return ""
        name = function.value.id
        owner = self._names.owner(name)
        is_module = owner is not None and name in owner.standard_modules
        return name if is_module and name in _PROCESS_STATE else ""


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

    def after(self, node: ast.expr) -> Any:
        """Return an expression followed by an event."""
        both = ast.Tuple([node, _event()], ast.Load())
        return located(ast.Subscript(both, ast.Constant(0), ast.Load()), node)

    def at_entry(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return the body of a function with an event at its entry."""
        return after_docstring(body, located(ast.Expr(_event()), body[0]))

    def in_comprehension(self, node: Any) -> Any:
        """Add an event where a comprehension jumps back, or where its generator is resumed.

        A condition that does not hold jumps back too. Between the last value and the jump, nothing
        happens that other threads could notice.
        """
        if isinstance(node, ast.GeneratorExp):
            if len(node.generators) == 1 and not node.generators[0].ifs:
                node.elt = self.before(node.elt)
            elif len(node.generators) == 1:
                node.generators[0].ifs[0] = self.before(node.generators[0].ifs[0])
            return node
        for generator in node.generators:
            generator.ifs = [self._or_event(condition) for condition in generator.ifs]
        if isinstance(node, ast.DictComp):
            node.value = self.after(node.value)
        else:
            node.elt = self.after(node.elt)
        return node

    def _or_event(self, condition: ast.expr) -> Any:
        return located(ast.BoolOp(ast.Or(), [condition, _event()]), condition)

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


def after_docstring(body: list[ast.stmt], statement: ast.stmt) -> list[ast.stmt]:
    """Return the body of a function that begins with a statement, after its docstring if any."""
    first = body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    begin = 1 if has_docstring and isinstance(first.value.value, str) else 0  # type: ignore[attr-defined]
    return [*body[:begin], statement, *body[begin:]]


def _base_of_view(node: ast.expr) -> ast.expr:
    """Return the container behind ``table.items()`` and ``enumerate(seats)``, as written."""
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in _VIEW_METHODS:
            return function.value
        if isinstance(function, ast.Name) and function.id in _LAZY_BUILTINS and node.args:
            return _base_of_view(node.args[0])
    return node


def _names_of_values(tree: ast.Module) -> set[str]:
    """Return the names that are read other than to call what they name."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    values: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in called:
            continue
        if isinstance(node, ast.Name):
            values.add(node.id)
        elif isinstance(node, ast.Attribute):
            values.add(node.attr)
    return values


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
