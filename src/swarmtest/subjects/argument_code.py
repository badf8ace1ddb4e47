"""Arguments of a saved test as Python expressions, with the imports that they need.

What has a readable expression gets it: numbers, text, containers, enum members, dataclasses, named
tuples, classes and functions. Anything else is written as a pickle: not readable, but it runs.
"""

from __future__ import annotations

import base64
import dataclasses
import enum
import inspect
from typing import Any

from swarmtest.subjects.values import from_json, to_json

_CONTAINERS = {"$tuple": "({})", "$set": "{{{}}}", "$frozenset": "frozenset([{}])"}


class ArgumentWriter:
    """Writes arguments, and remembers what has to be imported.

    >>> writer = ArgumentWriter()
    >>> writer.code({"$tuple": [1, {"$float": "nan"}]}), writer.code({"$ref": 3})
    ("(1, float('nan'))", 'v3')
    """

    def __init__(self) -> None:
        self.imports: set[str] = set()
        """Lines like ``from shop import Colour``."""

    def code(self, argument: Any) -> str:
        """The expression of an argument as `values.to_json` wrote it."""
        if isinstance(argument, list):
            return f"[{', '.join(map(self.code, argument))}]"
        if not isinstance(argument, dict):
            return repr(argument)
        tag = next(iter(argument), "")
        if not tag.startswith("$"):
            return "{" + ", ".join(f"{k!r}: {self.code(v)}" for k, v in argument.items()) + "}"
        return self._tagged(tag, argument[tag])

    def name(self, thing: Any) -> str:
        """The name of a class or function; its outermost part is imported."""
        outer = thing.__qualname__.partition(".")[0]
        if thing.__module__ != "builtins":
            self.imports.add(f"from {thing.__module__} import {outer}")
        qualname: str = thing.__qualname__
        return qualname

    def _tagged(self, tag: str, body: Any) -> str:
        if tag == "$ref":
            return f"v{body}"
        if tag == "$float":
            return f"float({body!r})"
        if tag == "$bytes":
            return repr(base64.b64decode(body))
        if tag == "$dict":
            return "{" + ", ".join(f"{self.code(k)}: {self.code(v)}" for k, v in body) + "}"
        if tag in _CONTAINERS:
            return self._container(tag, body)
        if tag == "$lost":
            return f"...  # this argument could not be saved: {' '.join(body.split())[:60]}\n"
        return self._object(from_json({tag: body}), body)

    def _container(self, tag: str, body: list[Any]) -> str:
        items = ", ".join(map(self.code, body))
        if tag == "$tuple" and len(body) == 1:
            items += ","
        if tag == "$set" and not body:
            return "set()"
        return _CONTAINERS[tag].format(items)

    def _object(self, value: Any, pickled: str) -> str:
        cls = type(value)
        if isinstance(value, enum.Enum) and value.name in cls.__members__:
            return f"{self.name(cls)}.{value.name}"
        if inspect.isclass(value) or inspect.isfunction(value):
            return self.name(value)
        if dataclasses.is_dataclass(value) and all(f.init for f in dataclasses.fields(value)):
            fields = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
            words = [f"{name}={self.code(to_json(item))}" for name, item in fields]
            return f"{self.name(cls)}({', '.join(words)})"
        if isinstance(value, tuple) and hasattr(cls, "_fields"):
            return f"{self.name(cls)}({', '.join(self.code(to_json(item)) for item in value)})"
        self.imports |= {"import base64", "import pickle"}
        return f"pickle.loads(base64.b64decode({pickled!r}))"
