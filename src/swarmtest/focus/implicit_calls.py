"""Special methods that syntax calls without naming them: ``with`` enters, ``len(x)`` counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_BY_FUNCTION = {
    "abs": ("__abs__",),
    "aiter": ("__aiter__",),
    "anext": ("__anext__",),
    "bool": ("__bool__", "__len__"),
    "bytes": ("__bytes__",),
    "complex": ("__complex__",),
    "delattr": ("__delattr__",),
    "dict": ("__iter__", "keys"),
    "dir": ("__dir__",),
    "divmod": ("__divmod__", "__rdivmod__"),
    "enumerate": ("__iter__", "__next__"),
    "float": ("__float__", "__index__"),
    "format": ("__format__", "__str__"),
    "hash": ("__hash__",),
    "int": ("__int__", "__index__", "__trunc__"),
    "iter": ("__iter__", "__getitem__"),
    "len": ("__len__",),
    "list": ("__iter__", "__next__"),
    "max": ("__iter__", "__next__", "__gt__", "__lt__"),
    "min": ("__iter__", "__next__", "__lt__", "__gt__"),
    "next": ("__next__",),
    "pow": ("__pow__", "__rpow__"),
    "print": ("__str__", "__repr__"),
    "repr": ("__repr__",),
    "reversed": ("__reversed__", "__getitem__", "__len__"),
    "round": ("__round__",),
    "set": ("__iter__", "__next__", "__hash__", "__eq__"),
    "setattr": ("__setattr__",),
    "sorted": ("__iter__", "__next__", "__lt__"),
    "str": ("__str__", "__repr__"),
    "sum": ("__iter__", "__next__", "__add__", "__radd__"),
    "tuple": ("__iter__", "__next__"),
}
_OPERATORS = {
    ast.Add: "add",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.LShift: "lshift",
    ast.MatMult: "matmul",
    ast.Mod: "mod",
    ast.Mult: "mul",
    ast.Pow: "pow",
    ast.RShift: "rshift",
    ast.Sub: "sub",
}
_UNARY = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__", ast.Not: "__bool__"}
_COMPARED = {
    ast.Eq: ("__eq__",),
    ast.NotEq: ("__ne__", "__eq__"),
    ast.Lt: ("__lt__", "__gt__"),
    ast.Gt: ("__gt__", "__lt__"),
    ast.LtE: ("__le__", "__ge__"),
    ast.GtE: ("__ge__", "__le__"),
    ast.In: ("__contains__", "__iter__", "__eq__"),
    ast.NotIn: ("__contains__", "__iter__", "__eq__"),
}
_SUBSCRIPTED = {ast.Load: "__getitem__", ast.Store: "__setitem__", ast.Del: "__delitem__"}
_ITERATED = ("__iter__", "__next__", "__getitem__")
_ITERATED_LATER = ("__aiter__", "__anext__")


def implicit_mentions(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The special methods that a node may call, each with the node that has its line.

    >>> (call,) = ast.parse("len(x)").body
    >>> [name for name, _ in implicit_mentions(call.value)]
    ['__len__']
    """
    place = node.iter if isinstance(node, ast.comprehension) else node
    for name in _called(node):
        yield name, place


def _called(node: ast.AST) -> tuple[str, ...]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _BY_FUNCTION:
            return _BY_FUNCTION[name]
        case ast.With():
            return ("__enter__", "__exit__")
        case ast.AsyncWith():
            return ("__aenter__", "__aexit__")
        case ast.For() | ast.comprehension(is_async=0) | ast.YieldFrom():
            return _ITERATED
        case ast.AsyncFor() | ast.comprehension():
            return _ITERATED_LATER
        case ast.Await():
            return ("__await__",)
        case ast.BinOp(op=operator):
            name = _OPERATORS[type(operator)]
            return (f"__{name}__", f"__r{name}__")
        case ast.AugAssign(op=operator):
            name = _OPERATORS[type(operator)]
            return (f"__i{name}__", f"__{name}__", f"__r{name}__")
        case ast.UnaryOp(op=operator):
            return (_UNARY[type(operator)],)
        case ast.Compare(ops=operators):
            return tuple(n for operator in operators for n in _COMPARED.get(type(operator), ()))
        case ast.Subscript(ctx=context):
            return (_SUBSCRIPTED[type(context)],)
        case ast.If() | ast.While() | ast.IfExp():
            return ("__bool__",)
        case ast.FormattedValue(conversion=conversion):
            return ("__repr__",) if conversion == ord("r") else ("__format__", "__str__")
    return ()
