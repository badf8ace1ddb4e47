"""Parts of syntax trees: where they are, what they say."""

from __future__ import annotations

import ast
from typing import Any


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
