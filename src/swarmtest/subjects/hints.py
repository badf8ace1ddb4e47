"""Generators from type hints."""

from __future__ import annotations

import enum
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from swarmtest.subjects.generators import (
    Generator,
    binary,
    booleans,
    floats,
    integers,
    just,
    lists,
    one_of,
    sampled_from,
    text,
    tuples,
)

_SMALL_KEYS = integers(0, 9)
"""Where nothing is known, small numbers: calls that should meet on the same key then do."""


def hints_of(method: Callable[..., Any], cls: type) -> dict[str, Any]:
    """The type hints of a method, resolved; empty where that fails."""
    try:
        names = {cls.__name__: cls, "Self": cls}
        hints = typing.get_type_hints(method, localns=names)
    except Exception:
        return {}
    return {name: cls if hint is typing.Self else hint for name, hint in hints.items()}


def generator_of_hint(hint: Any, default: Any = inspect.Parameter.empty) -> Generator[Any] | None:
    """A generator for values of a type; None if the type does not say.

    >>> import random
    >>> generator_of_hint(bool).draw(random.Random(1)) in (True, False)
    True
    >>> generator_of_hint(list[int] | None) is not None
    True
    """
    if hint is inspect.Parameter.empty or hint is Any or isinstance(hint, typing.TypeVar):
        return _from_default(default)
    plain: dict[Any, Generator[Any]] = {
        int: integers(-1000, 1000),
        float: floats(-1000.0, 1000.0),
        complex: floats(-10.0, 10.0),
        bool: booleans(),
        str: text(),
        bytes: binary(),
        None: just(None),
        type(None): just(None),
        object: _SMALL_KEYS,
    }
    try:
        if hint in plain:
            return plain[hint]
    except TypeError:
        return None
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return sampled_from(list(hint))
    return _of_generic(hint)


def _of_generic(hint: Any) -> Generator[Any] | None:
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is typing.Literal:
        return sampled_from(arguments)
    if origin in (typing.Union, types.UnionType):
        options = [g for g in map(generator_of_hint, arguments) if g is not None]
        return one_of(*options) if options else None
    if origin is typing.Annotated:
        return generator_of_hint(arguments[0])
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        parts = [generator_of_hint(argument) for argument in arguments]
        return tuples(*parts) if all(parts) else None
    if inspect.isclass(origin):
        return _of_container(origin, arguments)
    return None


def _of_container(origin: type, arguments: tuple[Any, ...]) -> Generator[Any] | None:
    name = origin.__name__
    element = generator_of_hint(arguments[0]) if arguments else _SMALL_KEYS
    if element is None:
        return None
    items = lists(element)
    if name in ("list", "Sequence", "Iterable", "Collection", "MutableSequence", "Iterator"):
        return items
    makers: dict[str, Callable[[Any], Any]] = {
        "set": set,
        "frozenset": frozenset,
        "Set": set,
        "tuple": tuple,
    }
    if name in makers:
        make = makers[name]
        return Generator(lambda rng: make(items.draw(rng)))
    if name in ("dict", "Mapping", "MutableMapping"):
        value = generator_of_hint(arguments[1]) if len(arguments) > 1 else _SMALL_KEYS
        if value is None:
            return None
        return Generator(lambda rng: {key: value.draw(rng) for key in items.draw(rng)})
    return None


def _from_default(default: Any) -> Generator[Any] | None:
    """Without a hint: like the default value, or small numbers where there is none."""
    if default is inspect.Parameter.empty or default is None:
        return _SMALL_KEYS
    return generator_of_hint(type(default))
