"""Write a machine's test as Python code that runs on its own.

Arguments are data (see `values`), and are written as readable expressions from that data alone:
nothing is imported or created to print a test. An argument that is drawn again is written as a call
that draws it.

A test may come from somebody else, and `reproduce` and `suite` run what is written here. So data
becomes literals, names that are identifiers and numbers, and nothing else; and where the subject is
loaded, an argument is written only if the test could run with it.
"""

from __future__ import annotations

import base64
import builtins
import dataclasses
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.core.trust import is_trusted
from swarmtest.subjects.machine.compiled import invariants_of
from swarmtest.subjects.machine.event_loop import is_awaited
from swarmtest.subjects.machine.machine import Action, Machine
from swarmtest.subjects.machine.test import MachineTest, Step, used_labels
from swarmtest.subjects.machine.values import find, from_json, may_be_named, to_json

_REDRAW = "swarmtest.subjects.machine.redraw"
NOT_SHOWN = "<not shown: needs --trust>"
"""Stands for a pickle of an earlier version."""
_CALLS = {
    "$float": "float({!r})",
    "$decimal": "Decimal({!r})",
    "$fraction": "Fraction({!r})",
    "$uuid": "UUID({!r})",
    "$zone": "ZoneInfo({!r})",
    "$date": "date.fromisoformat({!r})",
}
_PATHS = {"PosixPath": "Path", "WindowsPath": "Path"} | {
    name: name for name in ("PurePosixPath", "PureWindowsPath")
}
_IMPORTS = {
    "$decimal": "from decimal import Decimal",
    "$fraction": "from fractions import Fraction",
    "$uuid": "from uuid import UUID",
    "$zone": "from zoneinfo import ZoneInfo",
    "$date": "from datetime import date",
    "$datetime": "from datetime import datetime",
    "$time": "from datetime import time",
    "$timedelta": "from datetime import timedelta",
    "$timezone": "from datetime import timezone",
    "$deque": "from collections import deque",
    "$ordered": "from collections import OrderedDict",
    "$counter": "from collections import Counter",
    "$defaultdict": "from collections import defaultdict",
    "$pattern": "import re",
    "$numpy": "import numpy",
    "$array": "import numpy",
}


