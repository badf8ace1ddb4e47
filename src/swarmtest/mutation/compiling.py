"""Compiling the part of a module that a mutant changes, and telling code objects apart.

A function is compiled inside the classes that it is in, because they decide what ``super()`` and
names with two underscores mean; what else is in them is left out. Names of variables that code
takes from the function around it must stay the same in a mutant, or it could not be put into a
function that exists already: what no longer occurs is mentioned in code that never runs.
"""

from __future__ import annotations

import ast
import copy
import warnings
from collections.abc import Iterator
from types import CodeType
from typing import Any

from swarmtest.mutation.tree import Function, Module, Outer, Spot


def replacement(spot: Spot, change: str) -> ast.AST:
    """The node that `change` stands for, at the lines of the one that it replaces."""
    new: ast.AST
    if isinstance(spot.node, ast.stmt):
        new = ast.parse(change).body[0]
    else:
        wrapped = ast.parse(f"_[{change}]").body[0]
        assert isinstance(wrapped, ast.Expr)
        assert isinstance(wrapped.value, ast.Subscript)
        new = wrapped.value.slice
    for node in ast.walk(new):
        if "lineno" in node._attributes:
            ast.copy_location(node, spot.node)
    return new


def module_code(module: Module) -> CodeType:
    """The code of the whole module, as the tree is now."""
    return _compile(module.tree.body, module.filename)


def statement_code(module: Module, index: int) -> CodeType:
    """The code of a statement of the module, as the tree is now."""
    return _compile([*module.futures, module.tree.body[index]], module.filename)


def function_code(
    module: Module, outer: Outer, keep: dict[str, set[str]] | None = None
) -> CodeType:
    """The code object of an outer function.

    `keep`: for functions within it, by qualified name, variables that have to stay free.
    """
    node: Function = outer.node
    if keep:
        node = _mentioning(outer, keep)
    body: ast.stmt = node if not isinstance(node, ast.Lambda) else _expression(node)
    for name in reversed(outer.classes):
        body = _class(name, body)
    code = _compile([*module.futures, body], module.filename)
    return next(
        one
        for one in nested_codes(code)
        if one.co_name == outer.name and one.co_firstlineno == outer.line
    )


def _compile(body: list[ast.stmt], filename: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mutant may do what nobody would write
        code: CodeType = compile(ast.Module(body, []), filename, "exec", dont_inherit=True)
        return code


def _expression(node: ast.expr) -> ast.stmt:
    return ast.copy_location(ast.Expr(node), node)


def _class(name: str, body: ast.stmt) -> ast.stmt:
    shell = ast.parse(f"class {name}: pass").body[0]
    assert isinstance(shell, ast.ClassDef)
    shell.body = [body]
    return shell


def _mentioning(outer: Outer, keep: dict[str, set[str]]) -> Function:
    """A copy of a function in which variables are mentioned where they no longer occur."""
    whole = copy.deepcopy(outer.node)
    for node, name in _functions_in(whole, outer.qualname):
        if keep.get(name) and not isinstance(node, ast.Lambda):
            names = [ast.Name(one, ast.Load()) for one in sorted(keep[name])]
            never = ast.If(ast.Constant(0), [ast.Expr(one) for one in names], [])
            node.body.append(ast.fix_missing_locations(ast.copy_location(never, node.body[-1])))
    return whole


def _functions_in(node: ast.AST, qualname: str) -> Iterator[tuple[Function, str]]:
    if isinstance(node, Function):
        yield node, qualname
        qualname += ".<locals>"
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _functions_in(child, f"{qualname}.{child.name}")
        else:
            yield from _functions_in(child, qualname.removesuffix(".<locals>") + ".<locals>")


def nested_codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all that are in it, the outer ones first."""
    level = [code]
    while level:
        yield from level
        level = [one for c in level for one in c.co_consts if isinstance(one, CodeType)]


def code_key(code: CodeType) -> tuple[Any, ...]:
    """What a code object does, without where its lines are: equal keys run alike."""
    return (
        code.co_code,
        tuple(_constant_key(one) for one in code.co_consts),
        code.co_names,
        code.co_varnames,
        code.co_freevars,
        code.co_cellvars,
        code.co_flags,
        code.co_argcount,
        code.co_posonlyargcount,
        code.co_kwonlyargcount,
        code.co_exceptiontable,
    )


def _constant_key(value: object) -> object:
    if isinstance(value, CodeType):
        return code_key(value)
    if isinstance(value, tuple | frozenset):
        keys = [_constant_key(one) for one in value]
        return type(value), tuple(keys) if isinstance(value, tuple) else frozenset(keys)
    return type(value), repr(value)
