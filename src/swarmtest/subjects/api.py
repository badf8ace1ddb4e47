"""Derive a machine from any class: public methods become actions, type hints become generators.

With it a user can test a class without writing a harness. There are two kinds of oracles:
exceptions that do not say "you called me wrongly" (see `api_rejections`), and the checks that any
class can have (see `oracles.metamorphic`).
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import itertools
import random
import types
import typing
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import message_of
from swarmtest.languages.user_objects import load_object
from swarmtest.subjects.api_arguments import ArgumentSources, hints_of, with_learned
from swarmtest.subjects.api_rejections import TOLERATED, RejectedCall, is_rejection, types_in
from swarmtest.subjects.learned_values import LearnedValues, values_of
from swarmtest.subjects.api_surroundings import Surroundings
from swarmtest.subjects.machine.generators import integers, lists, one_of
from swarmtest.subjects.machine.machine import Machine, Pool, action
from swarmtest.subjects.oracles.metamorphic import check_action, checks_of
from swarmtest.subjects.oracles.operations import Operation

_ANYTHING = "anything"
"""The key of the arguments of a method that has no signature."""
_CONSTRUCTOR_TRIES = 20
_ANY_ARGUMENT = one_of(integers(0, 9), integers(0, 9), integers(0, 9), lists(integers(0, 9)))
"""For a method that does not declare its parameters: small numbers, and now and then a list."""
Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional arguments and keyword arguments."""

_CONTAINER: dict[str, str] = {
    "__len__": "len({0})",
    "__contains__": "{1} in {0}",
    "__getitem__": "{0}[{1}]",
    "__setitem__": "{0}[{1}] = {2}",
    "__delitem__": "del {0}[{1}]",
    "__iter__": "for _ in zip(range(1000), {0}): pass",
}
_BINARY: dict[str, str] = {
    "__add__": "{0} + {1}",
    "__sub__": "{0} - {1}",
    "__mul__": "{0} * {1}",
    "__or__": "{0} | {1}",
    "__and__": "{0} & {1}",
    "__xor__": "{0} ^ {1}",
    "__eq__": "{0} == {1}",
    "__lt__": "{0} < {1}",
    "__le__": "{0} <= {1}",
}
_OPERATORS = _CONTAINER | _BINARY
"""The special methods that are called, and how to write a call of each."""
_WITH_SAME_CLASS = frozenset(_BINARY) - {"__mul__"}
"""Operators whose other side is an object of the same class."""


def api_machine(
    cls: type,
    raises: Sequence[str] = (),
    without: Collection[str] = (),
    learned: LearnedValues = MappingProxyType({}),
    network: bool = False,
) -> type[Machine]:
    """Return a machine that calls the public methods of a class.

    `raises` names more exceptions that are a correct outcome of a call, `without` the methods and
    checks to leave out, and `learned` has values that `swarmtest learn` recorded. Tests reach
    other hosts only with `network`.

    >>> from collections import UserList
    >>> sorted(name for name in vars(api_machine(UserList)) if name.startswith("in"))
    ['index', 'insert']
    """
    named = named_exceptions(cls, raises)
    where = f"{cls.__module__}:{cls.__qualname__}"
    constructor_arguments = _constructor_arguments(cls, learned)
    sample = _try_constructor(cls, constructor_arguments)
    members: dict[str, Any] = {
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": f"The public methods of {cls.__qualname__}.",
        "_swarmtest_api": (cls, constructor_arguments),
    }
    instances = Pool()
    methods = public_methods(cls)
    checks = checks_of(sample) if _has_a_checked_part(cls) else {}
    _refuse_unknown(without, [name for name, _ in methods] + list(checks), where)
    sources = ArgumentSources(cls, instances, learned)
    left_out, chained = [], False
    for name, method in methods:
        if name in without:
            continue
        arguments = _arguments(sources, name, method)
        if arguments is None:
            left_out.append(name)
            continue
        # A method must not replace a method of the machine that has the same name.
        attribute = f"{name}_" if hasattr(ApiMachine, name) else name
        makes = _makes_instances(cls, name, method)
        chained = chained or makes
        members[attribute] = _action(
            cls, name, method, arguments, named, instances if makes else None
        )
        members[attribute].__name__ = attribute
        if instances in arguments.values():
            members["objects"] = instances
    if not any(hasattr(member, "_swarmtest_action") for member in members.values()):
        if any(inspect.iscoroutinefunction(getattr(cls, name)) for name in left_out):
            raise UserError(
                f"{where} has only async methods that can be called: "
                "write a Machine whose actions call asyncio.run(...)"
            )
        raise UserError(
            f"{where} has no public method whose arguments can be "
            "drawn: add type hints, or write a Machine"
        )
    if "objects" in members or chained:
        members["objects"] = instances
        new = _constructor_code(cls, constructor_arguments)
        members["new_object"] = _new_object_action(instances, new)
    if chained:
        members["use_result"] = _use_result_action(instances)
    for name, check in checks.items():
        if name not in without and name.removeprefix("check_") not in without:
            members.setdefault(name, check_action(check, "object", "new", printed=True))
    members["left_out"] = tuple(left_out)
    members["calls"] = Counter()
    members["network"] = network
    return types.new_class(cls.__name__, (ApiMachine,), {}, lambda ns: ns.update(members))


