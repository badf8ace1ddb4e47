"""Recognising a state machine of Hypothesis, and reading what it declares, with all checks.

Rules are features. An initialize rule is not: Hypothesis runs each exactly once before any other
rule, so it is how a test starts, as `start` is for a `Machine`. A feature that is in every test
could not be told apart from the test itself.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from swarmtest.core.dimensions import Feature
from swarmtest.core.errors import UserError
from swarmtest.core.space import Space
from swarmtest.subjects.machine.compiled import refuse_constructor_arguments


def is_state_machine(found: object) -> bool:
    """Whether something is a state machine of Hypothesis, or the test case of one.

    >>> is_state_machine(dict)
    False
    """
    return _machine_of(found) is not None


def state_machine_of(found: object) -> type[Any]:
    """The state machine behind a class: itself, or the one that a test case runs."""
    machine = _machine_of(found)
    if machine is None:
        name = getattr(found, "__name__", repr(found))
        raise UserError(f"{name} is not a RuleBasedStateMachine of Hypothesis, nor its TestCase")
    return machine


def _machine_of(found: object) -> type[Any] | None:
    # Who has a state machine has imported this; nobody else should pay for it.
    stateful = sys.modules.get("hypothesis.stateful")
    if stateful is None or not inspect.isclass(found):
        return None
    run = getattr(found, "runTest", None)
    machine = getattr(run, "_hypothesis_state_machine_class", found)
    base = stateful.RuleBasedStateMachine
    return machine if issubclass(machine, base) and machine is not base else None


def settings_of(found: type[Any]) -> Any:
    """The settings under which pytest would run a state machine, or the test case of one."""
    case = found if hasattr(found, "runTest") else found.TestCase
    return case.settings


def rules_of(machine: type[Any]) -> list[Any]:
    """The rules of a state machine in the order of their definition, base classes first."""
    from hypothesis.errors import InvalidDefinition

    refuse_constructor_arguments(machine, "state machine")
    name = machine.__name__
    try:
        rules = _declared(machine, "rules")
    except InvalidDefinition as error:
        raise UserError(f"state machine {name!r}: {_line(error)}") from None
    if not rules:
        raise UserError(
            f"state machine {name!r} has no rules: decorate at least one method with @rule()"
        )
    order = {function: at for at, function in enumerate(_names_in_order(machine))}
    rules = sorted(rules, key=lambda rule: order.get(rule.function.__name__, len(order)))
    for rule in (*rules, *initializers_of(machine)):
        _check_arguments(name, rule)
    _check_names(name, rules)
    return rules


def initializers_of(machine: type[Any]) -> list[Any]:
    """The initialize rules of a state machine."""
    return _declared(machine, "initializers")


def invariants_of(machine: type[Any]) -> list[Any]:
    """The invariants of a state machine."""
    return _declared(machine, "invariants")


def space_of(machine: type[Any]) -> Space:
    """The rules of a state machine as features.

    A rule that takes from bundles makes no sense without those rules that alone can begin to fill
    them, directly or through others.
    """
    rules = rules_of(machine)
    names = [rule.function.__name__ for rule in rules]
    started = _filled_at_start(machine)
    without = {name: _able(rules, started, name) for name in names}
    able = _able(rules, started, "")
    return Space(
        [
            Feature(name, requires=tuple(n for n in names if n != name and name not in without[n]))
            if name in able
            else Feature(name)
            for name in names
        ]
    )


def unfilled(machine: type[Any]) -> dict[str, str]:
    """The rules that can never run, each with a bundle of its own that nothing ever fills."""
    rules = rules_of(machine)
    started = _filled_at_start(machine)
    able = _able(rules, started, "")
    filled = started | {b for rule in rules if rule.function.__name__ in able for b in rule.targets}
    return {
        rule.function.__name__: next(b.name for b in rule.bundles if b.name not in filled)
        for rule in rules
        if rule.function.__name__ not in able
    }


def _filled_at_start(machine: type[Any]) -> set[str]:
    return {bundle for rule in initializers_of(machine) for bundle in rule.targets}


def _able(rules: list[Any], started: set[str], left_out: str) -> set[str]:
    """The rules whose bundles can ever have values if one rule is left out."""
    able: set[str] = set()
    filled = set(started)
    while True:
        more = {
            rule.function.__name__: rule.targets
            for rule in rules
            if rule.function.__name__ not in able | {left_out}
            and all(bundle.name in filled for bundle in rule.bundles)
        }
        if not more:
            return able
        able |= set(more)
        filled |= {bundle for targets in more.values() for bundle in targets}


def _declared(machine: type[Any], what: str) -> list[Any]:
    if hasattr(machine, "setup_state"):
        return list(getattr(machine.setup_state(), what))
    older = {"rules": "rules", "initializers": "initialize_rules", "invariants": "invariants"}
    return list(getattr(machine, older[what])())


def _names_in_order(machine: type[Any]) -> list[str]:
    return list(dict.fromkeys(n for base in reversed(machine.__mro__) for n in vars(base)))


def _check_arguments(machine: str, rule: Any) -> None:
    from hypothesis.errors import HypothesisException

    for name, strategy in rule.arguments.items():
        try:
            strategy.validate()
        except HypothesisException as error:
            raise UserError(
                f"rule {machine}.{rule.function.__name__}, argument {name!r}: {_line(error)}"
            ) from None
    try:
        inspect.signature(rule.function).bind(None, **rule.arguments)
    except TypeError as error:
        raise UserError(f"rule {machine}.{rule.function.__name__}: {error}") from None


def _check_names(machine: str, rules: list[Any]) -> None:
    names = [rule.function.__name__ for rule in rules]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UserError(
            f"state machine {machine!r} has two rules named {twice[0]!r}: give each its own name"
        )


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
