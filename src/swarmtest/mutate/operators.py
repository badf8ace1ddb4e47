"""The mutation operators: those of Andrews et al., and others that Python users expect.

Each operator is a plain function from a node to the nodes that may replace it; `OPERATORS` lists
their names and what they do. An operator returns new nodes and does not change the old one.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

from swarmtest.core.errors import UserError, did_you_mean

OPERATORS = {
    "integers": "an integer constant becomes 0, 1, -1, one more, one less",
    "floats": "a float constant becomes 0.0, one more, its negative",
    "strings": "a string or bytes constant becomes empty; an empty one does not stay so",
    "none": "None becomes an empty string",
    "booleans": "True becomes False, and back",
    "arithmetic": "+ - * / // % become each other; ** becomes *",
    "relational": "< <= > >= == != become each other",
    "logical": "`and` becomes `or`, and back",
    "bitwise": "& | ^ become each other; << becomes >>, and back",
    "unary": "-x becomes x, +x becomes -x, ~x becomes x",
    "not": "`not x` becomes x",
    "membership": "`in` becomes `not in`, and back",
    "identity": "`is` becomes `is not`, and back",
    "increments": "++ becomes --, and back (in C)",
    "augmented": "the operator of an augmented assignment becomes another of its class, or goes",
    "negate": "the decision of if, while and x if c else y is negated",
    "delete": "a statement is left out",
    "jumps": "break becomes continue, and back",
    "returns": "what is returned becomes None",
    "defaults": "a constant default argument is changed as constants are",
    "comprehensions": "a condition of a comprehension is dropped, or negated",
    "handlers": "what an `except` clause caught is raised again",
    "slices": "a bound or step of a slice is left out",
    "builtins": "min becomes max, any becomes all, and back",
    "logging": "calls of log, logger, logging, warnings and print are changed as well",
}
"""What ``--operators`` can name, and what it means."""

_NOT_BY_DEFAULT = frozenset({"logging"})

_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_BITWISE = (ast.BitAnd, ast.BitOr, ast.BitXor)
_SHIFTS = (ast.LShift, ast.RShift)
_RELATIONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_OPPOSITE_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OTHER_BUILTIN = {"min": "max", "max": "min", "any": "all", "all": "any"}
_SEQUENCES = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
_NOT_DELETED = (
    ast.Pass,
    ast.Import,
    ast.ImportFrom,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Global,
    ast.Nonlocal,
)

Change = tuple[str, ast.AST]
"""The name of the operator, and the node that replaces the original."""


def parse_operators(text: str = "") -> frozenset[str]:
    """Parse a list of operators: ``all``, names, and ``-name`` for all but that one.

    An empty list means the default operators: all but ``logging``, because tests rarely check log
    messages.

    >>> sorted(parse_operators("relational,negate"))
    ['negate', 'relational']
    >>> "strings" in parse_operators("all,-strings")
    False
    """
    default = frozenset(OPERATORS) - _NOT_BY_DEFAULT
    words = [word.strip() for word in text.split(",") if word.strip()]
    chosen = set(default) if not words or words[0].startswith("-") else set()
    for word in words:
        name = word.removeprefix("-")
        if name != "all" and name not in OPERATORS:
            raise UserError(
                f"--operators {text}: no operator is called {name!r}{did_you_mean(name, OPERATORS)}"
            )
        named = set(OPERATORS) if name == "all" else {name}
        chosen = chosen - named if word.startswith("-") else chosen | named
    if not chosen:
        raise UserError(
            f"--operators {text}: no operator is left; choose from {', '.join(OPERATORS)}"
        )
    return frozenset(chosen)


def changes_of(node: ast.AST, parent: ast.AST, field: str) -> Iterator[Change]:
    """Yield everything that could replace a node."""
    make = _BY_TYPE.get(type(node))
    if make is not None:
        yield from make(node)
    if isinstance(node, ast.expr):
        if field == "test" and isinstance(parent, ast.If | ast.While | ast.IfExp):
            yield "negate", _negated(node)
        elif field == "ifs":
            yield "comprehensions", ast.Constant(True)
            yield "comprehensions", _negated(node)
        elif field == "value" and isinstance(parent, ast.Return) and not _is_none(node):
            yield "returns", ast.Constant(None)
    elif isinstance(node, ast.stmt):
        if not isinstance(node, _NOT_DELETED):
            yield "delete", ast.Pass()
        first = isinstance(parent, ast.ExceptHandler) and parent.body[0] is node
        if first and not isinstance(node, ast.Raise):
            yield "handlers", ast.Raise()


def _negated(node: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _constant(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    if isinstance(value, bool):
        yield "booleans", ast.Constant(not value)
    elif isinstance(value, int):
        for other in dict.fromkeys((0, 1, -1, value + 1, value - 1)):
            if other != value:
                yield "integers", _number(other)
    elif isinstance(value, float):
        for changed in dict.fromkeys((0.0, value + 1, -value)):
            if changed != value:
                yield "floats", _number(changed)
    elif isinstance(value, str):
        yield "strings", ast.Constant("" if value else "mutated")
    elif isinstance(value, bytes):
        yield "strings", ast.Constant(b"" if value else b"mutated")
    elif value is None:
        yield "none", ast.Constant("")


def _number(value: float) -> ast.expr:
    if value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def _others(op: ast.operator) -> Iterator[ast.operator]:
    for group in (_ARITHMETIC, _BITWISE, _SHIFTS):
        if isinstance(op, group):
            yield from (other() for other in group if not isinstance(op, other))
    if isinstance(op, ast.Pow):
        yield ast.Mult()


def _operator_name(op: ast.operator) -> str:
    return "bitwise" if isinstance(op, (*_BITWISE, *_SHIFTS)) else "arithmetic"


def _binary(node: ast.BinOp) -> Iterator[Change]:
    if _is_sequence(node.left) or (isinstance(node.op, ast.Add) and _is_sequence(node.right)):
        return  # another operator would be a TypeError: any test kills it, so it shows nothing
    for op in _others(node.op):
        yield _operator_name(op), _with(node, op=op)


def _is_sequence(node: ast.expr) -> bool:
    constant = isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)
    return constant or isinstance(node, _SEQUENCES)


def _unary(node: ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node.op, ast.UAdd):
        yield "unary", _with(node, op=ast.USub())
    else:
        yield "not" if isinstance(node.op, ast.Not) else "unary", node.operand


def _logical(node: ast.BoolOp) -> Iterator[Change]:
    yield "logical", _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def _comparison(node: ast.Compare) -> Iterator[Change]:
    for i, op in enumerate(node.ops):
        if isinstance(op, _RELATIONS):
            name = "relational"
            others: list[ast.cmpop] = [o() for o in _RELATIONS if not isinstance(op, o)]
        else:
            name = "identity" if isinstance(op, ast.Is | ast.IsNot) else "membership"
            others = [_OPPOSITE_COMPARISONS[type(op)]()]
        for other in others:
            yield name, _with(node, ops=[*node.ops[:i], other, *node.ops[i + 1 :]])


def _augmented(node: ast.AugAssign) -> Iterator[Change]:
    if not _is_sequence(node.value):
        for op in _others(node.op):
            yield "augmented", _with(node, op=op)
    target = copy.copy(node.target)
    yield "augmented", ast.copy_location(ast.Assign([target], node.value), node)


def _break(node: ast.Break) -> Iterator[Change]:
    yield "jumps", ast.Continue()


def _continue(node: ast.Continue) -> Iterator[Change]:
    yield "jumps", ast.Break()


def _slice(node: ast.Slice) -> Iterator[Change]:
    for name in ("lower", "upper", "step"):
        if getattr(node, name) is not None:
            yield "slices", _with(node, **{name: None})


def _call(node: ast.Call) -> Iterator[Change]:
    if isinstance(node.func, ast.Name) and node.func.id in _OTHER_BUILTIN:
        other = ast.Name(_OTHER_BUILTIN[node.func.id], ast.Load())
        yield "builtins", _with(node, func=other)


_BY_TYPE: dict[type[ast.AST], Callable[..., Iterator[Change]]] = {
    ast.Constant: _constant,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _logical,
    ast.Compare: _comparison,
    ast.AugAssign: _augmented,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Slice: _slice,
    ast.Call: _call,
}
