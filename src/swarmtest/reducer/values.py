"""Simplify the values inside the parts that are left, and put the parts in a standard order.

A value becomes simpler towards the first in this order: for numbers 0, then small, then positive;
for a boolean False; for texts, bytes and lists short ones, then plain characters. No value changes
its type: a float that becomes a whole number stays a float. Each change has been tried, and the
given parts are never modified.

Numbers are found by halving the distance. So if a criterion holds from some number on, that number
is found with about log2 of it questions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from swarmtest.reducer.reducer import minimised

Part = TypeVar("Part")
_PLAIN = "0a"
"""The characters that replace others; the first one that works is used."""


def shrunk_values(
    parts: Sequence[Any], interesting: Callable[[Sequence[Any]], bool]
) -> tuple[Any, ...]:
    """Return the parts with the simplest values (JSON data, bytes, tuples) that are interesting.

    Rounds are made until one changes nothing. `interesting` holds for `parts` themselves.

    >>> shrunk_values([1000, "xyz"], lambda parts: parts[0] > 41 and "y" in parts[1])
    (42, 'y')
    """
    answers: dict[str, bool] = {}

    def holds(candidate: Sequence[Any]) -> bool:
        key = repr(candidate)
        if key not in answers:
            answers[key] = bool(interesting(candidate))
        return answers[key]

    current, before = list(parts), ""
    while repr(current) != before:
        before = repr(current)
        _make_simpler(current, lambda candidate: holds(tuple(candidate)))
    return tuple(current)


def in_canonical_order(
    parts: Sequence[Part],
    interesting: Callable[[Sequence[Part]], bool],
    key: Callable[[Part], Any] = repr,
) -> tuple[Part, ...]:
    """Return the parts in the order of `key`, as far as they stay interesting.

    So equal bugs look equal. Neighbours are swapped while that brings them nearer to the order.
    `interesting` holds for `parts` themselves.

    >>> in_canonical_order(["b", "x", "a"], lambda parts: parts.index("b") < parts.index("x"))
    ('a', 'b', 'x')
    """
    current = list(parts)
    ordered = sorted(current, key=key)
    if ordered == current or interesting(tuple(ordered)):
        return tuple(ordered)
    for end in range(1, len(current)):
        for i in range(end, 0, -1):
            if key(current[i - 1]) <= key(current[i]):
                break
            swapped = [*current[: i - 1], current[i], current[i - 1], *current[i + 1 :]]
            if not interesting(tuple(swapped)):
                break
            current = swapped
    return tuple(current)


def renamed(
    parts: Sequence[Any],
    interesting: Callable[[Sequence[Any]], bool],
    names: Callable[[int], str],
) -> tuple[Any, ...]:
    """Return the parts with their texts named `names(0)`, `names(1)`... in order of appearance.

    A text that has to stay is kept everywhere; a text that already is such a name keeps it.

    >>> parts = [["set", "zebra"], ["get", "zebra"]]
    >>> renamed(parts, lambda p: p[0][0] == "set" and p[1][0] == "get", lambda i: f"v{i}")
    (['set', 'v0'], ['get', 'v0'])
    """
    current = tuple(parts)
    settled: set[str] = set()
    number = 0
    while fresh := [text for text in _texts(current) if text not in settled]:
        text, name = fresh[0], names(number)
        changed = tuple(_replaced(part, {text: name, name: text}) for part in current)
        if text == name or (name not in settled and interesting(changed)):
            current = changed
            settled.add(name)
            number += 1
        else:
            settled.add(text)
            number += name in settled
    return current


def _make_simpler(items: list[Any], holds: Callable[[Sequence[Any]], bool]) -> None:
    """Make each of the items as simple as the others allow, in place."""
    for at in range(len(items)):

        def with_value(value: Any, at: int = at) -> bool:
            return holds(_with(items, at, value))

        items[at] = _simpler(items[at], with_value)


def _simpler(value: Any, holds: Callable[[Any], bool]) -> Any:
    if isinstance(value, bool):
        return value and not holds(False)
    if isinstance(value, int):
        return nearest_to_zero(value, holds)
    if isinstance(value, float):
        return _simpler_float(value, holds)
    if isinstance(value, str | bytes):
        return _simpler_text(value, holds)
    if isinstance(value, list | tuple):
        return _simpler_sequence(value, holds)
    if isinstance(value, dict):
        return _simpler_mapping(value, holds)
    return value


def nearest_to_zero(value: int, holds: Callable[[int], bool]) -> int:
    """Return the number nearest to 0 that halving finds; a positive one if possible.

    >>> nearest_to_zero(-100, lambda number: abs(number) > 6)
    7
    """
    if value == 0 or holds(0):
        return 0
    sign = 1 if value > 0 or holds(-value) else -1
    low, high = 0, abs(value)
    while high - low > 1:
        middle = (low + high) // 2
        if holds(sign * middle):
            high = middle
        else:
            low = middle
    return sign * high


def _simpler_float(value: float, holds: Callable[[float], bool]) -> float:
    if value == 0 and math.copysign(1, value) > 0:
        return value
    if not math.isfinite(value):
        return next(filter(holds, (0.0, 1.0)), value)
    for whole in (0, math.trunc(value), round(value), math.ceil(abs(value))):
        if repr(float(whole)) == repr(value) or holds(float(whole)):
            return float(nearest_to_zero(whole, lambda number: holds(float(number))))
    for digits in range(1, 15):
        if round(value, digits) == value or holds(round(value, digits)):
            return round(value, digits)
    return value


def _simpler_text(value: Any, holds: Callable[[Any], bool]) -> Any:
    def joined(pieces: Sequence[Any]) -> Any:
        return "".join(pieces) if isinstance(value, str) else bytes(pieces)

    pieces_left = list(minimised(value, lambda pieces: holds(joined(pieces))))
    plain: Sequence[Any] = _PLAIN if isinstance(value, str) else _PLAIN.encode()
    for at, piece in enumerate(pieces_left):
        for simple in plain[: plain.index(piece)] if piece in plain else plain:
            if holds(joined(_with(pieces_left, at, simple))):
                pieces_left[at] = simple
                break
    return joined(pieces_left)


def _simpler_sequence(value: Any, holds: Callable[[Any], bool]) -> Any:
    make = type(value) if type(value) in (list, tuple) else None
    if make is None:  # a named tuple, for example, which cannot lose a field
        return value
    items_left = list(minimised(value, lambda items: holds(make(items))))
    _make_simpler(items_left, lambda items: holds(make(items)))
    return make(items_left)


def _simpler_mapping(value: dict[Any, Any], holds: Callable[[Any], bool]) -> dict[Any, Any]:
    items_left = dict(minimised(tuple(value.items()), lambda items: holds(dict(items))))
    values = list(items_left.values())
    _make_simpler(values, lambda new: holds(dict(zip(items_left, new, strict=True))))
    return dict(zip(items_left, values, strict=True))


def _texts(value: Any) -> list[str]:
    """Return all texts in a value, in order."""
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    if isinstance(value, list | tuple | dict):
        return [text for item in items for text in _texts(item)]
    return []


def _replaced(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, dict):
        return {key: _replaced(item, names) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replaced(item, names) for item in value)
    return value


def _with(items: Sequence[Any], at: int, new: Any) -> tuple[Any, ...]:
    return (*items[:at], new, *items[at + 1 :])
