"""Save a failing test in Hypothesis's example database, as if Hypothesis had found it.

Hypothesis replays a test from all the choices of its own loop: whether to stop, which rules are
enabled, which rule comes next, the arguments, and an index for each draw from a bundle. To get
these choices, run its loop once on a `ConjectureData` that answers each request so that our test
comes out: do not stop before the end, enable every rule, then the test's rule, its choices and its
values. Then run the choices again as Hypothesis would, and save them only if the test fails in the
same way.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import Phase, settings

from swarmtest.core.result import Fault
from swarmtest.processes.fork import messages_of_fork
from swarmtest.subjects.hypothesis.internals import (
    Bundle,
    ConjectureData,
    DataObject,
    Reference,
    StopTest,
    build_context,
    choices_to_bytes,
    deterministic_PRNG,
    fault_in_own_frames,
    function_digest,
    get_state_machine_test,
    run_state_machine_as_test,
    unwrap_strategies,
)
from swarmtest.subjects.hypothesis.test import RuleStep, RuleTest

if TYPE_CHECKING:
    from swarmtest.subjects.hypothesis.subject import RuleBasedSubject

_STOP = 2**-16
"""The probability with which Hypothesis stops before a step; it identifies that request."""
_SECONDS = 60.0
_SHRINK_SECONDS = 400.0
_WITHOUT_DATABASE = (
    "the settings of the state machine have no example database "
    "(where the variable CI is set, Hypothesis uses none unless a profile names one)"
)


@dataclass(frozen=True)
class HandoverResult:
    """The result of handing a test to Hypothesis."""

    saved: bool
    """Whether the next run of Hypothesis will replay the test."""
    why: str = ""
    """Why not, in one line."""
    example: str = ""
    """The example as Hypothesis shrank it, if `shrink` was requested."""


def hand_over(
    subject: RuleBasedSubject, test: RuleTest, fault: Fault, shrink: bool = False
) -> HandoverResult:
    """Save a failing test in Hypothesis's example database, so that pytest replays it.

    With `shrink`, Hypothesis shrinks it now; otherwise the next run of pytest does. The test runs
    in a process of its own, because it may kill that process.
    """
    if subject.settings.database is None:
        return HandoverResult(False, _WITHOUT_DATABASE)
    if Phase.reuse not in subject.settings.phases:
        return HandoverResult(False, "the settings of the state machine leave out Phase.reuse")
    if fault.kind not in ("exception", "invariant"):
        return HandoverResult(False, f"a {fault.kind} would end the process of Hypothesis as well")

    def work(tell: Callable[[Any], None]) -> None:
        why = _save(subject, test, fault)
        tell({"why": why})
        if shrink and not why:
            tell({"example": _shrink(subject)})

    answer: dict[str, Any] = {}
    for entry in messages_of_fork(work, _SHRINK_SECONDS if shrink else _SECONDS):
        answer |= entry
    if "why" not in answer:
        return HandoverResult(False, "the test ended its process, or took too long")
    return HandoverResult(not answer["why"], answer["why"], answer.get("example", ""))


def _save(subject: RuleBasedSubject, test: RuleTest, fault: Fault) -> str:
    """Save the test; return why it cannot be saved, empty if it was."""
    function = get_state_machine_test(subject.machine, settings=subject.settings)
    inner = function.hypothesis.inner_test
    # In older versions the test function takes the class as an argument.
    older = "factory" in inspect.signature(inner).parameters
    run = functools.partial(inner, factory=subject.machine) if older else inner
    driven = (*subject.rules, *subject.initializers.values())
    scripted = _ScriptedData(test.steps, {rule.name: rule.rule for rule in driven})
    error = _raised(run, scripted)
    if isinstance(error, _Diverged):
        return f"Hypothesis does not run it the same way: {error}"
    choices = scripted.choices
    if not _same(error, fault) or not _same(
        _raised(run, ConjectureData.for_choices(choices)), fault
    ):
        return "it does not fail in the same way under Hypothesis"
    # Examples under the key itself count as shrunk; those here are replayed and then shrunk.
    key = function_digest(inner) + b".secondary"
    subject.settings.database.save(key, choices_to_bytes(choices))
    return ""


def _raised(inner: Callable[..., None], data: Any) -> BaseException | None:
    """Return what the state machine raises when Hypothesis's own loop runs it."""
    try:
        with deterministic_PRNG(), build_context(data, inner):
            inner(data=DataObject(data))
    except StopTest:
        return _Diverged("it draws too much for one example")
    except BaseException as error:
        return error
    return None


def _same(error: BaseException | None, fault: Fault) -> bool:
    if error is None:
        return False
    signature = fault_in_own_frames(error).signature
    # A label comes first, and after which rule it was comes last.
    return signature in fault.signature


