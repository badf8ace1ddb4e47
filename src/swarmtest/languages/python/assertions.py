"""Show the values in a failed ``assert``, as pytest does, without rewriting every module.

pytest rewrites all asserts of test modules when they are imported. Here the values are wanted only
after a test has failed, and for a machine that was loaded long ago. Evaluating the condition once
more in the frame that failed would be cheap, but ``assert queue.pop() == 3`` would pop again and
show another value. So the failing test runs once more, in a process of its own, with this one
assert rewritten: each operand passes through `noted`. Until then nothing costs anything.
"""

from __future__ import annotations

import ast
import gc
import linecache
import reprlib
from collections.abc import Iterator
from types import CodeType, FunctionType

_MOST_VALUES = 8
_LONGEST = 300
"""Characters of a value."""

_values: dict[str, str] = {}
"""The operands of the rewritten assert, in the order of their evaluation. It is filled in the
process that runs the failing test again."""

_shown = reprlib.Repr()
_shown.maxlevel, _shown.maxlist, _shown.maxtuple, _shown.maxdict, _shown.maxset = 6, 30, 30, 30, 30
_shown.maxdeque = _shown.maxarray = _shown.maxfrozenset = 30
_shown.maxstring = _shown.maxother = _shown.maxlong = _LONGEST


def rewrite_assert(file: str, line: int) -> bool:
    """Make the functions of this process note the values of an assert; return whether they do.

    The file must still be what was imported.
    """
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return False
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if not found:
        return False
    assertion = found[-1]
    assertion.test = _noting(assertion.test)
    try:
        module = compile(ast.fix_missing_locations(tree), file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return False
    return _replace_code(module, file, assertion.lineno)


def noted_values() -> dict[str, str]:
    """Return the operands of the rewritten assert when it was evaluated last, and their values."""
    return dict(_values)


def begin() -> None:
    """Forget the values of an earlier evaluation."""
    _values.clear()


def noted(text: str, value: object) -> object:
    """Remember the value of an operand; return it unchanged."""
    try:
        shown = " ".join(_shown.repr(value).split())
    except Exception as error:
        shown = f"({type(error).__name__} in its repr)"
    _values[text] = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
    return value


def _noting(test: ast.expr) -> ast.expr:
    """Return a condition that notes its operands: ``(begin(), condition)[1]``."""
    begun = ast.Call(_member("begin"), [], [])
    pair = ast.Tuple([begun, _Noting().visit(test)], ast.Load())
    return ast.Subscript(pair, ast.Constant(1), ast.Load())


def _member(name: str) -> ast.expr:
    """Return an expression for a function of this module that needs no name in the user's code."""
    imported = ast.Call(
        ast.Name("__import__", ast.Load()),
        [ast.Constant(__name__)],
        [ast.keyword("fromlist", ast.List([ast.Constant(name)], ast.Load()))],
    )
    return ast.Attribute(imported, name, ast.Load())


class _Noting(ast.NodeTransformer):
    """Wraps the operands of a condition; comprehensions and lambdas stay as they are."""

    def __init__(self) -> None:
        self._left = _MOST_VALUES

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        node.values = [self.visit(value) for value in node.values]
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        node.operand = self.visit(node.operand)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        node.left = self._operand(node.left)
        node.comparators = [self._operand(each) for each in node.comparators]
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return self._operand(node) if isinstance(node, ast.expr) else node

    def _operand(self, node: ast.expr) -> ast.expr:
        """Return an operand that is noted, with the arguments of a call noted before it."""
        text = ast.unparse(node)
        if isinstance(node, ast.Call):
            node.args = [
                each if isinstance(each, ast.Starred) else self._argument(each)
                for each in node.args
            ]
        return self._wrapped(node, text)

    def _argument(self, node: ast.expr) -> ast.expr:
        is_plain = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
        return self._wrapped(node, ast.unparse(node)) if is_plain else node

    def _wrapped(self, node: ast.expr, text: str) -> ast.expr:
        if self._left == 0 or isinstance(node, _NOT_NOTED):
            return node
        self._left -= 1
        return ast.Call(_member("noted"), [ast.Constant(text), node], [])


_NOT_NOTED = (
    *(ast.Constant, ast.Lambda, ast.GeneratorExp, ast.NamedExpr, ast.Await, ast.Yield),
    *(ast.YieldFrom, ast.Starred, ast.JoinedStr),
)
"""Their values say nothing, or they are names that must not be taken into a call."""


def _replace_code(module: CodeType, file: str, line: int) -> bool:
    """Give the functions around a line their new code; return whether there was one."""
    new = {
        (code.co_qualname, code.co_firstlineno): code
        for code in _codes_in(module)
        if any(start == line for _, _, start in code.co_lines())
    }
    replaced = False
    gc.unfreeze()  # a forked process may have frozen what was there, and `get_objects` skips it
    for function in gc.get_objects():
        if not isinstance(function, FunctionType):
            continue
        old = function.__code__
        code = new.get((old.co_qualname, old.co_firstlineno))
        if code is not None and old.co_filename == file and old.co_freevars == code.co_freevars:
            function.__code__ = code
            replaced = True
    return replaced


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_in(constant)
