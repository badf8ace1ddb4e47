"""Derive a machine from any class: public methods become actions, type hints become generators.

With it a user can test a class without writing a harness. Every exception is a fault, except
those that say "you called me wrongly" (`TOLERATED`), those that the class's own module defines or
imports, and those that the user names.
"""

from __future__ import annotations

import builtins
import enum
import inspect
import itertools
import random
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import message_of
from swarmtest.languages.user_objects import load_object
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
from swarmtest.subjects.machine.machine import Machine, Pool, action

TOLERATED: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    LookupError,
    NotImplementedError,
    StopIteration,
)
"""Exceptions with which Python code refuses bad arguments or states."""

_ANYTHING = "anything"
"""The key of the arguments of a method that has no signature."""
Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional arguments and keyword arguments."""

_OPERATORS: dict[str, str] = {
    "__len__": "len({0})",
    "__contains__": "{1} in {0}",
    "__getitem__": "{0}[{1}]",
    "__setitem__": "{0}[{1}] = {2}",
    "__delitem__": "del {0}[{1}]",
    "__iter__": "for _ in zip(range(1000), {0}): pass",
}
"""The special methods that are called, those of containers, and how to write a call of each."""


def api_machine(cls: type, raises: Sequence[str] = ()) -> type[Machine]:
    """Return a machine that calls the public methods of a class.

    `raises` names more exceptions that are a correct outcome of a call.

    >>> from collections import UserList
    >>> sorted(name for name in vars(api_machine(UserList)) if name.startswith("in"))
    ['index', 'insert']
    """
    tolerated = TOLERATED + _named_exceptions(cls, raises) + _own_exceptions(cls)
    constructor_arguments = _constructor_arguments(cls)
    members: dict[str, Any] = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": f"The public methods of {cls.__qualname__}.",
        "_swarmtest_api": (cls, constructor_arguments),
    }
    instances = Pool()
    left_out = []
    for name, method in _public_methods(cls):
        arguments = _arguments(cls, method, instances)
        if arguments is None:
            left_out.append(name)
            continue
        # A method must not replace a method of the machine that has the same name.
        attribute = f"{name}_" if hasattr(ApiMachine, name) else name
        members[attribute] = _action(name, arguments, _positional_only(method), tolerated)
        members[attribute].__name__ = attribute
        if instances in arguments.values():
            members["objects"] = instances
    if not any(hasattr(member, "_swarmtest_action") for member in members.values()):
        if any(inspect.iscoroutinefunction(getattr(cls, name)) for name in left_out):
            raise UserError(
                f"{cls.__module__}:{cls.__qualname__} has only async methods that can be called: "
                "write a Machine whose actions call asyncio.run(...)"
            )
        raise UserError(
            f"{cls.__module__}:{cls.__qualname__} has no public method whose arguments can be "
            "drawn: add type hints, or write a Machine"
        )
    if "objects" in members:
        new = _constructor_code(cls, constructor_arguments)
        members["new_object"] = _new_object_action(instances, tolerated, new)
    members["left_out"] = tuple(left_out)
    _try_constructor(cls, constructor_arguments)
    return types.new_class(cls.__name__, (ApiMachine,), {}, lambda ns: ns.update(members))


def _try_constructor(cls: type, arguments: Arguments) -> None:
    try:
        cls(*arguments[0], **arguments[1])
    except Exception as error:
        raise UserError(
            f"cannot create {_constructor_code(cls, arguments)}: {message_of(error)}; "
            "write a Machine whose start() creates it"
        ) from None


class ApiMachine(Machine):
    """Base class of derived machines. An instance holds the object under test."""

    object: Any
    left_out: ClassVar[tuple[str, ...]] = ()
    """Public methods whose arguments cannot be drawn from their type hints."""
    _swarmtest_api: tuple[type, Arguments]

    @classmethod
    def code_of_start(cls) -> tuple[str, str]:
        """Return the name and code of the object under test: printed tests need no machine."""
        return "subject", cls.code_of_new()

    @classmethod
    def code_of_new(cls) -> str:
        """Return the code that creates an object of the class under test."""
        tested, arguments = cls._swarmtest_api
        return _constructor_code(tested, arguments)

    def new(self) -> Any:
        """Create an object of the class under test."""
        tested, arguments = self._swarmtest_api
        return tested(*arguments[0], **arguments[1])

    def start(self) -> None:
        """Create the object under test."""
        self.object = self.new()


def _public_methods(cls: type) -> list[tuple[str, Callable[..., Any]]]:
    methods = []
    for name, member in inspect.getmembers_static(cls):
        if isinstance(member, staticmethod | classmethod | property):
            continue
        if callable(member) and (name in _OPERATORS or not name.startswith("_")):
            methods.append((name, member))
    return methods


def _arguments(cls: type, method: Callable[..., Any], instances: Pool) -> dict[str, Any] | None:
    """Return generators for a method's parameters; None if a required value cannot be drawn.

    Parameters that take the class itself draw from the pool `instances`.
    """
    if inspect.iscoroutinefunction(method):
        return None
    try:
        parameters = list(inspect.signature(method).parameters.values())[1:]
    except (ValueError, TypeError):
        # Many methods written in C have no signature: try up to two small numbers.
        return {_ANYTHING: lists(integers(0, 9), max_size=2)}
    hints = hints_of(method, cls)
    arguments: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        hint = hints.get(parameter.name, inspect.Parameter.empty)
        generator = instances if hint is cls else generator_of_hint(hint, parameter.default)
        if generator is not None:
            arguments[parameter.name] = generator
        elif parameter.default is parameter.empty:
            return None
    return arguments


def _positional_only(method: Callable[..., Any]) -> frozenset[str]:
    try:
        parameters = inspect.signature(method).parameters.values()
    except (ValueError, TypeError):
        return frozenset()
    return frozenset(p.name for p in parameters if p.kind is p.POSITIONAL_ONLY)


def _action(
    name: str,
    arguments: dict[str, Any],
    positional: frozenset[str],
    tolerated: tuple[type[BaseException], ...],
) -> Callable[..., Any]:
    positional = positional | frozenset(arguments if name in _OPERATORS else ())

    def call(self: Any, **values: Any) -> None:
        if name == "__iter__":
            list(itertools.islice(self.object, 1000))
            return
        if _ANYTHING in values:
            getattr(self.object, name)(*values[_ANYTHING])
            return
        by_position = [value for key, value in values.items() if key in positional]
        by_name = {key: value for key, value in values.items() if key not in positional}
        getattr(self.object, name)(*by_position, **by_name)

    labels = {_ANYTHING: "*"} | dict.fromkeys(positional, "")
    render = _renderer(name, [labels.get(key, f"{key}=") for key in arguments])
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


def _new_object_action(
    into: Pool, tolerated: tuple[type[BaseException], ...], new: str
) -> Callable[..., Any]:
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
    """Return simple values for the constructor's required parameters, the same in every test."""
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
                f"{cls.__module__}:{cls.__qualname__} needs an argument {parameter.name!r}, and "
                "its type does not say what it can be: write a Machine whose start() creates it"
            )
        value = generator.draw(random.Random(0))
        if parameter.kind is parameter.KEYWORD_ONLY:
            by_name[parameter.name] = value
        else:
            by_position.append(value)
    return tuple(by_position), by_name


