"""Weave probes into modules: one before each access to what threads may share.

``x.a`` becomes ``__p__(7, x).a``: the probe returns the object that it is given, and nothing
happens between it and the access. A variable has no container: ``__p__(7) or total``. ``x.a += 1``
becomes a probe, the read, the addition, a probe, and the write; other threads may run in between,
as they may in Python. Line numbers do not change.

With `events`, the calls that feasible mode needs are woven in as well.
"""

from __future__ import annotations

import ast
import copy
import gc
import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any

from swarmtest.coverage.import_hook import (
    Hook,
    ProbingLoader,
    cells_last,
    has_bytecode_only,
    has_source,
)
from swarmtest.coverage.scope import Scope, shown_path
from swarmtest.race.control.baton_scheduler import BatonPolicy
from swarmtest.race.primitives.patches import installed
from swarmtest.race.primitives.policy import current, prepare
from swarmtest.race.weaving.accesses import (
    Accesses,
    is_coverage,
    is_dunder,
    located,
    named,
    text_of,
)
from swarmtest.race.weaving.sites import LineReporter, lines_are_possible


def weave(text: str, filename: str) -> CodeType:
    """Return the code of a module with probes; its sites are numbered in `SITES`.

    Call `prepare` on the module's globals before the code runs.
    """
    code = woven_tree(ast.parse(text, filename), filename)
    note_woven(code, lambda: woven_tree(ast.parse(text, filename), filename, events=True))
    return code


def weave_tree(tree: ast.Module, filename: str) -> CodeType:
    """Return the code of a syntax tree that has been rewritten already, with probes."""
    original = copy.deepcopy(tree)
    code = woven_tree(tree, filename)
    note_woven(code, lambda: woven_tree(copy.deepcopy(original), filename, events=True))
    return code


def woven_tree(tree: ast.Module, filename: str, events: bool = False) -> CodeType:
    """Return the code of a syntax tree with probes and, if asked, events; the tree is changed."""
    _Weaver(tree, shown_path(filename), events).weave()
    ast.fix_missing_locations(tree)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an ordinary import shows these warnings
        return compile(tree, filename, "exec", dont_inherit=True)


class _Weaver(Accesses):
    """The complete transformer, which adds writes and the events of control flow."""

    # Writes to variables.

    def visit_Assign(self, node: ast.Assign) -> Any:
        first = node.targets[0]
        if is_coverage(first.elts[0] if isinstance(first, ast.Tuple) and first.elts else first):
            return node
        node.value = self.visit(node.value)
        for target in node.targets:
            node.value = self._written(target, node.value)
        node.targets = [self.visit(target) for target in node.targets]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is not None:
            node.value = self._written(node.target, self.visit(node.value))
            node.target = self.visit(node.target)
        return node

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        node.value = self._written(node.target, self.visit(node.value))
        return node

    def _written(self, target: ast.expr, value: ast.expr) -> ast.expr:
        """Wrap a value in a probe for each shared variable of the target that it is assigned to."""
        if isinstance(target, ast.Name):
            what = self._shared_target(target.id)
            return self._probe(target, "write", what, target.id, value) if what else value
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                value = self._written(part, value)
        if isinstance(target, ast.Starred):
            return self._written(target.value, value)
        return value

    def _shared_target(self, name: str) -> str:
        if self._names.parent is None or is_dunder(name):
            return ""  # module-level code runs once, on import
        return self._names.shared_as(name)

    def visit_Delete(self, node: ast.Delete) -> Any:
        shared = [
            located(ast.Expr(self._probe(target, "write", what, target.id)), node)
            for target in node.targets
            if isinstance(target, ast.Name) and (what := self._shared_target(target.id))
        ]
        node.targets = [self.visit(target) for target in node.targets]
        return [*shared, node]

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        if isinstance(self._names.node, ast.ClassDef) or (
            isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice)
        ):
            self.generic_visit(node)
            return node
        if isinstance(target, ast.Name):
            return self._augmented_name(node, target)
        return self._augmented_part(node, target)

    def _augmented_name(self, node: ast.AugAssign, target: ast.Name) -> Any:
        what = self._names.shared_as(target.id)
        if not what or is_dunder(target.id):
            node.value = self.visit(node.value)
            return node
        value = self._temporary()
        read = self.visit(located(ast.Name(target.id, ast.Load()), target))
        probe = self._probe(target, "write", what, target.id, ast.Name(value, ast.Load()))
        steps: list[ast.stmt] = [
            ast.Assign([ast.Name(value, ast.Store())], read),
            ast.AugAssign(ast.Name(value, ast.Store()), node.op, self.visit(node.value)),
            ast.Assign([target], probe),
            ast.Delete([ast.Name(value, ast.Del())]),
        ]
        return [located(step, node) for step in steps]

    def _augmented_part(self, node: ast.AugAssign, target: ast.Attribute | ast.Subscript) -> Any:
        """Expand `x.a += v` and `x[i] += v`; container and index are evaluated once."""
        steps: list[ast.stmt] = []
        temporaries: list[str] = []

        def hold(expression: Any) -> str:
            name = self._temporary()
            temporaries.append(name)
            steps.append(ast.Assign([ast.Name(name, ast.Store())], expression))
            return name

        text = (
            text_of(target) if isinstance(target, ast.Attribute) else f"{text_of(target.value)}[]"
        )
        stand_in = named(target, text)
        what, name = "subscript", ""
        container = hold(self._base(target.value))
        if isinstance(target, ast.Subscript):
            index = hold(self.visit(target.slice))
        else:
            what, name = "attribute", target.attr

        def part(kind: str, context: ast.expr_context) -> ast.expr:
            probe = self._probe(stand_in, kind, what, name, ast.Name(container, ast.Load()))
            if isinstance(target, ast.Attribute):
                return ast.Attribute(probe, target.attr, context)
            return ast.Subscript(probe, ast.Name(index, ast.Load()), context)

        value = hold(part("read", ast.Load()))
        changed = ast.AugAssign(ast.Name(value, ast.Store()), node.op, self.visit(node.value))
        steps.append(changed)
        steps.append(ast.Assign([part("write", ast.Store())], ast.Name(value, ast.Load())))
        steps.append(ast.Delete([ast.Name(temporary, ast.Del()) for temporary in temporaries]))
        return [located(step, node) for step in steps]

    def visit_withitem(self, node: ast.withitem) -> Any:
        """Weave no read of the lock: the lock itself reports that it is acquired."""
        node.context_expr = self._base(node.context_expr)
        node.optional_vars = self.visit(node.optional_vars) if node.optional_vars else None
        return node

    # Control flow, which needs events.

    def visit_While(self, node: ast.While) -> Any:
        node.test = self.visit(node.test)
        node.body, node.orelse = self._woven_body(node.body), self._woven_body(node.orelse)
        if self._events and self._names.is_function:
            return self._events.while_loop(node, self._temporary())
        return node

    def visit_For(self, node: ast.For) -> Any:
        node.iter, node.target = self._looped(node.iter), self.visit(node.target)
        node.body, node.orelse = self._woven_body(node.body), self._woven_body(node.orelse)
        return self._events.for_loop(node) if self._events else node

    def visit_match_case(self, node: ast.match_case) -> Any:
        node.guard = self.visit(node.guard) if node.guard else None
        node.body = self._woven_body(node.body)
        return node