class ArgumentWriter:
    """Writes the arguments of a saved test as expressions, and collects the imports they need.

    >>> writer = ArgumentWriter()
    >>> writer.code({"$tuple": [1, {"$float": "nan"}]}), writer.code({"$ref": 3})
    ("(1, float('nan'))", 'v3')
    >>> writer.code({"$slice": [None, None, -1]})
    'slice(None, None, -1)'
    """

    def __init__(self) -> None:
        self.imports: set[str] = set()
        """Lines like ``from shop import Colour``."""

    def code(self, argument: Any) -> str:
        """Return the expression for an argument in the form that `values.to_json` writes."""
        if isinstance(argument, list):
            return f"[{self._items(argument)}]"
        if not isinstance(argument, dict):
            return repr(argument)
        tag = next(iter(argument), "")
        if not tag.startswith("$"):
            return "{" + ", ".join(f"{k!r}: {self.code(v)}" for k, v in argument.items()) + "}"
        if tag in _IMPORTS:
            self.imports.add(_IMPORTS[tag])
        if tag in _CALLS:
            return _CALLS[tag].format(argument[tag])
        writer = _WRITERS.get(tag)
        if writer is None:
            return f"...  # this argument could not be saved: {_shortened(argument)}\n"
        try:
            return writer(self, argument[tag], argument)
        except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
            raise UserError(f"a saved test has a broken argument, {tag}: {error}") from None

    def name(self, thing: Any) -> str:
        """Return the qualified name of a class or function, and import its outermost part."""
        module, qualname = thing.__module__, thing.__qualname__
        if module != "builtins":
            self.imports.add(_import_line(module, qualname.partition(".")[0]))
        return str(qualname)

    def named(self, name: str) -> str:
        """Return the code for ``module:qualname``, and import the outermost part of the name."""
        module, _, qualname = name.partition(":")
        outermost = qualname.partition(".")[0]
        if not all(map(str.isidentifier, qualname.split("."))) or not may_be_named(
            module, qualname
        ):
            raise UserError(f"a saved test may not use {name!r}")
        if module != "builtins":
            self.imports.add(_import_line(module, outermost))
        return qualname

    def _items(self, items: Iterable[Any]) -> str:
        return ", ".join(map(self.code, items))

    def _pairs(self, pairs: Iterable[Any]) -> str:
        return "{" + ", ".join(f"{self.code(k)}: {self.code(v)}" for k, v in pairs) + "}"

    def _tuple(self, items: list[Any], data: Any) -> str:
        return f"({self._items(items)}{',' if len(items) == 1 else ''})"

    def _set(self, items: list[Any], data: Any) -> str:
        return f"{{{self._items(items)}}}" if items else "set()"

    def _datetime(self, body: Any, data: dict[str, Any]) -> str:
        cls = "datetime" if "$datetime" in data else "time"
        words = [f"tzinfo={self.code(data['zone'])}"] if "zone" in data else []
        words += [f"fold={data['fold']!r}"] if "fold" in data else []
        changed = f".replace({', '.join(words)})" if words else ""
        return f"{cls}.fromisoformat({body!r}){changed}"

    def _timezone(self, body: Any, data: dict[str, Any]) -> str:
        name = f", {data['name']!r}" if "name" in data else ""
        return f"timezone({self.code(body)}{name})"

    def _deque(self, body: Any, data: dict[str, Any]) -> str:
        limit = "" if data.get("maxlen") is None else f", maxlen={data['maxlen']!r}"
        return f"deque({self.code(body)}{limit})"

    def _path(self, body: Any, data: Any) -> str:
        if body[0] not in _PATHS:
            raise UserError(f"a saved test has a path of an unknown kind, {body[0]!r}")
        cls = _PATHS[body[0]]
        self.imports.add(f"from pathlib import {cls}")
        return f"{cls}({body[1]!r})"

    def _enum(self, body: Any, data: dict[str, Any]) -> str:
        cls = self.named(body)
        if "name" not in data:
            return f"{cls}({self.code(data['value'])})"
        name = str(data["name"])
        return f"{cls}.{name}" if name.isidentifier() else f"{cls}[{name!r}]"

    def _dataclass(self, body: Any, data: dict[str, Any]) -> str:
        fields = {k: v for k, v in data["fields"].items() if k not in _computed_fields(body)}
        if not all(map(str.isidentifier, fields)):
            raise UserError(f"a saved test has {body} with fields that are no names")
        words = ", ".join(f"{name}={self.code(item)}" for name, item in fields.items())
        return f"{self.named(body)}({words})"

    def _namedtuple(self, body: Any, data: dict[str, Any]) -> str:
        return f"{self.named(body)}({self._items(data['items'])})"

    def _array(self, body: Any, data: dict[str, Any]) -> str:
        flat = f"numpy.array({self.code(data['items'])}, {body!r})"
        shape = [int(length) for length in data["shape"]]
        return flat if len(shape) == 1 else f"{flat}.reshape({shape})"

    def _numpy(self, body: Any, data: dict[str, Any]) -> str:
        return f"numpy.dtype({body!r}).type({self.code(data['value'])})"

    def _pickle(self, body: Any, data: Any) -> str:
        if not is_trusted():
            return NOT_SHOWN
        again = to_json(from_json(data))
        if not (isinstance(again, dict) and "$lost" in again):
            return self.code(again)
        self.imports |= {"import base64", "import pickle"}
        return f"pickle.loads(base64.b64decode({body!r}))"


