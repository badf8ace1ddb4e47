"""Note the arguments of a package's methods, in a process that runs its tests.

A copy of this file is put into the process as `sitecustomize`, which Python imports when it starts.
So it uses the standard library only, and does nothing else when it is imported. Values are kept if
they can be written as a literal: numbers, texts, bytes, and small containers of them.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

PACKAGE, PLACE = "SWARMTEST_LEARN_PACKAGE", "SWARMTEST_LEARN_PLACE"
"""Environment variables: the package, and the directory into which each process writes."""
COMPLETE = ".json"
"""How the name of a file ends when all of it is written."""
MOST_VALUES = 30
_LONGEST = 200
_MOST_ITEMS = 20
_DEPTH = 3
_PLAIN = (int, float, str, bytes, bool, type(None))


class Recorder:
    """The values of the arguments of a package's methods, by method and parameter.

    >>> recorder = Recorder("shop")
    >>> recorder.note("shop:Cart.add", "n", 3); recorder.note("shop:Cart.add", "n", object())
    >>> recorder.values
    {'shop:Cart.add': {'n': {'3': None}}}
    """

    def __init__(self, package: str) -> None:
        self.values: dict[str, dict[str, dict[str, None]]] = {}
        self._package = package
        self._known: dict[CodeType, tuple[str, tuple[str, ...]] | None] = {}

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        """Note the arguments of a call; a function for `sys.setprofile`."""
        if event != "call":
            return
        code = frame.f_code
        if code not in self._known:
            self._known[code] = self._described(code, frame.f_globals.get("__name__"))
        described = self._known[code]
        if described is not None:
            method, parameters = described
            values = frame.f_locals
            for parameter in parameters:
                self.note(method, parameter, values.get(parameter))

    def note(self, method: str, parameter: str, value: Any) -> None:
        """Keep a value, if it can be written as a literal and there are not too many."""
        kept = self.values.setdefault(method, {}).setdefault(parameter, {})
        if len(kept) < MOST_VALUES and is_literal(value, _DEPTH):
            text = repr(value)
            if len(text) <= _LONGEST:
                kept[text] = None

    def _described(self, code: CodeType, module: object) -> tuple[str, tuple[str, ...]] | None:
        """Return the name and the parameters of a method; None if it is not one of the package."""
        name = str(module)
        inside = name == self._package or name.startswith(f"{self._package}.")
        qualname = getattr(code, "co_qualname", code.co_name)
        count = code.co_argcount + code.co_kwonlyargcount
        parameters = code.co_varnames[:count]
        if not inside or "." not in qualname or "<" in qualname or parameters[:1] != ("self",):
            return None
        return f"{name}:{qualname}", parameters[1:]

    def write_or_say(self, place: str) -> None:
        """Write what was noted, or one line on standard error that says why it is lost."""
        try:
            self.write(place)
        except OSError as error:
            print(f"swarmtest learn: values were lost: {error.strerror}", file=sys.stderr)

    def write(self, place: str) -> None:
        """Write what was noted into a directory, in a file of this process."""
        path = os.path.join(place, str(os.getpid()))
        with open(path, "w", encoding="utf-8") as out:
            json.dump(
                {
                    method: {parameter: list(kept) for parameter, kept in parameters.items()}
                    for method, parameters in self.values.items()
                },
                out,
            )
        os.rename(path, path + COMPLETE)


def is_literal(value: Any, depth: int) -> bool:
    """Return whether a value can be written as a literal and read back.

    >>> is_literal([1, {"a": (None, b"")}], 3), is_literal(float("nan"), 3), is_literal(open, 3)
    (True, False, False)
    """
    kind = type(value)
    if kind in _PLAIN:
        return kind is not float or value - value == 0
    if depth == 0 or kind not in (list, tuple, dict, set) or len(value) > _MOST_ITEMS:
        return False
    if kind is dict:
        value = [*value.keys(), *value.values()]
    elif kind is set and not value:
        return False  # has no literal
    return all(is_literal(item, depth - 1) for item in value)


def install(package: str, place: str) -> None:
    """Record from now on, and write when the process ends."""
    recorder = Recorder(package)
    atexit.register(recorder.write_or_say, place)
    threading.setprofile(recorder.profile)
    sys.setprofile(recorder.profile)


if __name__ == "sitecustomize" and PACKAGE in os.environ:
    install(os.environ[PACKAGE], os.environ[PLACE])
