"""What forbids points: an expression over the dimensions' names, or a function of a point."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from swarmtest.errors import UserError, did_you_mean
from swarmtest.faults import message_of
from swarmtest.space import Configuration

_FUNCTIONS = {name: getattr(builtins, name) for name in ("abs", "len", "max", "min", "sum")}


@dataclass(frozen=True)
class Predicate:
    """Tells whether a point is forbidden; `text` is how a person reads it."""

    text: str
    holds: Callable[[Configuration], Any]

    def forbids(self, point: Configuration) -> bool:
        """Whether it forbids this point."""
        try:
            return bool(self.holds(point))
        except Exception as error:
            raise UserError(
                f"forbid {self.text!r} failed at '{point}': {message_of(error)}"
            ) from None


def predicate_of(told: object, names: Iterable[str]) -> Predicate:
    """The predicate that a user wrote, over dimensions of these names.

    >>> from swarmtest import Integer, Space
    >>> space = Space([Integer("threads", 1, 8), Integer("seats", 1, 100)])
    >>> predicate = predicate_of("threads > seats", ["threads", "seats"])
    >>> predicate.forbids(space.configuration({"threads": 4, "seats": 3}))
    True
    """
    if isinstance(told, Predicate):
        return told
    if callable(told):
        return Predicate(getattr(told, "__name__", repr(told)), told)
    if not isinstance(told, str):
        raise UserError(f"forbid: an expression in quotes or a function of a point, not {told!r}")
    return _expression(told, list(names))


def _expression(text: str, names: list[str]) -> Predicate:
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise UserError(f"forbid {text!r} is no expression: {error.msg}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id not in names and node.id not in _FUNCTIONS:
            raise UserError(
                f"forbid {text!r}: the space has no dimension {node.id!r}"
                f"{did_you_mean(node.id, names)}"
            )
    code = compile(tree, "<forbid>", "eval")
    known = {"__builtins__": {}, **_FUNCTIONS}

    def holds(point: Configuration) -> Any:
        return eval(code, known, point.to_json())

    return Predicate(text, holds)
