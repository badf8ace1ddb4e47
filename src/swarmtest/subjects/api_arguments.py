"""Where the arguments of a derived machine come from.

The type hint says most. Without one: the types in the docstring, the default value, what the name
of the parameter usually means, and constants in the class's own source.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import enum
import functools
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

from swarmtest.subjects.learned_values import LearnedValues, values_of
from swarmtest.subjects.machine.generators import (
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

EMPTY = inspect.Parameter.empty
_SMALL_KEYS = integers(0, 9)
"""For values of an unknown type: few distinct numbers, so that calls often use the same key."""
_EDGES = sampled_from([0, 1, -1, 2, 255, 256, 257])
"""Numbers at which programs change their minds. Larger ones make honest programs slow."""
_NUMBERS = one_of(integers(-1, 9), integers(-1, 9), integers(-1000, 1000), _EDGES)
_TEXTS = one_of(
    text("ab", 3), text(max_size=10), sampled_from(["", "a", "a b", "0", "12", "A", "é", "a\nb"])
)
_MOST_CONSTANTS = 40
_LARGEST_CONSTANT = 10_000


class ArgumentSources:
    """The generators for the parameters of one class's methods.

    >>> sources = ArgumentSources(dict)
    >>> sources.of_parameter("n", int) is not None
    True
    """

    def __init__(
        self, cls: type, instances: Any = None, learned: LearnedValues = MappingProxyType({})
    ) -> None:
        """Create the sources.

        Parameters that take the class itself draw from `instances`; `learned` are values that
        `swarmtest learn` has recorded.
        """
        self._cls = cls
        self._learned = learned
        self.instances = instances
        """The pool of objects of the class, if there is one."""
        numbers, texts = constants_of(cls)
        self._plain: dict[Any, Generator[Any]] = {
            int: one_of(_NUMBERS, _NUMBERS, _NUMBERS, sampled_from(numbers))
            if numbers
            else _NUMBERS,
            str: one_of(_TEXTS, _TEXTS, sampled_from(texts)) if texts else _TEXTS,
            float: one_of(floats(-1000.0, 1000.0), sampled_from([0.0, -0.0, 0.5, 1.0, -1.0])),
            complex: floats(-10.0, 10.0),
            bool: booleans(),
            bytes: binary(),
            None: just(None),
            type(None): just(None),
            object: _SMALL_KEYS,
        }

    def of_method(self, method: Callable[..., Any]) -> dict[str, Any] | None:
        """Return a source per parameter; None if a required value cannot be drawn.

        A method without a signature raises `ValueError` or `TypeError`.
        """
        parameters = list(inspect.signature(method).parameters.values())[1:]
        hints, documented = hints_of(method, self._cls), documented_types(method)
        learned = values_of(self._learned, self._cls, getattr(method, "__name__", ""))
        sources: dict[str, Any] = {}
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            hint = hints.get(parameter.name, documented.get(parameter.name, EMPTY))
            source = self.of_parameter(parameter.name, hint, parameter.default)
            source = with_learned(source, learned.get(parameter.name, ()))
            if source is not None:
                sources[parameter.name] = source
            elif parameter.default is EMPTY:
                return None
        return sources

    def of_parameter(self, name: str, hint: Any, default: Any = EMPTY) -> Any:
        """Return a source for one parameter; None if it is not known what it can be."""
        if hint is self._cls and self.instances is not None:
            return self.instances
        if hint is EMPTY and name in ("other", "another") and self.instances is not None:
            return self.instances
        if hint is EMPTY and (default is EMPTY or default is None):
            by_name = self._of_name(name)
            if by_name is not None:
                return one_of(by_name, just(None)) if default is None else by_name
        source = self.of_hint(hint, default)
        if source is not None and _is_plain(default):
            return one_of(source, source, just(default))
        return source

    def _of_name(self, name: str) -> Any:
        for pattern, kind in _NAMES:
            if re.fullmatch(pattern, name.lower().strip("_")):
                return self._plain.get(kind, kind)
        return None

    def of_hint(self, hint: Any, default: Any = EMPTY) -> Generator[Any] | None:
        """Return a generator for values of a type; None if the type does not tell enough.

        >>> import random
        >>> ArgumentSources(object).of_hint(bool).draw(random.Random(1)) in (True, False)
        True
        >>> ArgumentSources(object).of_hint(list[int] | None) is not None
        True
        """
        if hint is EMPTY or hint is Any or isinstance(hint, typing.TypeVar):
            return _SMALL_KEYS if default in (EMPTY, None) else self.of_hint(type(default))
        try:
            if hint in self._plain:
                return self._plain[hint]
        except TypeError:
            return None
        if inspect.isclass(hint) and issubclass(hint, enum.Enum):
            return sampled_from(list(hint))
        return self._of_generic(hint)

    def _of_generic(self, hint: Any) -> Generator[Any] | None:
        origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
        if origin is typing.Literal:
            return sampled_from(arguments)
        if origin in (typing.Union, types.UnionType):
            options = [g for g in map(self.of_hint, arguments) if g is not None]
            return one_of(*options) if options else None
        if origin is typing.Annotated:
            return self.of_hint(arguments[0])
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            parts = [self.of_hint(argument) for argument in arguments]
            return tuples(*parts) if all(parts) else None
        if getattr(origin, "__name__", "") == "Callable":
            return _FUNCTIONS
        if inspect.isclass(origin):
            return self._of_container(origin, arguments)
        return None

    def _of_container(self, origin: type, arguments: tuple[Any, ...]) -> Generator[Any] | None:
        name = origin.__name__
        element = self.of_hint(arguments[0]) if arguments else _SMALL_KEYS
        if element is None:
            return None
        items = lists(element)
        if name in ("list", "Sequence", "Iterable", "Collection", "MutableSequence", "Iterator"):
            return items
        constructors: dict[str, Callable[[Any], Any]] = {
            "set": set,
            "frozenset": frozenset,
            "Set": set,
            "tuple": tuple,
        }
        if name in constructors:
            construct = constructors[name]
            return Generator(lambda rng: construct(items.draw(rng)))
        if name in ("dict", "Mapping", "MutableMapping"):
            value = self.of_hint(arguments[1]) if len(arguments) > 1 else _SMALL_KEYS
            if value is None:
                return None
            return Generator(lambda rng: {key: value.draw(rng) for key in items.draw(rng)})
        return None


def with_learned(source: Any, values: Sequence[Any]) -> Any:
    """Return a source of which two of three values are those that were learned.

    >>> import random
    >>> with_learned(None, (["a"],)).draw(random.Random(1))
    ['a']
    """
    if not values:
        return source
    known: Generator[Any] = Generator(
        lambda rng: copy.deepcopy(values[int(rng.random() * len(values))]),
        immutable=all(
            type(value) in (int, float, str, bytes, bool, type(None)) for value in values
        ),
        allows=lambda value: any(type(value) is type(v) and value == v for v in values),
    )
    # A pool of objects of the class cannot be mixed with values.
    return one_of(known, known, source) if isinstance(source, Generator) else source or known


_FUNCTIONS = sampled_from([str, repr, bool])
_LISTS = lists(_SMALL_KEYS)
_DICTS: Generator[Any] = Generator(
    lambda rng: {_SMALL_KEYS.draw(rng): _SMALL_KEYS.draw(rng) for _ in range(int(rng.random() * 4))}
)
_NAMES: tuple[tuple[str, Any], ...] = (
    (
        r"(?:i|j|n|num|idx|index|pos|position|start|stop|end|count|size|length|step|limit|k|steps)",
        int,
    ),
    (r"(?:name|text|string|s|txt|prefix|suffix|sep|separator|path|filename|word|line)", str),
    (r"(?:func|function|callback|fn|predicate|f|cond|condition)", _FUNCTIONS),
    (r"(?:data|buf|buffer|bytes|b)", bytes),
    (r"(?:iterable|items|values|elements|seq|sequence|lst|xs|keys|args|others|it)", _LISTS),
    (r"(?:mapping|dict|d|m|kwargs|pairs)", _DICTS),
    (r"(?:flag|reverse|inplace|strict|copy|last)", bool),
)
"""What the names of parameters usually mean."""


def _is_plain(default: Any) -> bool:
    return type(default) in (int, float, str, bytes, bool, type(None))


def hints_of(method: Callable[..., Any], cls: type) -> dict[str, Any]:
    """Return the resolved type hints of a method; an empty dictionary if they do not resolve."""
    try:
        names = {cls.__name__: cls, "Self": cls}
        hints = typing.get_type_hints(method, localns=names)
    except Exception:
        return {}
    return {name: cls if hint is typing.Self else hint for name, hint in hints.items()}


_TYPE_WORDS: dict[str, Any] = {
    "int": int,
    "integer": int,
    "str": str,
    "string": str,
    "float": float,
    "bool": bool,
    "boolean": bool,
    "bytes": bytes,
    "list": list[object],
    "tuple": tuple[int, int],
    "dict": dict[object, object],
    "set": set[object],
    "iterable": list[object],
    "sequence": list[object],
    "mapping": dict[object, object],
    "any": Any,
    "object": object,
}
_DOCUMENTED = (
    re.compile(r":type\s+(?P<name>\w+)\s*:\s*(?P<type>\w+)"),
    re.compile(r":param\s+(?P<type>\w+)\s+(?P<name>\w+)\s*:"),
    re.compile(r"^\s*(?P<name>\w+)\s*\((?P<type>\w+)[^)]*\)\s*:", re.MULTILINE),
    re.compile(r"^\s*(?P<name>\w+)\s+:\s+(?P<type>\w+)", re.MULTILINE),
)


def documented_types(method: Callable[..., Any]) -> dict[str, Any]:
    """Return the types of parameters that a docstring tells, in the usual styles.

    >>> def put(self, key, n): ":param str key: a name\\n:type n: int"
    >>> documented_types(put)
    {'n': <class 'int'>, 'key': <class 'str'>}
    """
    found: dict[str, Any] = {}
    for pattern in _DOCUMENTED:
        for match in pattern.finditer(method.__doc__ or ""):
            kind = _TYPE_WORDS.get(match["type"].lower())
            if kind is not None:
                found.setdefault(match["name"], kind)
    return found


@functools.lru_cache(maxsize=64)
def constants_of(cls: type) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return whole numbers and short texts that the source of a class mentions.

    >>> from textwrap import TextWrapper
    >>> 70 in constants_of(TextWrapper)[0], " [...]" in constants_of(TextWrapper)[1]
    (True, True)
    """
    numbers: dict[int, None] = {}
    texts: dict[str, None] = {}
    with contextlib.suppress(OSError, TypeError, SyntaxError, ValueError, RecursionError):
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
        documentation = _docstrings(tree)
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or node in documentation:
                continue
            value = node.value
            if type(value) is int and 9 < abs(value) <= _LARGEST_CONSTANT:
                numbers |= dict.fromkeys((value, value - 1, value + 1))
            elif type(value) is str and len(value) <= 8 and value.isprintable():
                texts[value] = None
    return tuple(numbers)[:_MOST_CONSTANTS], tuple(texts)[:_MOST_CONSTANTS]


def _docstrings(tree: ast.AST) -> set[ast.AST]:
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
