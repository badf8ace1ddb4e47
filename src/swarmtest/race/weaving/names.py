"""Find the names that several threads can see: globals, and locals that functions close over.

A name that is bound only by ``def``, ``class`` or ``import``, or to one constant, is not a
variable. A name that is bound once and never again still leads to an object that threads may share.
It counts where the object itself is used (``len(seats)``), but not where an attribute or an item of
it is used, which has a probe of its own.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@dataclass
class ScopeNames:
    """The names of one scope: the module, a class body or a function."""

    node: ast.AST
    parent: ScopeNames | None = None
    bound: set[str] = field(default_factory=set)
    rebound: set[str] = field(default_factory=set)
    """The names bound here that are bound again, here or by ``global`` and ``nonlocal``."""
    declared_global: set[str] = field(default_factory=set)
    declared_nonlocal: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    captured: set[str] = field(default_factory=set)
    """The locals that inner functions use."""
    fixed: set[str] = field(default_factory=set)
    """The names that are bound by ``def``, ``class`` or ``import``, or to a constant."""
    standard_modules: set[str] = field(default_factory=set)
    inner: dict[ast.AST, ScopeNames] = field(default_factory=dict)

    @property
    def is_function(self) -> bool:
        """Whether names bound here are locals of a function."""
        return isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)

    @property
    def module(self) -> ScopeNames:
        """The names of the module."""
        return self if self.parent is None else self.parent.module

    def owner(self, name: str) -> ScopeNames | None:
        """Return the scope whose variable a name is; None for a builtin."""
        if name in self.declared_global:
            return self.module
        if name in self.bound and name not in self.declared_nonlocal:
            return self
        outer = self.parent
        while outer is not None and outer.parent is not None:
            if outer.is_function and name in outer.bound - outer.declared_nonlocal:
                return outer
            outer = outer.parent
        module = self.module
        return module if name in module.bound else None

    def shared_as(self, name: str) -> str:
        """Return ``global`` or ``closure`` if several threads may see the variable, else ``""``."""
        owner = self.owner(name)
        if owner is None or (name in owner.fixed and name not in owner.rebound):
            return ""
        if owner.parent is None:
            return "global"
        return "closure" if owner.is_function and name in owner.captured else ""

    def is_rebound(self, name: str) -> bool:
        """Return whether the variable itself changes, not only the object it leads to."""
        owner = self.owner(name)
        return owner is not None and name in owner.rebound

    def is_local(self, name: str) -> bool:
        """Return whether only this function's own call can change the variable."""
        owner = self.owner(name)
        return owner is not None and owner.is_function and name not in owner.captured


def names_of(tree: ast.Module) -> ScopeNames:
    """Return the names of a module, with those of its functions and classes inside.

    >>> tree = ast.parse("seats = []\\nleft = 3\\ndef sell():\\n    global left\\n    left -= 1")
    >>> names = names_of(tree)
    >>> names.shared_as("seats"), names.is_rebound("seats"), names.is_rebound("left")
    ('global', False, True)
    """
    module = ScopeNames(tree)
    _collect_body(tree.body, module)
    _resolve(module)
    return module


def _collect_body(body: list[ast.stmt], names: ScopeNames) -> None:
    for node in body:
        _collect_node(node, names)


def _collect_node(node: ast.AST, names: ScopeNames) -> None:
    if isinstance(node, _SCOPES):
        _collect_scope(node, names)
        return
    match node:
        case ast.Global():
            names.declared_global.update(node.names)
        case ast.Nonlocal():
            names.declared_nonlocal.update(node.names)
        case ast.Import() | ast.ImportFrom():
            _collect_import(node, names)
        case ast.Name(id=name, ctx=ast.Load()):
            names.used.add(name)
        case ast.Name(id=name):
            if name in names.bound:
                names.rebound.add(name)
            names.bound.add(name)
        case ast.ExceptHandler(name=str(name)):
            names.bound.add(name)
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            names.bound.add(name)
        case ast.MatchMapping(rest=str(name)):
            names.bound.add(name)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant()):
            if name not in names.bound:
                names.fixed.add(name)
        case ast.AugAssign(target=ast.Name(id=name)):
            names.used.add(name)
            names.rebound.add(name)
        case ast.For(target=ast.Name(id=name)):
            names.rebound.add(name)
        case _:
            pass
    for child in ast.iter_child_nodes(node):
        _collect_node(child, names)


def _collect_import(node: ast.Import | ast.ImportFrom, names: ScopeNames) -> None:
    for alias in node.names:
        name = alias.asname or alias.name.partition(".")[0]
        names.bound.add(name)
        names.fixed.add(name)
        if isinstance(node, ast.Import) and alias.name.partition(".")[0] in sys.stdlib_module_names:
            names.standard_modules.add(name)


def _collect_scope(node: ast.AST, names: ScopeNames) -> None:
    inner = ScopeNames(node, names)
    names.inner[node] = inner
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        names.bound.add(node.name)
        names.fixed.add(node.name)
        for decorator in node.decorator_list:
            _collect_node(decorator, names)
    if isinstance(node, ast.ClassDef):
        for base in (*node.bases, *(keyword.value for keyword in node.keywords)):
            _collect_node(base, names)
        _collect_body(node.body, inner)
        return
    assert isinstance(node, FunctionNode)
    for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
        _collect_node(default, names)
    inner.bound.update(arg.arg for arg in _arguments(node.args))
    if isinstance(node, ast.Lambda):
        _collect_node(node.body, inner)
    else:
        _collect_body(node.body, inner)


def _arguments(args: ast.arguments) -> Iterator[ast.arg]:
    yield from (*args.posonlyargs, *args.args, *args.kwonlyargs)
    yield from filter(None, (args.vararg, args.kwarg))


def _resolve(names: ScopeNames) -> None:
    """Mark names as captured or rebound in the scopes that own them."""
    for name in names.used | names.bound | names.declared_nonlocal:
        owner = names.owner(name)
        if owner is not None and owner is not names:
            owner.captured.add(name)
            if name in names.bound:
                owner.rebound.add(name)
                owner.bound.add(name)
    for inner in names.inner.values():
        _resolve(inner)
