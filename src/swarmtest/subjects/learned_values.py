"""Values with which methods were called, in a file that a person can edit.

A section names a method, and each line below it a parameter and a value of it, as a Python literal:

    [shop.cart:Cart.add]
    name = 'apple'
    n = 3

`swarmtest learn` writes such a file, and derived machines draw from it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from swarmtest.core.errors import UserError
from swarmtest.core.formatting import printable_line

LearnedValues: TypeAlias = Mapping[str, Mapping[str, tuple[Any, ...]]]
"""Values by method (``module:Class.method``) and parameter."""
SUFFIX = ".values"
_SECTION = re.compile(r"\[([\w.]+:[\w.]+)\]")
_HEAD = """\
# Values with which methods of {package} were called while this ran:
#   {command}
# `swarmtest run MODULE:CLASS --api` draws arguments from this file. Lines may be changed, added and
# deleted; a value is a Python literal.
"""


def written(values: Mapping[str, Mapping[str, list[str]]], package: str, command: str) -> str:
    """Return the text of a file; values are given as their `repr`.

    >>> print(written({"shop:Cart.add": {"n": ["1", "-3"]}}, "shop", "pytest").split(chr(10), 4)[4])
    <BLANKLINE>
    [shop:Cart.add]
    n = 1
    n = -3
    <BLANKLINE>
    """
    # A command may have several lines, and the head is one.
    lines = [_HEAD.format(package=package, command=printable_line(command))]
    for method, parameters in sorted(values.items()):
        body = [f"{name} = {text}" for name, texts in parameters.items() for text in texts]
        if body:
            lines += [f"[{method}]", *body, ""]
    return "\n".join(lines)


def read_values(path: str) -> LearnedValues:
    """Return the values in a file; raise `UserError` for a line that cannot be understood."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        ) from None
    return parsed(text, path)


def parsed(text: str, path: str) -> LearnedValues:
    """Return the values in the text of a file.

    >>> parsed("[shop:Cart.add]\\nn = 1\\nn = 'x'", "shop.values")
    {'shop:Cart.add': {'n': (1, 'x')}}
    """
    values: dict[str, dict[str, tuple[Any, ...]]] = {}
    section: dict[str, tuple[Any, ...]] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        head = _SECTION.fullmatch(line.strip())
        if head:
            section = values.setdefault(head[1], {})
            continue
        name, equals, literal = (part.strip() for part in line.partition("="))
        if section is None or not equals or not name.isidentifier():
            raise UserError(
                f"{path}, line {number}: expected [MODULE:CLASS.METHOD] or PARAMETER = VALUE, not "
                f"{line.strip()[:40]!r}"
            )
        try:
            value = ast.literal_eval(literal)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            raise UserError(
                f"{path}, line {number}: not a Python literal: {literal[:40]!r}"
            ) from None
        section[name] = (*section.get(name, ()), value)
    return values


def values_of(values: LearnedValues, cls: type, method: str) -> Mapping[str, tuple[Any, ...]]:
    """Return the values of a method's parameters, also of one that a base class defines."""
    for base in cls.__mro__:
        found = values.get(f"{base.__module__}:{base.__qualname__}.{method}")
        if found is not None:
            return found
    return {}
