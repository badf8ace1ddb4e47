"""Recognise a state machine of Hypothesis, and read and check what it declares.

Rules are features. An initialize rule is not a feature: Hypothesis runs each exactly once before
any other rule, so it is how a test starts, like `start` of a `Machine`. The effect of a feature
that is in every test could not be distinguished from that of the test itself.

Hypothesis is imported only inside functions: a program with a state machine has imported it, and
all others should not wait for it.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

from swarmtest.core.dimensions import Feature
from swarmtest.core.errors import UserError
from swarmtest.core.space import Space
from swarmtest.subjects.machine.compiled import refuse_constructor_arguments, refuse_coroutine


def is_state_machine(member: object) -> bool:
    """Return whether an object is a state machine of Hypothesis, or the test case of one.

    >>> is_state_machine(dict)
    False
    """
    return _machine_of(member) is not None


def state_machine_of(member: object) -> type[Any]:
    """Return the state machine that a class is, or that a test case runs.

    >>> from hypothesis.stateful import RuleBasedStateMachine, rule
    >>> class Lamp(RuleBasedStateMachine):
    ...     @rule()
    ...     def switch(self): pass
    >>> state_machine_of(Lamp.TestCase) is Lamp
    True
    """
    machine = _machine_of(member)
    if machine is None:
        name = getattr(member, "__name__", repr(member))
        raise UserError(f"{name} is not a RuleBasedStateMachine of Hypothesis, nor its TestCase")
    return machine


def _machine_of(member: object) -> type[Any] | None:
    # A program with a state machine has imported this module; others should not wait for it.
    stateful = sys.modules.get("hypothesis.stateful")
    if stateful is None or not inspect.isclass(member):
        return None
    run = getattr(member, "runTest", None)
    machine = getattr(run, "_hypothesis_state_machine_class", member)
    base = stateful.RuleBasedStateMachine
    return machine if issubclass(machine, base) and machine is not base else None


def settings_of(member: type[Any]) -> Any:
    """Return the settings with which pytest would run a state machine, or its test case."""
    case = member if hasattr(member, "runTest") else member.TestCase
    return case.settings


def rules_of(machine: type[Any]) -> list[Any]:
    """Return the rules of a state machine in the order of definition, base classes first."""
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
    for rule in (*rules, *initializers_of(machine), *invariants_of(machine)):
        function = rule.function
        refuse_coroutine(function, f"{name}.{function.__name__}", may_return_generator=True)
    refuse_coroutine(machine.teardown, f"{name}.teardown")
    _check_names(name, rules)
    return rules


def initializers_of(machine: type[Any]) -> list[Any]:
    """Return the initialize rules of a state machine."""
    return _declared(machine, "initializers")


def invariants_of(machine: type[Any]) -> list[Any]:
    """Return the invariants of a state machine."""
    return _declared(machine, "invariants")


def space_of(machine: type[Any]) -> Space:
    """Return the space whose features are the rules of a state machine.

    A rule that draws from bundles requires each rule without which these could never have values.
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
    """Return the rules that can never run, each with a bundle that it needs and nothing fills."""
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
    """Return the rules whose bundles can ever have values if one rule is left out."""
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
