"""Operations as short pieces of Python code over an object ``o``, and how to run them.

An operation is written as a person would write the call: ``o.append(x)``, ``o[k] = v``. The single
letters are its arguments, and the model that it belongs to says where their values come from. The
same code runs on the object under test and on the model, and is printed with a failing test.
"""

from __future__ import annotations

import ast
import copy
import functools
import keyword
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from swarmtest.core.errors import UserError

OBJECT = "o"
"""The name of the object in the code of an operation."""
RESULT = "r"
"""In the code for the model: the result of the object under test."""

_METHODS_OF_SYNTAX: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("__add__",),
    ast.Sub: ("__sub__",),
    ast.Mult: ("__mul__",),
    ast.BitOr: ("__or__",),
    ast.BitAnd: ("__and__",),
    ast.BitXor: ("__xor__",),
    ast.Lt: ("__lt__",),
    ast.LtE: ("__le__",),
    ast.Gt: ("__gt__",),
    ast.GtE: ("__ge__",),
}
_METHODS_OF_CONTEXT = {ast.Load: "__getitem__", ast.Store: "__setitem__", ast.Del: "__delitem__"}
_METHODS_OF_FUNCTION = {"len": "__len__", "iter": "__iter__"}


@dataclass(frozen=True)
class Operation:
    """One operation: what is called, and where its arguments come from.

    >>> operation = operation_of("insert: o.insert(i, x)", {"i": 2, "x": 1})
    >>> operation.name, operation.letters, operation.needs
    ('insert', ('i', 'x'), frozenset({'insert'}))
    >>> operation.text((0, 7))
    'o.insert(0, 7)'
    """

    name: str
    code: str
    letters: tuple[str, ...]
    arguments: Mapping[str, Any]
    """Where the value of each letter comes from."""
    model_code: str = ""
    """The code for the model, if it differs; `r` in it is what the object under test returned."""
    call: Callable[..., Any] | None = None
    """Runs the operation, if it is not written as code."""
    render: Callable[[str, Any], str] | None = None
    """With `call`: writes the call, from the name of the object and the code of the arguments."""

    @functools.cached_property
    def needs(self) -> frozenset[str]:
        """The methods of the object that the code uses."""
        return frozenset() if self.call is not None else methods_used(self.code)

    def run(self, tested: Any, values: tuple[Any, ...]) -> Any:
        """Do it to an object."""
        if self.call is not None:
            return self.call(tested, *values)
        return _compiled(self.code, self.letters)(tested, None, *values)

    def run_on_model(self, model: Any, values: tuple[Any, ...], result: Any, failed: bool) -> Any:
        """Do it to a model, which may have to follow a choice that the object under test made."""
        if self.call is not None:
            return self.call(model, *values)
        follows = self.model_code and not (failed and RESULT in letters_of(self.model_code))
        code = self.model_code if follows else self.code
        return _compiled(code, self.letters)(model, result, *values)

    def text(self, arguments: Any, name: str = OBJECT) -> str:
        """Return the call as code, with arguments in place of the letters.

        The arguments are values, or `Code`.
        """
        if self.render is not None:
            return self.render(name, [_code(argument) for argument in arguments])
        words = dict(zip(self.letters, map(_code, arguments), strict=False)) | {OBJECT: name}
        return _Filled(words).visit_code(self.code)

    def called_as(self, code: str) -> Operation:
        """Return the operation with other code for the object under test."""
        return replace(self, code=code, model_code=self.model_code or self.code, call=None)


class Code(str):
    """An argument that is code already."""

    __slots__ = ()


def _code(argument: Any) -> str:
    return argument if isinstance(argument, Code) else repr(argument)


