"""Draw arguments that the same test has used before: many faults need equal values.

Where keys come from a large range, two of them are seldom equal by chance. A subject with `repeats`
replaces a share of the drawn numbers and texts, also inside lists and tuples, by values that the
test has used already, if the generator could have drawn them. Values of another test, such as one
that failed, can count as used from the beginning.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from swarmtest.subjects.machine.generators import Generator, allowed_by
from swarmtest.subjects.machine.machine import Action, FromPool

_TRIES = 3
"""Used values that are tried before the drawn one stays; many belong to other generators."""
_SIMPLE = (int, float, str, bytes, bool, type(None))


class UsedValues:
    """The values that a test has used so far, and actions that draw from them.

    >>> from swarmtest.subjects.machine.generators import integers
    >>> used = UsedValues(1.0)
    >>> draw = used.generator(integers(0, 10**6)).draw
    >>> rng = random.Random(0)
    >>> len({draw(rng) for _ in range(20)})
    1
    """

    def __init__(self, share: float, values: Sequence[Any] = ()) -> None:
        """Create it; `values` count as used before the first step of each test."""
        self._share = share
        self._first = tuple(values)
        self._values: list[Any] = list(values)

    def forget(self) -> None:
        """Begin a new test."""
        self._values[:] = self._first

    def action(self, action: Action) -> Action:
        """Return an action whose arguments repeat now and then."""
        arguments = {
            name: source if isinstance(source, FromPool) else self.generator(source)
            for name, source in action.arguments.items()
        }
        return replace(action, arguments=arguments)

    def generator(self, source: Generator[Any]) -> Generator[Any]:
        """Return a generator that repeats values; the same one if its values are not known."""
        allows = allowed_by(source)
        if allows is None:
            return source
        draw = self._repeating(source.draw, allows)
        return replace(source, draw=draw, inline="", constants={})

    def _repeating(
        self, draw: Callable[[random.Random], Any], allows: Callable[[Any], bool]
    ) -> Callable[[random.Random], Any]:
        def draw_or_repeat(rng: random.Random) -> Any:
            value = draw(rng)
            for path in parts_of(value, most=99) or [()]:
                if rng.random() >= self._share or not self._values:
                    continue
                for _ in range(_TRIES):
                    repeated = with_part(value, path, rng.choice(self._values))
                    if allows(repeated):
                        value = repeated
                        break
            self._remember(value)
            return value

        return draw_or_repeat

    def _remember(self, value: Any) -> None:
        leaves = [part_at(value, path) for path in parts_of(value, most=99)] or [value]
        self._values += [leaf for leaf in leaves if type(leaf) in _SIMPLE]


def parts_of(value: Any, most: int = 8) -> list[tuple[int, ...]]:
    """Return the paths of the numbers and texts in a nested list or tuple, at most `most`.

    >>> parts_of([(1, "a"), 2])
    [(0, 0), (0, 1), (1,)]
    >>> parts_of(7)
    []
    """
    paths: list[tuple[int, ...]] = []

    def visit(part: Any, path: tuple[int, ...]) -> None:
        if type(part) in (list, tuple):
            for at, item in enumerate(part):
                visit(item, (*path, at))
        elif path and type(part) in (int, float, str, bytes, bool):
            paths.append(path)

    visit(value, ())
    return paths if len(paths) <= most else []


def part_at(value: Any, path: Sequence[int]) -> Any:
    """Return the part of a nested value at a path."""
    for at in path:
        value = value[at]
    return value


def with_part(value: Any, path: Sequence[int], part: Any) -> Any:
    """Return a nested value with another part at a path.

    >>> with_part([(1, 2), 3], (0, 1), 9)
    [(1, 9), 3]
    """
    if not path:
        return part
    at, *rest = path
    return type(value)([*value[:at], with_part(value[at], rest, part), *value[at + 1 :]])
