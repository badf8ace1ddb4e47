"""Reading what a machine class declares: its actions, invariants and space, with all checks."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from swarmtest.errors import UserError, did_you_mean
from swarmtest.space import Feature, Space
from swarmtest.subjects.generators import Generator, as_generator
from swarmtest.subjects.machine import ACTION, INVARIANT, Action, FromPool, Machine, Pool


def actions_of(cls: type) -> list[Action]:
    """The actions of a machine class in the order of their definition, base classes first."""
    found: dict[str, Action] = {}
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            note = getattr(member, ACTION, None)
            if note is not None:
                found[name] = _read(cls, name, member, note)
            elif name in found:
                del found[name]
    return list(found.values())


def invariants_of(cls: type) -> list[str]:
    """The names of a machine class's invariants."""
    names = dict.fromkeys(
        name
        for base in reversed(cls.__mro__)
        for name, member in vars(base).items()
        if getattr(member, INVARIANT, False)
    )
    return [name for name in names if getattr(getattr(cls, name), INVARIANT, False)]


def refuse_constructor_arguments(cls: type[Any], what: str) -> None:
    """A machine is made anew for every test, by nobody who could know arguments."""
    required = [
        p.name
        for p in list(inspect.signature(cls.__init__).parameters.values())[1:]
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if required:
        raise UserError(
            f"{what} {cls.__name__!r} is made without arguments, but its __init__ needs "
            f"{', '.join(required)}"
        )


def space_of(cls: type[Machine]) -> Space:
    """The space of a machine: its actions as features, and its other dimensions."""
    refuse_constructor_arguments(cls, "machine")
    actions = actions_of(cls)
    if not actions:
        raise UserError(
            f"machine {cls.__name__!r} has no actions: decorate at least one method with @action"
        )
    return Space([*(a.feature for a in actions), *cls.dimensions], cls.constraints)


def _read(cls: type, name: str, method: Callable[..., Any], note: dict[str, Any]) -> Action:
    options = dict(note)
    where = f"action {cls.__name__}.{name}"
    when, raises, into = (
        options.pop("when", None),
        options.pop("raises", ()),
        options.pop("into", None),
    )
    render = options.pop("_render", None)
    feature = Feature(
        name,
        **{
            key: options.pop(key)
            for key in ("rate", "group", "requires", "excludes", "mandatory")
            if key in options
        },
    )
    extra = options.pop("args", None) or {}
    arguments = options | extra
    if when is not None and not callable(when):
        raise UserError(f"{where}: when is a function of the machine, not {when!r}")
    if into is not None and not isinstance(into, Pool):
        raise UserError(f"{where}: into is a Pool, not {into!r}")
    raises = raises if isinstance(raises, tuple) else (raises,)
    if not all(inspect.isclass(e) and issubclass(e, BaseException) for e in raises):
        raise UserError(f"{where}: raises is an exception class, or several, not {raises!r}")
    parameters = _check_arguments(where, method, arguments)
    sources = {key: _argument(arguments[key], f"{where}, argument {key!r}") for key in parameters}
    for pool in (into, *(s.pool for s in sources.values() if isinstance(s, FromPool))):
        if pool is not None and getattr(cls, pool.name, None) is not pool:
            raise UserError(
                f"{where}: its pool is not an attribute of the class; "
                "write `things = Pool()` in the class body and name that"
            )
    return Action(
        name,
        feature,
        sources,
        _positional(method, parameters),
        when,
        raises,
        into,
        render,
    )


def _argument(value: Any, where: str) -> Generator[Any] | FromPool:
    if isinstance(value, Pool):
        return FromPool(value)
    return value if isinstance(value, FromPool) else as_generator(value, where)


def _check_arguments(
    where: str, method: Callable[..., Any], arguments: dict[str, Any]
) -> list[str]:
    """The parameters that get an argument, in the order of the signature."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    names = [p.name for p in parameters]
    for key in arguments:
        if key not in names:
            raise UserError(f"{where} has no parameter {key!r}{did_you_mean(key, names)}")
    for parameter in parameters:
        fixed = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if parameter.default is parameter.empty and not fixed and parameter.name not in arguments:
            raise UserError(
                f"{where}: say where {parameter.name!r} comes from, "
                f"like @action({parameter.name}=integers(0, 9))"
            )
    return [name for name in names if name in arguments]


def _positional(method: Callable[..., Any], given: list[str]) -> int:
    parameters = list(inspect.signature(method).parameters.values())[1:]
    count = 0
    for name, parameter in zip(given, parameters, strict=False):
        if name != parameter.name or parameter.kind is parameter.KEYWORD_ONLY:
            break
        count += 1
    return count
