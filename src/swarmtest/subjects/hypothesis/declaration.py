"""Recognising a state machine of Hypothesis, and reading what it declares, with all checks.

Rules are features. An initialize rule is not: Hypothesis runs each exactly once before any other
rule, so it is how a test starts, as `start` is for a `Machine`. A feature that is in every test
could not be told apart from the test itself.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import hypothesis

from swarmtest.core.dimensions import Feature
from swarmtest.core.errors import UserError
from swarmtest.core.faults import fault_of_exception
from swarmtest.core.result import Fault
from swarmtest.core.space import Space
from swarmtest.subjects.machine.compiled import refuse_constructor_arguments

# -------------------------------------------------------------------------------------------------
# What swarmtest uses of Hypothesis beyond its public interface, all of it here.
#
# A version of Hypothesis that does not have one of these is refused in one place, with one line.
# The
# names are `Any`: their types change from version to version.

OLDEST = "6.131"
"""The first version whose draws are a sequence of choices with constraints."""


def _from(module: str, name: str) -> Any:
    try:
        return getattr(importlib.import_module(f"hypothesis.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise UserError(_refusal(error)) from None


def _refusal(error: Exception) -> str:
    try:
        import hypothesis
    except ImportError:
        return "Hypothesis is not installed: pip install 'swarmtest[hypothesis]'"
    return (
        f"swarmtest cannot drive the state machines of Hypothesis {hypothesis.__version__} "
        f"({error}): pip install --upgrade 'hypothesis>={OLDEST}'"
    )


_BuildContext: Any = _from("control", "BuildContext")
skip_exceptions_to_reraise: Any = _from("core", "skip_exceptions_to_reraise")
choices_to_bytes: Any = _from("database", "choices_to_bytes")
StopTest: Any = _from("errors", "StopTest")
UnsatisfiedAssumption: Any = _from("errors", "UnsatisfiedAssumption")
choice_constraints_key: Any = _from("internal.conjecture.choice", "choice_constraints_key")
choice_from_index: Any = _from("internal.conjecture.choice", "choice_from_index")
choice_permitted: Any = _from("internal.conjecture.choice", "choice_permitted")
ConjectureData: Any = _from("internal.conjecture.data", "ConjectureData")
BUFFER_SIZE: Any = _from("internal.conjecture.engine", "BUFFER_SIZE")
HypothesisProvider: Any = _from("internal.conjecture.providers", "HypothesisProvider")
deterministic_PRNG: Any = _from("internal.entropy", "deterministic_PRNG")
float_to_int: Any = _from("internal.floats", "float_to_int")
int_to_float: Any = _from("internal.floats", "int_to_float")
function_digest: Any = _from("internal.reflection", "function_digest")
Bundle: Any = _from("stateful", "Bundle")
MultipleResults: Any = _from("stateful", "MultipleResults")
RuleBasedStateMachine: Any = _from("stateful", "RuleBasedStateMachine")
VarReference: Any = _from("stateful", "VarReference")
get_state_machine_test: Any = _from("stateful", "get_state_machine_test")
run_state_machine_as_test: Any = _from("stateful", "run_state_machine_as_test")
DataObject: Any = _from("strategies._internal.core", "DataObject")
unwrap_strategies: Any = _from("strategies._internal.lazy", "unwrap_strategies")
RepresentationPrinter: Any = _from("vendor.pretty", "RepresentationPrinter")

# In older versions the bundle arguments of a rule were strategies of a class of their own.
Reference: Any = getattr(
    importlib.import_module("hypothesis.stateful"), "BundleReferenceStrategy", Bundle
)

# Newer versions want to know the test that draws.
_TESTED = "wrapped_test" in inspect.signature(_BuildContext).parameters


def build_context(data: Any, test: Any) -> Any:
    """A context inside which `assume` and the like work, for what draws from `data`."""
    more = {"wrapped_test": test} if _TESTED else {}
    return _BuildContext(data, is_final=False, **more)


# -------------------------------------------------------------------------------------------------
# Faults from exceptions that went through Hypothesis, whose frames are not the user's code.

_HYPOTHESIS = str(Path(hypothesis.__file__).parent)
_PROXY = "accept.<locals>."
"""Decorated functions are called through one that Hypothesis compiles under the user's file."""


def fault_in_own_frames(error: BaseException, kind: str = "exception", label: str = "") -> Fault:
    """The fault that an exception shows, as if Hypothesis had not been in between."""
    whole = error.__traceback__
    try:
        return fault_of_exception(error.with_traceback(_own(whole)), kind, label)
    finally:
        error.__traceback__ = whole


def _own(whole: TracebackType | None) -> TracebackType | None:
    frames: list[TracebackType] = []
    proxy = None
    tb = whole
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename.startswith(_HYPOTHESIS):
            if proxy is not None and frames[-1:] == [proxy]:
                frames.pop()
        else:
            frames.append(tb)
            proxy = tb if code.co_qualname.startswith(_PROXY) else None
        tb = tb.tb_next
    kept: TracebackType | None = None
    for tb in reversed(frames):
        kept = TracebackType(kept, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return kept or whole


# -------------------------------------------------------------------------------------------------


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
