"""Write the machine that `--api` derives from a class as a file, for people to edit."""

from __future__ import annotations

import enum
import inspect
import typing
from collections.abc import Callable, Mapping, MutableSequence, MutableSet
from textwrap import wrap
from typing import Any

from swarmtest.core.errors import UserError
from swarmtest.subjects.api import ApiMachine, api_machine, public_methods
from swarmtest.subjects.api_arguments import EMPTY, ArgumentSources, documented_types, hints_of
from swarmtest.subjects.api_trial_calls import trial_calls
from swarmtest.subjects.machine.subject import MachineSubject
from swarmtest.subjects.oracles.metamorphic import checks_of

_PLAIN = {
    int: "integers(-1, 9)",
    float: "floats(-10.0, 10.0)",
    str: "text(max_size=4)",
    bytes: "binary(max_size=4)",
    bool: "booleans()",
    type(None): "just(None)",
}
_GENERATORS = ("binary", "booleans", "floats", "integers", "just", "lists", "sampled_from", "text")
_REFUSALS = "raises=(ValueError, TypeError, LookupError)"


def machine_source(cls: type, module: str) -> str:
    """Return a Python file with a machine for a class of a module.

    >>> from collections import UserList
    >>> text = machine_source(UserList, "collections")
    >>> "class UserListMachine(Machine):" in text, 'like = "list"' in text
    (True, True)
    """
    derived = api_machine(cls)
    assert issubclass(derived, ApiMachine)
    calls = trial_calls(MachineSubject(derived))
    body: list[str] = []
    left_out = list(derived.left_out)
    for name, method in public_methods(cls):
        lines = None if name.startswith("_") else _method_lines(cls, name, method, calls)
        if lines is not None:
            body += ["", *lines]
        elif not name.startswith("_") and name not in left_out:
            left_out.append(name)
    if not body:
        raise UserError(f"{module}:{cls.__qualname__} has no public method with a signature")
    new = derived.code_of_new()
    used = [name for name in _GENERATORS if any(f"{name}(" in line for line in body)]
    model = _model_of(cls)
    names = sorted(["Machine", "action", "with_checks", *used, *(["Compared"] if model else [])])
    head = [
        f'"""A machine for {module}:{cls.__qualname__}, to be edited.',
        "",
        f"swarmtest run THIS_FILE.py::{cls.__name__}Machine",
        '"""',
        "",
        f"from {module} import {cls.__qualname__.partition('.')[0]}",
        "",
        f"from swarmtest import {', '.join(names)}",
    ]
    if model:
        head += [
            "",
            "",
            f"class {cls.__name__}Test(Compared):",
            f'    """Behaves like {model}, but for the differences that you declare."""',
            "",
            f"    tested = {_factory(cls, new)}",
            f'    like = "{model}"',
            '    # without = "names of operations to leave out"',
            '    # raises = {"pop": LookupError}',
            '    # differences = {"pop": "what is documented to differ"}',
        ]
    checks = [name.removeprefix("check_") for name in checks_of(new_object(derived))]
    head += [
        "",
        "",
        *wrap(
            f"Checks: {', '.join(checks)}. Leave some out with without=...",
            initial_indent="# ",
            subsequent_indent="# ",
            width=88,
        ),
        f'@with_checks("object", {_factory(cls, new)})',
        f"class {cls.__name__}Machine(Machine):",
        "    steps = (20, 80)",
        "",
        "    def start(self):",
        f"        self.object = {new}",
    ]
    if left_out:
        body += [
            "",
            f"    # Left out, because their arguments are not known: {', '.join(left_out)}",
        ]
    body += [
        "",
        "    # @invariant",
        "    # def what_always_holds(self):",
        "    #     assert ...",
    ]
    return "\n".join([*head, *body]) + "\n"


def new_object(machine: type[ApiMachine]) -> Any:
    """Return an object of the class that a machine was derived from.

    >>> new_object(api_machine(list))
    []
    """
    return machine().new()


def _factory(cls: type, new: str) -> str:
    return cls.__qualname__ if new == f"{cls.__qualname__}()" else f"lambda: {new}"


def _model_of(cls: type) -> str:
    """Return the ready model that a class seems to behave like; empty if there is none."""
    if issubclass(cls, Mapping):
        return "dict"
    if issubclass(cls, MutableSequence):
        return "list"
    if issubclass(cls, MutableSet):
        return "set"
    if hasattr(cls, "read") and hasattr(cls, "seek"):
        return "file"
    return ""


def _method_lines(
    cls: type, name: str, method: Callable[..., Any], calls: Mapping[str, tuple[int, int]]
) -> list[str] | None:
    """Return the code of one action; None if its arguments are not known."""
    sources = ArgumentSources(cls)
    try:
        if sources.of_method(method) is None:
            return None
        parameters = list(inspect.signature(method).parameters.values())[1:]
    except (ValueError, TypeError):
        return None
    hints, documented = hints_of(method, cls), documented_types(method)
    options, names, passed = [], ["self"], []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = hints.get(parameter.name, documented.get(parameter.name, EMPTY))
        code = _generator_code(cls, hint, parameter.default)
        if hint is EMPTY and parameter.name in ("other", "others", "iterable", "values", "items"):
            code = "lists(integers(0, 9))"
        if code is None:
            if parameter.default is EMPTY:
                return None
            continue
        names.append(parameter.name)
        options.append(f'"{parameter.name}": {code}')
        by_name = parameter.kind is parameter.KEYWORD_ONLY
        passed.append(f"{parameter.name}={parameter.name}" if by_name else parameter.name)
    accepted, of = calls.get(name, (0, 0))
    arguments = f"args={{{', '.join(options)}}}, " if options else ""
    # A method of the class may have the name of a method of the machine.
    own = f"{name}_" if hasattr(ApiMachine, name) else name
    counted = [f"    # {of - accepted} of {of} calls were rejected"] if of > accepted else []
    prefix, awaited = ("async ", "await ") if inspect.iscoroutinefunction(method) else ("", "")
    return [
        *counted,
        f"    @action({arguments}{_REFUSALS})",
        f"    {prefix}def {own}({', '.join(names)}):",
        f"        return {awaited}self.object.{name}({', '.join(passed)})",
    ]


def _generator_code(cls: type, hint: Any, default: Any) -> str | None:
    """Return the code of a generator for a parameter; None if its type is not known."""
    if hint is cls:
        return f"lambda rng: {cls.__qualname__}()"
    if hint is EMPTY and default not in (EMPTY, None):
        hint = type(default)
    if hint is EMPTY or hint is Any or isinstance(hint, typing.TypeVar) or hint is object:
        return "integers(0, 9)"
    try:
        if hint in _PLAIN:
            return _PLAIN[hint]
    except TypeError:
        return None
    if inspect.isclass(hint) and issubclass(hint, enum.Enum):
        return None  # its module is not imported
    origin, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is typing.Literal:
        return f"sampled_from({list(arguments)!r})"
    if getattr(origin, "__name__", "") in ("list", "Sequence", "Iterable", "Collection"):
        element = _generator_code(cls, arguments[0] if arguments else Any, EMPTY)
        return f"lists({element})" if element else None
    known = [code for each in arguments if (code := _generator_code(cls, each, EMPTY))]
    return known[0] if known and getattr(origin, "__name__", "") in ("Union", "UnionType") else None
