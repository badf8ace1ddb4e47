"""A machine from any class: its public methods are the actions, its type hints the generators.

So that the very first try needs no harness. What counts as a fault without one: any exception, but
for those that say "you called me wrongly" (`TOLERATED`), those that the class's own package
defines, and those that the user names.
"""

from __future__ import annotations

import builtins
import inspect
import itertools
import random
import types
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from swarmtest.errors import UserError, did_you_mean
from swarmtest.subjects.hints import generator_of_hint, hints_of
from swarmtest.subjects.machine import Machine, Pool, action

TOLERATED: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    LookupError,
    NotImplementedError,
    StopIteration,
)
"""Exceptions by which Python code refuses bad arguments or states."""

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Values by position and by name."""

_OPERATORS: dict[str, str] = {
    "__len__": "len({0})",
    "__contains__": "{1} in {0}",
    "__getitem__": "{0}[{1}]",
    "__setitem__": "{0}[{1}] = {2}",
    "__delitem__": "del {0}[{1}]",
    "__iter__": "for _ in zip(range(1000), {0}): pass",
    "__eq__": "{0} == {1}",
    "__call__": "{0}({1})",
}
"""Special methods that are part of a container's interface, and how a call of them is written."""


def api_machine(cls: type, raises: Sequence[str] = ()) -> type[Machine]:
    """A machine that calls the public methods of a class.

    >>> from collections import UserList
    >>> sorted(name for name in vars(api_machine(UserList)) if name.startswith("in"))
    ['index', 'insert']
    """
    tolerated = TOLERATED + _named_exceptions(cls, raises) + _own_exceptions(cls)
    arguments_of_new = _constructor_arguments(cls)
    members: dict[str, Any] = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": f"The public methods of {cls.__qualname__}.",
        "_swarmtest_api": (cls, arguments_of_new),
    }
    made = Pool()
    uses_pool = False
    for name, method in _public_methods(cls):
        arguments, refers = _arguments(cls, name, method, made)
        if arguments is None:
            continue
        uses_pool = uses_pool or refers
        members[name] = _action(name, arguments, _positional_only(method), tolerated)
    if uses_pool:
        members["objects"] = made
        new = _constructor_code(cls, arguments_of_new)
        members["new_object"] = _maker(made, tolerated, new)
    machine = types.new_class(cls.__name__, (ApiMachine,), {}, lambda ns: ns.update(members))
    if not any(hasattr(member, "_swarmtest_action") for member in members.values()):
        raise UserError(
            f"{cls.__module__}:{cls.__qualname__} has no public method whose arguments can be "
            "drawn: add type hints, or write a Machine"
        )
    return machine


class ApiMachine(Machine):
    """Base of derived machines: holds the object under test."""

    object: Any
    _swarmtest_api: tuple[type, Arguments]

    @classmethod
    def code_of_start(cls) -> tuple[str, str]:
        """The object under test itself: printed tests need no machine."""
        return "subject", cls.code_of_new()

    @classmethod
    def code_of_new(cls) -> str:
        """The code that makes an object of the class under test."""
        made, arguments = cls._swarmtest_api
        return _constructor_code(made, arguments)

    def new(self) -> Any:
        """An object of the class under test."""
        made, arguments = self._swarmtest_api
        return made(*arguments[0], **arguments[1])

    def start(self) -> None:
        """Make the object under test."""
        self.object = self.new()


def _public_methods(cls: type) -> list[tuple[str, Callable[..., Any]]]:
    found = []
    for name, member in inspect.getmembers_static(cls):
        if isinstance(member, staticmethod | classmethod | property):
            continue
        special = name in _OPERATORS and not hasattr(object, name)
        if callable(member) and (special or not name.startswith("_")):
            found.append((name, member))
    return found


def _arguments(
    cls: type, name: str, method: Callable[..., Any], made: Pool
) -> tuple[dict[str, Any] | None, bool]:
    """Generators for the parameters that need a value; None if one cannot be drawn."""
    try:
        parameters = list(inspect.signature(method).parameters.values())[1:]
    except (ValueError, TypeError):
        return None, False
    hints = hints_of(method, cls)
    arguments: dict[str, Any] = {}
    refers = False
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = hints.get(parameter.name, inspect.Parameter.empty)
        if hint is cls:
            arguments[parameter.name], refers = made, True
            continue
        generator = generator_of_hint(hint, parameter.default)
        if generator is None:
            if parameter.default is parameter.empty:
                return None, False
            continue
        arguments[parameter.name] = generator
    return arguments, refers