_WRITERS: dict[str, Callable[[ArgumentWriter, Any, dict[str, Any]], str]] = {
    "$ref": lambda writer, body, data: f"v{int(body)}",
    "$bytes": lambda writer, body, data: repr(base64.b64decode(body)),
    "$bytearray": lambda writer, body, data: f"bytearray({base64.b64decode(body)!r})",
    "$tuple": ArgumentWriter._tuple,
    "$set": ArgumentWriter._set,
    "$frozenset": lambda writer, body, data: f"frozenset([{writer._items(body)}])",
    "$dict": lambda writer, body, data: writer._pairs(body),
    "$slice": lambda writer, body, data: f"slice({writer._items(body)})",
    "$range": lambda writer, body, data: f"range({writer._items(body)})",
    "$complex": lambda writer, body, data: f"complex({writer._items(body)})",
    "$ellipsis": lambda writer, body, data: "...",
    "$datetime": ArgumentWriter._datetime,
    "$time": ArgumentWriter._datetime,
    "$timedelta": lambda writer, body, data: f"timedelta({writer._items(body)})",
    "$timezone": ArgumentWriter._timezone,
    "$deque": ArgumentWriter._deque,
    "$ordered": lambda writer, body, data: f"OrderedDict({writer._pairs(body)})",
    "$counter": lambda writer, body, data: f"Counter({writer._pairs(body)})",
    "$defaultdict": lambda writer, body, data: (
        f"defaultdict({writer.code(data['factory'])}, {writer._pairs(body)})"
    ),
    "$pattern": lambda writer, body, data: f"re.compile({writer.code(body)}, {data['flags']!r})",
    "$path": ArgumentWriter._path,
    "$enum": ArgumentWriter._enum,
    "$dataclass": ArgumentWriter._dataclass,
    "$namedtuple": ArgumentWriter._namedtuple,
    "$name": lambda writer, body, data: writer.named(body),
    "$numpy": ArgumentWriter._numpy,
    "$array": ArgumentWriter._array,
    "$pickle": ArgumentWriter._pickle,
}


def _computed_fields(name: str) -> set[str]:
    """Return the fields of a dataclass that its constructor does not take, if it is loaded."""
    try:
        return {field.name for field in dataclasses.fields(find(name)) if not field.init}
    except (UserError, TypeError):
        return set()


def _shortened(argument: dict[str, Any]) -> str:
    shown = argument.get("repr", argument.get("$lost", "an object"))
    return " ".join(str(shown).split())[:60]


def code_of(
    cls: type[Machine], test: MachineTest, actions: Mapping[str, Action], *, after_step: str = ""
) -> str:
    """Return a program that does what the test does, without generators, guards or the engine.

    `after_step` is code to write where a campaign checks the invariants: after the start and after
    every step. Without it, the invariants are checked at the end.
    """
    steps = [step for step in test.steps if step.action in actions]
    writer = ArgumentWriter()
    name, constructor = cls.code_of_start()
    outermost = cls.__qualname__.partition(".")[0]
    writer.imports |= {_import_line(cls.__module__, outermost), *cls.imports_of_start}
    body = [f"{name} = {constructor}"]
    if test.settings:
        body.append(f"{name}.settings = {dict(test.settings)!r}")
    if name == "machine" and cls.start is not Machine.start:
        body.append(_call(cls, "start", "machine.start()"))
    labels = used_labels(steps)
    checks = [after_step] if after_step else []
    body += checks
    for step in steps:
        arguments = _Arguments(cls, test, step, writer)
        body += [*_step_lines(name, step, actions[step.action], labels, arguments), *checks]
    if not checks:
        body += [
            f"assert {_call(cls, invariant, f'{name}.{invariant}()')} is not False"
            for invariant in invariants_of(cls)
        ]
    if cls.stop is not Machine.stop and name == "machine":
        body.append(_call(cls, "stop", f"{name}.stop()"))
    if cls._in_loop:
        writer.imports.add("import asyncio")
        inside = [f"    {line}" for line in "\n".join(body).splitlines()]
        body = ["", "async def main():", *inside, "", "", "asyncio.run(main())"]
    return "\n".join([*_import_lines(writer.imports), "", *body]) + "\n"


def _call(machine: type[Machine], method: str, call: str) -> str:
    """Return the code of a call of a machine's method, with `await` if it needs it."""
    return f"await {call}" if is_awaited(getattr(machine, method, None)) else call