def method_operations(cls: type) -> dict[str, Operation]:
    """Return the public methods of a class as operations that other classes may have too.

    >>> method_operations(list)["append"].text((3,))
    'o.append(3)'
    """
    sources = ArgumentSources(cls)
    found = {}
    for name, method in public_methods(cls):
        arguments = _arguments(sources, name, method)
        if arguments is None or name in _WITH_SAME_CLASS or name == "__iter__":
            continue  # states compare what iteration yields
        positional = _positional_only(method)
        call = _caller(name, frozenset(arguments) if name in _OPERATORS else positional)
        render = _renderer(name, _labels(arguments, positional))
        letters = tuple(arguments)
        found[name] = Operation(
            name,
            name,
            letters,
            arguments,
            call=lambda o, *v, call=call, letters=letters: call(o, dict(zip(letters, v))),  # noqa: B905
            render=render,
        )
    return found


def _refuse_unknown(without: Collection[str], known: Sequence[str], where: str) -> None:
    for name in without:
        if name not in known and f"check_{name}" not in known:
            raise UserError(f"{where}: --without {name}{did_you_mean(name, known)}")


def _has_a_checked_part(cls: type) -> bool:
    """Return whether a class has more to check than what every object inherits."""
    own = [base for base in cls.__mro__ if base is not object]
    special = ("__eq__", "__len__", "__iter__", "__repr__", "__str__", "__hash__", "close")
    return any(name in vars(base) for base in own for name in special)


def _makes_instances(cls: type, name: str, method: Callable[..., Any]) -> bool:
    """Return whether a method may return another object of the class."""
    if name in _BINARY:
        return name not in ("__eq__", "__lt__", "__le__")
    return name == "copy" or hints_of(method, cls).get("return") is cls


def _try_constructor(cls: type, arguments: Arguments) -> Any:
    try:
        with Surroundings():
            return cls(*arguments[0], **arguments[1])
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
    observed: Any = None
    """What the last call returned."""
    calls: ClassVar[Counter[tuple[str, bool]]] = Counter()
    """How many calls of each method were accepted or not, in this process."""
    _swarmtest_api: tuple[type, Arguments]
    _passed: frozenset[str] = frozenset()
    """The names of the types of the values that the test has passed so far."""
    _surroundings: Surroundings | None = None
    network: ClassVar[bool] = False
    """Whether tests may reach other hosts."""

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
        """Create the object under test, in a directory of the test's own, without network."""
        self._leave()
        self._surroundings = Surroundings(self.network)
        self._surroundings.__enter__()
        try:
            self.object = self.new()
        except BaseException:
            self._leave()
            raise
        self._passed = frozenset()

    def stop(self) -> None:
        """Return to the directory of the process."""
        self._leave()

    def _leave(self) -> None:
        # Not in `stop`, which a user may replace: then they are left when the machine is collected.
        if self._surroundings is not None:
            self._surroundings.__exit__()


def public_methods(cls: type) -> list[tuple[str, Callable[..., Any]]]:
    """Return the public methods of a class and the operators that are called, without aliases.

    >>> "append" in dict(public_methods(list))
    True
    """
    methods = []
    seen: dict[int, str] = {}
    for name, member in inspect.getmembers_static(cls):
        if isinstance(member, staticmethod | classmethod | property) or inspect.isclass(member):
            continue
        if not callable(member) or member is getattr(object, name, None):
            continue
        if name.startswith("_") and name not in _OPERATORS:
            continue
        if id(member) in seen:  # an alias: `append = add`
            continue
        if isinstance(member, types.FunctionType) and not name.startswith("_"):
            original = getattr(cls, member.__name__, None)
            if member.__name__ != name and original is member:
                continue
            seen[id(member)] = name
        methods.append((name, member))
    return methods


def _arguments(
    sources: ArgumentSources, name: str, method: Callable[..., Any]
) -> dict[str, Any] | None:
    """Return generators for a method's parameters; None if a required value cannot be drawn."""
    if inspect.iscoroutinefunction(method):
        return None
    if name in _WITH_SAME_CLASS:
        instances = sources.instances
        return None if instances is None else {"other": instances}
    try:
        return sources.of_method(method)
    except (ValueError, TypeError):
        # Many methods written in C have no signature: try up to two arguments.
        return {_ANYTHING: lists(_ANY_ARGUMENT, max_size=2)}


def _positional_only(method: Callable[..., Any]) -> frozenset[str]:
    try:
        parameters = inspect.signature(method).parameters.values()
    except (ValueError, TypeError):
        return frozenset()
    return frozenset(p.name for p in parameters if p.kind is p.POSITIONAL_ONLY)