def _named_exceptions(cls: type, names: Sequence[str]) -> tuple[type[BaseException], ...]:
    """Return the exceptions that a user named: builtins, of the class's module, or MODULE.NAME."""
    module = inspect.getmodule(cls)
    exceptions = []
    for name in names:
        module_name, _, last = name.replace(":", ".").rpartition(".")
        if module_name:
            error = load_object(f"{module_name}:{last}", "exception", _is_exception)
        else:
            error = getattr(module, name, None) or getattr(builtins, name, None)
        if not _is_exception(error):
            choices = [n for n, e in vars(builtins).items() if _is_exception(e)]
            raise UserError(f"--raises: no exception {name!r}{_suggestion(name, choices)}")
        exceptions.append(error)
    return tuple(exceptions)


def _is_exception(member: object) -> bool:
    return inspect.isclass(member) and issubclass(member, BaseException)


def _suggestion(name: str, choices: Sequence[str]) -> str:
    suggestion = did_you_mean(name, choices)
    if "did you mean" in suggestion:
        return suggestion
    return "; write MODULE.NAME for an exception of a module"


def _own_exceptions(cls: type) -> tuple[type[BaseException], ...]:
    """Return the exceptions that the class's module defines or imports, without the builtins."""
    module = inspect.getmodule(cls)
    members = vars(module).values() if module is not None and module is not builtins else ()
    return tuple(
        member
        for member in members
        if inspect.isclass(member)
        and issubclass(member, Exception)
        and member.__module__ != "builtins"
    )


# Generators from type hints.

_SMALL_KEYS = integers(0, 9)
"""For values of an unknown type: few distinct numbers, so that calls often use the same key."""


def hints_of(method: Callable[..., Any], cls: type) -> dict[str, Any]:
    """Return the resolved type hints of a method; an empty dictionary if they do not resolve."""
    try:
        names = {cls.__name__: cls, "Self": cls}
        hints = typing.get_type_hints(method, localns=names)
    except Exception:
        return {}
    return {name: cls if hint is typing.Self else hint for name, hint in hints.items()}


def generator_of_hint(hint: Any, default: Any = inspect.Parameter.empty) -> Generator[Any] | None:
    """Return a generator for values of a type; None if the type does not tell enough.

    >>> import random
    >>> generator_of_hint(bool).draw(random.Random(1)) in (True, False)
    True
    >>> generator_of_hint(list[int] | None) is not None
    True
    """
    if hint is inspect.Parameter.empty or hint is Any or isinstance(hint, typing.TypeVar):
        return _generator_like_default(default)
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
    return _generator_of_generic(hint)


def _generator_of_generic(hint: Any) -> Generator[Any] | None:
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
        return _generator_of_container(origin, arguments)
    return None


def _generator_of_container(origin: type, arguments: tuple[Any, ...]) -> Generator[Any] | None:
    name = origin.__name__
    element = generator_of_hint(arguments[0]) if arguments else _SMALL_KEYS
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
        value = generator_of_hint(arguments[1]) if len(arguments) > 1 else _SMALL_KEYS
        if value is None:
            return None
        return Generator(lambda rng: {key: value.draw(rng) for key in items.draw(rng)})
    return None


def _generator_like_default(default: Any) -> Generator[Any] | None:
    """Return a generator for a parameter without a hint, from its default value if it has one."""
    if default is inspect.Parameter.empty or default is None:
        return _SMALL_KEYS
    return generator_of_hint(type(default))