def _import_line(module: str, name: str) -> str:
    """Return the code that imports a name; a file whose name is no identifier needs `importlib`."""
    if all(part.isidentifier() for part in module.split(".")):
        return f"from {module} import {name}"
    return f"import importlib; {name} = importlib.import_module({module!r}).{name}"


def _import_lines(imports: Iterable[str]) -> list[str]:
    """Return sorted import lines, one per module; a script is imported by the name of its file."""
    plain = sorted(line for line in imports if line.startswith("import "))
    names: dict[str, set[str]] = {}
    for line in imports:
        if line.startswith("from "):
            _, module, _, name = line.split(" ")
            if module == "__main__":
                module = Path(getattr(sys.modules[module], "__file__", None) or module).stem
            names.setdefault(module, set()).add(name)
    return [*plain, *(f"from {m} import {', '.join(sorted(n))}" for m, n in sorted(names.items()))]


@dataclasses.dataclass(frozen=True)
class _Arguments:
    """The arguments of one step as code, with those that are drawn again."""

    machine: type[Machine]
    test: MachineTest
    step: Step
    writer: ArgumentWriter

    def codes(self) -> list[str]:
        return [self._code(position, data) for position, data in enumerate(self.step.arguments)]

    def _code(self, position: int, data: Any) -> str:
        tag = next(iter(data), "") if isinstance(data, dict) else ""
        if tag not in ("$option", "$drawn"):
            try:
                # Only what the test could run with: a call of `os.system` is no argument.
                if not {"$lost", "$pickle"}.intersection([tag]):
                    from_json(data)
                return self.writer.code(data)
            except UserError as error:
                return f"...  # {_shortened({'repr': error})}\n"
        words = f"{self.machine.__qualname__}, {self.step.action!r}, {position}"
        if tag == "$option":
            self.writer.imports.add(f"from {_REDRAW} import option_argument")
            return f"option_argument({words}, {data[tag]!r})"
        self.writer.imports.add(f"from {_REDRAW} import drawn_argument")
        return f"drawn_argument({words}, {dict(self.test.origin)!r}, {data[tag][0]!r})"


def _step_lines(
    name: str, step: Step, action: Action, labels: set[int], written: _Arguments
) -> list[str]:
    arguments = written.codes()
    writer = written.writer
    if action.render is not None:
        call = action.render(name, arguments)
    else:
        words = [
            code if at < action.positional else f"{key}={code}"
            for at, (key, code) in enumerate(zip(action.arguments, arguments, strict=False))
        ]
        call = f"{name}.{action.name}({', '.join(words)})"
    call = _call(written.machine, action.name, call)
    if step.label in labels:
        call = f"v{step.label} = {call}"
    if not step.raised:
        return [call]
    writer.imports.add("from contextlib import suppress")
    errors = ", ".join(map(writer.name, _suppressed(step, action)))
    lines = [f"with suppress({errors}):", f"    {call}"]
    return [*lines, *_restart(name, written.machine, step, action)]


def _restart(name: str, machine: type[Machine], step: Step, action: Action) -> list[str]:
    """Return the code with which a test goes on after a fault that was tolerated."""
    expected = any(error.__qualname__ == step.raised for error in action.raises)
    if expected or name != "machine" or not machine.tolerate or machine.tolerate_and != "restart":
        return []
    stop, start = (_call(machine, each, f"{name}.{each}()") for each in ("stop", "start"))
    return [f"{stop}; {start}"]


def _suppressed(step: Step, action: Action) -> tuple[type[BaseException], ...]:
    """Return the exception that the step raised, if its name says which it is.

    Otherwise return all that the action names, or, for a fault that was tolerated, any.
    """
    exact = tuple(error for error in action.raises if error.__qualname__ == step.raised)
    if exact:
        return exact
    known = getattr(builtins, step.raised, None)
    if isinstance(known, type) and issubclass(known, BaseException):
        return (known,)
    stands_for_others = any(hasattr(error, "stands_for_others") for error in action.raises)
    return (Exception,) if stands_for_others or not action.raises else action.raises
