"""The inner loop of a machine's test, written out as Python source and compiled once per class.

Why: choosing an action, drawing its arguments and noting the step must cost less than the action.
Written out, the choice is a table look-up, arguments are drawn inline, the counts of used features
are local variables, and an action costs one call. A generic loop over `Action` objects is about
three times slower (`benchmarks/throughput.py` prints ours beside a hand-written loop).

The loop's contract:

- ``picks`` holds the numbers of the included actions; each step picks one uniformly. One whose
  guard is false is handed to ``another``, which picks among those that are possible: that gives
  the same odds as listing the possible ones first, and is much cheaper when most guards are true.
- ``weighted`` skips the chosen action with probability 1 - weight, and the step is spent (the
  blog's semantics). ``renormalised`` picks in proportion to the weights, whose running sums are
  ``bounds``. ``plain`` is for configurations where all weights are 0 or 1.
- Every step is noted in ``record`` *before* it runs, with concrete arguments, so that the step that
  raised is the last one noted. Arguments that might be changed by the program are noted as JSON.
- ``rescued`` is told of exceptions that are a correct outcome of the step noted last.
- ``tally`` gets how often each action ran and how many steps were skipped, also after a failure.
"""

from __future__ import annotations

import bisect
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from swarmtest.errors import UserError
from swarmtest.faults import message_of
from swarmtest.subjects.declared import actions_of, invariants_of
from swarmtest.subjects.generators import Generator
from swarmtest.subjects.machine import Action, FromPool, Machine
from swarmtest.subjects.values import Ref, to_json


class InvariantViolated(AssertionError):
    """An invariant returned False."""


class Snapshot:
    """An argument noted as JSON data at the moment it was drawn."""

    __slots__ = ("data",)

    def __init__(self, value: Any) -> None:
        self.data = to_json(value)


@dataclass(frozen=True)
class Compiled:
    """A machine class with its written-out loop."""

    actions: tuple[Action, ...]
    plain: Callable[..., None]
    weighted: Callable[..., None]
    renormalised: Callable[..., None]
    check: Callable[[Machine], None]
    possible: tuple[Callable[[Machine], Any] | None, ...]


def compile_machine(cls: type[Machine]) -> Compiled:
    """Write out and compile the loop of a machine class."""
    actions = tuple(actions_of(cls))
    names: dict[str, Any] = {
        "bisect": bisect.bisect_right,
        "Ref": Ref,
        "Snapshot": Snapshot,
        "InvariantViolated": InvariantViolated,
    }
    possible = tuple(_possible(action) for action in actions)
    names["possible"] = possible
    lines = _check_source(cls)
    for how in ("plain", "weighted", "renormalised"):
        lines += _run_source(cls, actions, names, how)
    source = "\n".join(lines) + "\n"
    filename = f"<swarmtest {cls.__module__}.{cls.__qualname__}>"
    # So that a traceback through the loop shows its lines.
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), names)
    return Compiled(
        actions,
        names["plain"],
        names["weighted"],
        names["renormalised"],
        names["check"],
        possible,
    )


def _possible(action: Action) -> Callable[[Machine], Any] | None:
    """The guard of an action, its pools included; None if it is always possible."""
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
    """The loop for one way of choosing: ``plain``, ``weighted`` or ``renormalised``.

    Three loops, because asking at every step which way it is would cost as much as a short action.
    """
    counters = [f"c{i}" for i in range(len(actions))]
    pick = {
        "plain": "picks[int(random() * size)]",
        "weighted": "picks[int(random() * size)]",
        "renormalised": "picks[bisect(bounds, random() * bounds[-1])]",
    }[how]
    lines = [
        f"def {how}(m, rng, picks, weights, bounds, count, record, rescued, another, tally):",
        "    random = rng.random",
        "    note = record.append",
        "    size = len(picks)",
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
    if invariants_of(cls):
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
    """A binary tree of comparisons: six for sixty-four actions, where a chain has thirty-two."""
    if high - low == 1:
        return [indent + line for line in _call(actions[low], low, names)]
    middle = (low + high) // 2
    return [
        f"{indent}if k < {middle}:",
        *_dispatch(actions, names, low, middle, indent + "    "),
        f"{indent}else:",
        *_dispatch(actions, names, middle, high, indent + "    "),
    ]


def _call(action: Action, number: int, names: dict[str, Any]) -> list[str]:
    lines, noted, passed = [], [], []
    for at, (name, source) in enumerate(action.arguments.items()):
        value = f"x{at}"
        where = f"action {action.name!r}, argument {name!r}"
        passed.append(value if at < action.positional else f"{name}={value}")
        if isinstance(source, FromPool):
            lines += _draw_from_pool(source, value)
            noted.append(f"Ref({value}_label)")
        else:
            lines.append(f"{value} = {_drawn(source, f'{number}_{at}', names, where)}")
            noted.append(value if source.immutable else f"Snapshot({value})")
    label = "len(record)"
    lines += [f"note(({', '.join([str(number), *noted])},))", f"c{number} += 1"]
    call = f"a{number}({', '.join(passed)})"
    if action.into is not None:
        made = f"result = {call}"
        keep = [
            "if result is not None:",
            f"    m.{action.into.name}.entries.append(({label}, result))",
        ]
    else:
        made, keep = call, []
    if not action.raises:
        return [*lines, made, *keep]
    names[f"raises{number}"] = action.raises
    return [
        *lines,
        "try:",
        f"    {made}",
        f"except raises{number} as error:",
        "    rescued(error)",
        *(["else:", *("    " + line for line in keep)] if keep else []),
    ]


def _guarded(draw: Callable[[Any], Any], where: str) -> Callable[[Any], Any]:
    """A mistake in a generator is the harness's, not a fault of the program."""

    def guarded(rng: Any) -> Any:
        try:
            return draw(rng)
        except UserError:
            raise
        except Exception as error:
            raise UserError(f"{where}: its generator raised {message_of(error)}") from error

    return guarded


def _drawn(source: Generator[Any], key: str, names: dict[str, Any], where: str) -> str:
    if not source.inline:
        names[f"draw{key}"] = _guarded(source.draw, where)
        return f"draw{key}(rng)"
    expression = source.inline
    for constant, value in source.constants.items():
        names[f"{constant}{key}"] = value
        expression = expression.replace(constant, f"{constant}{key}")
    return expression


def _draw_from_pool(source: FromPool, value: str) -> list[str]:
    entries = f"m.{source.pool.name}.entries"
    at = f"int(random() * len({entries}))"
    taken = f"{entries}.pop({at})" if source.consumed else f"{entries}[{at}]"
    return [f"{value}_label, {value} = {taken}"]
