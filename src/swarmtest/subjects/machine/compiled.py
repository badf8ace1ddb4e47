"""Read what a machine class declares, and compile the inner loop of its tests.

The loop is generated as Python source and compiled once per class, because choosing an action,
drawing its arguments and recording the step must cost less than the action itself. In the generated
code the choice is a table look-up, arguments are drawn inline, the counts of used features are
local variables, and an action costs one call. A generic loop over `Action` objects is about three
times slower (`benchmarks/throughput.py` prints our loop beside a hand-written one).

The loop's contract:

- ``picks`` holds the numbers of the included actions; each step picks one uniformly. If its guard
  is false, ``another`` picks among the actions that are possible. That gives the same odds as
  listing the possible ones first, and is much cheaper when most guards are true.
- ``weighted`` skips the chosen action with probability 1 - weight, and the step is spent (the
  blog's semantics). ``renormalised`` picks in proportion to the weights of all actions, whose
  running sums are ``bounds``; it needs no ``picks``, because an action of weight 0 has no room
  between two sums. ``plain`` is for configurations in which all weights are 0 or 1.
- Every step is appended to ``record`` *before* it runs, with concrete arguments, so that the step
  that raised is the last one. Arguments that the program might change are recorded as JSON.
- ``rescued`` is called with an exception that is a correct outcome of the last recorded step.
- ``tally`` receives how often each action ran and how many steps were skipped, even after a
  failure.
"""

from __future__ import annotations

import bisect
import inspect
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from swarmtest.core.dimensions import Feature
from swarmtest.core.errors import UserError, did_you_mean
from swarmtest.core.faults import message_of
from swarmtest.core.space import Space
from swarmtest.subjects.machine.event_loop import INVARIANT
from swarmtest.subjects.machine.generators import Generator, as_generator
from swarmtest.subjects.machine.machine import ACTION, Action, FromPool, Machine, Pool
from swarmtest.subjects.machine.mixtures.program_random import ProgramRandom
from swarmtest.subjects.machine.values import Ref, to_json

# Reading what a machine class declares, with all checks.


def actions_of(cls: type) -> list[Action]:
    """Return the actions of a machine class in the order of definition, base classes first."""
    actions: dict[str, Action] = {}
    for base in reversed(cls.__mro__):
        for name, member in vars(base).items():
            options = getattr(member, ACTION, None)
            if options is not None:
                actions[name] = _read_action(cls, name, member, options)
            elif name in actions:
                # A subclass has overridden the action with something that is not an action.
                del actions[name]
    return list(actions.values())


def invariants_of(cls: type) -> list[str]:
    """Return the names of a machine class's invariants."""
    names = dict.fromkeys(
        name
        for base in reversed(cls.__mro__)
        for name, member in vars(base).items()
        if getattr(member, INVARIANT, False)
    )
    return [name for name in names if getattr(getattr(cls, name), INVARIANT, False)]


