"""Whether an exception says "you called me wrongly", and so is no fault.

A derived machine knows only the signatures of methods, and passes values that they need not accept.
What a method raises because of the *kind* of a value is a rejected call.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import re
from collections.abc import Iterable
from types import TracebackType
from typing import Any

TOLERATED: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    LookupError,
    NotImplementedError,
    StopIteration,
    OSError,
)
"""Exceptions with which Python code refuses bad arguments or states."""
_ON_PURPOSE = (RuntimeError, AttributeError, ImportError, EOFError)
"""Exceptions that refuse a call if a ``raise`` statement raises them. If the interpreter raises
them, something went wrong."""
_NO_ATTRIBUTE = re.compile(r"'([\w.]+)' object has no attribute")
_NUMBER_OF_TYPES = re.compile(
    r"cannot convert float (?:infinity|NaN)|too large to convert|too large"
)


class RejectedCall(Exception):
    """A call that the class under test has refused; `original` is the exception that it raised."""

    stands_for_others = True

    def __init__(self, original: BaseException) -> None:
        super().__init__(str(original))
        self.original = original


def is_rejection(
    error: Exception, cls: type, method: Any, passed: Iterable[str], names: Iterable[str]
) -> bool:
    """Return whether an exception says that the call was wrong.

    `passed` are the names of the types of the values that the test has passed so far, and `names`
    the parameters of the method.

    >>> try:
    ...     (3).append
    ... except AttributeError as error:
    ...     [is_rejection(error, list, None, {kind}, ()) for kind in ("int", "str")]
    [True, False]
    """
    if isinstance(error, RecursionError):
        return False
    if isinstance(error, TOLERATED) or _is_of_package(type(error), cls):
        return True
    if isinstance(error, _ON_PURPOSE) and _is_raised(error):
        return True
    if type(error) in (Exception, Warning) and _is_raised(error):
        return True
    if type(error).__module__ != "builtins" and _is_raised(error):
        return True  # of a library that the package uses
    if isinstance(error, AttributeError):
        found = _NO_ATTRIBUTE.search(str(error))
        return found is not None and found[1] in set(passed)
    if isinstance(error, AssertionError):
        return _asserts_about(error, method, set(names))
    if isinstance(error, ArithmeticError) and _NUMBER_OF_TYPES.search(str(error)):
        return True
    return _is_documented(type(error), method)


def _is_of_package(error: type, cls: type) -> bool:
    """Return whether the package of the class defines the exception, or imports it for its use."""
    if error.__module__ == "builtins":
        return False
    if error.__module__.partition(".")[0] == cls.__module__.partition(".")[0]:
        return True
    module = inspect.getmodule(cls)
    return module is not None and error in [
        member for member in vars(module).values() if inspect.isclass(member)
    ]


def _innermost(error: BaseException) -> TracebackType | None:
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return tb


def _is_raised(error: BaseException) -> bool:
    """Return whether a ``raise`` statement of the program raised it, not the interpreter."""
    tb = _innermost(error)
    if tb is None:
        return False
    line = linecache.getline(tb.tb_frame.f_code.co_filename, tb.tb_lineno).strip()
    # A raise in the middle of a line, as in `if closed: raise Closed`.
    return re.search(r"(?:^|[:;]\s*)raise\b", line) is not None


def _asserts_about(error: BaseException, method: Any, names: set[str]) -> bool:
    """Return whether the called method itself asserts something about one of its parameters."""
    tb = _innermost(error)
    if tb is None or tb.tb_frame.f_code is not getattr(method, "__code__", None):
        return False
    line = linecache.getline(tb.tb_frame.f_code.co_filename, tb.tb_lineno).strip()
    try:
        tree = ast.parse(line)
    except SyntaxError:
        return False
    # Not only the statement itself: a short method may be one line.
    asserted = [statement.test for statement in ast.walk(tree) if isinstance(statement, ast.Assert)]
    return any(
        isinstance(node, ast.Name) and node.id in names
        for condition in asserted
        for node in ast.walk(condition)
    )


def _is_documented(error: type, method: Any) -> bool:
    """Return whether the docstring of the method names the exception."""
    text = getattr(method, "__doc__", None) or ""
    if not re.search(r"raise|throw|except", text, re.IGNORECASE):
        return False
    names = [
        base.__name__ for base in error.__mro__ if base not in (Exception, BaseException, object)
    ]
    return any(re.search(rf"\b{name}\b", text) for name in names if hasattr(builtins, name))


def types_in(value: Any) -> set[str]:
    """Return the names of the types in a value, also of what a container holds.

    >>> sorted(types_in([1, ("a", None)]))
    ['NoneType', 'int', 'list', 'str', 'tuple']
    """
    found = {type(value).__name__}
    if isinstance(value, list | tuple | set | frozenset):
        found = found.union(*map(types_in, value))
    elif isinstance(value, dict):
        found = found.union(*map(types_in, value), *map(types_in, value.values()))
    return found
