"""Arguments as code, for people, taken down before the rule can change them.

Printing a value takes longer than drawing it, and most tests pass and are never shown. So a value
of built-in types is only copied (`marshal` does that in C), and printed when somebody asks.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from swarmtest.subjects.rule_based.internals import (
    RepresentationPrinter,
    VarReference,
)

_ATOMS = (int, str, bool, float, type(None), bytes)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class Copied(NamedTuple):
    """A value of built-in types, as `marshal` wrote it."""

    data: bytes


class Printed(NamedTuple):
    """A value that had to be printed at once."""

    text: str


def taken_down(value: Any, context: Any, made: Mapping[str, Any] | None) -> Any:
    """What is needed to print a value later; `made`: values of bundles that may be part of it."""
    if isinstance(value, VarReference):
        return Printed(value.name)
    if made is None:
        if type(value) in _ATOMS:
            return value
        try:
            return Copied(marshal.dumps(value))
        except ValueError:
            pass
    return Printed(_pretty(value, context, made or {}))


def text_of(taken: Any) -> str:
    """The code of a value that was taken down."""
    if isinstance(taken, Printed):
        return taken.text
    value = marshal.loads(taken.data) if isinstance(taken, Copied) else taken
    return _pretty(value, None, {})


def _pretty(value: Any, context: Any, made: Mapping[str, Any]) -> str:
    printer = RepresentationPrinter(context=context)
    for name, known in made.items():
        if type(known) not in _ATOMS:

            def print_name(_obj: Any, p: Any, _cycle: bool, name: str = name) -> Any:
                return p.text(name)

            printer.singleton_pprinters.setdefault(id(known), print_name)
    if isinstance(value, list) and value and all(isinstance(v, VarReference) for v in value):
        return f"[{', '.join(reference.name for reference in value)}]"
    try:
        printer.pretty(value)
        return _ADDRESS.sub("", printer.getvalue())
    except Exception as error:
        return f"<{type(value).__name__} that cannot be printed: {type(error).__name__}>"