def operation_of(line: str, sources: Mapping[str, Any]) -> Operation:
    """Return the operation that a line describes: ``name: code``, or ``name: code ~ model's code``.

    >>> operation_of("pop: o.pop() ~ o.remove(r) or r", {}).model_code
    'o.remove(r) or r'
    """
    name, colon, rest = line.partition(":")
    if not colon or not name.strip().isidentifier() or keyword.iskeyword(name.strip()):
        raise UserError(f"an operation is written as NAME: CODE, not {line!r}")
    code, _, model_code = (part.strip() for part in rest.partition("~"))
    letters = tuple(letter for letter in letters_of(code) if letter in sources)
    return Operation(
        name.strip(), code, letters, {letter: sources[letter] for letter in letters}, model_code
    )


@functools.cache
def letters_of(code: str) -> tuple[str, ...]:
    """Return the names of one letter that a piece of code uses, in order, without the object.

    >>> letters_of("o[k] = v")
    ('k', 'v')
    """
    names = [
        node
        for node in ast.walk(_parsed(code))
        if isinstance(node, ast.Name) and len(node.id) == 1 and node.id != OBJECT
    ]
    names.sort(key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(node.id for node in names))


@functools.cache
def methods_used(code: str) -> frozenset[str]:
    """Return the methods of the object that a piece of code needs.

    >>> sorted(methods_used("o[k] = v")), sorted(methods_used("list(o + xs)"))
    (['__setitem__'], ['__add__'])
    """
    used: set[str] = set()
    for node in ast.walk(_parsed(code)):
        if isinstance(node, ast.Attribute) and _is_object(node.value):
            used.add(node.attr)
        elif isinstance(node, ast.Subscript) and _is_object(node.value):
            used.add(_METHODS_OF_CONTEXT[type(node.ctx)])
        elif isinstance(node, ast.BinOp) and _is_object(node.left):
            used.update(_METHODS_OF_SYNTAX.get(type(node.op), ()))
        elif isinstance(node, ast.AugAssign) and _is_object(node.target):
            used.update(name.replace("__", "__i", 1) for name in _METHODS_OF_SYNTAX[type(node.op)])
        elif isinstance(node, ast.Compare) and _is_object(node.left):
            used.update(*(_METHODS_OF_SYNTAX.get(type(op), ()) for op in node.ops))
        elif isinstance(node, ast.Call) and any(map(_is_object, node.args)):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            used.update({_METHODS_OF_FUNCTION[name]} if name in _METHODS_OF_FUNCTION else ())
    return frozenset(used)


def _is_object(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == OBJECT


def _parsed(code: str) -> ast.Module:
    try:
        return ast.parse(code)
    except SyntaxError as error:
        raise UserError(f"an operation is Python code, not {code!r}: {error.msg}") from None


@functools.cache
def _compiled(code: str, letters: tuple[str, ...]) -> Callable[..., Any]:
    """Return a function of the object, the other result and the arguments."""
    tree = _parsed(code)
    only = tree.body[0]
    if len(tree.body) == 1 and isinstance(only, ast.Expr):
        tree.body = [ast.Return(only.value)]
    parameters = ", ".join([OBJECT, RESULT, *letters])
    lines = [f"def operation({parameters}):"]
    lines += [f"    {line}" for line in ast.unparse(ast.fix_missing_locations(tree)).splitlines()]
    names: dict[str, Any] = {"copy": copy}
    exec(compile("\n".join(lines), f"<swarmtest {code}>", "exec"), names)
    function: Callable[..., Any] = names["operation"]
    return function


def evaluated(code: str, tested: Any) -> Any:
    """Return what an expression over the object gives.

    >>> evaluated("len(o)", [1, 2])
    2
    """
    return _compiled(code, ())(tested, None)


class _Filled(ast.NodeTransformer):
    """Writes code with other code in place of names."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = words

    def visit_code(self, code: str) -> str:
        return ast.unparse(self.visit(_parsed(code)))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        word = self._words.get(node.id)
        if word is None:
            return node
        try:
            return ast.parse(word, mode="eval").body
        except SyntaxError:  # an argument that has no form as code
            return ast.Constant(...)
