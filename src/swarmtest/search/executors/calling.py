"""Calling a user's function with the values that it names."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from swarmtest.errors import UserError, did_you_mean
from swarmtest.space import Configuration, Space

_GIVEN = ("point", "seed")
"""What a function may name beside dimensions: the whole point, and the run's seed."""


class Calling:
    """A function whose parameters are dimensions, ``point`` or ``seed``; ``**others`` takes all.

    >>> from swarmtest import Integer
    >>> point = Space([Integer("threads", 1, 8)]).configuration({"threads": 4})
    >>> Calling(lambda threads, seed: (threads, seed))(point, 7)
    (4, 7)
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)
        parameters = inspect.signature(function).parameters.values()
        self._takes_all = any(p.kind == p.VAR_KEYWORD for p in parameters)
        named = [p for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        self._names = [p.name for p in named]
        self._needed = [p.name for p in named if p.default is p.empty]

    @property
    def uses(self) -> frozenset[str] | None:
        """The dimensions that it may name; None: all."""
        return None if self._takes_all or "point" in self._names else frozenset(self._names)

    def check(self, space: Space) -> None:
        """Complain about a parameter that nothing gives a value to."""
        known = [dimension.name for dimension in space.dimensions]
        for name in self._needed:
            if name not in known and name not in _GIVEN:
                raise UserError(
                    f"{self.name}() takes {name!r}, and the space has no such dimension"
                    f"{did_you_mean(name, [*known, *_GIVEN])}"
                )

    def __call__(self, point: Configuration, seed: int) -> Any:
        """Call it."""
        values = {"point": point, "seed": seed} | point.to_json()
        if self._takes_all:
            return self.function(
                **{
                    n: v
                    for n, v in values.items()
                    if n not in ("point", "seed") or n in self._names
                }
            )
        return self.function(**{name: values[name] for name in self._names if name in values})