def _shrink(subject: RuleBasedSubject) -> str:
    """Let Hypothesis replay and shrink the examples in its database; return what it prints."""
    shrinking = settings(
        subject.settings, phases=(Phase.reuse, Phase.shrink), report_multiple_bugs=False
    )
    try:
        run_state_machine_as_test(subject.machine, settings=shrinking)
    except BaseException as error:
        return "\n".join(getattr(error, "__notes__", ())) or repr(error)
    return ""


class _Diverged(Exception):
    """Hypothesis's loop requested something that the test does not contain."""


class _ScriptedData(ConjectureData):  # type: ignore[misc]
    """Draws what makes Hypothesis's loop run a given test.

    `_answer` is the method that answers the next request; it depends on what the loop is doing.
    """

    def __init__(self, steps: tuple[RuleStep, ...], rules: dict[str, Any]) -> None:
        super().__init__(random=Random(0))
        self._steps = iter(steps)
        self._rules = rules
        self._step: RuleStep | None = None
        self._choices: Iterator[Any] = iter(())
        self._names: Iterator[str] = iter(())
        self._answer: Callable[[str, Any], Any] = self._argument
        self._seen_names = 0
        self._hypothesis_names: dict[tuple[str, str], str] = {}

    def draw(self, strategy: Any, *arguments: Any, **named: Any) -> Any:
        unwrapped = unwrap_strategies(strategy)
        if not isinstance(unwrapped, Reference):
            return super().draw(strategy, *arguments, **named)
        before, self._answer = self._answer, lambda _kind, _constraints: self._position(unwrapped)
        try:
            return super().draw(strategy, *arguments, **named)
        finally:
            self._answer = before

    def _draw(self, choice_type: str, constraints: Any, *, observe: bool, forced: Any) -> Any:
        if observe and choice_type == "boolean" and constraints["p"] == _STOP:
            last = self._next_step()
            forced = last if forced is None else forced
            if forced != last:
                raise _Diverged("it has more steps than stateful_step_count allows")
        elif observe and (forced is None or self._counts_forced()):
            answer = self._answer(choice_type, constraints)
            forced = answer if forced is None else forced
        return super()._draw(choice_type, constraints, observe=observe, forced=forced)

    def _counts_forced(self) -> bool:
        """Return whether a forced value takes the place of one of our answers.

        Hypothesis forces the choice that a rule is enabled if it drew that before, or if there is
        only one rule. A value that a strategy forces is among the saved choices of its step.
        """
        return self._answer in (self._selection, self._enabled, self._argument)

    def _next_step(self) -> bool:
        """Go to the next step; return whether there is none."""
        if self._step is not None:
            self._learn_names(self._step)
        step = next(self._steps, None)
        if step is None:
            return True
        self._step = step
        self._choices, self._names = iter(step.choices), iter(step.names)
        starting = self.hypothesis_runner._initialize_rules_to_run
        self._answer = self._argument
        if not starting:
            self._answer = self._selection
        elif len(starting) > 1:
            self._answer = self._first_rule
        return False

    def _first_rule(self, _kind: str, _constraints: Any) -> int:
        self._answer = self._argument
        assert self._step is not None
        starting: list[Any] = self.hypothesis_runner._initialize_rules_to_run
        return starting.index(self._rules[self._step.rule])

    def _selection(self, kind: str, constraints: Any) -> Any:
        """Answer which rules are enabled (0: all), which comes next, and that it is enabled."""
        assert self._step is not None
        if kind == "boolean":  # there is one rule, so Hypothesis does not choose
            return self._enabled(kind, constraints)
        rules: list[Any] = self.hypothesis_runner._rules_strategy.rules
        if kind == "integer" and constraints["max_value"] == len(rules) - 1:
            self._answer = self._enabled
            return rules.index(self._rules[self._step.rule])
        return 0

    def _enabled(self, kind: str, _constraints: Any) -> bool:
        if kind != "boolean":
            raise _Diverged("a rule cannot run where the test runs it")
        self._answer = self._argument
        return False

    def _argument(self, _kind: str, _constraints: Any) -> Any:
        for choice in self._choices:
            return choice
        raise _Diverged("a rule draws more than it did")

    def _position(self, strategy: Any) -> int:
        bundle = self.hypothesis_runner.bundle(strategy.name)
        name = self._hypothesis_names.get((strategy.name, next(self._names, "")))
        for at, reference in enumerate(bundle):
            if reference.name == name:
                # Versions in which a bundle is a strategy itself count from the newest value.
                return len(bundle) - 1 - at if Reference is Bundle else at
        raise _Diverged("a value that the test uses is missing")

    def _learn_names(self, step: RuleStep) -> None:
        """Record Hypothesis's names for the values that the last step returned."""
        machine = self.hypothesis_runner
        new = machine.names_list[self._seen_names :]
        self._seen_names = len(machine.names_list)
        own = (
            [f"v{step.label}"]
            if step.gives is None
            else [f"v{step.label}_{at}" for at in range(1, step.gives + 1)]
        )
        targets = self._rules[step.rule].targets
        for number, name in enumerate(new):
            target = targets[number // len(own)]
            self._hypothesis_names[target, own[number % len(own)]] = name
