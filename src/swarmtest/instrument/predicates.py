"""Predicate-complete coverage: what the conditions of a function were at each of its statements.

Ball's measure (FMCO 2004), as the swarm paper uses it, asks for the values of all predicates at
every statement. Evaluating a Python condition again may call anything, so a predicate's value here
is the one it had when the call last evaluated it; until then it is unknown. The conditions are the
atoms of ``if``, ``while``, ``assert`` and conditional expressions, outside of nested scopes.
"""

from __future__ import annotations

import ast

from swarmtest.instrument import snippets
from swarmtest.instrument.syntax import FunctionNode, is_constant

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
        watching = snippets.watched_predicate(swapped, number, len(self._numbers))
        for part in ast.walk(watching):
            if "lineno" in part._attributes and not hasattr(part, "lineno"):
                ast.copy_location(part, node)
        return watching