def _caller(name: str, positional: frozenset[str]) -> Callable[[Any, dict[str, Any]], Any]:
    """Return a function that calls a method of an object, with arguments by name."""
    binary = _BINARY.get(name)
    operator = eval(f"lambda a, b: {binary.format('a', 'b')}") if binary else None

    def call(tested: Any, values: dict[str, Any]) -> Any:
        if name == "__iter__":
            return list(itertools.islice(tested, 1000))
        if operator is not None:
            return operator(tested, *values.values())
        if _ANYTHING in values:
            return getattr(tested, name)(*values[_ANYTHING])
        by_position = [value for key, value in values.items() if key in positional]
        by_name = {key: value for key, value in values.items() if key not in positional}
        return getattr(tested, name)(*by_position, **by_name)

    return call


def _action(
    cls: type,
    name: str,
    method: Callable[..., Any],
    arguments: dict[str, Any],
    named: tuple[type[BaseException], ...],
    into: Pool | None,
) -> Callable[..., Any]:
    positional = _positional_only(method) | frozenset(arguments if name in _OPERATORS else ())
    run = _caller(name, positional)

    def call(self: Any, **values: Any) -> Any:
        self.observed = None
        if values:
            self._passed = self._passed.union(*map(types_in, values.values()))
        try:
            self.observed = result = run(self.object, values)
        except Exception as error:
            if isinstance(error, (*named, *TOLERATED)):
                self.calls[name, False] += 1
                raise
            if is_rejection(error, cls, method, self._passed, arguments):
                self.calls[name, False] += 1
                raise RejectedCall(error) from error
            raise
        self.calls[name, True] += 1
        return result if isinstance(result, cls) and result is not self.object else None

    render = _renderer(name, _labels(arguments, positional))
    return _as_action(call, name, arguments, (*TOLERATED, *named, RejectedCall), render, into)


def _labels(arguments: dict[str, Any], positional: frozenset[str]) -> list[str]:
    labels = {_ANYTHING: "*"} | dict.fromkeys(positional, "")
    return [labels.get(key, f"{key}=") for key in arguments]


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


def _new_object_action(into: Pool, new: str) -> Callable[..., Any]:
    def call(self: Any) -> Any:
        return self.new()

    def render(subject: str, arguments: Sequence[str]) -> str:
        return new

    return _as_action(call, "new_object", {}, TOLERATED, render, into)


def _use_result_action(instances: Pool) -> Callable[..., Any]:
    """Return an action that goes on with an object that an earlier call returned."""

    def call(self: Any, result: Any) -> None:
        self.object = result

    def render(subject: str, arguments: Sequence[str]) -> str:
        return f"{subject} = {arguments[0]}"

    return _as_action(call, "use_result", {"result": instances}, (), render)


def _constructor_code(cls: type, arguments: Arguments) -> str:
    by_position, by_name = arguments
    words = [*map(repr, by_position), *(f"{k}={v!r}" for k, v in by_name.items())]
    return f"{cls.__qualname__}({', '.join(words)})"


def _constructor_arguments(cls: type, learned: LearnedValues) -> Arguments:
    """Return values for the constructor's required parameters, the same in every test.

    They are drawn until the constructor accepts them, a few times.
    """
    try:
        parameters = list(inspect.signature(cls).parameters.values())
    except (ValueError, TypeError):
        return (), {}
    hints = hints_of(inspect.getattr_static(cls, "__init__"), cls)
    sources = ArgumentSources(cls)
    known = values_of(learned, cls, "__init__")
    required = []
    for parameter in parameters:
        if parameter.default is not parameter.empty or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            continue
        hint = hints.get(parameter.name, inspect.Parameter.empty)
        generator = None if hint is cls else sources.of_parameter(parameter.name, hint)
        generator = with_learned(None, known.get(parameter.name, ())) or generator
        if generator is None:
            raise UserError(
                f"{cls.__module__}:{cls.__qualname__} needs an argument {parameter.name!r}, and "
                "its type does not say what it can be: write a Machine whose start() creates it, "
                f"or record values with `swarmtest learn {cls.__module__.partition('.')[0]}`"
            )
        required.append((parameter, generator))
    arguments: Arguments = (), {}
    for seed in range(_CONSTRUCTOR_TRIES if required else 1):
        drawn = [(p, generator.draw(random.Random(seed))) for p, generator in required]
        arguments = (
            tuple(value for p, value in drawn if p.kind is not p.KEYWORD_ONLY),
            {p.name: value for p, value in drawn if p.kind is p.KEYWORD_ONLY},
        )
        with contextlib.suppress(Exception), Surroundings():
            cls(*arguments[0], **arguments[1])
            break
    return arguments


def named_exceptions(cls: type, names: Sequence[str]) -> tuple[type[BaseException], ...]:
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
        exceptions.append(typing.cast(type[BaseException], error))
    return tuple(exceptions)


def _is_exception(member: object) -> bool:
    return inspect.isclass(member) and issubclass(member, BaseException)


def _suggestion(name: str, choices: Sequence[str]) -> str:
    suggestion = did_you_mean(name, choices)
    if "did you mean" in suggestion:
        return suggestion
    return "; write MODULE.NAME for an exception of a module"