def _positional_only(method: Callable[..., Any]) -> frozenset[str]:
    parameters = inspect.signature(method).parameters.values()
    return frozenset(p.name for p in parameters if p.kind is p.POSITIONAL_ONLY)


def _action(
    name: str,
    arguments: dict[str, Any],
    unnamed: frozenset[str],
    tolerated: tuple[type[BaseException], ...],
) -> Callable[..., Any]:
    unnamed = unnamed | frozenset(arguments if name in _OPERATORS else ())

    def call(self: Any, **values: Any) -> None:
        if name == "__iter__":
            list(itertools.islice(self.object, 1000))
            return
        by_position = [value for key, value in values.items() if key in unnamed]
        by_name = {key: value for key, value in values.items() if key not in unnamed}
        getattr(self.object, name)(*by_position, **by_name)

    render = _renderer(name, ["" if key in unnamed else f"{key}=" for key in arguments])
    return _as_action(call, name, arguments, tolerated, render)


def _as_action(
    call: Callable[..., Any],
    name: str,
    arguments: dict[str, Any],
    tolerated: tuple[type[BaseException], ...],
    render: Callable[[str, Sequence[str]], str],
    into: Pool | None = None,
) -> Callable[..., Any]:
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY) for key in arguments]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = name
    options: dict[str, Any] = {"raises": tolerated, "into": into, "_render": render}
    return action(args=arguments, **options)(call)


def _renderer(name: str, labels: Sequence[str]) -> Callable[[str, Sequence[str]], str]:
    def render(subject: str, arguments: Sequence[str]) -> str:
        if name in _OPERATORS:
            return _OPERATORS[name].format(subject, *arguments)
        words = ", ".join(f"{p}{a}" for p, a in zip(labels, arguments, strict=True))
        return f"{subject}.{name}({words})"

    return render


def _maker(into: Pool, tolerated: tuple[type[BaseException], ...], new: str) -> Callable[..., Any]:
    def call(self: Any) -> Any:
        return self.new()

    def render(subject: str, arguments: Sequence[str]) -> str:
        return new

    return _as_action(call, "new_object", {}, tolerated, render, into)


def _constructor_code(cls: type, arguments: Arguments) -> str:
    by_position, by_name = arguments
    words = [*map(repr, by_position), *(f"{k}={v!r}" for k, v in by_name.items())]
    return f"{cls.__qualname__}({', '.join(words)})"


def _constructor_arguments(cls: type) -> Arguments:
    """Simple values for the constructor's required parameters, the same in every test."""
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except (ValueError, TypeError):
        return (), {}
    hints = hints_of(inspect.getattr_static(cls, "__init__"), cls)
    by_position: list[Any] = []
    by_name: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.default is not parameter.empty or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            continue
        hint = hints.get(parameter.name, inspect.Parameter.empty)
        generator = generator_of_hint(hint, inspect.Parameter.empty)
        if generator is None:
            raise UserError(
                f"{cls.__module__}:{cls.__qualname__} needs {parameter.name!r} to be made, and its "
                "type does not say what that could be: write a Machine whose start() makes it"
            )
        value = generator.draw(random.Random(0))
        if parameter.kind is parameter.KEYWORD_ONLY:
            by_name[parameter.name] = value
        else:
            by_position.append(value)
    return tuple(by_position), by_name


def _named_exceptions(cls: type, names: Sequence[str]) -> tuple[type[BaseException], ...]:
    module = inspect.getmodule(cls)
    found = []
    for name in names:
        error = getattr(module, name, None) or getattr(builtins, name, None)
        if not (inspect.isclass(error) and issubclass(error, BaseException)):
            known = [n for n, e in vars(builtins).items() if inspect.isclass(e)]
            raise UserError(f"--raises: no exception {name!r}{did_you_mean(name, known)}")
        found.append(error)
    return tuple(found)


def _own_exceptions(cls: type) -> tuple[type[BaseException], ...]:
    """Exceptions that the module of the class defines or imports from its own package."""
    package = cls.__module__.partition(".")[0]
    module = inspect.getmodule(cls)
    return tuple(
        member
        for member in vars(module).values()
        if inspect.isclass(member)
        and issubclass(member, Exception)
        and member.__module__.partition(".")[0] == package
        and package != "builtins"
    )