# Feasible mode: woven functions run a version of their code that also reports events. Both versions
# of a module's code contain the same functions in the same order. An existing function is given the
# other version of its code, and the functions that it creates follow.

_woven_modules: list[tuple[CodeType, Callable[[], CodeType]]] = []
"""The code of each woven module, and a function that makes the version with events."""
_code_pairs: list[tuple[CodeType, CodeType]] = []
"""Each code object without and with events, by identity: two modules may have equal code."""


class _Mode:
    """Which version of the code woven functions have now."""

    feasible = False
    paired = 0
    """The number of modules that have both versions."""


def note_woven(code: CodeType, with_events: Callable[[], CodeType]) -> None:
    """Remember how to make the version with events of a module's code."""
    _woven_modules.append((code, with_events))


def use_events(feasible: bool) -> None:
    """Switch woven functions to the code with events, or back."""
    is_new = feasible and _Mode.paired < len(_woven_modules)
    if feasible == _Mode.feasible and not is_new:
        return
    for code, with_events in _woven_modules[_Mode.paired :]:
        _code_pairs.extend(_paired_code(code, with_events()))
    _Mode.feasible, _Mode.paired = feasible, len(_woven_modules)
    replacement = {id(plain): with_event_code for plain, with_event_code in _code_pairs}
    if not feasible:
        replacement = {id(with_event_code): plain for plain, with_event_code in _code_pairs}
    for function in gc.get_objects():
        if type(function) is FunctionType and id(function.__code__) in replacement:
            function.__code__ = replacement[id(function.__code__)]


def _paired_code(plain: CodeType, with_events: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    yield plain, with_events
    inside = [
        [const for const in code.co_consts if isinstance(const, CodeType)]
        for code in (plain, with_events)
    ]
    for first, second in zip(*inside, strict=True):
        yield from _paired_code(first, second)


# Loading modules with probes.


class WeavingLoader(SourceFileLoader):
    """A loader that puts probes before accesses to what threads may share.

    `covering` is the loader that adds probes of coverage; with it, the code has both.
    """

    def __init__(self, name: str, path: str, covering: ProbingLoader | None = None) -> None:
        super().__init__(name, path)
        self._covering = covering

    def get_code(self, fullname: str) -> CodeType:
        """Return the module's code with probes."""
        path = self.get_filename(fullname)
        if self._covering is not None:
            return weave_tree(self._covering.woven_tree(fullname), path)
        text = importlib.util.decode_source(self.get_data(path))
        return weave(text, path)

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module."""
        prepare(module.__dict__)
        with _without_switches():
            super().exec_module(module)
        cells_last(module)


@contextmanager
def _without_switches() -> Iterator[None]:
    """Keep a thread that imports from being stopped, because it holds Python's own import locks."""
    control = current.policy
    if not isinstance(control, BatonPolicy):
        yield
        return
    control.quiet += 1
    try:
        yield
    finally:
        control.quiet -= 1


@contextmanager
def woven(scope: Scope) -> Iterator[None]:
    """Give probes to modules of the scope that are imported inside a ``with`` block.

    Locks, threads and clocks are replaced as well. Modules without source are reported line by
    line, from Python 3.12 on.

    >>> from swarmtest.coverage.scope import Scope
    >>> with woven(Scope(names=("shop",))):
    ...     pass  # import shop
    """
    lines: LineReporter | None = None

    def loader_for(spec: ModuleSpec) -> Loader | None:
        nonlocal lines
        assert spec.origin is not None
        if has_source(spec):
            covering = spec.loader if isinstance(spec.loader, ProbingLoader) else None
            return WeavingLoader(spec.name, spec.origin, covering)
        if has_bytecode_only(spec) and lines_are_possible():
            lines = lines or LineReporter()
            return lines.loader(spec, _without_switches)
        return None

    hook = Hook(scope, loader_for)
    with installed():
        sys.meta_path.insert(0, hook)
        try:
            yield
        finally:
            sys.meta_path.remove(hook)
            if lines is not None:
                lines.close()