def refuse_constructor_arguments(cls: type[Any], what: str) -> None:
    """Raise `UserError` if a class cannot be created without arguments.

    A machine is created for each test, without arguments.
    """
    required = [
        p.name
        for p in list(inspect.signature(cls.__init__).parameters.values())[1:]
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    if required:
        raise UserError(
            f"{what} {cls.__name__!r} is created without arguments, but its __init__ needs "
            f"{', '.join(required)}"
        )


def refuse_coroutine(function: Any, where: str, *, may_return_generator: bool = False) -> None:
    """Raise `UserError` for a function whose body a call does not run: it would always pass.

    The async methods of machines have been replaced by then, so they are not refused (see
    `event_loop`).
    """
    if inspect.isasyncgenfunction(function):
        raise UserError(f"{where} is an async generator, so that a call does not run it")
    if inspect.iscoroutinefunction(function):
        raise UserError(
            f"{where} is an async function, which is called but not awaited: write a plain method "
            "that calls asyncio.run(...)"
        )
    if inspect.isgeneratorfunction(function) and not may_return_generator:
        raise UserError(f"{where} contains yield, so that a call does not run it: remove the yield")


def _refuse_coroutines(cls: type[Machine], actions: list[Action]) -> None:
    for action in actions:
        where = f"action {cls.__name__}.{action.name}"
        pooled = action.into is not None
        refuse_coroutine(getattr(cls, action.name), where, may_return_generator=pooled)
        refuse_coroutine(action.when, f"{where}: its guard (when=)")
    for name in invariants_of(cls):
        refuse_coroutine(getattr(cls, name), f"invariant {cls.__name__}.{name}")
    for name in ("__init__", "start", "stop"):
        refuse_coroutine(getattr(cls, name), f"{cls.__name__}.{name}")


def space_of(cls: type[Machine]) -> Space:
    """Return the space of a machine: its actions as features, and its other dimensions."""
    refuse_constructor_arguments(cls, "machine")
    actions = actions_of(cls)
    if not actions:
        raise UserError(
            f"machine {cls.__name__!r} has no actions: decorate at least one method with @action"
        )
    _refuse_coroutines(cls, actions)
    return Space([*(a.feature for a in actions), *cls.dimensions], cls.constraints)


def _read_action(
    cls: type, name: str, method: Callable[..., Any], declared: dict[str, Any]
) -> Action:
    """Check what the decorator of an action was given, and describe the action."""
    options = dict(declared)
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
    everywhere = cls.expected_exceptions() if issubclass(cls, Machine) else ()
    raises = (
        *(raises if isinstance(raises, tuple) else (raises,)),
        *(everywhere if isinstance(everywhere, tuple) else (everywhere,)),
    )
    if not all(inspect.isclass(e) and issubclass(e, BaseException) for e in raises):
        raise UserError(f"{where}: raises is an exception class, or several, not {raises!r}")
    parameters = _check_arguments(where, method, arguments)
    sources = {key: _source(arguments[key], f"{where}, argument {key!r}") for key in parameters}
    for pool in (into, *(s.pool for s in sources.values() if isinstance(s, FromPool))):
        if pool is not None and getattr(cls, pool.name, None) is not pool:
            raise UserError(
                f"{where}: its pool is not an attribute of the class; "
                "write `things = Pool()` in the class body, and pass that"
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


def _source(value: Any, where: str) -> Generator[Any] | FromPool:
    if isinstance(value, Pool):
        return FromPool(value)
    return value if isinstance(value, FromPool) else as_generator(value, where)


def _check_arguments(
    where: str, method: Callable[..., Any], arguments: dict[str, Any]
) -> list[str]:
    """Return the parameters that receive an argument, in the order of the signature."""
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


def _positional(method: Callable[..., Any], names: list[str]) -> int:
    """Return how many of the named parameters, from the first, can be passed by position."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    count = 0
    for name, parameter in zip(names, parameters, strict=False):
        if name != parameter.name or parameter.kind is parameter.KEYWORD_ONLY:
            break
        count += 1
    return count


# The generated loop.


class InvariantViolated(AssertionError):
    """An invariant returned False."""


class ArgumentSnapshot:
    """An argument as JSON data, taken when it was drawn, because the program may change it."""

    __slots__ = ("data",)

    def __init__(self, value: Any) -> None:
        self.data = to_json(value)


@dataclass(frozen=True)
class CompiledMachine:
    """The compiled loops of a machine class, with its actions, invariants and guards.

    ``possible`` holds the guard of each action; None for an action that is always possible.
    """

    actions: tuple[Action, ...]
    plain: Callable[..., None]
    weighted: Callable[..., None]
    renormalised: Callable[..., None]
    check: Callable[[Machine], None]
    possible: tuple[Callable[[Machine], Any] | None, ...]


def compile_machine(
    cls: type[Machine],
    changed: Callable[[Action], Action] | None = None,
    tolerates: Callable[..., bool] | None = None,
) -> CompiledMachine:
    """Generate and compile the loops of a machine class; `changed` may change its actions.

    `tolerates` is called with the machine, what an action or an invariant raised, and the action;
    the test goes on if it returns true.
    """
    actions = tuple(actions_of(cls))
    if changed is not None:
        actions = tuple(map(changed, actions))
    names: dict[str, Any] = {
        "bisect": bisect.bisect_right,
        "Ref": Ref,
        "Snapshot": ArgumentSnapshot,
        "InvariantViolated": InvariantViolated,
    }
    possible = tuple(_guard(action) for action in actions)
    names["possible"] = possible
    lines = _check_source(cls)
    if tolerates is not None:
        names["tolerates"] = tolerates
        names["action_names"] = tuple(action.name for action in actions)
    for how in ("plain", "weighted", "renormalised"):
        lines += _run_source(cls, actions, names, how)
    source = "\n".join(lines) + "\n"
    filename = f"<swarmtest {cls.__module__}.{cls.__qualname__}>"
    # With this, a traceback through the loop shows its lines.
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), names)
    return CompiledMachine(
        actions,
        names["plain"],
        names["weighted"],
        names["renormalised"],
        names["check"],
        possible,
    )


def _guard(action: Action) -> Callable[[Machine], Any] | None:
    """Return the guard of an action, pools included; None if the action is always possible.

    A pool needs a value for each argument that consumes one, and one for all others together.
    """
    drawn = [a for a in action.arguments.values() if isinstance(a, FromPool)]
    needs = {
        a.pool.name: sum(b.consumed for b in drawn if b.pool is a.pool)
        + any(not b.consumed for b in drawn if b.pool is a.pool)
        for a in drawn
    }
    when = action.when
    if not needs:
        return when

    def possible(machine: Machine) -> Any:
        enough = all(len(getattr(machine, pool)) >= count for pool, count in needs.items())
        return enough and (when is None or when(machine))

    return possible


def _check_source(cls: type[Machine]) -> list[str]:
    # `subject` finds the violated invariant by its line: two lines for each.
    lines = ["def check(m):"]
    for name in invariants_of(cls):
        message = f"{name} returned False"
        lines += [
            f"    if m.{name}() is False:",
            f"        raise InvariantViolated({message!r})",
        ]
    return [*lines, "    return None", ""]


def _run_source(
    cls: type[Machine], actions: tuple[Action, ...], names: dict[str, Any], how: str
) -> list[str]:
    """Return the loop for one way of choosing: ``plain``, ``weighted`` or ``renormalised``.

    There are three loops because testing for the way at every step would cost as much as a short
    action.
    """
    counters = [f"c{i}" for i in range(len(actions))]
    pick = {
        "plain": "picks[int(random() * size)]",
        "weighted": "picks[int(random() * size)]",
        "renormalised": "bisect(bounds, random() * top)",
    }[how]
    lines = [
        f"def {how}(m, rng, picks, weights, bounds, count, record, rescued, another, tally):",
        "    random = rng.random",
        "    note = record.append",
        "    top = bounds[-1]" if how == "renormalised" else "    size = len(picks)",
        "    skipped = 0",
        f"    {' = '.join(counters)} = 0",
        *(f"    a{i} = m.{action.name}" for i, action in enumerate(actions)),
        "    try:",
        "        for _ in range(count):",
        f"            k = {pick}",
    ]
    if any(guard is not None for guard in names["possible"]):
        lines += [
            "            guard = possible[k]",
            "            if guard is not None and not guard(m):",
            "                k = another(m, random)",
            "                if k < 0:",
            "                    break",
        ]
    if how == "weighted":
        lines += [
            "            if random() >= weights[k]:",
            "                skipped += 1",
            "                continue",
        ]
    lines += _dispatch(actions, names, 0, len(actions), " " * 12)
    if invariants_of(cls) and "tolerates" in names:
        lines += [
            "            try:",
            "                check(m)",
            "            except Exception as error:",
            "                if not tolerates(m, error, action_names[k], restart=True):",
            "                    raise",
        ]
    elif invariants_of(cls):
        lines.append("            check(m)")
    return [
        *lines,
        "    finally:",
        f"        tally[:] = {', '.join(counters)}, skipped",
        "",
    ]


def _dispatch(
    actions: tuple[Action, ...], names: dict[str, Any], low: int, high: int, indent: str
) -> list[str]:
    """Return the code that runs action ``k``, as a binary tree of comparisons.

    For 64 actions that is 6 comparisons; a chain of ``elif`` needs 32 on average.
    """
    if high - low == 1:
        return [indent + line for line in _call_source(actions[low], low, names)]
    middle = (low + high) // 2
    return [
        f"{indent}if k < {middle}:",
        *_dispatch(actions, names, low, middle, indent + "    "),
        f"{indent}else:",
        *_dispatch(actions, names, middle, high, indent + "    "),
    ]


def _call_source(action: Action, number: int, names: dict[str, Any]) -> list[str]:
    """Return the code that draws an action's arguments, records the step and calls the action."""
    lines, recorded, passed = [], [], []
    for at, (name, source) in enumerate(action.arguments.items()):
        value = f"x{at}"
        where = f"action {action.name!r}, argument {name!r}"
        passed.append(value if at < action.positional else f"{name}={value}")
        if isinstance(source, FromPool):
            lines += _draw_from_pool(source, value)
            recorded.append(f"Ref({value}_label)")
        else:
            key = f"{number}_{at}"
            lines.append(f"{value} = {_draw_expression(source, key, at, names, where)}")
            recorded.append(value if source.immutable else f"Snapshot({value})")
    label = "len(record)"
    lines += [f"note(({', '.join([str(number), *recorded])},))", f"c{number} += 1"]
    call = f"a{number}({', '.join(passed)})"
    store_result = []
    if action.into is not None:
        call = f"result = {call}"
        store_result = [
            "if result is not None:",
            f"    m.{action.into.name}.entries.append(({label}, result))",
        ]
    if not action.raises and "tolerates" not in names:
        return [*lines, call, *store_result]
    names[f"raises{number}"] = action.raises
    tolerated = [
        "except Exception as error:",
        f"    if not tolerates(m, error, {action.name!r}):",
        "        raise",
        "    rescued(error)",
    ]
    return [
        *lines,
        "try:",
        f"    {call}",
        f"except raises{number} as error:",
        "    rescued(error)",
        *(tolerated if "tolerates" in names else []),
        *(["else:", *("    " + line for line in store_result)] if store_result else []),
    ]


class WatchedRandom(ProgramRandom):
    """A random source that is told when the argument at a position of a step is about to be drawn.

    With it, a trial is generated again to find where the draw of an argument begins (see `redraw`).
    """

    def begin_argument(self, position: int) -> None:
        """Prepare for the draw of an argument."""


def _with_user_errors(draw: Callable[[Any], Any], at: int, where: str) -> Callable[[Any], Any]:
    """Return `draw` with its exceptions turned into `UserError`.

    A mistake in a generator is a mistake of the harness, not a fault of the program.
    """

    def checked(rng: Any) -> Any:
        if isinstance(rng, WatchedRandom):
            rng.begin_argument(at)
        try:
            return draw(rng)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{where}: its generator raised {message_of(error)}") from error

    return checked


def _draw_expression(
    source: Generator[Any], key: str, at: int, names: dict[str, Any], where: str
) -> str:
    """Return the expression that draws from a generator; what it refers to is put into `names`."""
    if not source.inline:
        names[f"draw{key}"] = _with_user_errors(source.draw, at, where)
        return f"draw{key}(rng)"
    expression = source.inline
    for constant, value in source.constants.items():
        names[f"{constant}{key}"] = value
        expression = expression.replace(constant, f"{constant}{key}")
    return expression


def _draw_from_pool(source: FromPool, value: str) -> list[str]:
    entries = f"m.{source.pool.name}.entries"
    at = f"int(random() * len({entries}))"
    entry = f"{entries}.pop({at})" if source.consumed else f"{entries}[{at}]"
    return [f"{value}_label, {value} = {entry}"]
